"""Simplification for finite numbers: what constant zeros make superfluous is left out.

Equations in space are full of constant zeros, as in rotations about an axis of coordinates. They
are recorded (see `expression`), because ``x * 0.0`` is NaN for an infinite x and -0.0 for a
negative one. Where a reading promises numbers and not bits, `simplify` takes everything that is
computed for finite and leaves out::

    0 x = 0,   0 / x = 0,   x + 0 = x,   x - 0 = x,   0 - x = -x,   x - x = 0,
    -1 x = -x,   where(c, x, x) = x

and what follows from it by computing with constants. Inputs, too, may be known to be zero.

What is left out can hide a number that is not finite. Where `checked`, a product with zero stays if
its other factor holds an operation that can have such a result, such as a logarithm, and that is
computed nowhere else; and a quotient of zero stays if nothing else is divided by its denominator.

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
#: Finite operands of moderate size may give NaN or infinity.
_RISKY = frozenset(
    (
        *("divide", "floor_divide", "remainder", "fmod", "power", "sqrt"),
        *("log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "sinh", "cosh"),
        *("arcsin", "arccos", "arccosh", "arctanh"),
    )
)


def simplify(
    expressions: Iterable[Any], zeros: Collection[Any] = (), *, checked: bool = False
) -> list[Any]:
    """Leave out what is superfluous in expressions as long as all numbers are finite.

    Parameters
    ----------
    expressions : iterable
        Expressions of one graph, or numbers.
    zeros : collection, optional
        Keys of inputs that are zero.
    checked : bool
        Whether results that are not finite stay so, apart from overflows of sums and products.

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
    nodes = reachable(_symbols(expressions))
    signed = _with_signs_of_zeros(nodes)
    hidden = _Hidden()
    found = _simple(expressions, nodes, signed, zeros, hidden)
    if checked and hidden.factors:
        hidden.compare(found)
        if any(map(hidden.is_lost, hidden.factors)):
            found = _simple(expressions, nodes, signed, zeros, hidden)
    return found


def _symbols(expressions: Iterable[Any]) -> list[Symbol]:
    return [each for each in expressions if isinstance(each, Symbol)]


class _Hidden:
    """What stands behind constant zeros: factors that are left out, and denominators of zeros.

    Attributes
    ----------
    factors : list of Symbol
        Those of the first pass; for a denominator the quotient.
    """

    def __init__(self) -> None:
        self.factors: list[Symbol] = []
        self._known: dict[int, bool] | None = None  # by index, whether something would be lost
        self._divisors: set[int] = set()

    def compare(self, kept: Iterable[Any]) -> None:
        """Learn from the results of the first pass what is computed anyhow."""
        nodes = reachable(_symbols(kept))
        self._known = {node.index: False for node in nodes}
        self._divisors = {node.args[1].index for node in nodes if node.op == "divide"}

    def drop(self, factor: Any) -> bool:
        """Note that a factor is left out; tell whether it may be."""
        if not isinstance(factor, Symbol):
            return True
        if self._known is None:
            self.factors.append(factor)
            return True
        return not self.is_lost(factor)

    def is_lost(self, factor: Symbol) -> bool:
        """Tell whether a result that is not finite could go unnoticed without this factor."""
        known = self._known
        assert known is not None
        stack = [factor]
        while stack:
            node = stack[-1]
            waiting = [arg for arg in node.args if arg.index not in known]
            if waiting and node.index not in known:
                stack.extend(waiting)
                continue
            stack.pop()
            if node.index not in known:
                known[node.index] = self._is_risky(node) or any(known[a.index] for a in node.args)
        return known[factor.index]

    def _is_risky(self, node: Symbol) -> bool:
        """Tell whether an operation that is computed nowhere else can fail for finite numbers."""
        if node.op == "divide":
            below = node.args[1]
            return not (
                below.op == "constant" or below.index in self._divisors or _is_positive(below)
            )
        if node.op == "where":  # guards that make NaN of what has no meaning
            return any(arg.op == "constant" and arg.leaf != arg.leaf for arg in node.args[1:])
        return node.op in _RISKY


def _simple(
    expressions: Sequence[Any],
    nodes: Sequence[Symbol],
    signed: set[int],
    zeros: Collection[Any],
    hidden: _Hidden,
) -> list[Any]:
    """Go once through all nodes."""
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
                simple[index] = _simplified(hidden, op, *[simple[arg.index] for arg in node.args])
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


def _simplified(hidden: _Hidden, op: str, *operands: Any) -> Any:
    """Return what an operation is equal to as long as all numbers are finite."""
    if op in ("add", "subtract"):
        return _sum(hidden, op, *operands)
    if op in ("multiply", "divide"):
        return _product(hidden, op, *operands)
    return _recorded(op, *operands)


def _sum(hidden: _Hidden, op: str, a: Any, b: Any) -> Any:
    """Add or subtract."""
    if op == "subtract" and a is b and isinstance(a, Symbol) and hidden.drop(a):
        return 0.0
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


def _product(hidden: _Hidden, op: str, a: Any, b: Any) -> Any:
    """Multiply or divide."""
    if isinstance(a, float) and isinstance(b, float):
        return binary(op, a, b)
    if _is(a, 0.0) or (_is(b, 0.0) and op == "multiply"):
        factor = binary(op, a, b) if op == "divide" else b if _is(a, 0.0) else a
        return 0.0 if hidden.drop(factor) else binary(op, a, b)
    (a, minus_a), (b, minus_b) = _split(a), _split(b)
    result = binary(op, a, b)
    return result if minus_a == minus_b else unary("negative", result)


def _split(value: Any) -> tuple[Any, bool]:
    """Split off a minus, if there is one."""
    if isinstance(value, Symbol) and value.op == "negative":
        return value.args[0], True
    return (1.0, True) if _is(value, -1.0) else (value, False)


def _is_positive(node: Symbol) -> bool:
    """Tell whether something is seen to be greater than zero: a root and a positive constant."""
    if node.op != "add":
        return False
    has_root = any(arg.op == "sqrt" for arg in node.args)
    return has_root and any(arg.op == "constant" and arg.leaf > 0.0 for arg in node.args)


def _is(value: Any, number: float) -> bool:
    """Tell whether a value is known to be a number."""
    return isinstance(value, float) and value == number


__all__ = ["simplify"]
