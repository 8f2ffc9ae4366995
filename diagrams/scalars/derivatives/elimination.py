"""Matrices of derivatives by elimination: each intermediate result is taken out of the chain once.

Forward, every operation is differentiated by every input behind it. Where many operations stand
between a few inputs and a few outputs, as in the force of a spring, most of that is done again and
again. Here the operations are the nodes of a graph, whose edges are partial derivatives. To
eliminate a node is to lead all paths past it: an edge from a to b through it gets the product of
the two. Always that node is next which costs the fewest products (Markowitz' rule), until there are
edges from inputs to outputs alone: the entries of the matrix.

Derivatives follow the conventions of `flexure.diagrams.scalars.derivatives.differentiation`. Where
the slope of an operation may be infinite, what is behind it is differentiated forward, so that what
does not change has the derivative zero there, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from flexure.diagrams.scalars.derivatives.differentiation import (
    RULES,
    Weight,
    plus,
    tangents_of,
    times,
)
from flexure.diagrams.scalars.expressions.expression import Condition, Symbol, choose
from flexure.diagrams.scalars.expressions.solutions import is_zero

#: Their slopes are infinite somewhere, or depend on what changes there.
_FRAGILE = frozenset(("sqrt", "cbrt", "power", "arcsin", "arccos", "arccosh", "arctanh"))

_Edges = dict[int, dict[int, Weight]]


def eliminate(
    outputs: Sequence[Any], nodes: Sequence[Symbol], starts: Mapping[int, Mapping[int, Weight]]
) -> list[dict[int, Weight]]:
    """Return for each output its derivatives by the numbers of inputs, without those that are zero.

    ``nodes`` are the operations behind the outputs, each after its operands. ``starts`` has, by
    index of the nodes that depend on the inputs directly, their derivatives by the numbers of the
    inputs.
    """
    graph = _Graph(outputs, nodes, starts)
    graph.eliminate_all()
    return graph.entries()


class _Graph:
    """Partial derivatives between nodes. Inputs and outputs have negative numbers."""

    def __init__(
        self,
        outputs: Sequence[Any],
        nodes: Sequence[Symbol],
        starts: Mapping[int, Mapping[int, Weight]],
    ) -> None:
        self._before: _Edges = {}
        self._behind: dict[int, dict[int, None]] = {}
        size = 1 + max((k for each in starts.values() for k in each), default=0)
        self._outputs = [-1 - size - j for j in range(len(outputs))]
        forward = _forward(nodes)
        known = {index: dict(each) for index, each in starts.items()}
        known = tangents_of((node for node in nodes if node.index in forward), known)
        for index, tangent in known.items():
            for k, weight in tangent.items():
                self._add(-1 - k, index, weight)
        for node in nodes:
            if node.index not in forward and node.args and not isinstance(node, Condition):
                self._read(node)
        for number, output in zip(self._outputs, outputs, strict=True):
            if isinstance(output, Symbol) and output.index in self._before:
                self._add(output.index, number, 1.0)

    def _read(self, node: Symbol) -> None:
        """Add the partial derivatives of a node."""
        for operand, rule in zip(node.args, RULES[node.op], strict=True):
            if rule is not None and operand.index in self._before:
                self._add(operand.index, node.index, rule(node, 1.0))

    def _add(self, first: int, last: int, weight: Weight) -> None:
        """Add to an edge."""
        if is_zero(weight):
            return
        edges = self._before.setdefault(last, {})
        edges[first] = plus(edges[first], weight) if first in edges else weight
        self._behind.setdefault(first, {})[last] = None

    def _cost(self, node: int) -> int:
        return len(self._before[node]) * len(self._behind.get(node, ()))

    def eliminate_all(self) -> None:
        """Leave edges from inputs to outputs alone."""
        queue = [(self._cost(node), node) for node in self._before if node >= 0]
        heapq.heapify(queue)
        while queue:
            cost, node = heapq.heappop(queue)
            if node not in self._before:
                continue
            if cost != (now := self._cost(node)):
                heapq.heappush(queue, (now, node))
                continue
            before, behind = self._before.pop(node), self._behind.pop(node, {})
            for last in behind:
                slope = self._before[last].pop(node)
                for first, weight in before.items():
                    self._add(first, last, product(weight, slope))
            for first in before:
                del self._behind[first][node]

    def entries(self) -> list[dict[int, Weight]]:
        """Return the edges that are left, by output."""
        return [
            {-1 - first: weight for first, weight in sorted(edges.items(), reverse=True)}
            for edges in (self._before.get(number, {}) for number in self._outputs)
        ]


def _forward(nodes: Sequence[Symbol]) -> set[int]:
    """Find fragile operations, and what is behind them."""
    found: set[int] = set()
    for node in reversed(nodes):
        if node.op in _FRAGILE or node.index in found:
            found.add(node.index)
            found.update([arg.index for arg in node.args if not isinstance(arg, Condition)])
    return found


def product(weight: Weight, slope: Weight) -> Weight:
    """Multiply two derivatives; what a choice leaves out has no influence."""
    for one, other in ((slope, weight), (weight, slope)):
        if isinstance(one, Symbol) and one.op == "where":
            condition, a, b = one.args
            if is_zero(b):
                return choose(condition, product(a, other), 0.0)
            if is_zero(a):
                return choose(condition, 0.0, product(b, other))
    return times(weight, slope)
