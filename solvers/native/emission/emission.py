"""Expressions of a trace as LLVM functions ``f(t, x, env, out)``.

Operations are written in chunks: LLVM's effort grows faster than the length of a function. Values
pass from one chunk to a later one through the environment. Chunks are therefore cut depth first, so
that results are used soon after they are computed. Within a chunk operations have the order in
which the equations run, in which few of them wait for the one before: that is up to a tenth faster.
Every operation rounds as NumPy's does, one by one; only the functions of the C library may differ
in the last bit. Those that compute all lanes at once err by up to 4 units in the last place; their
results, too, depend on nothing but what is in the lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from flexure.diagrams import scalars
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS
from flexure.diagrams.values.symbolic_values import DISCRETE, INPUT, STATE, TIME, Key
from flexure.solvers.native.emission.indexed_choices import SelectedPlace, selected_places
from flexure.solvers.native.language.expressions import constant
from flexure.solvers.native.llvm.library import VectorFunction

CHUNK = 1000  # operations
_COPIES = 100  # results that are only copied, from which on a loop over a table copies them
#: What inputs are that stand for the directions of derivatives.
SEED = "seed"
_MOVING = (TIME, STATE, DISCRETE, SEED)

#: Where a number is: ``("t", 0)``, ``("x", i)`` or ``("env", i)``.
Place: TypeAlias = tuple[str, int]
Node: TypeAlias = scalars.Symbol
_NOWHERE = "", 0
_ARGUMENTS: Mapping[int, Sequence[Node]] = {}
VectorFunctions: TypeAlias = Mapping[str, VectorFunction]
#: A function, and what it needs declared.
Text: TypeAlias = tuple[str, set[str]]


@dataclass
class Environment:
    """The array of numbers that equations read besides time and state, as it is laid out."""

    size: int = 0  # its length
    # Where the groups of discrete values of each block begin.
    discrete: Sequence[Sequence[int]] = ()
    driven: frozenset[int] = frozenset()  # slots of inputs that are not fixed, but change with time
    # Where the inputs of the trace and other nodes are, by index of the node.
    places: dict[int, Place] = field(default_factory=dict)
    # Where parameters and fixed inputs are, by key.
    keys: dict[Key, int] = field(default_factory=dict)

    def copy(self) -> Environment:
        """Return a copy, whose changes do not concern this one."""
        return replace(self, places=dict(self.places), keys=dict(self.keys))

    def reserve(self, count: int = 1) -> int:
        """Reserve room and return where it begins."""
        start = self.size
        self.size += count
        return start

    def place_inputs(self, expressions: Iterable[Any]) -> list[Node]:
        """Place the inputs of a trace; return what is computed from parameters alone."""
        nodes = reachable(expressions)
        moving: set[int] = set()
        fixed: dict[int, Node] = {}
        for node in nodes:
            if node.op == "input":
                key = key_of(node)
                what, where, _ = key[0]
                if what in _MOVING or (what == INPUT and where in self.driven):
                    moving.add(node.index)
                if node.index not in self.places:
                    self.places[node.index] = self._place_of(key)
            elif any(arg.index in moving for arg in node.args):
                moving.add(node.index)
                for arg in node.args:
                    if arg.index not in moving and arg.args and arg.index not in self.places:
                        fixed[arg.index] = arg
        return list(fixed.values())

    def _place_of(self, key: Key) -> Place:
        """Return where the number behind an input of the trace is."""
        (what, where, index), component = key
        if what == TIME:
            return "t", 0
        if what in (STATE, SEED):
            return ("x" if what == STATE else SEED), component
        if what == DISCRETE:
            return "env", self.discrete[where][index] + component
        if key not in self.keys:
            self.keys[key] = self.reserve()
        return "env", self.keys[key]


def emit_with_preparation(
    functions: Mapping[str, Sequence[Any]],
    environment: Environment,
    *,
    lanes: int = 1,
    vectors: VectorFunctions | None = None,
) -> tuple[dict[str, Text], int]:
    """Write functions of one trace, and before them ``prepare``, which serves all of them.

    Values that depend on parameters alone are computed by ``prepare(t, x, env, out)``, whose
    results belong into the environment.

    The arguments are otherwise those of `emit`, whose results are returned by name, with where in
    the environment the results of ``prepare`` go.
    """
    expressions = [each for part in functions.values() for each in part]
    prepare, base = emit_preparation(expressions, environment, lanes=lanes, vectors=vectors)
    texts = {"prepare": prepare}
    for name, outputs in functions.items():
        texts[name] = emit(name, outputs, environment, lanes=lanes, vectors=vectors)
    return texts, base


def emit_preparation(
    expressions: Sequence[Any],
    environment: Environment,
    *,
    lanes: int = 1,
    vectors: VectorFunctions | None = None,
) -> tuple[Text, int]:
    """Write ``prepare`` alone, for functions of these expressions that are written next."""
    fixed = environment.place_inputs(expressions)
    base = environment.reserve(len(fixed))
    text = emit("prepare", fixed, environment, lanes=lanes, vectors=vectors)
    for k, node in enumerate(fixed):
        environment.places[node.index] = ("env", base + k)
    return text, base


def emit(
    name: str,
    outputs: Sequence[Any],
    environment: Environment,
    *,
    lanes: int = 1,
    vectors: VectorFunctions | None = None,
    chunk: int = CHUNK,
) -> Text:
    """Write a function that computes expressions of one trace, which go to ``out`` in their order.

    The environment knows where the inputs are, and gives room to what chunks of ``chunk``
    operations hand on. With ``lanes`` that are computed at once, arrays hold this many numbers per
    entry; ``vectors`` are functions that compute all lanes at once, by the name of the function of
    the C library, and others are called lane by lane. The text comes with what it needs declared.
    """
    return Writer(name, environment, lanes, vectors or {}).write(outputs, chunk)


def depth_first(
    outputs: Sequence[Any],
    stop: Mapping[int, Any],
    needs: Mapping[int, Sequence[Node]] = _ARGUMENTS,
) -> list[Node]:
    """Return the operations behind expressions, each after its operands and close to its use.

    Constants, and nodes whose index is in ``stop``, are left out. ``needs`` tells the operands of
    nodes for which these are not the arguments.
    """
    order: list[Node] = []
    seen: set[int] = set()
    for output in outputs:
        stack: list[Any] = [output] if isinstance(output, scalars.Symbol) else []
        while stack:
            node = stack.pop()
            if node.__class__ is tuple:  # its operands are complete
                order.append(node[0])
                continue
            index = node.index
            if index in seen or index in stop or node.op == "constant":
                continue
            seen.add(index)
            if node.args:
                stack.append((node,))
                stack.extend(needs.get(index, node.args)[::-1])
            else:
                order.append(node)
    return order


class Writer:
    """Writes one function."""

    def __init__(
        self, name: str, environment: Environment, lanes: int, vectors: VectorFunctions
    ) -> None:
        self.name = name
        self.environment = environment
        self.set_lanes(lanes)
        self.vectors = vectors
        self.parameters = f"{self.number} %t, ptr noalias %x, ptr noalias %env, ptr noalias %out"
        self.declarations: set[str] = set()
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.selected: dict[int, SelectedPlace] = {}
        self.needs: dict[int, tuple[Node, ...]] = {}  # operands that are not the arguments
        self.count = 0

    def set_lanes(self, lanes: int) -> None:
        """Write for this many numbers at once from now on."""
        self.lanes = lanes
        self.number = "double" if lanes == 1 else f"<{lanes} x double>"
        self.truth = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.suffix = "f64" if lanes == 1 else f"v{lanes}f64"

    def write(self, outputs: Sequence[Any], chunk: int) -> Text:
        """Write the chunks, and the function that calls them one after the other."""
        copies = self._copies(outputs)
        order = depth_first(outputs, self.environment.places)
        self.selected = selected_places(order, self.environment.places) if self.lanes == 1 else {}
        self.needs = {index: place.conditions for index, place in self.selected.items()}
        if self.selected:
            order = depth_first(outputs, self.environment.places, self.needs)
        cuts = range(0, len(order), chunk)
        parts = [self._arranged(order[k : k + chunk]) for k in cuts] or [[]]
        part_of = {node.index: k for k, part in enumerate(parts) for node in part}
        wanted: list[list[tuple[int, Any]]] = [[] for _ in parts]
        for k, output in enumerate(outputs):
            if k in copies:
                continue
            symbolic = isinstance(output, scalars.Symbol)
            wanted[part_of.get(output.index, 0) if symbolic else 0].append((k, output))
        handed = self._handed_on(parts, part_of)
        labels = [f"{self.name}.{k}" for k in range(len(parts))]
        if copies:
            labels.append(f"{self.name}.copies")
        single = len(labels) == 1
        texts = []
        for label, part, results in zip(labels, parts, wanted, strict=False):
            head = f"define void @{self.name}" if single else f"define internal void @{label}"
            self.lines, self.names = [], {}
            for node in part:
                self.names[node.index] = self._operation(node, handed)
                if node.index in handed:
                    self._store("env", handed[node.index], self._as_number(node, handed))
            for position, output in results:
                self._give(position, output, handed)
            body = "\n".join(["entry:", *self.lines, "  ret void"])
            texts.append(f"{head}({self.parameters}) #0 {{\n{body}\n}}\n")
        if copies:
            texts.append(self._copying(labels[-1], copies))
        if not single:
            arguments = self.parameters.replace(" noalias", "")
            calls = [f"  call void @{label}({arguments})" for label in labels]
            body = "\n".join(["entry:", *calls, "  ret void"])
            texts.append(f"define void @{self.name}({self.parameters}) #0 {{\n{body}\n}}\n")
        return "\n".join(texts), self.declarations

    def _arranged(self, part: list[Node]) -> list[Node]:
        """Return the operations of a chunk in the order in which they are written."""
        return sorted(part, key=lambda node: node.index)

    def _copies(self, outputs: Sequence[Any]) -> dict[int, int]:
        """Return the results that are copied from the environment, and from where, if many are."""
        places = self.environment.places
        copies = {
            k: places[output.index][1]
            for k, output in enumerate(outputs)
            if isinstance(output, scalars.Symbol) and places.get(output.index, _NOWHERE)[0] == "env"
        }
        return copies if len(copies) >= _COPIES else {}

    def _copying(self, label: str, copies: Mapping[int, int]) -> str:
        """Write a function that copies numbers of the environment to results."""
        tables = []
        for name, numbers in (("to", copies), ("from", copies.values())):
            entries = ", ".join([f"i32 {number}" for number in numbers])
            kind = f"[{len(copies)} x i32]"
            tables.append(f"@{label}.{name} = internal constant {kind} [{entries}]")
        lines = [
            *tables,
            f"define internal void @{label}({self.parameters}) #0 {{",
            "entry:",
            "  br label %copy",
            "copy:",
            "  %k = phi i64 [ 0, %entry ], [ %next, %copy ]",
        ]
        for name, array in (("from", "env"), ("to", "out")):
            lines += [
                f"  %{name}.entry = getelementptr i32, ptr @{label}.{name}, i64 %k",
                f"  %{name}.index = load i32, ptr %{name}.entry, align 4",
                f"  %{name}.long = zext i32 %{name}.index to i64",
                f"  %{name}.at = getelementptr {self.number}, ptr %{array}, i64 %{name}.long",
            ]
        lines += [
            f"  %number = load {self.number}, ptr %from.at, align 8",
            f"  store {self.number} %number, ptr %to.at, align 8",
            "  %next = add i64 %k, 1",
            f"  %more = icmp ult i64 %next, {len(copies)}",
            "  br i1 %more, label %copy, label %done",
            "done:",
            "  ret void",
            "}\n",
        ]
        return "\n".join(lines)

    def _handed_on(self, parts: list[list[Node]], part_of: dict[int, int]) -> dict[int, int]:
        """Reserve room for what a chunk computes and a later one uses."""
        handed: dict[int, int] = {}
        for k, part in enumerate(parts):
            for node in part:
                for arg in self.needs.get(node.index, node.args):
                    if part_of.get(arg.index, k) < k and arg.index not in handed:
                        handed[arg.index] = self.environment.reserve(self._room(arg))
        return handed

    def _room(self, node: Node) -> int:
        """Return how much room the value of a node takes."""
        return 1

    def _give(self, position: int, output: Any, handed: Mapping[int, int]) -> None:
        """Store a result."""
        self._store("out", position, self._as_number(output, handed))

    # Values --------------------------------------------------------------------------------

    def _set(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return f"%v{self.count}"

    def _store(self, array: str, position: int, value: str) -> None:
        address = self._address(array, position)
        self.lines.append(f"  store {self.number} {value}, ptr {address}, align 8")

    def _address(self, array: str, position: int) -> str:
        return self._set(f"getelementptr inbounds {self.number}, ptr %{array}, i64 {position}")

    def _load(self, array: str, position: int) -> str:
        address = self._address(array, position)
        return self._set(f"load {self.number}, ptr {address}, align 8")

    def _constant(self, value: float) -> str:
        text = constant(value)
        if self.lanes == 1:
            return text
        return "<" + ", ".join([f"double {text}"] * self.lanes) + ">"

    def _value(self, node: Node, handed: Mapping[int, int]) -> str:
        """Return how the value of a node is written in this chunk."""
        if node.op == "constant":
            return self._constant(node.value)
        name = self.names.get(node.index)
        if name is None:
            array, position = self.environment.places.get(node.index) or ("env", handed[node.index])
            name = "%t" if array == "t" else self._load(array, position)
            if node.op in CONDITIONS:
                name = self._set(f"fcmp une {self.number} {name}, {self._constant(0.0)}")
            self.names[node.index] = name
        return name

    def _as_number(self, output: Any, handed: Mapping[int, int]) -> str:
        """Return how a result is written as a number."""
        if not isinstance(output, scalars.Symbol):
            return self._constant(float(output))
        value = self._value(output, handed)
        if output.op not in CONDITIONS:
            return value
        one, zero = self._constant(1.0), self._constant(0.0)
        return self._set(f"select {self.truth} {value}, {self.number} {one}, {self.number} {zero}")

    # Operations ----------------------------------------------------------------------------

    def _operation(self, node: Node, handed: Mapping[int, int]) -> str:
        """Write one operation and return the name of its result."""
        a = [self._value(arg, handed) for arg in self.needs.get(node.index, node.args)]
        if node.index in self.selected:
            return self.selected[node.index].load(a, self._set)
        if node.op in _INSTRUCTIONS:
            return self._set(f"{_INSTRUCTIONS[node.op]} {self.number} {', '.join(a)}")
        if node.op in _ON_TRUTH:
            return self._set(f"{_ON_TRUTH[node.op]} {self.truth} {', '.join(a)}")
        if node.op in _INTRINSICS:
            return self._intrinsic(_INTRINSICS[node.op], *a)
        if node.op in LIBRARY:
            return self._library(LIBRARY[node.op], *a)
        return _COMPOSED[node.op](self, *a)

    def _intrinsic(self, function: str, *arguments: str) -> str:
        return self._call(self.number, f"{function}.{self.suffix}", arguments)

    def _call(self, kind: str, function: str, arguments: Sequence[str]) -> str:
        signature = ", ".join([kind] * len(arguments))
        self.declarations.add(f"declare {kind} @{function}({signature}) #1")
        values = ", ".join(f"{kind} {argument}" for argument in arguments)
        return self._set(f"call {kind} @{function}({values}) #1")

    def _library(self, function: str, *arguments: str) -> str:
        """Call a function of the C library, for all lanes at once or lane by lane."""
        if self.lanes == 1:
            return self._call("double", function, arguments)
        if function in self.vectors:
            name, declaration = self.vectors[function]
            self.declarations.add(declaration)
            values = ", ".join(f"{self.number} {argument}" for argument in arguments)
            return self._set(f"call {self.number} @{name}({values})")
        result = "poison"
        for lane in range(self.lanes):
            parts = [
                self._set(f"extractelement {self.number} {argument}, i64 {lane}")
                for argument in arguments
            ]
            one = self._call("double", function, parts)
            result = self._set(f"insertelement {self.number} {result}, double {one}, i64 {lane}")
        return result

    def _compare(self, order: str, a: str, b: str) -> str:
        return self._set(f"fcmp {order} {self.number} {a}, {b}")

    def _select(self, condition: str, a: str, b: str) -> str:
        return self._set(f"select {self.truth} {condition}, {self.number} {a}, {self.number} {b}")

    def _both(self, word: str, a: str, b: str) -> str:
        return self._set(f"{word} {self.truth} {a}, {b}")

    def _not(self, a: str) -> str:
        ones = "true" if self.lanes == 1 else "<" + ", ".join(["i1 true"] * self.lanes) + ">"
        return self._set(f"xor {self.truth} {a}, {ones}")

    def _where(self, condition: str, a: str, b: str) -> str:
        return self._select(condition, a, b)

    def _extremum(self, order: str, other_is_nan: bool, a: str, b: str) -> str:
        """Choose like NumPy: ``maximum`` and ``minimum`` pass a NaN on, the others do not."""
        doubtful = b if other_is_nan else a
        undefined = self._compare("uno", doubtful, doubtful)
        return self._select(self._both("or", self._compare(order, a, b), undefined), a, b)

    def _sign(self, a: str) -> str:
        zero, one = self._constant(0.0), self._constant(1.0)
        result = self._select(self._compare("oeq", a, zero), zero, a)
        result = self._select(self._compare("olt", a, zero), self._constant(-1.0), result)
        return self._select(self._compare("ogt", a, zero), one, result)

    def _is_finite(self, a: str) -> str:
        return self._compare("olt", self._intrinsic("llvm.fabs", a), self._constant(float("inf")))

    def _is_infinite(self, a: str) -> str:
        return self._compare("oeq", self._intrinsic("llvm.fabs", a), self._constant(float("inf")))

    def _is_nan(self, a: str) -> str:
        return self._compare("uno", a, a)

    def _remainder(self, a: str, b: str) -> str:
        """Return NumPy's remainder, which has the sign of the divisor."""
        zero = self._constant(0.0)
        rest = self._library("fmod", a, b)
        other_side = self._set(
            f"xor {self.truth} {self._compare('olt', b, zero)}, {self._compare('olt', rest, zero)}"
        )
        moved = self._select(other_side, self._set(f"fadd {self.number} {rest}, {b}"), rest)
        signed = self._intrinsic("llvm.copysign", zero, b)
        result = self._select(self._compare("oeq", rest, zero), signed, moved)
        return self._select(self._compare("oeq", b, zero), rest, result)

    def _floor_divide(self, a: str, b: str) -> str:
        """Return NumPy's quotient rounded down, consistent with its remainder."""
        zero, one = self._constant(0.0), self._constant(1.0)
        rest = self._library("fmod", a, b)
        plain = self._set(f"fdiv {self.number} {a}, {b}")
        difference = self._set(f"fsub {self.number} {a}, {rest}")
        quotient = self._set(f"fdiv {self.number} {difference}, {b}")
        other_side = self._set(
            f"xor {self.truth} {self._compare('olt', b, zero)}, {self._compare('olt', rest, zero)}"
        )
        other_side = self._both("and", other_side, self._compare("une", rest, zero))
        less = self._set(f"fsub {self.number} {quotient}, {one}")
        quotient = self._select(other_side, less, quotient)
        down = self._intrinsic("llvm.floor", quotient)
        off = self._set(f"fsub {self.number} {quotient}, {down}")
        up = self._set(f"fadd {self.number} {down}, {one}")
        rounded = self._select(self._compare("ogt", off, self._constant(0.5)), up, down)
        nothing = self._intrinsic("llvm.copysign", zero, plain)
        result = self._select(self._compare("oeq", quotient, zero), nothing, rounded)
        return self._select(self._compare("oeq", b, zero), plain, result)


