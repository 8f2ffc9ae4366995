"""Expressions of a trace in parts, each of which becomes a function ``f(t, x, env, out)``.

Every operation is written by itself, so that it rounds as NumPy's does. Long groups of expressions
are written in chunks, which hand their results on in the environment. An operation that one other
one needs is written into that. Targets say how operations, numbers and names are spelled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from flexure.diagrams import scalars
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS
from flexure.solvers.native.emission.emission import Environment, Node, depth_first

_NO_PART = -1
_LONGEST = 80  # characters of an operation that is written into another one


#: Operations whose operands need parentheses, in the languages that are like C.
OPERATORS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "negative": "-{}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "equal": "{} == {}",
    "not_equal": "{} != {}",
    "logical_and": "{} && {}",
    "logical_or": "{} || {}",
    "logical_xor": "{} != {}",
    "logical_not": "!{}",
    "where": "{} ? {} : {}",
}


def calls(one: str, two: str, prefix: str = "") -> dict[str, str]:
    """Return patterns of calls by operation, with one operand and with two.

    Operations are words, ``"sqrt arcsin=asin"`` where names differ. All names begin with
    ``prefix``.
    """
    found = {}
    for words, operands in ((one, "({})"), (two, "({}, {})")):
        for word in words.split():
            operation, _, name = word.partition("=")
            found[operation] = f"{prefix}{name or operation}{operands}"
    return found


def spelled(value: float, undefined: str, infinite: str) -> str:
    """Spell a number; languages differ in what they call numbers that are not finite."""
    if value != value:
        return undefined
    if value in (math.inf, -math.inf):
        return infinite if value > 0.0 else f"-{infinite}"
    return repr(float(value))


@dataclass
class Part:
    """A function to be written."""

    nodes: list[Node]  # the operations
    # Expressions and numbers that are results, with their positions.
    results: list[tuple[int, Any]] = field(default_factory=list)
    behind: set[int] = field(default_factory=set)  # the parts that it needs, itself among them

    @property
    def operands(self) -> list[Node]:
        """The operands of its operations and results, as often as they occur."""
        operands = [arg for node in self.nodes for arg in node.args]
        return operands + [each for _, each in self.results if isinstance(each, scalars.Symbol)]


@dataclass(frozen=True)
class Plan:
    """Parts that compute groups of expressions, which share what they have in common.

    Results of all groups are numbered end to end. ``needs`` are, for each group, the parts that
    compute it, in their order; ``handed`` is where in the environment parts hand results on, by
    index of the node.
    """

    parts: list[Part]
    needs: list[list[int]]
    handed: dict[int, int]


def plan_parts(groups: Sequence[Sequence[Any]], environment: Environment, chunk: int) -> Plan:
    """Cut groups of expressions of one trace into parts of ``chunk`` operations.

    Some groups may be asked for alone. Later groups use the results of earlier ones, and then need
    their functions. The environment gives room to what parts hand on.
    """
    parts: list[Part] = []
    part_of = dict.fromkeys(environment.places, _NO_PART)
    all_needs: list[list[int]] = []
    count = 0
    for group in groups:
        first, order = len(parts), depth_first(group, part_of)
        for start in range(0, len(order), chunk) or [0]:
            part = Part(order[start : start + chunk])
            args = [part_of.get(arg.index, _NO_PART) for node in part.nodes for arg in node.args]
            part.behind.update({len(parts)}, *(parts[k].behind for k in {*args} - {_NO_PART}))
            part_of |= {node.index: len(parts) for node in part.nodes}
            parts.append(part)
        needs: set[int] = set()
        for output in group:
            symbolic = isinstance(output, scalars.Symbol)
            own = part_of.get(output.index, _NO_PART) if symbolic else _NO_PART
            if own != _NO_PART:
                needs |= parts[own].behind
            parts[max(own, first)].results.append((count, output))
            count += 1
        all_needs.append(sorted(needs.union(*(part.behind for part in parts[first:]))))
    return Plan(parts, all_needs, _handed_on(parts, part_of, environment))


def _handed_on(
    parts: Sequence[Part], part_of: Mapping[int, int], environment: Environment
) -> dict[int, int]:
    """Reserve room for what a part computes and a later one uses."""
    handed: dict[int, int] = {}
    for k, part in enumerate(parts):
        for node in part.operands:
            if _NO_PART < part_of.get(node.index, k) < k and node.index not in handed:
                handed[node.index] = environment.reserve()
    return handed


class PartWriter:
    """Writes the statements of one part; a target derives from it.

    Patterns of operations are in ``operators``, where operands need parentheses, and in ``calls``.
    ``truth`` is the pattern of a number as a truth value, ``choice`` that of the reverse.
    """

    operators: ClassVar[Mapping[str, str]]
    calls: ClassVar[Mapping[str, str]]
    truth: ClassVar[str]
    choice: ClassVar[str]

    def __init__(self, environment: Environment, handed: Mapping[int, int]) -> None:
        self._places = environment.places
        self._handed = handed
        self._lines: list[str] = []
        self._texts: dict[int, str] = {}
        self._compound: set[int] = set()  # what needs parentheses as an operand
        self._uses: Counter[int] = Counter()
        self._names = 0

    def number(self, value: float) -> str:
        """Spell a number."""
        raise NotImplementedError

    def declaration(self, node: Node, name: str, text: str) -> str:
        """Write the statement that gives a name to a value."""
        raise NotImplementedError

    def statements(self, part: Part) -> list[str]:
        """Write operations, and store their results."""
        handed = [node for node in part.nodes if node.index in self._handed]
        self._uses = Counter(node.index for node in (*part.operands, *handed))
        for node in part.nodes:
            self._put(node, self._operation(node), compound=node.op in self.operators)
        stores = [f"env[{self._handed[node.index]}] = {self._stored(node)};" for node in handed]
        stores += [f"out[{k}] = {self._stored(each)};" for k, each in part.results]
        return [*self._lines, *stores]

    def _put(self, node: Node, text: str, *, compound: bool) -> None:
        """Give a name to a value, unless it can be written where it is used."""
        if self._uses[node.index] > 1 or len(text) > _LONGEST:
            self._name(node, text)
            return
        self._texts[node.index] = text
        if compound:
            self._compound.add(node.index)

    def _name(self, node: Node, text: str) -> None:
        """Give a name to a value."""
        self._names += 1
        self._lines.append(self.declaration(node, f"v{self._names}", text))
        self._texts[node.index] = f"v{self._names}"

    def _value(self, node: Node) -> str:
        """Return how a value is written."""
        if node.op == "constant":
            return self.number(node.value)
        if node.index not in self._texts:
            array, position = self._places.get(node.index) or ("env", self._handed[node.index])
            if array == "t":
                return "t"
            text = f"{array}[{position}]"
            condition = node.op in CONDITIONS
            self._put(node, self.truth.format(text) if condition else text, compound=condition)
        return self._texts[node.index]

    def _operand(self, node: Node) -> str:
        """Return how a value is written beside an operator."""
        text = self._value(node)
        return f"({text})" if node.index in self._compound or text[0] == "-" else text

    def _operation(self, node: Node) -> str:
        """Write one operation."""
        pattern = self.operators.get(node.op)
        if pattern is not None:
            return pattern.format(*map(self._operand, node.args))
        return self.calls[node.op].format(*map(self._value, node.args))

    def _stored(self, value: Any) -> str:
        """Return how a result is written as a number."""
        if not isinstance(value, scalars.Symbol):
            return self.number(float(value))
        text = self._value(value)
        if value.op not in CONDITIONS:
            return text
        return self.choice.format(self._operand(value))
