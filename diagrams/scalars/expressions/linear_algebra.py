"""``np.linalg`` on symbols.

Systems are solved by Gauss elimination with partial pivoting, for any size. The pivot search cannot
branch, so rows are exchanged by ``where``: each row below the pivot is compared with it and the two
trade places if its entry is larger. This picks the pivots LAPACK picks (ties apart), so results
agree with NumPy's to rounding times the condition number. It costs about n³ operations ``where``
beside the n³ operations of the elimination itself; entries that are exactly zero
whatever the values are skipped. A singular matrix gives infinities or NaN, not an exception.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.diagrams.scalars.expressions import ufuncs
from flexure.diagrams.scalars.expressions.array import implements, wrap
from flexure.diagrams.scalars.expressions.expression import as_number, binary, choose, unary
from flexure.diagrams.scalars.expressions.refusal import refusal
from flexure.diagrams.scalars.expressions.ufuncs import objects


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
    columns = right.reshape(n, 1) if right.ndim == 1 else right
    rows, _ = _eliminate(np.hstack([matrix, columns]), n)
    solution = np.empty(columns.shape, dtype=object)
    for i in reversed(range(n)):
        for k in range(columns.shape[1]):
            value = rows[i][n + k]
            for j in range(i + 1, n):
                value = binary("subtract", value, binary("multiply", rows[i][j], solution[j, k]))
            solution[i, k] = binary("divide", value, rows[i][i])
    return wrap(solution.reshape(right.shape))


@implements(np.linalg.inv)
def _inv(a: Any) -> Any:
    return _solve(a, np.eye(len(_square(a, "inv"))))


@implements(np.linalg.det)
def _det(a: Any) -> Any:
    matrix = _square(a, "det")
    rows, product = _eliminate(matrix, len(matrix))
    for k in range(len(matrix)):
        product = binary("multiply", product, rows[k][k])
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


def _eliminate(matrix: Any, n: int) -> tuple[list[list[Any]], Any]:
    """Make the first n columns upper triangular; return the rows and the sign of the exchanges."""
    rows = [[as_number(entry) for entry in row] for row in matrix]
    sign: Any = 1.0
    for k in range(n):
        pivot = rows[k]
        for i in range(k + 1, n):
            if _is_zero(rows[i][k]):
                continue
            larger = binary("less", unary("absolute", pivot[k]), unary("absolute", rows[i][k]))
            exchanged = list(zip(pivot[k:], rows[i][k:], strict=True))
            pivot[k:] = [choose(larger, below, above) for above, below in exchanged]
            rows[i][k:] = [choose(larger, above, below) for above, below in exchanged]
            sign = choose(larger, unary("negative", sign), sign)
        for i in range(k + 1, n):
            if _is_zero(rows[i][k]):
                continue
            factor = binary("divide", rows[i][k], pivot[k])
            for j in range(k + 1, len(pivot)):
                step = binary("multiply", factor, pivot[j])
                rows[i][j] = binary("subtract", rows[i][j], step)
    return rows, sign


def _is_zero(entry: Any) -> bool:
    """Return whether an entry is zero whatever the values are."""
    return isinstance(entry, float) and entry == 0.0
