"""Expressions of a trace as JavaScript functions ``f(t, x, env, out)`` over Float64Arrays.

Every operation rounds as NumPy's does, one by one; only functions such as ``sin``, which engines of
JavaScript compute in their own ways, may differ in the last bits.

V8 optimizes no function whose code is too long, and takes the longer for each of its operations the
more there are. So what is long is written in chunks, which hand their results on in the
environment. An operation that one other one needs is written into that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from flexure.diagrams import scalars
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS
from flexure.solvers.native.emission.emission import Environment, Node, depth_first

CHUNK = 400  # operations
_NO_PART = -1
_LONGEST = 80  # characters of an operation that is written into another one

#: With operands in parentheses.
_OPERATORS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "fmod": "{} % {}",
    "negative": "-{}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "equal": "{} === {}",
    "not_equal": "{} !== {}",
    "logical_and": "{} && {}",
    "logical_or": "{} || {}",
    "logical_xor": "{} !== {}",
    "logical_not": "!{}",
    "where": "{} ? {} : {}",
}
_CALLS = {
    "absolute": "Math.abs({})",
    "sign": "sign({})",
    "maximum": "Math.max({}, {})",
    "minimum": "Math.min({}, {})",
    "exp2": "Math.pow(2, {})",
    "arcsin": "Math.asin({})",
    "arccos": "Math.acos({})",
    "arctan": "Math.atan({})",
    "arctan2": "Math.atan2({}, {})",
    "hypot": "Math.hypot({}, {})",
    "arcsinh": "Math.asinh({})",
    "arccosh": "Math.acosh({})",
    "arctanh": "Math.atanh({})",
    "isfinite": "Number.isFinite({})",
    "isnan": "Number.isNaN({})",
    "isinf": "isInfinite({})",
    "rint": "rint({})",
    "copysign": "copysign({}, {})",
    "fmax": "fmax({}, {})",
    "fmin": "fmin({}, {})",
    "power": "power({}, {})",
    "remainder": "remainder({}, {})",
    "floor_divide": "floorDivide({}, {})",
} | {
    name: f"Math.{name}({{}})"
    for name in (
        *("sqrt", "cbrt", "floor", "ceil", "trunc", "exp", "expm1", "log", "log2", "log10"),
        *("log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    )
}


def arithmetic() -> str:
    """Return the functions that the text of equations calls."""
    return files(__package__).joinpath("arithmetic.js").read_text(encoding="utf-8")


def number(value: float) -> str:
    """Spell a number.

    >>> [number(each) for each in (2.0, -0.5, 1e22, float("inf"), -0.0)]
    ['2', '-0.5', '1e+22', 'Infinity', '-0']
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0.0 else "-Infinity"
    return repr(float(value)).removesuffix(".0")


@dataclass
class Parts:
    """Functions that compute groups of expressions, which share what they have in common.

    Attributes
    ----------
    texts : list of str
        Functions ``(t, x, env, out) => {...}``. Results go to ``out``, those of all groups end to
        end.
    needs : list of list of int
        For each group the functions that compute it, in their order.
    """

    texts: list[str] = field(default_factory=list)
    needs: list[list[int]] = field(default_factory=list)


def write_function(outputs: Sequence[Any], environment: Environment, chunk: int = CHUNK) -> str:
    """Write a function that computes expressions, as an expression of JavaScript.

    Parameters
    ----------
    outputs : sequence
        Expressions of one trace, or numbers; they go to ``out`` in their order.
    environment : Environment
        Knows where the inputs are, and gives room to what chunks hand on.
    chunk : int
        Operations per chunk.
    """
    return in_sequence(write_parts([outputs], environment, chunk).texts)


def in_sequence(texts: Sequence[str]) -> str:
    """Write a function that calls others one after the other."""
    return texts[0] if len(texts) == 1 else f"inSequence([{', '.join(texts)}])"


