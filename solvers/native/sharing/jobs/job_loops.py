"""Loops over the rows of jobs: LLVM functions that repeat expressions from one to the next.

A `Repetition` is a job whose codes have become places in arrays, and its rows are *instances*;
`repetition` calls the loops. An instance is computed by a function of arrays of its own, between
the lines that fill them and those that take the results out. LLVM puts the three together and
dissolves the arrays.

The numbers of the instances often are in equal distances, as in most diagrams that a loop has
built; places without such an order are looked up in a table. Instances do not depend on each other.
In a `Loop` LLVM may compute several at once, where it finds that this pays: when there is little to
compute. A `WideLoop` always computes as many as a register of the processor holds.

Where all results are chosen by one condition, and are constants on one side of it, as the forces of
contacts between distant bodies are, the condition is computed first (`Guard`). Instances with the
constants compute nothing else, nor do they read anything else.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from flexure.diagrams.scalars.expressions.expression import reachable, symbols_among
from flexure.solvers.native.emission.emission import (
    Environment,
    Node,
    Text,
    VectorFunctions,
    depth_first,
    emit,
)
from flexure.solvers.native.language.expressions import constant
from flexure.solvers.native.sharing.families.value_columns import IntArray

_CHEAP = 3  # times fewer operations of a condition than of all, for which computing it first pays
_FEW = 8  # instances, for which computing several at once does not pay
PARAMETERS = "double %t, ptr noalias %x, ptr noalias %env, ptr noalias %out"

#: An array (``"t"``, ``"x"``, ``"env"`` or ``"out"``), and a place in it for each instance.
Places: TypeAlias = "tuple[str, IntArray]"


@dataclass
class Repetition:
    """Expressions that are computed for many instances."""

    expressions: list[Any]  # expressions of one trace, or numbers
    # Where the nodes are at which the expressions begin, by index of the node.
    inputs: dict[int, Places]
    outputs: list[Places]  # where the results go
    levels: IntArray  # the level of each instance, ascending


class Guard(NamedTuple):
    """A condition that decides whether an instance has to be computed."""

    condition: Node
    skips: bool  # the truth value with which all results are constants
    constants: list[float]  # the results then


def guard_of(repetition: Repetition) -> Guard | None:
    """Return the condition that decides about all results of a repetition, if there is one."""
    expressions, inputs = repetition.expressions, repetition.inputs
    nodes = symbols_among(expressions)
    is_choice = [each.op == "where" and each.index not in inputs for each in nodes]
    if len(nodes) < len(expressions) or not all(is_choice):
        return None
    arguments = [each.args for each in nodes]
    condition = arguments[0][0]
    for skips, side in ((True, 1), (False, 2)):
        if all(args[0] is condition and args[side].op == "constant" for args in arguments):
            operations = len(depth_first([condition], inputs))
            if _CHEAP * operations <= len(depth_first(expressions, inputs)):
                return Guard(condition, skips, [args[side].value for args in arguments])
    return None


class Data:
    """References of the functions of a module: tables, and what LLVM is to know about loops."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._tables: dict[bytes, str] = {}

    def table(self, numbers: IntArray) -> str:
        """Return the name of a table, written when it is first needed."""
        content = numbers.astype(np.int32)
        key = content.tobytes()
        if key not in self._tables:
            name = self._tables[key] = f"@table.{len(self._tables)}"
            entries = ", ".join([f"i32 {number}" for number in content.tolist()])
            kind = f"[{len(content)} x i32]"
            self.lines.append(f"{name} = internal unnamed_addr constant {kind} [{entries}]")
        return self._tables[key]

    def mark(self, count: int) -> tuple[str, str]:
        """Let LLVM know that instances are independent, and where there are few of them.

        Returns the marks of what is read and written, and of the loop.
        """
        free = len(self.lines)  # a number that no mark has: each has a line
        group, loop, parallel, scalar = range(free, free + 4)
        few = f", !{scalar}" if count < _FEW else ""
        self.lines += [
            f"!{group} = distinct !{{}}",
            f"!{loop} = distinct !{{!{loop}, !{parallel}{few}}}",
            f'!{parallel} = !{{!"llvm.loop.parallel_accesses", !{group}}}',
            f'!{scalar} = !{{!"llvm.loop.vectorize.enable", i1 false}}',
        ]
        return f", !llvm.access.group !{group}", f", !llvm.loop !{loop}"


