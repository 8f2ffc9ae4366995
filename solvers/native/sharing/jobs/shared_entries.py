"""The Jacobian of derivatives that share code, entry by entry, by jobs like those of the equations.

A job that computes forces from positions gets one beside it that computes how they change with the
states, for all of its rows. Which states these are differs from row to row, but hardly their
*pattern*: how many there are, what that is read depends on which of them, and what of it is known,
as that a state changes by one with itself. All rows of one pattern are a job, whose results are
derivatives: of numbers for later jobs, or entries of the Jacobian. So the chain rule is as short as
one would write it for one row, and is computed for as many rows at once as a register holds.

Within a job, derivatives are found by elimination
(`flexure.diagrams.scalars.derivatives.elimination`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.scalars.derivatives.elimination import eliminate
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.solvers.native.emission.emission import SEED, Environment, depth_first
from flexure.solvers.native.sharing.families.value_columns import (
    MOVING,
    RATE,
    RATE_COLUMN,
    SHIFT,
    STATE_COLUMN,
    Columns,
    IntArray,
    rows_of,
)
from flexure.solvers.native.sharing.jobs.changing_jobs import Part, in_order
from flexure.solvers.native.sharing.jobs.jobs import Job

#: A state by which something changes, and its derivative: a known one, or its code.
_Slope: TypeAlias = "tuple[int, float | None, int]"
#: For each leaf the place of each state, and its derivative where that is known.
_Pattern: TypeAlias = "tuple[tuple[tuple[int, float | None], ...], ...]"


@dataclass
class _Group:
    """The rows of a job that have one pattern, with the states and derivatives of each.

    The results are numbered whose derivatives are wanted.
    """

    pattern: _Pattern
    wanted: tuple[int, ...]
    rows: list[int] = field(default_factory=list)
    states: list[list[int]] = field(default_factory=list)
    codes: list[list[int]] = field(default_factory=list)


class SharedEntries:
    """Jobs that compute the numbers again, and all derivatives behind the entries.

    ``parts`` is all that is computed during a run; ``rows`` are the codes of the results whose
    derivatives by the ``count`` states are the entries, ``addends`` those of other results whose
    derivatives are wanted, which go into the environment. Columns of derivatives are added to
    ``columns``. It is given up from ``most`` operations on.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        rows: Iterable[int],
        addends: AbstractSet[int],
        columns: Columns,
        count: int,
        environment: Environment,
        most: int,
    ) -> None:
        self._columns, self._environment = columns, environment
        self._addends = addends
        self._wanted = {*rows, *addends}
        order = in_order(parts)
        for part, span in reversed(order):
            part.ask(span, self._wanted)
        self._slopes: dict[int, list[_Slope]] = {
            (STATE_COLUMN << SHIFT) + k: [(k, 1.0, -1)] for k in range(count)
        }
        self.jobs: list[Job] = []  # the jobs; none where there would be too many operations
        # rows, columns: where the entries are that they compute.
        self.rows: list[int] = []
        self.columns: list[int] = []
        written, first = 0, len(columns.sorts)
        self._add_states()
        for part, span in order:
            for group in self._groups(part, span):
                made = self._made(part, group)
                written += made.operations
                if written > most:
                    self.jobs = []
                    return
                self.jobs.append(made)
        self.jobs = self._needed(first)

    def _add_states(self) -> None:
        """Let a job compute the derivative of states that are addends themselves: a one."""
        states = sorted(code for code in self._addends if code >> SHIFT == STATE_COLUMN)
        if states:
            one = self._column(MOVING, 1, self._environment.reserve(1))
            self.jobs.append(Job([1.0], {}, [one], np.zeros(1, dtype=np.int64)))
            for code in states:
                self._slopes[code] = [(code % (1 << SHIFT), 1.0, int(one[0]))]

    def _needed(self, first: int) -> list[Job]:
        """Return the jobs without numbers that no derivative, in a new column, needs."""
        found: list[Job] = []
        read: set[int] = set()
        for job in reversed(self.jobs):
            numbers = [
                number
                for number, codes in enumerate(job.outputs)
                if int(codes[0]) >> SHIFT >= first or not read.isdisjoint(codes.tolist())
            ]
            if numbers:
                found.append(job.only(numbers))
                for codes in found[-1].inputs.values():
                    read.update(codes.tolist())
        return found[::-1]

    def place_of(self, code: int) -> dict[int, int]:
        """Return where the derivatives of an addend are in the environment, by state."""
        found = {}
        for state, _, own in self._slopes.get(code, ()):
            first = self._columns.places[own >> SHIFT]
            assert first is not None
            found[state] = first + own % (1 << SHIFT)
        return found

    def _groups(self, part: Part, rows: range) -> Iterator[_Group]:
        """Sort rows by their patterns."""
        found: dict[tuple[_Pattern, tuple[int, ...]], _Group] = {}
        slopes, wanted = self._slopes, self._wanted
        read = [codes[rows.start : rows.stop].tolist() for _, codes in part.leaves]
        made = [codes[rows.start : rows.stop].tolist() for _, codes in part.results]
        for k, row in enumerate(rows):
            place: dict[int, int] = {}
            pattern, computed = [], []
            for codes in read:
                own = slopes.get(codes[k], ())
                pattern.append(
                    tuple([(place.setdefault(state, len(place)), known) for state, known, _ in own])
                )
                computed += [code for _, known, code in own if known is None]
            asked = tuple([number for number, codes in enumerate(made) if codes[k] in wanted])
            key = tuple(pattern), asked
            group = found.get(key) or found.setdefault(key, _Group(*key))
            group.rows.append(row)
            group.states.append(list(place))
            group.codes.append(computed)
        yield from found.values()

    def _made(self, part: Part, group: _Group) -> Job:
        """Return the job for the rows of a group."""
        job, rows = part.job, np.array(group.rows)
        codes = np.array(group.codes, dtype=np.int64).T
        inputs = {index: each[rows] for index, each in job.inputs.items()}
        starts: dict[int, dict[int, Any]] = {}
        used = 0
        for (node, _), own in zip(part.leaves, group.pattern, strict=True):
            for place, known in own:
                weight: Any = known
                if known is None:
                    weight = node.graph.input(((SEED, 0, 0), used))
                    inputs[weight.index] = codes[used]
                    used += 1
                starts.setdefault(node.index, {})[place] = weight
        operations = depth_first(job.expressions, job.inputs)
        asked = [part.results[number] for number in group.wanted]
        entries = eliminate([expression for expression, _ in asked], operations, starts)
        slopes = (weight for each in entries for weight in each.values())
        simple = iter(simplify(slopes, kept=job.inputs))
        made = Job([], inputs, [], job.levels[rows])
        states = np.array(group.states, dtype=np.int64).T
        for expression, places in zip(job.expressions, job.outputs, strict=True):
            if self._columns.sort_of(places) != RATE:
                made.expressions.append(expression)
                made.outputs.append(places[rows])
        for (_, places), each in zip(asked, entries, strict=True):
            for place in each:
                self._give(made, next(simple), places[rows], states[place])
        return made

    def _give(self, made: Job, slope: Any, places: IntArray, states: IntArray) -> None:
        """Let a job compute a derivative of results, or note it where it is known."""
        known = slope if isinstance(slope, float) else None
        if known == 0.0:
            return
        is_rate = int(places[0]) >> SHIFT == RATE_COLUMN
        is_computed = is_rate or known is None or not self._addends.isdisjoint(places.tolist())
        if is_rate:
            own = self._column(RATE, len(places), len(self.rows))
            self.rows += rows_of(places).tolist()
            self.columns += states.tolist()
        elif is_computed:
            own = self._column(MOVING, len(places), self._environment.reserve(len(places)))
        else:
            own = np.full(len(places), -1)
        if is_computed:
            made.expressions.append(slope)
            made.outputs.append(own)
        if not is_rate:
            triples = zip(places.tolist(), states.tolist(), own.tolist(), strict=True)
            for place, state, code in triples:
                self._slopes.setdefault(place, []).append((state, known, code))

    def _column(self, sort: int, size: int, place: int) -> IntArray:
        """Return the codes of a new column that begins at a place."""
        number = self._columns.add(sort, size)
        self._columns.places[number] = place
        return (number << SHIFT) + np.arange(size)
