"""Loops over instances: functions ``f(t, x, env, out)`` that repeat expressions for many blocks.

The text grows with the number of different repetitions, and hardly with that of their instances.
The inputs and outputs of the instances often are in equal distances, as in most diagrams that a
loop has built; places without such an order are looked up in a table. Instances of one level do not
depend on each other, so that LLVM may compute several at once. A schedule tells which instances of
which repetition are next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from flexure.solvers.native.columns import IntArray
from flexure.solvers.native.emission import Environment, emit

_FEW = 8  # instances, for which computing several at once does not pay
_PARAMETERS = "double %t, ptr noalias %x, ptr noalias %env, ptr noalias %out"

#: An array (``"t"``, ``"x"``, ``"env"`` or ``"out"``), and a place in it for each instance.
Places: TypeAlias = "tuple[str, IntArray]"


@dataclass
class Repetition:
    """Expressions that are computed for many instances.

    Attributes
    ----------
    expressions : list
        Expressions of one trace, or numbers.
    inputs : dict
        Where the nodes are at which the expressions begin, by index of the node.
    outputs : list of Places
        Where the results go.
    levels : ndarray
        The level of each instance, ascending.
    """

    expressions: list[Any]
    inputs: dict[int, Places]
    outputs: list[Places]
    levels: IntArray


class RepetitionWriter:
    """Writes functions of one module.

    Attributes
    ----------
    texts : list of str
        The functions.
    data : list of str
        Tables, and what LLVM is to know about the loops.
    declarations : set of str
        What the texts need declared.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.data: list[str] = []
        self.declarations: set[str] = set()
        self._tables: dict[bytes, str] = {}
        self._marks = 0

    def write(self, name: str, repetitions: Sequence[Repetition]) -> None:
        """Write a function that computes repetitions, level by level."""
        for k, repetition in enumerate(repetitions):
            self._write_loop(f"{name}.{k}", repetition)
        schedule = _schedule(repetitions)
        if not schedule.size:
            self.texts.append(f"define void @{name}({_PARAMETERS}) #0 {{\n  ret void\n}}\n")
            return
        cases = [f"    i32 {k}, label %call.{k}" for k in range(len(repetitions))]
        calls = [
            f"call.{k}:\n"
            f"  call void @{name}.{k}(double %t, ptr %x, ptr %env, ptr %out, i32 %from, i32 %to)\n"
            "  br label %done"
            for k in range(len(repetitions))
        ]
        lines = [
            f"define void @{name}({_PARAMETERS}) #0 {{",
            "entry:",
            "  br label %part",
            "part:",
            "  %at = phi i64 [ 0, %entry ], [ %next, %done ]",
            f"  %part.0 = getelementptr i32, ptr {self._table(schedule)}, i64 %at",
            "  %part.1 = getelementptr i32, ptr %part.0, i64 1",
            "  %part.2 = getelementptr i32, ptr %part.0, i64 2",
            "  %which = load i32, ptr %part.0, align 4",
            "  %from = load i32, ptr %part.1, align 4",
            "  %to = load i32, ptr %part.2, align 4",
            "  switch i32 %which, label %done [",
            *cases,
            "  ]",
            *calls,
            "done:",
            "  %next = add nuw nsw i64 %at, 3",
            f"  %more = icmp ult i64 %next, {schedule.size}",
            "  br i1 %more, label %part, label %end",
            "end:",
            "  ret void",
            "}\n",
        ]
        self.texts.append("\n".join(lines))

    def _write_loop(self, name: str, repetition: Repetition) -> None:
        """Write the loop over the instances of a repetition.

        An instance is computed by a function of arrays of its own, between the lines that fill them
        and those that take the results out. LLVM puts the three together and dissolves the arrays.
        """
        own = Environment()
        before: list[str] = []
        after: list[str] = []
        marked = f"align 8, !llvm.access.group !{self._marks}"
        for index, (array, places) in repetition.inputs.items():
            if array == "t":
                own.places[index] = "t", 0
                continue
            k = own.reserve()
            own.places[index] = "env", k
            before += [
                *self._address(f"input.{k}", array, places),
                f"  %value.{k} = load double, ptr %input.{k}, {marked}",
                f"  %own.{k} = getelementptr inbounds double, ptr %inputs, i64 {k}",
                f"  store double %value.{k}, ptr %own.{k}, align 8",
            ]
        body, declarations = emit(f"{name}.body", repetition.expressions, own)
        for k, (array, places) in enumerate(repetition.outputs):
            after += [
                f"  %made.{k} = getelementptr inbounds double, ptr %results, i64 {k}",
                f"  %result.{k} = load double, ptr %made.{k}, align 8",
                *self._address(f"output.{k}", array, places),
                f"  store double %result.{k}, ptr %output.{k}, {marked}",
            ]
        lines = [
            f"define internal void @{name}({_PARAMETERS}, i32 %from, i32 %to) #0 noinline {{",
            "entry:",
            f"  %inputs = alloca [{max(own.size, 1)} x double], align 8",
            f"  %results = alloca [{max(len(repetition.outputs), 1)} x double], align 8",
            "  %first = zext i32 %from to i64",
            "  %last = zext i32 %to to i64",
            "  br label %instance",
            "instance:",
            "  %i = phi i64 [ %first, %entry ], [ %next, %instance ]",
            *before,
            f"  call void @{name}.body(double %t, ptr %x, ptr %inputs, ptr %results)",
            *after,
            "  %next = add nuw nsw i64 %i, 1",
            "  %more = icmp ult i64 %next, %last",
            f"  br i1 %more, label %instance, label %end, !llvm.loop !{self._marks + 1}",
            "end:",
            "  ret void",
            "}\n",
        ]
        body = body.replace(f"define void @{name}.body(", f"define internal void @{name}.body(")
        self.texts += [body, "\n".join(lines)]
        self.declarations |= declarations
        self._write_marks(len(repetition.levels))

    def _write_marks(self, count: int) -> None:
        """Let LLVM know that instances are independent, and where there are few of them."""
        group, loop, parallel, scalar = range(self._marks, self._marks + 4)
        self._marks += 4
        few = f", !{scalar}" if count < _FEW else ""
        self.data += [
            f"!{group} = distinct !{{}}",
            f"!{loop} = distinct !{{!{loop}, !{parallel}{few}}}",
            f'!{parallel} = !{{!"llvm.loop.parallel_accesses", !{group}}}',
            f'!{scalar} = !{{!"llvm.loop.vectorize.enable", i1 false}}',
        ]

    def _address(self, name: str, array: str, places: IntArray) -> list[str]:
        """Write the lines that find the place of the present instance in an array."""
        first = int(places[0])
        strides = np.unique(np.diff(places))
        if len(strides) <= 1:
            stride = int(strides[0]) if len(strides) else 0
            lines = [f"  %{name}.moved = mul nsw i64 %i, {stride}"]
        else:  # tables that differ by a constant are one
            table, mark = self._table(places - first), f"!llvm.access.group !{self._marks}"
            lines = [
                f"  %{name}.entry = getelementptr inbounds i32, ptr {table}, i64 %i",
                f"  %{name}.distance = load i32, ptr %{name}.entry, align 4, {mark}",
                f"  %{name}.moved = sext i32 %{name}.distance to i64",
            ]
        return [
            *lines,
            f"  %{name}.place = add nsw i64 %{name}.moved, {first}",
            f"  %{name} = getelementptr inbounds double, ptr %{array}, i64 %{name}.place",
        ]

    def _table(self, numbers: IntArray) -> str:
        """Return the name of a table, written when it is first needed."""
        content = numbers.astype(np.int32)
        key = content.tobytes()
        if key not in self._tables:
            name = self._tables[key] = f"@table.{len(self._tables)}"
            entries = ", ".join([f"i32 {number}" for number in content.tolist()])
            kind = f"[{len(content)} x i32]"
            self.data.append(f"{name} = internal unnamed_addr constant {kind} [{entries}]")
        return self._tables[key]


def _schedule(repetitions: Sequence[Repetition]) -> IntArray:
    """Return which repetition comes next, from which instance to which, end to end."""
    parts: list[tuple[int, ...]] = []
    for k, repetition in enumerate(repetitions):
        levels, starts = np.unique(repetition.levels, return_index=True)
        bounds = [*starts.tolist(), len(repetition.levels)]
        parts += zip(levels.tolist(), [k] * len(levels), bounds, bounds[1:], strict=False)
    return np.array([number for part in sorted(parts) for number in part[1:]], dtype=np.int64)


__all__ = ["Places", "Repetition", "RepetitionWriter"]
