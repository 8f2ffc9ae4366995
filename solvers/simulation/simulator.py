"""The simulator: time, updates, motion and publishes in a fixed order.

At an instant at which values jump, x- stands for the values before the updates of that instant and
x+ for the values after them. A handler reads the values that the phase names::

    initialize:
        unrestricted updates with the trigger Initialization        read x-, write x+
        discrete updates with the trigger Initialization            read x-, write x+
        publishes: Initialization, PerStep, Periodic due now        read x+
        monitor
        Periodic updates due now stay pending

    advance_to(T): repeat until time is T
        1. unrestricted updates: PerStep, pending Periodic, pending Witness    read x-, write x+
        2. discrete updates: PerStep, pending Periodic, pending Witness        read x-, write x+
        3. motion from t to t': the continuous state follows its derivatives up to the next
           periodic event, break time, witness event or T; or over one integrator step where
           events per step or a monitor want to see every step
        4. publishes: PerStep, Periodic due at t', Witness                     read x- of t'
        5. monitor

Updates due at t' stay pending until the next repetition, so ``advance_to(T)`` ends with the values
x- of T. ``advance_pending_events()`` is ``advance_to`` the present time: the pending updates run,
a motion of zero length follows, and its publishes. All handlers of one phase read the same values;
what phase 1 wrote is visible to phase 2. When a handler raises, nothing of its phase is written.

Events due together run in the order of the agenda (`flexure.solvers.simulation.agenda`). Periodic
times are ``offset + k period`` in floating point, strictly later than the present time. These are
Drake's semantics. Three things are done differently on purpose:

* Without events per step, periodic publishes do not interrupt an integrator with error control:
  they read its interpolant. A log so leaves the motion as it was.
* Integration stops at the break times of blocks, and until then sees their left limits.
* Witness events are located inside of a step as `flexure.solvers.simulation.witnesses` says, and
  not missed when a function changes its sign twice.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from flexure.diagrams.arguments import flag, require
from flexure.diagrams.context import Context
from flexure.diagrams.errors import (
    ContextError,
    DeclarationError,
    NativeCodeError,
    ValueRefusedError,
)
from flexure.diagrams.events import Terminate, is_lost, require_interval
from flexure.diagrams.handles import require_root
from flexure.diagrams.system import System, require_system
from flexure.diagrams.updates import only_looking, run_publish, run_updates
from flexure.diagrams.values import FloatArray, as_number
from flexure.solvers.integration.methods import is_fixed_step
from flexure.solvers.integration.pace import MOST_STEPS, Limits, Pace
from flexure.solvers.results.history import History, Unmoved
from flexure.solvers.results.statistics import Statistics
from flexure.solvers.simulation.agenda import Agenda, Entry, ordered
from flexure.solvers.simulation.departures import Departures
from flexure.solvers.simulation.diagnosis import name_fastest, name_jump, refuse_ahead
from flexure.solvers.simulation.method_selection import Method, MethodChoice
from flexure.solvers.simulation.motion import Motion
from flexure.solvers.simulation.options import (
    Compiled,
    Monitor,
    checked_compiled,
    checked_max_check_interval,
    checked_max_record,
    checked_max_steps,
)
from flexure.solvers.simulation.progress_bar import ProgressBar
from flexure.solvers.simulation.tolerances import Tolerance, spread
from flexure.solvers.simulation.witnesses import (
    Crossing,
    Evaluate,
    Search,
    find_change,
    find_crossing,
    witness_value,
)
from flexure.solvers.tracing.derivatives import Derivatives

if TYPE_CHECKING:
    from flexure.solvers.integration.chattering import Jump
    from flexure.solvers.simulation.native_runner import NativeRunner


class Simulator:
    """Moves a context through time.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        A root context of the system, which the simulator changes; a default one when omitted.
    method : str or OdeSolver class
        "auto" (an explicit method, and a stiff one where the diagram proves to be stiff), a name
        of `flexure.solvers.integration.methods.METHOD_NAMES`, or a class derived from
        ``scipy.integrate.OdeSolver``.
    rtol, atol : float or mapping, optional
        Tolerances of methods with error control, for all states, or by block path
        (``{"plant": 1e-9, "": 1e-6}``). ``rtol`` defaults to the accuracy of the context, or 1e-6;
        ``atol`` to a thousandth of ``rtol``.
    max_step : float
        Longest step of methods with error control, in seconds. Without continuous state, the
        longest stretch of time in which witness functions are searched at once.
    max_check_interval : float
        Longest stretch of time that witness functions are left alone, in seconds. What goes up and
        down within it may be missed. Shorter ones are chosen where a function is seen to vary fast;
        give one where it rests in between, as pulses do.
    max_steps : float
        A run is given up when it would need more steps than this up to its end, by the pace of its
        latest 20,000 steps; the slower it is, the sooner. Steps of a length that was asked for, by
        ``step``, ``max_step`` or the period of an event, are never too many. Infinity never gives
        up.
    step : float, optional
        The step of fixed-step methods, in seconds.
    options : mapping, optional
        Further options of the solver class.
    isolate : bool
        Whether witness events are located inside of steps. Without, they take place at the end
        of the step that crossed.
    compiled : bool or {"native", "python"}
        Whether the equations may be traced and compiled. Then they run as native code where the
        package llvmlite is installed and the method has a native loop (RK45, RK23, DOP853,
        DormandPrince, Rodas5P); else, once they have been evaluated often, as straight-line Python;
        and stiff methods get exact Jacobians. The results are the same. "native" insists on native
        code, "python" does without.
    monitor : callable, optional
        ``monitor(root_context)`` after every step; may return `Terminate`.
    progress : bool
        Whether to show progress on a terminal or in a notebook.
    record : bool
        Whether to keep the motion, for ``history``.
    max_record : float, optional
        Memory that the kept motion may take, in bytes; what would take more ends with a
        `SimulationError`. Half of the memory that is free when omitted.

    Examples
    --------
    >>> import flexure as fx
    >>> simulator = fx.Simulator(fx.FirstOrderLag("lag", time_constant=2.0))
    >>> lag = simulator.system
    >>> lag.input_port("u").fix(simulator.context, 1.0)
    >>> simulator.advance_to(2.0)
    >>> lag.output_port("y").eval(simulator.context).round(4)
    array([0.6321])
    """

    def __init__(
        self,
        system: System,
        context: Context | None = None,
        *,
        method: Method = "auto",
        rtol: Tolerance | None = None,
        atol: Tolerance | None = None,
        max_step: float = math.inf,
        max_check_interval: float = math.inf,
        max_steps: float = MOST_STEPS,
        step: float | None = None,
        options: Mapping[str, Any] | None = None,
        isolate: bool = True,
        compiled: Compiled = True,
        monitor: Monitor | None = None,
        progress: bool = False,
        record: bool = False,
        max_record: float | None = None,
    ) -> None:
        require_system(system, "Cannot simulate")
        self.system = system
        self.context = system.create_default_context() if context is None else context
        attempt = f"Cannot simulate '{system.label}'"
        require_root(self.context, system, attempt)
        self._compiled = checked_compiled(compiled)
        require(monitor is None or callable(monitor), monitor, attempt, "monitor to be a function")
        self._store = self.context.store
        self.agenda = Agenda(self.context)
        self.derivatives = Derivatives(self._store, compiled=bool(self._compiled))
        self.choice = MethodChoice(method, step, options, self._store.layout)
        self.rtol = spread("rtol", rtol, self.context.accuracy or 1e-6, self.context)
        self.atol = spread("atol", atol, 1e-3 * np.min(self.rtol, initial=math.inf), self.context)
        self.max_step = float(as_number(max_step, (), "Cannot use this max_step"))
        self.max_check_interval = min(
            checked_max_check_interval(max_check_interval), self.agenda.max_check_interval
        )
        self.max_steps = checked_max_steps(max_steps)
        self.isolate = flag(isolate, "isolate", attempt)
        self._native: NativeRunner | None = None
        self._native_obstacle: str | None = None
        self._monitor = monitor
        self._progress = flag(progress, "progress", attempt)
        self.progress_bar = ProgressBar(0.0, 0.0, False)
        self.stopping: threading.Event | None = None  # set by another thread, to be interrupted
        self._record = flag(record, "record", attempt)
        self._max_record = checked_max_record(max_record)
        self.history: History | None = None
        self.statistics = Statistics()
        self.termination: Terminate | None = None
        self.terminated_by: str | None = None
        self._deliberate = min(
            self.choice.options.get("step", math.inf), self.max_step, self.agenda.shortest_period
        )
        limits = Limits(steps_ahead=self.max_steps)
        # Of the integrator, over all motions of one advance.
        self.pace = Pace(0.0, 0.0, limits, deliberate=self._deliberate)
        self._initialized_to: float | None = None
        self.pending: list[Entry] = []  # updates of the next step
        self._updated = False  # whether the updates of the next step have run already
        self._published = False  # whether the publishes of this step have run already
        self.surface: dict[int, float] = {}  # witness functions that just triggered, and values
        self.on_surface: set[int] = set()  # witness functions that are still where they triggered
        self.triggered: set[int] = set()  # those that just triggered, wherever they are
        self.departures = Departures(self)

    # Public steps --------------------------------------------------------------------------

    def initialize(self) -> None:
        """Run the initialization events and the publishes due at the present time.

        Called by the first `advance_to` when it was not called before. Call it again after
        changing the time of the context by hand.
        """
        self.choice.begin()
        self.statistics = Statistics(methods=self.choice.changes)
        self.termination = self.terminated_by = None
        self.pending = []
        self._updated = self._published = False
        self.surface = {}
        self.departures = Departures(self)
        entries = self.agenda.initialization
        self._update(entries)
        if self._record:
            self.history = History(self.context, self._max_record)
        self._native, self._native_obstacle = self._find_native()
        due = self.agenda.due(self._store.time)
        self.pending = [entry for entry in due if entry.event.kind != "publish"]
        self._initialized_to = self._store.time
        self.publish([*entries, *self.agenda.per_step, *due])

    def advance_to(self, time: float) -> None:
        """Advance the context to a time, or until a publish or the monitor terminates.

        Parameters
        ----------
        time : float
            In seconds, not before the time of the context.

        Raises
        ------
        SimulationError
            When the simulation cannot go on; the context is left at the last good step. An
            interruption from the keyboard leaves it there as well.
        """
        time = float(as_number(time, (), f"Cannot advance '{self.system.label}'"))
        if not (math.isfinite(time) and time >= self._store.time):
            raise ValueRefusedError(
                f"Cannot advance '{self.system.label}' to t = {time!r}",
                expected=f"a finite time that is not before t = {self._store.time!r}",
                found=repr(time),
            )
        self.require_intervals(time)
        if self._initialized_to is None:
            self.initialize()
            if self.termination is not None:
                return
        elif self._initialized_to != self._store.time:
            raise ContextError(
                f"Cannot advance '{self.system.label}'",
                expected=f"the context at t = {self._initialized_to!r}, where it was left",
                found=f"t = {self._store.time!r}",
                remedy="Call initialize() after changing the time",
            )
        self.termination = self.terminated_by = None
        self.choice.aim(time)
        self.pace.begin(self._store.time, time)
        self.progress_bar = ProgressBar(self._store.time, time, self._progress, self.stopping)
        try:
            with self.progress_bar:
                self._advance(time)
        finally:
            self._initialized_to = self._store.time

    def require_intervals(self, boundary: float) -> None:
        """Refuse periods and steps that are lost in the rounding of time on the way to a time."""
        start = self._store.time
        latest = max(abs(start), abs(boundary))
        shortest = min(self._deliberate, self.max_check_interval)
        if boundary == start or not is_lost(shortest, latest):
            return
        attempt = f"Cannot advance '{self.system.label}' to t = {boundary!r}"
        self.agenda.require_periods(boundary, latest, attempt)
        require_interval("a step", self.choice.options.get("step", math.inf), latest, attempt)
        require_interval("a max_step", self.max_step, latest, attempt)
        require_interval("a max_check_interval", self.max_check_interval, latest, attempt)

    def _advance(self, boundary: float) -> None:
        """Take steps up to a time, or until the run is terminated."""
        while True:
            if not self._advance_natively(boundary):
                self._one_step(boundary)
            self.progress_bar.update(self._store.time)
            if self.termination is not None or self._store.time >= boundary:
                return

    def _advance_natively(self, boundary: float) -> bool:
        """Take steps by compiled loops; tell whether that led anywhere."""
        if self._native is not None and not self._native.fits:
            self._native, self._native_obstacle = self._find_native()
        native = self._native
        if native is None or self._updated or boundary <= self._store.time:
            return False
        return native.is_possible() and native.advance(boundary)

    def _find_native(self) -> tuple[NativeRunner | None, str]:
        """Return the compiled loops for this simulation, or why there are none."""
        if self._compiled in (False, "python"):
            return None, "it was not wanted"
        from flexure.solvers.simulation.native_runner import native_runner

        native, obstacle = native_runner(self)
        if native is not None and not native.is_possible():
            obstacle = native.unsuitable
        if obstacle and self._compiled == "native":
            raise NativeCodeError(
                f"Cannot simulate '{self.system.label}' with native code",
                expected="a diagram and a method that have native code",
                found=obstacle,
                remedy="Leave compiled=True, which takes what is possible",
            )
        return native, obstacle

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise DeclarationError(
            f"Cannot copy or pickle the simulator of '{self.system.label}'",
            expected="one simulator for each run",
            found="a copy in the midst of one",
            remedy="Make another one, as in Simulator(system, simulator.context.clone()), or copy "
            "and pickle the context or the result of simulate",
        )

    def advance_pending_events(self) -> None:
        """Run the updates that are due now, then the publishes of a motion of zero length."""
        self.advance_to(self._store.time)

    def explain(self) -> str:
        """Say which methods were used, when and why, and how the equations are evaluated."""
        lines = [
            f"from t = {time:.6g} s: {name}, {why}" for time, name, why in self.statistics.methods
        ]
        if not lines:
            return "no continuous state was integrated"
        return "\n".join([*lines, f"equations: {self._how()}"])

    def _how(self) -> str:
        """Say how the equations are evaluated."""
        if self._native is not None and self.statistics.native_steps == self.statistics.steps:
            return self._native.how
        how = self.derivatives.how
        if self._native is not None and self.statistics.native_steps:
            return f"{self._native.how}; for some steps {how}"
        if self._compiled in (False, "python"):
            return how
        obstacle = self._native_obstacle if self._native is None else self._native.unsuitable
        return f"{how}; no native code, because {obstacle}"

    # Phases --------------------------------------------------------------------------------

    def _one_step(self, boundary: float) -> None:
        """Run the phases 1 to 5 once, or more often where the integrator may go on."""
        # Compiled loops may have run unrestricted updates, and left discrete ones to Python.
        per_step = [] if self._updated else self.agenda.per_step
        wrote = self._update([*per_step, *self.pending]) or self._updated
        self._updated = self._published = False
        if wrote and self.history is not None:
            self.history.begin(self.context)
        start = self._store.time
        crossed = self._move(boundary) if boundary > start else []
        now = self._store.time
        if self._published:
            return
        found = [*(self.agenda.due(now) if now > start else []), *crossed]
        self.pending = [entry for entry in found if entry.event.kind != "publish"]
        self.publish([*self.agenda.per_step, *found])

    def finish_step(self) -> bool:
        """Run phases 4 and 5 of a step inside of a motion, and 1 and 2 of the next.

        Returns
        -------
        bool
            Whether the motion must end here, because the run is terminated or a state changed.
        """
        self.publish(self.agenda.per_step)
        if self.termination is None:
            self._updated = self._update(self.agenda.per_step)
        self._published = self._updated or self.termination is not None
        return self._published

    def _update(self, entries: list[Entry]) -> bool:
        """Run updates, unrestricted ones first; tell whether a value changed.

        What has run is no longer pending, so that a run can go on after a handler raised.
        """
        unrestricted, discrete = (ordered(entries, kind) for kind in ("unrestricted", "discrete"))
        x = self._store.x
        changed = run_updates((entry.leaf, entry.event) for entry in unrestricted)
        self.pending = ordered(self.pending, "discrete")
        changed |= run_updates((entry.leaf, entry.event) for entry in discrete)
        self.pending = []
        self.departures.jumped |= x is not self._store.x and not np.array_equal(x, self._store.x)
        self.statistics.unrestricted_updates += len(unrestricted)
        self.statistics.discrete_updates += len(discrete)
        return changed

    def publish(self, entries: list[Entry], *, monitor: bool = True) -> None:
        """Run the publishes among some events, and the monitor."""
        for entry in ordered(entries, "publish"):
            self._terminate(run_publish(entry.leaf, entry.event), entry.event.label)
            self.statistics.publishes += 1
        if monitor and self._monitor is not None:
            with only_looking(self.context, "the monitor"):
                verdict = self._monitor(self.context)
            self._terminate(verdict, "the monitor")

    def publish_between(self, time: float) -> bool:
        """Run the periodic publishes of an instant inside of a step.

        Returns
        -------
        bool
            Whether the motion must end here, because the run is terminated.
        """
        self.publish(self.agenda.due(time), monitor=False)
        self._published = self.termination is not None
        return self._published

    def _terminate(self, verdict: Terminate | None, source: str) -> None:
        if isinstance(verdict, Terminate) and self.termination is None:
            self.termination = verdict
            self.terminated_by = source

    # Motion --------------------------------------------------------------------------------

    @property
    def stepwise(self) -> bool:
        """Whether something wants to see every integrator step."""
        return bool(self.agenda.per_step) or self._monitor is not None

    def _move(self, boundary: float) -> list[Entry]:
        """Phase 3: let time pass up to the next stop; return the witness events there."""
        start = self._store.time
        dense_publishes = not (
            self.stepwise or is_fixed_step(self.choice.method) or self._store.layout.num_states == 0
        )
        tick = self.agenda.next_time(start, updates_only=dense_publishes)
        jump = self.agenda.next_break(start)
        stop = min(boundary, tick, jump)
        crossed: list[Entry] = []
        # Over a rounding error of time nothing moves, and some integrators refuse to start.
        if self._store.layout.num_states and stop - start > 4.0 * math.ulp(start):
            motion = Motion(self, stop, dense_publishes=dense_publishes)
            crossed = motion.run(left_limit=stop == jump, stretch=stop in (tick, jump))
        elif self.agenda.witnesses:
            crossed = self._jump(min(stop, start + self.max_step))
        else:
            self._land(stop, self._store.x)
            if lack := self.pace.count(stop):
                self.give_up(stop, lack)
            self.judge_record(lambda: None)
        if self._store.time == jump:
            self.pass_break(jump)
        if crossed:
            self.departures.watch_for_zeno(crossed)
        return crossed

    def count_steps(self, time: float, steps: int, land: Callable[[], None]) -> None:
        """Note steps that compiled loops took up to a time, where ``land`` puts the context."""
        self.statistics.native_steps += steps
        self.progress_bar.update(time)
        self.judge_record(land)

    def judge_record(self, land: Callable[[], None]) -> None:
        """Raise where the motion that is kept takes too much memory, after a call of ``land``."""
        history = self.history
        if history is not None and history.is_full:
            from flexure.solvers.integration.failures import too_long_record

            land()
            raise too_long_record(self.system, self._store.time, history.size, history.limit)

    def give_up(self, time: float, lack: str) -> NoReturn:
        """End a run whose steps up to a time lead nowhere, from the present values on."""
        from flexure.solvers.integration.failures import no_progress

        refuse_ahead(self._store)
        error = no_progress(self.choice.method, time, "to reach the end", lack)
        name_fastest(error, self._store, self.rtol, self.atol)
        raise error

    def give_up_at(self, jump: Jump) -> NoReturn:
        """End a run that chatters at a jump of the equations."""
        from flexure.solvers.integration.failures import chattering

        now = self._store.time, self._store.x
        error = chattering(self.choice.method, jump, name_jump(self._store, jump))
        self._store.set_motion(*now)
        name_fastest(error, self._store, self.rtol, self.atol)
        raise error

    def note_published(self) -> None:
        """Note that the publishes of the present time have run already."""
        self._published = True

    def note_updated(self, changed: bool) -> None:
        """Say whether updates have run, and changed something, before the step that comes next."""
        self._updated = changed

    @property
    def monitored(self) -> bool:
        """Whether a monitor sees every step."""
        return self._monitor is not None

    def pass_break(self, time: float) -> None:
        """Begin a new piece of the history where equations jump."""
        if self.history is not None:
            self.history.end_before(math.nextafter(time, -math.inf))
            self.history.begin(self.context)

    def _land(self, time: float, x: FloatArray) -> None:
        """Accept a time and state."""
        self._store.set_motion(time, x)
        if self.history is not None:
            self.history.extend(time, x, Unmoved(x))

    def _jump(self, stop: float) -> list[Entry]:
        """Let time pass without continuous state, watching witness functions of time."""
        start, x = self._store.time, self._store.x

        def evaluate(time: float) -> FloatArray:
            self._store.set_motion(time, x)
            return self.witness_values()

        try:
            first = self.first_witness_values()
            crossing = self.find_crossing(evaluate, start, stop, first).crossing
        finally:
            self._store.set_motion(start, x)
        self._land(stop if crossing is None else crossing.time, x)
        return [] if crossing is None else self.note_crossing(crossing)

    # Witnesses -----------------------------------------------------------------------------

    def witness_values(self) -> FloatArray:
        """Evaluate all witness functions with the present values."""
        return np.array([witness_value(entry) for entry in self.agenda.witnesses])

    def first_witness_values(self) -> FloatArray:
        """Evaluate the witness functions at the start of a motion.

        A function that has just triggered and still is where it triggered counts as zero, so that
        leaving its surface does not trigger it again.
        """
        values = self.witness_values()
        unmoved = {k for k, value in self.surface.items() if values[k] == value}
        self.on_surface, self.triggered = unmoved, set(self.surface)
        if self.isolate:
            values[list(unmoved)] = 0.0
        self.surface = {}
        return values

    def find_crossing(
        self, evaluate: Evaluate, start: float, end: float, first: FloatArray
    ) -> Search:
        """Look for the earliest witness event in a step, or at its end without isolation."""
        entries = self.agenda.witnesses
        if not self.isolate:
            return find_change(entries, evaluate, end, first)
        search = find_crossing(entries, evaluate, start, end, first, self.max_check_interval)
        for entry in search.lost:
            self.departures.warn_of_lost(entry, start, end)
        return search

    def note_crossing(self, crossing: Crossing) -> list[Entry]:
        """Remember which functions triggered, and their values there."""
        self.statistics.witness_events += len(crossing.entries)
        self.departures.jumped = False
        self.surface = {
            k: float(crossing.values[k])
            for k, entry in enumerate(self.agenda.witnesses)
            if entry in crossing.entries
        }
        return crossing.entries