class Loop:
    """A function ``f(t, x, env, out, from, to)`` that computes instances one after the other.

    ``data`` takes tables and marks. So many ``lanes`` are computed at once; ``vectors`` are
    functions that compute all of them, by the name of the function of the C library.
    """

    _time = "%t"
    _may_skip: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        repetition: Repetition,
        data: Data,
        lanes: int = 1,
        vectors: VectorFunctions | None = None,
    ) -> None:
        self._guard = guard_of(repetition) if self._may_skip else None
        self.name = name
        self.repetition = repetition
        self.lanes = lanes
        self._vectors = vectors
        self._number = "double" if lanes == 1 else f"<{lanes} x double>"
        self._data = data
        self._mark_access, self._mark_loop = self._marks()

    def _marks(self) -> tuple[str, str]:
        return self._data.mark(0 if self._guard else len(self.repetition.levels))

    def write(self) -> tuple[list[str], set[str]]:
        """Return the text, and what it needs declared."""
        own = Environment()
        number = self._number
        arguments = f"{number} {self._time}, ptr %x, ptr %inputs, ptr %results"
        before = self._take_in(own)
        body, declarations = self._body(own)
        size, after = self._take_out()
        texts, back = [_internal(body, f"{self.name}.body")], "instance"
        if self._guard is not None:
            guard, more = self._skipping(self._guard)
            texts, declarations, back = [*texts, *guard], declarations | more, "done"
            call = f"call i1 @{self.name}.idle({PARAMETERS.replace(' noalias', '')}, i64 %i)"
            branch = "  br i1 %idle, label %done, label %busy"
            before = [f"  %idle = {call}", branch, "busy:", *before]
            after += ["  br label %done", "done:"]
        lines = [
            f"define internal void @{self.name}({PARAMETERS}, i32 %from, i32 %to) #0 noinline {{",
            "entry:",
            f"  %inputs = alloca [{max(own.size, 1)} x {number}], align 64",
            f"  %results = alloca [{max(size, 1)} x {number}], align 64",
            "  %first = zext i32 %from to i64",
            "  %last = zext i32 %to to i64",
            *self._before_all(),
            "  br label %instance",
            "instance:",
            f"  %i = phi i64 [ %first, %entry ], [ %next, %{back} ]",
            *before,
            f"  call void @{self.name}.body({arguments})",
            *after,
            *self._advance(),
            f"  br i1 %more, label %instance, label %end{self._mark_loop}",
            "end:",
            "  ret void",
            "}\n",
        ]
        return [*texts, "\n".join(lines)], declarations | self._declarations()

    def _skipping(self, guard: Guard) -> tuple[list[str], set[str]]:
        """Write a function that puts constants into their places if they are all results."""
        own, number = Environment(), self._number
        wanted = {node.index for node in reachable([guard.condition])}
        before = self._take_in(own, wanted)
        body, declarations = emit(f"{self.name}.guard", [guard.condition], own, lanes=self.lanes)
        order, zero = "une" if guard.skips else "oeq", self._constant(0.0)
        puts = [
            line
            for k, (array, places) in enumerate(self.repetition.outputs)
            for line in [
                f"  %result.{k} = freeze {number} {self._constant(guard.constants[k])}",
                *self._put(f"result.{k}", array, places),
            ]
        ]
        arguments = f"{number} {self._time}, ptr %x, ptr %inputs, ptr %results"
        lines = [
            f"define internal i1 @{self.name}.idle({PARAMETERS}, i64 %i) #0 {{",
            "entry:",
            f"  %inputs = alloca [{max(own.size, 1)} x {number}], align 64",
            f"  %results = alloca {number}, align 64",
            *self._spread_time(),
            *before,
            f"  call void @{self.name}.guard({arguments})",
            f"  %found = load {number}, ptr %results, align 8",
            f"  %skips = fcmp {order} {number} %found, {zero}",
            *self._all("idle", "skips"),
            "  br i1 %idle, label %quiet, label %end",
            "quiet:",
            *puts,
            "  br label %end",
            "end:",
            "  ret i1 %idle",
            "}\n",
        ]
        return [_internal(body, f"{self.name}.guard"), "\n".join(lines)], declarations

    def _take_in(self, own: Environment, wanted: Container[int] | None = None) -> list[str]:
        """Write the lines that fill the inputs of an instance, and place these."""
        lines: list[str] = []
        for index, (array, places) in self.repetition.inputs.items():
            if wanted is not None and index not in wanted:
                continue
            if array == "t":
                own.places[index] = "t", 0
                continue
            k = own.reserve()
            own.places[index] = "env", k
            lines += [
                *self._read(f"input.{k}", array, places),
                f"  %own.{k} = getelementptr inbounds {self._number}, ptr %inputs, i64 {k}",
                f"  store {self._number} %input.{k}, ptr %own.{k}, align 8",
            ]
        return lines

    def _body(self, own: Environment) -> Text:
        """Write the function that computes an instance."""
        name, expressions = f"{self.name}.body", self.repetition.expressions
        return emit(name, expressions, own, lanes=self.lanes, vectors=self._vectors)

    def _take_out(self) -> tuple[int, list[str]]:
        """Return how many numbers the results are, and the lines that take them out."""
        lines: list[str] = []
        for k, (array, places) in enumerate(self.repetition.outputs):
            lines += [
                f"  %made.{k} = getelementptr inbounds {self._number}, ptr %results, i64 {k}",
                f"  %result.{k} = load {self._number}, ptr %made.{k}, align 8",
                *self._put(f"result.{k}", array, places),
            ]
        return len(self.repetition.outputs), lines

    def _before_all(self) -> list[str]:
        return []

    def _spread_time(self) -> list[str]:
        return []

    def _constant(self, value: float) -> str:
        """Return how a number is written in all lanes."""
        each = constant(value)
        return each if self.lanes == 1 else f"<{', '.join([f'double {each}'] * self.lanes)}>"

    def _all(self, name: str, truths: str) -> list[str]:
        """Write the lines that find whether a condition holds for all instances at once."""
        return [f"  %{name} = or i1 %{truths}, %{truths}"]

    def _advance(self) -> list[str]:
        """Write the lines that find the next instance, and whether there is one."""
        return ["  %next = add nuw nsw i64 %i, 1", "  %more = icmp ult i64 %next, %last"]

    def _declarations(self) -> set[str]:
        return set()

    def _read(self, name: str, array: str, places: IntArray) -> list[str]:
        """Write the lines that read a number of the present instance."""
        return [
            *self._address(f"{name}.from", array, places),
            f"  %{name} = load double, ptr %{name}.from, align 8{self._mark_access}",
        ]

    def _put(self, name: str, array: str, places: IntArray) -> list[str]:
        """Write the lines that put a result of the present instance into its place."""
        return [
            *self._address(f"{name}.to", array, places),
            f"  store double %{name}, ptr %{name}.to, align 8{self._mark_access}",
        ]

    def _address(self, name: str, array: str, places: IntArray, lane: int = 0) -> list[str]:
        """Write the lines that find the place of the present instance, or of one behind it."""
        stride = stride_of(places)
        first = int(places[0])
        if stride is not None:
            first += lane * stride
            lines = [f"  %{name}.moved = mul nsw i64 %i, {stride}"]
        else:
            lines = [
                *self._entry(name, places, lane),
                f"  %{name}.distance = load i32, ptr %{name}.entry, align 4{self._mark_access}",
                f"  %{name}.moved = sext i32 %{name}.distance to i64",
            ]
        return [
            *lines,
            f"  %{name}.shifted = getelementptr inbounds double, ptr %{array}, i64 %{name}.moved",
            f"  %{name} = getelementptr inbounds double, ptr %{name}.shifted, i64 {first}",
        ]

    def _entry(self, name: str, places: IntArray, lane: int = 0) -> list[str]:
        """Write the lines that find where the distance of an instance from the first one is."""
        table = self._data.table(places - places[0])  # those that differ by a constant are one
        return [
            f"  %{name}.row = getelementptr inbounds i32, ptr {table}, i64 %i",
            f"  %{name}.entry = getelementptr inbounds i32, ptr %{name}.row, i64 {lane}",
        ]


