"""Straight-line Python gives the numbers of the interpreted equations, or gives way to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.straight_line import StraightLine
from flexure.solvers.tracing.trace import trace_derivatives


class Cell(fx.LeafSystem):
    """ẋ = f(x, u, k) for a given function."""

    def __init__(self, name: str, function: Callable[..., Any], size: int = 2) -> None:
        super().__init__(name)
        self.function = function
        self.k = self.declare_numeric_parameter("k", 1.5)
        self.u = self.declare_vector_input("u", 1)
        self.x = self.declare_continuous_state(z=size, default=np.linspace(0.3, 0.7, size))
        self.y = self.declare_vector_output("y", size, self.x)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.function(self.x(context), self.u(context), self.k(context), context.time)


def compiled_and_interpreted(system: fx.System, context: fx.Context, x: Any) -> tuple[Any, Any]:
    code = StraightLine(trace_derivatives(system.layout))
    found = code.bind(context.store)(context.time, np.asarray(x, dtype=float))
    context.store.set_motion(context.time, np.asarray(x, dtype=float))
    return found, context.store.time_derivatives()


EQUATIONS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, u, k, t: -k * x / (1.0 + x * x) + u,
    "transcendental": lambda x, u, k, t: np.sin(k * x) * np.exp(-x) + np.tanh(u) + np.arctan2(x, k),
    "time": lambda x, u, k, t: np.cos(t) * x,
    "choice": lambda x, u, k, t: np.where(x > u, np.maximum(x, k), np.minimum(-x, u)),
    "tests": lambda x, u, k, t: np.where(np.isfinite(x) & ~(x < 0.5), x, np.sign(x) * abs(u)),
    "rounding": lambda x, u, k, t: np.floor(3.0 * x) + np.hypot(x, u) + np.clip(x, 0.4, 0.6),
    "constant": lambda x, u, k, t: [2.0, -1.0],
    "constants of parameters": lambda x, u, k, t: np.exp(k) * np.ones(2) * np.sqrt(k + u),
    "long chain": lambda x, u, k, t: reduce(lambda y, _: k - 0.5 * (y * u), range(500), x),
    "powers": lambda x, u, k, t: x**2 + x**3.0 - np.sqrt(x) + 1.0 / x,
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_numbers_are_equal_bit_by_bit(name: str) -> None:
    block = Cell("cell", EQUATIONS[name])
    context = block.create_default_context()
    rng = np.random.default_rng(7)
    for _ in range(20):
        context.time = rng.normal()
        block.k.set(context, rng.uniform(0.5, 2.0))
        block.u.fix(context, rng.uniform(0.0, 1.0))
        found, expected = compiled_and_interpreted(block, context, rng.uniform(0.1, 0.9, 2))
        assert found.tolist() == expected.tolist()


def early_returns(x: Any, u: Any, k: Any, t: Any) -> Any:
    if x[0] > 0.5 and u[0] > x[1]:
        return [-k * (x[0] - 0.5), 0.0]
    if t < 0.0:
        return -x
    return [min(x[0], u[0]), max(*x, 0.5)]


def inelastic_wall(x: Any, u: Any, k: Any, t: Any) -> Any:
    force = -100.0 * x[0] - k * x[1] if x[0] < 0.0 else 0.0
    return [x[1], force - 2.0 if t < 1.0 else force + u[0]]


BRANCHES: dict[str, Callable[..., Any]] = {
    "if": lambda x, u, k, t: x if x[0] > x[1] else u[0] * x,
    "early returns": early_returns,
    "operations of one branch": lambda x, u, k, t: k / x if x[0] * x[1] > 0.2 else np.sqrt(x) - k,
    "guarded quotients": lambda x, u, k, t: [k / (e - 0.5) if e != 0.5 else k for e in x],
    "wall": inelastic_wall,
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_give_equal_numbers_bit_by_bit(name: str) -> None:
    block = Cell("cell", BRANCHES[name])
    context = block.create_default_context()
    rng = np.random.default_rng(7)
    for x in [*rng.uniform(0.0, 1.0, (40, 2)), [0.5, 0.5], [0.5, math.nan], [math.inf, 0.5]]:
        context.time = rng.normal()
        block.u.fix(context, rng.uniform(0.0, 1.0))
        found, expected = compiled_and_interpreted(block, context, x)
        np.testing.assert_array_equal(found, expected)


def test_a_simulation_over_branches_gives_the_same_numbers() -> None:
    block = Cell("cell", inelastic_wall)
    context = block.create_default_context()
    block.u.fix(context, -1.0)
    first, second = (
        fx.simulate(block, 4.0, context=context.clone(), compiled=c) for c in ("python", False)
    )
    assert "equations: straight-line Python of" in first.message
    assert first.time.tolist() == second.time.tolist()
    assert first["y"].tolist() == second["y"].tolist()


def bound(function: Callable[..., Any], k: float = 1.5, u: float = 0.0) -> tuple[StraightLine, Any]:
    """Compile a cell and bind its constants."""
    block = Cell("cell", function)
    context = block.create_default_context()
    block.k.set(context, k)
    block.u.fix(context, u)
    code = StraightLine(trace_derivatives(block.layout))
    return code, code.bind(context.store)


def test_what_a_branch_guards_stays_guarded() -> None:
    """Python would raise for the quotient and the root, so they must not be computed."""

    def shared(x: Any, u: Any, k: Any, t: Any) -> Any:
        if x[0] > 0.0:
            inverse = 1.0 / x[0]
            return [inverse * x[1], np.sqrt(inverse) if x[1] > 0.0 else np.sqrt(-x[1])]
        return np.where(x < 0.0, np.sqrt(np.where(x < 0.0, -x, 0.0)), 0.0)

    _, function = bound(shared)
    assert function(0.0, np.array([4.0, 1.0])).tolist() == [0.25, 0.5]
    assert function(0.0, np.array([4.0, -9.0])).tolist() == [-2.25, 3.0]
    assert function(0.0, np.array([0.0, 1.0])).tolist() == [0.0, 0.0]
    assert function(0.0, np.array([-4.0, -1.0])).tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    "ratio",
    [
        lambda x, u, k, t: x * (u[0] / k if k != 0.0 else 7.0),
        lambda x, u, k, t: x * np.where(k != 0.0, u[0] / k, 7.0),
        lambda x, u, k, t: x * np.where(x > 0.0, np.where(k != 0.0, u[0] / k, 7.0), 1.0),
        lambda x, u, k, t: x * (np.sqrt(u[0] / k) ** 2 if k > 0.0 else 7.0),
    ],
)
def test_what_constants_guard_stays_guarded(ratio: Callable[..., Any]) -> None:
    _, function = bound(ratio, k=0.0)
    assert function(0.0, np.array([1.0, 2.0])).tolist() == [7.0, 14.0]
    _, function = bound(ratio, k=2.0, u=3.0)
    assert function(0.0, np.array([1.0, 2.0])) == pytest.approx([1.5, 3.0], rel=1e-15)


def test_constants_are_computed_ahead() -> None:
    code, _ = bound(lambda x, u, k, t: np.where(x[0] > 0.0, x * np.exp(k), x / np.sqrt(k)))
    ahead, moving = code.source.split("def derivatives")
    assert ahead.count("np_exp") == 1
    assert moving.count("sqrt") == 1  # for a negative k, it is not even tried before it is needed


def test_what_both_sides_need_is_computed_once() -> None:
    def shared(x: Any, u: Any, k: Any, t: Any) -> Any:
        wave = np.sin(x[0])
        return [wave + 1.0 if x[1] > 0.0 else wave - 1.0, 2.0 * wave if x[1] > 0.0 else k]

    code, function = bound(shared)
    assert code.source.count("np_sin") == 1
    assert code.source.count("if ") == 1
    wave = math.sin(0.3)
    assert function(0.0, np.array([0.3, 1.0])).tolist() == [wave + 1.0, 2.0 * wave]
    assert function(0.0, np.array([0.3, -1.0])).tolist() == [wave - 1.0, 1.5]


def test_a_condition_within_its_own_branch_is_no_trouble() -> None:
    def layered(x: Any, u: Any, k: Any, t: Any) -> Any:
        inner = np.where(x[0] > 0.0, 1.0 / x[0], x[1])
        return [np.where(x[0] > 0.0, inner + k / x[0], 2.0 * inner), inner]

    _, function = bound(layered)
    assert function(0.0, np.array([2.0, 5.0])).tolist() == [1.25, 0.5]
    assert function(0.0, np.array([0.0, 5.0])).tolist() == [10.0, 5.0]


def test_a_long_chain_of_choices_can_be_compiled() -> None:
    grid = np.linspace(0.0, 1.0, 400)
    _, function = bound(lambda x, u, k, t: np.interp(x, grid, np.cos(grid)))
    for x in ([0.1, 0.9], [-1.0, 2.0], [0.0, 1.0]):
        np.testing.assert_allclose(function(0.0, np.array(x)), np.interp(x, grid, np.cos(grid)))


def test_not_a_number_and_infinity_pass() -> None:
    block = Cell("cell", lambda x, u, k, t: np.maximum(x, u) + k * np.minimum(x, 1.0))
    context = block.create_default_context()
    block.u.fix(context, 0.5)
    found, expected = compiled_and_interpreted(block, context, [np.nan, np.inf])
    np.testing.assert_array_equal(found, expected)


def loop() -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Sine("reference", 1.0, 2.0),
        fx.PIDController("pid", kp=8.0, ki=3.0, kd=1.0, lower=-2.0, upper=2.0),
        fx.StateSpace("plant", [[0.0, 1.0], [-4.0, -0.3]], [[0.0], [1.0]], [[1.0, 0.0]]),
    )
    builder.connect_chain("reference", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    return builder.build()


def test_a_simulation_gives_the_same_result() -> None:
    diagram = loop()
    results = [fx.simulate(diagram, 5.0, method="RK45", compiled=c) for c in ("python", False)]
    assert "straight-line Python" in results[0].message
    assert "equations: interpreted" in results[1].message
    np.testing.assert_allclose(results[0].time, results[1].time, rtol=1e-12)
    np.testing.assert_allclose(results[0]["plant.y"], results[1]["plant.y"], atol=1e-12)


def test_every_change_of_a_value_reaches_the_compiled_equations() -> None:
    block = Cell("cell", lambda x, u, k, t: -k * x + u)
    context = block.create_default_context()
    block.u.fix(context, 0.0)
    derivatives = Derivatives(context.store, compiled=True)
    x = np.array([1.0, 2.0])
    for _ in range(300):
        derivatives(0.0, x)
    assert "straight-line" in derivatives.how
    block.k.set(context, 3.0)
    assert derivatives(0.0, x).tolist() == [-3.0, -6.0]
    block.u.fix(context, 10.0)
    assert derivatives(0.0, x).tolist() == [7.0, 4.0]


def how_after_many_evaluations(function: Callable[..., Any]) -> tuple[str, np.ndarray]:
    block = Cell("cell", function)
    context = block.create_default_context()
    block.u.fix(context, 0.0)
    derivatives = Derivatives(context.store, compiled=True)
    with np.errstate(all="ignore"):
        for _ in range(300):
            value = derivatives(0.0, np.array([1.0, 2.0]))
    return derivatives.how, value


def test_a_branch_on_a_value_is_compiled_on_both_sides() -> None:
    how, value = how_after_many_evaluations(lambda x, u, k, t: x if x[0] > 0.0 else -x)
    assert how == "straight-line Python of 5 operations"
    assert value.tolist() == [1.0, 2.0]


def test_a_loop_without_an_end_keeps_the_equations_interpreted() -> None:
    def halved(x: Any, u: Any, k: Any, t: Any) -> Any:
        while x[0] > 0.75:
            x = x / 2.0
        return x

    how, value = how_after_many_evaluations(halved)
    assert how.startswith("interpreted, because cannot use a symbol as a decision")
    assert "test_straight_line.py" in how
    assert "'while x[0] > 0.75:'" in how
    assert how.endswith("while computing the time derivatives of 'cell' on symbols")
    assert value.tolist() == [0.5, 1.0]


def test_a_foreign_function_keeps_the_equations_interpreted() -> None:
    how, value = how_after_many_evaluations(lambda x, u, k, t: [math.sin(x[0]), math.cos(x[1])])
    assert how.startswith("interpreted, because")
    assert value.tolist() == [math.sin(1.0), math.cos(2.0)]


def test_equations_with_a_hidden_state_are_not_frozen() -> None:
    calls = iter(range(10**6))
    how, _ = how_after_many_evaluations(lambda x, u, k, t: x + next(calls))
    assert "other numbers" in how


def test_a_division_by_zero_gives_what_numpy_gives() -> None:
    block = Cell("cell", lambda x, u, k, t: k / x)
    context = block.create_default_context()
    block.u.fix(context, 0.0)
    derivatives = Derivatives(context.store, compiled=True)
    for _ in range(300):
        derivatives(0.0, np.array([1.0, 2.0]))
    with np.errstate(all="ignore"):
        assert derivatives(0.0, np.array([0.0, 2.0])).tolist() == [np.inf, 0.75]
        for _ in range(2000):
            derivatives(0.0, np.array([0.0, 2.0]))
    assert "divide by zero" in derivatives.how


def test_the_monitor_can_change_a_parameter_in_mid_run() -> None:
    diagram = loop()

    def watch(context: fx.Context) -> None:
        if context.time > 2.0 and context.get("reference.amplitude") == 1.0:
            context.set("reference.amplitude", 0.0)

    with pytest.warns(UserWarning, match="Signals of .* that read 'reference.amplitude' are"):
        quiet = fx.simulate(diagram, 20.0, method="RK45", monitor=watch)
    assert "straight-line" in quiet.message
    assert abs(quiet["plant.y"][-1]) < 0.05
