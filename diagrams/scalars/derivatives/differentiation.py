"""Exact derivatives of expressions; the results are expressions of the same graph.

`tangents_of` goes forward, from the inputs to the outputs: each node carries its derivatives by
those inputs that reach it, and no others, so that the cost grows with the number of nonzero
entries.
`gradient` goes backward from one output, at a cost that does not depend on the number of inputs.
`flexure.diagrams.scalars.derivatives.jacobians` makes matrices of both.

Both use one rule for each operand of each operation. A rule multiplies a weight, which is what has
been differentiated so far, by the partial derivative. Where there is more than one derivative, or
none, this convention holds:

- ``where``, ``maximum`` and their kin have the derivative of the operand that gives the value, and
  of two equal operands that of the first. At the limits of ``clip``, the slope inside counts.
- ``where(x == 0, 0, f)`` has the derivative of ``f`` also at x = 0, where that is 0, too: it only
  keeps out what is not finite. Derivatives are full of it, and so have derivatives themselves.
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
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.scalars.expressions.array import wrap
from flexure.diagrams.scalars.expressions.expression import (
    Condition,
    Symbol,
    as_number,
    binary,
    choose,
    logical,
    negation,
    reachable,
    unary,
)
from flexure.diagrams.scalars.expressions.solutions import Solution, is_zero

#: A Symbol, or a float where the value is known.
Weight: TypeAlias = Any
#: Multiplies a weight by the partial derivative of a node by one of its operands.
Rule: TypeAlias = Callable[[Symbol, Weight], Weight]


def inputs_among(nodes: Iterable[Symbol], keys: Container[Hashable]) -> Iterator[Symbol]:
    """Return the inputs among some nodes by which there are derivatives."""
    return (node for node in nodes if node.op == "input" and node.key in keys)


def operands_of(node: Symbol) -> Sequence[Symbol]:
    """Return what a node is differentiated through: operands, or the equations that it solves."""
    found: Solution | None = node.graph.solutions.get(node.index)
    return node.args if found is None else found.operands


def carriers_among_operands(node: Symbol) -> Sequence[Symbol]:
    """Return which operands hand on derivatives."""
    pairs = zip(node.args, RULES[node.op], strict=True)
    return [operand for operand, rule in pairs if rule is not None]


def carriers_of(node: Symbol) -> Sequence[Symbol]:
    """Return what hands on derivatives of what a node is differentiated through."""
    is_solution = node.index in node.graph.solutions
    return operands_of(node) if is_solution else carriers_among_operands(node)


def tangents_of(
    nodes: Iterable[Symbol], starts: dict[int, dict[int, Weight]], *, whole: bool = False
) -> dict[int, dict[int, Weight]]:
    """Return the derivatives of nodes, each after its operands, from those of the inputs.

    Where nodes are the ``whole`` of what is behind some through `operands_of`, solutions of linear
    equations are differentiated by these.
    """
    tangents = dict(starts)
    for node in nodes:
        if node.args and not isinstance(node, Condition):
            solution = node.graph.solutions.get(node.index) if whole else None
            if solution is None:
                tangents[node.index] = _tangent(node, tangents)
            elif node.index not in tangents:
                tangents |= _tangents_of_solution(solution, tangents)
    return tangents


def _tangents_of_solution(
    solution: Solution, tangents: dict[int, dict[int, Weight]]
) -> dict[int, dict[int, Weight]]:
    """Return the derivatives A⁻¹ (db - dA x) of x, by index."""
    rows: dict[int, list[Weight]] = {}  # the right-hand side for each column
    for i, terms in enumerate(solution.terms()):
        for entry, factor in terms:
            slopes = tangents.get(entry.index, {}) if isinstance(entry, Symbol) else {}
            for column, weight in () if is_zero(factor) else slopes.items():
                row = rows.setdefault(column, [0.0] * len(solution.right))
                row[i] = plus(row[i], times(weight, factor))
    found: dict[int, dict[int, Weight]] = {each.index: {} for each in solution.noted}
    for column, row in rows.items():
        for value, slope in zip(solution.values, solution.applied(row), strict=True):
            if isinstance(value, Symbol) and value.index in found and not is_zero(slope):
                found[value.index][column] = slope
    return found


def _tangent(node: Symbol, tangents: dict[int, dict[int, Weight]]) -> dict[int, Weight]:
    """Derive the derivatives of a node from those of its operands; leave out what is zero."""
    tangent: dict[int, Weight] = {}
    for operand, rule in zip(node.args, RULES[node.op], strict=True):
        if rule is not None:
            for column, weight in tangents.get(operand.index, {}).items():
                tangent[column] = plus(tangent.get(column, 0.0), rule(node, weight))
    return {column: weight for column, weight in tangent.items() if not is_zero(weight)}


def gradient(output: Any, keys: Sequence[Hashable]) -> Any:
    """Differentiate one expression by inputs with distinct keys, backward.

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
    nodes = reachable([output], operands_of)
    active = _active(nodes, wanted)
    oldest = _oldest_unknowns(nodes)
    if nodes:
        adjoints[output.index] = 1.0
    for node in reversed(nodes):
        solution = node.graph.solutions.get(node.index)
        if solution is not None:
            if node is oldest[solution]:  # where all unknowns have their adjoints
                _go_back_through(solution, adjoints, active, fragile)
            continue
        weight = adjoints.pop(node.index, 0.0)
        if node.index not in active or is_zero(weight):
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
            adjoints[operand.index] = plus(adjoints.get(operand.index, 0.0), share)
            if node.index in fragile or node.op in _BREAKING:
                fragile.add(operand.index)
    return wrap(slopes)


