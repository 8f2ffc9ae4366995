"""Stiff runs in lanes: the linear equations of all runs at once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.solvers.native.emission.sparse_factors import find_sparse_factors
from flexure.solvers.native.kernels.ensembles import ensemble_rosenbrock
from flexure.solvers.native.kernels.ensembles.ensemble_data import Ensemble
from flexure.solvers.native.programs import lane_equations
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.native.programs.programs import program_of
from flexure.solvers.native.runs import batch
from tests.support.native.native import empty
from tests.support.systems.sweeps import assert_like_singles, in_lanes

pytest.importorskip("llvmlite", reason="native code needs the package llvmlite")

FloatArray = npt.NDArray[np.float64]
STIFF: dict[str, Any] = {"method": "Rodas5P"}


class Kinetics(fx.LeafSystem):
    """Robertson's reactions, with a rate that a wave disturbs, and nothing after the end."""

    def __init__(self) -> None:
        super().__init__("kinetics")
        self.rates = self.declare_numeric_parameter("rates", [0.04, 3e7, 1e4])
        self.wave = self.declare_numeric_parameter("wave", 0.0)
        self.end = self.declare_numeric_parameter("end", 1e9)
        self.x = self.declare_continuous_state(z=3, default=[1.0, 0.0, 0.0])
        self.y = self.declare_vector_output("y", 3, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        slow, fast, back = self.rates(context)
        a, b, c = self.x(context)
        slow = slow * (1.0 + self.wave(context) * np.sin(context.time))
        lost = slow * a - back * b * c
        born = fast * b * b
        left = np.sqrt(self.end(context) - context.time)
        return [-lost * left / left, lost - born, born]


class Mesh(fx.LeafSystem):
    """ẋ = −(L + stiffness) x over many nodes, either neighbors or all of them coupled."""

    def __init__(self, nodes: int, *, full: bool = False) -> None:
        super().__init__("mesh")
        self.stiffness = self.declare_numeric_parameter("stiffness", 1.0)
        self.x = self.declare_continuous_state(z=nodes, default=np.cos(np.arange(nodes)))
        rng = np.random.default_rng(nodes)
        self._full = rng.normal(size=(nodes, nodes)) if full else None

    def calc_time_derivatives(self, context: Any) -> Any:
        x, k = self.x(context), self.stiffness(context)
        if self._full is not None:
            return self._full @ np.sin(x) - 100.0 * k * x
        left, right = np.append(0.0, x[:-1]), np.append(x[1:], 0.0)
        return 1e4 * (left + right - 2.0 * x) - k * x**3


class HardSpring(fx.LeafSystem):
    """q″ = w² (sin t − q) − 2 w q′: with large w, elimination in the order of states is bad."""

    def __init__(self) -> None:
        super().__init__("spring")
        self.w = self.declare_numeric_parameter("w", 1.0)
        self.x = self.declare_continuous_state(q=1, v=1)
        self.q = self.declare_vector_output("q", 1, self.x.q, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        w = self.w(context)
        return [v, w * w * (np.sin(context.time) - q) - 2.0 * w * v]


def assert_lanes(sweep: fx.results.Sweep) -> None:
    assert in_lanes(sweep), sweep.how
    assert "Rodas5P" in sweep.how


def test_stiff_runs_are_those_of_single_simulations() -> None:
    values = {"rates": [[k, 3e7, 1e4] for k in np.linspace(0.01, 0.08, 21)]}
    sweep = fx.sweep(Kinetics(), values, 40.0, signals="y", **STIFF)
    assert_lanes(sweep)
    assert_like_singles(sweep, range(0, 21, 4), tolerance=1e-10, **STIFF)
    np.testing.assert_allclose(sweep["y"].sum(axis=2), 1.0, rtol=1e-9)


def test_equations_that_depend_on_time_have_their_own_slope_in_every_lane() -> None:
    values = {"wave": np.linspace(0.0, 0.5, 11)}
    sweep = fx.sweep(Kinetics(), values, 20.0, signals="y", **STIFF)
    assert_lanes(sweep)
    assert_like_singles(sweep, range(0, 11, 3), tolerance=1e-9, **STIFF)


def test_the_method_is_settled_once_for_all_runs() -> None:
    spring = HardSpring()
    context = spring.create_default_context()
    context.set("w", 1e5)
    sweep = fx.sweep(spring, {"x": [[0.0, 0.0], [0.1, 0.0]]}, 3.0, context=context)
    assert_lanes(sweep)
    assert "because the diagram is stiff" in sweep.how


def test_lanes_in_which_elimination_is_inaccurate_choose_their_own_pivots() -> None:
    w = np.geomspace(1.0, 1e7, 40)
    sweep = fx.sweep(HardSpring(), {"w": w}, 3.0, signals="q", rtol=1e-5, **STIFF)
    assert_lanes(sweep)
    assert_like_singles(sweep, range(0, 40, 3), tolerance=1e-9, rtol=1e-5, **STIFF)
    # To first order, a hard spring follows with a delay of 2 / w.
    late = sweep.times > 1.0
    hard = w > 1e4
    expected = np.sin(sweep.times[late] - 2.0 / w[hard, np.newaxis])
    np.testing.assert_allclose(sweep["q"][hard][:, late], expected, atol=2e-5)


@pytest.mark.full
@pytest.mark.parametrize(("nodes", "full"), [(40, False), (40, True)])
def test_larger_systems_have_linear_equations_of_their_kind(nodes: int, full: bool) -> None:
    mesh = Mesh(nodes, full=full)
    assert_factors(mesh, dense=full)
    values = {"stiffness": np.linspace(1.0, 5.0, 11)}
    sweep = fx.sweep(mesh, values, 0.5, signals="x", times=[0.1, 0.5], **STIFF)
    assert_lanes(sweep)
    assert_like_singles(sweep, [0, 10], tolerance=1e-9, **STIFF)


def assert_factors(mesh: Mesh, *, dense: bool) -> None:
    """Check that a mesh has the kind of factors that its test is about."""
    program = program_of(mesh.create_default_context().store)
    jacobian = program.lane_equations([], implicit=True).jacobian
    assert jacobian is not None
    assert (jacobian.factors is None) == dense


@pytest.mark.full
def test_very_many_states_are_left_to_single_runs() -> None:
    sweep = fx.sweep(Mesh(201), {"stiffness": [1.0, 2.0]}, 0.01, **STIFF)
    assert "because Rodas5P runs in lanes with at most 200 states" in sweep.how


@pytest.mark.full
def test_a_method_that_iterates_is_left_to_single_runs() -> None:
    sweep = fx.sweep(Mesh(3), {"stiffness": [1.0, 2.0]}, 0.1, signals="x", method="ESDIRK4")
    assert "because ESDIRK4 does not run in lanes" in sweep.how
    stiff = fx.sweep(Mesh(3), {"stiffness": [1.0, 2.0]}, 0.1, signals="x", **STIFF)
    np.testing.assert_allclose(sweep["x"], stiff["x"], atol=1e-5)


@pytest.mark.full
def test_pauses_and_threads_change_nothing(monkeypatch: Any) -> None:
    values = {"w": np.geomspace(1.0, 1e7, 50)}
    options: dict[str, Any] = {"signals": "q", "rtol": 1e-4, **STIFF}
    expected = fx.sweep(HardSpring(), values, 3.0, threads=1, **options)
    monkeypatch.setattr(batch, "_WORK", 1)
    for threads in (1, 3):
        found = fx.sweep(HardSpring(), values, 3.0, threads=threads, **options)
        np.testing.assert_array_equal(found.final_states, expected.final_states)
        np.testing.assert_array_equal(found["q"], expected["q"])


def test_neighbors_with_bad_pivots_or_without_a_jacobian_spoil_no_others() -> None:
    ends = np.full(20, 1e9)
    ends[[2, 7, 19]] = 3.0
    options: dict[str, Any] = {"signals": "y", **STIFF}
    alone = fx.sweep(Kinetics(), {"end": ends[ends > 9.0]}, 9.0, **options)
    mixed = fx.sweep(Kinetics(), {"end": ends}, 9.0, **options)
    assert_lanes(mixed)
    assert list(mixed.failures) == [2, 7, 19]
    np.testing.assert_array_equal(mixed["y"][ends > 9.0], alone["y"])
    time = float(re.search(r"past t = (\S+) s", mixed.failures[7]).group(1))  # type: ignore[union-attr]
    assert 2.9 < time <= 3.0


@pytest.mark.full
def test_equations_of_any_length_take_the_same_steps(monkeypatch: Any) -> None:
    values = {"wave": np.linspace(0.0, 0.5, 9)}
    expected = fx.sweep(Kinetics(), values, 5.0, **STIFF)
    monkeypatch.setattr(lane_equations, "_LARGE", 10)
    found = fx.sweep(Kinetics(), values, 5.0, **STIFF)
    np.testing.assert_array_equal(found.steps, expected.steps)
    np.testing.assert_allclose(found.final_states, expected.final_states, rtol=1e-9)


@pytest.mark.parametrize("sparse", [0, 1])
def test_python_runs_the_kernels_of_a_step_with_one_lane(sparse: int) -> None:
    # ẋ = −3 x in one step of a length h, by both kinds of factors.
    found = []
    run: Any = empty(Ensemble)
    run.lanes.count, run.lanes.live[0] = 1, 1.0
    run.linear.sparse, run.linear.nonzeros = sparse, 1
    run.linear.jacobian = lambda t, x, env, out: out.__setitem__(0, -3.0)
    factors: Any = find_sparse_factors(1, np.array([0]), np.array([0]))
    run.system.timed, run.step.clip[0] = 1, np.inf
    run.step.h[0], run.step.x[0], run.step.k[0] = 0.1, 2.0, -6.0
    run.tolerances.rtol[:], run.tolerances.atol[:] = 1e-3, 1e-6

    def rhs(time: float, x: FloatArray, env: FloatArray, out: FloatArray) -> None:
        found.append(time)
        out[0] = -3.0 * x[0]

    ensemble_rosenbrock.attempt(run, METHODS["Rodas5P"].tableau, 1, rhs, factors)
    assert run.step.dense[0] == (1.0 if sparse == 0 else 0.0)
    np.testing.assert_allclose(run.step.x_new[0], 2.0 * np.exp(-0.3), rtol=1e-6)
    assert run.step.error[0] < 1.0
    assert max(found) == 0.1
