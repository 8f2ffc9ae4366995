"""Where factors of ``d I - J`` have entries, sparse or in blocks of states, once for a diagram."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


_SIZES = (1, 2, 3, 4, 6)  # of tiles, of which the cheapest is taken
_ALIKE = 0.6  # share of the states on which two depend that both do, from which on they are alike
#: What an operation on a tile costs besides its products, in products.
_OVERHEAD = 8
#: How many of them cost as much as a product of sparse factors, for which three places are read.
_CHEAPER = 2.0


@dataclass(frozen=True)
class BlockFactors:
    """Where the entries of factors in blocks are; kernels of `parts.blocks` use them.

    States that change with nothing but one other state are expressed by that. The others are put
    into blocks of states that depend on about the same states, as those of one body do, without a
    word from the body. All blocks have the same size, and those with fewer states are filled up
    with places of no meaning.

    Blocks are numbered in the order of elimination. The tiles on the diagonal come first. Behind
    them are two for each pair of blocks that depend on each other, sorted by the one that is
    eliminated first: that in its rows, and that in its columns.
    """

    size: int  # rows and columns of a tile
    count: int  # number of blocks
    kept: int  # number of states in blocks
    expressed: int  # number of states that are expressed by those
    # states, places: the states in blocks, and their places: those of all blocks, one after the
    # other.
    states: tuple[int, ...]
    places: tuple[int, ...]
    # positions, followed: the states that are expressed, and the places of the states by which they
    # are.
    positions: tuple[int, ...]
    followed: tuple[int, ...]
    # For every place the entry of the Jacobian by which a state is expressed by the one there;
    # where there is none, here and below, the number of entries.
    links: tuple[int, ...]
    starts: tuple[int, ...]  # where the pairs of each block begin; one more entry than blocks
    others: tuple[int, ...]  # the other block of each pair, ascending for each block
    # direct, through: for every place in every tile the entry of the Jacobian there, and that in
    # the same row by the state that is expressed by the one of the column.
    direct: tuple[int, ...]
    through: tuple[int, ...]
    columns: tuple[int, ...]  # for every tile the first place of its columns
    # The tiles that the eliminations change: for each block, each of its pairs, and each of these,
    # that in the rows of the first other block and the columns of the second.
    targets: tuple[int, ...]
    products: int  # number of multiplications in a factorization

    @property
    def cost(self) -> float:
        """Cost of a factorization, in products of sparse factors."""
        operations = self.products / self.size**3
        return (self.products + _OVERHEAD * operations) / _CHEAPER


def find_block_factors(
    n: int, rows: Indices, columns: Indices, factors: SparseFactors | None
) -> BlockFactors | None:
    """Return factors in blocks for a Jacobian with entries at these places.

    None where the sparse factors that were found are cheaper, or short enough for code of their
    own; and where dense factors are as fast.
    """
    if factors is None or factors.is_short:
        return None
    found = cheapest_blocks(n, rows, columns)
    return found if found is not None and found.cost < factors.products else None


def cheapest_blocks(n: int, rows: Indices, columns: Indices) -> BlockFactors | None:
    """Return the cheapest factors in blocks, None where entries come twice."""
    entries = {
        place: e for e, place in enumerate(zip(rows.tolist(), columns.tolist(), strict=True))
    }
    if len(entries) < len(rows):
        return None
    links = _links(n, entries)
    near = _dependent(n, entries, {link.position: link.state for link in links})
    found = [_factors(size, entries, links, near) for size in _SIZES]
    return min(found, key=lambda each: each.cost)


class _Link(NamedTuple):
    """A state that is expressed by another one, and the entry of the Jacobian by which it is."""

    position: int
    state: int
    entry: int


def _links(n: int, entries: Mapping[tuple[int, int], int]) -> list[_Link]:
    """Find states that are expressed, each by another one that is not and has no second one."""
    in_row: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for (i, j), e in entries.items():
        in_row[i].append((j, e))
    found: dict[int, _Link] = {}  # by the other state
    expressed: set[int] = set()
    for i, row in enumerate(in_row):
        if len(row) == 1 and i not in found:
            ((j, e),) = row
            if j != i and j not in found and j not in expressed:
                found[j] = _Link(i, j, e)
                expressed.add(i)
    return list(found.values())


def _dependent(
    n: int, entries: Iterable[tuple[int, int]], followed: Mapping[int, int]
) -> dict[int, set[int]]:
    """Return for each state that is not expressed those which depend on it, or on which it does."""
    near: dict[int, set[int]] = {i: {i} for i in range(n) if i not in followed}
    for i, j in entries:
        if i not in followed:
            other = followed.get(j, j)
            near[i].add(other)
            near[other].add(i)
    return near


def _factors(
    size: int,
    entries: Mapping[tuple[int, int], int],
    links: Sequence[_Link],
    near: Mapping[int, set[int]],
) -> BlockFactors:
    """Return the factors with blocks of up to so many states."""
    blocks = _blocks(size, near)
    block_of = {state: k for k, block in enumerate(blocks) for state in block}
    beside = [{block_of[j] for i in block for j in near[i]} - {k} for k, block in enumerate(blocks)]
    order, behind = _eliminate_blocks(beside)
    rank = {k: position for position, k in enumerate(order)}
    pairs = {
        (rank[k], other): None
        for k, others in zip(order, behind, strict=True)
        for other in sorted(rank[each] for each in others)
    }
    count, area = len(blocks), size * size
    tile_of = {(k, k): k for k in range(count)}
    for e, (k, other) in enumerate(pairs):
        tile_of[k, other] = count + 2 * e
        tile_of[other, k] = count + 2 * e + 1
    starts = np.cumsum([0, *(len(others) for others in behind)]).tolist()
    others = [other for _, other in pairs]
    targets = [
        tile_of[a, b]
        for k in range(count)
        for a in others[starts[k] : starts[k + 1]]
        for b in others[starts[k] : starts[k + 1]]
    ]
    place_of = {
        state: rank[k] * size + i for k, block in enumerate(blocks) for i, state in enumerate(block)
    }
    missing = len(entries)
    linked = [missing] * (count * size)
    for link in links:
        linked[place_of[link.state]] = link.entry
    direct, through = ([missing] * (len(tile_of) * area) for _ in range(2))
    followed = {link.position: link.state for link in links}
    for (i, j), e in entries.items():
        if i not in followed:
            row, column = place_of[i], place_of[followed.get(j, j)]
            tile = tile_of[row // size, column // size]
            table = through if j in followed else direct
            table[tile * area + row % size * size + column % size] = e
    return BlockFactors(
        size=size,
        count=count,
        kept=len(place_of),
        expressed=len(links),
        states=tuple(place_of),
        places=tuple(place_of.values()),
        positions=tuple(link.position for link in links),
        followed=tuple(place_of[link.state] for link in links),
        links=tuple(linked),
        starts=tuple(starts),
        others=tuple(others),
        direct=tuple(direct),
        through=tuple(through),
        columns=tuple(size * column for _, column in tile_of),
        targets=tuple(targets),
        products=size**3 * (count + len(pairs) + len(targets)),
    )


def _blocks(size: int, near: Mapping[int, set[int]]) -> list[list[int]]:
    """Put states that depend on each other, and on about the same states, into blocks."""
    blocks: list[list[int]] = []
    free = set(near)
    for state, own in near.items():
        if state not in free:
            continue
        others = [
            (-len(own & near[each]) / len(own | near[each]), each)
            for each in own & free
            if each != state
        ]
        alike = sorted((share, each) for share, each in others if share <= -_ALIKE)
        block = sorted([state, *(each for _, each in alike[: size - 1])])
        free.difference_update(block)
        blocks.append(block)
    return blocks


def _eliminate_blocks(beside: Sequence[set[int]]) -> tuple[list[int], list[set[int]]]:
    """Eliminate all blocks, one after the other; return the order, and on which each then depends.

    That with the fewest others is always next, and of those that which waits for the fewest before
    it: so neighbors in the order do not wait for each other, where that is possible.
    """
    left = [set(others) for others in beside]
    height = [0] * len(left)
    gone = [False] * len(left)
    queue = [(len(others), 0, k) for k, others in enumerate(left)]
    heapq.heapify(queue)
    order: list[int] = []
    while queue:
        degree, high, k = heapq.heappop(queue)
        if gone[k] or (degree, high) != (len(left[k]), height[k]):
            continue
        gone[k] = True
        order.append(k)
        for other in left[k]:
            left[other] |= left[k]
            left[other] -= {k, other}
            height[other] = max(height[other], high + 1)
            heapq.heappush(queue, (len(left[other]), height[other], other))
    order.sort(key=height.__getitem__)  # those that wait for a block are higher than it
    return order, [left[k] for k in order]
