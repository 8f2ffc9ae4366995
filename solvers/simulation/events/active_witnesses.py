"""The witness functions of a simulation, and which of them the last event left on their surfaces.

The surface of a function is where it is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.native.programs.system_trace import read_witness
from flexure.solvers.simulation.events.agenda import Entry
from flexure.solvers.simulation.events.witnesses import (
    Crossing,
    Evaluate,
    Search,
    find_change,
    find_crossing,
    triggered,
    witness_value,
)
from flexure.solvers.tracing.trace import SymbolicStore

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


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
