"""Location of witness events inside of one integrator step, in Python.

The search is that of `flexure.solvers.native.kernels.runs.run_events`, whose kernels run here as
functions of Python. The surface of a function is where it is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import shown
from flexure.diagrams.checks.errors import EvaluationError, NonFiniteError
from flexure.diagrams.contexts.store import Store, annotate
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.native.kernels.parts.run_samples import (
    first_trigger,
    note_peaks,
    varies_unseen,
)
from flexure.solvers.native.kernels.parts.zero_search import (
    MOST_STRETCHES,
    SEARCH_SIZE,
    end_of_stretch,
    shortest_stretch,
)
from flexure.solvers.native.kernels.runs.run_events import narrow, profile
from flexure.solvers.native.programs.system_trace import read_witness
from flexure.solvers.simulation.events.agenda import Entry
from flexure.solvers.tracing.trace import SymbolicStore

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


#: Evaluates all witness functions at a time inside of the step.
Evaluate = Callable[[float], FloatArray]


@dataclass(frozen=True, eq=False)
class Crossing:
    """The earliest trigger inside of a step."""

    time: float  # when
    entries: list[Entry]  # the events that trigger then
    # before, values: all witness functions at the last look before that time, and at that time.
    before: FloatArray
    values: FloatArray


def witness_value(entry: Entry) -> float:
    """Evaluate the witness function of an event with the present values."""
    try:
        found = entry.witness.calc(entry.leaf)
    except Exception as error:
        where = f"while computing the witness function of '{entry.event.label}'"
        annotate(error, where, entry.leaf.time)
        raise
    value = _real(found)
    if value is not None and value.size == 1 and math.isfinite(number := float(value.item())):
        return number
    time, label = entry.leaf.time, entry.event.label
    refused = EvaluationError if value is None else NonFiniteError
    refusal = refused(
        f"Cannot watch the witness function of '{label}' at t = {time:.9g} s",
        expected="one finite number",
        found=shown(found)
        if value is None or found is None  # which NumPy reads as NaN
        else repr(value.tolist()),
    )
    if isinstance(refusal, NonFiniteError):
        refusal.time = time
    raise refusal


def _real(value: Any) -> FloatArray | None:
    """Return real numbers as an array, None for anything else, such as a complex number."""
    try:
        found = np.asarray(value)
        return None if found.dtype.kind in "cSUmM" else found.astype(np.float64)
    except (TypeError, ValueError):  # rows of different lengths, and objects that are no numbers
        return None


@dataclass(frozen=True, eq=False)
class Search:
    """The result of checking the witness functions in a step."""

    crossing: Crossing | None  # the earliest trigger
    # The sign with which each function is seen first, after the start of the step.
    sides: FloatArray
    # All functions where the search ended, which is the end of the step without a crossing.
    values: FloatArray
    lost: list[Entry]  # events whose functions vary so fast that crossings may have been missed


def find_crossing(
    entries: list[Entry],
    evaluate: Evaluate,
    start: float,
    end: float,
    first: FloatArray,
    longest: float = math.inf,
) -> Search:
    """Look for the earliest trigger in a step from ``start`` to ``end``.

    ``evaluate(t)`` gives all witness functions at a time inside of the step, in the order of the
    entries; ``first`` are those at ``start``, with exact zeros for those that start on their
    surface. No interval longer than ``longest`` is checked as a whole.
    """
    shortest = shortest_stretch(start, end)
    low, values, width, left = start, first, min(end - start, longest), MOST_STRETCHES
    sides, lost = np.zeros(len(entries)), np.zeros(len(entries), dtype=bool)
    run = _functions_of_time(entries, evaluate)
    witnesses = run.witnesses
    while True:
        high = end_of_stretch(low, width, end)
        left -= width < longest
        witnesses.first, leaving = values, values == 0.0
        if leaving.any():
            witnesses.on_surface, witnesses.surface = leaving, evaluate(low)
        with np.errstate(all="ignore"):
            count = profile(run, None, low, high, width > shortest and left > 0)
        if count < 0:
            note_peaks(witnesses, -count)
            width = max(0.5 * (high - low), shortest)
            continue
        order, fast = witnesses.order[:count], witnesses.fast
        times, samples = witnesses.instants[order], witnesses.samples.reshape(-1, len(fast))[order]
        unseen = [varies_unseen(witnesses, k, count) for k in range(len(entries))]
        lost |= unseen | (fast > 0) & (left <= 0)
        for sample in samples[1:]:
            sides = np.where(sides == 0.0, np.sign(sample), sides)
        best = math.inf
        for k in range(len(entries)):
            position = first_trigger(witnesses, k, count)
            if position > 0 and times[position - 1] < best:
                with np.errstate(all="ignore"):
                    best = min(best, narrow(run, None, k, position))
        crossing, values = None, samples[-1]
        if best < math.inf:
            before = samples[np.searchsorted(times, best) - 1]
            crossing = _crossing(entries, best, before, evaluate(best))
        if crossing is not None or high == end:
            missed = [entry for entry, each in zip(entries, lost, strict=True) if each]
            return Search(crossing, sides, values, missed)
        low, width = high, min(2.0 * width, longest) if left > 0 else end - high


def _functions_of_time(entries: list[Entry], evaluate: Evaluate) -> Any:
    """Return what kernels know of a run: its witness functions, and no states."""
    count, errors = len(entries), np.geterr()
    room = 5 + 4 * count  # two points in each of two pieces, and two extrema of each function

    def values(time: float, state: None, env: None, out: FloatArray) -> None:
        with np.errstate(**errors):
            out[:count] = evaluate(time)

    witnesses = SimpleNamespace(
        count=count,
        values=values,
        directions=[entry.witness.sign for entry in entries],
        turning=[entry.is_update for entry in entries],
        samples=np.zeros(room * count),
        instants=np.zeros(room),
        order=np.zeros(room, dtype=int),
        slopes=np.zeros(4 * count),
        fast=np.zeros(count, dtype=int),
        peaks=np.zeros(count),
        search=np.zeros(SEARCH_SIZE),
    )
    return SimpleNamespace(
        system=SimpleNamespace(n=0, env=None), step=SimpleNamespace(point=None), witnesses=witnesses
    )


def find_change(entries: list[Entry], evaluate: Evaluate, end: float, first: FloatArray) -> Search:
    """Return what has triggered at the end of a step, without looking inside.

    Parameters are those of `find_crossing`.
    """
    values = evaluate(end)
    crossing = _crossing(entries, end, first, values)
    return Search(crossing if crossing.entries else None, np.sign(values), values, [])


def _crossing(
    entries: list[Entry], time: float, before: FloatArray, values: FloatArray
) -> Crossing:
    """Gather what happens at a time inside of a step."""
    return Crossing(time, triggered(entries, before, values), before, values)


def triggered(entries: list[Entry], before: FloatArray, values: FloatArray) -> list[Entry]:
    """Return the events that a change of the functions triggers."""
    return [
        entry
        for entry, old, new in zip(entries, before, values, strict=True)
        if entry.witness.triggers(float(old), float(new))
    ]


def read_witnesses(entries: list[Entry], store: Store) -> list[Any]:
    """Read witness functions, with the present values or as expressions."""
    if isinstance(store, SymbolicStore):
        leaves = [store.leaves[entry.key[0]] for entry in entries]
        pairs = zip(leaves, entries, strict=True)
        return [read_witness(store, leaf, entry.event)[0] for leaf, entry in pairs]
    return [witness_value(entry) for entry in entries]


class Surfaces:
    """Evaluates and searches all witness functions, and remembers where they triggered."""

    def __init__(self, simulation: SimulationState) -> None:
        self._simulation = simulation
        self._entries = simulation.agenda.witnesses
        # The values of the functions that have just triggered, where they did.
        self.touched: dict[int, float] = {}
        # Functions that had just triggered when the present motion began.
        self.triggered: set[int] = set()
        self.resting: set[int] = set()  # those of them that were still where they triggered
        # Whether an update has changed the continuous state since the last event.
        self.jumped = False
        # All functions where they were evaluated last, at the present time and before the updates
        # that are due now, with zeros for those that triggered there. None where that is not known.
        self.last: FloatArray | None = None

    def values(self) -> FloatArray:
        """Evaluate all witness functions with the present values."""
        store = self._simulation.store
        values = self._simulation.watched(store.time, store.x)
        if np.isfinite(values).all():
            return values
        return np.array(read_witnesses(self._entries, store))  # which says what is not finite

    def first_values(self) -> FloatArray:
        """Evaluate the witness functions at the start of a motion.

        A function that has just triggered and still is where it triggered counts as zero, so that
        leaving its surface does not trigger it again.
        """
        values = self.values()
        self.last = None
        unmoved = {k for k, value in self.touched.items() if values[k] == value}
        self.resting, self.triggered = unmoved, set(self.touched)
        if self._simulation.watched.compile_if_due():
            values = self.values()
        if self._simulation.isolate:
            values[list(unmoved)] = 0.0
        self.touched = {}
        return values

    def find_crossing(
        self, evaluate: Evaluate, start: float, end: float, first: FloatArray
    ) -> Search:
        """Look for the earliest witness event in a step, or at its end without isolation."""
        simulation, entries = self._simulation, self._entries
        if not simulation.isolate:
            return find_change(entries, evaluate, end, first)
        search = find_crossing(entries, evaluate, start, end, first, simulation.max_check_interval)
        for entry in search.lost:
            simulation.missed_crossings.warn_of_lost(entry, start, end)
        return search

    def note_crossing(self, crossing: Crossing) -> list[Entry]:
        """Remember which functions triggered, and their values there; return their events."""
        self._simulation.statistics.witness_events += len(crossing.entries)
        self.jumped = False
        self.touched = {
            k: float(crossing.values[k])
            for k, entry in enumerate(self._entries)
            if entry in crossing.entries
        }
        self.last = crossing.values.copy()
        self.last[list(self.touched)] = 0.0
        return crossing.entries

    def find_jumps(self) -> list[Entry]:
        """Return the events of the functions that have changed their sign at the present time."""
        if self.last is None:
            return []
        before, self.last = self.last, self.values()
        return triggered(self._entries, before, self.last)

    def note_jump(self) -> None:
        """Note that an update has changed the continuous state."""
        self.jumped = True

    def take_over(
        self, touched: dict[int, float], last: FloatArray | None, *, jumped: bool
    ) -> None:
        """Go on where compiled loops have left the functions."""
        self.touched = touched
        self.last = last
        self.jumped = jumped
