"""The last step: functions ``f(t, x, env, out)`` that compute all repetitions, level by level.

They call one loop or two for each repetition. The text grows with the number of different
repetitions, and hardly with that of their instances. Instances of one level do not depend on each
other. A schedule tells which instances of which repetition are next.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.solvers.native.emission.emission import (
    CHUNK,
    LIBRARY,
    SEED,
    Environment,
    Node,
    Text,
    depth_first,
)
from flexure.solvers.native.emission.tangent_emission import WIDTH, WideWriter
from flexure.solvers.native.llvm.library import register_width, vector_functions
from flexure.solvers.native.sharing.families.value_columns import IntArray
from flexure.solvers.native.sharing.jobs.job_loops import (
    PARAMETERS,
    Data,
    Loop,
    Repetition,
    WideLoop,
)

_VECTOR = f"<{WIDTH} x double>"


@dataclass
class TangentRepetition(Repetition):
    """Expressions that are computed for many instances, and derivatives beside them."""

    # The nodes of the derivatives of inputs, and the places of these in the environment.
    seeds: list[tuple[Node, IntArray]]
    # The derivatives of results, and where these go in the environment.
    tangents: list[tuple[Any, IntArray]]


class TangentLoop(Loop):
    """A loop that reads and writes vectors of derivatives behind its numbers.

    Numbers are computed anew in every turn of eight directions: they are fewer than derivatives.
    """

    repetition: TangentRepetition
    _may_skip = False

    def _take_in(self, own: Environment, wanted: Container[int] | None = None) -> list[str]:
        lines = super()._take_in(own, wanted)
        self._first_seed = own.size
        for k, (seed, places) in enumerate(self.repetition.seeds):
            own.places[seed.index] = SEED, k
            at = own.reserve(WIDTH)
            lines += [
                *self._address(f"seed.{k}.from", "env", places),
                f"  %seed.{k} = load {_VECTOR}, ptr %seed.{k}.from, align 8",
                f"  %seed.{k}.to = getelementptr inbounds double, ptr %inputs, i64 {at}",
                f"  store {_VECTOR} %seed.{k}, ptr %seed.{k}.to, align 8",
            ]
        return lines

    def _body(self, own: Environment) -> Text:
        numbers = self.repetition.expressions
        vectors = [vector for vector, _ in self.repetition.tangents]
        writer = _BodyWriter(f"{self.name}.body", own, vectors, len(numbers), self._first_seed)
        return writer.write([*numbers, *vectors], CHUNK)

    def _take_out(self) -> tuple[int, list[str]]:
        size, lines = super()._take_out()
        for k, (_, places) in enumerate(self.repetition.tangents):
            lines += [
                f"  %tangent.{k}.from = getelementptr inbounds double, ptr %results, i64 {size}",
                f"  %tangent.{k} = load {_VECTOR}, ptr %tangent.{k}.from, align 8",
                *self._address(f"tangent.{k}.to", "env", places),
                f"  store {_VECTOR} %tangent.{k}, ptr %tangent.{k}.to, align 8",
            ]
            size += WIDTH
        return size, lines


class _BodyWriter(WideWriter):
    """Writes numbers, and vectors behind them."""

    def __init__(
        self,
        name: str,
        environment: Environment,
        vectors: Sequence[Any],
        numbers: int,
        first_seed: int,
    ) -> None:
        super().__init__(name, environment, vectors)
        self._numbers = numbers
        self._first_seed = first_seed

    def _seed(self, position: int) -> str:
        return self._load("env", self._first_seed + WIDTH * position)

    def _give(self, position: int, output: Any, handed: Mapping[int, int]) -> None:
        behind = position - self._numbers
        self.set_lanes(1 if behind < 0 else WIDTH)
        place = position if behind < 0 else self._numbers + WIDTH * behind
        self._store("out", place, self._as_number(output, handed))
        self.set_lanes(1)


_LONG = 30  # operations, from which on a wide loop pays; a function of the C library is as much


class RepetitionWriter:
    """Writes functions of one module."""

    def __init__(self) -> None:
        self.texts: list[str] = []  # the functions
        self.data = Data()  # what they refer to
        self.declarations: set[str] = set()  # what the texts need declared
        self._width = register_width()
        self._vectors = vector_functions(self._width)

    def write(self, name: str, repetitions: Sequence[Repetition]) -> None:
        """Write a function that computes repetitions, level by level."""
        parts: list[tuple[int, ...]] = []
        count = 0
        for repetition in repetitions:
            wide, narrow = self._sorted_spans(repetition)
            for spans, is_wide in ((wide, True), (narrow, False)):
                if spans:
                    self._write_loop(f"{name}.{count}", repetition, spans, is_wide)
                    parts += [(level, count, first, last) for level, first, last in spans]
                    count += 1
        if not count:
            self.texts.append(f"define void @{name}({PARAMETERS}) #0 {{\n  ret void\n}}\n")
            return
        schedule = np.array([number for part in sorted(parts) for number in part[1:]])
        cases = [f"    i32 {k}, label %call.{k}" for k in range(count)]
        calls = [
            f"call.{k}:\n"
            f"  call void @{name}.{k}(double %t, ptr %x, ptr %env, ptr %out, i32 %from, i32 %to)\n"
            "  br label %done"
            for k in range(count)
        ]
        lines = [
            f"define void @{name}({PARAMETERS}) #0 {{",
            "entry:",
            "  br label %part",
            "part:",
            "  %at = phi i64 [ 0, %entry ], [ %next, %done ]",
            f"  %part.0 = getelementptr i32, ptr {self.data.table(schedule)}, i64 %at",
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

    def _sorted_spans(self, repetition: Repetition) -> tuple[list[_Span], list[_Span]]:
        """Return the spans that are for a wide loop, and the others."""
        spans = spans_of(repetition.levels)
        if isinstance(repetition, TangentRepetition):
            return [], spans
        operations = depth_first(repetition.expressions, repetition.inputs)
        if len(operations) < _LONG and not any(node.op in LIBRARY for node in operations):
            return [], spans
        wide = [span for span in spans if span[2] - span[1] >= self._width]
        narrow = [span for span in spans if span not in wide]
        return wide, narrow

    def _write_loop(
        self, name: str, repetition: Repetition, spans: list[_Span], is_wide: bool
    ) -> None:
        loop: Loop
        if is_wide:
            bounds = [span[1:] for span in spans]
            loop = WideLoop(name, repetition, self.data, self._width, self._vectors, bounds)
        elif isinstance(repetition, TangentRepetition):
            loop = TangentLoop(name, repetition, self.data)
        else:
            loop = Loop(name, repetition, self.data)
        texts, declarations = loop.write()
        self.texts += texts
        self.declarations |= declarations


_Span = tuple[int, int, int]


def spans_of(levels: IntArray) -> list[_Span]:
    """Return each level, with its first instance and the one behind its last."""
    found, starts = np.unique(levels, return_index=True)
    bounds = [*starts.tolist(), len(levels)]
    return list(zip(found.tolist(), bounds, bounds[1:], strict=False))
