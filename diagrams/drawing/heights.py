"""The vertical position of nodes: such that wires are straight and nothing overlaps."""

from __future__ import annotations

from itertools import pairwise

from flexure.diagrams.drawing.columns import Columns, Node, gap_between
from flexure.diagrams.drawing.tensions import Tension, minimize_strain, strain_of

_SWEEPS = 6
#: Weight of a wire by the number of its ends that pass a column: long wires become straight.
_WEIGHTS = (200, 100, 2000)
#: Weight of the distance between a wire that turns back and the block where it turns.
_TURN = 10
#: Weight of the distance between adjacent nodes of a column, small against any wire.
_COHESION = 1

#: A wish of a node: a vertical position and its weight.
_Wish = tuple[int, int]


def assign_heights(columns: Columns, top: int = 0) -> None:
    """Set ``y`` of every node, from ``top`` downwards, in the given order of each column.

    What becomes small is the sum of the lengths of all vertical pieces of wire, with weights.
    Sweeps through the columns come near to the minimum, and `minimize_strain` goes there.
    """
    tensions = _tensions(columns)
    for column in columns:
        _spread(column, [[] for _ in column])
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


def _heights(columns: Columns) -> dict[Node, int]:
    return {node: node.y for column in columns for node in column}


def _tensions(columns: Columns) -> list[Tension]:
    """Return what the wires between adjacent columns, and those that turn back, demand.

    Wires on the longest chains of blocks weigh up to four times as much as others: the main line of a
    diagram becomes straight, and what joins it from the side gives way.
    """
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
    for node in before:
        for k, (other, offset, other_offset) in enumerate(node.rights):
            weight = _WEIGHTS[node.is_wire + other.is_wire]
            weight += 3 * weight * (before[node] + after[other]) ** 2 // longest**2
            weight += weight // 8 if k == 0 else 0  # one straight wire rather than two bent ones
            tensions.append(Tension(node, other, other_offset - offset, weight))
        tensions += [Tension(node, owner, owner.height, _TURN) for owner in node.turns]
    for column in columns:
        for upper, lower in pairwise(column):
            distance = upper.height + gap_between(upper, lower)
            tensions.append(Tension(lower, upper, distance, _COHESION))
    return tensions


def _sweep(columns: Columns, tensions: list[Tension], backwards: bool) -> None:
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
    """Place the nodes of a column as their wishes say, in order and with the gaps between them.

    This is a weighted isotonic regression in the absolute value. Adjacent nodes whose wishes are
    in conflict are merged into a block, which then stands at the weighted median of all of its
    wishes (pool adjacent violators). Medians, unlike means, bring wires exactly in line.
    """
    offsets = [0]
    for upper, lower in pairwise(column):
        offsets.append(offsets[-1] + upper.height + gap_between(upper, lower))
    blocks: list[tuple[int, int, list[_Wish]]] = []
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


def _median(wishes: list[_Wish]) -> int:
    """Return the lower weighted median of sorted wishes; 0 without any."""
    total = sum(weight for _, weight in wishes)
    passed = 0
    for position, weight in wishes:
        passed += weight
        if 2 * passed >= total:
            return position
    return 0
