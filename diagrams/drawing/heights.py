"""The vertical position of nodes: such that wires are straight and nothing overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from flexure.diagrams.drawing.columns import GRID, Columns, Node, Strand

_SWEEPS = 8
#: Pull on a node towards where it is, small against the pull of any wire.
_INERTIA = 0.01

#: A wish of a node: a vertical position and its weight.
_Wish = tuple[float, float]


def assign_heights(columns: Columns, top: float = 0.0) -> None:
    """Set ``y`` of every node, from ``top`` downwards, in the given order of each column.

    A sweep takes one column after the other and moves its nodes to where the sum of the lengths of
    all vertical pieces of wire to the neighbors is smallest: a weighted isotonic regression in the
    absolute value. Medians, unlike means, bring wires exactly in line and stay on the grid.
    """
    for column in columns:
        _spread(column, [[] for _ in column])
    best, shortest = _heights(columns), _vertical_length(columns)
    for sweep in range(2 * _SWEEPS):
        backwards = sweep % 2 == 1
        settle = sweep >= _SWEEPS
        for column in reversed(columns.columns) if backwards else columns:
            _spread(column, [_wishes(node, backwards, settle) for node in column])
        length = _vertical_length(columns)
        if length < shortest:
            best, shortest = _heights(columns), length
    shift = top - min(best.values())
    for node, y in best.items():
        node.y = y + shift


def gap_between(upper: Node, lower: Node) -> float:
    """Return the smallest distance between two adjacent nodes of a column."""
    return (3 - upper.is_wire - lower.is_wire) * GRID


def _heights(columns: Columns) -> dict[Node, float]:
    return {node: node.y for column in columns for node in column}


def _vertical_length(columns: Columns) -> float:
    """Weigh and add up the vertical pieces of all wires."""
    return sum(
        strand.weight * abs(_wish(strand)[0] - node.y)
        for column in columns
        for node in column
        for strand in node.rights
    ) + sum(node.y - owner.bottom for column in columns for node in column for owner in node.above)


def _wish(strand: Strand) -> _Wish:
    """Return the position of a node that makes one of its strands straight."""
    return strand.other.y + strand.other_offset - strand.offset, strand.weight


def _wishes(node: Node, backwards: bool, settle: bool) -> list[_Wish]:
    """Return where a node would like to be.

    While the columns are not settled, only the neighbors that were placed before in this sweep
    count, so that whole rows can move.
    """
    strands: Sequence[Strand] = node.rights if backwards else node.lefts
    if settle:
        strands = [*node.lefts, *node.rights]
    wishes = [_wish(strand) for strand in strands]
    wishes.extend((owner.bottom + gap_between(owner, node), 1.0) for owner in node.above)
    wishes.append((node.y, _INERTIA))
    return wishes


def _spread(column: list[Node], wishes: list[list[_Wish]]) -> None:
    """Place the nodes of a column as their wishes say, in order and with the gaps between them.

    Adjacent nodes whose wishes are in conflict are merged into a block, which then stands at the
    weighted median of all of its wishes (pool adjacent violators).
    """
    offsets = [0.0]
    for upper, lower in zip(column, column[1:], strict=False):
        offsets.append(offsets[-1] + upper.height + gap_between(upper, lower))
    blocks: list[tuple[float, int, list[_Wish]]] = []
    for offset, own in zip(offsets, wishes, strict=True):
        merged = sorted((position - offset, weight) for position, weight in own)
        level, count = _median(merged), 1
        while blocks and blocks[-1][0] > level:
            _, earlier, others = blocks.pop()
            merged = sorted([*others, *merged])
            level, count = _median(merged), count + earlier
        blocks.append((level, count, merged))
    levels = [level for level, count, _ in blocks for _ in range(count)]
    for node, offset, level in zip(column, offsets, levels, strict=True):
        node.y = level + offset


def _median(wishes: list[_Wish]) -> float:
    """Return the lower weighted median of sorted wishes; 0 without any."""
    half = sum(weight for _, weight in wishes) / 2.0
    passed = 0.0
    for position, weight in wishes:
        passed += weight
        if passed >= half:
            return position
    return 0.0
