"""The pattern of the sparse factors of ``d I - J``, found once for a diagram."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

_SMALL = 12  # states, up to which a dense factorization is as fast
_FULL = 0.4  # share of the entries of the factors, beyond which it is


@dataclass(frozen=True)
class Pattern:
    """Where the entries of the factors are, row by row in the order of elimination.

    Attributes
    ----------
    starts : ndarray, shape (n + 1,)
        Where the rows begin.
    diagonal : ndarray, shape (n,)
        Where the diagonal entries are.
    column : ndarray
        The column of every entry, ascending in each row.
    slots : ndarray
        Where the entries of the Jacobian are.
    ranks : ndarray, shape (n,)
        Position of every state in the order of elimination.
    """

    starts: Indices
    diagonal: Indices
    column: Indices
    slots: Indices
    ranks: Indices


def find_pattern(n: int, rows: Indices, columns: Indices) -> Pattern | None:
    """Return the pattern for a Jacobian with entries at these places, or None if dense is better.

    States are eliminated in the order of least degree: always the one that is coupled to the
    fewest others is next.
    """
    if n <= _SMALL:
        return None
    coupled: list[set[int]] = [set() for _ in range(n)]
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        if i != j:
            coupled[i].add(j)
            coupled[j].add(i)
    later = _eliminate(coupled)
    if later is None:
        return None
    order, neighbors = later
    ranks = np.empty(n, dtype=np.int64)
    ranks[order] = np.arange(n)
    filled: list[list[int]] = [[i] for i in range(n)]
    for i, others in zip(order, neighbors, strict=True):
        for j in others:
            filled[ranks[i]].append(int(ranks[j]))
            filled[ranks[j]].append(int(ranks[i]))
    starts = np.cumsum([0, *map(len, filled)], dtype=np.int64)
    column = np.concatenate([np.sort(np.array(row, dtype=np.int64)) for row in filled])
    keys = np.repeat(np.arange(n), np.diff(starts)) * n + column  # ascending
    return Pattern(
        starts=starts,
        diagonal=np.searchsorted(keys, np.arange(n) * (n + 1)).astype(np.int64),
        column=column,
        slots=np.searchsorted(keys, ranks[rows] * n + ranks[columns]).astype(np.int64),
        ranks=ranks,
    )


def _eliminate(coupled: list[set[int]]) -> tuple[list[int], list[list[int]]] | None:
    """Eliminate all states; return the order, and what each was coupled to at its turn.

    None when the factors become too full.
    """
    n = len(coupled)
    queue = [(len(others), i) for i, others in enumerate(coupled)]
    heapq.heapify(queue)
    gone = [False] * n
    order: list[int] = []
    neighbors: list[list[int]] = []
    room = _FULL * n * n
    while queue:
        degree, i = heapq.heappop(queue)
        if gone[i] or degree != len(coupled[i]):
            continue
        gone[i] = True
        order.append(i)
        others = coupled[i]
        neighbors.append(sorted(others))
        room -= 2 * degree + 1
        if room < 0:
            return None
        for j in others:
            coupled[j].discard(i)
            coupled[j] |= others
            coupled[j].discard(j)
        for j in others:
            heapq.heappush(queue, (len(coupled[j]), j))
    return order, neighbors
