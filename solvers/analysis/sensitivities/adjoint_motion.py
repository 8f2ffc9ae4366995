"""The adjoint of a run: derivatives of one number by all parameters, backward through its steps.

A run leaves the ends of its steps. From the last one to the first, weights λ of the state and μ of
the numbers p are carried back exactly as the steps were taken, each at a few times its own cost
(`flexure.solvers.native.kernels.runs.adjoint_runs`). The derivatives of a metric by signals enter
at the nodes of its pieces; updates change the weights as
`flexure.solvers.analysis.sensitivities.event_slopes` states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.updates import initialize
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.analysis.equations.assembled_slopes import AssembledSlopes
from flexure.solvers.analysis.equations.equations import Variable, read_equations, shown
from flexure.solvers.analysis.equations.kept_equations import kept_code
from flexure.solvers.analysis.sensitivities.event_slopes import BREAK, Instant, pulled
from flexure.solvers.analysis.sensitivities.interpreted_motion import exact_jacobian
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    initial_jacobian,
    refuse_events,
)
from flexure.solvers.analysis.sensitivities.native_motion import STIFF_METHOD
from flexure.solvers.analysis.sensitivities.recorded_events import (
    EXPECTED,
    TRIGGERS,
    RecordedEvents,
    Steps,
)
from flexure.solvers.analysis.sensitivities.sampled_slopes import infinite_slope
from flexure.solvers.integration.guard.stiffness_detection import NONSTIFF_METHOD, assess
from flexure.solvers.native.programs.programs import BoundProgram, UnsuitableError, native_program
from flexure.solvers.native.programs.sensitivity_program import AdjointEquations, AdjointProgram
from flexure.solvers.native.runs.adjoint_run import AdjointRun
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metric_slopes import MetricSlopes
from flexure.solvers.results.measures.polynomials import nodes_of
from flexure.solvers.results.records.history import History, Snapshot
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agrees_at

_SPACINGS = 8.0  # of time, by which ends of pieces and of steps may differ
_AT_ONCE = 1000  # steps of one call, after which an interruption is noticed,
_MOST_NUMBERS = 2**17  # and numbers in their states


class AdjointMotion:
    """The equations of a context as an adjoint needs them.

    The context has the values that runs begin with; numbers are computed from the ports or
    continuous states ``signals``. Raises TraceError when a block cannot be traced, and
    EvaluationError when an event, or an output that jumps, is in the way.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable],
        signals: Sequence[Place],
        attempt: str,
    ) -> None:
        refuse_events(context, attempt, TRIGGERS, EXPECTED)
        self._start, self._context = context, context.clone()
        self._store = self._context.store
        self._all, self._attempt = variables, attempt
        self._own = [variable for variable in variables if not variable.is_state]
        self._names = [path for each in variables for path in [each.place.path] * len(each.keys)]
        keys: list[Key] = [key for variable in variables for key in variable.keys]
        own = [key for variable in self._own for key in variable.keys]
        self._assembled = AssembledSlopes(self._context, self._own, exact_jacobian)
        outputs = [shown(self._context, each) for each in signals]
        read = partial(read_equations, outputs=outputs)
        self._events = RecordedEvents(self._context, self._own, attempt, outputs)
        held = [key for each in self._events.slopes.held for key in each.keys]
        self._initial = initial_jacobian(self._context, keys, held, attempt)
        self._equations = self._traced(read, [*held, *own])
        self.why = ""  # why the adjoint is not native
        self._native: tuple[BoundProgram, AdjointProgram] | None = None
        try:
            self._native = self._compiled()
        except UnsuitableError as reason:
            self.why = str(reason)
        self._require_same_numbers(read)

    @property
    def may_jump(self) -> bool:
        """Whether rates, signals or periodic updates hold an operation that can jump."""
        return self._equations.may_jump or self._events.slopes.may_jump

    @in_one_thread
    def chosen(self, t_final: float) -> str:
        """Choose a method for a run up to a time."""
        context = self._context
        context.copy_from(self._start)
        initialize(context)
        time, x = context.store.time, context.store.x
        if self._native is None or not len(x):
            return NONSTIFF_METHOD
        bound = self._native[0]
        try:
            verdict = assess(bound, time, x, t_final - time, jac=bound.jacobian)
        except TraceError:
            return NONSTIFF_METHOD
        return STIFF_METHOD if verdict.stiff else NONSTIFF_METHOD

    def _traced(self, read: Any, keys: list[Key]) -> AdjointEquations:
        """Return the products, kept ones or new ones."""
        layout = self._store.layout
        question = "adjoint", str(read.keywords["outputs"]), tuple(keys)
        return kept_code(layout, question, partial(AdjointEquations, layout, read, keys))

    def _require_same_numbers(self, read: Any) -> None:
        """Refuse products that do not have the numbers of the equations, beside derivatives."""
        store, equations = self._store, self._equations
        n = equations.num_states
        weights = np.random.default_rng(0).uniform(1.0, 2.0, equations.width - n)
        with np.errstate(all="ignore"):
            numbers = np.array(read(store), dtype=float)
        own = None if self._native is None else self._native[1]
        for product, part in zip(
            equations.products(store, own), np.split(numbers, [n]), strict=True
        ):
            if not np.isfinite(part).all():
                continue  # which the run itself will tell
            expected = np.array([weights[: len(part)] @ part])

            def total(x: FloatArray, product: Any = product) -> FloatArray:
                return np.asarray(product(store.time, np.concatenate([x, weights]))[-1:])

            if not agrees_at(total, store.x, expected):
                raise TraceError(self._attempt, found=OTHER_NUMBERS)

    def _compiled(self) -> tuple[BoundProgram, AdjointProgram]:
        """Return native code of rates and products."""
        store, layout = self._store, self._store.layout
        program = native_program(store)
        make = partial(AdjointProgram, layout, self._equations)
        try:
            found = kept_code(layout, ("native adjoint", self._equations), make)
        except TraceError as error:
            raise UnsuitableError.because(error) from error
        return BoundProgram(program, store), found

    def gradient(
        self,
        method: str,
        history: History,
        dense: DenseOutput,
        slopes: MetricSlopes,
        tolerances: tuple[float, float],
        num_events: int,
    ) -> FloatArray:
        """Return the derivatives of a number by the components of all variables.

        ``dense`` has the signals in the history of the run, whose relative and absolute tolerances
        these are and in which ``num_events`` state events took place.
        """
        context = self._context
        context.copy_from(self._start)
        store = self._store
        initial, held = np.split(self._initial(store.time, store.x), [len(store.x)])
        initialize(context)
        steering = np.flatnonzero([not each.is_state for each in self._all for _ in each.keys])
        initial = self._assembled.closed(initial, steering, self._names)
        start = Instant(store.time, store.x, Snapshot.of(context))
        ledger = history.ledger()
        for thorough in (False, True):
            run = AdjointRun(
                method, self._equations, store, self._events.rates, self._native, tolerances
            )
            pass_back = _Passage(self, run, dense, slopes, thorough=thorough)
            for piece, last, moving, shift in self._events.pieces(ledger, start, tolerances):
                pass_back.over(piece)
                began = pass_back.through(last, piece.first, moving=moving, shift=shift)
                end = ledger.times[-1]
                self._events.refuse_at(slopes.instants, last, piece, end, began, shift)
            if pass_back.num_events >= num_events:  # else some of them changed no number
                break
        count = len(run.slopes) - len(steering)
        found = initial.T @ run.adjoint + held.T @ run.slopes[:count]
        found[steering] += run.slopes[count:]
        return np.asarray(found)


