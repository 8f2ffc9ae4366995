"""``np.linalg`` on symbols.

Systems are solved by Gauss elimination with partial pivoting, for any size. The pivot search cannot
branch, so rows are exchanged by ``where``: each row below the pivot is compared with it and the two
trade places if its entry is larger. This picks the pivots LAPACK picks (ties apart), so results
agree with NumPy's to rounding times the condition number. It costs about n³ operations ``where``
beside the n³ operations of the elimination itself; entries that are exactly zero
whatever the values are skipped. A singular matrix gives infinities or NaN, not an exception.
Derivatives are those of the equations, see `flexure.diagrams.scalars.expressions.solutions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.diagrams.scalars.expressions import ufuncs
from flexure.diagrams.scalars.expressions.array import implements, wrap
from flexure.diagrams.scalars.expressions.expression import (
    Condition,
    as_number,
    binary,
    choose,
    unary,
)
from flexure.diagrams.scalars.expressions.refusal import refusal
from flexure.diagrams.scalars.expressions.solutions import solved
from flexure.diagrams.scalars.expressions.ufuncs import Objects, objects


@implements(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    matrix, right = _square(a, "solve"), objects(b)
    n = len(matrix)
    if right.ndim not in (1, 2) or len(right) != n:
        raise refusal(
            "Cannot take np.linalg.solve",
            expected=f"a right-hand side of shape ({n},) or ({n}, m)",
            found=f"shape {right.shape}",
            remedy="Solve stacked systems one by one",
        )
    factors, exchanges, _ = _eliminate(matrix)
    return solved(wrap(matrix), wrap(right), (factors, exchanges), _substituted, _substituted_back)


implements(np.linalg.inv)(lambda a: _solve(a, np.eye(len(_square(a, "inv")))))


@implements(np.linalg.det)
def _det(a: Any) -> Any:
    matrix = _square(a, "det")
    if len(matrix) <= 3:
        return wrap(_expanded(matrix))
    factors, _, product = _eliminate(matrix)
    for k in range(len(matrix)):
        product = binary("multiply", product, factors[k, k])
    return wrap(product)


@implements(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    values = objects(x)
    frobenius = ord is None or (ord == "fro" and values.ndim == 2)
    along_one = values.ndim == 1 if axis is None else isinstance(axis, (int, np.integer))
    if frobenius or (ord == 2 and along_one):
        squares = ufuncs.call(np.multiply, values, values)
        return wrap(ufuncs.call(np.sqrt, ufuncs.reduce(np.add, squares, axis, keepdims)))
    ufunc = {1: np.add, np.inf: np.maximum, -np.inf: np.minimum}.get(ord)
    if ufunc is None or not along_one:
        raise refusal(
            f"Cannot take np.linalg.norm with ord={ord!r}, axis={axis!r}",
            expected="the norms 1, 2, inf, -inf of vectors, or the Frobenius norm",
            found=f"an array of shape {values.shape}",
            remedy="Write the norm with np.sum, np.max and np.abs",
        )
    return wrap(ufuncs.reduce(ufunc, ufuncs.call(np.absolute, values), axis, keepdims))


def _expanded(matrix: Objects) -> Any:
    """Return a determinant by its minors: no division by pivots, which may be zero."""
    if len(matrix) < 2:
        return as_number(matrix[0, 0]) if len(matrix) else 1.0
    total: Any = 0.0
    for i, entry in enumerate(matrix[:, 0]):
        if not _is_zero(entry):
            minor = _expanded(np.delete(matrix[:, 1:], i, axis=0))
            term = binary("multiply", as_number(entry), minor)
            total = binary("subtract" if i % 2 else "add", total, term) if i else term
    return total


def _square(a: Any, name: str) -> ufuncs.Objects:
    """Return one square matrix as plain objects."""
    matrix = objects(a)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise refusal(
            f"Cannot take np.linalg.{name}",
            expected="one square matrix",
            found=f"shape {matrix.shape}",
            remedy="Treat stacked matrices one by one",
        )
    return matrix


def _eliminate(matrix: Objects) -> tuple[Objects, Objects, Any]:
    """Factor a matrix; return its factors, the conditions of exchanges, and the sign of these."""
    # The factors are the upper triangle, and below it by how many times a row a lower one is less.
    n = len(matrix)
    rows = [[as_number(entry) for entry in row] for row in matrix]
    factors, exchanges = np.full((n, n), 0.0, dtype=object), np.full((n, n), False, dtype=object)
    sign: Any = 1.0
    for k in range(n):
        pivot = rows[k]
        for i in range(k + 1, n):
            if _is_zero(rows[i][k]):
                continue
            larger = binary("less", unary("absolute", pivot[k]), unary("absolute", rows[i][k]))
            pivot[k:], rows[i][k:] = _exchanged(larger, pivot[k:], rows[i][k:])
            exchanges[i, k] = larger
            sign = choose(larger, unary("negative", sign), sign)
        for i in range(k + 1, n):
            if _is_zero(rows[i][k]):
                continue
            factors[i, k] = binary("divide", rows[i][k], pivot[k])
            rows[i][k + 1 :] = _less(rows[i][k + 1 :], factors[i, k], pivot[k + 1 :])
        factors[k, k:] = objects(pivot[k:])
    return factors, exchanges, sign


def _substituted(factors: Any, exchanges: Any, right: Any) -> Any:
    """Return x of A x = b, with A as `_eliminate` has factored it."""
    U, larger, b = objects(factors), objects(exchanges), objects(right)
    n = len(U)
    rows = [list(row) for row in (b[:, np.newaxis] if b.ndim == 1 else b)]
    for k in range(n):
        for i in range(k + 1, n):
            rows[k], rows[i] = _exchanged(larger[i, k], rows[k], rows[i])
        for i in range(k + 1, n):
            rows[i] = _less(rows[i], U[i, k], rows[k])
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            rows[i] = _less(rows[i], U[i, j], rows[j])
        rows[i] = [binary("divide", value, U[i, i]) for value in rows[i]]
    return wrap(objects(rows).reshape(b.shape))


def _substituted_back(factors: Any, exchanges: Any, right: Any) -> Any:
    """Return x of Aᵀ x = b."""
    U, larger, b = objects(factors), objects(exchanges), objects(right)
    n = len(U)
    rows = [list(row) for row in (b[:, np.newaxis] if b.ndim == 1 else b)]
    for i in range(n):
        for j in range(i):
            rows[i] = _less(rows[i], U[j, i], rows[j])
        rows[i] = [binary("divide", value, U[i, i]) for value in rows[i]]
    for k in reversed(range(n)):
        for i in range(k + 1, n):
            rows[k] = _less(rows[k], U[i, k], rows[i])
        for i in reversed(range(k + 1, n)):
            rows[k], rows[i] = _exchanged(larger[i, k], rows[k], rows[i])
    return wrap(objects(rows).reshape(b.shape))


def _exchanged(larger: Any, above: list[Any], below: list[Any]) -> tuple[list[Any], list[Any]]:
    """Let two rows trade places where a condition holds."""
    if not isinstance(larger, Condition):
        return (below, above) if larger else (above, below)
    pairs = list(zip(above, below, strict=True))
    return [choose(larger, b, a) for a, b in pairs], [choose(larger, a, b) for a, b in pairs]


def _less(row: list[Any], factor: Any, other: list[Any]) -> list[Any]:
    """Subtract a factor times another row."""
    if _is_zero(factor):
        return row
    pairs = zip(row, other, strict=True)
    return [binary("subtract", a, binary("multiply", factor, b)) for a, b in pairs]


def _is_zero(entry: Any) -> bool:
    """Return whether an entry is zero whatever the values are."""
    return isinstance(entry, float) and entry == 0.0
