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
from flexure.diagrams.scalars.vocabulary import CONDITIONS
from flexure.solvers.native.emission.emission import Environment, Node, depth_first

CHUNK = 400  # operations
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
    texts = write_parts([outputs], environment, chunk).texts
    if len(texts) == 1:
        return texts[0]
    return f"inSequence([{', '.join(texts)}])"


def write_parts(
    groups: Sequence[Sequence[Any]], environment: Environment, chunk: int = CHUNK
) -> Parts:
    """Write functions that compute groups of expressions, of which some may be asked for alone.

    What an earlier group computes is used by later ones, which then need its functions.
    """
    parts: list[list[Node]] = []
    part_of: dict[int, int] = {}
    found = Parts()
    results: list[list[tuple[int, Any]]] = []
    count = 0
    for group in groups:
        order = depth_first(group, environment.places)
        new = [node for node in order if node.index not in part_of]
        first = len(parts)
        parts += [new[k : k + chunk] for k in range(0, len(new), chunk)]
        if first == len(parts):
            parts.append([])
        results += [[] for _ in parts[first:]]
        for k in range(first, len(parts)):
            part_of |= {node.index: k for node in parts[k]}
        for output in group:
            own = part_of.get(output.index, -1) if isinstance(output, scalars.Symbol) else -1
            results[own if own >= first else len(parts) - 1].append((count, output))
            count += 1
        used = {part_of[node.index] for node in order}
        found.needs.append(sorted(used | {*range(first, len(parts))}))
    handed: dict[int, int] = {}
    for k, part in enumerate(parts):
        taken = [arg for node in part for arg in node.args]
        taken += [each for _, each in results[k] if isinstance(each, scalars.Symbol)]
        for node in taken:
            if part_of.get(node.index, k) < k and node.index not in handed:
                handed[node.index] = environment.reserve()
    for part, wanted in zip(parts, results, strict=True):
        found.texts.append(_Writer(environment, handed).write(part, wanted))
    return found


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

    def write(self, part: Sequence[Node], wanted: Sequence[tuple[int, Any]]) -> str:
        """Write operations, and store their results."""
        symbols = [(k, each) for k, each in wanted if isinstance(each, scalars.Symbol)]
        own = {node.index for node in part}
        self._uses.update(arg.index for node in part for arg in node.args)
        self._uses.update(each.index for _, each in symbols)
        self._uses.update(index for index in own if index in self._handed)
        for node in part:
            self._put(node, self._operation(node), compound=node.op in _OPERATORS)
        stores = [
            f"env[{self._handed[k]}] = {self._stored(n)};"
            for n in part
            if (k := n.index) in self._handed
        ]
        stores += [f"out[{k}] = {self._stored(each)};" for k, each in wanted]
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


__all__ = ["CHUNK", "Parts", "arithmetic", "number", "write_function", "write_parts"]
