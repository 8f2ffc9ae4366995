"""The vertical position of nodes: such that wires are straight and nothing overlaps."""

from __future__ import annotations

from typing import NamedTuple

from flexure.diagrams.drawing.columns import GRID, Columns, Node, Strand

_SWEEPS = 8
#: How much wires weigh by the number of their ends that pass a column: long ones become straight.
_WEIGHTS = (2.0, 1.0, 8.0)
#: Pull on a wire that turns back towards the block where it turns.
_TURN = 0.1
#: Pull on a node towards where it is, small against the pull of any wire.
_INERTIA = 0.01

#: A wish of a node: a vertical position and its weight.
_Wish = tuple[float, float]


class _Pull(NamedTuple):
    """A wire that pulls a node to the height of another node plus a shift."""

    other: Node
    shift: float
    weight: float

    def wish(self) -> _Wish:
        return self.other.y + self.shift, self.weight


def assign_heights(columns: Columns, top: float = 0.0) -> None:
    """Set ``y`` of every node, from ``top`` downwards, in the given order of each column.

    A sweep takes one column after the other and moves its nodes to where the sum of the lengths of
    all vertical pieces of wire to the neighbors is smallest: a weighted isotonic regression in the
    absolute value. Medians, unlike means, bring wires exactly in line and stay on the grid.
    """
    lefts, rights = _pulls(columns)
    for column in columns:
        _spread(column, [[] for _ in column])
    best, least = _heights(columns), _strain(columns, rights)
    for sweep in range(2 * _SWEEPS):
        backwards = sweep % 2 == 1
        # Until half time, only the neighbors placed before count, so that whole rows can move.
        settled = sweep >= _SWEEPS
        for column in reversed(columns.columns) if backwards else columns:
            wishes: list[list[_Wish]] = []
            for node in column:
                pulls = [*lefts[node], *rights[node]] if settled else (rights if backwards else lefts)[node]
                wishes.append([pull.wish() for pull in pulls])
                wishes[-1] += [(o.bottom + gap_between(o, node), _TURN) for o in node.above]
                wishes[-1].append((node.y, _INERTIA))
            _spread(column, wishes)
        strain = _strain(columns, rights)
        if strain < least:
            best, least = _heights(columns), strain
    shift = top - min(best.values())
    for node, y in best.items():
        node.y = y + shift


def gap_between(upper: Node, lower: Node) -> float:
    """Return the smallest distance between two adjacent nodes of a column."""
    return (3 - upper.is_wire - lower.is_wire) * GRID


def _pulls(columns: Columns) -> tuple[dict[Node, list[_Pull]], dict[Node, list[_Pull]]]:
    """Return the pulls on each node from the left and from the right.

    Wires on the longest chains of blocks weigh up to twice as much as others: the main line of a
    diagram becomes straight, and what joins it from the side gives way.
    """
    before: dict[Node, int] = {}
    after: dict[Node, int] = {}
    for column in columns:
        for node in column:
            before[node] = max((before[s.other] for s in node.lefts), default=0) + (not node.is_wire)
    for column in reversed(columns.columns):
        for node in column:
            after[node] = max((after[s.other] for s in node.rights), default=0) + (not node.is_wire)
    longest = max(before.values())

    def pulls(node: Node, strands: list[Strand], near: dict[Node, int], far: dict[Node, int]) -> list[_Pull]:
        return [
            _Pull(
                strand.other,
                strand.other_offset - strand.offset,
                _WEIGHTS[node.is_wire + strand.other.is_wire]
                * (1.0 + (near[node] + far[strand.other]) / longest),
            )
            for strand in strands
        ]

    nodes = [node for column in columns for node in column]
    return (
        {node: pulls(node, node.lefts, after, before) for node in nodes},
        {node: pulls(node, node.rights, before, after) for node in nodes},
    )


def _heights(columns: Columns) -> dict[Node, float]:
    return {node: node.y for column in columns for node in column}


def _strain(columns: Columns, rights: dict[Node, list[_Pull]]) -> float:
    """Weigh and add up the vertical pieces of all wires."""
    return sum(
        weight * abs(y - node.y)
        for column in columns
        for node in column
        for y, weight in (pull.wish() for pull in rights[node])
    ) + _TURN * sum(
        node.y - owner.bottom for column in columns for node in column for owner in node.above
    )


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
