"""The vertical position of nodes: such that wires are straight and nothing overlaps.

The strain of a drawing, the weighted sum of the vertical extents of its wires, is a discrete convex
function of the heights of all nodes (L-natural convex), and depends on differences only. A minimum
of such a function is reached as soon as no set of nodes can be moved down by one step of the grid
to advantage (moving the others up would be the same); and the best such set is a minimum cut of a
graph. See K. Murota, Discrete Convex Analysis, SIAM 2003, chapter 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from flexure.diagrams.drawing.arrangement.node_columns import GRID, Node, NodeColumns, gap_between

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


_STEPS = (16 * GRID, 4 * GRID, GRID)
#: Number of cuts times the square of the number of nodes, to which the time of a cut is about
#: proportional. Large drawings are left near the minimum.
_BUDGET = 4_000_000
_FIRM = 1 << 50


class Tension(NamedTuple):
    """The demand ``one.y - two.y == shift``; violations count in proportion to their size."""

    one: Node
    two: Node
    shift: int
    weight: int

    @property
    def excess(self) -> int:
        """By how much the difference is too large."""
        return self.one.y - self.two.y - self.shift


def strain_of(tensions: Sequence[Tension]) -> int:
    """Return the weighted sum of all violations."""
    return sum(tension.weight * abs(tension.excess) for tension in tensions)


def minimize_strain(columns: NodeColumns, tensions: Sequence[Tension]) -> None:
    """Move nodes to where the strain is least, in long steps first, then in short ones."""
    nodes = [node for column in columns for node in column]
    cuts = _BUDGET // len(nodes) ** 2
    for step in _STEPS:
        while cuts > 0:
            cuts -= 1
            chosen = _best_set(columns, nodes, tensions, step)
            for node in chosen:
                node.y += step
            if not chosen:
                break


def _best_set(
    columns: NodeColumns, nodes: Sequence[Node], tensions: Sequence[Tension], step: int
) -> list[Node]:
    """Return the nodes whose move down by one step reduces the strain most, if there are any."""
    # In the graph, a cut separates the nodes that stay (at the side of ``stay``) from those that
    # move (at the side of ``go``), and its capacity is the change of the strain plus a constant.
    index = {node: k for k, node in enumerate(nodes)}
    stay, go = len(nodes), len(nodes) + 1
    gains = [0] * len(nodes)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(nodes) + 2))

    def tie(staying: int, moving: int, capacity: int) -> None:
        known = graph.get_edge_data(staying, moving, {"capacity": 0})["capacity"]
        graph.add_edge(staying, moving, capacity=known + capacity)

    for tension in tensions:
        one, two = index[tension.one], index[tension.two]
        now = abs(tension.excess)
        if_one = tension.weight * (abs(tension.excess + step) - now)
        if_two = tension.weight * (abs(tension.excess - step) - now)
        gains[one] -= if_one
        gains[two] += if_one
        if if_one + if_two:
            tie(one, two, if_one + if_two)
    for column in columns:
        for upper, lower in pairwise(column):
            if lower.y - upper.bottom - gap_between(upper, lower) < step:
                tie(index[lower], index[upper], _FIRM)
    for k, gain in enumerate(gains):
        if gain > 0:
            tie(k, go, gain)
        elif gain < 0:
            tie(stay, k, -gain)
    capacity, (_, moving) = nx.minimum_cut(
        graph, stay, go, flow_func=nx.algorithms.flow.boykov_kolmogorov
    )
    if capacity >= sum(gain for gain in gains if gain > 0):
        return []
    return [nodes[k] for k in sorted(moving) if k != go]
