"""The adjoint of a run: derivatives of one number by all parameters, backward through its steps.

A run leaves the ends of its steps. From the last one to the first, weights λ of the state and μ of
the numbers p are carried back exactly as the steps were taken, each at a few times its own cost
(`flexure.solvers.native.kernels.runs.adjoint_runs`). What the number reads of signals enters at the
nodes of the pieces of which metrics are computed; updates change the weights as
`flexure.solvers.analysis.sensitivities.event_slopes` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import NonFiniteError, TraceError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.updates import initialize
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Periodic, Settling, Witness
from flexure.solvers.analysis.equations.assembled_slopes import AssembledSlopes
from flexure.solvers.analysis.equations.equations import Variable, read_equations, shown
from flexure.solvers.analysis.equations.kept_equations import TracedEquations, kept_equations
from flexure.solvers.analysis.sensitivities.event_slopes import EventSlopes, Instant
from flexure.solvers.analysis.sensitivities.interpreted_motion import exact_jacobian
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    initial_jacobian,
    refuse_events,
    refuse_moving_jump,
)
from flexure.solvers.native.programs.adjoint_program import AdjointEquations, AdjointProgram
from flexure.solvers.native.programs.binding import BoundProgram
from flexure.solvers.native.programs.preconditions import UnsuitableError, native_program
from flexure.solvers.native.runs.adjoint_run import AdjointRun
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metric_slopes import MetricSlopes
from flexure.solvers.results.measures.polynomials import nodes_of
from flexure.solvers.results.records.history import History, Piece, Snapshot
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.trace import Key
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agrees_at

_TRIGGERS = Periodic, Witness, Settling
_SPACINGS = 8.0  # of time, by which ends of pieces and of steps may differ


class _Steps(NamedTuple):
    """The steps of a piece: when, how they were tried, and from where."""

    begin: FloatArray
    end: FloatArray
    spans: FloatArray
    states: FloatArray

    @classmethod
    def of(cls, piece: Piece) -> _Steps:
        """Return the steps of a piece over which the state moved."""
        rows: list[tuple[float, ...]] = []
        states: list[FloatArray] = []
        for k, interpolant in enumerate(piece.interpolants):
            begin, end = piece.times[k], piece.times[k + 1]
            old, new = (getattr(interpolant, name, None) for name in ("t_old", "t"))
            if rows and old is not None and old != begin:  # goes on with the same step
                rows[-1] = rows[-1][0], end, *rows[-1][2:]
                continue
            clip = getattr(interpolant, "clip", math.inf)
            if k == len(piece.interpolants) - 1:
                clip = min(clip, piece.last)
            span = (begin, end) if old is None or new is None else (float(old), float(new))
            rows.append((begin, end, *span, clip))
            states.append(piece.states[k])
        table = np.array(rows).reshape(-1, 5)
        start = np.array(states).reshape(len(rows), len(piece.states[0]))
        return cls(table[:, 0], table[:, 1], table[:, 2:], start)


class AdjointMotion:
    """The equations of a context as an adjoint needs them.

    Parameters
    ----------
    context : Context
        A root context, with the values that runs begin with.
    variables : sequence of Variable
        Parameters, fixed inputs and initial states.
    signals : sequence of Place
        Ports or continuous states that numbers are computed from.
    attempt : str
        Beginning of messages.

    Attributes
    ----------
    why : str
        Why the adjoint is not native; nothing if it is.

    Raises
    ------
    TraceError
        When a block cannot be traced.
    EvaluationError
        When an event, or an output that jumps, is in the way.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable],
        signals: Sequence[Place],
        attempt: str,
    ) -> None:
        refuse_events(context, attempt, _TRIGGERS, "updates at ticks, crossings and the beginning")
        self._start, self._context = context, context.clone()
        self._store = store = self._context.store
        self._all, self._attempt = variables, attempt
        self._own = [variable for variable in variables if not variable.is_state]
        keys: list[Key] = [key for variable in variables for key in variable.keys]
        own = [key for variable in self._own for key in variable.keys]
        self._initial = initial_jacobian(self._context, keys, attempt)
        self._assembled = AssembledSlopes(self._context, self._own, exact_jacobian)
        self._events = EventSlopes(self._context, own, attempt)
        self._rates = Derivatives(store, compiled=True)
        held = [key for each in self._events.held for key in each.keys]
        read = partial(read_equations, outputs=[shown(self._context, each) for each in signals])
        self._equations = self._traced(read, [*held, *own])
        self.why = ""
        try:
            self._native = self._compiled()
        except UnsuitableError as reason:
            self._native, self.why = None, str(reason)

    @property
    def may_jump(self) -> bool:
        """Whether rates, signals or periodic updates hold an operation that can jump."""
        return self._equations.may_jump or self._events.may_jump

    def _traced(self, read: Any, keys: list[Key]) -> AdjointEquations:
        """Return the products, kept ones or new ones, if they have the numbers of the equations."""
        layout, store = self._store.layout, self._store
        question = "adjoint", str(read.keywords["outputs"]), tuple(keys)

        def made() -> TracedEquations:
            return TracedEquations(layout, [], [], more=AdjointEquations(layout, read, keys))

        found, _ = kept_equations(layout, question, made)
        equations: AdjointEquations = found.more
        n = equations.num_states
        weights = np.random.default_rng(0).uniform(1.0, 2.0, equations.width - n)
        with np.errstate(all="ignore"):
            numbers = np.array(read(store), dtype=float)
        for code, part in zip(equations.interpreted(), (numbers[:n], numbers[n:]), strict=True):
            if not np.isfinite(part).all():
                continue  # which the run itself will tell
            function, expected = code.bind(store), weights[: len(part)] @ part

            def total(x: FloatArray, function: Any = function) -> FloatArray:
                return np.array([function(store.time, np.concatenate([x, weights]))[-1]])

            if not agrees_at(total, store.x, np.array([expected])):
                raise TraceError(self._attempt, found=OTHER_NUMBERS)
        return equations

    def _compiled(self) -> tuple[BoundProgram, AdjointProgram]:
        """Return native code of rates and products."""
        store = self._store
        program = native_program(store)

        def made() -> TracedEquations:
            own = AdjointProgram(store.layout, self._equations)
            return TracedEquations(store.layout, [], [], more=own)

        try:
            found, _ = kept_equations(store.layout, ("native adjoint", self._equations), made)
        except TraceError as error:
            raise UnsuitableError.because(error) from error
        return BoundProgram(program, store), found.more

    def _refuse_moving_jumps(self, steps: _Steps, piece: Piece) -> None:
        """Refuse jumps of the derivatives at times that depend on a parameter."""
        ends = np.vstack([steps.states[1:], piece.states[-1:]])
        for k in np.flatnonzero(steps.spans[:, 2] < steps.end) if self._own else ():
            stop, begin = float(steps.end[k]), (float(steps.begin[k]), steps.states[k])
            refuse_moving_jump(
                self._context, self._own, self._rates, stop, ends[k], begin, self._attempt
            )

    def gradient(
        self,
        method: str,
        history: History,
        dense: DenseOutput,
        slopes: MetricSlopes,
        tolerances: tuple[float, float],
    ) -> FloatArray:
        """Return the derivatives of a number by the components of all variables.

        Parameters
        ----------
        method : str
            The name of the method of the run.
        history : History
            The motion.
        dense : DenseOutput
            The signals in it.
        slopes : MetricSlopes
            What the number takes of them.
        tolerances : tuple of float
            Relative and absolute ones of the run.
        """
        n, context = self._store.layout.num_states, self._context
        context.copy_from(self._start)
        store = self._store
        initial = self._initial(store.time, store.x)
        initialize(context)
        names = [variable.place.path for variable in self._all for _ in variable.keys]
        steering = np.flatnonzero([not each.is_state for each in self._all for _ in each.keys])
        initial = self._assembled.closed(initial, steering, names)
        run = AdjointRun(method, self._equations, store, self._rates, self._native)
        pass_back = _Passage(self, run, dense, slopes, tolerances)
        before, pieces = Instant(store.x, Snapshot.of(context)), history.pieces
        instants = [before, *(Instant(each.states[-1], each.snapshot) for each in pieces)]
        for piece, before in zip(reversed(pieces), reversed(instants[:-1]), strict=True):
            pass_back.over(piece)
            after = Instant(piece.states[0], piece.snapshot)
            pass_back.through(piece.times[0], before, after, moving=piece is not pieces[0])
        found = initial.T @ run.adjoint
        found[steering] += run.slopes[len(run.slopes) - len(steering) :]
        return np.asarray(found)


