"""Simplification for finite numbers: what constant zeros make superfluous is left out.

Equations in space are full of constant zeros, as in rotations about an axis of coordinates. They
are recorded (see `expression`), because ``x * 0.0`` is NaN for an infinite x and -0.0 for a
negative one. Where a reading promises numbers and not bits, `simplify` takes everything that is
computed for finite and leaves out::

    0 x = 0,   0 / x = 0,   x + 0 = x,   x - 0 = x,   0 - x = -x,   -1 x = -x,   where(c, x, x) = x

and what follows from it by computing with constants. Inputs, too, may be known to be zero.
Negations move outward until a sum takes them up: ``a + (-b) * c`` becomes ``a - b * c``. What
remains is rounded as it was.

Signs of zeros are lost, but not where they decide. The operands of ``arctan2`` and ``copysign`` are
kept as recorded, down to where these signs have no influence: below a condition, a square or an
absolute value, and below a sum with a constant. Writing ``x + 0.0`` saves the operations behind x.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from flexure.diagrams.scalars.expression import (
    Symbol,
    binary,
    choose,
    logical,
    negation,
    reachable,
    unary,
)
from flexure.diagrams.scalars.vocabulary import CONDITIONS, LOGICAL

_TELLING_ZEROS_APART = frozenset(("arctan2", "copysign"))
_EVEN = frozenset(("absolute", "cos", "cosh", "hypot"))


def simplify(expressions: Iterable[Any], zeros: Collection[Any] = ()) -> list[Any]:
    """Leave out what is superfluous in expressions as long as all numbers are finite.

    Parameters
    ----------
    expressions : iterable
        Expressions of one graph, or numbers.
    zeros : collection, optional
        Keys of inputs that are zero.

    Returns
    -------
    list
        For each of them an expression of the same graph, or a number where the value is known.

    Examples
    --------
    >>> from flexure.diagrams.scalars import Graph
    >>> graph = Graph()
    >>> x, y = graph.input("x"), graph.input("y")
    >>> simplify([x * 0.0 + y])[0] is y
    True
    >>> simplify([x + (0.0 - x) * y])[0] is x - x * y
    True
    >>> simplify([x * y + x], zeros={"y"})[0] is x
    True
    """
    expressions = list(expressions)
    nodes = reachable(each for each in expressions if isinstance(each, Symbol))
    signed = _with_signs_of_zeros(nodes)
    simple: dict[int, Any] = {}
    exact: dict[int, Any] = {}  # what stands for nodes where the sign of a zero matters
    for node in nodes:
        index, op = node.index, node.op
        if op == "input":
            simple[index] = 0.0 if node.key in zeros else node
        elif op == "constant":
            simple[index] = node.leaf
        else:
            if index in signed:
                operands = [exact.get(arg.index, simple[arg.index]) for arg in node.args]
                exact[index] = simple[index] = _recorded(op, *operands)
            if op not in _TELLING_ZEROS_APART:
                simple[index] = _simplified(op, *[simple[arg.index] for arg in node.args])
    return [simple[each.index] if isinstance(each, Symbol) else each for each in expressions]


def _with_signs_of_zeros(nodes: Sequence[Symbol]) -> set[int]:
    """Find the nodes at which the sign of a zero matters, and those that need such nodes."""
    found: set[int] = set()
    for node in reversed(nodes):
        if node.op in _TELLING_ZEROS_APART:
            found.add(node.index)
        if node.index in found and not _settles_zeros(node):
            found.update([arg.index for arg in node.args])
    return found


def _settles_zeros(node: Symbol) -> bool:
    """Tell whether the signs of zeros among the operands have no influence."""
    if node.op == "multiply":
        return node.args[0] is node.args[1]
    summands = {"add": node.args, "subtract": node.args[:1]}.get(node.op, ())
    if any(each.op == "constant" and repr(each.leaf) != "-0.0" for each in summands):
        return True
    return node.op in _EVEN or node.op in CONDITIONS


def _recorded(op: str, *operands: Any) -> Any:
    """Record an operation on symbols and numbers, with exact simplifications alone."""
    if op == "where":
        result = choose(*operands)
    elif op == "logical_not":
        result = negation(*operands)
    elif op in LOGICAL:
        result = logical(op, *operands)
    else:
        result = unary(op, *operands) if len(operands) == 1 else binary(op, *operands)
    return result.leaf if isinstance(result, Symbol) and result.op == "constant" else result


def _simplified(op: str, *operands: Any) -> Any:
    """Return what an operation is equal to as long as all numbers are finite."""
    if op in ("add", "subtract"):
        return _sum(op, *operands)
    if op in ("multiply", "divide"):
        return _product(op, *operands)
    return _recorded(op, *operands)


def _sum(op: str, a: Any, b: Any) -> Any:
    """Add or subtract."""
    if _is(b, 0.0):
        return a
    if _is(a, 0.0):
        return b if op == "add" else unary("negative", b)
    (a, minus_a), (b, minus_b) = _split(a), _split(b)
    if op == "subtract":
        minus_b = not minus_b
    if minus_a and minus_b:
        return unary("negative", binary("add", a, b))
    if minus_a:
        return binary("subtract", b, a)
    return binary("subtract" if minus_b else "add", a, b)


def _product(op: str, a: Any, b: Any) -> Any:
    """Multiply or divide."""
    if isinstance(a, float) and isinstance(b, float):
        return binary(op, a, b)
    if _is(a, 0.0) or (_is(b, 0.0) and op == "multiply"):
        return 0.0
    (a, minus_a), (b, minus_b) = _split(a), _split(b)
    result = binary(op, a, b)
    return result if minus_a == minus_b else unary("negative", result)


def _split(value: Any) -> tuple[Any, bool]:
    """Split off a minus, if there is one."""
    if isinstance(value, Symbol) and value.op == "negative":
        return value.args[0], True
    return (1.0, True) if _is(value, -1.0) else (value, False)


def _is(value: Any, number: float) -> bool:
    """Tell whether a value is known to be a number."""
    return isinstance(value, float) and value == number


__all__ = ["simplify"]
