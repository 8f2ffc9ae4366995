"""Equations that decide by ``if`` mean on symbols what they mean on numbers, or are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, event, given, strategies as st

from flexure.diagrams import scalars as fs
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.scalars.expressions.branches import MOST_WAYS, explore
from tests.support.tiers import for_each

#: Numbers among which many are equal, opposite, or no numbers.
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, math.inf, -math.inf, math.nan]
#: All kinds of arguments of an equation with three numbers.
ARGUMENTS = [np.array([a, b, c]) for a in NUMBERS for b in NUMBERS for c in (0.0, -3.0, math.nan)]


def same(first: Any, second: Any) -> bool:
    """Compare bit by bit, apart from the sign of NaN."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(
        np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)])
    )


def explored(equation: Callable[[Any], Any], size: int = 3) -> Any:
    """Return what an equation gives on symbols."""
    graph = fs.Graph()
    return explore(graph, lambda: equation(fs.symbols(graph, "x", size)))


def substituted(expressions: Any, x: Any) -> Any:
    """Put numbers in the place of the symbols."""
    return fs.evaluate(expressions, {("x", k): value for k, value in enumerate(x)})


def assert_same_meaning(equation: Callable[[Any], Any], arguments: Any = None) -> None:
    """Compare an equation on symbols with itself on numbers."""
    expressions = explored(equation)
    with np.errstate(all="ignore"):
        for x in ARGUMENTS if arguments is None else arguments:
            assert same(substituted(expressions, x), equation(x)), x


# What is written ---------------------------------------------------------------------------------


def early_returns(x: Any) -> Any:
    if x[0] > 1.0:
        return x[1]
    if x[1] > 1.0:
        return x[2]
    return x[0] * x[1]


def nested(x: Any) -> Any:
    y = x[2]
    if x[0] < x[1]:
        y = y + 1.0
        if y > x[1]:
            y = -y
    elif x[0] == x[1]:
        y = x[0]
    return [y, 2.0 * y]


def counted_loop(x: Any) -> Any:
    y = x[0]
    for _ in range(4):
        if y < 2.0:
            y = y + x[1]
    return y


def bounded_loop(x: Any) -> Any:
    y, steps = x[0], 0
    while y > 1.0 and steps < 5:
        y, steps = y / 2.0, steps + 1
    return [y, steps]


def guarded(x: Any) -> Any:
    return 0.0 if x[1] == 0.0 else x[0] / x[1]


def bubble(x: Any) -> Any:
    a, b, c = x
    if a > b:
        a, b = b, a
    if b > c:
        b, c = c, b
    if a > b:
        a, b = b, a
    return [a, b, c]


EQUATIONS: dict[str, Callable[[Any], Any]] = {
    "if": lambda x: x[1] if x[0] > 1.0 else x[2],
    "if of a vector of size 1": lambda x: x[1] if x[:1] > 1.0 else x[2],
    "max of vectors of size 1": lambda x: max(x[:1], x[1:2], np.zeros(1)),
    "early returns": early_returns,
    "nested": nested,
    "if of a number": lambda x: 1.0 if x[0] else 2.0,
    "not": lambda x: 1.0 if not x[0] < x[1] else 2.0,
    "and": lambda x: 1.0 if x[0] > 0.0 and x[1] > 0.0 else 2.0,
    "or": lambda x: 1.0 if x[0] > 0.0 or x[1] > 0.0 else 2.0,
    "and of numbers": lambda x: x[0] and x[1],
    "or of numbers": lambda x: x[0] or x[1],
    "chained comparison": lambda x: x[2] if -1.0 <= x[0] < x[1] != 2.0 else x[0],
    "in": lambda x: 1.0 if 0.5 in x.tolist() else 2.0,
    "min": lambda x: min(x[0], x[1], 0.5),
    "max of an array": max,
    "sorted": lambda x: sorted(x.tolist()),
    "all": lambda x: 1.0 if all(entry > 0.0 for entry in x) else 2.0,
    "counted loop": counted_loop,
    "bounded loop": bounded_loop,
    "guarded quotient": guarded,
    "exchange": bubble,
    "truth values": lambda x: (x[0] > 0.0) if x[1] > 0.0 else (x[2] < 0.0),
    "truth value or number": lambda x: (x[0] > 0.0) if x[1] > 0.0 else x[2],
}


@for_each("name", EQUATIONS)
def test_a_decision_means_on_symbols_what_it_means_on_numbers(name: str) -> None:
    assert_same_meaning(EQUATIONS[name])


def test_both_branches_are_in_the_expression() -> None:
    assert fs.sources(explored(early_returns)) == {("x", 0), ("x", 1), ("x", 2)}


def test_branches_that_agree_leave_no_trace_of_the_decision() -> None:
    assert explored(lambda x: x[1] + 1.0 if x[0] > 0.0 else 1.0 + x[1]).op == "add"


# Random programs ---------------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "min": min,
    "max": max,
    "or": lambda a, b: a or b,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}

