"""The Jacobian of derivatives that share code, by derivatives of the jobs along directions.

Each job computes, beside its numbers, how they change when what it reads changes: the chain rule,
from job to job, in the order in which the numbers are computed. This is done along eight directions
at a time, and states that never meet in one equation share a direction
(`flexure.solvers.native.emission.tangent_emission`). In a chain, in which each part feels its
neighbors alone, there are as many directions as a few neighbors have states. So neither the code
nor the number of turns grows with the length of the chain. Sums over everything, as an energy
ledger has, are taken apart (`flexure.solvers.native.sharing.separable_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.scalars.differentiation import tangents_of
from flexure.diagrams.scalars.expression import Graph, Symbol
from flexure.diagrams.scalars.jacobians import reach_from
from flexure.diagrams.scalars.simplification import simplify
from flexure.diagrams.scalars.vocabulary import CONDITIONS
from flexure.solvers.native.emission.emission import SEED, Environment, Node, depth_first
from flexure.solvers.native.emission.jacobian_emission import LONG
from flexure.solvers.native.emission.tangent_emission import direction_driver, plan_directions
from flexure.solvers.native.emission.wide_emission import WIDTH
from flexure.solvers.native.llvm.assembly import ModuleTexts, care
from flexure.solvers.native.sharing.columns import (
    MOTION,
    MOVING,
    RATE,
    RATE_COLUMN,
    SHIFT,
    STATE_COLUMN,
    Columns,
    IntArray,
)
from flexure.solvers.native.sharing.jobs import Job
from flexure.solvers.native.sharing.loops import Places, Repetition
from flexure.solvers.native.sharing.repetition import RepetitionWriter, spans_of
from flexure.solvers.native.sharing.separable_rows import SeparableRows
from flexure.solvers.native.sharing.tangent_loops import TangentRepetition
from flexure.solvers.tracing.effort import WRITTEN

#: Turns, beyond which code that is written out is faster: it computes numbers once for all turns.
_TURNS = 8
#: Derivatives of operations by leaves, up to which those of a job are computed apart; compiling
#: them takes about as long as that of everything else.
_LONG_MATRIX = 4000
#: Operations with derivatives, beyond which it nevertheless takes too long to compile.
_MANY = 50_000


class SharedJacobian(NamedTuple):
    """The function ``jacobian``, with its entries; the fields are those of `JacobianText`."""

    code: ModuleTexts
    rows: list[int]
    columns: list[int]
    way: str = "along directions, by shared code"
    base: None = None


def shared_jacobian(
    jobs: Sequence[Job], columns: Columns, count: int, environment: Environment
) -> SharedJacobian | None:
    """Write a function that computes the Jacobian of what jobs compute; None if that does not pay.

    Parameters
    ----------
    jobs : sequence of Job
        All that is computed during a run.
    columns : Columns
        Of these jobs.
    count : int
        Number of states.
    environment : Environment
        Gives the room that is needed.
    """
    parts = [_Part(job, columns) for job in jobs]
    bits, vectors = _follow(parts, count)
    reached = [bits.get((RATE_COLUMN << SHIFT) + k, 0) for k in range(count)]
    if vectors <= LONG or not any(reached):
        return None
    rows = [(RATE_COLUMN << SHIFT) + k for k in range(count)]
    wide = SeparableRows(parts, rows, bits, WIDTH * _TURNS, len(columns.sorts))
    reached = [bits.get(row, 0) for row in rows]
    plan = plan_directions([*reached, *wide.reached], count, WIDTH)
    if len(plan.ends) > _TURNS and sum(part.operations_of_all for part in parts) <= _MANY:
        return None
    places = _VectorPlaces(bits, environment)
    plan, sums = wide.split(plan, count, places.to_read(np.array(wide.codes, dtype=np.int64)))
    values, turns = _repetitions(parts, columns, places, environment)
    written = sum(len(depth_first([e for e, _ in each.tangents], {})) for each in turns)
    if written > WRITTEN:
        return None
    writer = RepetitionWriter()
    before = places.clearing()
    if values:
        writer.write("jacobian.values", values)
        before += "\n  call void @jacobian.values(double %t, ptr %x, ptr %env, ptr %out)"
    writer.write("jacobian.turn", [each for each in turns if each.outputs or each.tangents])
    driver = direction_driver(
        plan,
        places.start_of(STATE_COLUMN),
        places.start_of(RATE_COLUMN),
        before=before,
        turn="@jacobian.turn(double %t, ptr %x, ptr %env, ptr %out)",
        sums=sums,
    )
    text = "\n".join([*sorted(writer.declarations), *writer.texts, *writer.data.lines, driver])
    return SharedJacobian(ModuleTexts([text], care(len(text))), plan.rows, plan.columns)


def _repetitions(
    parts: Sequence[_Part], columns: Columns, places: _VectorPlaces, environment: Environment
) -> tuple[list[Repetition], list[TangentRepetition]]:
    """Return what is computed once before all turns, if anything, and what is in each of them."""
    if not any(part.has_matrix for part in parts):
        return [], [part.differentiated(columns, places, part.kept(columns)) for part in parts]
    values: list[Repetition] = []
    turns: list[TangentRepetition] = []
    for part in parts:
        if part.has_matrix:
            before, turn = part.multiplied(columns, places, environment)
        else:
            before = part.repeated(columns, part.kept(columns))
            turn = part.differentiated(columns, places, [])
        values += [before] if before.outputs else []
        turns.append(turn)
    return values, turns


class _Part:
    """A job, and which of its results change with what it reads.

    Attributes
    ----------
    leaves : list of (Node, IntArray)
        What is read that may change with the states, and its codes.
    behind : list of int
        For each result the leaves it changes with, as the bits of a number.
    length : int
        Operations that change with them.
    operations_of_all : int
        Those of all rows.
    exposed : dict
        Operations whose derivatives are kept, by index, with codes for them.
    """

    def __init__(self, job: Job, columns: Columns) -> None:
        self.job = job
        self.operations = depth_first(job.expressions, job.inputs)
        found = job.leaves(job.expressions, self.operations)
        self.leaves = [
            (node, job.inputs[node.index])
            for node in found
            if _sort(job.inputs[node.index], columns) in (MOTION, MOVING)
            and node.op not in CONDITIONS
        ]
        starts = {node.index: 1 << k for k, (node, _) in enumerate(self.leaves)}
        self._reached = reached = reach_from(starts, self.operations)
        self.exposed: dict[int, tuple[Node, IntArray]] = {}
        indices = [getattr(each, "index", None) for each in job.expressions]
        self.behind = [0 if k is None else reached.get(k, 0) for k in indices]
        self.length = len(reached) - len(starts)
        self.operations_of_all = self.length * len(job.levels)

    def follow(self, first: int, last: int, bits: dict[int, int]) -> int:
        """Find on which states the results of some rows depend; count vectors of derivatives."""
        vectors = 0
        kinds: dict[int, list[list[int]]] = {}
        for behind, codes in zip(self.behind, self.job.outputs, strict=True):
            if behind:
                kinds.setdefault(behind, []).append(codes[first:last].tolist())
        read = [codes[first:last].tolist() for _, codes in self.leaves]
        for row in range(last - first):
            states = [bits.get(codes[row], 0) for codes in read]
            whole = 0
            for behind, written in kinds.items():
                found = 0
                for k, each in enumerate(states):
                    if behind >> k & 1:
                        found |= each
                if found:
                    whole |= found
                    for each_written in written:
                        bits[each_written[row]] = found
            size = (whole.bit_length() + 7) // WIDTH
            vectors += self.length * (size - whole.to_bytes(size, "little").count(0))
        return vectors

    def states_behind(self, index: int, row: int, bits: dict[int, int]) -> int:
        """Return on which states an operation depends in a row, as the bits of a number."""
        found, behind = 0, self._reached.get(index, 0)
        for k, (_, codes) in enumerate(self.leaves):
            if behind >> k & 1:
                found |= bits.get(int(codes[row]), 0)
        return found

    @property
    def has_matrix(self) -> bool:
        """Whether the derivatives of its results by its leaves are computed first, once.

        That pays where many instances are computed at once, if it is not too long.
        """
        entries = sum(bits.bit_count() for bits in self._reached.values())
        return len(self.job.levels) >= WIDTH and entries <= _LONG_MATRIX

    def inputs(self, columns: Columns) -> dict[int, Places]:
        """Return where everything is that the job reads."""
        return {index: columns.locate(codes) for index, codes in self.job.inputs.items()}

    def kept(self, columns: Columns) -> list[tuple[Any, Places]]:
        """Return the results that other jobs read, and where they go."""
        return [
            (expression, columns.locate(codes))
            for expression, codes in zip(self.job.expressions, self.job.outputs, strict=True)
            if _sort(codes, columns) != RATE
        ]

    def _moving(self, places: _VectorPlaces) -> list[tuple[Any, IntArray]]:
        """Return the results of which derivatives are kept, with their codes."""
        results = zip(self.job.expressions, self.job.outputs, strict=True)
        moving = [
            (each, codes)
            for each, codes in results
            if isinstance(each, Symbol) and places.has_any(codes)
        ]
        return [*moving, *self.exposed.values()]

    def differentiated(
        self, columns: Columns, places: _VectorPlaces, kept: list[tuple[Any, Places]]
    ) -> TangentRepetition:
        """Return the job with its derivatives along directions, and some results beside them."""
        seeds: list[tuple[Node, IntArray]] = []
        starts: dict[int, dict[int, Any]] = {}
        for node, codes in self.leaves:
            if places.has_any(codes):
                seed = node.graph.input(((SEED, 0, 0), len(seeds)))
                seeds.append((seed, places.to_read(codes)))
                starts[node.index] = {0: seed}
        found = tangents_of(self.operations, starts)
        tangents = [
            (found[expression.index][0], places.to_write(codes))
            for expression, codes in self._moving(places)
            if found.get(expression.index)
        ]
        return TangentRepetition(
            [expression for expression, _ in kept],
            self.inputs(columns),
            [where for _, where in kept],
            self.job.levels,
            seeds,
            tangents,
        )

    def repeated(self, columns: Columns, results: list[tuple[Any, Places]]) -> Repetition:
        """Return the job with other results."""
        expressions, where = [each for each, _ in results], [where for _, where in results]
        return Repetition(expressions, self.inputs(columns), where, self.job.levels)

    def multiplied(
        self, columns: Columns, places: _VectorPlaces, environment: Environment
    ) -> tuple[Repetition, TangentRepetition]:
        """Return the job with the derivatives by its leaves, and what multiplies directions."""
        inputs, copies = self._copied(columns)
        leaves = [(node, codes) for node, codes in self.leaves if places.has_any(codes)]
        starts: dict[int, dict[int, Any]] = {
            copies[node.index].index: {k: 1.0} for k, (node, _) in enumerate(leaves)
        }
        found = tangents_of([copies[node.index] for node in self.operations], starts)
        results = [
            (copies[node.index] if isinstance(node, Symbol) else node, where)
            for node, where in self.kept(columns)
        ]
        graph, count = Graph(), len(self.job.levels)
        seeds = [graph.input(((SEED, 0, 0), k)) for k in range(len(leaves))]
        read: dict[int, Places] = {}
        products: list[tuple[Any, IntArray]] = []
        for expression, codes in self._moving(places):
            slopes = found.get(copies[expression.index].index, {})
            total: Any = 0.0
            for k, slope in zip(slopes, simplify(slopes.values()), strict=True):
                factor = slope
                if isinstance(slope, Symbol):
                    where = "env", environment.reserve(count) + np.arange(count)
                    results.append((slope, where))
                    factor = graph.input((("entry", 0, 0), len(results)))
                    read[factor.index] = where
                total = total + factor * seeds[k]
            if isinstance(total, Symbol):
                products.append((total, places.to_write(codes)))
        at = [(seed, places.to_read(codes)) for seed, (_, codes) in zip(seeds, leaves, strict=True)]
        expressions, to = [each for each, _ in results], [where for _, where in results]
        return (
            Repetition(expressions, inputs, to, self.job.levels),
            TangentRepetition([], read, [], self.job.levels, at, products),
        )

    def _copied(self, columns: Columns) -> tuple[dict[int, Places], dict[int, Symbol]]:
        """Copy the job into a graph of its own, where nothing is behind what it reads.

        Return where that is, and the copies by index.
        """
        graph = Graph()
        copies, inputs = {}, {}
        for k, (index, where) in enumerate(self.inputs(columns).items()):
            copies[index] = graph.input((("read", 0, 0), k))
            inputs[copies[index].index] = where
        for node in self.operations:
            operands = [
                graph.constant(arg.leaf) if arg.op == "constant" else copies[arg.index]
                for arg in node.args
            ]
            copies[node.index] = graph.record(node.op, *operands)
        return inputs, copies


class _VectorPlaces:
    """Where the derivatives of numbers are that change with the states, eight of each.

    Parameters
    ----------
    codes : iterable of int
        Those of the numbers.
    environment : Environment
        Gives the room.
    """

    def __init__(self, codes: dict[int, int], environment: Environment) -> None:
        self._codes = np.sort(np.array([*codes], dtype=np.int64))
        self._first = environment.reserve(WIDTH * (len(self._codes) + 2))

    def start_of(self, column: int) -> int:
        """Return where those of a column begin."""
        return self._first + WIDTH * int(np.searchsorted(self._codes, column << SHIFT))

    def clearing(self) -> str:
        """Return the lines that make the zeros for numbers that do not change."""
        place = self._first + WIDTH * len(self._codes)
        return (
            f"%zeros = getelementptr double, ptr %env, i64 {place}\n"
            f"  store <{WIDTH} x double> zeroinitializer, ptr %zeros, align 8"
        )

    def has_any(self, codes: IntArray) -> bool:
        """Tell whether any of some numbers changes."""
        return bool(np.isin(codes, self._codes).any())

    def to_read(self, codes: IntArray) -> IntArray:
        """Return where they are; for numbers that do not change, where zeros are."""
        return self._places(codes, len(self._codes))

    def to_write(self, codes: IntArray) -> IntArray:
        """Return where they are; for numbers that do not change, where nobody reads."""
        return self._places(codes, len(self._codes) + 1)

    def _places(self, codes: IntArray, other: int) -> IntArray:
        at = np.searchsorted(self._codes, codes)
        known = self._codes[np.minimum(at, len(self._codes) - 1)] == codes
        places: IntArray = self._first + WIDTH * np.where(known, at, other)
        return places


def _sort(codes: IntArray, columns: Columns) -> int:
    return columns.sorts[int(codes[0]) >> SHIFT]


def _follow(parts: Sequence[_Part], count: int) -> tuple[dict[int, int], int]:
    """Find on which states all numbers depend, as the bits of a number, by their codes.

    Return also how many vectors of derivatives it would take to write out all that is computed.
    """
    bits = {(STATE_COLUMN << SHIFT) + k: 1 << k for k in range(count)}
    vectors = 0
    for _, k, first, last in sorted(_spans(parts)):
        vectors += parts[k].follow(first, last, bits)
    return bits, vectors


def _spans(parts: Sequence[_Part]) -> Iterator[tuple[int, int, int, int]]:
    """Return each level of each part, with its first row and the one behind its last."""
    spans = [
        [(level, k, first, last) for level, first, last in spans_of(part.job.levels)]
        for k, part in enumerate(parts)
    ]
    return chain.from_iterable(spans)


__all__ = ["SharedJacobian", "shared_jacobian"]
