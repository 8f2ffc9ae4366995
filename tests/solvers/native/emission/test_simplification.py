"""Native code leaves out what constant zeros make superfluous, and gives the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings, strategies as st

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, NonFiniteError
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.solvers.native.emission.emission import depth_first
from flexure.solvers.native.programs.program import Program
from flexure.solvers.tracing.signals import resolve
from flexure.solvers.tracing.trace import trace_derivatives
from tests.diagrams.scalars.test_simplification import NUMBERS, evaluate, expressions
from tests.support.native.native import Compiled, equation_at, needs_llvmlite
from tests.support.native.shared_code import operations, shared, written_out

pytestmark = needs_llvmlite

FloatArray = npt.NDArray[np.float64]


class Arm(fx.LeafSystem):
    """Rods in a row that turn about y in space, under a force at the tip, with friction.

    Rotations are matrices of all three axes, so that most of what is recorded concerns zeros.
    """

    def __init__(self, name: str, rods: int = 3) -> None:
        super().__init__(name)
        self.rods = rods
        self.lengths = self.declare_numeric_parameter("lengths", np.linspace(0.5, 0.8, rods))
        self.friction = self.declare_numeric_parameter("friction", 0.2)
        self.x = self.declare_continuous_state(q=rods, v=rods)
        self.force = self.declare_vector_input("force", 3, default=[0.3, 0.0, -2.0])
        self.tip = self.declare_vector_output("tip", 3, self.calc_tip, prerequisites=[self.x])

    def joints(self, context: Any) -> Any:
        """Return the positions of all joints and of the tip."""
        turned, position = np.eye(3), np.zeros(3)
        found = [position]
        for k, angle in enumerate(self.x.q(context)):
            c, s = np.cos(angle), np.sin(angle)
            turned = turned @ scalars.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
            position = position + turned @ (self.lengths(context)[k] * np.array([0.0, 0.0, -1.0]))
            found.append(position)
        return found

    def calc_tip(self, context: Any) -> Any:
        return self.joints(context)[-1]

    def calc_time_derivatives(self, context: Any) -> Any:
        *joints, tip = self.joints(context)
        rates = self.x.v(context)
        axis = np.array([0.0, 1.0, 0.0])
        force = self.force(context)
        torques = [axis @ np.cross(tip - joint, force) for joint in joints]
        return [*rates, *(scalars.array(torques) - self.friction(context) * rates)]


def arms_in_a_row(count: int) -> fx.Diagram:
    """Arms, each under the force that the tip of the one before stands for."""
    builder = fx.DiagramBuilder("arms")
    builder.add_all(*(Arm(f"arm{k}", 2) for k in range(count)))
    for k in range(1, count):
        builder.connect(f"arm{k - 1}.tip", f"arm{k}.force")
    return builder.build()


def shaken(context: fx.Context, seed: int) -> fx.Context:
    context = context.clone()
    rng = np.random.default_rng(seed)
    context.continuous_state = rng.normal(size=context.continuous_state.size)
    return context


def call(address: int, size: int, program: Program, context: fx.Context) -> FloatArray:
    out = np.full(size, np.nan)
    env = program.fill(context.store)
    equation_at(address)(context.time, np.array(context.store.x), env, out)
    return out


def assert_close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def has_products_with_zero(outputs: Any) -> bool:
    nodes = reachable(e for e in outputs if isinstance(e, scalars.Symbol))
    return any(
        node.op == "multiply" and any(a.op == "constant" and a.value == 0.0 for a in node.args)
        for node in nodes
    )


# Programs ----------------------------------------------------------------------------------------


def test_derivatives_take_a_fraction_of_the_operations_and_stay_the_same() -> None:
    arm = Arm("arm")
    program = Program(arm.layout)
    recorded = depth_first(trace_derivatives(arm.layout), {})
    assert program.trace.operations < len(recorded) / 4
    for seed in range(5):
        context = shaken(arm.create_default_context(), seed)
        assert_close(call(program.rhs, 6, program, context), context.store.time_derivatives())


def test_jacobians_are_those_of_the_equations() -> None:
    arm = Arm("arm")
    program = Program(arm.layout)
    context = shaken(arm.create_default_context(), 1)
    address = program.jacobian()
    assert program.jacobian_entries is not None
    rows, columns = program.jacobian_entries
    found = np.zeros((6, 6))
    found[rows, columns] = call(address, len(rows), program, context)
    assert_close(found, fx.linearize(arm, context).A)


class Veiled(fx.LeafSystem):
    """Two states, the second of which is multiplied by a constant zero wherever it is read."""

    def __init__(self) -> None:
        super().__init__("veiled")
        self.x = self.declare_continuous_state(z=2)
        self.last = self.declare_discrete_state("last", [0.0])
        self.declare_vector_output("y", 1, self.calc_seen, prerequisites=[self.x])
        self.declare_discrete_update(self.note, fx.diagrams.Periodic(0.25))
        self.declare_discrete_update(self.note, fx.diagrams.Witness(lambda c: self.calc_seen(c)[0]))

    def calc_seen(self, context: Any) -> Any:
        return np.array([[3.0, 0.0]]) @ self.x(context)

    def note(self, context: Any) -> Any:
        return {self.last: self.calc_seen(context)}

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.calc_seen(context)[0] ** 2, 1.0]


def test_every_function_of_a_program_is_simplified() -> None:
    """What is multiplied by zero is not read, and may as well be no number."""
    builder = fx.DiagramBuilder("logged")
    builder.add_all(Veiled(), fx.VectorLog("log", 1, period=0.1))
    builder.connect("veiled.y", "log.u")
    system = builder.build()
    assert has_products_with_zero(trace_derivatives(system.layout))
    context = system.create_default_context()
    context.store.set_motion(0.0, np.array([0.5, np.nan]))
    program = Program(system.layout)
    entries = call(program.jacobian(), 1, program, context)
    assert np.all(np.isnan(context.store.time_derivatives()[:1]))
    assert call(program.rhs, 2, program, context).tolist() == [2.25, 1.0]
    assert entries.tolist() == [9.0]
    functions = [
        program.witness,
        program.signal,
        *map(program.update_address, program.trace.updates),
    ]
    assert len(functions) == 4
    for function in functions:
        assert function is not None
        assert call(function, 1, program, context).tolist() == [1.5]


@pytest.mark.full
def test_lanes_are_simplified() -> None:
    arm = Arm("arm")
    assert has_products_with_zero(trace_derivatives(arm.layout))
    equations = Program(arm.layout).lane_equations([resolve(arm, "tip")])
    assert not has_products_with_zero([*equations.derivatives, *equations.signals])
    friction = np.linspace(0.0, 2.0, 9)
    found = fx.sweep(arm, {"friction": friction}, 0.5, signals="tip", rtol=1e-10, atol=1e-12)
    context = arm.create_default_context()
    context.set("friction", friction[5])
    result = fx.simulate(arm, 0.5, context=context, compiled=False, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found["tip"][5, -1], result["tip"][-1], rtol=1e-8, atol=1e-10)


def test_alike_blocks_share_simplified_code() -> None:
    system = arms_in_a_row(12)
    context = shaken(system.create_default_context(), 4)
    found = shared(context)
    np.testing.assert_array_equal(found, written_out(context))
    assert_close(found, context.store.time_derivatives())
    recorded = depth_first(trace_derivatives(system.layout), {})
    for everywhere in (True, False):
        assert operations(system, everywhere=everywhere) < len(recorded) / 2


# Numbers that are not finite ---------------------------------------------------------------------


class Draining(fx.LeafSystem):
    """A tank of which the level h sinks steadily; its outflow √h is counted.

    The outflow goes through a matrix of a constant zero as well.
    """

    def __init__(self) -> None:
        super().__init__("draining")
        self.x = self.declare_continuous_state(z=2, default=[1.0, 0.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        outflow = np.sqrt(self.x(context)[0])
        return np.array([[-2.0, 0.0], [0.0, 1.0]]) @ scalars.array([1.0, outflow])


def test_what_is_not_finite_shows_where_it_has_an_influence() -> None:
    system = Draining()
    context = system.create_default_context()
    context.continuous_state = [-1.0, 0.0]
    program = Program(system.layout)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(context.store.time_derivatives(), [np.nan, np.nan])
    np.testing.assert_array_equal(call(program.rhs, 2, program, context), [-2.0, np.nan])


def test_a_run_ends_where_something_of_influence_is_not_finite() -> None:
    with pytest.raises(NonFiniteError) as caught:
        fx.simulate(Draining(), 1.0, method="RK45", compiled="native")
    assert "draining" in str(caught.value)


FACTORS: dict[str, Callable[[Any], Any]] = {
    "logarithm": np.log,
    "square root": np.sqrt,
    "power": lambda x: x**1.5,
    "quotient": lambda x: 1.0 / np.maximum(x, 0.0),
    "quotient of zero": lambda x: 0.0 / np.maximum(x, 0.0),
    "arc": lambda x: np.arcsin(1.0 - x),
    "exponential": lambda x: np.exp(1e6 * (0.001 - x)),
    "refusal": lambda x: scalars.refuse_where(x < 0.0, x, lambda: EvaluationError("Cannot sink")),
    "within": lambda x: (3.0 + 2.0 * np.sin(x + np.log(x))) / 7.0,
}


class Sinking(fx.LeafSystem):
    """A level that sinks steadily, beside zero times a function of it."""

    def __init__(self, factor: Callable[[Any], Any], how: str = "behind zero") -> None:
        super().__init__("sinking")
        self.x = self.declare_continuous_state(z=2, default=[1.0, 0.0])
        self.depth = self.declare_numeric_parameter("depth", 1.0)
        self.factor = factor
        self.how = how

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        hidden = 0.0 * self.factor(x[0] if self.how == "behind zero" else np.maximum(x[0], 0.1))
        if self.how == "guarded":
            hidden = np.where(x[0] > 0.0, 0.0 * self.factor(x[0]), 0.0)
        return [hidden - 2.0 * self.depth(context), 0.1 * hidden + np.cos(x[1])]


@pytest.mark.full
@pytest.mark.parametrize("factor", FACTORS.values(), ids=FACTORS)
def test_a_factor_that_is_not_finite_shows_behind_a_constant_zero(factor: Any) -> None:
    system, times = Sinking(factor), []
    for compiled in (False, "native"):
        with pytest.raises((NonFiniteError, EvaluationError)) as caught:
            fx.simulate(system, 1.0, method="RK45", compiled=compiled)
        error: Any = caught.value
        times.append(error.result.time[-1])
    assert 0.3 < min(times) <= max(times) < 0.51  # where x is zero, or in a trial step before
    found = fx.sweep(system, {"depth": [0.1, 1.0, 0.2, 2.0]}, 1.0)
    assert found.outcomes.tolist() == ["completed", "failed", "completed", "failed"]


@pytest.mark.parametrize("how", ["guarded", "bounded"])
@pytest.mark.parametrize("factor", [np.log, np.sqrt], ids=["logarithm", "square root"])
def test_what_an_equation_guards_stays_native(factor: Any, how: str) -> None:
    result = fx.simulate(Sinking(factor, how), 1.0, method="RK45", compiled="native")
    assert result.statistics.native_steps == result.statistics.steps > 0
    gudermannian = 2.0 * np.arctan(np.tanh(0.5))
    np.testing.assert_allclose(result.context.continuous_state, [-1.0, gudermannian], rtol=1e-3)


# Random expressions ------------------------------------------------------------------------------


@pytest.mark.full
@settings(max_examples=25)
@given(outputs=expressions(), seed=st.integers(0, 99))
def test_finite_numbers_of_random_expressions_stay_the_same(outputs: list[Any], seed: int) -> None:
    rng, count = np.random.default_rng(seed), 10
    values = {name: rng.choice([*NUMBERS, 0.7, 1.3, -2.2], count) for name in "abc"}
    points = [{name: numbers[k] for name, numbers in values.items()} for k in range(count)]
    nodes = reachable(outputs)
    points = [point for point in points if np.all(np.isfinite(evaluate(nodes, point)))]
    assume(points)
    native = Compiled(simplify(outputs))
    for point in points:
        assert_close(native(point), evaluate(outputs, point))
