"""Kernels that solve ``(d I - J) y = b``, by sparse factors of a fixed pattern or by dense ones.

The sparse one takes the pivots as they come, in an order that was chosen once for the pattern
(`flexure.solvers.native.emission.sparse_factors`). That is fast, and for short steps, where d is
large, also accurate; where the elimination adds too much to the pivots it gives up, and the dense
factorization with pivots of its own choice takes over. The units of the states have no influence on
that.

The kernels for a pattern take it from the record, or it is known while translating: then loops are
written out, and nothing is computed that is always zero.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.run import Run
from flexure.solvers.native.language.language import Floats, Ints, unrolled

LARGEST_GROWTH = 1e6


def factorize(run: Run, pattern: Run, n: int, d: float) -> bool:
    """Factorize ``d I - J``; tell whether that is possible."""
    run.factorizations += 1
    run.factored_sparse = 0
    if run.sparse == 1 and sparse_factors(pattern, n, d, run.entries, run.factors, run.work):
        run.factored_sparse = 1
        return True
    if run.roomy == 0:
        return False
    return dense_factors(
        run.n, d, run.nonzeros, run.entries, run.rows, run.columns, run.matrix, run.pivots
    )


def solve(run: Run, pattern: Run, n: int, b: Floats) -> None:
    """Replace the right-hand side by the solution."""
    if run.factored_sparse == 1:
        sparse_solution(pattern, n, run.factors, run.work, b)
    else:
        dense_solution(run.n, run.matrix, run.pivots, b)


def sparse_factors(
    pattern: Run, n: int, d: float, entries: Floats, factors: Floats, row: Floats
) -> bool:
    """Compute the factors L D U row by row; tell whether they are accurate.

    L and U have ones on their diagonals; the inverse of D is where these are. What the elimination
    of k adds to the pivot of i is ``L_ik U_ki`` times the pivot of k.
    """
    for e in unrolled(pattern.starts[n]):
        factors[e] = 0.0
    for e in unrolled(pattern.nonzeros):
        factors[pattern.slots[e]] -= entries[e]
    for i in unrolled(n):
        factors[pattern.diagonal[i]] += d
    growth = 0.0
    for i in unrolled(n):
        for e in unrolled(pattern.starts[i], pattern.starts[i + 1]):
            row[pattern.column[e]] = factors[e]
        for e in unrolled(pattern.starts[i], pattern.diagonal[i]):
            part = row[pattern.column[e]]
            factors[e] = part * factors[pattern.diagonal[pattern.column[e]]]
            for g in unrolled(
                pattern.diagonal[pattern.column[e]] + 1, pattern.starts[pattern.column[e] + 1]
            ):
                row[pattern.column[g]] -= part * factors[g]
        inverse = 1.0 / row[i]
        growth += 0.0 * inverse  # NaN where the pivot is zero
        factors[pattern.diagonal[i]] = inverse
        for e in unrolled(pattern.diagonal[i] + 1, pattern.starts[i + 1]):
            factors[e] = row[pattern.column[e]] * inverse
    for e in unrolled(pattern.pairs):
        growth += abs(factors[pattern.lower[e]] * factors[pattern.upper[e]])
    return growth < LARGEST_GROWTH


def sparse_solution(pattern: Run, n: int, factors: Floats, y: Floats, b: Floats) -> None:
    """Solve with sparse factors, in the order of elimination."""
    for i in unrolled(n):
        y[pattern.ranks[i]] = b[i]
    for i in unrolled(n):
        total = y[i]
        for e in unrolled(pattern.starts[i], pattern.diagonal[i]):
            total -= factors[e] * y[pattern.column[e]]
        y[i] = total
    for i in unrolled(n - 1, -1, -1):
        total = y[i] * factors[pattern.diagonal[i]]
        for e in unrolled(pattern.starts[i + 1] - 1, pattern.diagonal[i], -1):
            total -= factors[e] * y[pattern.column[e]]
        y[i] = total
    for i in unrolled(n):
        b[i] = y[pattern.ranks[i]]


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
