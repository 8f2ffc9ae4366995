"""The vertical position of nodes: such that wires are straight and nothing overlaps."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from itertools import pairwise

from flexure.diagrams.drawing.arrangement.node_columns import GRID, Node, NodeColumns, gap_between
from flexure.diagrams.drawing.arrangement.wire_straightening import (
    Tension,
    minimize_strain,
    strain_of,
)

_SWEEPS = 6
#: Weight of a wire by the number of its ends that pass a column: long wires become straight.
_WEIGHTS = (200, 100, 2000)
#: Weight of the distance between a wire that turns back and the block where it turns.
_TURN = 10
#: Weight of the distance between adjacent nodes of a column, small against any wire.
_COHESION = 1

#: A wish of a node: a vertical position and its weight.
_Wish = tuple[int, int]


def assign_heights(columns: NodeColumns, top: int = 0) -> None:
    """Set ``y`` of every node, from ``top`` downwards, in the given order of each column.

    It minimizes the weighted sum of the lengths of all vertical pieces of wire. Sweeps through the
    columns come near to the minimum, and `minimize_strain` goes there.
    """
    tensions = _tensions(columns)
    for column in columns:
        _spread(column, [[(0, 1)] for _ in column])
    best, least = _heights(columns), strain_of(tensions)
    for sweep in range(_SWEEPS):
        _sweep(columns, tensions, backwards=sweep % 2 == 1)
        strain = strain_of(tensions)
        if strain < least:
            best, least = _heights(columns), strain
    for node, y in best.items():
        node.y = y
    minimize_strain(columns, tensions)
    shift = top - min(node.y for node in best)
    for node in best:
        node.y += shift
    _assign_lanes(columns, max(node.bottom for node in best) + GRID)


def _assign_lanes(columns: NodeColumns, top: int) -> None:
    """Set the heights of the lanes of far wires, below everything else; lanes are shared."""
    free: list[tuple[int, int]] = []
    for first, last, net in sorted(columns.far_nets(), key=lambda found: found[:2]):
        lane = heapreplace(free, (last, free[0][1]))[1] if free and free[0][0] < first else None
        if lane is None:
            lane = top + GRID * len(free)
            heappush(free, (last, lane))
        net.lane = lane


def _heights(columns: NodeColumns) -> dict[Node, int]:
    """Return the height of every node."""
    return {node: node.y for column in columns for node in column}


def _tensions(columns: NodeColumns) -> list[Tension]:
    """Return what the wires between adjacent columns, and those that turn back, demand."""
    # Wires on the longest chains of blocks weigh up to four times as much as others: the main line
    # of a diagram becomes straight, and what joins it from the side gives way.
    before: dict[Node, int] = {}
    after: dict[Node, int] = {}
    for column in columns:
        for node in column:
            counts = [before[strand.other] for strand in node.lefts]
            before[node] = max(counts, default=0) + (not node.is_wire)
    for column in reversed(columns.columns):
        for node in column:
            counts = [after[strand.other] for strand in node.rights]
            after[node] = max(counts, default=0) + (not node.is_wire)
    longest = max(before.values())
    tensions: list[Tension] = []
    for node, count in before.items():
        for k, (other, offset, other_offset) in enumerate(node.rights):
            weight = _WEIGHTS[node.is_wire + other.is_wire]
            weight += 3 * weight * (count + after[other]) ** 2 // longest**2
            weight += weight // 8 if k == 0 else 0  # one straight wire rather than two bent ones
            tensions.append(Tension(node, other, other_offset - offset, weight))
        tensions += [Tension(node, owner, owner.height, _TURN) for owner in node.turns]
    for column in columns:
        for upper, lower in pairwise(column):
            distance = upper.height + gap_between(upper, lower)
            tensions.append(Tension(lower, upper, distance, _COHESION))
    return tensions


def _sweep(columns: NodeColumns, tensions: list[Tension], backwards: bool) -> None:
    """Move the nodes of one column after the other towards the columns moved before."""
    pulls: dict[Node, list[Tension]] = {}
    for tension in tensions:
        one, two, shift, weight = tension
        if backwards or one.layer == two.layer:
            pulls.setdefault(one, []).append(tension)
        else:
            pulls.setdefault(two, []).append(Tension(two, one, -shift, weight))
    for column in reversed(columns.columns) if backwards else columns:
        wishes = [
            [(t.two.y + t.shift, t.weight) for t in pulls.get(node, ())] or [(node.y, _COHESION)]
            for node in column
        ]
        _spread(column, wishes)


def _spread(column: list[Node], wishes: list[list[_Wish]]) -> None:
    """Place the nodes of a column as their wishes say, in order and with the gaps between them."""
    # This is an isotonic regression in the weighted absolute value. ``slopes`` holds the positions
    # at which the slope of the best value so far, as a function of the last position, changes, and
    # by how much; the last slope is zero. Results are medians of wishes: unlike means, they bring
    # wires exactly in line.
    offsets = [0]
    for upper, lower in pairwise(column):
        offsets.append(offsets[-1] + upper.height + gap_between(upper, lower))
    slopes: list[tuple[int, int]] = []
    levels: list[int] = []
    for offset, own in zip(offsets, wishes, strict=True):
        excess = 0
        for position, weight in own:
            heappush(slopes, (offset - position, 2 * weight))
            excess += weight
        while excess > 0:
            level, change = heappop(slopes)
            if change > excess:
                heappush(slopes, (level, change - excess))
            excess -= change
        levels.append(-slopes[0][0])
    level = levels[-1]
    for node, offset, own_level in reversed([*zip(column, offsets, levels, strict=True)]):
        level = min(level, own_level)
        node.y = level + offset