def write_parts(
    groups: Sequence[Sequence[Any]], environment: Environment, chunk: int = CHUNK
) -> Parts:
    """Write functions that compute groups of expressions, of which some may be asked for alone.

    Later groups use the results of earlier ones, and then need their functions.
    """
    parts: list[_Part] = []
    part_of = dict.fromkeys(environment.places, _NO_PART)
    found, count = Parts(), 0
    for group in groups:
        first, order = len(parts), depth_first(group, part_of)
        for start in range(0, len(order), chunk) or [0]:
            part = _Part(order[start : start + chunk])
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
        found.needs.append(sorted(needs.union(*(part.behind for part in parts[first:]))))
    handed = _handed_on(parts, part_of, environment)
    found.texts = [_Writer(environment, handed).write(part) for part in parts]
    return found


@dataclass
class _Part:
    """A function to be written.

    Attributes
    ----------
    nodes : list of Node
        The operations.
    results : list of (int, object)
        Expressions and numbers that are results, with their positions.
    behind : set of int
        The parts that it needs, itself among them.
    """

    nodes: list[Node]
    results: list[tuple[int, Any]] = field(default_factory=list)
    behind: set[int] = field(default_factory=set)

    @property
    def operands(self) -> list[Node]:
        """The operands of its operations and results, as often as they occur."""
        operands = [arg for node in self.nodes for arg in node.args]
        return operands + [each for _, each in self.results if isinstance(each, scalars.Symbol)]


def _handed_on(
    parts: Sequence[_Part], part_of: Mapping[int, int], environment: Environment
) -> dict[int, int]:
    """Reserve room for what a part computes and a later one uses."""
    handed: dict[int, int] = {}
    for k, part in enumerate(parts):
        for node in part.operands:
            if _NO_PART < part_of.get(node.index, k) < k and node.index not in handed:
                handed[node.index] = environment.reserve()
    return handed


class _Writer:
    """Writes the function of one part."""

    def __init__(self, environment: Environment, handed: Mapping[int, int]) -> None:
        self._places = environment.places
        self._handed = handed
        self._lines: list[str] = []
        self._texts: dict[int, str] = {}
        self._compound: set[int] = set()  # what needs parentheses as an operand
        self._uses: Counter[int] = Counter()
        self._names = 0

    def write(self, part: _Part) -> str:
        """Write operations, and store their results."""
        handed = [node for node in part.nodes if node.index in self._handed]
        self._uses = Counter(node.index for node in (*part.operands, *handed))
        for node in part.nodes:
            self._put(node, self._operation(node), compound=node.op in _OPERATORS)
        stores = [f"env[{self._handed[node.index]}] = {self._stored(node)};" for node in handed]
        stores += [f"out[{k}] = {self._stored(each)};" for k, each in part.results]
        body = "\n".join([*self._lines, *stores])
        return f"(t, x, env, out) => {{\n{body}\n}}"

    def _put(self, node: Node, text: str, *, compound: bool) -> None:
        """Give a name to a value, unless it can be written where it is used."""
        if self._uses[node.index] > 1 or len(text) > _LONGEST:
            self._names += 1
            self._lines.append(f"const v{self._names} = {text};")
            text, compound = f"v{self._names}", False
        self._texts[node.index] = text
        if compound:
            self._compound.add(node.index)

    def _value(self, node: Node) -> str:
        """Return how a value is written."""
        if node.op == "constant":
            return number(node.value)
        if node.index not in self._texts:
            array, position = self._places.get(node.index) or ("env", self._handed[node.index])
            if array == "t":
                return "t"
            text = f"{array}[{position}]"
            condition = node.op in CONDITIONS
            self._put(node, f"{text} !== 0" if condition else text, compound=condition)
        return self._texts[node.index]

    def _operand(self, node: Node) -> str:
        """Return how a value is written beside an operator."""
        text = self._value(node)
        return f"({text})" if node.index in self._compound or text[0] == "-" else text

    def _operation(self, node: Node) -> str:
        """Write one operation."""
        pattern = _OPERATORS.get(node.op)
        if pattern is not None:
            return pattern.format(*map(self._operand, node.args))
        return _CALLS[node.op].format(*map(self._value, node.args))

    def _stored(self, value: Any) -> str:
        """Return how a result is written as a number."""
        if not isinstance(value, scalars.Symbol):
            return number(float(value))
        text = self._value(value)
        if value.op not in CONDITIONS:
            return text
        return f"{self._operand(value)} ? 1 : 0"
