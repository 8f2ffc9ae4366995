"""Native code that makes use of zeros among the parameters, and contexts in which they are none."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.solvers.native.programs.programs import program_of, program_with
from tests.support.native.native import needs_llvmlite

pytestmark = needs_llvmlite

TIMES = np.linspace(0.0, 2.0, 9)


class Oscillators(fx.LeafSystem):
    """x′ = (A - leak) x, with the leak a parameter whose zeros nobody makes use of."""

    def __init__(self, order: int = 4) -> None:
        super().__init__("oscillators")
        A = np.diag(np.arange(1.0, order), 1) - np.diag(np.arange(1.0, order), -1)
        self.A = self.declare_numeric_parameter("A", A, sparse=True)
        self.leak = self.declare_numeric_parameter("leak", 0.0)
        self.x = self.declare_continuous_state(z=order, default=np.arange(1.0, order + 1.0))

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.A(context) @ self.x(context) - self.leak(context) * self.x(context)


def interpreted(context: fx.Context) -> Any:
    """Return the states at some times without native code."""
    run = fx.simulate(
        context.system, TIMES[-1], context=context.clone(), method="RK45", compiled=False
    )
    return run.sample("x", TIMES)


def native(context: fx.Context) -> Any:
    """Return them with native code."""
    run = fx.simulate(
        context.system, TIMES[-1], context=context.clone(), method="RK45", compiled="native"
    )
    return run.sample("x", TIMES)


def with_entry(context: fx.Context, row: int, column: int, value: float) -> fx.Context:
    """Return a copy with another entry of A."""
    A = context.get("A").copy()
    A[row, column] = value
    found = context.clone()
    found.set("A", A)
    return found


def test_zeros_of_sparse_parameters_cost_nothing() -> None:
    context = Oscillators().create_default_context()
    program = program_of(context.store)
    # Six products, two sums of two, and four leaks with a product and a difference each.
    assert program.trace.operations == 6 + 2 + 8
    everything = program_with(context.store.layout, frozenset())
    assert everything.trace.operations == 16 + 12 + 8
    np.testing.assert_allclose(native(context), interpreted(context), rtol=1e-12, atol=1e-12)


def test_an_entry_that_is_no_zero_any_more_gets_its_influence() -> None:
    context = Oscillators().create_default_context()
    native(context)
    other = with_entry(context, 0, 3, -2.0)
    assert np.abs(interpreted(other) - interpreted(context)).max() > 0.1
    np.testing.assert_allclose(native(other), interpreted(other), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(native(context), interpreted(context), rtol=1e-12, atol=1e-12)


def test_equations_for_scipy_follow_a_zero_that_changes() -> None:
    context = Oscillators().create_default_context()
    equations = fx.compiled_equations(context.system, context)
    x = context.continuous_state
    assert equations.program is not None
    equations(0.0, x)
    context.set("A", context.get("A") + np.eye(4)[::-1])
    np.testing.assert_allclose(equations(0.0, x), context.get("A") @ x, rtol=1e-12)


def test_programs_of_many_contexts_are_few() -> None:
    context = Oscillators().create_default_context()
    rng = np.random.default_rng(0)
    first = program_of(context.store)
    found = {first}
    for _ in range(200):
        row, column = rng.integers(0, 4, size=2)
        found.add(program_of(with_entry(context, row, column, rng.normal()).store))
    assert program_of(context.store) is first
    # Each program does without a zero more than the one before it, of ten at the most.
    assert 2 <= len(found) <= 11
    assert program_of(with_entry(context, 0, 3, 7.0).store) in found


@pytest.mark.full
def test_programs_go_with_their_system() -> None:
    context = Oscillators().create_default_context()
    program = weakref.ref(program_of(context.store))
    assert program() is not None
    del context
    gc.collect()
    assert program() is None


def test_a_zero_that_appears_later_is_served_by_the_code_there_is() -> None:
    context = Oscillators().create_default_context()
    program = program_of(context.store)
    assert program_of(with_entry(context, 0, 1, 0.0).store) is program


def test_parameters_may_change_between_two_advances() -> None:
    runs = []
    for compiled in ("native", False):
        context = Oscillators().create_default_context()
        simulator = fx.Simulator(context.system, context, method="RK45", compiled=compiled)
        simulator.advance_to(1.0)
        context.set("A", with_entry(context, 3, 0, 1.5).get("A"))
        simulator.advance_to(2.0)
        assert (simulator.statistics.native_steps > 0) is bool(compiled)
        runs.append(context.continuous_state)
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_compiled_equations_follow_their_context(method: str) -> None:
    context = Oscillators().create_default_context()
    equations = fx.compiled_equations(context.system, context)
    solver = equations.method(method)
    before = equations.program
    context.set("A", with_entry(context, 3, 0, 1.5).get("A"))
    x = np.array([1.0, -1.0, 2.0, 0.5])
    np.testing.assert_allclose(equations(0.0, x), context.get("A") @ x, rtol=1e-14)
    assert equations.program is not before
    integrate: Any = solve_ivp
    options = {"rtol": 1e-9, "atol": 1e-9, "t_eval": TIMES}
    found = integrate(equations, (0.0, 2.0), equations.x0, method=solver, **options)
    expected = integrate(equations.__call__, (0.0, 2.0), equations.x0, method="DOP853", **options)
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-6, atol=1e-6)


def test_a_pickled_result_comes_back_with_its_code() -> None:
    context = Oscillators().create_default_context()
    other = with_entry(context, 0, 3, -2.0)
    native(context)
    run = fx.simulate(other.system, 2.0, context=other, method="RK45", compiled="native")
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.sample("x", TIMES), run.sample("x", TIMES))


def test_a_locked_joint_of_native_code_can_be_released() -> None:
    builder = fx.PlantBuilder("doors")
    panel = builder.add_body("panel", fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.4, 0.2)))
    hinge = builder.add_joint(fx.RevoluteJoint("hinge", builder.world, panel, (0.0, 1.0, 0.0)))
    flap = builder.add_body(
        "flap", fx.SpatialInertia.solid_sphere(1.0, radius=0.1), com=(0.2, 0, 0)
    )
    frame = builder.add_frame("edge", panel, (np.eye(3), (0.3, 0.0, 0.0)))
    builder.add_joint(fx.RevoluteJoint("knee", frame, flap, (0.0, 1.0, 0.0)))
    plant = builder.build()
    ends = []
    for compiled in ("native", False):
        context = plant.create_default_context()
        hinge.lock(context)
        simulator = fx.Simulator(plant, context, method="RK45", compiled=compiled)
        simulator.advance_to(0.5)
        assert hinge.angle.get(context) == 0.0
        hinge.unlock(context)
        simulator.advance_to(1.0)
        assert abs(hinge.angle.get(context)) > 0.1
        ends.append(context.continuous_state)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-10, atol=1e-10)


def test_inputs_that_are_zero_are_left_out() -> None:
    graph = scalars.Graph()
    a, b = graph.input("a"), graph.input("b")
    product, total, inner = simplify([a * b, a + b, np.cos(a) * b], zeros={"a"})
    assert product == 0.0
    assert total is b
    assert inner is b
