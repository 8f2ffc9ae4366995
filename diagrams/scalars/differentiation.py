"""Exact derivatives of expressions; the results are expressions of the same graph.

`jacobian` goes forward, from the inputs to the outputs: each node carries its derivatives by those
inputs that reach it, and no others, so that the cost grows with the number of nonzero entries.
`block_jacobian` does the same for several inputs at once, where vectors of numbers can be computed.
`directional` gives the derivatives along any direction, in which all inputs change together: one
expression for each output, however many inputs there are. `reach` tells which inputs matter where.
`gradient` goes backward from one output, at a cost that does not depend on the number of inputs.

Both use one rule for each operand of each operation. A rule multiplies a weight, which is what has
been differentiated so far, by the partial derivative. Where there is more than one derivative, or
none, this convention holds:

- ``where``, ``maximum`` and their kin have the derivative of the operand that gives the value, and
  of two equal operands that of the first. At the limits of ``clip``, the slope inside counts.
- ``absolute``, ``hypot`` and ``copysign`` have the derivative 0 at their tip, which lies between
  the slopes around it.
- ``sign``, ``floor_divide`` and all that rounds have the derivative 0, also where they jump;
  ``remainder`` and ``fmod`` have the slope of their pieces. Truth values have no derivative.
- Where a slope is infinite, as that of ``sqrt`` at 0, so is the derivative; but what does not
  change under the root has the derivative 0, so that the norm of a vector behaves like
  ``absolute`` at zero.

An operand that a ``where`` does not choose has no influence, even where it is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.scalars.array import wrap
from flexure.diagrams.scalars.expression import (
    Condition,
    Symbol,
    as_number,
    binary,
    choose,
    logical,
    reachable,
    unary,
)
from flexure.diagrams.scalars.ufuncs import objects

#: A Symbol, or a float where the value is known.
Weight: TypeAlias = Any
#: Multiplies a weight by the partial derivative of a node by one of its operands.
Rule: TypeAlias = Callable[[Symbol, Weight], Weight]


@dataclass(frozen=True)
class Jacobian:
    """A sparse matrix of derivatives.

    Attributes
    ----------
    shape : tuple of int
        Numbers of outputs and of inputs.
    rows, columns : list of int
        Where the entries are, row by row and from left to right.
    entries : list
        Symbols, or floats where the value is known; all other entries of the matrix are zero.
    """

    shape: tuple[int, int]
    rows: list[int]
    columns: list[int]
    entries: list[Weight]

    def to_array(self) -> Any:
        """Return the whole matrix as an array of symbols and zeros."""
        matrix = np.full(self.shape, 0.0, dtype=object)
        for row, column, entry in zip(self.rows, self.columns, self.entries, strict=True):
            matrix[row, column] = entry
        return wrap(matrix)


def jacobian(outputs: Any, keys: Sequence[Hashable]) -> Jacobian:
    """Differentiate expressions by inputs, forward.

    Parameters
    ----------
    outputs : Symbol, SymbolArray or sequence
        Expressions of one graph; numbers among them do not depend on anything.
    keys : sequence of hashable
        Keys of the inputs, each once.

    Returns
    -------
    Jacobian
        Outputs in C order by keys.

    Examples
    --------
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
    nodes = reachable(entry for entry in flat if isinstance(entry, Symbol))
    starts = {node.index: {column_of[node.key]: 1.0} for node in _inputs(nodes, column_of)}
    tangents = _tangents(nodes, starts)
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
    """A sparse matrix of derivatives, several columns at once.

    Attributes
    ----------
    rows, columns : list of int
        Where the entries are, row by row and from left to right.
    vectors : list
        Expressions of the inputs and of seeds, or zeros. A seed stands for a vector with a one in
        its lane, and zeros.
    lanes : list of list of (int, int)
        The lanes of each vector that hold entries, with the positions of these.
    filling : float
        Number of derivatives in a vector on the way there, on average.
    """

    rows: list[int]
    columns: list[int]
    vectors: list[Weight]
    lanes: list[list[tuple[int, int]]]
    filling: float


