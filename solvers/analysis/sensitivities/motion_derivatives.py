"""A motion and its derivatives by parameters, for one run or many.

With ẋ = f(t, x, p), the matrix S = ∂x/∂p follows ::

    Ṡ = ∂f/∂x S + ∂f/∂p,    S(t₀) = ∂x₀/∂p

along the motion, and outputs y = g(t, x, p) have the derivatives ∂g/∂x S + ∂g/∂p. The Jacobians are
exact. States and sensitivities are integrated together, each column of S times the size of its
parameter, so that one tolerance fits all. For an initial state, S(t₀) is a column of the identity.
Periodic updates make S jump (`flexure.solvers.analysis.sensitivities.sampled_slopes`).

Native code does that where it may (`flexure.solvers.analysis.sensitivities.native_motion`); else
Python does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, FlexureError, TraceError, warn
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.contexts.updates import initialize
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.scalars.expressions.expression import may_jump
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.events import Forced, Initialization, Periodic, Trigger
from flexure.diagrams.values.state import ContinuousState
from flexure.diagrams.values.symbolic_values import DISCRETE, Key
from flexure.solvers.analysis.equations.assembled_slopes import AssembledSlopes
from flexure.solvers.analysis.equations.equations import Variable
from flexure.solvers.analysis.equations.kept_equations import kept_jacobian
from flexure.solvers.analysis.linear_models.linear_inputs import Drive
from flexure.solvers.analysis.sensitivities.break_slopes import BreakSlopes
from flexure.solvers.analysis.sensitivities.interpreted_motion import (
    InterpretedMotion,
    LongMotions,
    exact_jacobian,
)
from flexure.solvers.analysis.sensitivities.native_motion import NativeMotion
from flexure.solvers.analysis.sensitivities.sampled_slopes import SampledSlopes, infinite_slope
from flexure.solvers.native.programs.programs import UnsuitableError
from flexure.solvers.results.records.history import Snapshot
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.trace import trace

_Motion: TypeAlias = NativeMotion | InterpretedMotion

#: Relative differences that are rounding, of each value and beside the largest.
_ALIKE, _ROUNDING = 1e-6, 1e-12
_MORE_RUNS = 3  # in which columns that are lost in atol weigh more


def sizes_of(variables: Iterable[Variable], store: Store) -> FloatArray:
    """Return the sizes of all components of variables, 1 for zeros."""
    numbers = np.abs(np.concatenate([np.zeros(0), *[each.read(store) for each in variables]]))
    return np.where(numbers > 0.0, numbers, 1.0)


def uncertain_size(rtol: float, atol: float) -> float:
    """Return the size below which errors within the tolerances leave few digits certain."""
    return 1e-3 * atol / max(rtol, 1e-10)


@dataclass(frozen=True, eq=False)
class MotionSamples:
    """States and outputs at some times, and their derivatives by the variables.

    ``states`` and ``outputs`` have the shapes (k, n) and (k, p), their slopes (k, n, m) and (k, p,
    m).
    """

    states: FloatArray
    outputs: FloatArray
    state_slopes: FloatArray
    output_slopes: FloatArray


def warn_of_jumps(search: str, remedy: str) -> None:
    """Warn of a search along motions that may jump with the numbers."""
    warn(
        f"{search} may have ended at a local minimum: its equations jump, and sampled blocks see "
        "on which side they are at instants only, so that its motions jump with the parameters. "
        f"{remedy}"
    )


def refuse_events(
    context: Context,
    attempt: str,
    known: tuple[type[Trigger], ...] = (Periodic,),
    expected: str = "a motion without events but periodic updates",
) -> None:
    """Refuse outputs that jump, and events but those at the beginning and of known triggers."""
    fine = (Forced, *known)
    for leaf in context.leaves():
        if leaf.system.has_jumps:
            raise EvaluationError(
                attempt,
                expected="a motion without jumps",
                found=f"the block '{leaf.system.path}', whose output jumps",
                remedy="Leave the block out, or take differences of two simulations instead",
            )
        for event in leaf.system.events:
            initial = isinstance(event.trigger, Initialization)
            if event.kind != "publish" and not (initial or isinstance(event.trigger, fine)):
                raise EvaluationError(
                    attempt,
                    expected=expected,
                    found=f"the {event.kind} update '{event.label}'",
                    remedy="Take differences of two simulations instead",
                )


class MotionDerivatives:
    """The motion of a context with its derivatives, which is traced once for any number of runs.

    `run` moves the context from where it is to the end. Variables are parameters, fixed inputs and
    initial states; the free input ports ``drives`` change along the motion. ``watch`` warns of
    motions that take long, for all of a study. The periodic updates of the context are used unless
    others are given.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable],
        outputs: Sequence[Place],
        attempt: str,
        drives: Sequence[Drive] = (),
        watch: LongMotions | None = None,
        updates: SampledSlopes | None = None,
    ) -> None:
        self._context = context
        self._store = store = context.store
        self._attempt = attempt
        self._drives = drives
        self._all = variables
        self._places = outputs
        self._size = store.layout.num_states
        keys: list[Key] = [key for variable in variables for key in variable.keys]
        steers = [not variable.is_state for variable in variables for _ in variable.keys]
        self._steering = np.flatnonzero(steers)
        self._variables = [variable for variable in variables if not variable.is_state]
        own = [key for variable in self._variables for key in variable.keys]
        self._updates = updates or SampledSlopes(context, own, attempt)
        self._moving = [*self._variables, *self._updates.held]
        held = [key for variable in self._updates.held for key in variable.keys]
        self._initial = initial_jacobian(context, keys, held, attempt)
        self._breaks = BreakSlopes(context, self._moving, attempt)
        self._rates = Derivatives(store, compiled=True)
        self._assembled = AssembledSlopes(context, self._variables, exact_jacobian)
        self._native: NativeMotion | None = None
        self._no_native = ""
        self._interpreted: InterpretedMotion | None = None
        self._watch = LongMotions(attempt) if watch is None else watch
        self.why = ""  # why the last run was interpreted
        self.sizes = self.scale = np.ones(len(keys))  # of parameters; of columns per derivative

    @property
    def may_jump(self) -> bool:
        """Whether the equations of the last run may jump; so do those of which that is unknown."""
        if self._updates.may_jump:
            return True
        return self._native.may_jump if self._native is not None else self._traced_jumps

    @cached_property
    def _traced_jumps(self) -> bool:
        """Whether equations that are interpreted may jump, or cannot be traced."""
        try:
            rates = trace(self._store.layout, lambda store: list(store.time_derivatives()))
        except TraceError:
            return True
        return may_jump(rates)

    @property
    def may_step(self) -> bool:
        """Whether motions may jump with the numbers: equations that jump are read at instants."""
        return bool(self._updates.held) and self.may_jump

    def run(
        self, t_final: float, grid: FloatArray, method: Method, rtol: float, atol: float
    ) -> MotionSamples:
        """Run the updates at the beginning, and integrate up to a time.

        The grid has ascending times of samples, none beyond the end. If the method is "auto", the
        choice of the first run applies to all. Where derivatives times the size of the parameter
        are lost in ``atol``, since that is small, further runs weigh them by their own size.
        """
        beginning = self._context.clone()
        self._least = np.zeros(len(self.scale))
        samples = self._run(t_final, grid, method, rtol, atol)
        for _ in range(_MORE_RUNS):
            largest = np.max(np.abs(samples.state_slopes), axis=(0, 1), initial=0.0) * self.scale
            faint = (self.scale < 1.0) & (largest < uncertain_size(rtol, atol)) & (largest > 0.0)
            if not np.any(faint):
                break
            apart = np.maximum(largest, self.scale)
            self._least[faint] = (self.scale / apart)[faint]
            end = self._context.clone()
            self._context.copy_from(beginning)
            try:
                samples = self._run(t_final, grid, method, rtol, atol)
            except FlexureError:  # of columns that are mere rounding
                self._context.copy_from(end)
                break
        return samples

    def _run(
        self, t_final: float, grid: FloatArray, method: Method, rtol: float, atol: float
    ) -> MotionSamples:
        """Run the updates at the beginning, and integrate once."""
        store = self._store
        self._drive(store.time)
        initial, held = np.split(self._initial(store.time, store.x), [len(store.x)])
        initialize(self._context)
        self._prepare()
        names = [variable.place.path for variable in self._all for _ in variable.keys]
        initial = self._assembled.closed(initial, self._steering, names)
        self.sizes = sizes_of(self._all, store)
        self.scale = np.maximum(self.sizes, self._least)
        self._time = store.time
        self._x = np.concatenate([store.x, (initial * self.scale).T.ravel()])
        own = np.zeros((len(self._steering), len(self.scale)))
        self._weights = np.concatenate([own, held * self.scale])
        self._weights[range(len(self._steering)), self._steering] = self.scale[self._steering]
        self._grid = grid
        self._parts: list[MotionSamples] = []
        self._samples: list[FloatArray] = []
        self.why = self._no_native or NativeMotion.obstacle(method, rtol, atol)
        self._integrate(t_final, method, rtol, atol)
        self._put_together()
        names = [each.name for each in fields(MotionSamples)]
        found = {name: [getattr(part, name) for part in self._parts] for name in names}
        return MotionSamples(**{name: np.concatenate(each) for name, each in found.items()})

    def _put_together(self) -> None:
        """Evaluate the samples since the last update, with the discrete values of the context."""
        if len(self._grid) and not self._samples:
            return
        n, done = self._size, sum(len(part.states) for part in self._parts)
        grid = self._grid[done : done + len(self._samples)]
        samples = np.array(self._samples).reshape(len(grid), n * (1 + len(self.scale)))
        scaled = samples[:, n:].reshape(len(grid), len(self.scale), n)
        columns = (scaled / self.scale[:, np.newaxis]).swapaxes(1, 2)
        outputs, slopes = self._show(grid, samples[:, :n], columns)
        self._parts.append(MotionSamples(samples[:, :n], outputs, columns, slopes))
        self._samples.clear()

    def _prepare(self) -> None:
        """Trace the equations, the first time: for native code, or else for Python."""
        if self._native is None and not self._no_native:
            try:
                self._native = NativeMotion(
                    self._context, self._moving, len(self.scale), self._places, self._drives
                )
            except UnsuitableError as reason:
                self._no_native = str(reason)
        if self._native is None:
            self._by_python()

    def _by_python(self) -> InterpretedMotion:
        """Return the way by Python, traced the first time; native code shows outputs, if any."""
        if self._interpreted is None:
            self._interpreted = InterpretedMotion(
                self._context,
                self._moving,
                self._places if self._native is None else (),
                self._drives,
                self._rates,
                self._watch,
                self._attempt,
            )
        return self._interpreted

    def _show(
        self, grid: FloatArray, states: FloatArray, columns: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the outputs and their derivatives at the times of samples."""
        if not self._places:
            return np.zeros((len(grid), 0)), np.zeros((len(grid), 0, len(self.scale)))
        weights = self._weights / self.scale
        found = (self._native or self._by_python()).shown(grid, states, columns, weights)
        if not all(np.isfinite(each).all() for each in found):
            raise infinite_slope(self._attempt, "finite outputs, and derivatives of them")
        return found

    def _drive(self, time: float) -> None:
        for drive in self._drives:
            drive.apply(self._store, time)

    def _integrate(self, t_final: float, method: Method, rtol: float, atol: float) -> None:
        """Integrate up to a time, and sample at the times of the grid."""
        grid = self._grid
        self._shift(math.nextafter(self._time, -math.inf), starting=True)
        if self._time < t_final:
            self._update()
        self._samples += [self._x for time in grid if time == self._time]
        begin = partial(self._begun, t_final, method, (rtol, atol))
        motion = begin() if self._size else None
        jumps = True
        while self._time < t_final:  # ends: a break time is later, and the pace is judged
            tick = self._updates.next_time(self._time)
            stop = self._breaks.next()
            bend = min((d.next_bend(self._time) for d in self._drives), default=math.inf)
            anew = jumps  # the rates go on behind a bend
            jumps = stop <= min(t_final, bend, tick)
            stop = min(stop, t_final, bend, tick)
            clip = math.nextafter(stop, -math.inf) if jumps else math.inf
            updating = stop == tick and stop < t_final
            times = grid[(grid > self._time) & ((grid < stop) if updating else (grid <= stop))]
            before = self._time
            motion = self._advance(motion, begin, stop, clip, times, anew=anew)
            if jumps and self._shift(before) and motion is not None:
                motion.hold(self._x, self._weights)
            self._store.set_motion(stop, freeze(self._x[: self._size].copy()))
            if updating:
                self._put_together()
                self._update()
                self._samples += [self._x for time in grid if time == stop]
                if motion is not None:
                    motion.hold(self._x, self._weights)

    def _advance(
        self,
        motion: _Motion | None,
        begin: Callable[[], _Motion],
        stop: float,
        clip: float,
        times: FloatArray,
        *,
        anew: bool,
    ) -> _Motion | None:
        """Go on to a stop, and sample at times; return the motion that goes on from there."""
        if motion is None or stop - self._time <= 4.0 * np.spacing(self._time):
            self._samples += [self._x] * len(times)  # nothing moves over a rounding error of time
            self._time = stop
            return motion and begin()
        found, self._time, self._x = motion.advance(stop, clip, times, anew=anew)
        self._samples += found
        if self._time < stop:
            self.why = "compiled loops came to something unusual"
            motion = begin()
            times = times[len(found) :]
            found, self._time, self._x = motion.advance(stop, clip, times, anew=True)
            self._samples += found
        return motion

    def _shift(self, begin: float, *, starting: bool = False) -> bool:
        """Let derivatives jump where rates do at a time that moves; tell whether they have."""
        time, n = self._time, self._size
        changes = self._breaks.changes(self._rates, begin, time, self._x[:n])
        moved = np.zeros((n, len(self.scale))) if changes is None else changes @ self._weights
        refused = np.any(moved) and (starting or time in self._grid)
        if refused or self._updates_differ(begin, time):
            raise EvaluationError(
                f"{self._attempt} at t = {time:.9g} s",
                expected="no beginning, update or sample where a jump moves with the parameters",
                found="one of them at the same time",
                remedy="Ask for other times, or take differences of two simulations instead",
            )
        self._x = np.concatenate([self._x[:n], self._x[n:] + moved.T.ravel()])
        return bool(np.any(moved))

    def _updates_differ(self, begin: float, time: float) -> bool:
        """Return whether updates at a break that moves compute something else behind it.

        Values of a source that goes on smoothly differ in proportion to the distance.
        """
        tick = self._updates.next_time(time - 5.0 * np.spacing(time))
        if tick > time + 4.0 * np.spacing(time):
            return False
        if not np.any(np.array(self._breaks.ways(begin, time)) @ self._weights):
            return False
        own, snapshot, x = len(self._steering), Snapshot.of(self._context), self._x[: self._size]
        sides = []
        for distance in (1.0, -1.0, 100.0, -100.0):
            self._store.set_motion(time + distance * np.spacing(time), freeze(x.copy()))
            slopes = self._updates.run(self._columns(), self._weights[:own], tick)
            held = [value for leaf in self._store.leaves for value in leaf.discrete]
            sides.append(np.concatenate([slopes.ravel(), self._store.x, *held]))
            snapshot.restore(self._context)
        self._store.set_motion(time, freeze(x.copy()))
        near, far = np.abs(sides[0] - sides[1]), np.abs(sides[2] - sides[3])
        size = np.abs(sides[0])
        least = _ALIKE * size + _ROUNDING * np.max(size, initial=0.0)
        return bool(np.any((near > least) & (near > 0.5 * far)))

    def _columns(self) -> FloatArray:
        """Return the derivatives of states and held values."""
        columns = self._x[self._size :].reshape(len(self.scale), self._size).T
        return np.concatenate([columns, self._weights[len(self._steering) :]])

    def _update(self) -> None:
        """Run the updates that are due now."""
        self._drive(self._time)
        n, own = self._size, len(self._steering)
        found = self._updates.run(self._columns(), self._weights[:own])
        self._weights = np.concatenate([self._weights[:own], found[n:]])
        self._x = np.concatenate([self._store.x, found[:n].T.ravel()])

    def _begun(self, t_final: float, method: Method, tolerances: tuple[float, float]) -> _Motion:
        """Begin a motion where this one is, natively if nothing is in the way."""
        motion = self._by_python() if self.why or self._native is None else self._native
        motion.begin(self._time, self._x, self._weights, t_final, method, tolerances, self.why)
        return motion


def initial_jacobian(
    context: Context, keys: Sequence[Key], held: Sequence[Key], attempt: str
) -> Callable[[float, FloatArray], FloatArray]:
    """Return the derivatives of states and of held values after the updates at the beginning."""

    def read(store: Store) -> list[Any]:
        x, values = list(store.x), dict[Key, Any]()
        for leaf in store.leaves:
            for event in leaf.system.events:
                if isinstance(event.trigger, Initialization) and event.kind != "publish":
                    for state, value in (event.handler(leaf) or {}).items():
                        numbers = list(state.check(value, attempt))
                        if isinstance(state, ContinuousState):
                            x[leaf.x_slice] = numbers
                        else:
                            where = DISCRETE, leaf.position, state.index
                            values |= {(where, k): each for k, each in enumerate(numbers)}
        return [*x, *(values.get(key, 0.0) for key in held)]

    return kept_jacobian(context.store, ("beginning", *held), read, keys)
