"""Scalar expressions: the nodes of a graph in which every operation is recorded once.

A node's ``op`` is an operation of the `vocabulary`; everything else NumPy offers is reduced to
these (see `ufuncs`). Operations are typed: what gives a truth value is a `Condition`, and a
condition that is used as a number is recorded as ``where(condition, 1.0, 0.0)``.

What is simplified while recording is exact for every float, with NaN, infinities and signed zeros:
operations on constants, ``x * 1``, ``x / 1``, ``x - 0.0``, ``-(-x)``, ``x**1``, ``x**0``, ``where``
on a known condition or equal values, and the order of the operands of commutative operations.
``x * 0``, ``x - x`` and ``x + 0.0`` are recorded, for they are not always 0, 0 and x.
Powers have the meaning of NumPy's arrays: ``x**2`` is ``x * x``, ``x**0.5`` is ``sqrt(x)`` and
``x**-1`` is ``1 / x``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter
from typing import Any, NoReturn, Protocol

import numpy as np

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.scalars.expressions.refusal import needs_number, only_of_numbers, refusal
from flexure.diagrams.scalars.expressions.vocabulary import COMMUTATIVE, CONDITIONS, JUMPING, fold

_RESTING = frozenset(("maximum", "minimum", "fmax", "fmin", "absolute"))
_NUMBERS = (float, int, np.floating, np.integer, np.bool_)


class Decisions(Protocol):
    """Answers to the questions of one calculation.

    See `flexure.diagrams.scalars.expressions.branches`.
    """

    def decide(self, value: Symbol) -> bool:
        """Answer whether a symbol is true."""

    def refuse(self, error: TraceError) -> NoReturn:
        """Raise an error that ends the exploration even if the calculation catches it."""


class Graph:
    """The nodes of all expressions over one set of inputs, each recorded once.

    Nodes are numbered in the order of their creation: arguments precede their users, and the
    numbering depends on nothing but the order in which the equations run.

    >>> graph = Graph()
    >>> x = graph.input("x")
    >>> x * 2.0 + 1.0 is x * 2.0 + 1.0
    True
    >>> graph.nodes
    [<#0 input 'x'>, <#1 constant 2.0>, <#2 multiply(#0, #1)>, <#3 constant 1.0>, <#4 add(#2, #3)>]
    """

    __slots__ = ("_known", "as_gain", "branches", "most", "nodes", "solutions")

    def __init__(self, most: float = math.inf, *, as_gain: bool = False) -> None:
        self.most = most  # how many operations may be recorded before the next one is refused
        self.as_gain = as_gain  # whether `with_slope_of` replaces slopes, as in linear models
        # Every node; ``nodes[symbol.index] is symbol``. To be read, not changed.
        self.nodes: list[Symbol] = []
        # Answers the decisions of the calculation that is being explored, if one is.
        self.branches: Decisions | None = None
        # By index of a node, the linear equations that it solves, see `Solution`.
        self.solutions: dict[int, Any] = {}
        self._known: dict[tuple[Any, ...], Symbol] = {}

    def input(self, key: Hashable) -> Symbol:
        """Return the input with a key, which may be anything hashable."""
        known = self._known.get(("input", key))
        return self._leaf("input", ("input", key), key) if known is None else known

    def constant(self, value: float) -> Symbol:
        """Return the constant of a value; 0.0 and -0.0 are two constants, all NaN are one."""
        value = float(value)
        plain = value == value and value != 0.0
        entry = ("constant", value if plain else repr(value))
        known = self._known.get(entry)
        return self._leaf("constant", entry, value) if known is None else known

    def record(self, op: str, *args: Symbol) -> Symbol:
        """Return the node of an operation of the vocabulary, as it is, without simplification."""
        for arg in args:
            if arg.graph is not self:
                raise refusal(
                    "Cannot combine symbols of two graphs",
                    expected="symbols of one trace",
                    found=f"{args}",
                    remedy="Do not keep symbols of an earlier trace in a global or an attribute",
                )
        if op in COMMUTATIVE and args[0].index > args[-1].index:
            args = args[::-1]
        entry = (op, *[arg.index for arg in args])
        node = self._known.get(entry)
        if node is None:
            index = len(self.nodes)
            if index >= self.most:
                self.refuse_more()
            kind = Condition if op in CONDITIONS else Symbol
            node = self._known[entry] = kind(self, index, op, args)
            self.nodes.append(node)
        return node

    def refuse_more(self) -> NoReturn:
        """Refuse to record another operation."""
        raise refusal(
            f"Cannot trace more than {self.most:.0f} operations",
            expected="equations that can be compiled in good time",
            found="more",
            remedy="Let them run interpreted, or use fewer or smaller matrices",
        )

    def _leaf(self, op: str, entry: tuple[Any, ...], leaf: Any) -> Symbol:
        """Add an input or a constant that is not known yet."""
        node = self._known[entry] = Symbol(self, len(self.nodes), op, (), leaf)
        self.nodes.append(node)
        return node

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes>"


def as_number(value: Any) -> Any:
    """Return a Symbol that is no condition, or a float."""
    if value.__class__ is Symbol or value.__class__ is float:
        return value
    if isinstance(value, Condition):
        return choose(value, 1.0, 0.0)
    if isinstance(value, _NUMBERS):
        return float(value)
    raise refusal(
        "Cannot compute with a value that is no real number",
        expected="numbers, truth values and symbols",
        found=f"{value!r} of type {type(value).__name__}",
        remedy="Keep texts, None, complex numbers and other objects out of traced equations",
    )


def as_condition(value: Any) -> Any:
    """Return a Condition or a bool; a number is true when it is not zero."""
    if isinstance(value, (Condition, bool)):
        return value
    value = binary("not_equal", value, 0.0)
    return value if isinstance(value, Condition) else bool(value)


def is_boolean(value: Any) -> bool:
    """Return whether a scalar is a truth value."""
    return isinstance(value, (Condition, bool, np.bool_))


def unary(op: str, value: Any) -> Any:
    """Record an operation on one number or symbol, or compute it on a number."""
    value = as_number(value)
    if not isinstance(value, Symbol):
        return fold(op, value)
    if value.op == "constant":
        result = fold(op, value.leaf)
        return value.graph.constant(result) if isinstance(result, float) else result
    if op == "negative" and value.op == "negative":
        return value.args[0]
    return value.graph.record(op, value)


def binary(op: str, a: Any, b: Any) -> Any:
    """Record an operation on two numbers or symbols, or compute it on two numbers.

    As in NumPy, the sum of two truth values is their "or" and the product their "and".
    """
    if a.__class__ is Symbol:
        graph = a.graph
        if b.__class__ is not Symbol:
            b = as_number(b)
            if b.__class__ is float:
                b = graph.constant(b)
    elif b.__class__ is Symbol:
        graph = b.graph
        a = as_number(a)
        if a.__class__ is float:
            a = graph.constant(a)
    else:
        return _binary_without_symbol(op, a, b)
    if a.op == "constant" or b.op == "constant":
        simpler = _simplified(op, a, b)
        if simpler is not None:
            return simpler
    # The steps of Graph.record in line: this is where a trace spends its time.
    if a.graph is not b.graph:
        return graph.record(op, a, b)
    i, j = a.index, b.index
    if i > j and op in COMMUTATIVE:
        a, b, i, j = b, a, j, i
    entry = (op, i, j)
    node = graph._known.get(entry)
    if node is None:
        nodes = graph.nodes
        index = len(nodes)
        if index >= graph.most:
            graph.refuse_more()
        kind = Condition if op in CONDITIONS else Symbol
        node = graph._known[entry] = kind(graph, index, op, (a, b))
        nodes.append(node)
    return node


def _binary_without_symbol(op: str, a: Any, b: Any) -> Any:
    """Do what `binary` does for operands that are plain numbers or conditions."""
    if op == "add" and is_boolean(a) and is_boolean(b):
        return logical("logical_or", a, b)
    if op == "multiply" and is_boolean(a) and is_boolean(b):
        return logical("logical_and", a, b)
    a, b = as_number(a), as_number(b)
    if isinstance(a, Symbol) or isinstance(b, Symbol):
        return binary(op, a, b)
    return _power(a, b) if op == "power" else fold(op, a, b)


def _simplified(op: str, a: Symbol, b: Symbol) -> Any:
    """Return what an operation with a constant operand is equal to, or None."""
    if a.op == b.op:
        result = _power(a.leaf, b.leaf) if op == "power" else fold(op, a.leaf, b.leaf)
        return a.graph.constant(result) if isinstance(result, float) else result
    if a.op == "constant":
        return b if op == "multiply" and a.leaf == 1.0 else None
    value = b.leaf
    if value == 1.0 and op in ("multiply", "divide"):
        return a
    if value == 0.0 and op == "subtract":
        return a if math.copysign(1.0, value) > 0.0 else None
    return _power(a, value) if op == "power" else None


def _power(base: Any, exponent: float) -> Any:
    """Return a power with the meaning of NumPy's arrays, or None if it is to be recorded."""
    if exponent == 2.0:
        return binary("multiply", base, base)
    if exponent == 1.0:
        return base
    if exponent == 0.5:
        return unary("sqrt", base)
    if exponent == 0.0:
        return 1.0
    if exponent == -1.0:
        return binary("divide", 1.0, base)
    return None if isinstance(base, Symbol) else fold("power", base, exponent)


def logical(op: str, a: Any, b: Any) -> Any:
    """Record ``logical_and``, ``logical_or`` or ``logical_xor`` of two truth values or numbers."""
    a, b = as_condition(a), as_condition(b)
    if not isinstance(a, Condition):
        a, b = b, a
    if not isinstance(a, Condition):
        return fold(op, a, b)
    if isinstance(b, Condition):
        return a.graph.record(op, a, b)
    if op == "logical_and":
        return a if b else np.False_
    if op == "logical_or":
        return np.True_ if b else a
    return negation(a) if b else a


def negation(value: Any) -> Any:
    """Record ``logical_not`` of a truth value or number."""
    value = as_condition(value)
    if not isinstance(value, Condition):
        return np.bool_(not value)
    if value.op == "logical_not":
        return value.args[0]
    return value.graph.record("logical_not", value)


def choose(condition: Any, a: Any, b: Any) -> Any:
    """Record ``where``: the first value where the condition holds, else the second."""
    condition = as_condition(condition)
    if is_boolean(a) and is_boolean(b):
        held = logical("logical_and", condition, a)
        return logical("logical_or", held, logical("logical_and", negation(condition), b))
    a, b = as_number(a), as_number(b)
    if not isinstance(condition, Condition):
        return a if condition else b
    graph = condition.graph
    a = graph.constant(a) if a.__class__ is float else a
    b = graph.constant(b) if b.__class__ is float else b
    return a if a is b else graph.record("where", condition, a, b)


def symbols_among(expressions: Iterable[Any]) -> list[Symbol]:
    """Return the expressions that are no numbers."""
    return [each for each in expressions if isinstance(each, Symbol)]


def reachable(
    expressions: Iterable[Any], operands: Callable[[Symbol], Iterable[Symbol]] = attrgetter("args")
) -> list[Symbol]:
    """Return every node that expressions are computed from, themselves included, in order."""
    roots = symbols_among(expressions)
    for node in roots:
        if node.graph is not roots[0].graph:
            raise refusal(
                "Cannot read symbols of two graphs together",
                expected="symbols of one trace",
                found=f"{roots[0]} and {node}",
                remedy="Read the outputs of each trace by themselves",
            )
    found = {node.index: node for node in roots}
    pending = list(found.values())
    for node in pending:  # which grows
        for each in operands(node):
            if each.index not in found:
                found[each.index] = each
                pending.append(each)
    return [found[index] for index in sorted(found)]


def may_jump(values: Iterable[Any]) -> bool:
    """Return whether any of some expressions, or numbers, holds an operation that can jump.

    ``where`` is none that refuses arguments by NaN, and none that replaces a single value, such as
    a divisor of zero: motions pass that value in no time. Extrema may rest at a value.
    """
    nodes = reachable(values)
    absorbing = any(node.op in ("fmax", "fmin") for node in nodes)  # NaN
    resting: set[int] = set()
    for node in nodes:
        if node.op in _RESTING or any(each.index in resting for each in node.args):
            resting.add(node.index)
        if node.op == "where":
            condition, *results = node.args
            if condition.op in ("equal", "not_equal") and condition.index not in resting:
                continue
            refusing = any(e.op == "constant" and math.isnan(e.leaf) for e in results)
            if refusing and not absorbing:
                continue
        if node.op in JUMPING:
            return True
    return False


def _operator(op: str) -> Callable[[Any, Any], Any]:
    """Make the method ``symbol <op> other``."""

    def method(self: Symbol, other: Any) -> Any:
        if other.__class__ is Symbol or isinstance(other, _OPERANDS):
            return binary(op, self, other)
        return NotImplemented

    return method


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    """Make the method ``other <op> symbol``."""

    def method(self: Symbol, other: Any) -> Any:
        return binary(op, other, self) if isinstance(other, _OPERANDS) else NotImplemented

    return method


def _logical_operator(op: str) -> Callable[[Any, Any], Any]:
    """Make the method ``condition <op> other``, which is symmetric."""

    def method(self: Condition, other: Any) -> Any:
        return logical(op, self, other) if is_boolean(other) else NotImplemented

    return method


class Symbol:
    """A number that is not known yet: one immutable node of a `Graph`.

    Symbols are made by `Graph.input` and by computing with symbols, and behave like ``np.float64``
    in equations: operators, NumPy functions, ``.shape == ()``, ``.item()``. Operations that need a
    number (``float()``, ``math.sin``, an index) raise `TraceError`, and so do decisions (``if``)
    outside of an exploration of its branches (`branches.explore`). Two equal expressions are one
    object; ``==`` records a comparison, so compare symbols with ``is``. Hashing is by identity.
    """

    __slots__ = ("args", "graph", "index", "leaf", "op")

    shape = ()
    ndim = 0
    size = 1
    dtype = np.dtype(object)
    __hash__ = object.__hash__

    def __init__(
        self, graph: Graph, index: int, op: str, args: tuple[Symbol, ...], leaf: Any = None
    ) -> None:
        self.graph = graph  # the graph that owns the node
        self.index = index  # position in ``graph.nodes``
        self.op = op  # ``"input"``, ``"constant"``, or an operation of the vocabulary
        self.args = args  # operands, all with a smaller index; empty for an input and a constant
        self.leaf = leaf  # the key of an input, the value of a constant, else None

    @property
    def key(self) -> Hashable:
        """Key of an input."""
        key: Hashable = self._leaf_of("input")
        return key

    @property
    def value(self) -> float:
        """Value of a constant."""
        return float(self._leaf_of("constant"))

    def _leaf_of(self, op: str) -> Any:
        """Return the content of a leaf of the given kind."""
        if self.op != op:
            raise AttributeError(f"{self!r} is no {op}")
        return self.leaf

    def __repr__(self) -> str:
        if self.op in ("input", "constant"):
            return f"<#{self.index} {self.op} {self.leaf!r}>"
        return f"<#{self.index} {self.op}({', '.join(f'#{arg.index}' for arg in self.args)})>"

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __pow__, __rpow__ = _operator("power"), _reflected("power")
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _operator("remainder"), _reflected("remainder")
    __lt__, __gt__ = _operator("less"), _reflected("less")
    __le__, __ge__ = _operator("less_equal"), _reflected("less_equal")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __neg__(self) -> Any:
        return unary("negative", self)

    def __pos__(self) -> Any:
        return as_number(self)

    def __abs__(self) -> Any:
        return unary("absolute", self)

    def __copy__(self) -> Symbol:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Symbol:
        return self

    @property
    def T(self) -> Symbol:
        """The symbol itself, as for ``np.float64``."""
        return self

    @property
    def real(self) -> Symbol:
        """The symbol itself, as for ``np.float64``."""
        return self

    def item(self) -> Symbol:
        """Return the symbol itself, as for ``np.float64``."""
        return self

    copy = conjugate = conj = item

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from flexure.diagrams.scalars.expressions.array import call_ufunc

        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: Any
    ) -> Any:
        from flexure.diagrams.scalars.expressions.array import call_function

        return call_function(function, types, args, options)

    def __bool__(self) -> bool:
        branches = self.graph.branches
        if branches is None:
            raise needs_number("decision", self)
        return branches.decide(self)

    def __format__(self, spec: str) -> str:
        if spec:
            raise needs_number("text", self)
        return repr(self)

    __array__ = only_of_numbers("array")
    __float__ = __complex__ = only_of_numbers("float")
    __int__ = __index__ = __round__ = __trunc__ = only_of_numbers("integer")
    __floor__ = __ceil__ = only_of_numbers("integer")


class Condition(Symbol):
    """A truth value that is not known yet: what comparing symbols gives.

    It combines with ``& | ^ ~`` like ``np.bool_`` and counts as 1.0 or 0.0 in arithmetic.
    """

    __slots__ = ()

    __and__ = __rand__ = _logical_operator("logical_and")
    __or__ = __ror__ = _logical_operator("logical_or")
    __xor__ = __rxor__ = _logical_operator("logical_xor")

    def __invert__(self) -> Any:
        return negation(self)


_OPERANDS = (Symbol, *_NUMBERS)
