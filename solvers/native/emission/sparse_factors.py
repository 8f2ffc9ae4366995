"""Where the sparse factors of ``d I - J`` have entries, found once for a diagram."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

_FEW = 32  # states, and
_SHORT = 1500  # products, up to which code for one diagram is worth its translation
_FULL = 0.5  # share of the products of a dense factorization, beyond which that is as fast
_DENSE = 0.8  # share of entries, from which on that does not need to be counted


@dataclass(frozen=True)
class SparseFactors:
    """Where the entries of the factors are, row by row in the order of elimination."""

    starts: tuple[int, ...]  # where the rows begin, and where the last one ends
    diagonal: tuple[int, ...]  # where the diagonal entries are
    column: tuple[int, ...]  # the column of every entry, ascending in each row
    nonzeros: int  # number of entries of the Jacobian
    slots: tuple[int, ...]  # where the entries of the Jacobian are
    ranks: tuple[int, ...]  # position of every state in the order of elimination
    pairs: int  # number of entries left of the diagonal with a counterpart across it
    # lower, upper: where these are, and where their counterparts are.
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    products: int  # number of multiplications in a factorization

    @property
    def name(self) -> str:
        """A name for it in code."""
        return f"{self.nonzeros}_of_{len(self.ranks)}"

    @property
    def is_short(self) -> bool:
        """Whether code for these places alone is worth its translation."""
        return len(self.ranks) <= _FEW and self.products <= _SHORT


def find_sparse_factors(n: int, rows: Indices, columns: Indices) -> SparseFactors | None:
    """Return the factors for a Jacobian with entries at these places, or None if dense is better.

    Always that state is eliminated next which costs the fewest products.
    """
    if n > _FEW and len(rows) > _DENSE * n * n:
        return None
    eliminated = _eliminate(n, rows.tolist(), columns.tolist())
    if eliminated is None:
        return None
    order, below, beside, products = eliminated
    ranks = np.empty(n, dtype=np.int64)
    ranks[order] = np.arange(n)
    filled: list[list[int]] = [[i] for i in range(n)]
    for k, (others, following) in enumerate(zip(below, beside, strict=True)):
        filled[k] += ranks[following].tolist()
        for i in ranks[others].tolist():
            filled[i].append(k)
    starts = np.cumsum([0, *map(len, filled)], dtype=np.int64)
    column = np.concatenate([np.sort(np.array(row, dtype=np.int64)) for row in filled])
    row = np.repeat(np.arange(n), np.diff(starts))
    keys = row * n + column  # ascending
    lower = np.flatnonzero(column < row)
    lower = lower[np.isin(column[lower] * n + row[lower], keys)]
    return SparseFactors(
        starts=tuple(starts.tolist()),
        diagonal=tuple(np.searchsorted(keys, np.arange(n) * (n + 1)).tolist()),
        column=tuple(column.tolist()),
        nonzeros=len(rows),
        slots=tuple(np.searchsorted(keys, ranks[rows] * n + ranks[columns]).tolist()),
        ranks=tuple(ranks.tolist()),
        pairs=len(lower),
        lower=tuple(lower.tolist()),
        upper=tuple(np.searchsorted(keys, column[lower] * n + row[lower]).tolist()),
        products=products,
    )


def _eliminate(
    n: int, rows: list[int], columns: list[int]
) -> tuple[list[int], list[list[int]], list[list[int]], int] | None:
    """Eliminate all states one after the other."""
    # Return the order; the rows, and the columns, in which each state has entries at its turn; and
    # the number of products. None if the factors are full, and not short either.
    in_column: list[set[int]] = [set() for _ in range(n)]  # rows with entries
    in_row: list[set[int]] = [set() for _ in range(n)]  # columns with entries
    for i, j in zip(rows, columns, strict=True):
        if i != j:
            in_column[j].add(i)
            in_row[i].add(j)
    queue = [(len(in_column[k]) * len(in_row[k]), k) for k in range(n)]
    heapq.heapify(queue)
    gone = [False] * n
    order: list[int] = []
    below: list[list[int]] = []
    beside: list[list[int]] = []
    products, most = 0, _FULL * n**3 / 3.0
    while queue:
        cost, k = heapq.heappop(queue)
        if gone[k] or cost != len(in_column[k]) * len(in_row[k]):
            continue
        gone[k] = True
        others, following = in_column[k], in_row[k]
        order.append(k)
        below.append(sorted(others))
        beside.append(sorted(following))
        products += cost + len(others) + len(following)
        if products > most and (products > _SHORT or n > _FEW):
            return None
        for i in others:
            in_row[i].discard(k)
            in_row[i] |= following
            in_row[i].discard(i)
        for j in following:
            in_column[j].discard(k)
            in_column[j] |= others
            in_column[j].discard(j)
        for i in others | following:
            heapq.heappush(queue, (len(in_column[i]) * len(in_row[i]), i))
    return order, below, beside, products