def block_jacobian(
    outputs: Any, keys: Sequence[Hashable], seeds: Sequence[Hashable]
) -> BlockJacobian:
    """Differentiate expressions by inputs, forward and in blocks of inputs.

    Parameters
    ----------
    outputs : Symbol, SymbolArray or sequence
        Expressions of one graph; numbers among them do not depend on anything.
    keys : sequence of hashable
        Keys of the inputs, each once.
    seeds : sequence of hashable
        Keys of further inputs, which become the seeds; at most so many keys make a block.

    Returns
    -------
    BlockJacobian
        Outputs in C order by keys.

    Examples
    --------
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
    nodes = reachable(entry for entry in flat if isinstance(entry, Symbol))
    starts: dict[int, dict[int, Weight]] = {}
    reached: dict[int, dict[int, int]] = {}  # the lanes of each block, as the bits of a number
    for node in _inputs(nodes, place_of):
        block, lane = place_of[node.key]
        starts[node.index] = {block: node.graph.input(seeds[lane])}
        reached[node.index] = {block: 1 << lane}
    tangents = _tangents(nodes, starts)
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
    pairs = zip(node.args, RULES[node.op], strict=True)
    operands = [reached.get(operand.index, {}) for operand, rule in pairs if rule is not None]
    return {block: reduce(or_, [lanes.get(block, 0) for lanes in operands], 0) for block in blocks}


def _filling(reached: Iterable[dict[int, int]]) -> float:
    """Return how many lanes of a block are in use, on average."""
    counts = [bits.bit_count() for blocks in reached for bits in blocks.values()]
    return sum(counts) / len(counts) if counts else 0.0


def _inputs(nodes: Iterable[Symbol], keys: Container[Hashable]) -> Iterator[Symbol]:
    """Return the inputs among some nodes by which there are derivatives."""
    return (node for node in nodes if node.op == "input" and node.key in keys)


def _tangents(
    nodes: Iterable[Symbol], starts: dict[int, dict[int, Weight]]
) -> dict[int, dict[int, Weight]]:
    """Return the derivatives of nodes, each after its operands, from those of the inputs."""
    tangents = dict(starts)
    for node in nodes:
        if node.args and not isinstance(node, Condition):
            tangents[node.index] = _tangent(node, tangents)
    return tangents


def _tangent(node: Symbol, tangents: dict[int, dict[int, Weight]]) -> dict[int, Weight]:
    """Derive the derivatives of a node from those of its operands; leave out what is zero."""
    tangent: dict[int, Weight] = {}
    for operand, rule in zip(node.args, RULES[node.op], strict=True):
        if rule is not None:
            for column, weight in tangents.get(operand.index, {}).items():
                tangent[column] = _plus(tangent.get(column, 0.0), rule(node, weight))
    return {column: weight for column, weight in tangent.items() if not _is_zero(weight)}


def reach(outputs: Any, keys: Sequence[Hashable]) -> tuple[list[Symbol], dict[int, int]]:
    """Find out on which inputs the derivatives of expressions depend.

    Parameters
    ----------
    outputs : Symbol, SymbolArray or sequence
        Expressions of one graph, or numbers.
    keys : sequence of hashable
        Keys of the inputs, each once.

    Returns
    -------
    nodes : list of Symbol
        All nodes behind the outputs, each after its operands.
    reached : dict
        The positions of the keys as the bits of a number, by index of the node; nodes without any
        are left out.

    Examples
    --------
    >>> from flexure.diagrams.scalars import Graph, symbols
    >>> x = symbols(Graph(), "x", 3)
    >>> y = x[0] * x[2]
    >>> bin(reach([y], [("x", 0), ("x", 1), ("x", 2)])[1][y.index])
    '0b101'
    """
    position_of = {key: k for k, key in enumerate(keys)}
    nodes = reachable(entry for entry in objects(outputs).flat if isinstance(entry, Symbol))
    reached = {node.index: 1 << position_of[node.key] for node in _inputs(nodes, position_of)}
    for node in nodes:
        if node.args and not isinstance(node, Condition):
            bits = 0
            for operand, rule in zip(node.args, RULES[node.op], strict=True):
                if rule is not None:
                    bits |= reached.get(operand.index, 0)
            if bits:
                reached[node.index] = bits
    return nodes, reached


def directional(outputs: Any, keys: Sequence[Hashable], seeds: Sequence[Hashable]) -> list[Weight]:
    """Differentiate expressions along one direction, in which all inputs may change.

    Parameters
    ----------
    outputs : Symbol, SymbolArray or sequence
        Expressions of one graph; numbers among them do not depend on anything.
    keys : sequence of hashable
        Keys of the inputs, each once.
    seeds : sequence of hashable
        For each of them the key of a further input, which becomes its change.

    Returns
    -------
    list
        Expressions of the inputs and of the seeds, or zeros.

    Examples
    --------
    >>> from flexure.diagrams.scalars import Graph, evaluate, symbols
    >>> x = symbols(Graph(), "x", 2)
    >>> found = directional([x[0] * x[1]], [("x", 0), ("x", 1)], ["first", "second"])
    >>> evaluate(found, {("x", 0): 3.0, ("x", 1): 5.0, "first": 1.0, "second": 10.0})
    array([35.])
    """
    flat = list(objects(outputs).flat)
    seed_of = dict(zip(keys, seeds, strict=True))
    nodes = reachable(entry for entry in flat if isinstance(entry, Symbol))
    starts = {
        node.index: {0: node.graph.input(seed_of[node.key])} for node in _inputs(nodes, seed_of)
    }
    tangents = _tangents(nodes, starts)
    return [
        tangents.get(entry.index, {}).get(0, 0.0) if isinstance(entry, Symbol) else 0.0
        for entry in flat
    ]


def gradient(output: Any, keys: Sequence[Hashable]) -> Any:
    """Differentiate one expression by many inputs, backward.

    Parameters
    ----------
    output : Symbol or float
        One expression.
    keys : sequence of hashable
        Keys of the inputs, each once.

    Returns
    -------
    SymbolArray, shape (len(keys),)

    Examples
    --------
    >>> from flexure.diagrams.scalars import Graph, evaluate, symbols
    >>> x = symbols(Graph(), "x", 2)
    >>> slopes = gradient(np.linalg.norm(x), [("x", 0), ("x", 1)])
    >>> evaluate(slopes, {("x", 0): 3.0, ("x", 1): 4.0})
    array([0.6, 0.8])
    """
    output = as_number(output)
    wanted = {key: position for position, key in enumerate(keys)}
    slopes = np.full(len(wanted), 0.0, dtype=object)
    adjoints: dict[int, Weight] = {}
    fragile: set[int] = set()  # nodes below a choice or a root: something may not be finite there
    nodes = reachable([output] if isinstance(output, Symbol) else [])
    active = _active(nodes, wanted)
    if nodes:
        adjoints[output.index] = 1.0
    for node in reversed(nodes):
        weight = adjoints.pop(node.index, 0.0)
        if node.index not in active or _is_zero(weight):
            continue
        if node.op == "input":
            slopes[wanted[node.key]] = weight
            continue
        for operand, rule in zip(node.args, RULES[node.op], strict=True):
            if rule is None or operand.index not in active:
                continue
            share = rule(node, weight)
            if node.index in fragile:
                share = _unless_zero(rule(node, 1.0), _unless_zero(weight, share))
            adjoints[operand.index] = _plus(adjoints.get(operand.index, 0.0), share)
            if node.index in fragile or node.op in _BREAKING:
                fragile.add(operand.index)
    return wrap(slopes)


def row_jacobian(outputs: Any, keys: Sequence[Hashable]) -> Jacobian:
    """Differentiate expressions by inputs, each backward, as `jacobian` does it forward.

    That is better where expressions have little in common, and depend on many inputs each.
    """
    flat = list(objects(outputs).flat)
    found = Jacobian((len(flat), len(keys)), [], [], [])
    for row, entry in enumerate(flat):
        slopes = objects(gradient(entry, keys)).flat if isinstance(entry, Symbol) else ()
        for column, slope in enumerate(slopes):
            if not _is_zero(slope):
                found.rows.append(row)
                found.columns.append(column)
                found.entries.append(slope)
    return found


def _active(nodes: list[Symbol], wanted: dict[Hashable, int]) -> set[int]:
    """Return the nodes that depend on the wanted inputs."""
    active: set[int] = set()
    for node in nodes:
        depends = any(operand.index in active for operand in node.args)
        if depends or (node.op == "input" and node.key in wanted):
            active.add(node.index)
    return active


# Arithmetic of weights ---------------------------------------------------------------------------


def _is_zero(weight: Weight) -> bool:
    """Tell whether a weight is known to be zero."""
    value = weight.leaf if isinstance(weight, Symbol) and weight.op == "constant" else weight
    return isinstance(value, float) and value == 0.0


def _plus(a: Weight, b: Weight) -> Weight:
    """Add two weights; the two parts of one choice become one choice again."""
    if _is_zero(a):
        return b
    if _is_zero(b):
        return a
    if isinstance(a, Symbol) and isinstance(b, Symbol) and a.op == b.op == "where":
        condition, first, second = a.args
        if condition is b.args[0] and _is_zero(second) and _is_zero(b.args[1]):
            return choose(condition, first, b.args[2])
    if isinstance(b, Symbol) and b.op == "negative":
        return binary("subtract", a, b.args[0])
    return binary("add", a, b)


def _times(weight: Weight, factor: Weight) -> Weight:
    """Multiply two weights."""
    if isinstance(weight, float) and weight == -1.0:
        return unary("negative", factor)
    return binary("multiply", weight, factor)


def _unless_zero(factor: Weight, product: Weight) -> Weight:
    """Let zero times anything, infinity included, be zero."""
    return choose(binary("equal", factor, 0.0), 0.0, product)


def _reciprocal(divisor: Weight) -> Weight:
    """Invert a divisor, once for all weights that are divided by it."""
    return binary("divide", 1.0, divisor)


# Rules -------------------------------------------------------------------------------------------


def _keep(node: Symbol, weight: Weight) -> Weight:
    return weight


def _negate(node: Symbol, weight: Weight) -> Weight:
    return unary("negative", weight)


def _slope(slope: Callable[..., Any]) -> Rule:
    """Make the rule of a slope that is a function of the result and the operands."""
    return lambda node, weight: _times(weight, slope(node, *node.args))


def _inverse_slope(inverse: Callable[..., Any]) -> Rule:
    """Make the rule of a slope whose inverse is a function of the result and the operands."""
    return lambda node, weight: _times(weight, _reciprocal(inverse(node, *node.args)))


def _inverse_root(root: Callable[..., Any]) -> Rule:
    """Do the same where the inverse may vanish at the border of the domain."""
    rule = _inverse_slope(root)
    return lambda node, weight: _unless_zero(weight, rule(node, weight))


def _choice(condition: Callable[..., Any]) -> tuple[Rule, Rule]:
    """Make the rules of an operation that gives its first operand, or else the second."""

    def first(node: Symbol, weight: Weight) -> Weight:
        return choose(condition(*node.args), weight, 0.0)

    def second(node: Symbol, weight: Weight) -> Weight:
        return choose(condition(*node.args), 0.0, weight)

    return first, second


def _of_base(node: Symbol, weight: Weight) -> Weight:
    """Multiply by b aᵇ⁻¹, which is 0 for b = 0."""
    base, exponent = node.args
    power = binary("power", base, binary("subtract", exponent, 1.0))
    product = _times(_times(weight, exponent), power)
    if exponent.op == "constant" and exponent.value >= 1.0:
        return product
    return _unless_zero(_times(weight, exponent), product)


def _of_exponent(node: Symbol, weight: Weight) -> Weight:
    """Multiply by aᵇ log a, which is 0 for a = 0 and b > 0."""
    base = choose(binary("equal", node.args[0], 0.0), 1.0, node.args[0])
    return _times(_times(weight, node), unary("log", base))


def _of_divisor(node: Symbol, weight: Weight) -> Weight:
    return unary("negative", _times(weight, binary("divide", node, node.args[1])))


def _of_leg(node: Symbol, weight: Weight, leg: Symbol) -> Weight:
    """Multiply by the cosine between a leg and the hypotenuse; 0 for a point."""
    length = choose(binary("equal", node, 0.0), 1.0, node)
    return _times(weight, binary("divide", leg, length))


def _turn(leg: Symbol, y: Symbol, x: Symbol) -> Weight:
    """Return leg / (y² + x²) without squares that may overflow."""
    length = binary("hypot", y, x)
    return binary("divide", binary("divide", leg, length), length)


def _rest(rounding: str) -> Rule:
    """Make the rule of the divisor of a remainder: minus the whole quotient."""

    def rule(node: Symbol, weight: Weight) -> Weight:
        return unary("negative", _times(weight, unary(rounding, binary("divide", *node.args))))

    return rule


def _sine_root(node: Symbol, x: Symbol) -> Weight:
    return unary("sqrt", (1.0 - x) * (1.0 + x))


def _first_or_nan(a: Symbol, b: Symbol, *, larger: bool) -> Any:
    """Tell whether fmax or fmin gives its first operand."""
    prevails = binary("less_equal", b, a) if larger else binary("less_equal", a, b)
    return logical("logical_or", prevails, unary("isnan", b))


_FIRST_OF = {
    "maximum": _choice(lambda a, b: binary("less_equal", b, a)),
    "minimum": _choice(lambda a, b: binary("less_equal", a, b)),
    "fmax": _choice(lambda a, b: _first_or_nan(a, b, larger=True)),
    "fmin": _choice(lambda a, b: _first_or_nan(a, b, larger=False)),
}
_WHERE = _choice(lambda condition, a, b: condition)
_BREAKING = frozenset(("where", *_FIRST_OF, "sqrt", "cbrt", "power"))

#: For each operation that gives a number, one rule per operand, or None for the derivative zero.
RULES: dict[str, tuple[Rule | None, ...]] = {
    "add": (_keep, _keep),
    "subtract": (_keep, _negate),
    "multiply": (_slope(lambda y, a, b: b), _slope(lambda y, a, b: a)),
    "divide": (_inverse_slope(lambda y, a, b: b), _of_divisor),
    "power": (_of_base, _of_exponent),
    "negative": (_negate,),
    "absolute": (_slope(lambda y, x: unary("sign", x)),),
    "sign": (None,),
    "floor": (None,),
    "ceil": (None,),
    "trunc": (None,),
    "rint": (None,),
    "floor_divide": (None, None),
    "remainder": (_keep, _rest("floor")),
    "fmod": (_keep, _rest("trunc")),
    "sqrt": (_inverse_root(lambda y, x: 2.0 * y),),
    "cbrt": (_inverse_root(lambda y, x: 3.0 * (y * y)),),
    "exp": (_slope(lambda y, x: y),),
    "exp2": (_slope(lambda y, x: math.log(2.0) * y),),
    "expm1": (_slope(lambda y, x: unary("exp", x)),),
    "log": (_inverse_slope(lambda y, x: x),),
    "log2": (_inverse_slope(lambda y, x: math.log(2.0) * x),),
    "log10": (_inverse_slope(lambda y, x: math.log(10.0) * x),),
    "log1p": (_inverse_slope(lambda y, x: 1.0 + x),),
    "sin": (_slope(lambda y, x: unary("cos", x)),),
    "cos": (_slope(lambda y, x: unary("negative", unary("sin", x))),),
    "tan": (_slope(lambda y, x: 1.0 + y * y),),
    "arcsin": (_inverse_root(_sine_root),),
    "arccos": (_inverse_root(lambda y, x: unary("negative", _sine_root(y, x))),),
    "arctan": (_inverse_slope(lambda y, x: 1.0 + x * x),),
    "sinh": (_slope(lambda y, x: unary("cosh", x)),),
    "cosh": (_slope(lambda y, x: unary("sinh", x)),),
    "tanh": (_slope(lambda y, x: (1.0 - y) * (1.0 + y)),),
    "arcsinh": (_inverse_slope(lambda y, x: binary("hypot", x, 1.0)),),
    "arccosh": (_inverse_root(lambda y, x: unary("sqrt", (x - 1.0) * (x + 1.0))),),
    "arctanh": (_inverse_slope(lambda y, x: (1.0 - x) * (1.0 + x)),),
    "arctan2": (
        _slope(lambda angle, y, x: _turn(x, y, x)),
        _slope(lambda angle, y, x: unary("negative", _turn(y, y, x))),
    ),
    "hypot": (
        lambda node, weight: _of_leg(node, weight, node.args[0]),
        lambda node, weight: _of_leg(node, weight, node.args[1]),
    ),
    "copysign": (_slope(lambda y, a, b: unary("sign", a) * binary("copysign", 1.0, b)), None),
    "where": (None, *_WHERE),
    **_FIRST_OF,
}
