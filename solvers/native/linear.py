"""Kernels that solve ``(d I - J) y = b``, by sparse factors of a fixed pattern or by dense ones.

The sparse one takes the pivots as they come, in an order that was chosen once for the pattern
(`flexure.solvers.native.pattern`). That is fast, and for short steps, where d is large, also
accurate; where a multiplier grows beyond a bound it gives up, and the dense factorization with
pivots of its own choice takes over.
"""

from __future__ import annotations

from flexure.solvers.native.language import Floats, Ints
from flexure.solvers.native.run import Run

LARGEST_MULTIPLIER = 1e4


def factorize(run: Run, d: float) -> bool:
    """Factorize ``d I - J``; tell whether that is possible."""
    run.factorizations += 1
    run.factored_sparse = 0
    if run.sparse == 1 and sparse_factors(
        run.n,
        d,
        run.nonzeros,
        run.entries,
        run.slots,
        run.starts,
        run.diagonal,
        run.column,
        run.factors,
        run.work,
    ):
        run.factored_sparse = 1
        return True
    if run.roomy == 0:
        return False
    return dense_factors(
        run.n, d, run.nonzeros, run.entries, run.rows, run.columns, run.matrix, run.pivots
    )


def solve(run: Run, b: Floats) -> None:
    """Replace the right-hand side by the solution."""
    if run.factored_sparse == 1:
        sparse_solution(
            run.n, run.starts, run.diagonal, run.column, run.factors, run.ranks, run.work, b
        )
    else:
        dense_solution(run.n, run.matrix, run.pivots, b)


def sparse_factors(
    n: int,
    d: float,
    nonzeros: int,
    entries: Floats,
    slots: Ints,
    starts: Ints,
    diagonal: Ints,
    column: Ints,
    factors: Floats,
    row: Floats,
) -> bool:
    """Compute the factors row by row; tell whether no multiplier is too large.

    Row i of the factors holds the multipliers left of its diagonal entry.
    """
    for e in range(starts[n]):
        factors[e] = 0.0
    for e in range(nonzeros):
        factors[slots[e]] -= entries[e]
    for i in range(n):
        factors[diagonal[i]] += d
    for i in range(n):
        for e in range(starts[i], starts[i + 1]):
            row[column[e]] = factors[e]
        for e in range(starts[i], diagonal[i]):
            k = column[e]
            multiplier = row[k] / factors[diagonal[k]]
            if not abs(multiplier) < LARGEST_MULTIPLIER:
                return False
            row[k] = multiplier
            for g in range(diagonal[k] + 1, starts[k + 1]):
                row[column[g]] -= multiplier * factors[g]
        for e in range(starts[i], starts[i + 1]):
            factors[e] = row[column[e]]
        if not abs(factors[diagonal[i]]) > 0.0:
            return False
    return True


def sparse_solution(
    n: int,
    starts: Ints,
    diagonal: Ints,
    column: Ints,
    factors: Floats,
    ranks: Ints,
    y: Floats,
    b: Floats,
) -> None:
    """Solve with sparse factors, in the order of elimination."""
    for i in range(n):
        y[ranks[i]] = b[i]
    for i in range(n):
        total = y[i]
        for e in range(starts[i], diagonal[i]):
            total -= factors[e] * y[column[e]]
        y[i] = total
    for i in range(n - 1, -1, -1):
        total = y[i]
        for e in range(diagonal[i] + 1, starts[i + 1]):
            total -= factors[e] * y[column[e]]
        y[i] = total / factors[diagonal[i]]
    for i in range(n):
        b[i] = y[ranks[i]]


def dense_factors(
    n: int,
    d: float,
    nonzeros: int,
    entries: Floats,
    rows: Ints,
    columns: Ints,
    matrix: Floats,
    pivots: Ints,
) -> bool:
    """Compute dense factors with the largest pivot of each column; tell whether none is zero."""
    for e in range(n * n):
        matrix[e] = 0.0
    for e in range(nonzeros):
        matrix[rows[e] * n + columns[e]] -= entries[e]
    for i in range(n):
        matrix[i * n + i] += d
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if abs(matrix[i * n + j]) > abs(matrix[best * n + j]):
                best = i
        pivots[j] = best
        if not abs(matrix[best * n + j]) > 0.0:
            return False
        if best != j:
            for g in range(n):
                held = matrix[j * n + g]
                matrix[j * n + g] = matrix[best * n + g]
                matrix[best * n + g] = held
        pivot = matrix[j * n + j]
        for i in range(j + 1, n):
            if matrix[i * n + j] != 0.0:
                eliminate(n - j - 1, matrix[i * n + j :], matrix[j * n + j + 1 :], pivot)
    return True


def eliminate(count: int, row: Floats, pivot_row: Floats, pivot: float) -> None:
    """Subtract a multiple of the pivot row from what follows the first entry of another."""
    multiplier = row[0] / pivot
    row[0] = multiplier
    for g in range(count):
        row[g + 1] -= multiplier * pivot_row[g]


def dense_solution(n: int, matrix: Floats, pivots: Ints, b: Floats) -> None:
    """Solve with dense factors."""
    for j in range(n):
        if pivots[j] != j:
            held = b[j]
            b[j] = b[pivots[j]]
            b[pivots[j]] = held
    for i in range(n):
        total = b[i]
        for j in range(i):
            total -= matrix[i * n + j] * b[j]
        b[i] = total
    for i in range(n - 1, -1, -1):
        total = b[i]
        for j in range(i + 1, n):
            total -= matrix[i * n + j] * b[j]
        b[i] = total / matrix[i * n + i]
