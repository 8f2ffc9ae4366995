"""Small systems are solved as LAPACK solves them, by operations that never depend on values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flexure.blocks import math as fm
from flexure.diagrams import scalars
from tests.blocks.math.samples import EPS, random_positive_matrix, traced
from tests.support.tiers import for_each


def hilbert(n: int) -> Any:
    """Return a notoriously ill-conditioned matrix."""
    return 1.0 / (np.arange(n)[:, np.newaxis] + np.arange(n) + 1.0)


@pytest.mark.parametrize("n", range(1, 13))
def test_factors_are_triangular_and_multiply_to_the_matrix(n: int) -> None:
    A = random_positive_matrix(np.random.default_rng(n), n)
    L, d = fm.ldl_factors(A)
    assert np.array_equal(np.triu(L), np.eye(n))
    assert np.all(d > 0.0)
    assert L @ np.diag(d) @ L.T == pytest.approx(A, rel=1e-13, abs=1e-13)
    assert np.prod(d) == pytest.approx(np.linalg.det(A), rel=1e-10)


@for_each("n", range(1, 13))
@for_each("columns", [(), (1,), (4,)])
def test_symmetric_systems_are_solved(n: int, columns: tuple[int, ...]) -> None:
    rng = np.random.default_rng(n)
    A, b = random_positive_matrix(rng, n), rng.normal(size=(n, *columns))
    x = fm.solve_symmetric(A, b)
    assert x.shape == b.shape
    assert x == pytest.approx(np.linalg.solve(A, b), rel=1e-9, abs=1e-9)
    residual = np.abs(A @ x - b).max()
    assert residual <= 16.0 * n * EPS * np.abs(A).sum(axis=1).max() * np.abs(x).max()


def test_a_mirrored_matrix_has_one_symbol_for_two_entries() -> None:
    A = scalars.symbols(scalars.Graph(), "A", (4, 4))
    M = fm.mirrored(A)
    for i in range(4):
        for j in range(i + 1):
            assert M[i, j] is M[j, i] is A[i, j]


@pytest.mark.parametrize("n", [4, 8])
def test_residuals_stay_small_when_the_matrix_is_ill_conditioned(n: int) -> None:
    A, b = hilbert(n), np.ones(n)
    x = fm.solve_symmetric(A, b)
    assert np.abs(A @ x - b).max() <= 4.0 * EPS * np.abs(x).max()


def test_only_the_lower_triangle_is_read() -> None:
    A = random_positive_matrix(np.random.default_rng(3), 5)
    b = np.arange(5.0)
    upper_spoiled = np.tril(A) + np.triu(np.full((5, 5), np.nan), 1)
    assert np.array_equal(fm.solve_symmetric(upper_spoiled, b), fm.solve_symmetric(A, b))


def test_arguments_are_not_changed() -> None:
    A, b = random_positive_matrix(np.random.default_rng(3), 4), np.arange(4.0)
    before = A.copy()
    fm.solve_symmetric(A, b)
    assert np.array_equal(A, before)
    assert b.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("seed", range(10))
def test_systems_of_three_are_solved_and_inverted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    tolerance = 16.0 * EPS * np.linalg.cond(A)
    assert fm.inverse_3x3(A) @ A == pytest.approx(np.eye(3), abs=tolerance)
    expected = np.linalg.solve(A, b)
    found = fm.solve_3x3(A, b)
    assert np.linalg.norm(found - expected) <= tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("solve", "arguments"),
    [
        (fm.solve_symmetric, (np.eye(6), np.zeros(6))),
        (fm.solve_3x3, (np.eye(3), np.zeros(3))),
        (fm.inverse_3x3, (np.eye(3),)),
    ],
)
def test_no_pivot_is_searched(solve: Any, arguments: Any) -> None:
    solution = traced(solve, arguments)
    operations = {node.op for node in solution[0].graph.nodes}
    assert operations <= {"input", "constant", "add", "subtract", "multiply", "divide", "negative"}


@pytest.mark.parametrize("which", ["matrix", "right-hand side"])
def test_numbers_and_symbols_may_be_mixed(which: str) -> None:
    A = random_positive_matrix(np.random.default_rng(5), 4)
    b = np.array([1.0, -2.0, 3.0, 0.5])
    symbolic = scalars.symbols(scalars.Graph(), "x", (4, 4) if which == "matrix" else 4)
    solution = fm.solve_symmetric(*((symbolic, b) if which == "matrix" else (A, symbolic)))
    numbers = A if which == "matrix" else b
    values = {("x", k): float(entry) for k, entry in enumerate(numbers.flat)}
    assert np.array_equal(scalars.evaluate(solution, values), fm.solve_symmetric(A, b))


def test_a_singular_matrix_gives_no_number() -> None:
    with np.errstate(all="ignore"):
        assert not np.isfinite(fm.solve_symmetric(np.zeros((2, 2)), np.ones(2))).any()
        assert not np.isfinite(fm.solve_3x3(np.zeros((3, 3)), np.ones(3))).any()
