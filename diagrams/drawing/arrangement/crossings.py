"""The columns of blocks along the flow of signals, and the order of nodes: few wires cross."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from heapq import heapify, heappop, heappush

import networkx as nx

from flexure.diagrams.drawing.arrangement.node_columns import Node, NodeColumns, Strand


def flow_order(graph: nx.DiGraph) -> list[int]:
    """Order the nodes so that few edges lead back.

    Nodes, which are integers, follow their predecessors. Where only loops remain, the loop is
    entered at a node that was reached already, such as the error sum behind its reference, and
    among several at the smallest; the edges that close the loop there lead back.

    >>> import networkx as nx
    >>> flow_order(nx.DiGraph([(2, 1), (1, 0), (0, 1)]))
    [2, 1, 0]
    """
    components = nx.strongly_connected_components(graph)
    loop = {node: k for k, members in enumerate(components) for node in members}
    missing = {v: sum(u != v for u in graph.pred[v]) for v in graph}
    outside = {v: sum(loop[u] != loop[v] for u in graph.pred[v]) for v in graph}
    ready = [v for v in graph if missing[v] == 0]
    entries = [(True, v) for v in graph if missing[v] > 0 and outside[v] == 0]
    heapify(ready)
    heapify(entries)
    order: dict[int, None] = {}
    while ready or entries:
        v = heappop(ready) if ready else heappop(entries)[1]
        if v in order:
            continue
        order[v] = None
        for w in graph.succ[v]:
            if w in order:
                continue
            missing[w] -= 1
            outside[w] -= loop[w] != loop[v]
            if missing[w] == 0:
                heappush(ready, w)
            elif outside[w] == 0:
                heappush(entries, (False, w))
    return list(order)


def assign_layers(graph: nx.DiGraph) -> dict[int, int]:
    """Return the layer of each node, counted from 0 at the left.

    Every edge along the flow order leads at least one layer to the right. A node stands as far
    left as that allows, or as far right when that makes the edges shorter: sources stand next to
    what they feed.

    >>> import networkx as nx
    >>> target, error, plant, disturbance = range(4)
    >>> graph = nx.DiGraph([(target, error), (error, plant), (plant, error), (disturbance, plant)])
    >>> sorted(assign_layers(graph).items())
    [(0, 0), (1, 1), (2, 2), (3, 1)]
    """
    order = flow_order(graph)
    rank = {node: k for k, node in enumerate(order)}
    before = {v: [u for u in graph.pred[v] if rank[u] < rank[v]] for v in order}
    after = {v: [w for w in graph.succ[v] if rank[w] > rank[v]] for v in order}
    layer: dict[int, int] = {}
    for v in order:
        layer[v] = max((layer[u] + 1 for u in before[v]), default=0)
    for v in reversed(order):
        if after[v] and len(before[v]) <= len(after[v]):
            layer[v] = min(layer[w] for w in after[v]) - 1
    return layer


_SWEEPS = 12
#: Sweeps without gain after which no more are made.
_PATIENCE = 4


def reduce_crossings(columns: NodeColumns) -> None:
    """Sort the nodes of every column.

    Sweeps through the columns, to the right and back, put each node at the mean position of its
    neighbors and then swap adjacent nodes where this removes crossings. The best order seen stays.
    """
    best, fewest = _places(columns), count_crossings(columns)
    vain = 0
    for sweep in range(_SWEEPS):
        to_the_right = sweep % 2 == 0
        for column in columns if to_the_right else reversed(columns.columns):
            _sort(column, to_the_right)
        for column in columns:
            _swap_neighbors(column)
        crossings = count_crossings(columns)
        vain = 0 if crossings < fewest else vain + 1
        if crossings <= fewest:
            best, fewest = _places(columns), crossings
        if vain == _PATIENCE:
            break
    for column in columns:
        column.sort(key=best.__getitem__)
        _number(column)


def count_crossings(columns: NodeColumns) -> int:
    """Return the number of crossings between adjacent columns, for nodes at their places.

    A wire that turns back beside a column crosses every wire between its two ends there.
    """
    total = 0
    for column in columns:
        ends: list[float] = []
        for node in column:
            for strand in sorted(node.rights, key=lambda s: (s.offset, _end(s))):
                total += len(ends) - bisect_right(ends, _end(strand))
                insort(ends, _end(strand))
        for strands, turns in (("lefts", "turns_left"), ("rights", "turns_right")):
            starts = sorted(_start(node, s) for node in column for s in getattr(node, strands))
            for node in column:
                for owner in getattr(node, turns):
                    first = bisect_right(starts, owner.place + 1)
                    total += bisect_left(starts, node.place) - first
    return total


def _places(columns: NodeColumns) -> dict[Node, int]:
    """Return the place of every node."""
    return {node: node.place for column in columns for node in column}


def _number(column: list[Node]) -> None:
    """Write the place of each node of a column into the node."""
    for place, node in enumerate(column):
        node.place = place


def _start(node: Node, strand: Strand) -> float:
    """Position of the near end of a strand, in places from the top of the column."""
    return node.place + (strand.offset / node.height if node.height else 0.5)


def _end(strand: Strand) -> float:
    """Position of the far end of a strand, in places from the top of its column."""
    other = strand.other
    return other.place + (strand.other_offset / other.height if other.height else 0.5)


def _sort(column: list[Node], to_the_right: bool) -> None:
    """Sort a column by the mean position of the neighbors in the column before it."""
    keys: dict[Node, tuple[float, int]] = {}
    for node in sorted(column, key=lambda node: node.is_wire):
        strands = node.lefts if to_the_right else node.rights
        ends = [_end(strand) for strand in strands] + [keys[owner][0] for owner in node.turns]
        middle = sum(ends) / len(ends) if ends else float(node.place)
        keys[node] = max([(middle, 0), *((keys[owner][0], 1) for owner in node.above)])
    column.sort(key=keys.__getitem__)
    _number(column)


def _swap_neighbors(column: list[Node]) -> None:
    """Swap adjacent nodes while this removes crossings, at most once per pair and direction."""
    for places in (range(len(column) - 1), range(len(column) - 2, -1, -1)):
        for k in places:
            upper, lower = column[k], column[k + 1]
            if upper not in lower.above and _inversions(upper, lower) > _inversions(lower, upper):
                column[k : k + 2] = lower, upper
                lower.place, upper.place = k, k + 1


def _inversions(upper: Node, lower: Node) -> int:
    """Count the crossings between the wires of two nodes when one is above the other."""
    total = 0
    for strands, turns in (("lefts", "turns_left"), ("rights", "turns_right")):
        above, below = getattr(upper, strands), getattr(lower, strands)
        if len(above) == len(below) == 1:  # by far the most frequent case
            total += _end(below[0]) < _end(above[0])
        elif above and below:
            ends = sorted(map(_end, below))
            total += sum(bisect_left(ends, _end(strand)) for strand in above)
        owners = getattr(upper, turns)
        for owner in getattr(lower, turns):
            total += len(above) + sum(other.place < owner.place for other in owners)
    return total
