"""Which block stands in which column: signals flow to the right, except where a loop closes."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import networkx as nx


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
