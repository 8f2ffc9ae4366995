"""Traces are used where they give the numbers of the equations, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, TraceError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.tracing.trace_check import (
    OTHER_NUMBERS,
    agree,
    agrees_at,
    interpreted_numbers,
)
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each, thinned

NAN, INF = np.nan, np.inf


@for_each(
    ("found", "expected", "same"),
    [
        ([1.0 + 1e-12, 2.0], [1.0, 2.0], True),
        ([1.0 + 1e-6, 2.0], [1.0, 2.0], False),
        ([1e-5, 1e5], [0.0, 1e5], True),  # terms of the size of the other number that cancel
        ([1e-5, 1.0], [0.0, 1.0], False),
        ([1e-5, 1.0], [0.0, INF], False),  # an infinite number tells nothing of the size of terms
        ([NAN, INF, -INF], [NAN, INF, -INF], True),
        ([NAN, 1.0], [2.0, 1.0], False),
        ([2.0, 1.0], [NAN, 1.0], False),
        ([INF, 1.0], [-INF, 1.0], False),
        ([INF, 1.0], [NAN, 1.0], False),
        ([], [], True),
    ],
)
@for_each("known", [False, True])
def test_numbers_agree_up_to_the_rounding_of_their_terms(
    found: list[float], expected: list[float], same: bool, known: bool
) -> None:
    numbers = np.array(expected)
    size = np.max(np.abs(numbers), initial=0.0, where=np.isfinite(numbers))
    assert agree(found, numbers, np.full(len(numbers), size) if known else None) is same


def test_where_terms_are_known_small_numbers_and_others_do_not_hide_a_difference() -> None:
    expected = np.array([1e-6, 1e6])
    found = expected * [1.0 + 1e-3, 1.0]
    assert agree(found, expected)
    assert not agree(found, expected, np.abs(expected))
    assert agree(found, expected, np.array([NAN, 1e6]))  # where they are not, there is no verdict
    assert agree([1e9 + 0.5], np.array([1e9]), np.zeros(1))  # a number is a term of itself
    assert agree([1e-13], np.zeros(1), np.zeros(1))  # what vanishes has rounding, too


def test_stiff_forces_that_cancel_at_rest_may_differ_by_what_states_round() -> None:
    def force(x: np.ndarray) -> list[float]:
        return [1e12 * (x[0] + x[1] - x[2]), x[1]]

    x = np.array([0.1, 0.2, 0.3])
    assert force(x)[0] > 1e-6
    assert not agree(force(x), np.array([0.0, 0.2]))
    assert agrees_at(force, x, np.array([0.0, 0.2]))
    assert not agrees_at(force, x, np.array([10.0, 0.2]))
    assert not agrees_at(force, x, np.array([0.0, 0.2 + 1e-8]))  # not stiff


def test_a_trace_that_is_singular_nearby_forgives_nothing() -> None:
    with np.errstate(all="ignore"):
        assert not agrees_at(lambda x: 1.0 / (x - 1.0) ** 40, np.ones(1), np.ones(1))
        assert not agrees_at(lambda x: 1.0 / (x - 1.0), np.ones(1), np.ones(1))
        assert not agrees_at(lambda x: [np.sqrt(1.0 - x[0])], np.ones(1), np.ones(1))


# Everybody who uses traces -----------------------------------------------------------------------


def of_symbols(u: Any) -> Any:
    """Return three times what it would on numbers."""
    return -3.0 * u if scalars.is_symbolic(u) else -u


def closed_loop(function: Callable[[Any], Any]) -> fx.Diagram:
    """An integrator of a function of its output, which decays if the function is ``-u``."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.FunctionBlock("function", function), fx.Integrator("state", initial=1.0))
    builder.connect_chain("state", "function", "state")
    return builder.build()


def simulated(system: fx.Diagram, compiled: Any) -> tuple[float, str]:
    simulator = fx.Simulator(system, method="DOP853", max_step=0.02, compiled=compiled)
    simulator.advance_to(1.0)
    return float(simulator.context.continuous_state[0]), simulator.explain()


def swept(system: fx.Diagram) -> tuple[float, str]:
    sweep = fx.sweep(system, {"state.x": [1.0, 2.0]}, 1.0, method="DOP853", rtol=1e-10)
    return float(sweep.final_states[0, 0]), sweep.how