class _Passage:
    """The way back through one run."""

    def __init__(
        self,
        motion: AdjointMotion,
        run: AdjointRun,
        dense: DenseOutput,
        slopes: MetricSlopes,
        *,
        thorough: bool,
    ) -> None:
        self._motion, self._run, self._dense, self._slopes = motion, run, dense, slopes
        self._thorough = thorough
        self.num_events = 0

    def over(self, steps: Steps) -> None:
        """Go back to the beginning of a piece, through steps and updates that changed nothing."""
        motion, run = self._motion, self._run
        steps.first.snapshot.restore(motion._context)
        run.hold()
        last = len(steps.spans)
        count = max(1, min(_AT_ONCE, _MOST_NUMBERS // max(1, len(run.adjoint))))
        inside = motion._events.inside(steps, thorough=self._thorough)
        for first, moving in [*reversed(inside), (0, False)]:
            for high in range(last, first, -count):
                self._steps(steps, max(first, high - count), high)
            last = first
            if first:
                before = steps.instant(first)
                self.through(before, before if moving else None, moving=moving)
        if not np.isfinite(run.adjoint).all() or not np.isfinite(run.slopes).all():
            raise infinite_slope(f"{motion._attempt} before t = {steps.last.time:.9g} s")

    def _steps(self, steps: Steps, first: int, last: int) -> None:
        """Go back through some steps, with the samples in them."""
        spans, dense = steps.spans[first:last], self._dense
        low, high = np.searchsorted(dense.begin, [spans[0, 0], spans[-1, 1]])
        begin, end = dense.begin[low:high, np.newaxis], dense.end[low:high, np.newaxis]
        nodes = nodes_of(dense.values.shape[1])
        times = np.where(nodes == 1.0, end, begin + (end - begin) * (0.5 * (nodes + 1.0)))
        which = np.searchsorted(spans[:, 0], dense.begin[low:high], side="right") - 1
        counts = np.bincount(which, minlength=len(spans)) * len(nodes)
        seeds = self._slopes.values[low:high].reshape(times.size, self._slopes.values.shape[2])
        behind = math.nextafter(spans[0, 0], math.inf)
        if not first and behind < spans[0, 1]:  # derivatives of min(t, p) are those behind a bend
            spans = spans.copy()
            spans[0, 0] = behind
        self._run.go_back(spans, steps.states(first, last), counts, times.ravel(), seeds)

    def through(
        self,
        before: Instant,
        after: Instant | None,
        *,
        moving: bool,
        shift: FloatArray | None = None,
    ) -> list[int]:
        """Go back through the updates of an instant; return its state events, and a jump."""
        run, events = self._run, self._motion._events
        orders, which = events.cross(before, after, moving=moving, shift=shift)
        weights = np.concatenate([run.adjoint, run.slopes])
        gained = self._gained(before.time, before.time if after is None else after.time)
        each = [found for order in orders for found in pulled(order, weights, gained)]
        found = events.common(each, before.time, which)
        n = len(run.adjoint)
        run.adjoint[:], run.slopes[:] = found[:n], found[n:]
        self.num_events += sum(k != BREAK for jump in orders[0] for k in jump.events)
        return which

    def _gained(self, before: float, after: float) -> float:
        """Return by how much the number changes while pieces begin and end later at an instant."""
        dense, close = self._dense, _SPACINGS * math.ulp(after)
        k = int(np.searchsorted(dense.begin, after - close))
        gained = 0.0
        if k < len(dense.begin) and abs(dense.begin[k] - after) <= close:
            gained += self._slopes.begin[k]
        k = int(np.searchsorted(dense.begin, before - close))
        if k and abs(dense.end[k - 1] - before) <= close:
            gained += self._slopes.end[k - 1]
        return float(gained)
