"""The simulator: runs updates, integration steps and publishes in a fixed order.

At an instant at which values jump, x- denotes the values before the updates of that instant and x+
the values after them. A handler reads the values that the phase names::

    initialize:
        unrestricted updates with the trigger Initialization        read x-, write x+
        discrete updates with the trigger Initialization            read x-, write x+
        updates with the trigger Settling, until they change nothing
        publishes: Initialization, PerStep, Periodic due now        read x+
        monitor
        Periodic updates due now stay pending

    advance_to(T): repeat until time is T
        1. unrestricted updates: PerStep, pending Periodic, pending Witness    read x-, write x+
        2. discrete updates: PerStep, pending Periodic, pending Witness        read x-, write x+
           then updates with the trigger Settling, unrestricted ones first in each round, again
           and again until they change nothing                                 write x+
           then updates of the Witness events whose functions have changed sign from x- to x+, and
           Settling again, until no function changes its sign any more. The publishes of these
           events follow                                                       read x+
        3. motion from t to t': the continuous state follows its derivatives up to the next
           periodic event, break time, witness event or T; or over one integrator step where
           events per step or a monitor want to see every step. Where blocks declare projections,
           it is moved to where it belongs at t, and at the end of every integrator step
        4. publishes: PerStep, Periodic due at t', Witness                     read x- of t'
        5. monitor

Updates due at t' stay pending until the next repetition, so ``advance_to(T)`` ends with the values
x- of T. ``advance_pending_events()`` is ``advance_to`` the present time: the pending updates run,
a motion of zero length follows, and its publishes. All handlers of one phase read the same values;
what phase 1 wrote is visible to phase 2. When a handler raises, nothing of its phase is written.
An endless chain of updates at one instant is a `ZenoError` with their names.

Events due together run in the order of the agenda (`flexure.solvers.simulation.events.agenda`).
Periodic times are ``offset + k period`` in floating point, strictly later than the present time.
These are Drake's semantics. Four things are done differently on purpose:

* Without events per step, periodic publishes do not interrupt an integrator with error control:
  they read its interpolant. A log so leaves the motion as it was.
* Integration stops at the break times of blocks, and until then sees their left limits.
* Witness events also take place where a value jumps: an update of one block, or a value that is set
  between two calls of ``advance_to``, triggers those of others at the same instant. In Drake such
  a change of sign between two steps is not seen.
* Witness events are located inside of a step as `flexure.solvers.simulation.events.witnesses` says,
  and not missed when a function changes its sign twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from flexure.diagrams.checks.arguments import flag, require
from flexure.diagrams.checks.errors import ContextError, DeclarationError, ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.contexts.updates import prepare_start
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.diagrams.values.events import Periodic, Terminate
from flexure.solvers.integration.guard.progress_limits import MOST_STEPS
from flexure.solvers.results.records.history import History
from flexure.solvers.results.records.statistics import Statistics
from flexure.solvers.simulation.native_runs.native_eligibility import NativeWay
from flexure.solvers.simulation.run_control.method_selection import Method, MethodChoice
from flexure.solvers.simulation.run_control.options import (
    LOOSEST_RTOL,
    Compiled,
    Monitor,
    Tolerance,
    checked_compiled,
    checked_max_check_interval,
    checked_max_record,
    checked_max_steps,
    spread,
)
from flexure.solvers.simulation.run_control.simulation_state import SimulationState
from flexure.solvers.simulation.step_phases import take_step


class Simulator:
    """Integrates the state of a system over time.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        A root context of the system, which the simulator changes; a default one when omitted.
    method : str or OdeSolver class
        "auto" (an explicit method, and a stiff one where the diagram proves to be stiff), a name
        of `flexure.solvers.integration.methods.methods.METHOD_NAMES`, or a class derived from
        ``scipy.integrate.OdeSolver``.
    rtol, atol : float or mapping, optional
        Tolerances of methods with error control, for all states, or by block path
        (``{"plant": 1e-9, "": 1e-6}``). ``rtol`` defaults to the accuracy of the context, or 1e-6;
        ``atol`` to a thousandth of ``rtol``.
    max_step : float
        Longest step of methods with error control, in seconds. Without continuous state, the
        longest stretch of time in which witness functions are searched at once.
    max_check_interval : float
        Longest interval between two checks of witness functions, in seconds. A pulse shorter than
        that may be missed. Shorter ones are chosen where a function is seen to vary fast; give one
        where it rests in between, as pulses do.
    max_steps : float
        A run is ended with an error when, at the pace of its latest 20,000 steps, it would need
        more steps than this; the slower it is, the sooner. Steps whose length you set by ``step``,
        ``max_step`` or the period of an event do not count. Infinity disables the limit.
    step : float, optional
        The step of fixed-step methods, in seconds.
    options : mapping, optional
        Further options of the solver class.
    isolate : bool
        Whether witness events are located inside of steps. If False, they take place at the end of
        the step in which the witness crosses zero, and steps of methods with error control are no
        longer than the check interval.
    compiled : bool or {"native", "python"}
        Whether the equations may be traced and compiled. Then they run as native code where the
        package llvmlite is installed and the method has a native loop (RK45, RK23, DOP853,
        DormandPrince, Rodas5P, ESDIRK4); else, once they have been evaluated often, as
        straight-line Python; and stiff methods get exact Jacobians. The results are the same.
        "native" requires native code, "python" does not use it.
    monitor : callable, optional
        ``monitor(root_context)`` after every step; may return `Terminate`.
    progress : bool
        Whether to show progress: on a terminal, in a notebook, or every ten seconds in a pipe.
    record : bool
        Whether to record the motion, for ``history``.
    max_record : float, optional
        Largest memory of the recorded motion, in bytes; a run that needs more raises a
        `SimulationError`. Half of the free memory when omitted.

    See Also
    --------
    simulate : Run to a final time in one call.

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

    # Options are those of the beginning: to assign one later is an error, and not without effect.
    __slots__ = ("__weakref__", "_left_at", "_native", "_state")

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
        context = system.create_default_context() if context is None else context
        attempt = f"Cannot simulate '{system.label}'"
        require_root(context, system, attempt)
        compiled = checked_compiled(compiled)
        require(monitor is None or callable(monitor), monitor, attempt, "monitor to be a function")
        choice = MethodChoice(method, step, options, context.store.layout)
        relative = spread("rtol", rtol, context.accuracy or 1e-6, context)
        absolute = spread("atol", atol, 1e-3 * np.min(relative, initial=LOOSEST_RTOL), context)
        self._state = SimulationState(
            context,
            choice,
            relative,
            absolute,
            compiled=bool(compiled),
            max_step=float(as_number(max_step, (), "Cannot use this max_step")),
            max_check_interval=checked_max_check_interval(max_check_interval),
            max_steps=checked_max_steps(max_steps),
            isolate=flag(isolate, "isolate", attempt),
            monitor=monitor,
            show_progress=flag(progress, "progress", attempt),
            record=flag(record, "record", attempt),
            max_record=checked_max_record(max_record),
        )
        self._native = NativeWay(self._state, compiled)
        self._left_at: float | None = None  # the time of the context, once it was initialized

    @property
    def system(self) -> System:
        """The block or diagram."""
        return self._state.system

    @property
    def context(self) -> Context:
        """The context that the simulator changes."""
        return self._state.context

    @property
    def rtol(self) -> FloatArray:
        """The relative tolerances of all states, shape (n,)."""
        return self._state.rtol

    @property
    def atol(self) -> FloatArray:
        """The absolute tolerances of all states, shape (n,)."""
        return self._state.atol

    @property
    def history(self) -> History | None:
        """The motion since the initialization; None unless it is kept."""
        return self._state.history

    @property
    def statistics(self) -> Statistics:
        """Counters since the initialization."""
        return self._state.statistics

    @property
    def termination(self) -> Terminate | None:
        """The reason why a publish or the monitor ended the latest advance; None when none has."""
        return self._state.events.termination

    @property
    def terminated_by(self) -> str | None:
        """Which of them that was."""
        return self._state.events.terminated_by

    def initialize(self) -> None:
        """Run the initialization events and the publishes due at the present time.

        Called by the first `advance_to` when it was not called before. Call it again after
        changing the time of the context by hand.
        """
        state = self._state
        state.begin()
        agenda, events, time = state.agenda, state.events, state.store.time
        events.update(agenda.initialization)
        prepare_start(state.context)
        state.choice.warn_of_long_step(state.context)
        events.settle()
        state.begin_history()
        self._native.find()
        due = agenda.due(time)
        events.expect(due)
        self._left_at = time
        events.publish([*agenda.initialization, *agenda.per_step, *due])

    def _begin_anew(self, context: Context) -> None:
        """Take over the values of another context, for another run."""
        self.context.copy_from(context)
        self._left_at = None

    def _keep_few_states(self, size: float) -> None:
        """Keep few states of a record that takes more than a size, in bytes."""
        self._state.most_states = size

    def _go_on_from(self, context: Context) -> None:
        """Take over all values of another context, and go on without initialization events."""
        self._begin_anew(context)
        self.initialize()
        self.context.copy_from(context)

    @property
    def _has_pending_updates(self) -> bool:
        """Whether updates wait for the next advance, or follow from values that were set."""
        return bool(self._state.events.pending or self._state.agenda.settling)

    @property
    def _clocks(self) -> list[Periodic]:
        """The clocks of periodic events."""
        return [clock for clock, _ in self._state.agenda.clocks]

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
        state = self._state
        time = float(as_number(time, (), f"Cannot advance '{self.system.label}'"))
        if not (math.isfinite(time) and time >= state.store.time):
            raise ValueRefusedError(
                f"Cannot advance '{self.system.label}' to t = {time!r}",
                expected=f"a finite time that is not before t = {state.store.time!r}",
                found=repr(time),
            )
        state.require_intervals(time)
        if self._left_at is None:
            self.initialize()
            if self.termination is not None:
                return
        elif self._left_at != state.store.time:
            raise ContextError(
                f"Cannot advance '{self.system.label}'",
                expected=f"the context at t = {self._left_at!r}, where it was left",
                found=f"t = {state.store.time!r}",
                remedy="Call initialize() after changing the time",
            )
        state.aim(time)
        try:
            with state.progress_bar:
                self._advance(time)
        finally:
            self._left_at = state.store.time

    def _advance(self, boundary: float) -> None:
        """Take steps up to a time, or until the run is terminated."""
        state = self._state
        events, store, progress_bar = state.events, state.store, state.progress_bar
        while True:
            if not self._native.advance(boundary):
                take_step(state, boundary)
            progress_bar.update(store.time)
            if events.termination is not None or store.time >= boundary:
                return

    def advance_pending_events(self) -> None:
        """Run the updates that are due now, then the publishes of a motion of zero length."""
        self.advance_to(self._state.store.time)

    def explain(self) -> str:
        """Describe which methods were used, when and why, and how the equations are evaluated."""
        lines = [
            f"from t = {time:.6g} s: {name}, {why}" for time, name, why in self.statistics.methods
        ]
        if not lines:
            return "no continuous state was integrated"
        return "\n".join([*lines, f"equations: {self._native.how}"])

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise DeclarationError(
            f"Cannot copy or pickle the simulator of '{self.system.label}'",
            expected="one simulator for each run",
            found="a copy during a run",
            remedy="Make another one, as in Simulator(system, simulator.context.clone()), or copy "
            "and pickle the context or the result of simulate",
        )
