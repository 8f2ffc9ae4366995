"""Kernels that solve ``(d I - J) y = b``: by sparse factors in fixed places, or by dense ones.

Sparse factors are those of single states, here, or those of blocks of states
(`flexure.solvers.native.kernels.parts.blocks`), whichever were found to be cheaper for a diagram.

The sparse factorization takes the pivots as they come, in an order that was chosen once for the
places (`flexure.solvers.native.emission.sparse_factors`). That is fast, and for short steps, where
d is large, also accurate; where the elimination adds too much to the pivots it gives up, and the
dense factorization with pivots of its own choice takes over. The units of the states have no
influence on that.

The kernels read the places in `FactorData`, or they are known while translating: then loops are
written out, and nothing is computed that is always zero.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.blocks import BlockData, block_growth, solve_blocks
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Ints,
    Mask,
    Real,
    Reals,
    Static,
    Structure,
    unrolled,
)

#: Errors of solutions are at most about this many times that of rounding. Stiff mechanisms with
#: long steps have a growth of 1e8, at which sparse factors are still as accurate as dense ones.
LARGEST_GROWTH = 1e9
#: Where there is no room for dense factors, short steps would be the only other way. In beams of 50
#: to 500 segments, errors up to a growth of 1e17 are smaller than those of factors with pivots.
LARGEST_GROWTH_ALONE = 1e15


class FactorData(Structure):
    """Where the entries of sparse factors are.

    The fields mean what those of `flexure.solvers.native.emission.sparse_factors.SparseFactors` do,
    which replaces them if it is known while translating.
    """

    nonzeros: int
    pairs: int
    starts: Ints
    diagonal: Ints
    column: Ints
    slots: Ints
    ranks: Ints
    lower: Ints
    upper: Ints


class LinearData(Structure):
    """The linear equations of implicit methods."""

    n: int  # their number
    jacobian: Function  # the nonzero entries of J
    known: int  # whether the entries belong to the present state
    nonzeros: int  # entries that are not always zero
    entries: Reals
    rows: Ints
    columns: Ints
    sparse: int  # whether a sparse factorization, or one in blocks, is tried first
    factors: FactorData  # where its entries are
    blocks: BlockData  # the same for one in blocks
    factored_sparse: int  # whether it was accurate
    values: Reals  # of its entries
    row: Reals  # one row of it, or a solution
    roomy: int  # whether there is room for a dense matrix
    matrix: Floats
    pivots: Ints


def factorize(linear: LinearData, factors: FactorData, n: int, tile: Static, d: float) -> bool:
    """Factorize ``d I - J``; tell whether that is possible.

    Factors in blocks are tried if their tiles have a size, otherwise those of single states.
    """
    linear.factored_sparse = 0
    if linear.sparse == 1:
        growth = 0.0
        if tile > 0:
            growth = block_growth(linear.blocks, tile, d, linear.entries)
        else:
            growth = sparse_growth(factors, n, d, linear.entries, linear.values, linear.row)
        if growth < LARGEST_GROWTH or (linear.roomy == 0 and growth < LARGEST_GROWTH_ALONE):
            linear.factored_sparse = 1
            return True
    if linear.roomy == 0:
        return False
    return factorize_dense(
        linear.n,
        d,
        linear.nonzeros,
        linear.entries,
        linear.rows,
        linear.columns,
        linear.matrix,
        linear.pivots,
    )


def solve(linear: LinearData, factors: FactorData, n: int, tile: Static, b: Floats) -> None:
    """Replace the right-hand side by the solution."""
    if linear.factored_sparse == 1:
        if tile > 0:
            solve_blocks(linear.blocks, tile, b)
        else:
            solve_sparse(factors, n, linear.values, linear.row, b)
    else:
        solve_dense(linear.n, linear.matrix, linear.pivots, b)


def solve_transposed(linear: LinearData, b: Floats) -> None:
    """Do the same for the transposed equations, with factors that are not in blocks."""
    if linear.factored_sparse == 1:
        solve_sparse_transposed(linear.factors, linear.n, linear.values, linear.row, b)
    else:
        solve_dense_transposed(linear.n, linear.matrix, linear.pivots, b)


def factorize_sparse(
    factors: FactorData, n: int, d: Real, entries: Reals, values: Reals, row: Reals
) -> Mask:
    """Compute the factors L D U row by row; tell whether they are accurate."""
    accurate: Mask = sparse_growth(factors, n, d, entries, values, row) < LARGEST_GROWTH
    return accurate


def sparse_growth(
    factors: FactorData, n: int, d: Real, entries: Reals, values: Reals, row: Reals
) -> Real:
    """Compute the factors L D U row by row; return by how much they grow, NaN for none.

    L and U have ones on their diagonals; the inverse of D is where these are. The elimination of k
    adds ``L_ik U_ki`` times the pivot of k to the pivot of i.
    """
    for e in unrolled(factors.starts[n]):
        values[e] = 0.0
    for e in unrolled(factors.nonzeros):
        values[factors.slots[e]] -= entries[e]
    for i in unrolled(n):
        values[factors.diagonal[i]] += d
    growth: Real = 0.0
    for i in unrolled(n):
        for e in unrolled(factors.starts[i], factors.starts[i + 1]):
            row[factors.column[e]] = values[e]
        for e in unrolled(factors.starts[i], factors.diagonal[i]):
            part = row[factors.column[e]]
            values[e] = part * values[factors.diagonal[factors.column[e]]]
            for g in unrolled(
                factors.diagonal[factors.column[e]] + 1, factors.starts[factors.column[e] + 1]
            ):
                row[factors.column[g]] -= part * values[g]
        inverse = 1.0 / row[i]
        growth += 0.0 * inverse  # NaN where the pivot is zero
        values[factors.diagonal[i]] = inverse
        for e in unrolled(factors.diagonal[i] + 1, factors.starts[i + 1]):
            values[e] = row[factors.column[e]] * inverse
    for e in unrolled(factors.pairs):
        growth += abs(values[factors.lower[e]] * values[factors.upper[e]])
    return growth


def solve_sparse(factors: FactorData, n: int, values: Reals, y: Reals, b: Reals) -> None:
    """Solve with sparse factors, in the order of elimination."""
    for i in unrolled(n):
        y[factors.ranks[i]] = b[i]
    for i in unrolled(n):
        total = y[i]
        for e in unrolled(factors.starts[i], factors.diagonal[i]):
            total -= values[e] * y[factors.column[e]]
        y[i] = total
    for i in unrolled(n - 1, -1, -1):
        total = y[i] * values[factors.diagonal[i]]
        for e in unrolled(factors.starts[i + 1] - 1, factors.diagonal[i], -1):
            total -= values[e] * y[factors.column[e]]
        y[i] = total
    for i in unrolled(n):
        b[i] = y[factors.ranks[i]]


def solve_sparse_transposed(factors: FactorData, n: int, values: Reals, y: Reals, b: Reals) -> None:
    """Solve with the transposed sparse factors."""
    for i in range(n):
        y[factors.ranks[i]] = b[i]
    for i in range(n):
        for e in range(factors.diagonal[i] + 1, factors.starts[i + 1]):
            y[factors.column[e]] -= values[e] * y[i]
        y[i] = y[i] * values[factors.diagonal[i]]
    for i in range(n - 1, -1, -1):
        for e in range(factors.starts[i], factors.diagonal[i]):
            y[factors.column[e]] -= values[e] * y[i]
    for i in range(n):
        b[i] = y[factors.ranks[i]]


def factorize_dense(
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


def solve_dense(n: int, matrix: Floats, pivots: Ints, b: Floats) -> None:
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


def solve_dense_transposed(n: int, matrix: Floats, pivots: Ints, b: Floats) -> None:
    """Solve with the transposed dense factors."""
    for i in range(n):
        total = b[i]
        for j in range(i):
            total -= matrix[j * n + i] * b[j]
        b[i] = total / matrix[i * n + i]
    for i in range(n - 1, -1, -1):
        total = b[i]
        for j in range(i + 1, n):
            total -= matrix[j * n + i] * b[j]
        b[i] = total
    for j in range(n - 1, -1, -1):
        if pivots[j] != j:
            held = b[j]
            b[j] = b[pivots[j]]
            b[pivots[j]] = held
