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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.scalars.differentiation import tangents_of
from flexure.solvers.native.emission.emission import SEED, Environment, Node, depth_first
from flexure.solvers.native.emission.jacobian_emission import LONG
from flexure.solvers.native.emission.tangent_emission import (
    direction_driver,
    plan_directions,
    sums_function,
)
from flexure.solvers.native.emission.wide_emission import WIDTH
from flexure.solvers.native.llvm.assembly import ModuleTexts, care
from flexure.solvers.native.sharing.columns import (
    RATE,
    RATE_COLUMN,
    SHIFT,
    STATE_COLUMN,
    Columns,
    IntArray,
)
from flexure.solvers.native.sharing.jacobian_entries import EntryJobs, TooLongError
from flexure.solvers.native.sharing.jobs import Job
from flexure.solvers.native.sharing.moving_jobs import MovingJob, follow
from flexure.solvers.native.sharing.repetition import RepetitionWriter
from flexure.solvers.native.sharing.separable_rows import SeparableRows
from flexure.solvers.native.sharing.tangent_loops import TangentRepetition
from flexure.solvers.tracing.effort import WRITTEN

#: Turns, beyond which code that is written out is faster: it computes numbers once for all turns.
_TURNS = 8
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
    parts = [MovingJob(job, columns) for job in jobs]
    bits, vectors = follow(parts, count)
    reached = [bits.get((RATE_COLUMN << SHIFT) + k, 0) for k in range(count)]
    if vectors <= LONG or not any(reached):
        return None
    rows = [(RATE_COLUMN << SHIFT) + k for k in range(count)]
    wide = SeparableRows(parts, rows, bits, WIDTH * _TURNS, len(columns.sorts))
    found = _by_entries(
        parts, wide, {row for row in rows if bits.get(row)}, columns, count, environment
    )
    if found is not None:
        return found
    reached = [bits.get(row, 0) for row in rows]
    plan = plan_directions([*reached, *wide.reached], count, WIDTH)
    if len(plan.ends) > _TURNS and sum(part.operations_of_all for part in parts) <= _MANY:
        return None
    places = _VectorPlaces(bits, environment)
    plan, sums = wide.split(plan, count, places.to_read(np.array(wide.codes, dtype=np.int64)))
    repetitions = [_differentiated(part, columns, places) for part in parts]
    written = sum(len(depth_first([e for e, _ in each.tangents], {})) for each in repetitions)
    if written > WRITTEN:
        return None
    writer = RepetitionWriter()
    writer.write("jacobian.turn", [each for each in repetitions if each.outputs or each.tangents])
    driver = direction_driver(
        plan,
        places.start_of(STATE_COLUMN),
        places.start_of(RATE_COLUMN),
        before=places.clearing(),
        turn="@jacobian.turn(double %t, ptr %x, ptr %env, ptr %out)",
        sums=sums,
    )
    text = "\n".join([*sorted(writer.declarations), *writer.texts, *writer.data.lines, driver])
    return SharedJacobian(ModuleTexts([text], care(len(text))), plan.rows, plan.columns)


def _by_entries(
    parts: Sequence[MovingJob],
    wide: SeparableRows,
    wanted: set[int],
    columns: Columns,
    count: int,
    environment: Environment,
) -> SharedJacobian | None:
    """Write the function by jobs that compute entries; None if they are too long."""
    try:
        jobs = EntryJobs(parts, wanted | set(wide.codes), columns, count)
    except TooLongError:
        return None
    writer = RepetitionWriter()
    writer.write("jacobian.entries", jobs.repetitions(environment))
    rows, picked = list(jobs.rows), list(jobs.columns)
    arguments = "double %t, ptr noalias %x, ptr noalias %env, ptr noalias %out"
    calls = [f"  call void @jacobian.entries({arguments.replace(' noalias', '')})"]
    sums = wide.sums(jobs, rows, picked)
    if sums is not None:
        writer.texts.append(sums_function(sums))
        calls.append(
            f"  call void @jacobian.add(ptr %env, ptr %out, i64 0, i64 {len(sums.sources)})"
        )
    driver = [f"define void @jacobian({arguments}) #0 {{", *calls, "  ret void", "}"]
    text = "\n".join([*sorted(writer.declarations), *writer.texts, *writer.data.lines, *driver])
    return SharedJacobian(
        ModuleTexts([text], care(len(text)), has_loops=True),
        rows,
        picked,
        way="entry by entry, by shared code",
    )


def _differentiated(part: MovingJob, columns: Columns, places: _VectorPlaces) -> TangentRepetition:
    """Return a job with its derivatives, but without the results that are for others."""
    job = part.job
    seeds: list[tuple[Node, IntArray]] = []
    starts: dict[int, dict[int, Any]] = {}
    for node, codes in part.leaves:
        if places.has_any(codes):
            seed = node.graph.input(((SEED, 0, 0), len(seeds)))
            seeds.append((seed, places.to_read(codes)))
            starts[node.index] = {0: seed}
    found = tangents_of(part.operations, starts)
    tangents = [
        (found[expression.index][0], places.to_write(codes))
        for expression, codes in zip(job.expressions, job.outputs, strict=True)
        if found.get(getattr(expression, "index", -1)) and places.has_any(codes)
    ]
    tangents += [
        (found[node.index][0], places.to_write(codes)) for node, codes in part.exposed.values()
    ]
    kept = [
        (expression, columns.locate(codes))
        for expression, codes in zip(job.expressions, job.outputs, strict=True)
        if columns.sort_of(codes) != RATE
    ]
    return TangentRepetition(
        [expression for expression, _ in kept],
        {index: columns.locate(codes) for index, codes in job.inputs.items()},
        [where for _, where in kept],
        job.levels,
        seeds,
        tangents,
    )


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


__all__ = ["SharedJacobian", "shared_jacobian"]
