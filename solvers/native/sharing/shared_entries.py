"""The Jacobian of derivatives that share code, entry by entry, by jobs like those of the equations.

A job that computes forces from positions gets one beside it that computes how they change with the
states, for all of its rows. Which states these are differs from row to row, but hardly their
*pattern*: how many there are, what that is read depends on which of them, and what of it is known,
as that a state changes by one with itself. All rows of one pattern are a job, whose results are
derivatives: of numbers for later jobs, or entries of the Jacobian. So the chain rule is as short as
one would write it for one row, and is computed for as many rows at once as a register holds.

Within a job, derivatives are found by elimination (`flexure.diagrams.scalars.elimination`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.scalars.elimination import eliminate
from flexure.diagrams.scalars.simplification import simplify
from flexure.solvers.native.emission.emission import SEED, Environment, Node, depth_first
from flexure.solvers.native.sharing.columns import (
    MOVING,
    RATE,
    SHIFT,
    STATE_COLUMN,
    Columns,
    IntArray,
    rows_of,
)
from flexure.solvers.native.sharing.jobs import Job
from flexure.solvers.native.sharing.repetition import spans_of

_HOPELESS = 20  # times what may be written, from which on derivatives are not even looked for

#: A state by which something changes, and its derivative: a known one, or the code of one computed.
_Slope: TypeAlias = "tuple[int, float | None, int]"
#: For each leaf the place of each state, and its derivative where that is known.
_Pattern: TypeAlias = "tuple[tuple[tuple[int, float | None], ...], ...]"


@dataclass
class _Group:
    """The rows of a job that have one pattern, with the states and derivatives of each."""

    pattern: _Pattern
    rows: list[int] = field(default_factory=list)
    states: list[list[int]] = field(default_factory=list)
    codes: list[list[int]] = field(default_factory=list)


class SharedEntries:
    """Jobs that compute the numbers again, and all derivatives behind the entries.

    Parameters
    ----------
    jobs : sequence of (Job, list of (Node, IntArray))
        All that is computed during a run, and what each reads that may change with the states.
    columns : Columns
        Of these jobs. Columns of derivatives are added.
    count : int
        Number of states.
    environment : Environment
        Gives room to derivatives.
    most : int
        Operations, from which on it is given up.

    Attributes
    ----------
    jobs : list of Job
        The jobs; none where there would be too many operations.
    rows, columns : list of int
        Where the entries are that they compute.
    """

    def __init__(
        self,
        jobs: Sequence[tuple[Job, Sequence[tuple[Node, IntArray]]]],
        columns: Columns,
        count: int,
        environment: Environment,
        most: int,
    ) -> None:
        self._columns, self._environment = columns, environment
        self._slopes: dict[int, list[_Slope]] = {
            (STATE_COLUMN << SHIFT) + k: [(k, 1.0, -1)] for k in range(count)
        }
        self.jobs: list[Job] = []
        self.rows: list[int] = []
        self.columns: list[int] = []
        size, written = environment.size, 0
        for job, leaves, rows in _in_order(jobs):
            for group in self._groups(leaves, rows):
                if job.operations * len(group.states[0]) > _HOPELESS * most:
                    written = most
                else:
                    made = self._made(job, leaves, group)
                    written += made.operations
                if written >= most:
                    self.jobs, environment.size = [], size
                    return
                if made.expressions:
                    self.jobs.append(made)

    def _groups(self, leaves: Sequence[tuple[Node, IntArray]], rows: range) -> Iterator[_Group]:
        """Sort rows by their patterns."""
        found: dict[_Pattern, _Group] = {}
        slopes = self._slopes
        read = [codes[rows.start : rows.stop].tolist() for _, codes in leaves]
        for k, row in enumerate(rows):
            place: dict[int, int] = {}
            pattern, computed = [], []
            for codes in read:
                own = slopes.get(codes[k], ())
                pattern.append(
                    tuple([(place.setdefault(state, len(place)), known) for state, known, _ in own])
                )
                computed += [code for _, known, code in own if known is None]
            key = tuple(pattern)
            group = found.get(key) or found.setdefault(key, _Group(key))
            group.rows.append(row)
            group.states.append(list(place))
            group.codes.append(computed)
        yield from found.values()

    def _made(self, job: Job, leaves: Sequence[tuple[Node, IntArray]], group: _Group) -> Job:
        """Return the job for the rows of a group."""
        rows = np.array(group.rows)
        codes = np.array(group.codes, dtype=np.int64).T
        inputs = {index: each[rows] for index, each in job.inputs.items()}
        starts: dict[int, dict[int, Any]] = {}
        used = 0
        for (node, _), own in zip(leaves, group.pattern, strict=True):
            for place, known in own:
                weight: Any = known
                if known is None:
                    weight = node.graph.input(((SEED, 0, 0), used))
                    inputs[weight.index] = codes[used]
                    used += 1
                starts.setdefault(node.index, {})[place] = weight
        operations = depth_first(job.expressions, job.inputs)
        entries = eliminate(job.expressions, operations, starts)
        slopes = (weight for each in entries for weight in each.values())
        simple = iter(simplify(slopes, kept=job.inputs))
        made = Job([], inputs, [], job.levels[rows])
        states = np.array(group.states, dtype=np.int64).T
        for expression, places, each in zip(job.expressions, job.outputs, entries, strict=True):
            sort = self._columns.sorts[int(places[0]) >> SHIFT]
            if sort != RATE:
                made.expressions.append(expression)
                made.outputs.append(places[rows])
            for place in each:
                self._give(made, next(simple), sort, places[rows], states[place])
        return _without_unused(made)

    def _give(self, made: Job, slope: Any, sort: int, places: IntArray, states: IntArray) -> None:
        """Let a job compute a derivative of results in some places, or note a known one."""
        known = slope if isinstance(slope, float) else None
        if known == 0.0:
            return
        if sort == RATE:
            own = self._column(RATE, len(places), len(self.rows))
            self.rows += rows_of(places).tolist()
            self.columns += states.tolist()
        elif known is None:
            own = self._column(MOVING, len(places), self._environment.reserve(len(places)))
        else:
            own = np.full(len(places), -1)
        if sort == RATE or known is None:
            made.expressions.append(slope)
            made.outputs.append(own)
        if sort != RATE:
            triples = zip(places.tolist(), states.tolist(), own.tolist(), strict=True)
            for place, state, code in triples:
                self._slopes.setdefault(place, []).append((state, known, code))

    def _column(self, sort: int, size: int, place: int) -> IntArray:
        """Return the codes of a new column that begins at a place."""
        number = self._columns.add(sort, size)
        self._columns.places[number] = place
        return (number << SHIFT) + np.arange(size)


def _in_order(
    jobs: Sequence[tuple[Job, Sequence[tuple[Node, IntArray]]]],
) -> Iterator[tuple[Job, Sequence[tuple[Node, IntArray]], range]]:
    """Go through the rows of each level of each job, in the order in which they are computed."""
    spans = [
        (level, k, first, last)
        for k, (job, _) in enumerate(jobs)
        for level, first, last in spans_of(job.levels)
    ]
    for _, k, first, last in sorted(spans):
        yield *jobs[k], range(first, last)


def _without_unused(job: Job) -> Job:
    """Leave out what is not read."""
    return job.only(range(len(job.expressions)))


__all__ = ["SharedEntries"]
