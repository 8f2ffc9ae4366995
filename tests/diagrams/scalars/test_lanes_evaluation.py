"""Expressions in lanes: arrays in place of floats give what one evaluation per lane gives."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError
from flexure.diagrams.scalars.expressions.vocabulary import BINARY, LOGICAL, UNARY
from tests.support.tiers import for_each

FloatArray = npt.NDArray[np.float64]

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.7, -2.5, 1e22, 1e308, 5e-324, np.inf, -np.inf, np.nan]
FIRST, SECOND = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
OPERATIONS = (*UNARY, *BINARY, *LOGICAL, "where")

#: Of two zeros, NumPy may choose either.
EXTREMA = {"maximum", "minimum", "fmax", "fmin"}
#: Operations with a result that IEEE 754 or common sense fixes to the last bit.
EXACT = {
    *EXTREMA,
    *LOGICAL,
    *("negative", "absolute", "sign", "sqrt", "floor", "ceil", "trunc", "rint", "copysign"),
    *("isfinite", "isinf", "isnan", "less", "less_equal", "equal", "not_equal", "where"),
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod"),
}

every_operation = for_each("name", OPERATIONS)


def expression_of(name: str) -> Any:
    """Record one operation on the inputs "x" and "y"."""
    graph = scalars.Graph()
    x, y = graph.input("x"), graph.input("y")
    if name in UNARY:
        return graph.record(name, x)
    if name in BINARY:
        return graph.record(name, x, y)
    if name == "where":
        return graph.record(name, x < y, x, y)
    operands = [x > 0.0] if name == "logical_not" else [x > 0.0, y > 0.0]
    return graph.record(name, *operands)


def in_lanes(name: str, x: FloatArray, y: FloatArray) -> Any:
    return scalars.evaluate(expression_of(name), {"x": x, "y": y})


def one_by_one(name: str, x: FloatArray, y: FloatArray) -> Any:
    expression = expression_of(name)
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return np.array([scalars.evaluate(expression, {"x": a, "y": b}) for a, b in pairs])


def assert_same_bits(found: Any, expected: Any, name: str = "") -> None:
    np.testing.assert_array_equal(found, expected)
    if found.dtype != bool:
        settled = ~np.isnan(expected) & ~((expected == 0.0) & (name in EXTREMA))
        np.testing.assert_array_equal(np.signbit(found[settled]), np.signbit(expected[settled]))


def scattered(seed: int, count: int = 101) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=count) * np.exp(rng.uniform(-5.0, 5.0, count))


# Operations --------------------------------------------------------------------------------------


@every_operation
@for_each("kind", ["special", "scattered"])
def test_every_operation_gives_in_lanes_what_it_gives_on_floats(name: str, kind: str) -> None:
    x, y = (FIRST, SECOND) if kind == "special" else (scattered(1), scattered(2))
    if name == "power":  # alone, NumPy takes a square root here, which is NaN
        y = np.where((x == -np.inf) & (y == 0.5), 1.0, y)
    found, expected = in_lanes(name, x, y), one_by_one(name, x, y)
    assert found.dtype == expected.dtype
    if name in EXACT:
        assert_same_bits(found, expected, name)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0.0)


@every_operation
@for_each("neighbor", [np.nan, np.inf, -np.inf, 1e300, 0.0, 5e-324])
def test_a_lane_does_not_depend_on_its_neighbors(name: str, neighbor: float) -> None:
    x, y = scattered(3), scattered(4)
    alone = in_lanes(name, x, y)
    x[::3], y[1::3] = neighbor, neighbor
    assert_same_bits(in_lanes(name, x, y)[2::3], alone[2::3])


@every_operation
def test_bits_do_not_depend_on_how_lanes_lie_in_memory(name: str) -> None:
    x, y = scattered(5), scattered(6)
    expected = in_lanes(name, x, y)
    for view in (lambda a: a[::-1].copy()[::-1], lambda a: np.repeat(a, 3)[::3]):
        assert_same_bits(in_lanes(name, view(x), view(y)), expected)


@every_operation
def test_a_plain_number_beside_lanes_is_the_same_in_all(name: str) -> None:
    x = scattered(7)
    for y in SPECIAL:
        found = scalars.evaluate(expression_of(name), {"x": x, "y": y})
        expected = in_lanes(name, x, np.full(x.shape, y))
        if name in EXACT:
            assert_same_bits(found, expected, name)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0.0)


def test_a_choice_may_be_the_same_in_all_lanes() -> None:
    graph = scalars.Graph()
    x, y, z = (graph.input(key) for key in "xyz")
    chosen = np.where(z > 0.0, x, 2.0 * y)
    lanes = np.array([1.0, 2.0])
    assert scalars.evaluate(chosen, {"x": lanes, "y": 5.0, "z": 1.0}).tolist() == [1.0, 2.0]
    assert scalars.evaluate(chosen, {"x": lanes, "y": 5.0, "z": -1.0}).tolist() == [10.0, 10.0]


def solved(x: Any) -> Any:
    matrix = scalars.array([[x[0], 1.0], [1.0, x[1]]])
    return np.linalg.solve(matrix, scalars.array([x[2], x[0] - x[1]]))


@pytest.mark.parametrize(
    "equation",
    [
        lambda x: np.sin(x) * np.exp(-x * x) + x,
        lambda x: np.where(x > 0.0, np.sqrt(x), 1.0 / x),
        lambda x: np.interp(x, [-1.0, 0.0, 2.0], [3.0, 0.0, 1.0]),
        lambda x: np.array([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]]) @ x,
        lambda x: np.clip(x, -0.5, 0.5) ** 3,
        np.linalg.norm,
        lambda x: x > 0.2,
        solved,
    ],
)
def test_equations_give_in_lanes_what_they_give_on_floats(equation: Any) -> None:
    rng = np.random.default_rng(8)
    lanes = rng.normal(size=(3, 40))
    lanes[:, 7], lanes[1, 11], lanes[:, 13] = 0.0, np.nan, np.inf
    expressions = equation(scalars.symbols(scalars.Graph(), "x", 3))
    found = scalars.evaluate(expressions, {("x", k): lanes[k] for k in range(3)})
    for lane in range(40):
        expected = scalars.evaluate(expressions, {("x", k): lanes[k, lane] for k in range(3)})
        np.testing.assert_allclose(found[..., lane], expected, rtol=1e-13, atol=0.0)


# Shapes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [(0,), (1,), (3,), (2, 3), (1, 0)])
def test_the_axes_of_the_lanes_come_last(lanes: tuple[int, ...]) -> None:
    x = scalars.symbols(scalars.Graph(), "x", (2, 1))
    values = {("x", 0): np.full(lanes, 2.0), ("x", 1): np.full(lanes, 3.0)}
    found = scalars.evaluate(x + 1.0, values)
    assert found.shape == (2, 1, *lanes)
    assert np.all(found[0] == 3.0)
    assert np.all(found[1] == 4.0)
    assert scalars.evaluate(x[0, 0], values).shape == lanes


@pytest.mark.parametrize("lanes", [(0,), (1,), (4,), (2, 3)])
def test_what_does_not_depend_on_any_lane_is_repeated(lanes: tuple[int, ...]) -> None:
    graph = scalars.Graph()
    x, y = graph.input("x"), graph.input("y")
    values: dict[str, Any] = {"x": np.zeros(lanes), "y": 4.0}
    found = scalars.evaluate([x + 1.0, y, 2.0 * y, 7.0, graph.constant(-1.0)], values)
    assert found.shape == (5, *lanes)
    for row, expected in zip(found, [1.0, 4.0, 8.0, 7.0, -1.0], strict=True):
        assert np.all(row == expected)
    assert scalars.evaluate([5.0, 6.0], values).shape == (2, *lanes)
    assert scalars.evaluate(2.5, values).shape == lanes
    assert scalars.evaluate([], values).shape == (0, *lanes)


def test_truth_values_stay_truth_values() -> None:
    x = scalars.Graph().input("x")
    found = scalars.evaluate([x > 0.0, True], {"x": np.array([1.0, -1.0, np.nan])})
    assert found.dtype == bool
    assert found.tolist() == [[True, False, False], [True, True, True]]


def test_an_array_without_axes_is_a_plain_number() -> None:
    x = scalars.Graph().input("x")
    found = scalars.evaluate(x * 2.0, {"x": np.array(3.0)})
    assert isinstance(found, np.float64)
    assert found == 6.0


def test_results_are_new_arrays() -> None:
    x = scalars.Graph().input("x")
    values = {"x": np.zeros(3)}
    scalars.evaluate([x, x], values)[:] = 7.0
    scalars.evaluate(x, values)[:] = 7.0
    assert values["x"].tolist() == [0.0, 0.0, 0.0]


def test_whole_numbers_are_computed_as_floats() -> None:
    x = scalars.Graph().input("x")
    found = scalars.evaluate(x * 1e10, {"x": np.array([1, 2])})
    assert found.tolist() == [1e10, 2e10]


@pytest.mark.parametrize("other", [(1,), (4,), (3, 1)])
def test_lanes_of_different_shapes_are_refused(other: tuple[int, ...]) -> None:
    graph = scalars.Graph()
    x, y = graph.input("x"), graph.input("y")
    with pytest.raises(ValueRefusedError, match=r"one common shape .* found arrays of the shapes"):
        scalars.evaluate(x + y, {"x": np.zeros(3), "y": np.zeros(other)})


def test_an_input_without_lanes_is_named() -> None:
    graph = scalars.Graph()
    with pytest.raises(UnknownNameError, match="'y'"):
        scalars.evaluate(graph.input("x") + graph.input("y"), {"x": np.zeros(3)})


# Memory ------------------------------------------------------------------------------------------


def test_intermediate_lanes_are_freed_after_their_last_use() -> None:
    graph = scalars.Graph()
    x = graph.input("x")
    y: Any = x
    for _ in range(200):
        y = np.sin(y) + x
    values = {"x": np.linspace(0.0, 1.0, 10_000)}
    tracemalloc.start()
    try:
        scalars.evaluate(y, values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * values["x"].nbytes