def _oldest_unknowns(nodes: Iterable[Symbol]) -> dict[Solution, Symbol]:
    """Return the first node of each solution among some, which are in order."""
    found: dict[Solution, Symbol] = {}
    for node in nodes:
        if node.index in node.graph.solutions:
            found.setdefault(node.graph.solutions[node.index], node)
    return found


def _go_back_through(
    solution: Solution, adjoints: dict[int, Weight], active: set[int], fragile: set[int]
) -> None:
    """Add the adjoints b̄ = λ and Ā = -λ xᵀ with λ = A⁻ᵀ x̄ to those of A and b."""
    noted = {each.index for each in solution.noted}
    own = [getattr(x, "index", -1) for x in solution.values]
    weights = [adjoints.pop(index, 0.0) if index in noted else 0.0 for index in own]
    if all(map(is_zero, weights)):
        return
    is_fragile = bool(noted & fragile)
    idle = [binary("equal", weight, 0.0) for weight in weights] if is_fragile else [False]
    quiet = reduce(partial(logical, "logical_and"), idle)
    for row, terms in zip(
        solution.applied(weights, transposed=True), solution.terms(), strict=True
    ):
        for entry, factor in terms:
            if isinstance(entry, Symbol) and entry.index in active:
                share = choose(quiet, 0.0, times(row, factor))
                adjoints[entry.index] = plus(adjoints.get(entry.index, 0.0), share)
                if is_fragile:
                    fragile.add(entry.index)


def _active(nodes: list[Symbol], wanted: dict[Hashable, int]) -> set[int]:
    """Return the nodes that depend on the wanted inputs."""
    active: set[int] = set()
    for node in nodes:
        depends = any(operand.index in active for operand in operands_of(node))
        if depends or (node.op == "input" and node.key in wanted):
            active.add(node.index)
    return active


# Arithmetic of weights ---------------------------------------------------------------------------


def plus(a: Weight, b: Weight) -> Weight:
    """Add two weights; the two parts of one choice become one choice again."""
    if is_zero(a):
        return b
    if is_zero(b):
        return a
    if isinstance(a, Symbol) and isinstance(b, Symbol) and a.op == b.op == "where":
        condition, first, second = a.args
        if condition is b.args[0] and is_zero(second) and is_zero(b.args[1]):
            return choose(condition, first, b.args[2])
    if isinstance(b, Symbol) and b.op == "negative":
        return binary("subtract", a, b.args[0])
    return binary("add", a, b)


def times(weight: Weight, factor: Weight) -> Weight:
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
    return lambda node, weight: times(weight, slope(node, *node.args))


def _inverse_slope(inverse: Callable[..., Any]) -> Rule:
    """Make the rule of a slope whose inverse is a function of the result and the operands."""
    return lambda node, weight: times(weight, _reciprocal(inverse(node, *node.args)))


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


def _of_alternative(node: Symbol, weight: Weight) -> Weight:
    """Let a ``where`` that chooses a zero at a zero be no choice between two that are both zero."""
    condition, first, second = node.args
    if condition.op == "equal" and is_zero(first) and any(map(is_zero, condition.args)):
        alike = logical("logical_and", binary("equal", second, 0.0), unary("isfinite", weight))
        condition = logical("logical_and", condition, negation(alike))
    return choose(condition, 0.0, weight)


def _of_base(node: Symbol, weight: Weight) -> Weight:
    """Multiply by b aᵇ⁻¹, which is 0 for b = 0."""
    base, exponent = node.args
    power = binary("power", base, binary("subtract", exponent, 1.0))
    product = times(times(weight, exponent), power)
    if exponent.op == "constant" and exponent.value >= 1.0:
        return product
    return _unless_zero(times(weight, exponent), product)


def _of_exponent(node: Symbol, weight: Weight) -> Weight:
    """Multiply by aᵇ log a, which is 0 for a = 0 and b > 0."""
    base = choose(binary("equal", node.args[0], 0.0), 1.0, node.args[0])
    return times(times(weight, node), unary("log", base))


def _of_divisor(node: Symbol, weight: Weight) -> Weight:
    return unary("negative", times(weight, binary("divide", node, node.args[1])))


def _of_leg(node: Symbol, weight: Weight, leg: Symbol) -> Weight:
    """Multiply by the cosine between a leg and the hypotenuse; 0 for a point."""
    length = choose(binary("equal", node, 0.0), 1.0, node)
    return times(weight, binary("divide", leg, length))


def _turn(leg: Symbol, y: Symbol, x: Symbol) -> Weight:
    """Return leg / (y² + x²) without squares that may overflow."""
    length = binary("hypot", y, x)
    return binary("divide", binary("divide", leg, length), length)


def _rest(rounding: str) -> Rule:
    """Make the rule of the divisor of a remainder: minus the whole quotient."""

    def rule(node: Symbol, weight: Weight) -> Weight:
        return unary("negative", times(weight, unary(rounding, binary("divide", *node.args))))

    return rule


def _sine_root(node: Symbol, x: Symbol) -> Weight:
    return unary("sqrt", (1.0 - x) * (1.0 + x))


def _first_or_nan(a: Symbol, b: Symbol, *, larger: bool) -> Any:
    """Return whether fmax or fmin gives its first operand."""
    prevails = binary("less_equal", b, a) if larger else binary("less_equal", a, b)
    return logical("logical_or", prevails, unary("isnan", b))


_FIRST_OF = {
    "maximum": _choice(lambda a, b: binary("less_equal", b, a)),
    "minimum": _choice(lambda a, b: binary("less_equal", a, b)),
    "fmax": _choice(lambda a, b: _first_or_nan(a, b, larger=True)),
    "fmin": _choice(lambda a, b: _first_or_nan(a, b, larger=False)),
}
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
    "where": (None, lambda node, weight: choose(node.args[0], weight, 0.0), _of_alternative),
    **_FIRST_OF,
}
