"""Matrices of derivatives by elimination, against those that go forward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flexure.diagrams.scalars import Graph, Symbol, evaluate, jacobian, symbols, where
from flexure.diagrams.scalars.derivatives.elimination import eliminate
from flexure.diagrams.scalars.expressions.expression import reachable

GRAPH = Graph()
X = symbols(GRAPH, "x", 4)
KEYS = [("x", k) for k in range(4)]
LENGTH = np.sqrt(X[:3] @ X[:3])
EQUATIONS: dict[str, list[Any]] = {
    "a spring between two points": [*(5.0 * (LENGTH - 1.0) / LENGTH * X[:3]), LENGTH],
    "outputs that feed others": [LENGTH, LENGTH * X[3], np.exp(LENGTH * X[3])],
    "choices": [where(X[0] > X[1], X[0] * X[2], np.sin(X[1])) * X[3], np.maximum(X[0], X[2] ** 2)],
    "numbers, and inputs": [2.0, X[1], X[1] + 1.0, -X[2]],
    "what has no influence": [np.floor(X[0]), X[1] - X[1] + X[2]],
}


def by_elimination(outputs: list[Any]) -> np.ndarray[Any, Any]:
    nodes = reachable(each for each in outputs if isinstance(each, Symbol))
    starts = {X[k].index: {k: 1.0} for k in range(4)}
    matrix = np.zeros((len(outputs), 4), dtype=object)
    for row, slopes in enumerate(eliminate(outputs, nodes, starts)):
        for column, slope in slopes.items():
            matrix[row, column] = slope
    return matrix


def numbers(matrix: Any, x: Any) -> np.ndarray[Any, Any]:
    found = evaluate(list(matrix.ravel()), dict(zip(KEYS, x, strict=True)))
    return np.array(found, dtype=float).reshape(matrix.shape)


@pytest.mark.parametrize("name", EQUATIONS)
def test_elimination_gives_the_derivatives_that_forward_mode_gives(name: str) -> None:
    outputs = EQUATIONS[name]
    for x in ([0.3, -0.4, 1.2, 0.7], [2.0, 0.5, -0.1, -1.5]):
        expected = numbers(jacobian(outputs, KEYS).to_array(), x)
        np.testing.assert_allclose(numbers(by_elimination(outputs), x), expected, rtol=1e-13)


def test_a_choice_keeps_out_slopes_that_are_not_finite() -> None:
    near = X[0] < 1.0
    outputs = [3.0 * where(near, X[0] * X[1], X[1] / (X[0] - X[0] * X[2]))]
    found = numbers(by_elimination(outputs), [0.0, 2.0, 1.0, 0.0])
    np.testing.assert_array_equal(found, [[6.0, 0.0, 0.0, 0.0]])


def test_the_slope_of_a_length_is_zero_at_its_tip() -> None:
    outputs = [X[3] * np.sqrt((2.0 * X[0]) ** 2 + (X[0] * X[1]) ** 2)]
    found = numbers(by_elimination(outputs), [0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(found, [[0.0, 0.0, 0.0, 0.0]])


def test_known_derivatives_of_what_is_read_go_on() -> None:
    weights = symbols(GRAPH, "w", 2)
    outputs = [X[0] * X[1]]
    starts = {X[0].index: {0: weights[0], 7: 2.0}, X[1].index: {7: weights[1]}}
    (found,) = eliminate(outputs, reachable(outputs), starts)
    given = {("x", 0): 3.0, ("x", 1): 5.0, ("w", 0): 0.5, ("w", 1): 10.0}
    assert list(found) == [0, 7]
    assert evaluate(list(found.values()), given).tolist() == [2.5, 40.0]
