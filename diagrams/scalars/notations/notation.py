"""Expressions as people write them, in Python; `latex` has them in LaTeX.

What is written gives the same number as `evaluate`, operation by operation: nothing is expanded,
cancelled or reassociated. For the sake of the reader, operands of sums, products and comparisons
change places, signs move to the front, and ``x*x`` becomes ``x**2``, which is the same for NumPy's
arrays. Functions have the names of NumPy.

A part that occurs more than once and is worth it, or that would make a line too long, becomes a
definition with a name of its own, so that the length of the text grows with the number of
operations, however often a part is used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import count
from typing import Any, ClassVar, NamedTuple

from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.scalars.expressions.expression import (
    Symbol,
    as_number,
    reachable,
    symbols_among,
)

_WORTH_A_NAME = 4  # operations of a part that occurs more than once
_LONGEST = 100  # operations in a line


class Written(NamedTuple):
    """Expressions as text."""

    results: tuple[str, ...]  # one text per expression
    # Names that occur in the texts, with what they stand for; each uses earlier ones only.
    definitions: tuple[tuple[str, str], ...]


def write_python(
    outputs: Iterable[Any],
    names: Mapping[Any, str],
    *,
    constants: Container[Any] = (),
    reserved: Iterable[str] = (),
) -> Written:
    """Write expressions of one graph, and numbers, in Python.

    ``names`` has what each input is called, by its key; UnknownNameError is raised where one is
    missing. Inputs with the keys in ``constants`` are coefficients: they go before others in
    products, and behind them in comparisons. Definitions are called neither like inputs nor by a
    reserved name. The texts use the names, the functions of NumPy, ``inf`` and ``nan``, and are
    Python as far as the names are identifiers.

    >>> from flexure.diagrams.scalars import Graph, where
    >>> graph = Graph()
    >>> x, k = graph.input(0), graph.input(1)
    >>> write_python([-k * (x - 1.0) / (2.0 * k), where(x > 0.0, x * x, 0.0)], {0: "x", 1: "k"})
    Written(results=('-k*(x - 1)/(2*k)', 'x**2 if x > 0 else 0'), definitions=())
    """
    return write(_Python(), outputs, names, constants, reserved)


def write(
    notation: Notation,
    outputs: Iterable[Any],
    names: Mapping[Any, str],
    constants: Container[Any],
    reserved: Iterable[str],
) -> Written:
    """Write expressions in a notation; see `write_python`."""
    outputs = [as_number(output) for output in outputs]
    nodes = reachable(outputs)
    parts = _parts(nodes, symbols_among(outputs))
    fresh = _unused(notation, {*names.values(), *reserved})
    phrases: dict[int, Phrase] = {}
    definitions = []
    for node in nodes:  # in their order, so that no expression is too deep
        if node.op == "input":
            rank = Rank.CONSTANT if node.key in constants else Rank.VARIABLE
            phrase = Phrase(_name_of(node.key, names), rank=rank)
        elif node.op == "constant":
            phrase = notation.number(node.value)
        else:
            phrase = notation.operation(node, [phrases[arg.index] for arg in node.args])
        if node.index in parts:
            name = next(fresh)
            definitions.append((name, notation.text(phrase)))
            phrase = Phrase(name, rank=phrase.rank)
        phrases[node.index] = phrase
    results = [
        phrases[output.index] if isinstance(output, Symbol) else notation.number(output)
        for output in outputs
    ]
    return Written(tuple(map(notation.text, results)), tuple(definitions))


def _name_of(key: Hashable, names: Mapping[Any, str]) -> str:
    """Look up what an input is called."""
    try:
        return names[key]
    except KeyError:
        raise UnknownNameError(
            f"Cannot write an expression of the input {key!r}",
            expected="a name for every input it depends on",
            found=f"names of {len(names)} other inputs",
            remedy="Call sources(expression) for the keys that it needs",
        ) from None


def _unused(notation: Notation, taken: set[str]) -> Iterator[str]:
    """Give the names of definitions that nothing else has."""
    names = (notation.local_name(k) for k in count(1))
    return (name for name in names if name not in taken)


def _is_square(node: Symbol) -> bool:
    """Return whether a node is a number times itself."""
    return node.op == "multiply" and node.args[0] is node.args[1]


def _parts(nodes: Sequence[Symbol], outputs: Sequence[Symbol]) -> set[int]:
    """Choose the nodes that become definitions."""
    ends = {output.index for output in outputs}
    operands = {node.index: node.args[: 1 if _is_square(node) else None] for node in nodes}
    uses = Counter(arg.index for node in nodes for arg in operands[node.index])
    uses.update(output.index for output in outputs)
    chosen: set[int] = set()
    lengths: dict[int, int] = {}
    for node in nodes:
        k = node.index
        lengths[k] = bool(node.args) + sum(lengths[arg.index] for arg in operands[k])
        is_shared = uses[k] > 1 and lengths[k] >= _WORTH_A_NAME
        if is_shared or (lengths[k] >= _LONGEST and k not in ends):
            chosen.add(k)
            lengths[k] = 0
    return chosen


class Level(IntEnum):
    """How tightly the outermost operation of a phrase binds, the loosest first."""

    CHOICE = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    REMAINDER = 6
    PRODUCT = 7
    SIGN = 8
    POWER = 9
    ATOM = 10


class Rank(IntEnum):
    """Parts of a phrase, in the order of factors."""

    NUMBER = 0
    CONSTANT = 1
    VARIABLE = 2


class Phrase(NamedTuple):
    """A piece of text with its sign."""

    size: str  # the text without the sign
    binds: Level = Level.ATOM  # how tightly that binds
    is_negative: bool = False  # whether there is a minus sign before it
    rank: Rank = Rank.VARIABLE  # what it is made of

    @property
    def level(self) -> Level:
        """How tightly the text binds with its sign, if necessary as ``-(...)``."""
        is_signed_product = self.is_negative and self.binds == Level.PRODUCT
        return Level.SIGN if self.is_negative and not is_signed_product else self.binds

    @property
    def positive(self) -> Phrase:
        """The phrase without its sign."""
        return self._replace(is_negative=False)

    @property
    def negated(self) -> Phrase:
        """The phrase with the other sign."""
        return self._replace(is_negative=not self.is_negative)


class Form(NamedTuple):
    """How an operation is written."""

    template: str  # a text with a place for each operand
    level: Level  # how tightly that binds
    operands: tuple[Level, ...]  # how tightly each operand has to bind, to need no parentheses


def comparison(sign: str) -> Form:
    """Make the form of a comparison."""
    return Form(f"{{}} {sign} {{}}", Level.COMPARISON, (Level.SUM, Level.SUM))


class Notation:
    """Base class of notations: signs, parentheses, and the order of operands."""

    brackets: ClassVar[tuple[str, str]]
    forms: ClassVar[Mapping[str, Form]]

    def number(self, value: float) -> Phrase:
        """Write a constant."""
        raise NotImplementedError

    def local_name(self, k: int) -> str:
        """Return a name for a definition."""
        raise NotImplementedError

    def call(self, function: str, arguments: Sequence[str]) -> str:
        """Write the call of a function that has no form."""
        raise NotImplementedError

    def operation(self, node: Symbol, operands: Sequence[Phrase]) -> Phrase:
        """Write an operation on operands that are written already."""
        op, first, last = node.op, operands[0], operands[-1]
        if op == "negative":
            return first.negated
        if op == "add":
            return self.sum(first, last)
        if op == "subtract":
            return self.sum(first, last.negated)
        if op in ("multiply", "divide"):
            return self.product(op, first, last)
        if op in _MIRRORED and first.rank < last.rank:
            return self.form(_MIRRORED[op], last, first)
        return self.form(op, *operands)

    def sum(self, a: Phrase, b: Phrase) -> Phrase:
        """Write a sum or difference, with what is subtracted, or else a number, at the end."""
        if a.is_negative != b.is_negative:
            a, b = (b, a) if a.is_negative else (a, b)
        elif a.level != Level.SUM and (b.level == Level.SUM or a.rank == Rank.NUMBER):
            a, b = b, a
        return self.form("subtract" if b.is_negative else "add", a, b.positive)

    def product(self, op: str, a: Phrase, b: Phrase) -> Phrase:
        """Write a product or quotient behind a common sign, and coefficients before variables."""
        is_negative = a.is_negative != b.is_negative
        a, b = a.positive, b.positive
        if op == "multiply" and a.size == b.size:
            return self.form("power", a, self.number(2.0))._replace(is_negative=is_negative)
        one = self.number(1.0).size
        if op == "multiply" and one in (a.size, b.size):
            return (b if a.size == one else a)._replace(is_negative=is_negative)
        b_comes_first = b.level == Level.PRODUCT or b.rank < a.rank
        if op == "multiply" and a.level != Level.PRODUCT and b_comes_first:
            a, b = b, a
        return self.form(op, a, b)._replace(is_negative=is_negative)

    def form(self, op: str, *operands: Phrase) -> Phrase:
        """Write an operation in its form, with parentheses where an operand needs them."""
        rank = max(Rank.CONSTANT, *(operand.rank for operand in operands))
        form = self.forms.get(op)
        if form is None:
            return Phrase(self.call(op, list(map(self.text, operands))), rank=rank)
        texts = map(self.enclosed, operands, form.operands)
        return Phrase(form.template.format(*texts), form.level, rank=rank)

    def enclosed(self, phrase: Phrase, level: Level) -> str:
        """Return a text that binds at least as tightly as a level."""
        text, (opening, closing) = self.text(phrase), self.brackets
        return text if phrase.level >= level else f"{opening}{text}{closing}"

    def text(self, phrase: Phrase) -> str:
        """Return a phrase with its sign."""
        if phrase.is_negative:
            return f"-{self.enclosed(phrase.positive, Level.PRODUCT)}"
        return phrase.size


_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}


class _Python(Notation):
    """Python with the functions of NumPy."""

    brackets = ("(", ")")
    forms: ClassVar = {
        "add": Form("{} + {}", Level.SUM, (Level.SUM, Level.REMAINDER)),
        "subtract": Form("{} - {}", Level.SUM, (Level.SUM, Level.REMAINDER)),
        "floor_divide": Form("{}//{}", Level.REMAINDER, (Level.POWER, Level.POWER)),
        "remainder": Form("{}%{}", Level.REMAINDER, (Level.POWER, Level.POWER)),
        "multiply": Form("{}*{}", Level.PRODUCT, (Level.PRODUCT, Level.SIGN)),
        "divide": Form("{}/{}", Level.PRODUCT, (Level.PRODUCT, Level.SIGN)),
        "power": Form("{}**{}", Level.POWER, (Level.ATOM, Level.SIGN)),
        "absolute": Form("abs({})", Level.ATOM, (Level.CHOICE,)),
        "less": comparison("<"),
        "less_equal": comparison("<="),
        "greater": comparison(">"),
        "greater_equal": comparison(">="),
        "equal": comparison("=="),
        "not_equal": comparison("!="),
        "logical_xor": comparison("!="),
        "logical_not": Form("not {}", Level.NOT, (Level.NOT,)),
        "logical_and": Form("{} and {}", Level.AND, (Level.AND, Level.AND)),
        "logical_or": Form("{} or {}", Level.OR, (Level.OR, Level.OR)),
        "where": Form("{1} if {0} else {2}", Level.CHOICE, (Level.OR, Level.OR, Level.CHOICE)),
    }

    def number(self, value: float) -> Phrase:
        """Write a constant as it is printed, but integers without a point."""
        is_negative = math.copysign(1.0, value) < 0.0
        size = repr(abs(value))
        if value or not is_negative:  # there is no negative zero among Python's integers
            size = size.removesuffix(".0")
        return Phrase(size, is_negative=is_negative, rank=Rank.NUMBER)

    def local_name(self, k: int) -> str:
        """Return a1 and so on."""
        return f"a{k}"

    def call(self, function: str, arguments: Sequence[str]) -> str:
        """Write the call of a NumPy function."""
        return f"{function}({', '.join(arguments)})"
