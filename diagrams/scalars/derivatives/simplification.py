"""Simplification for finite numbers: what constant zeros make superfluous is left out.

Equations in space are full of constant zeros, as in rotations about an axis of coordinates. They
are recorded (see `expression`), because ``x * 0.0`` is NaN for an infinite x and -0.0 for a
negative one. Where a reading promises numbers and not bits, `simplify` takes everything that is
computed for finite and leaves out::

    0 x = 0,   0 / x = 0,   x + 0 = x,   x - 0 = x,   0 - x = -x,   x - x = 0,   -1 x = -x,
    where(c, x, x) = x,   where(c, NaN, 0) = 0

and what follows from it by computing with constants. Inputs, too, may be known to be zero.

What is left out can hide a number that is not finite. Where `checked`, a product with zero stays if
its other factor holds an operation that can have such a result, such as a logarithm, and that is
computed nowhere else; and a quotient of zero stays if nothing else is divided by its denominator.

Negations move outward until a sum takes them up: ``a + (-b) * c`` becomes ``a - b * c``. The
rounding of the remaining terms does not change.

Signs of zeros are lost, but not where they decide. The operands of ``arctan2`` and ``copysign`` are
kept as recorded, down to where these signs have no influence: below a condition, a square or an
absolute value, and below a sum with a constant. Writing ``x + 0.0`` saves the operations behind x.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import Any

from flexure.diagrams.scalars.expressions.expression import (
    Symbol,
    binary,
    choose,
    logical,
    negation,
    reachable,
    unary,
)
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS, LOGICAL

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
    expressions: Iterable[Any],
    zeros: Collection[Any] = (),
    *,
    checked: bool = False,
    kept: Container[int] = (),
) -> list[Any]:
    """Leave out what is superfluous in expressions of one graph as long as all numbers are finite.

    ``zeros`` are keys of inputs that are zero, ``kept`` indices of nodes that stay as they are.
    Where ``checked``, results that are not finite stay so, apart from overflows of sums and
    products. A result whose value is known is a number.

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
    nodes = reachable(expressions)
    signed = _with_signs_of_zeros(nodes)
    chosen = _below_choices(nodes) if checked else set()
    hidden = _Hidden(())
    found = _simple(expressions, nodes, signed, zeros, hidden, kept)
    while checked and hidden.factors:
        hidden.compare(found)
        stay = {index for index in hidden.lost() if index in chosen}
        if not stay:
            hidden.restore(expressions, nodes, found)
            break
        hidden = _Hidden(stay.union(hidden.stay))
        found = _simple(expressions, nodes, signed, zeros, hidden, kept)
    return found


class _Hidden:
    """Terms multiplied by constant zeros: omitted factors, and denominators of zeros."""

    def __init__(self, stay: Collection[int]) -> None:
        self.stay = stay  # the nodes, by index, where nothing is left out
        self.node = -1  # the index of the node that is being simplified
        # By index of a node, what is left out there; for a denominator the quotient.
        self.factors: dict[int, list[Symbol]] = {}
        self._known: dict[int, bool] = {}  # by index, whether something would be lost
        self._divisors: set[int] = set()
        self._guards: set[int] = set()  # their conditions

    def drop(self, factor: Any) -> bool:
        """Note that a factor is left out; tell whether it may be."""
        if self.node in self.stay:
            return False
        if isinstance(factor, Symbol):
            self.factors.setdefault(self.node, []).append(factor)
        return True

    def lost(self) -> dict[int, list[Symbol]]:
        """Return what is left out and would be lost, by index of the node."""
        return {
            index: left
            for index, factors in self.factors.items()
            if (left := [factor for factor in factors if self._is_lost(factor)])
        }

    def compare(self, kept: Iterable[Any]) -> None:
        """Learn from the results what is computed anyhow."""
        for node in reachable(kept):
            self._keep(node)

    def _keep(self, node: Symbol) -> None:
        """Note that a node is computed."""
        self._known[node.index] = False
        if node.op == "divide":
            self._divisors.add(node.args[1].index)
        elif _is_guard(node):
            self._guards.add(node.args[0].index)

    def restore(
        self, expressions: Sequence[Any], nodes: Sequence[Symbol], found: list[Any]
    ) -> None:
        """Add zero times what would be lost to results, each to one of those that read it.

        Results with a known value stay known if others read the same.
        """
        lost = self.lost()
        if not lost:
            return
        bits = {index: 1 << k for k, index in enumerate(lost)}
        behind: dict[int, int] = {}
        for node in nodes:
            for arg in node.args:
                if (more := behind.get(arg.index, 0)) != 0:
                    bits[node.index] = bits.get(node.index, 0) | more
            if node.index in bits:
                behind[node.index] = bits[node.index]
        remaining = (1 << len(lost)) - 1
        order = sorted(range(len(found)), key=lambda k: not getattr(found[k], "args", ()))
        for k in order:
            here = remaining & behind.get(getattr(expressions[k], "index", -1), 0)
            remaining &= ~here
            factors = [left for j, left in enumerate(lost.values()) if here >> j & 1]
            for node in self._risks(itertools.chain.from_iterable(factors)):
                is_zero = node.op == "divide" and _is(node.args[0].leaf, 0.0)
                product = node if is_zero else binary("multiply", 0.0, node)
                found[k] = product if _is(found[k], 0.0) else binary("add", found[k], product)

    def _risks(self, factors: Iterable[Symbol]) -> Iterator[Symbol]:
        """Go through the outermost operations that would be lost, and note them as computed."""
        stack = list(factors)
        while stack:
            node = stack.pop()
            if not self._known[node.index]:
                continue
            if self._is_risky(node):
                yield node
                for each in reachable([node]):
                    self._keep(each)
            else:
                self._known[node.index] = False
                stack.extend(node.args)

    def _is_lost(self, factor: Symbol) -> bool:
        """Return whether a result that is not finite could go unnoticed without this factor."""
        known = self._known
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
        """Return whether an operation that is computed nowhere else can fail for finite numbers."""
        if node.op == "divide":
            return node.args[1].op != "constant" and node.args[1].index not in self._divisors
        if _is_guard(node):
            return node.args[0].index not in self._guards
        return node.op in _RISKY