class _Passage:
    """The way back through one run."""

    def __init__(
        self,
        motion: AdjointMotion,
        run: AdjointRun,
        dense: DenseOutput,
        slopes: MetricSlopes,
        tolerances: tuple[float, float],
    ) -> None:
        self._motion, self._run, self._dense, self._slopes = motion, run, dense, slopes
        self._rtol, self._atol = tolerances

    def over(self, piece: Piece) -> None:
        """Go back to the beginning of a piece, through its steps and ticks that changed nothing."""
        motion, run, steps = self._motion, self._run, _Steps.of(piece)
        piece.snapshot.restore(motion._context)
        run.hold()
        motion._refuse_moving_jumps(steps, piece)
        last = len(steps.begin)
        for first in [*self._ticks(steps)[::-1], 0]:
            self._steps(steps, slice(first, last))
            last = first
            if first:
                before = Instant(steps.states[first], piece.snapshot)
                self.through(float(steps.begin[first]), before, None, moving=False)
        if not np.isfinite(run.adjoint).all() or not np.isfinite(run.slopes).all():
            raise NonFiniteError(
                f"{motion._attempt} from t = {piece.times[0]:.9g} s on",
                expected="finite derivatives by states and parameters",
                found="NaN or infinity",
                remedy="Look for a root or a quotient whose slope is infinite there",
            )

    def _ticks(self, steps: _Steps) -> list[int]:
        """Return the steps of a piece that begin at ticks, but for the first."""
        found: list[int] = []
        next_time = self._motion._events.next_time
        while len(steps.begin):
            time = next_time(float(steps.begin[found[-1] if found else 0]))
            if not time < steps.end[-1]:
                break
            found.append(int(np.searchsorted(steps.begin, time)))
        return found

    def _steps(self, steps: _Steps, part: slice) -> None:
        """Go back through some steps, with the samples in them."""
        begin, end, spans = steps.begin[part], steps.end[part], steps.spans[part]
        if not len(begin):
            return
        dense = self._dense
        low, high = np.searchsorted(dense.begin, [begin[0], end[-1]])
        first, last = dense.begin[low:high, np.newaxis], dense.end[low:high, np.newaxis]
        nodes = nodes_of(dense.values.shape[1])
        times = np.where(nodes == 1.0, last, first + (last - first) * (0.5 * (nodes + 1.0)))
        which = np.searchsorted(begin, dense.begin[low:high], side="right") - 1
        counts = np.bincount(which, minlength=len(begin)) * len(nodes)
        length = spans[:, 1] - spans[:, 0]
        fractions = np.where(end == spans[:, 1], 1.0, (end - spans[:, 0]) / length)
        seeds = self._slopes.values[low:high].reshape(times.size, -1)
        self._run.go_back(spans, steps.states[part], fractions, counts, times.ravel(), seeds)

    def through(self, time: float, before: Instant, after: Instant | None, *, moving: bool) -> None:
        """Go back through the updates of an instant."""
        motion, run = self._motion, self._run

        def tolerance(x: FloatArray) -> FloatArray:
            return self._atol + self._rtol * np.abs(x)

        jump = motion._events.cross(
            time, before, after, motion._rates, tolerance, moving=moving
        )
        n = len(run.adjoint)
        weights = np.concatenate([run.adjoint, run.slopes])
        found = jump.pull(weights, self._gained(time))
        run.adjoint[:], run.slopes[:] = found[:n], found[n:]

    def _gained(self, time: float) -> float:
        """Return by how much the number changes while pieces begin and end later at a time."""
        dense, close = self._dense, _SPACINGS * math.ulp(time)
        k = int(np.searchsorted(dense.begin, time - close))
        gained = 0.0
        if k < len(dense.begin) and abs(dense.begin[k] - time) <= close:
            gained += self._slopes.begin[k]
        if k and abs(dense.end[k - 1] - time) <= close:
            gained += self._slopes.end[k - 1]
        return float(gained)