_INSTRUCTIONS = {
    "add": "fadd",
    "subtract": "fsub",
    "multiply": "fmul",
    "divide": "fdiv",
    "negative": "fneg",
    "less": "fcmp olt",
    "less_equal": "fcmp ole",
    "equal": "fcmp oeq",
    "not_equal": "fcmp une",
}
_ON_TRUTH = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_INTRINSICS = {
    "absolute": "llvm.fabs",
    "sqrt": "llvm.sqrt",
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "rint": "llvm.rint",
    "copysign": "llvm.copysign",
}
LIBRARY = {
    "power": "pow",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
} | {
    name: name
    for name in (
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1"),
        *("log", "log2", "log10", "log1p", "cbrt", "hypot", "fmod"),
    )
}
_COMPOSED: dict[str, Callable[..., str]] = {
    "where": Writer._where,
    "logical_not": Writer._not,
    "maximum": lambda w, a, b: w._extremum("oge", False, a, b),
    "minimum": lambda w, a, b: w._extremum("ole", False, a, b),
    "fmax": lambda w, a, b: w._extremum("oge", True, a, b),
    "fmin": lambda w, a, b: w._extremum("ole", True, a, b),
    "sign": Writer._sign,
    "isnan": Writer._is_nan,
    "isfinite": Writer._is_finite,
    "isinf": Writer._is_infinite,
    "remainder": Writer._remainder,
    "floor_divide": Writer._floor_divide,
}


def key_of(node: Node) -> Key:
    """Return the key of an input of a trace."""
    return cast("Key", node.key)
