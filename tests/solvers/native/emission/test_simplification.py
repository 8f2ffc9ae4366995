"""Native code leaves out what constant zeros make superfluous, and gives the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flexure as fx
from flexure.diagrams import scalars
from flexure.diagrams.errors import EvaluationError, NonFiniteError
from flexure.diagrams.scalars.expression import reachable
from flexure.diagrams.scalars.simplification import simplify
from flexure.solvers.native import lane_equations, plan
from flexure.solvers.native import program as programs
from flexure.solvers.native.emission import emission, jacobian_emission
from flexure.solvers.native.emission.emission import depth_first
from flexure.solvers.native.program import Program
from flexure.solvers.native.sharing import loops, repetition, shared_derivatives
from flexure.solvers.tracing.trace import trace_derivatives
from tests.diagrams.test_simplification import NUMBERS, evaluate, expressions
from tests.support.native import Compiled, equation_at, needs_llvmlite

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


class WatchedArm(Arm):
    """An arm that notes where its tip is, from time to time and when it passes below the base."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.last = self.declare_discrete_state("last", [0.0, 0.0, 0.0])
        self.declare_discrete_update(self.note, fx.Periodic(0.25))
        self.declare_discrete_update(self.note, fx.Witness(lambda c: self.calc_tip(c)[0], "rising"))

    def note(self, context: Any) -> Any:
        return {self.last: self.calc_tip(context)}


def logged_arm() -> fx.Diagram:
    builder = fx.DiagramBuilder("logged")
    builder.add_all(WatchedArm("arm"), fx.VectorLog("log", 3, period=0.1))
    builder.connect("arm.tip", "log.u")
    return builder.build()


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


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Return what has been written as native code, by the name of the function."""
    found: dict[str, list[Any]] = {}

    def noting(original: Callable[..., Any]) -> Callable[..., Any]:
        def emit(what: Any, *arguments: Any, **options: Any) -> Any:
            named = what if isinstance(what, dict) else {what: arguments[0]}
            found.update({name: list(outputs) for name, outputs in named.items()})
            return original(what, *arguments, **options)

        return emit

    def note_vectors(vectors: Any, environment: Any) -> Any:
        found["jacobian"] = list(vectors)
        return emission.emit_preparation(vectors, environment)

    monkeypatch.setattr(jacobian_emission, "emit_preparation", note_vectors)
    for module in (programs, lane_equations, jacobian_emission):
        monkeypatch.setattr(module, "emit_with_preparation", noting(module.emit_with_preparation))
    for module in (lane_equations, loops):
        monkeypatch.setattr(module, "emit", noting(module.emit))
    return found


# Programs ----------------------------------------------------------------------------------------


def test_derivatives_take_a_fraction_of_the_operations_and_stay_the_same() -> None:
    arm = Arm("arm")
    program = Program(arm.layout)
    recorded = depth_first(trace_derivatives(arm.layout), {})
    assert program.operations < len(recorded) / 4
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


def test_every_function_of_a_program_is_simplified(written: dict[str, list[Any]]) -> None:
    system = logged_arm()
    assert has_products_with_zero(trace_derivatives(system.layout))
    program = Program(system.layout)
    program.jacobian()
    assert written.keys() == {"rhs", "witness", "signals", "update_0", "update_1", "jacobian"}
    for outputs in written.values():
        assert not has_products_with_zero(outputs)


def test_lanes_are_simplified(written: dict[str, list[Any]]) -> None:
    arm = Arm("arm")
    friction = np.linspace(0.0, 2.0, 9)
    found = fx.sweep(arm, {"friction": friction}, 0.5, signals="tip", rtol=1e-10, atol=1e-12)
    assert written.keys() >= {"rhs", "signals"}
    assert not any(has_products_with_zero(outputs) for outputs in written.values())
    context = arm.create_default_context()
    context.set("friction", friction[5])
    result = fx.simulate(arm, 0.5, context, compiled=False, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found["tip"][5, -1], result["tip"][-1], rtol=1e-8, atol=1e-10)


def test_alike_blocks_share_simplified_code(
    written: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_derivatives, "_SAVING", 0)
    monkeypatch.setattr(repetition, "vector_functions", lambda width: {})
    layout = arms_in_a_row(12).layout
    context = shaken(layout.root.create_default_context(), 4)
    found = []
    for many in (10**9, 0):
        written.clear()
        monkeypatch.setattr(plan, "_MANY", many)
        program = Program(layout)
        assert ("rhs.0.body" in written) == (many == 0)
        assert not any(has_products_with_zero(outputs) for outputs in written.values())
        found.append(call(program.rhs, program.num_states, program, context))
        assert program.operations < len(depth_first(trace_derivatives(layout), {})) / 2
    written_out, shared = found
    np.testing.assert_array_equal(shared, written_out)
    assert_close(shared, context.store.time_derivatives())


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
