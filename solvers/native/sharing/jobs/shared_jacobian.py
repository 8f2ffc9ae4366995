"""The Jacobian of derivatives that share code, by derivatives of the jobs.

Where what jobs compute depends on a few states each, as in a chain, in which each part feels its
neighbors alone, derivatives are numbers that jobs compute like all others
(`flexure.solvers.native.sharing.jobs.shared_entries`). The code does not grow with the length of
the chain, and several of its parts are computed at once.

Where that would be too long, each job computes beside its numbers how they change when what it
reads changes: the chain rule, from job to job, along eight directions at a time. States that never
meet in one equation share a direction (`flexure.solvers.native.emission.tangent_emission`), so that
a chain takes as many turns as it has a few neighbors.

Sums over everything, as an energy ledger has, are taken apart
(`flexure.solvers.native.sharing.jobs.separable_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.scalars.derivatives.differentiation import tangents_of
from flexure.solvers.native.emission.emission import SEED, Environment, Node, depth_first
from flexure.solvers.native.emission.jacobian_emission import LONG
from flexure.solvers.native.emission.tangent_emission import (
    WIDTH,
    direction_driver,
    plan_directions,
    sums_function,
)
from flexure.solvers.native.llvm.library import ModuleTexts, care
from flexure.solvers.native.sharing.families.value_columns import (
    RATE,
    RATE_COLUMN,
    SHIFT,
    STATE_COLUMN,
    Columns,
    IntArray,
)
from flexure.solvers.native.sharing.jobs.changing_jobs import Part, in_order
from flexure.solvers.native.sharing.jobs.job_loops import PARAMETERS
from flexure.solvers.native.sharing.jobs.jobs import Job
from flexure.solvers.native.sharing.jobs.repetition import RepetitionWriter, TangentRepetition
from flexure.solvers.native.sharing.jobs.separable_rows import SeparableRows
from flexure.solvers.native.sharing.jobs.shared_entries import SharedEntries
from flexure.solvers.tracing.compile_limits import WRITTEN

#: Turns, beyond which code that is written out is faster: it computes numbers once for all turns.
_TURNS = 8
#: Operations with derivatives, beyond which it nevertheless takes too long to compile.
_MANY = 50_000
#: Operations, up to which derivatives are written out entry by entry, for one row of each kind.
_ENTRIES = 15_000


class SharedJacobian(NamedTuple):
    """The function ``jacobian``, with its entries; the fields are those of `JacobianText`."""

    code: ModuleTexts
    rows: list[int]
    columns: list[int]
    way: str = "along directions, by shared code"
    base: None = None


def shared_jacobian(
    jobs: Sequence[Job],
    columns: Columns,
    count: int,
    environment: Environment,
    rows: int | None = None,
) -> SharedJacobian | None:
    """Write a function that computes the Jacobian of what jobs compute; None if that does not pay.

    ``jobs`` is all that is computed during a run. There are as many results as ``count``, the
    number of states, unless ``rows`` says how many; then there may be none.
    """
    is_sought, size = rows is not None, count if rows is None else rows
    parts = [Part(job, columns) for job in jobs]
    bits, vectors = _follow(parts, count)
    places_of = [(RATE_COLUMN << SHIFT) + k for k in range(size)]
    if not any(bits.get(row) for row in places_of) or (vectors <= LONG and not is_sought):
        return None
    wide = SeparableRows(parts, places_of, bits, WIDTH * _TURNS, len(columns.sorts))
    wanted = [row for row in places_of if bits.get(row)]
    entries = SharedEntries(parts, wanted, set(wide.codes), columns, count, environment, _ENTRIES)
    if entries.jobs:
        return _by_entries(entries, wide, columns)
    reached = [bits.get(row, 0) for row in places_of]
    plan = plan_directions([*reached, *wide.reached], count, WIDTH)
    if (
        not is_sought
        and len(plan.ends) > _TURNS
        and sum(part.operations_of_all for part in parts) <= _MANY
    ):
        return None
    writer = RepetitionWriter()
    places = _VectorPlaces(bits, environment)
    plan, sums = wide.split(plan, size, places.to_read(np.array(wide.codes, dtype=np.int64)))
    repetitions = [_differentiated(part, columns, places) for part in parts]
    written = sum(len(depth_first([e for e, _ in each.tangents], {})) for each in repetitions)
    if written > WRITTEN:
        return None
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


def _by_entries(entries: SharedEntries, wide: SeparableRows, columns: Columns) -> SharedJacobian:
    """Write the function by jobs that compute entries, and what adds up the rows of sums."""
    writer = RepetitionWriter()
    writer.write("jacobian.entries", [job.placed(columns) for job in entries.jobs])
    lines = [f"define void @jacobian({PARAMETERS}) #0 {{"]
    lines.append("  call void @jacobian.entries(double %t, ptr %x, ptr %env, ptr %out)")
    sums = wide.sums(entries)
    if sums is not None:
        writer.texts.append(sums_function(sums))
        size = len(sums.sources)
        lines.append(f"  call void @jacobian.add(ptr %env, ptr %out, i64 0, i64 {size})")
    lines += ["  ret void", "}"]
    text = "\n".join([*sorted(writer.declarations), *writer.texts, *writer.data.lines, *lines])
    code = ModuleTexts([text], care(len(text)))
    return SharedJacobian(code, entries.rows, entries.columns, "entry by entry, by shared code")


class _VectorPlaces:
    """Where the derivatives of numbers are that change with the states, eight of each."""

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
        """Return whether any of some numbers changes."""
        return bool(np.isin(codes, self._codes).any())

    def to_read(self, codes: IntArray) -> IntArray:
        """Return where they are; for numbers that do not change, where zeros are."""
        return self._places(codes, len(self._codes))

    def to_write(self, codes: IntArray) -> IntArray:
        """Return their places; for constant numbers, a place that is never read."""
        return self._places(codes, len(self._codes) + 1)

    def _places(self, codes: IntArray, other: int) -> IntArray:
        at = np.searchsorted(self._codes, codes)
        known = self._codes[np.minimum(at, len(self._codes) - 1)] == codes
        places: IntArray = self._first + WIDTH * np.where(known, at, other)
        return places


def _differentiated(part: Part, columns: Columns, places: _VectorPlaces) -> TangentRepetition:
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


def _follow(parts: Sequence[Part], count: int) -> tuple[dict[int, int], int]:
    """Find on which states all numbers depend, as the bits of a number, by their codes."""
    # Return also how many vectors of derivatives it would take to write out all that is computed.
    bits = {(STATE_COLUMN << SHIFT) + k: 1 << k for k in range(count)}
    vectors = 0
    for part, rows in in_order(parts):
        vectors += part.follow(rows, bits)
    return bits, vectors
