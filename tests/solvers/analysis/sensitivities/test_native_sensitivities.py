"""Sensitivities in compiled loops: closed forms, differences of runs, and the way by Python."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import flexure as fx
from flexure.diagrams.checks.errors import NoProgressError
from flexure.solvers.analysis.sensitivities import interpreted_motion
from tests.support.native.native import needs_llvmlite

NATIVE = ("RK23", "RK45", "DOP853", "DormandPrince", "ESDIRK4")
MATRIX = np.array([[0.0, 1.0], [-9.0, -0.4]])


def oscillator() -> tuple[fx.System, fx.Context]:
    """Return a mass on a spring with a damper as a matrix, deflected, without an input."""
    block = fx.StateSpace("block", MATRIX, np.zeros((2, 1)), np.eye(2), np.zeros((2, 1)))
    context = block.create_default_context()
    block.input_ports[0].fix(context, 0.0)
    context.continuous_state = [1.0, -0.5]
    return block, context


def moved(entry: tuple[int, int], time: float) -> Any:
    """Return the derivative of the state of the oscillator by an entry of the matrix.

    It is that of ``e^(At) x``, which is in the corner of the exponential of a matrix of blocks.
    """
    direction = np.zeros((2, 2))
    direction[entry] = 1.0
    blocks = np.block([[MATRIX, direction], [np.zeros((2, 2)), MATRIX]])
    return expm(time * blocks)[:2, 2:] @ [1.0, -0.5]


def leaf(segments: int = 4, **options: Any) -> tuple[fx.Plant, fx.Context]:
    """Return a steel leaf in the plane with a force across its tip."""
    builder = fx.PlantBuilder("leaf", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia(2e-3, np.zeros(3), np.full(3, 1e-7)))
    joint = builder.add_joint(fx.PlanarJoint("joint", builder.world, tip))
    joint.default_positions = np.array([0.1, 0.0, 0.0])
    steel = fx.Material(210e9, poissons_ratio=0.3, density=7850.0)
    options = {"damping_time": 1e-4, "planar": True} | options
    builder.add_force_element(
        fx.LeafSpring(
            "beam",
            builder.world,
            tip,
            length=0.1,
            width=0.01,
            thickness=5e-4,
            material=steel,
            segments=segments,
            **options,
        )
    )
    builder.add_external_force("load", tip)
    plant = builder.build()
    context = plant.create_default_context()
    plant.input_port("load").fix(context, np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.0]))
    return plant, context


def by_differences(
    plant: fx.System, context: fx.Context, path: str, t_final: float, step: float = 1e-4
) -> Any:
    """Differentiate the final state of accurate runs by a parameter."""
    finals, value = [], float(np.asarray(context.get(path)))
    for sign in (1.0, -1.0):
        changed = context.clone()
        changed.set(path, value * (1.0 + sign * step))
        run = fx.simulate(plant, t_final, context=changed, method="Rodas5P", rtol=1e-10, atol=1e-13)
        finals.append(np.array(run.context.continuous_state))
    return (finals[0] - finals[1]) / (2.0 * step * value)


def assert_close(found: Any, expected: Any, part: float) -> None:
    """Compare columns, of which coordinates and rates differ in size."""
    half = len(expected) // 2
    for rows in (slice(half), slice(half, None)):
        size = np.abs(expected[rows]).max()
        np.testing.assert_allclose(found[rows], expected[rows], rtol=0.0, atol=part * size)


# Closed forms ------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("method", NATIVE)
def test_entries_of_a_matrix_and_initial_states_have_their_closed_forms(method: str) -> None:
    block, context = oscillator()
    times = [0.0, 0.4, 1.7, 2.0]
    ways = ["A[1, 0]", "A[1, 1]", "x[0]"]
    result = fx.parameter_sensitivity(
        block, ways, 2.0, context=context, times=times, method=method, outputs="y"
    )
    for k, time in enumerate(times):
        for way, entry in (("A[1, 0]", (1, 0)), ("A[1, 1]", (1, 1))):
            found = result.derivatives[way][k]
            np.testing.assert_allclose(found, moved(entry, time), rtol=0.0, atol=2e-7)
            np.testing.assert_array_equal(result.output_derivatives["y"][way][k], found)
        found = result.derivatives["x[0]"][k]
        np.testing.assert_allclose(found, expm(time * MATRIX)[:, 0], rtol=0.0, atol=2e-7)


@needs_llvmlite
@pytest.mark.parametrize("method", NATIVE)
def test_explicit_methods_and_esdirk_converge_with_their_tolerance(method: str) -> None:
    block, context = oscillator()
    exact = moved((1, 0), 2.0)
    errors = []
    for rtol in (1e-4, 1e-7):
        result = fx.parameter_sensitivity(
            block, ["A[1, 0]"], 2.0, context=context, method=method, rtol=rtol
        )
        errors.append(np.abs(result["A[1, 0]"] - exact).max())
    assert errors[1] < 0.02 * errors[0]


def test_a_damping_that_is_zero_has_its_derivative() -> None:
    builder = fx.PlantBuilder("slider", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia(2.0, np.zeros(3), np.ones(3)))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, body, axis=(1, 0, 0)))
    builder.add_force_element(fx.JointSpring("spring", slide, stiffness=8.0, damping=0.0))
    plant = builder.build()
    context = plant.create_default_context()
    context.set("slide.translation", 1.0)
    ways = ["spring.damping", "spring.stiffness", "slide.damping"]
    result = fx.parameter_sensitivity(plant, ways, 3.0, context=context)
    # x = cos ωt; with a damping d, x'' + d/m x' + ω² x = 0, so that at d = 0
    # ∂x/∂d = (sin ωt/ω - t cos ωt)/(2 m), and ∂x/∂k = -t sin ωt/(2 m ω)
    t, m, w = 3.0, 2.0, 2.0
    damped = (math.sin(w * t) / w - t * math.cos(w * t)) / (2.0 * m)
    assert result["spring.damping"][0] == pytest.approx(damped, rel=1e-6)
    assert np.ravel(result["slide.damping"])[0] == pytest.approx(damped, rel=1e-6)
    softer = -t * math.sin(w * t) / (2.0 * m * w)
    assert result["spring.stiffness"][0] == pytest.approx(softer, rel=1e-6)


# Divided leaves ----------------------------------------------------------------------------------


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize(
    ("segments", "ways"),
    [
        (3, ["beam.thickness", "beam.damping_time", "beam.density"]),
        (18, ["beam.thickness"]),
    ],
    ids=["written out", "shared code"],
)
def test_divided_leaves_have_the_derivatives_of_accurate_runs(
    segments: int, ways: list[str]
) -> None:
    plant, context = leaf(segments)
    t_final = 2e-3
    result = fx.parameter_sensitivity(plant, ways, t_final, context=context, rtol=1e-8)
    for way in ways:
        expected = by_differences(plant, context, way, t_final)
        assert_close(result[way], expected, 2e-5)


@pytest.mark.full
@needs_llvmlite
def test_an_undivided_leaf_has_the_numbers_of_the_way_by_python() -> None:
    plant, context = leaf(1)
    ways = ["beam.thickness", "beam.damping_time", "joint.q[x]"]
    outputs = ["beam.greatest_stress", "tip.position"]
    options: dict[str, Any] = {"times": [0.0, 2e-4, 5e-4], "outputs": outputs, "rtol": 1e-8}
    expected = fx.parameter_sensitivity(
        plant, ways, 5e-4, context=context, method="Radau", **options
    )
    for method in ("auto", "ESDIRK4", "RK45"):
        found = fx.parameter_sensitivity(
            plant, ways, 5e-4, context=context, method=method, **options
        )
        for way, columns in expected.derivatives.items():
            for k in (1, 2):
                assert_close(found.derivatives[way][k], columns[k], 2e-6)
        for output, slopes in expected.output_derivatives.items():
            for way, slope in slopes.items():
                size = np.abs(slope).max()
                given = found.output_derivatives[output][way]
                np.testing.assert_allclose(given, slope, rtol=0.0, atol=2e-6 * size)


@needs_llvmlite
def test_motions_that_turn_stiff_go_on_with_an_implicit_method() -> None:
    # y follows cos t at a rate that grows to 1e6, from which on stability limits explicit steps.
    block = Follower("block")
    context = block.create_default_context()
    result = fx.parameter_sensitivity(block, ["gain"], 30.0, context=context, rtol=1e-6)
    chosen = fx.parameter_sensitivity(
        block, ["gain"], 30.0, context=context, rtol=1e-6, method="Radau"
    )
    np.testing.assert_allclose(result["gain"], chosen["gain"], rtol=1e-4)


class Follower(fx.LeafSystem):
    """ẋ = r(t) (g cos t - x) with a rate r that grows from 1 to 1e6."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.gain = self.declare_numeric_parameter("gain", 2.0)
        self.x = self.declare_continuous_state(z=1, default=[2.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        t = context.time
        rate = 1.0 + 1e6 / (1.0 + np.exp(-4.0 * (t - 5.0)))
        return rate * (self.gain(context) * np.cos(t) - self.x(context))


# What lies on the way ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["RK45", "ESDIRK4"])
def test_inputs_that_were_measured_drive_the_compiled_motion(method: str) -> None:
    time = np.array([0.0, 0.3, 1.0, 1.1, 2.0])
    record: dict[str, Any] = {"time": time, "u": [0.0, 1.0, -0.5, 2.0, 0.0]}
    lag = fx.FirstOrderLag("lag", time_constant=0.7)
    wanted = {"gain": (-5.0, 5.0), "time_constant": (0.05, 5.0)}
    record["y"] = 2.0 * driven(0.3, time, np.array(record["u"]))
    found = fx.fit(lag, record, wanted, method=method)
    assert found.constants == pytest.approx({"gain": 2.0, "time_constant": 0.3}, rel=1e-5)


def driven(tau: float, times: Any, values: Any) -> Any:
    """Return the states of a lag from rest whose input follows lines between points."""
    states = [0.0]
    for s, u, v in zip(np.diff(times), values, values[1:], strict=False):
        slope, decay = (v - u) / s, math.exp(-s / tau)
        states.append(v - slope * tau + (states[-1] - u + slope * tau) * decay)
    return np.array(states)


@pytest.mark.parametrize("method", ["RK45", "ESDIRK4"])
def test_jumps_of_sources_are_stops(method: str) -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(fx.Step("source", at=0.4), fx.FirstOrderLag("lag", time_constant=0.5))
    builder.connect("source.y", "lag.u")
    diagram = builder.build()
    result = fx.parameter_sensitivity(diagram, ["lag.time_constant"], 1.0, method=method)
    s, tau = 0.6, 0.5
    expected = -s / tau**2 * math.exp(-s / tau)
    assert result["lag.time_constant"][0] == pytest.approx(expected, rel=2e-6)


def test_threads_take_sensitivities_of_one_system_at_the_same_time() -> None:
    block, context = oscillator()

    def slope(entry: float) -> float:
        own = context.clone()
        own.set("A", np.array([[0.0, 1.0], [entry, -0.4]]))
        return float(fx.parameter_sensitivity(block, ["A[1, 0]"], 2.0, context=own)["A[1, 0]"][0])

    entries = [-9.0 - 0.1 * k for k in range(12)]
    alone = [slope(entry) for entry in entries]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(slope, entries)) == alone


@needs_llvmlite
def test_a_compiled_motion_that_gets_nowhere_says_so_as_others_do() -> None:
    block = Chirp("block")
    context = block.create_default_context()
    for method in ("RK45", "ESDIRK4"):
        with pytest.raises(NoProgressError, match="at that pace"):
            fx.parameter_sensitivity(block, ["scale"], 1e9, context=context, method=method)


class Chirp(fx.LeafSystem):
    """Two states that turn about each other a million times in a second."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.scale = self.declare_numeric_parameter("scale", 1e6)
        self.x = self.declare_continuous_state(z=2, default=[1.0, 0.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        x, scale = self.x(context), self.scale(context)
        return [scale * x[1], -scale * x[0]]


# Long motions ------------------------------------------------------------------------------------


def test_one_warning_tells_that_a_motion_by_python_will_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interpreted_motion, "_STRETCH", 0.0)
    monkeypatch.setattr(interpreted_motion, "_LONG", 0.0)
    block, context = oscillator()
    with pytest.warns(UserWarning, match="Radau has no native loop") as told:
        fx.parameter_sensitivity(block, ["A[1, 0]"], 2.0, context=context, method="Radau")
    assert len(told) == 1
    assert "method='ESDIRK4'" in str(told[0].message)
    assert told[0].filename == __file__
