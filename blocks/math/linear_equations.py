"""Small systems of linear equations, solved without a search for pivots.

The operations are the same for all values, so that symbols pass through as they are. Nothing is
checked: a singular matrix gives infinities or NaN.
"""

from __future__ import annotations

import numpy as np

from flexure.blocks.math.vectors import cross, dot
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


def inverse_3x3(A: Array) -> Array:
    """Return the inverse of a matrix with three rows: the adjugate over the determinant.

    >>> inverse_3x3([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    array([[ 0.75, -0.25, -0.25],
           [-0.25,  0.75, -0.25],
           [-0.25, -0.25,  0.75]])
    """
    columns, determinant = _adjugate(A)
    return np.stack(columns, axis=1) / determinant


def solve_3x3(A: Array, b: Array) -> Array:
    """Return the solution x of A x = b by Cramer's rule.

    Errors are of the order of 1e-16 times the condition number of A, relative to the length of x.

    >>> solve_3x3([[2.0, 0.0, 0.0], [0.0, 0.0, 4.0], [0.0, 5.0, 0.0]], [1.0, 2.0, 3.0])
    array([0.5, 0.6, 0.5])
    """
    (c0, c1, c2), determinant = _adjugate(A)
    b0, b1, b2 = b
    return (c0 * b0 + c1 * b1 + c2 * b2) / determinant


def _adjugate(A: Array) -> tuple[list[Array], Array]:
    """Return the columns of the adjugate of a 3 x 3 matrix, and the determinant."""
    columns = [cross(A[1], A[2]), cross(A[2], A[0]), cross(A[0], A[1])]
    return columns, dot(A[0], columns[0])


def ldl_factors(A: Array) -> tuple[Array, Array]:
    """Return L and d of a symmetric matrix A = L diag(d) Lᵀ.

    Column by column, with the columns before j known::

        d_j = A_jj - Σ_k L_jk² d_k
        L_ij = (A_ij - Σ_k L_ik L_jk d_k) / d_j

    Only the lower triangle of A is read. L is lower triangular with ones on the diagonal. Rows are
    not exchanged, so the factors are accurate if A is positive definite; the pivots d are then
    positive.

    >>> L, d = ldl_factors([[4.0, 2.0], [2.0, 10.0]])
    >>> L
    array([[1. , 0. ],
           [0.5, 1. ]])
    >>> d
    array([4., 9.])
    """
    A = scalars.array(A)
    n = len(A)
    L, d = np.eye(n, like=A), np.zeros_like(A[0])
    for j in range(n):
        column = A[j:, j] - np.sum(L[j:, :j] * (d[:j] * L[j, :j]), axis=1)
        d[j] = column[0]
        L[j + 1 :, j] = column[1:] * (1.0 / column[0])  # one division
    return L, d


def ldl_solve(L: Array, d: Array, b: Array) -> Array:
    """Return the solution x of L diag(d) Lᵀ x = b by substitution.

    L and d are the factors of `ldl_factors`. b is one right-hand side, or has one in each column.

    >>> ldl_solve([[1.0, 0.0], [0.5, 1.0]], [4.0, 9.0], [8.0, 22.0])
    array([1., 2.])
    """
    n, L = len(d), np.asanyarray(L)
    rows = list(np.asanyarray(b))
    for i in range(n):
        for j in range(i):
            rows[i] = rows[i] - L[i, j] * rows[j]
    rows = [row * (1.0 / pivot) for row, pivot in zip(rows, d, strict=True)]  # one division
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            rows[i] = rows[i] - L[j, i] * rows[j]
    return scalars.array(rows)


def solve_symmetric(A: Array, b: Array) -> Array:
    """Return the solution x of A x = b for a symmetric positive definite matrix.

    Only the lower triangle of A, such as a mass matrix, is read. b is one right-hand side, or has
    one in each column.

    Errors are of the order of 1e-16 times the condition number of A. About n³/6 + n² products are
    needed for one right-hand side.

    >>> solve_symmetric([[4.0, 2.0], [2.0, 10.0]], [8.0, 22.0])
    array([1., 2.])
    """
    return scalars.solved(mirrored(A), b, ldl_factors(A), ldl_solve)


def mirrored(A: Array) -> Array:
    """Return the symmetric matrix that has the lower triangle of another one.

    A product such as R I Rᵀ is symmetric but for rounding. Mirrored, it is so exactly, and in a
    matrix of symbols equal entries are one symbol.

    >>> mirrored([[1.0, 9.0], [2.0, 3.0]])
    array([[1., 2.],
           [2., 3.]])
    """
    A = np.asanyarray(A)
    k = np.arange(len(A))
    return A[np.maximum.outer(k, k), np.minimum.outer(k, k)]
