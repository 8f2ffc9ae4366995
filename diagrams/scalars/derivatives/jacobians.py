"""Matrices of exact derivatives, forward or backward, entry by entry or in vectors.

`jacobian` gives all entries that are not always zero. It goes forward, unless the outputs have
little in common and depend on many inputs each, as the products of a matrix do.
`block_jacobian` does the same for several inputs at once, where vectors of numbers can be computed.
`directional` gives the derivatives along any direction, in which all inputs change together: one
expression for each output, however many inputs there are. `reach` tells which inputs matter where.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from flexure.diagrams.scalars.derivatives.differentiation import (
    Weight,
    carriers_among_operands,
    carriers_of,
    gradient,
    inputs_among,
    operands_of,
    tangents_of,
)
from flexure.diagrams.scalars.expressions.array import wrap
from flexure.diagrams.scalars.expressions.expression import Condition, Symbol, reachable
from flexure.diagrams.scalars.expressions.solutions import is_zero
from flexure.diagrams.scalars.expressions.ufuncs import objects

_MANY = 100_000  # derivatives of nodes, from which on it is asked whether to go backward
#: Inputs, up to which that is asked. Expressions of more of them that can be written down at all
#: depend on few of them each.
FEW = 1000
_SHARED = 2.0  # outputs per node on average, up to which that pays


@dataclass(frozen=True)
class Jacobian:
    """A sparse matrix of derivatives."""

    shape: tuple[int, int]  # numbers of outputs and of inputs
    # rows, columns: where the entries are, row by row and from left to right.
    rows: list[int]
    columns: list[int]
    # Symbols, or floats where the value is known; all other entries of the matrix are zero.
    entries: list[Weight]

    def to_array(self) -> Any:
        """Return the whole matrix as an array of symbols and zeros."""
        matrix = np.full(self.shape, 0.0, dtype=object)
        for row, column, entry in zip(self.rows, self.columns, self.entries, strict=True):
            matrix[row, column] = entry
        return wrap(matrix)


def jacobian(outputs: Any, keys: Sequence[Hashable]) -> Jacobian:
    """Differentiate expressions of one graph, in C order, by inputs with distinct keys.

    >>> from flexure.diagrams.scalars import Graph, evaluate, symbols
    >>> x = symbols(Graph(), "x", 3)
    >>> matrix = jacobian([x[0] * x[1], x[2] + 1.0], [("x", 0), ("x", 1), ("x", 2)])
    >>> matrix.rows, matrix.columns
    ([0, 0, 1], [0, 1, 2])
    >>> evaluate(matrix.to_array(), {("x", 0): 3.0, ("x", 1): 5.0})
    array([[5., 3., 0.],
           [0., 0., 1.]])
    """
    flat = list(objects(outputs).flat)
    column_of = {key: column for column, key in enumerate(keys)}
    nodes = reachable(flat, operands_of)
    if len(nodes) * len(keys) > _MANY and len(keys) <= FEW:
        _, reached = reach(flat, keys)
        count = sum(bits.bit_count() for bits in reached.values())
        if count > _MANY and are_apart(flat, reached):
            return _backward(flat, keys)
    starts = {node.index: {column_of[node.key]: 1.0} for node in inputs_among(nodes, column_of)}
    tangents = tangents_of(nodes, starts, whole=True)
    found = Jacobian((len(flat), len(column_of)), [], [], [])
    for row, entry in enumerate(flat):
        tangent = tangents.get(entry.index, {}) if isinstance(entry, Symbol) else {}
        for column in sorted(tangent):
            found.rows.append(row)
            found.columns.append(column)
            found.entries.append(tangent[column])
    return found


@dataclass(frozen=True)
class BlockJacobian:
    """A sparse matrix of derivatives, several columns at once."""

    # rows, columns: where the entries are, row by row and from left to right.
    rows: list[int]
    columns: list[int]
    # Expressions of the inputs and of seeds, or zeros. A seed is a vector with a one in its lane,
    # and zeros.
    vectors: list[Weight]
    # The lanes of each vector that hold entries, with the positions of these.
    lanes: list[list[tuple[int, int]]]
    filling: float  # number of derivatives in a vector on the way there, on average


def block_jacobian(
    outputs: Any, keys: Sequence[Hashable], seeds: Sequence[Hashable]
) -> BlockJacobian:
    """Differentiate expressions by inputs as `jacobian`, forward and in blocks of inputs.

    ``seeds`` are keys of further inputs, which become the seeds; at most so many keys make a block.

    >>> from flexure.diagrams.scalars import Graph, evaluate, symbols
    >>> x = symbols(Graph(), "x", 2)
    >>> found = block_jacobian([x[0] * x[1]], [("x", 0), ("x", 1)], ["first", "second"])
    >>> found.rows, found.columns, found.lanes
    ([0, 0], [0, 1], [[(0, 0), (1, 1)]])
    >>> values = {("x", 0): 3.0, ("x", 1): 5.0}
    >>> vectors = {"first": np.array([1.0, 0.0]), "second": np.array([0.0, 1.0])}
    >>> evaluate(found.vectors, values | vectors)[0]
    array([5., 3.])
    """
    flat = list(objects(outputs).flat)
    size = -(-len(keys) // -(-len(keys) // len(seeds))) if keys else 1
    place_of = {key: divmod(k, size) for k, key in enumerate(keys)}
    nodes = reachable(flat, operands_of)
    starts: dict[int, dict[int, Weight]] = {}
    reached: dict[int, dict[int, int]] = {}  # the lanes of each block, as the bits of a number
    for node in inputs_among(nodes, place_of):
        block, lane = place_of[node.key]
        starts[node.index] = {block: node.graph.input(seeds[lane])}
        reached[node.index] = {block: 1 << lane}
    tangents = tangents_of(nodes, starts, whole=True)
    for node in nodes:
        if node.args and node.index in tangents:
            reached[node.index] = _reached(node, tangents[node.index], reached)
    found = BlockJacobian([], [], [], [], _filling(reached.values()))
    for row, entry in enumerate(flat):
        tangent = tangents.get(entry.index, {}) if isinstance(entry, Symbol) else {}
        for block in sorted(tangent):
            bits = reached[entry.index][block]
            lanes = [lane for lane in range(size) if bits >> lane & 1]
            found.lanes.append([(lane, len(found.rows) + k) for k, lane in enumerate(lanes)])
            found.vectors.append(tangent[block])
            found.rows.extend([row] * len(lanes))
            found.columns.extend([block * size + lane for lane in lanes])
    return found


def _reached(
    node: Symbol, blocks: Iterable[int], reached: dict[int, dict[int, int]]
) -> dict[int, int]:
    """Return by which lanes of blocks a node may be differentiated."""
    operands = [reached.get(operand.index, {}) for operand in carriers_of(node)]
    return {block: reduce(or_, [lanes.get(block, 0) for lanes in operands], 0) for block in blocks}


def _filling(reached: Iterable[dict[int, int]]) -> float:
    """Return how many lanes of a block are in use, on average."""
    counts = [bits.bit_count() for blocks in reached for bits in blocks.values()]
    return sum(counts) / len(counts) if counts else 0.0


def reach(outputs: Any, keys: Sequence[Hashable]) -> tuple[list[Symbol], dict[int, int]]:
    """Find out on which inputs, by distinct keys, the derivatives of expressions depend.

    Returns all nodes behind the outputs, each after its operands, and by index of the nodes that
    depend on any the positions of the keys as the bits of a number.

    >>> from flexure.diagrams.scalars import Graph, symbols
    >>> x = symbols(Graph(), "x", 3)
    >>> y = x[0] * x[2]
    >>> bin(reach([y], [("x", 0), ("x", 1), ("x", 2)])[1][y.index])
    '0b101'
    """
    position_of = {key: k for k, key in enumerate(keys)}
    nodes = reachable(objects(outputs).flat, operands_of)
    starts = {node.index: 1 << position_of[node.key] for node in inputs_among(nodes, position_of)}
    return nodes, reach_from(starts, nodes, carriers_of)


def reach_from(
    starts: Mapping[int, int],
    nodes: Iterable[Symbol],
    carriers: Callable[[Symbol], Iterable[Symbol]] = carriers_among_operands,
) -> dict[int, int]:
    """Do so from any nodes instead of inputs, by index; nodes come after their operands."""
    reached = dict(starts)
    for node in nodes:
        if node.args and not isinstance(node, Condition):
            bits = 0
            for operand in carriers(node):
                bits |= reached.get(operand.index, 0)
            if bits:
                reached[node.index] = bits
    return reached


def directional(outputs: Any, keys: Sequence[Hashable], seeds: Sequence[Hashable]) -> list[Weight]:
    """Differentiate expressions along one direction, in which all inputs may change.

    ``seeds`` has for each of the keys that of a further input, which becomes its change. The result
    holds expressions of the inputs and of the seeds, or zeros.

    >>> from flexure.diagrams.scalars import Graph, evaluate, symbols
    >>> x = symbols(Graph(), "x", 2)
    >>> found = directional([x[0] * x[1]], [("x", 0), ("x", 1)], ["first", "second"])
    >>> evaluate(found, {("x", 0): 3.0, ("x", 1): 5.0, "first": 1.0, "second": 10.0})
    array([35.])
    """
    flat = list(objects(outputs).flat)
    seed_of = dict(zip(keys, seeds, strict=True))
    nodes = reachable(flat, operands_of)
    starts = {
        node.index: {0: node.graph.input(seed_of[node.key])}
        for node in inputs_among(nodes, seed_of)
    }
    tangents = tangents_of(nodes, starts, whole=True)
    return [
        tangents.get(entry.index, {}).get(0, 0.0) if isinstance(entry, Symbol) else 0.0
        for entry in flat
    ]


def jacobian_length(outputs: Any, keys: Sequence[Hashable]) -> int:
    """Return about how many operations the entries of `jacobian` take; 0 with very many keys."""
    if len(keys) > FEW:
        return 0
    _, reached = reach(outputs, keys)
    if are_apart(objects(outputs).flat, reached):
        return len(reached)
    return sum(bits.bit_count() for bits in reached.values())


def are_apart(outputs: Iterable[Any], reached: Collection[int]) -> bool:
    """Return whether outputs have few nodes in common, of those that `reach` has found."""
    left = _SHARED * len(reached)
    for output in outputs:
        seen: set[int] = set()
        stack = [output] if isinstance(output, Symbol) else []
        while stack and len(seen) <= left:
            node = stack.pop()
            if node.index in reached and node.index not in seen:
                seen.add(node.index)
                stack.extend(operands_of(node))
        left -= len(seen)
        if left < 0:
            return False
    return True


def _backward(outputs: Sequence[Any], keys: Sequence[Hashable]) -> Jacobian:
    """Differentiate every output by itself."""
    found = Jacobian((len(outputs), len(keys)), [], [], [])
    for row, output in enumerate(outputs):
        slopes = objects(gradient(output, keys)).flat if isinstance(output, Symbol) else ()
        for column, slope in enumerate(slopes):
            if not is_zero(slope):
                found.rows.append(row)
                found.columns.append(column)
                found.entries.append(slope)
    return found
