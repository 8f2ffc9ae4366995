"""The events that are due: updates that wait, handlers that run, events that pile up.

These are the phases 1, 2, 4 and 5 of `flexure.solvers.simulation.simulator`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.errors import ZenoError, quoted
from flexure.diagrams.contexts.updates import only_looking, run_publish, run_updates
from flexure.diagrams.values.events import Terminate
from flexure.solvers.native.kernels.parts.run import MOST_ROUNDS
from flexure.solvers.native.kernels.runs.zeno_detection import WATCH_SIZE, piles_up
from flexure.solvers.simulation.events.agenda import Entry, ordered

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


class PileUp:
    """Watches the times of one kind of event.

    When these pile up, `flexure.solvers.native.kernels.runs.zeno_detection` says.

    Examples
    --------
    >>> hops, regular = PileUp(), PileUp()
    >>> any(hops.add(1.0 - 0.5**k) for k in range(30))
    True
    >>> any(regular.add(1e-6 * k) for k in range(1000))
    False
    """

    def __init__(self) -> None:
        self._watch: Any = [0.0] * WATCH_SIZE

    def add(self, time: float, *, blurred: bool = False) -> bool:
        """Note an event, and tell whether events pile up."""
        return piles_up(self._watch, time, blurred)


def zeno_error(label: str, time: float, found: str, remedy: str = "") -> ZenoError:
    """Return the error of a system that does not get past a time."""
    error = ZenoError(
        f"Cannot advance '{label}' past t = {time:.9g}",
        expected="finitely many events in a finite time",
        found=found,
        remedy=f"{(remedy and remedy + '; or let') or 'Let'} the update end the motion when it "
        "becomes small (for a bouncing ball, below a speed threshold), or give a relay some "
        "hysteresis",
    )
    error.time = time
    return error


class DueEvents:
    """Runs the handlers of events.

    ``pending`` are updates of the next step. ``updated`` is whether its others have run already,
    ``published`` whether the publishes of this step have. ``termination`` is what has ended the
    run, by the verdict of ``terminated_by``. ``has_changed_values`` is whether publishes or the
    monitor have changed parameters or inputs after the start of a record.
    """

    def __init__(self, simulation: SimulationState) -> None:
        self._simulation = simulation
        self._store = simulation.store
        self._per_step = simulation.agenda.per_step
        self._monitor = simulation.monitor
        self.pending: list[Entry] = []
        self.updated = self.published = self.has_changed_values = False
        self.termination: Terminate | None = None
        self.terminated_by: str | None = None

    def go_on(self) -> None:
        """Forget what has ended the run."""
        self.termination = self.terminated_by = None

    # Updates -------------------------------------------------------------------------------

    def expect(self, found: list[Entry]) -> None:
        """Let the updates among some events wait for the next step."""
        self.pending = [entry for entry in found if entry.is_update]

    def update_all(self) -> bool:
        """Run the updates of a step, unless they have run; tell whether a value changed."""
        # Compiled loops may have run unrestricted updates, and left discrete ones to Python.
        per_step = [] if self.updated else self._per_step
        changed = self.update([*per_step, *self.pending]) or self.updated
        changed |= self.settle()
        changed |= self._follow_jumps()
        self.updated = self.published = False
        return changed

    def _follow_jumps(self) -> bool:
        """Run the witness events that updates cause by jumps, and those that these cause."""
        # Publishes run when all updates are done. Return whether a value changed.
        simulation = self._simulation
        found: set[Entry] = set()
        changed = False
        for _ in range(MOST_ROUNDS):
            jumped = simulation.surfaces.find_jumps()
            if not jumped:
                break
            found.update(jumped)
            changed |= self.update([entry for entry in jumped if entry.is_update])
            changed |= self.settle()
        else:
            names = quoted(
                entry.event.label for entry in sorted(found, key=lambda entry: entry.order)
            )
            chain = f"witness events that go on to cause each other: {names}"
            raise zeno_error(simulation.system.label, self._store.time, chain)
        if found:
            simulation.statistics.witness_events += len(found)
            simulation.missed_crossings.watch_for_zeno(sorted(found, key=lambda entry: entry.order))
            self.publish(list(found), monitor=False)
        return changed

    def settle(self) -> bool:
        """Run settling updates until they change nothing; tell whether a value changed."""
        simulation = self._simulation
        settling = simulation.agenda.settling
        if not settling:
            return False
        for rounds in range(MOST_ROUNDS):
            if not self.update(settling):
                return rounds > 0
        names = quoted(entry.event.label for entry in settling)
        found = f"settling updates that go on to change values: {names}"
        raise zeno_error(simulation.system.label, self._store.time, found)

    def update(self, entries: list[Entry]) -> bool:
        """Run updates, unrestricted ones first; tell whether a value changed.

        Events that have run are removed from the pending ones, so that a run can go on after a
        handler raised.
        """
        unrestricted, discrete = (ordered(entries, kind) for kind in ("unrestricted", "discrete"))
        x = self._store.x
        changed = run_updates((entry.leaf, entry.event) for entry in unrestricted)
        self.pending = ordered(self.pending, "discrete")
        changed |= run_updates((entry.leaf, entry.event) for entry in discrete)
        self.pending = []
        if x is not self._store.x and not np.array_equal(x, self._store.x):
            self._simulation.surfaces.note_jump()
        statistics = self._simulation.statistics
        statistics.unrestricted_updates += len(unrestricted)
        statistics.discrete_updates += len(discrete)
        return changed

    def take_over(self, pending: list[Entry], *, updated: bool) -> None:
        """Go on where compiled loops have left off, which may have changed values by updates."""
        self.pending = pending
        self.updated = updated

    # Publishes -----------------------------------------------------------------------------

    def publish(self, entries: list[Entry], *, monitor: bool = True) -> None:
        """Run the publishes among some events, and the monitor."""
        store, history = self._store, self._simulation.history
        revision = store.revision
        for entry in ordered(entries, "publish"):
            self._terminate(run_publish(entry.leaf, entry.event), entry.event.label)
            self._simulation.statistics.publishes += 1
        if monitor and self._monitor is not None:
            context = self._simulation.context
            with only_looking(context, "the monitor"):
                verdict = self._monitor(context)
            self._terminate(verdict, "the monitor")
        if store.revision != revision and history is not None and store.time > history.start:
            self.has_changed_values = True

    def _terminate(self, verdict: Terminate | None, source: str) -> None:
        if isinstance(verdict, Terminate) and self.termination is None:
            self.termination = verdict
            self.terminated_by = source

    # Inside of a motion --------------------------------------------------------------------

    def finish_step(self) -> bool:
        """Run phases 4 and 5 of a step inside of a motion, and 1 and 2 of the next.

        The motion must end here if that returns True: the run is terminated or a state changed.
        """
        self.publish(self._per_step)
        if self.termination is None:
            self.updated = self.update(self._per_step)
        self.published = self.updated or self.termination is not None
        return self.published

    def publish_between(self, time: float) -> bool:
        """Run the periodic publishes of an instant inside of a step; tell whether the run ends."""
        self.publish(self._simulation.agenda.due(time), monitor=False)
        self.published = self.termination is not None
        return self.published

    def note_published(self) -> None:
        """Note that the publishes of the present time have run already."""
        self.published = True