def _internal(text: str, name: str) -> str:
    """Return the text of a function that no other module calls."""
    return text.replace(f"define void @{name}(", f"define internal void @{name}(")


class WideLoop(Loop):
    """A function that computes as many instances at once as a register holds numbers.

    There must be so many in each span. Where the last ones do not fill a register, some before them
    are computed again.

    ``spans`` are the first instance, and the one behind the last, of all that is computed at one
    call.
    """

    _time = "%time"

    def __init__(
        self,
        name: str,
        repetition: Repetition,
        data: Data,
        lanes: int,
        vectors: VectorFunctions,
        spans: Sequence[tuple[int, int]],
    ) -> None:
        super().__init__(name, repetition, data, lanes, vectors)
        self._spans = spans

    def _marks(self) -> tuple[str, str]:
        return "", ""

    def _before_all(self) -> list[str]:
        return [f"  %final = sub i64 %last, {self.lanes}", *self._spread_time()]

    def _spread_time(self) -> list[str]:
        return self._spread("time", "%t")

    def _advance(self) -> list[str]:
        return [
            f"  %following = add nuw nsw i64 %i, {self.lanes}",
            "  %fits = icmp ult i64 %following, %final",
            "  %next = select i1 %fits, i64 %following, i64 %final",
            "  %more = icmp ult i64 %i, %final",
        ]

    def _all(self, name: str, truths: str) -> list[str]:
        return [f"  %{name} = call i1 @{self._reduction}(<{self.lanes} x i1> %{truths})"]

    @property
    def _reduction(self) -> str:
        return f"llvm.vector.reduce.and.v{self.lanes}i1"

    def _spread(self, name: str, number: str) -> list[str]:
        """Write the lines that put one number into all lanes."""
        whole = self._number
        operands = f"{whole} %{name}.one, {whole} poison, <{self.lanes} x i32> zeroinitializer"
        return [
            f"  %{name}.one = insertelement {whole} poison, double {number}, i64 0",
            f"  %{name} = shufflevector {operands}",
        ]

    def _read(self, name: str, array: str, places: IntArray) -> list[str]:
        whole, lanes = self._number, self.lanes
        stride = stride_within(places, self._spans)
        near = self._address(f"{name}.from", array, places)
        if stride == 1:
            return [*near, f"  %{name} = load {whole}, ptr %{name}.from, align 8"]
        if stride == 0:
            load = f"  %{name}.same = load double, ptr %{name}.from, align 8"
            return [*near, load, *self._spread(name, f"%{name}.same")]
        if stride is None:
            distances = f"<{lanes} x i32> %{name}.distances"
            near = [
                *self._entry(name, places),
                f"  %{name}.distances = load <{lanes} x i32>, ptr %{name}.entry, align 4",
                f"  %{name}.from = getelementptr inbounds double, ptr %{array}, i64 {places[0]}",
            ]
        else:
            steps = ", ".join([f"i64 {lane * stride}" for lane in range(lanes)])
            distances = f"<{lanes} x i64> <{steps}>"
        truths = f"<{lanes} x i1> <{', '.join(['i1 true'] * lanes)}>"
        arguments = f"<{lanes} x ptr> %{name}.all, i32 8, {truths}, {whole} poison"
        return [
            *near,
            f"  %{name}.all = getelementptr inbounds double, ptr %{name}.from, {distances}",
            f"  %{name} = call {whole} @{self._gather}({arguments})",
        ]

    @property
    def _gather(self) -> str:
        return f"llvm.masked.gather.v{self.lanes}f64.v{self.lanes}p0"

    def _declarations(self) -> set[str]:
        parts = f"<{self.lanes} x ptr>, i32, <{self.lanes} x i1>, {self._number}"
        reduction = f"declare i1 @{self._reduction}(<{self.lanes} x i1>)"
        return {f"declare {self._number} @{self._gather}({parts})", reduction}

    def _put(self, name: str, array: str, places: IntArray) -> list[str]:
        if stride_within(places, self._spans) == 1:
            address = self._address(f"{name}.to", array, places)
            return [*address, f"  store {self._number} %{name}, ptr %{name}.to, align 8"]
        return [
            line
            for lane in range(self.lanes)
            for line in [
                *self._address(f"{name}.to.{lane}", array, places, lane),
                f"  %{name}.{lane} = extractelement {self._number} %{name}, i64 {lane}",
                f"  store double %{name}.{lane}, ptr %{name}.to.{lane}, align 8",
            ]
        ]


def stride_of(places: IntArray) -> int | None:
    """Return the distance from one place to the next; None when it is not always the same."""
    strides = np.unique(np.diff(places))
    if len(strides) > 1:
        return None
    return int(strides[0]) if len(strides) else 0


def stride_within(places: IntArray, spans: Iterable[tuple[int, int]]) -> int | None:
    """Return the distance from one place to the next in all spans; None where there are several."""
    strides = {stride_of(places[first:last]) for first, last in spans}
    return strides.pop() if len(strides) == 1 else None