def solved(system: fx.Diagram) -> tuple[float, str]:
    equations = fx.compiled_equations(system)
    options: Any = {"method": equations.method("DOP853"), "rtol": 1e-10, "atol": 1e-12}
    solution = solve_ivp(equations, (0.0, 1.0), equations.x0, **options)
    return float(solution.y[0, -1]), equations.why


def differentiated(system: fx.Diagram) -> tuple[float, str]:
    context = system.create_default_context()
    model = fx.linearize(system, context)
    return float(np.exp(model.A[0, 0])), model.how


def read_in_lanes(system: fx.Diagram) -> tuple[float, None]:
    contexts = [system.create_default_context() for _ in range(50)]
    (table,) = fx.evaluate_batch(system, ["function.y"], contexts)
    return float(np.exp(table[0])), None


@pytest.mark.parametrize(
    "use",
    thinned(
        [
            pytest.param(partial(simulated, compiled=True), marks=needs_llvmlite, id="native"),
            pytest.param(partial(simulated, compiled="python"), id="straight-line"),
            pytest.param(swept, marks=needs_llvmlite),
            pytest.param(solved, marks=needs_llvmlite),
            differentiated,
            read_in_lanes,
        ],
        fast=2,
    ),
)
def test_whoever_uses_traces_leaves_one_that_gives_other_numbers(
    use: Callable[[fx.Diagram], tuple[float, str | None]],
) -> None:
    found, how = use(closed_loop(of_symbols))
    assert found == pytest.approx(np.exp(-1.0), rel=1e-6)
    assert how is None or OTHER_NUMBERS in how
    found, _ = use(closed_loop(np.negative))
    assert found == pytest.approx(np.exp(-1.0), rel=1e-6)


def test_the_jacobian_of_a_trace_that_gives_other_numbers_is_refused() -> None:
    with pytest.raises(TraceError, match="other numbers"):
        fx.compiled_equations(closed_loop(of_symbols)).jac(0.0, [1.0])
    assert fx.compiled_equations(closed_loop(np.negative)).jac(0.0, [1.0]).tolist() == [[-1.0]]


def test_equations_that_refuse_the_values_at_hand_leave_nothing_to_compare() -> None:
    store = closed_loop(np.negative).create_default_context().store
    numbers = interpreted_numbers(store, [np.array([5.0])])
    assert numbers is not None
    assert numbers.tolist() == [-1.0, 5.0]

    def refused() -> Iterator[Any]:
        raise EvaluationError("refused")
        yield

    assert interpreted_numbers(store, refused()) is None


@needs_llvmlite
def test_an_inclined_beam_with_nodes_at_rest_runs_native_code() -> None:
    builder = fx.PlantBuilder("arm", gravity=(0.0, 0.0, 0.0))
    turn = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    foot = builder.add_frame("foot", builder.world, (turn, (0.1, 0.2, 0.0)))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_sphere(0.01, radius=0.005))
    joint = builder.add_joint(fx.PlanarJoint("tip", foot, tip))
    joint.default_pose = np.eye(3), (0.03, 0.0, 0.0)
    polymer = fx.Material(1.5e9, poissons_ratio=0.4, density=1040.0)
    builder.add_force_element(
        fx.LeafSpring(
            "leaf", foot, tip, length=0.03, width=0.006, thickness=4e-4, material=polymer,
            segments=4, planar=True, damping_time=1e-4,
        )
    )  # fmt: skip
    assert "native code of" in fx.simulate(builder.build(), 1e-6).message


def _over_stress(rounding: float, x: FloatArray) -> FloatArray:
    found: FloatArray = 1.0 / np.abs(x - 1.0 + rounding)
    return found


def test_a_strength_over_a_stress_of_rounding_may_be_infinite_on_either_side() -> None:
    x = np.array([1.0])
    for rounding, expected in ((0.0, 1e17), (1e-13, np.inf)):
        with np.errstate(divide="ignore"):
            safety = partial(_over_stress, rounding)
            assert agrees_at(safety, x, np.array([expected]))
    assert not agrees_at(lambda x: 1e12 * x, x, np.array([np.inf]))
