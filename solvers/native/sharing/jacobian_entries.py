"""The Jacobian of shared code entry by entry: derivatives that are results of jobs like all others.

Where each number depends on a few states, as in a chain, its derivatives by these are a few more
numbers. So the chain rule is written as jobs are: the rows of a job that depend on states in one
way are a *kind*, which computes derivatives beside the numbers, for all of its rows in a loop.
Derivatives that are known, as that of a state by itself, are put in as numbers.

There are two ways through a job. By states, what it computes is differentiated by each of the
states behind it. By what it reads, that comes first, and then is multiplied by the derivatives of
what it reads; this is shorter where it reads less than there are states behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from flexure.diagrams.scalars.differentiation import tangents_of
from flexure.diagrams.scalars.expression import Graph, Symbol
from flexure.diagrams.scalars.simplification import simplify
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.sharing.columns import RATE, SHIFT, STATE_COLUMN, Columns, IntArray
from flexure.solvers.native.sharing.loops import Places, Repetition
from flexure.solvers.native.sharing.moving_jobs import MovingJob, spans

#: Derivatives of operations that are written, beyond which it takes too long to compile them.
_LONG = 12_000

#: Where a derivative is: the kind, the number of the derivative there, and the row.
Where: TypeAlias = tuple[int, int, int]


class Entry(NamedTuple):
    """A derivative by a state: its value, if that is known, and where it is."""

    value: float | None
    where: Where | None


class TooLongError(Exception):
    """The code would take too long to compile."""


class EntryJobs:
    """Jobs that compute the derivatives of results beside those that others read.

    Parameters
    ----------
    parts : sequence of MovingJob
        All jobs.
    wanted : set of int
        Codes of the results whose derivatives are wanted.
    columns : Columns
        Of the jobs.
    count : int
        Number of states.

    Attributes
    ----------
    rows, columns : list of int
        Where the entries are in the Jacobian, in their order.

    Raises
    ------
    TooLongError
        When it does not pay.
    """

    def __init__(
        self,
        parts: Sequence[MovingJob],
        wanted: set[int],
        columns: Columns,
        count: int,
    ) -> None:
        first = STATE_COLUMN << SHIFT
        self._derivatives: dict[int, dict[int, Entry]] = {
            first + k: {k: Entry(1.0, None)} for k in range(count)
        }
        self._columns = columns
        self._kinds: dict[Any, _Kind] = {}
        self._written = 0
        order = sorted(spans(parts))
        for _, k, begin, end in reversed(order):
            parts[k].ask(begin, end, wanted)
        for level, k, begin, end in order:
            for row in range(begin, end):
                self._pass(k, parts[k], row, level, wanted)
        self.rows: list[int] = []
        self.columns: list[int] = []

    def _pass(self, k: int, part: MovingJob, row: int, level: int, wanted: set[int]) -> None:
        """Take a row into the kind that it belongs to."""
        slots: dict[int, int] = {}
        read: list[Where] = []
        pattern: list[tuple[tuple[int, float | None], ...]] = []
        for _, codes in part.leaves:
            found = self._derivatives.get(int(codes[row]), {})
            pattern.append(
                tuple([(slots.setdefault(s, len(slots)), e.value) for s, e in found.items()])
            )
            read += [e.where for e in found.values() if e.value is None and e.where is not None]
        asked = tuple([int(codes[row]) in wanted for _, codes in part.results])
        key = k, asked, tuple(pattern)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(len(self._kinds), part, pattern, asked, len(slots))
            self._written += kind.length
            if self._written > _LONG:
                raise TooLongError
        at = kind.add(row, level, read)
        states = list(slots)
        for number, (result, slot, value) in enumerate(kind.derivatives):
            code = int(part.results[result][1][row])
            entry = Entry(value, (kind.number, number, at))
            self._derivatives.setdefault(code, {})[states[slot]] = entry

    def derivatives(self, code: int) -> dict[int, Entry]:
        """Return the derivatives of a result, by state."""
        return self._derivatives.get(code, {})

    def repetitions(self, environment: Environment) -> list[Repetition]:
        """Return everything that is computed, in which `rows` and `columns` get their entries."""
        kinds = list(self._kinds.values())
        self._places: dict[tuple[int, int], tuple[str, int]] = {}
        for kind in kinds:
            for number, (result, _, _) in enumerate(kind.derivatives):
                codes = kind.part.results[result][1]
                if self._columns.sort_of(codes) == RATE:
                    place = "out", len(self.rows)
                    self._list(kind, number, codes)
                else:
                    place = "env", environment.reserve(len(kind.rows))
                self._places[kind.number, number] = place
        return [kind.repetition(self._columns, self._places) for kind in kinds if kind.is_needed]

    def _list(self, kind: _Kind, number: int, codes: IntArray) -> None:
        """Note where the entries of a column of derivatives are in the Jacobian."""
        for at, row in enumerate(kind.rows):
            code = int(codes[row])
            states = self._derivatives[code].items()
            where = kind.number, number, at
            self.rows.append(code & ((1 << SHIFT) - 1))
            self.columns.append(next(state for state, entry in states if entry.where == where))

    def place(self, entry: Entry) -> int:
        """Return where a derivative is in the environment."""
        assert entry.where is not None
        kind, number, at = entry.where
        return self._places[kind, number][1] + at


class _Kind:
    """Rows of a job that depend on states in one way.

    Parameters
    ----------
    number : int
        Of the kind.
    part : MovingJob
        The job.
    pattern : list of tuple
        For everything that is read the states behind it, numbered for each row, with the
        derivatives by them that are known.
    asked : tuple of bool
        For each result whether its derivatives are wanted.
    count : int
        Number of states behind all that is read.

    Attributes
    ----------
    derivatives : list of (int, int, float or None)
        The result, the state, and the value if it is known.
    length : int
        About how many operations are written.
    rows : list of int
        The rows of the job.
    """

    def __init__(
        self,
        number: int,
        part: MovingJob,
        pattern: list[tuple[tuple[int, float | None], ...]],
        asked: tuple[bool, ...],
        count: int,
    ) -> None:
        self.number, self.part = number, part
        self.rows: list[int] = []
        self.derivatives: list[tuple[int, int, float | None]] = []
        self._levels: list[int] = []
        self._read: list[list[Where]] = []
        self._copy()
        results = [
            (k, self._copies[node.index])
            for k, ((node, _), is_asked) in enumerate(zip(part.results, asked, strict=True))
            if is_asked and isinstance(node, Symbol) and part.reached.get(node.index)
        ]
        by_states, by_leaves = self._lengths(pattern, results)
        self.length = min(by_states, by_leaves)
        if self.length > _LONG:
            raise TooLongError
        self._changes = [
            [
                (slot, self._input(("change", k, slot)) if value is None else value)
                for slot, value in each
            ]
            for k, each in enumerate(pattern)
        ]
        self._sources = [
            change.index
            for each in self._changes
            for _, change in each
            if isinstance(change, Symbol)
        ]
        starts: dict[int, dict[int, Any]] = {}
        leaves = [self._copies[node.index].index for node, _ in part.leaves]
        if by_states <= by_leaves:
            starts = {leaf: dict(each) for leaf, each in zip(leaves, self._changes, strict=True)}
        else:
            starts = {leaf: {k: 1.0} for k, leaf in enumerate(leaves)}
        found = tangents_of([self._copies[node.index] for node in part.operations], starts)
        for k, node in results:
            slopes = found.get(node.index, {})
            if by_states > by_leaves:
                slopes = self._multiplied(slopes)
            self._results += simplify(slopes.values())
            for slot, value in zip(slopes, self._results[-len(slopes) :], strict=False):
                known = None if isinstance(value, Symbol) else float(value)
                self.derivatives.append((k, slot, known))

    @property
    def is_needed(self) -> bool:
        """Whether anything is computed."""
        return bool(self._results or self.part.job.expressions)

    def _copy(self) -> None:
        """Copy the job into a graph of its own, where nothing is behind what it reads."""
        self._graph, self._copies = Graph(), dict[int, Symbol]()
        for k, index in enumerate(self.part.job.inputs):
            self._copies[index] = self._input(("read", k, 0))
        for node in self.part.operations:
            operands = [
                self._graph.constant(arg.leaf) if arg.op == "constant" else self._copies[arg.index]
                for arg in node.args
            ]
            self._copies[node.index] = self._graph.record(node.op, *operands)
        self._results: list[Any] = []

    def _input(self, key: tuple[str, int, int]) -> Symbol:
        return self._graph.input((key, 0))

    def _lengths(
        self, pattern: list[tuple[tuple[int, float | None], ...]], results: list[tuple[int, Symbol]]
    ) -> tuple[int, int]:
        """Return about how many operations it takes by states, and by what is read."""
        bits = [sum(1 << slot for slot, _ in each) for each in pattern]
        reached, states = self.part.reached, 0
        for leaves in reached.values():
            behind = 0
            for k, each in enumerate(bits):
                if leaves >> k & 1:
                    behind |= each
            states += behind.bit_count()
        products = 0
        for k, _ in results:
            leaves = reached[self.part.results[k][0].index]
            products += sum(each.bit_count() for j, each in enumerate(bits) if leaves >> j & 1)
        return 2 * states, 2 * sum(map(int.bit_count, reached.values())) + 2 * products

    def _multiplied(self, slopes: Mapping[int, Any]) -> dict[int, Any]:
        """Multiply derivatives by what is read with the derivatives of that."""
        found: dict[int, Any] = {}
        for k, slope in slopes.items():
            for slot, change in self._changes[k]:
                product = slope if isinstance(change, float) and change == 1.0 else slope * change
                found[slot] = found[slot] + product if slot in found else product
        return found

    def add(self, row: int, level: int, read: list[Where]) -> int:
        """Add a row, with the derivatives that it reads; return its number."""
        self.rows.append(row)
        self._levels.append(level)
        self._read.append(read)
        return len(self.rows) - 1

    def repetition(
        self, columns: Columns, places: Mapping[tuple[int, int], tuple[str, int]]
    ) -> Repetition:
        """Return the loop over the rows."""
        rows, job = np.array(self.rows), self.part.job
        inputs: dict[int, Places] = {
            self._copies[index].index: columns.locate(codes[rows])
            for index, codes in job.inputs.items()
        }
        for source, wheres in zip(self._sources, zip(*self._read, strict=True), strict=True):
            found = [places[kind, number][1] + at for kind, number, at in wheres]
            inputs[source] = "env", np.array(found)
        expressions: list[Any] = []
        outputs: list[Places] = []
        for expression, codes in zip(job.expressions, job.outputs, strict=True):
            if columns.sort_of(codes) != RATE:
                is_symbol = isinstance(expression, Symbol)
                expressions.append(self._copies[expression.index] if is_symbol else expression)
                outputs.append(columns.locate(codes[rows]))
        for number, expression in enumerate(self._results):
            array, first = places[self.number, number]
            expressions.append(expression)
            outputs.append((array, first + np.arange(len(rows))))
        return Repetition(expressions, inputs, outputs, np.array(self._levels))


__all__ = ["EntryJobs", "TooLongError"]
