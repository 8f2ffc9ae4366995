"""The state of a simulation between two stops, in one object that all its parts share.

The phases, the motions of integrators, the compiled loops and their output read it, and tell it
what happens. `flexure.solvers.simulation.simulator` is its public face.
"""

from __future__ import annotations

import math
import threading
from functools import partial

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import is_lost, require_interval
from flexure.solvers.integration.guard.progress_limits import Limits, Pace
from flexure.solvers.results.records.history import History
from flexure.solvers.results.records.statistics import Statistics
from flexure.solvers.simulation.events.agenda import Agenda
from flexure.solvers.simulation.events.due_events import DueEvents
from flexure.solvers.simulation.events.missed_crossings import MissedCrossings
from flexure.solvers.simulation.events.witnesses import Surfaces, read_witnesses
from flexure.solvers.simulation.run_control.method_selection import MethodChoice
from flexure.solvers.simulation.run_control.options import Monitor
from flexure.solvers.simulation.run_control.progress_bar import ProgressBar
from flexure.solvers.simulation.run_control.state_manifold import Manifold, Reading
from flexure.solvers.tracing.derivatives import Derivatives


class SimulationState:
    """The state of a simulation between two stops.

    Tolerances are those of all states, of shape (n,). ``compiled`` is whether equations may be
    traced. Other arguments are as for `flexure.Simulator`, checked.
    """

    def __init__(
        self,
        context: Context,
        choice: MethodChoice,
        rtol: FloatArray,
        atol: FloatArray,
        *,
        compiled: bool,
        max_step: float,
        max_check_interval: float,
        max_steps: float,
        isolate: bool,
        monitor: Monitor | None,
        show_progress: bool,
        record: bool,
        max_record: float | None,
    ) -> None:
        self.context = context
        self.system = context.system  # the root system
        self.store = context.store  # the values of the context
        self.agenda = Agenda(context)  # all events
        # The right-hand side for integrators in Python.
        self.derivatives = Derivatives(self.store, compiled=compiled)
        # All witness functions.
        read = partial(read_witnesses, self.agenda.witnesses)
        self.watched = Reading(self.store, read, compiled=compiled, by_itself=False)
        # Where blocks declare that the state belongs.
        self.manifold = Manifold(self, compiled=compiled)
        self.choice = choice
        self.rtol, self.atol = rtol, atol
        self.max_check_interval = min(max_check_interval, self.agenda.max_check_interval)
        # Witness functions that are checked at the ends of steps alone need short ones.
        self.max_step = max_step if isolate else min(max_step, self.max_check_interval)
        self.max_steps = max_steps
        self.isolate = isolate
        self.monitor = monitor
        # Whether something wants to see every integrator step.
        self.stepwise = bool(self.agenda.per_step) or monitor is not None
        self._deliberate = min(
            choice.options.get("step", math.inf), self.max_step, self.agenda.shortest_period
        )
        limits = Limits(steps_ahead=max_steps)
        # Of the integrator, over all motions of one advance.
        self.pace = Pace(0.0, 0.0, limits, deliberate=self._deliberate)
        self.progress_bar = ProgressBar(0.0, 0.0, False)  # of one advance
        self._show_progress = show_progress
        self._stopping: threading.Event | None = None
        self._record = record
        self._max_record = max_record
        self.most_states = math.inf  # as that of `History`, from the next beginning on
        self.history: History | None = None  # the motion so far, if it is kept
        self.begin()

    def begin(self) -> None:
        """Forget what has happened so far."""
        self.choice.begin()
        self.manifold.begin()
        # What was counted since the initialization.
        self.statistics = Statistics(methods=self.choice.changes)
        self.events = DueEvents(self)  # the updates that wait, and what has ended the run
        self.surfaces = Surfaces(self)  # where the last event has left the witness functions
        self.missed_crossings = MissedCrossings(self)  # whether a method sees them leave from there

    def begin_history(self) -> None:
        """Keep the motion from here on, if that is wanted."""
        if self._record:
            self.history = History(self.context, self._max_record, self.most_states)

    def interrupt_on(self, stopping: threading.Event) -> None:
        """Be interrupted when another thread sets an event."""
        self._stopping = stopping

    def aim(self, boundary: float) -> None:
        """Begin to advance to a time."""
        start = self.store.time
        self.events.go_on()
        self.choice.aim(boundary)
        self.pace.begin(start, boundary)
        self.progress_bar = ProgressBar(start, boundary, self._show_progress, self._stopping)

    def require_intervals(self, boundary: float) -> None:
        """Refuse periods and steps that are lost in the rounding of time on the way to a time."""
        start = self.store.time
        latest = max(abs(start), abs(boundary))
        shortest = min(self._deliberate, self.max_check_interval)
        if boundary == start or not is_lost(shortest, latest):
            return
        attempt = f"Cannot advance '{self.system.label}' to t = {boundary!r}"
        self.agenda.require_periods(boundary, latest, attempt)
        require_interval("a step", self.choice.options.get("step", math.inf), latest, attempt)
        require_interval("a max_step", self.max_step, latest, attempt)
        require_interval("a max_check_interval", self.max_check_interval, latest, attempt)

    def pass_break(self, time: float) -> None:
        """Begin a new piece of the history where equations jump."""
        if self.history is not None:
            self.history.end_before(math.nextafter(time, -math.inf))
            self.history.begin(self.context)
