"""Straightening of wires as far as the order of nodes allows, by minimum cuts.

The strain of a drawing, the weighted sum of the vertical extents of its wires, is a discrete convex
function of the heights of all nodes (L-natural convex), and depends on differences only. A minimum
of such a function is reached as soon as no set of nodes can be moved down by one step of the grid
to advantage (moving the others up would be the same); and the best such set is a minimum cut of a
graph. See K. Murota, Discrete Convex Analysis, SIAM 2003, chapter 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from flexure.diagrams.drawing.arrangement.node_columns import GRID, Node, NodeColumns, gap_between

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