LEAVES = st.one_of(
    st.tuples(st.just("input"), st.integers(0, 3)),
    st.tuples(st.just("constant"), st.sampled_from([0.0, 1.0, -2.0, 0.5])),
)
VALUES = st.recursive(
    LEAVES, lambda below: st.tuples(st.sampled_from(list(OPERATIONS)), below, below), max_leaves=4
)
CONDITIONS = st.recursive(
    st.tuples(st.sampled_from(list(COMPARISONS)), VALUES, VALUES),
    lambda below: st.one_of(
        st.tuples(st.just("not"), below),
        st.tuples(st.just("and"), below, below),
        st.tuples(st.just("or"), below, below),
    ),
    max_leaves=3,
)
PROGRAMS = st.recursive(
    st.tuples(st.just("return"), VALUES),
    lambda below: st.one_of(
        st.tuples(st.just("if"), CONDITIONS, below, below),
        st.tuples(st.just("let"), VALUES, below),
    ),
    max_leaves=6,
)


def number(term: Any, x: list[Any]) -> Any:
    kind, *parts = term
    if kind == "input":
        return x[parts[0]]
    if kind == "constant":
        return np.float64(parts[0])
    return OPERATIONS[kind](number(parts[0], x), number(parts[1], x))


def holds(condition: Any, x: list[Any]) -> Any:
    kind, *parts = condition
    if kind == "not":
        return not holds(parts[0], x)
    if kind == "and":
        return holds(parts[0], x) and holds(parts[1], x)
    if kind == "or":
        return holds(parts[0], x) or holds(parts[1], x)
    return COMPARISONS[kind](number(parts[0], x), number(parts[1], x))


def run(program: Any, x: list[Any]) -> Any:
    """Run a program on four numbers, the last of which it may replace."""
    kind, *parts = program
    if kind == "return":
        return number(parts[0], x)
    if kind == "let":
        return run(parts[1], [*x[:3], number(parts[0], x)])
    return run(parts[1], x) if holds(parts[0], x) else run(parts[2], x)


@pytest.mark.full
@given(PROGRAMS, st.lists(st.tuples(*[st.sampled_from(NUMBERS)] * 4), min_size=1, max_size=20))
def test_random_programs_mean_on_symbols_what_they_mean_on_numbers(
    program: Any, arguments: list[tuple[float, ...]]
) -> None:
    with np.errstate(all="ignore"):
        try:
            expression = explored(lambda x: run(program, list(x)), 4)
        except TraceError:
            event("refused")
            assume(False)
        event("with a symbol" if fs.is_symbolic(expression) else "constant")
        for x in arguments:
            expected = run(program, list(np.array(x)))
            assert same(substituted(expression, x), expected)


# Ways --------------------------------------------------------------------------------------------


class Count:
    """Counts the runs of an equation."""

    def __init__(self, equation: Callable[[Any], Any]) -> None:
        self.equation = equation
        self.runs = 0

    def __call__(self, x: Any) -> Any:
        self.runs += 1
        return self.equation(x)


def decisions(count: int) -> Callable[[Any], Any]:
    """Ask one question after the other, until one is answered by no."""
    return lambda x: next((k for k in range(count) if not x[0] > k), count)


def test_every_way_is_gone_once() -> None:
    counted = Count(lambda x: [entry if entry > 0.0 else -entry for entry in x])
    explored(counted)
    assert counted.runs == 8


def test_a_condition_is_asked_once_on_a_way() -> None:
    def equation(x: Any) -> Any:
        first, again = x[0] > x[1], x[1] < x[0]
        y = 1.0 if first else 2.0
        y += 10.0 if again else 20.0
        y += 100.0 if not first else 200.0
        y += 1000.0 if ~again else 2000.0
        return y

    counted = Count(equation)
    expression = explored(counted)
    assert counted.runs == 2
    assert {node.value for node in expression.graph.nodes if node.op == "constant"} >= {
        2211.0,
        1122.0,
    }


def test_unequal_is_not_equal() -> None:
    counted = Count(lambda x: 1.0 if x[0] == x[1] else 2.0 if x[0] != x[1] else 3.0)
    assert_same_meaning(counted.equation)
    explored(counted)
    assert counted.runs == 2


def test_as_many_ways_as_allowed_are_followed() -> None:
    counted = Count(decisions(MOST_WAYS - 1))
    explored(counted)
    assert counted.runs == MOST_WAYS
    assert_same_meaning(counted.equation, [[k - 0.5, 0.0, 0.0] for k in range(20)])


def test_more_ways_are_refused_with_their_number_and_the_line() -> None:
    counted = Count(decisions(MOST_WAYS))
    with pytest.raises(TraceError) as refused:
        explored(counted)
    text = str(refused.value)
    assert "Cannot use a symbol as a decision" in text
    assert "test_branches.py" in text
    assert "if not x[0] > k" in text
    assert f"expected at most {MOST_WAYS} ways" in text
    assert "np.where" in text
    assert counted.runs == 1


@pytest.mark.parametrize("step", [lambda y: y - 1.0, lambda y: y / 2.0, np.sin])
def test_a_loop_that_need_not_end_is_refused_soon(step: Callable[[Any], Any]) -> None:
    rounds = 0

    def equation(x: Any) -> Any:
        nonlocal rounds
        y = x[0]
        while y > 1.0:
            rounds += 1
            y = step(y)
        return y

    with pytest.raises(TraceError, match="ways"):
        explored(equation)
    assert rounds == MOST_WAYS - 1