def _is_guard(node: Symbol) -> bool:
    """Return whether a node makes NaN of what has no meaning."""
    choices = node.args[1:] if node.op == "where" else ()
    return any(arg.op == "constant" and math.isnan(arg.leaf) for arg in choices)


def _below_choices(nodes: Sequence[Symbol]) -> set[int]:
    """Find what is chosen or not, and what is below: where it is not, it may have no meaning."""
    found: set[int] = set()
    for node in reversed(nodes):
        if node.index in found:
            found.update([arg.index for arg in node.args])
        elif node.op == "where" and not _is_guard(node):
            found.update([arg.index for arg in node.args[1:]])
    return found


def _simple(
    expressions: Sequence[Any],
    nodes: Sequence[Symbol],
    signed: set[int],
    zeros: Collection[Any],
    hidden: _Hidden,
    kept: Container[int],
) -> list[Any]:
    """Go once through all nodes."""
    simple: dict[int, Any] = {}
    exact: dict[int, Any] = {}  # what stands for nodes where the sign of a zero matters
    for node in nodes:
        index, op = node.index, node.op
        hidden.node = index
        if index in kept:
            simple[index] = node
        elif op == "input":
            simple[index] = 0.0 if node.key in zeros else node
        elif op == "constant":
            simple[index] = node.leaf
        else:
            if index in signed:
                operands = [exact.get(arg.index, simple[arg.index]) for arg in node.args]
                exact[index] = simple[index] = _recorded(op, *operands)
            if op not in _TELLING_ZEROS_APART:
                simple[index] = _simplified(hidden, op, *[simple[arg.index] for arg in node.args])
    solutions = nodes[0].graph.solutions if nodes else {}
    for solution in {solutions[node.index]: None for node in nodes if node.index in solutions}:
        solution.replaced(simple)
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
    """Return whether the signs of zeros among the operands have no influence."""
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
    return _choice(hidden, *operands) if op == "where" else _recorded(op, *operands)


def _sum(hidden: _Hidden, op: str, a: Any, b: Any) -> Any:
    """Add or subtract."""
    if op == "subtract" and a is b and hidden.drop(a):
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


def _choice(hidden: _Hidden, condition: Any, a: Any, b: Any) -> Any:
    """Choose; zeros of either sign are one, and a zero needs no guard of its own."""
    result = _recorded("where", condition, a, b)
    is_zero = _is(b, 0.0) and isinstance(a, float) and (a == 0.0 or math.isnan(a))
    return 0.0 if is_zero and hidden.drop(result) else result


def _split(value: Any) -> tuple[Any, bool]:
    """Split off a minus, if there is one."""
    if isinstance(value, Symbol) and value.op == "negative":
        return value.args[0], True
    return (1.0, True) if _is(value, -1.0) else (value, False)


def _is(value: Any, number: float) -> bool:
    """Return whether a value is known to be a number."""
    return isinstance(value, float) and value == number
