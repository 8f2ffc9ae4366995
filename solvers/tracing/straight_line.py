"""Derivatives as generated Python: short statements, no calls between blocks.

The text is made from a trace. An operation that only one other reads is written within its
statement, since fewer statements are compiled and run faster. Statements that depend on neither
time nor state run once per binding; the rest is a function of ``(t, x)``. Arithmetic is Python's,
which for floats is that of NumPy; other functions are NumPy's own, so that the results are those of
the interpreted equations, apart from sums that NumPy adds in another order. Where Python would
raise (a division by zero, the root of a negative number), the caller is to ask the interpreted
equations instead.

Operations that only one side of a ``where`` needs stand under an ``if``, so that what an equation
guards by a branch, such as a quotient, stays guarded. Calls of what cannot be traced
(`flexure.solvers.tracing.interpreted_blocks`) stand where all that they read is known.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.expressions.expression import reachable, symbols_among
from flexure.diagrams.scalars.expressions.vocabulary import OPERATIONS
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, TIME, Key
from flexure.solvers.tracing.interpreted_blocks import Call
from flexure.solvers.tracing.trace import FOREIGN, number_behind

#: Gives the derivatives at a time and state.
Function: TypeAlias = Callable[[float, FloatArray], FloatArray]
#: What a bound function may raise where the interpreted equations give NaN or infinity.
ARITHMETIC_ERRORS = (ZeroDivisionError, ValueError, OverflowError)

#: The sides of conditions, outermost first, on which alone an operation is needed.
_Region: TypeAlias = tuple[tuple[int, bool], ...]
_DEEPEST = 32  # conditions within conditions
_LONGEST = 120  # characters of an operation that is written in the text of another
#: Operations whose arguments are names: they are written twice, or under a condition.
_APART = ("where", "maximum", "minimum", "isnan")
_FRAGILE = ("divide", "sqrt")  # operations in which Python may raise

_PATTERNS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "negative": "-{}",
    "absolute": "abs({})",
    "sqrt": "sqrt({})",
    "maximum": "{0} if {0} >= {1} or {0} != {0} else {1}",
    "minimum": "{0} if {0} <= {1} or {0} != {0} else {1}",
    "where": "{1} if {0} else {2}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "equal": "{} == {}",
    "not_equal": "{} != {}",
    "logical_and": "{} and {}",
    "logical_or": "{} or {}",
    "logical_xor": "{} != {}",
    "logical_not": "not {}",
    "isnan": "{0} != {0}",
    "isfinite": "-inf < {} < inf",
    "isinf": "abs({}) == inf",
}


class StraightLine:
    """Compiled derivatives of one root system, or other expressions of its trace.

    There are as many states as expressions unless ``num_states`` says how many. ``calls`` are the
    interpreted calculations of the trace.
    """

    def __init__(
        self, expressions: list[Any], num_states: int | None = None, calls: Sequence[Call] = ()
    ) -> None:
        num_states = len(expressions) if num_states is None else num_states
        arguments = [argument for call in calls for argument in call.arguments]
        ends = symbols_among([*expressions, *arguments])
        nodes = reachable([*ends, *[result for call in calls for result in call.results]])
        self._keys: list[Key] = []
        names = {node.index: self._name(node) for node in nodes}
        moving = _moving(nodes)
        operations = [node for node in nodes if node.op not in ("input", "constant")]
        regions = _regions(operations, moving, ends)
        items: dict[int, scalars.Symbol | str] = {node.index: node for node in operations}
        # Calls stand outside of all conditions: interpretation makes each of them every time.
        items |= {
            call.results[0].index: f"{_listed(call.results, names)} = "
            f"f{number}({_listed(call.arguments, names)})"
            for number, call in enumerate(calls)
            if len(call.results)
        }
        once, always = _Writer(names), _Writer(names)
        nested = _nested(operations, regions, moving, ends)
        for index in sorted(items):
            writer = always if index in moving else once
            item = items[index]
            if isinstance(item, str):
                writer.put(index, (), item)
            elif index in nested and len(text := _expression(item, names)) < _LONGEST:
                names[index] = f"({text})"
            else:
                writer.put(index, regions[index], item)
        self.operations = len(operations)  # number of its operations
        # The text of the program.
        self.source = _program(
            len(self._keys),
            num_states,
            len(calls),
            once.lines(),
            always.lines(),
            _listed(expressions, names),
        )
        scope: dict[str, Any] = {
            f"np_{name}": operation for name, operation in OPERATIONS.items()
        } | {"inf": np.inf, "nan": np.nan, "array": np.array}
        exec(compile("from math import sqrt\n" + self.source, "<straight line>", "exec"), scope)
        self._bind: Callable[[list[float], Sequence[Any]], Function] = scope["bind"]

    def bind(self, store: Store, functions: Sequence[Callable[..., Any]] = ()) -> Function:
        """Return the expressions as a function, with the present parameters and inputs.

        ``functions`` are those of the `Interpreter` of the calls.
        """
        return self._bind([number_behind(store, key) for key in self._keys], functions)

    def _name(self, node: scalars.Symbol) -> str:
        """Return the name of a node in the program."""
        if node.op == "constant":
            return f"({node.value!r})"
        if node.op != "input":
            return f"v{node.index}"
        key = cast("Key", node.key)
        (what, where, _), component = key
        if what == TIME:
            return "t"
        if what == STATE:
            return f"x{component}"
        if what == FOREIGN:
            return f"y{where}_{component}"
        self._keys.append(key)
        return f"c{len(self._keys) - 1}"


def following(code: Callable[[], StraightLine], store: Store) -> Function:
    """Return code as a function of time and state that is bound anew where other values changed."""
    last: tuple[int, Function] | None = None

    def run(time: float, x: FloatArray) -> FloatArray:
        nonlocal last
        if last is None or last[0] != store.revision:
            last = store.revision, code().bind(store)
        return last[1](time, x)

    return run


def _moving(nodes: Iterable[scalars.Symbol]) -> set[int]:
    """Find what changes with time and state."""
    moving: set[int] = set()
    for node in nodes:
        if node.op == "input":
            if cast("Key", node.key)[0][0] in (TIME, STATE, FOREIGN):
                moving.add(node.index)
        else:
            for arg in node.args:
                if arg.index in moving:
                    moving.add(node.index)
                    break
    return moving


def _regions(
    operations: Sequence[scalars.Symbol], moving: set[int], ends: Iterable[scalars.Symbol]
) -> dict[int, _Region]:
    """Find on which sides of conditions alone each operation is needed."""
    # An operation on constants is computed ahead, whatever the conditions of what needs it. One
    # that may raise joins the moving ones instead if that keeps it on its side.
    fragile: set[int] = set()
    for node in operations:
        if node.index not in moving and (
            node.op in _FRAGILE or any(arg.index in fragile for arg in node.args)
        ):
            fragile.add(node.index)
    regions: dict[int, _Region] = {end.index: () for end in ends}
    for_moving: set[int] = set()
    for_constants: set[int] = set()
    for node in reversed(operations):
        index = node.index
        if index not in moving:
            if index in fragile and regions[index] and index not in for_constants:
                moving.add(index)
            elif index in for_moving:
                regions[index] = ()
        needed_for = for_moving if index in moving else for_constants
        region = needed = regions[index]
        for place, arg in enumerate(node.args):
            if place and node.op == "where" and len(region) < _DEEPEST:
                needed = (*region, (node.args[0].index, place == 1))
            known = regions.get(arg.index, needed)
            regions[arg.index] = needed if known == needed else _common(known, needed)
            if arg.index not in moving:
                needed_for.add(arg.index)
    return regions


def _nested(
    operations: Sequence[scalars.Symbol],
    regions: dict[int, _Region],
    moving: set[int],
    ends: Iterable[scalars.Symbol],
) -> set[int]:
    """Find operations that one other alone reads, in whose text they can be written."""
    readers: dict[int, scalars.Symbol | None] = {}
    for node in operations:
        for arg in node.args:
            readers[arg.index] = None if arg.index in readers else node
    found = set()
    for node in operations:
        reader = readers.get(node.index)
        if (
            reader is not None
            and node.op != "where"
            and reader.op not in _APART
            and regions[node.index] == regions[reader.index]
            and (node.index in moving) == (reader.index in moving)
        ):
            found.add(node.index)
    return found.difference(end.index for end in ends)


def _common(a: _Region, b: _Region) -> _Region:
    """Return the conditions that two regions share, outermost first."""
    shared = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        shared += 1
    return a[:shared]


@dataclass
class _If:
    """Statements for both sides of a condition."""

    condition: str
    sides: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))


class _Writer:
    """Writes operations in their order, and those of one side of a condition under an ``if``."""

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names
        self._waiting: dict[_Region, deque[tuple[int, scalars.Symbol | str]]] = {}

    def put(self, index: int, region: _Region, item: scalars.Symbol | str) -> None:
        """Add an operation or a finished statement; within a region in ascending order."""
        self._waiting.setdefault(region, deque()).append((index, item))

    def lines(self) -> list[str]:
        """Return the lines of all statements."""
        statements: list[str | _If] = []
        self._fill(statements, (), math.inf)
        return list(_indented(statements, ""))

    def _fill(self, statements: list[str | _If], region: _Region, before: float) -> None:
        """Write what waits in a region and comes before an index."""
        waiting = self._waiting.get(region)
        while waiting and waiting[0][0] < before:
            _, item = waiting.popleft()
            if isinstance(item, str):
                statements.append(item)
            elif not (item.op == "where" and self._choose(statements, region, item)):
                name = self._names[item.index]
                statements.append(f"{name} = {_expression(item, self._names)}")

    def _choose(self, statements: list[str | _If], region: _Region, node: scalars.Symbol) -> bool:
        """Write a ``where`` as ``if``, unless there is nothing else to put there."""
        condition, *values = node.args
        test = self._names[condition.index]
        sides = [(*region, (condition.index, holds)) for holds in (True, False)]
        last = statements[-1] if statements else None
        if not (isinstance(last, _If) and last.condition == test):
            if not any(self._is_waiting(side, node.index) for side in sides):
                return False
            last = _If(test)
            statements.append(last)
        for written, side, value in zip(last.sides, sides, values, strict=True):
            self._fill(written, side, node.index)
            written.append(f"{self._names[node.index]} = {self._names[value.index]}")
        return True

    def _is_waiting(self, region: _Region, before: int) -> bool:
        waiting = self._waiting.get(region)
        return waiting is not None and len(waiting) > 0 and waiting[0][0] < before


def _indented(statements: Iterable[str | _If], margin: str) -> Iterator[str]:
    """Write statements as lines."""
    for statement in statements:
        if isinstance(statement, str):
            yield margin + statement
            continue
        for head, side in zip(
            (f"if {statement.condition}:", "else:"), statement.sides, strict=True
        ):
            yield margin + head
            yield from _indented(side, margin + "    ")


def _expression(node: scalars.Symbol, names: dict[int, str]) -> str:
    """Write one operation on named arguments."""
    arguments = [names[arg.index] for arg in node.args]
    pattern = _PATTERNS.get(node.op)
    if pattern is not None:
        return pattern.format(*arguments)
    return f"float(np_{node.op}({', '.join(arguments)}))"


def _listed(values: Iterable[Any], names: dict[int, str]) -> str:
    """Write a list of expressions or numbers."""
    texts = [names[v.index] if isinstance(v, scalars.Symbol) else repr(float(v)) for v in values]
    return f"[{', '.join(texts)}]"


def _program(
    num_constants: int,
    num_states: int,
    num_calls: int,
    once: list[str],
    always: list[str],
    results: str,
) -> str:
    """Put the statements together."""
    lines = ["def bind(constants, functions):"]
    if num_constants:
        lines.append(f"    [{', '.join(f'c{k}' for k in range(num_constants))}] = constants")
    if num_calls:
        lines.append(f"    [begin, {', '.join(f'f{k}' for k in range(num_calls))}] = functions")
    lines += [f"    {statement}" for statement in once]
    lines.append("    def derivatives(t, x):")
    lines.append(f"        [{', '.join(f'x{k}' for k in range(num_states))}] = x.tolist()")
    if num_calls:
        lines.append("        begin(t, x)")
    lines += [f"        {statement}" for statement in always]
    lines.append(f"        return array({results})")
    lines.append("    return derivatives")
    return "\n".join(lines) + "\n"