def test_catching_the_refusal_does_not_hide_it() -> None:
    def careless(x: Any) -> Any:
        try:
            return decisions(MOST_WAYS)(x)
        except Exception:
            return 0.0

    with pytest.raises(TraceError, match="ways"):
        explored(careless)


def test_outside_of_an_exploration_nothing_is_decided() -> None:
    graph = fs.Graph()
    x = graph.input("x")
    explore(graph, lambda: x if x > 0.0 else -x)
    with pytest.raises(TraceError, match="decision"):
        bool(x > 0.0)
    with pytest.raises(RuntimeError):
        explore(graph, lambda: raise_it(RuntimeError()) if x > 0.0 else 1.0)
    with pytest.raises(TraceError, match="decision"):
        bool(x > 0.0)


def test_symbols_of_another_trace_are_not_decided() -> None:
    stranger = fs.Graph().input("x")
    with pytest.raises(TraceError, match="decision"):
        explored(lambda x: 1.0 if stranger > 0.0 else 2.0)


def test_a_calculation_within_another_one_decides_for_itself() -> None:
    graph = fs.Graph()
    x = fs.symbols(graph, "x", 2)
    found = []

    def inner() -> Any:
        return 1.0 if x[0] > 0.0 else 2.0

    def outer() -> Any:
        if x[0] > 0.0:
            found.append(explore(graph, inner))
            return found[-1] + (10.0 if x[0] > 0.0 else 20.0)
        return 30.0

    result = explore(graph, outer)
    assert found[0].op == "where"
    assert [substituted(result, [value, 0.0]) for value in (1.0, -1.0)] == [11.0, 30.0]


# Exceptions --------------------------------------------------------------------------------------


def raise_it(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("first", [True, False])
def test_an_exception_on_any_way_passes_unchanged(first: bool) -> None:
    error = ValueError("too large")
    with pytest.raises(ValueError, match="too large") as caught:
        explored(lambda x: raise_it(error) if (x[0] > 0.0) == first else x[1])
    assert caught.value is error


def test_a_branch_that_ends_the_program_is_refused() -> None:
    for error in (SystemExit(1), KeyboardInterrupt()):
        with pytest.raises(TraceError, match=type(error).__name__):
            explored(lambda x, error=error: raise_it(error) if x[0] > 0.0 else x[1])  # type: ignore[misc]


def test_an_interruption_from_the_keyboard_passes() -> None:
    presses = iter([True])

    def equation(x: Any) -> Any:
        if x[0] > 0.0 and next(presses, False):
            raise KeyboardInterrupt
        return x[1]

    with pytest.raises(KeyboardInterrupt):
        explored(equation)
    with pytest.raises(KeyboardInterrupt):
        explored(lambda x: raise_it(KeyboardInterrupt()))


# Results -----------------------------------------------------------------------------------------


class Pair(NamedTuple):
    force: Any
    torque: Any


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b: [a, b],
        lambda a, b: (a, [b, 1.0]),
        lambda a, b: {"force": a, "torque": {"x": b}},
        Pair,
        lambda a, b: fs.array([[a, b], [b, a]]),
        lambda a, b: ["name", None, a, b],
    ],
)
def test_results_of_one_form_are_merged_number_by_number(form: Callable[[Any, Any], Any]) -> None:
    merged = explored(lambda x: form(x[0], 2.0) if x[2] > 0.0 else form(3.0, x[1]))
    assert type(merged) in {type(form(1.0, 2.0)), fs.SymbolArray}

    def numbers(part: Any, x: Any) -> Any:
        if isinstance(part, dict):
            return {key: numbers(entry, x) for key, entry in part.items()}
        if isinstance(part, (list, tuple)):
            return [numbers(entry, x) for entry in part]
        return np.asarray(substituted(part, x)).tolist() if fs.is_symbolic(part) else part

    def plain(part: Any) -> Any:
        return numbers(part.tolist() if isinstance(part, np.ndarray) else part, [])

    assert numbers(merged, [4.0, 5.0, 1.0]) == plain(form(4.0, 2.0))
    assert numbers(merged, [4.0, 5.0, -1.0]) == plain(form(3.0, 5.0))


@for_each(
    ("a", "b"),
    [
        (1.0, [1.0]),
        ([1.0], [1.0, 2.0]),
        ([1.0], (1.0,)),
        (np.zeros(2), np.zeros(3)),
        ({"a": 1.0}, {"b": 1.0}),
        ("one", "two"),
        (1.0, None),
        (object(), object()),
    ],
)
def test_results_of_different_forms_are_refused(a: Any, b: Any) -> None:
    with pytest.raises(TraceError, match="Cannot merge"):
        explored(lambda x: a if x[0] > 0.0 else b)


def test_merged_arrays_are_read_only() -> None:
    merged = explored(lambda x: x[:2] if x[0] > 0.0 else x[1:])
    with pytest.raises(ValueError, match="read-only"):
        merged[0] = 1.0
