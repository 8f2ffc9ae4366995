"""What constant zeros make superfluous is left out, and finite numbers stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from flexure.diagrams import scalars
from flexure.diagrams.scalars import Graph, Symbol
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.scalars.expressions.vocabulary import BINARY, LOGICAL, OPERATIONS, UNARY
from tests.support.tiers import by_tier, for_each

GRAPH = Graph()
A, B, C, D = (GRAPH.input(name) for name in "abcd")
ZERO = 0.0 * D  # a zero that is known only when numbers are taken for finite


def simple(expression: Any) -> Any:
    return simplify([expression])[0]


def operations(expressions: Any) -> int:
    """Count the operations behind expressions."""
    return sum(bool(node.args) for node in reachable(e for e in expressions if is_symbol(e)))


def is_symbol(expression: Any) -> bool:
    return isinstance(expression, Symbol)


# Rules -------------------------------------------------------------------------------------------

SAME = {
    "a product with a sum": (A + ZERO, A),
    "a sum that begins with zero": (0.0 + A, A),
    "a sum with a written zero": (A + 0.0, A),
    "a sum with minus zero": (A + -0.0, A),
    "a difference": (A - ZERO, A),
    "a difference from zero": (ZERO - A, -A),
    "a product with one": (A * (1.0 + ZERO), A),
    "a product with minus one": (A * -1.0, -A),
    "a product with minus one in front": (-1.0 * A, -A),
    "a quotient by one": (A / (1.0 + ZERO), A),
    "a quotient by minus one": (A / (ZERO - 1.0), -A),
    "a choice between equals": (np.where(A > B, C, C + ZERO), C),
    "a choice that is known": (np.where(ZERO < 1.0, A, B), A),
    "a choice whose other case is known": (np.where(~(ZERO < 1.0), A, B), B),
    "a condition of which one part is known": (
        np.where((A > B) & (ZERO < 1.0), A, B),
        np.where(A > B, A, B),
    ),
    "a double negation": (-(ZERO - A), A),
    "a power that is known": (A ** (2.0 + ZERO), A * A),
    "a negative summand": (A + -B, A - B),
    "a negative summand in front": (-A + B, B - A),
    "a negative subtrahend": (A - -B, A + B),
    "two negative summands": (-A + -B, -(A + B)),
    "a sum of opposites": (-A - B, -(A + B)),
    "a product with a negation": (A + (-B) * C, A - B * C),
    "a quotient of a negation": (A + (-B) / C, A - B / C),
    "a product of negations": ((-A) * (-B), A * B),
    "a long product": (A - (-B) * C * D, A + B * C * D),
}
KNOWN = {
    "a product with zero": (A * 0.0, 0.0),
    "a difference of equals": (A - A, 0.0),
    "a choice between zeros": (np.where(A > B, ZERO, -ZERO), 0.0),
    "a guarded zero": (np.where(A > B, np.nan, ZERO), 0.0),
    "a product with minus zero": (-0.0 * A, 0.0),
    "zero divided": (0.0 / A, 0.0),
    "the negation of zero": (-ZERO, 0.0),
    "zeros with zeros": (ZERO * A + B * ZERO - ZERO, 0.0),
    "functions of zeros": (np.cos(ZERO) + np.sqrt(4.0 + ZERO) * 3.0, 7.0),
    "zero compared": (ZERO < 1.0, True),
    "a choice between known equals": (np.where(A > B, 2.0, 2.0 + ZERO), 2.0),
    "a division of zero by zero": (ZERO / ZERO, np.nan),
}
KEPT = {
    "a quotient of equals": A / A,
    "a division by zero": A / 0.0,
    "a product with another number": A * -2.0,
    "a sum with another number": A + 2.0,
    "an input": A,
}


@for_each(("expression", "expected"), SAME.values())
def test_superfluous_operations_are_left_out(expression: Any, expected: Any) -> None:
    assert simple(expression) is expected


@pytest.mark.parametrize(("expression", "expected"), KNOWN.values(), ids=KNOWN)
def test_what_is_known_becomes_a_number(expression: Any, expected: float) -> None:
    found = simple(expression)
    assert not is_symbol(found)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("expression", KEPT.values(), ids=KEPT)
def test_everything_else_stays(expression: Any) -> None:
    assert simple(expression) is expression


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([0.0 * np.log(A) + B], [0.0 * np.log(A) + B]),
        ([B, 0.0 * (np.sin(A / B) - C)], [B, 0.0 * (A / B)]),
        ([0.0 / A], [0.0 / A]),
        ([0.0 * (np.sin(A * B) + C)], [0.0]),  # finite
        ([0.0 * (A / 2.0)], [0.0]),
        ([0.0 * np.log(A), 2.0 * np.log(A)], [0.0, 2.0 * np.log(A)]),  # noticed elsewhere
        ([0.0 * (B / A) + 0.0 / A, C / A], [0.0, C / A]),
        ([(0.0 * np.sqrt(A) + B) * 0.0], [0.0 * np.sqrt(A)]),
        ([0.0 * A + B, (0.0 / A + 1.0) * C], [B, C + 0.0 / A]),
        ([np.where(A > B, np.nan, 0.0)], [0.0 * np.where(A > B, np.nan, 0.0)]),
        (
            [np.where(A > B, np.nan, 0.0), np.where(A > B, np.nan, C)],
            [0.0, np.where(A > B, np.nan, C)],
        ),
    ],
)
def test_checked_results_that_are_not_finite_stay_so(outputs: Any, expected: Any) -> None:
    found = simplify(outputs, checked=True)
    for each in (found, simplify(found, checked=True)):
        assert [repr(a) for a in each] == [repr(b) for b in expected]


def test_numbers_among_expressions_stay_in_their_places() -> None:
    assert simplify([2.5, True, A, GRAPH.constant(-1.5)])[0:2] == [2.5, True]
    assert simplify([2.5, A])[1] is A
    assert simplify([GRAPH.constant(-1.5)]) == [-1.5]
    assert simplify([]) == []


def test_what_is_recorded_is_not_changed() -> None:
    graph = Graph()
    x = graph.input("x")
    y = x * 0.0 + x
    before = repr(graph.nodes)
    simplify([y])
    assert repr(graph.nodes).startswith(before[:-1])


# Signs of zeros ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.arctan2, np.copysign])
@pytest.mark.parametrize("x", [0.0, -0.0])
def test_the_sign_of_a_zero_stays_where_it_decides(function: Any, x: float) -> None:
    values = {"a": x, "b": -1.0, "c": -2.0, "d": 1.0}
    zeros: list[Any] = [A, A + 0.0, 0.0 - A, -A, C * 0.0, D * 0.0, (A + 0.0) * C, A * C + ZERO]
    zeros += [C * 0.0 + -0.0, -0.0 - D * 0.0, GRAPH.record("subtract", C * 0.0, D * 0.0)]
    zeros += [GRAPH.record("subtract", C * 0.0, GRAPH.constant(0.0))]
    for y in zeros:
        for expression in (function(y, B), function(B, y), function(2.0, np.where(D > C, y, D))):
            assert evaluate(simple(expression), values) == evaluate(expression, values)


SETTLING: list[Any] = [
    np.abs,
    np.cos,
    lambda y: y + 0.0,
    lambda y: 1.0 - y,
    lambda y: y * y,
    lambda y: np.hypot(y, A),
    lambda y: np.where(y > A, B, A),
]
KEEPING: list[Any] = [
    np.sqrt,
    lambda y: y,
    lambda y: -y,
    lambda y: y + A,
    lambda y: y * A,
    lambda y: np.where(B > A, y, A),
]


@pytest.mark.parametrize("settle", SETTLING)
def test_some_operations_settle_the_sign_of_a_zero(settle: Any) -> None:
    deep = B * C + ZERO
    assert simple(np.arctan2(settle(deep), 1.0)) is np.arctan2(settle(B * C), 1.0)


@pytest.mark.parametrize("keep", KEEPING)
def test_other_operations_keep_the_sign_of_a_zero(keep: Any) -> None:
    angle = np.arctan2(keep(B * C + ZERO), 1.0)
    assert simple(angle) is angle


# Matrices ----------------------------------------------------------------------------------------


def about_y(angle: Any) -> Any:
    c, s = np.cos(angle), np.sin(angle)
    return scalars.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def test_turns_about_one_axis_take_as_much_as_in_the_plane() -> None:
    product = (about_y(A) @ np.eye(3) @ about_y(B)).ravel()
    found = simplify(product)
    assert found[1] == found[3] == found[5] == found[7] == 0.0
    assert found[4] == 1.0
    assert found[0] is found[8]
    # Four functions, four products, a sum, a difference, and a negation.
    assert operations(found) == 4 + 4 + 3
    assert operations(product) > 50
    values = {"a": 0.3, "b": -1.1}
    np.testing.assert_array_equal(evaluate(found, values), evaluate(product, values))


def test_derivatives_get_simpler_too() -> None:
    position = about_y(A) @ about_y(B) @ np.array([0.0, 0.0, 1.0])
    entries = scalars.jacobian(position, ["a", "b"]).entries
    few = simplify(scalars.jacobian(simplify(position), ["a", "b"]).entries)
    assert operations(few) < operations(entries) / 3
    assert len(few) < len(entries)


def test_large_graphs_do_not_recurse() -> None:
    graph = Graph()
    x = y = graph.input("x")
    for _ in range(5000):
        y = 0.5 * y + (-y) * x + 0.0 * x
    assert operations(simplify([np.arctan2(y, x)])) == 25_001 + 1
    assert operations(simplify([y])) == 15_000


# Random expressions ------------------------------------------------------------------------------

NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 0.1)
#: All operations, those more often that zeros and signs have to do with.
OPERATORS = [*UNARY, *BINARY, *["add", "subtract", "multiply", "negative", "where"] * 8]
OPERATORS += [*["divide", "arctan2", "copysign"] * 3, *LOGICAL]


@st.composite
def expressions(draw: st.DrawFn) -> list[Any]:
    """Draw operations that depend on each other, with zeros and ones among the operands."""
    graph = Graph()
    numbers = [graph.input(name) for name in "abc"]
    numbers += [graph.constant(draw(st.sampled_from(NUMBERS))) for _ in range(3)]
    numbers += [graph.record("multiply", numbers[-1], numbers[0])]
    truths = [graph.record("less", *numbers[:2]), graph.record("less_equal", *numbers[-2:])]
    for _ in range(draw(st.integers(1, 30))):
        op = draw(st.sampled_from(OPERATORS))
        if op == "where":
            parts = [draw(st.sampled_from(among)) for among in (truths, numbers, numbers)]
        else:
            among = truths if op in LOGICAL else numbers
            parts = [draw(st.sampled_from(among)) for _ in range(OPERATIONS[op].nin)]
        found = graph.record(op, *parts)
        (truths if isinstance(found, scalars.Condition) else numbers).append(found)
    return [*numbers, *truths]


def evaluate(expressions: Any, values: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(scalars.evaluate(expressions, values), dtype=float)


@pytest.mark.full
@settings(max_examples=by_tier(fast=60, full=300))
@given(outputs=expressions(), seed=st.integers(0, 999))
def test_finite_numbers_stay_the_same_to_the_last_bit(outputs: list[Any], seed: int) -> None:
    rng, count = np.random.default_rng(seed), 20
    values = {name: rng.choice([*NUMBERS, 0.7, 1.3, -2.2], count) for name in "abc"}
    nodes = reachable(outputs)
    finite = np.all(np.isfinite(evaluate(nodes, values)), axis=0)
    assume(np.any(finite))
    expected, found = evaluate(outputs, values), evaluate(simplify(outputs), values)
    np.testing.assert_array_equal(found[:, finite], expected[:, finite])


@pytest.mark.full
@settings(max_examples=by_tier(fast=25, full=100))
@given(outputs=expressions())
def test_simplifying_again_changes_nothing(outputs: list[Any]) -> None:
    once = simplify(outputs)
    twice = simplify(once)
    assert all(
        a is b or (not is_symbol(a) and repr(a) == repr(b))
        for a, b in zip(once, twice, strict=True)
    )
