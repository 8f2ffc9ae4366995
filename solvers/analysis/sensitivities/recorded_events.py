"""The pieces of a recorded run and the instants between them, from the last one to the first.

A run leaves the ends of its steps, and pieces of them between updates that changed something. Where
one piece ends and the next begins, updates at ticks and crossings take place, and equations break;
so they do inside of pieces, where they change no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.events import Periodic, Settling, Witness
from flexure.solvers.analysis.equations.equations import Shown, Variable
from flexure.solvers.analysis.sensitivities.break_slopes import BreakSlopes
from flexure.solvers.analysis.sensitivities.event_slopes import BREAK, EventSlopes, Instant, Jump
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    MotionDerivatives,
    MotionSamples,
)
from flexure.solvers.results.records.history import Ledger, Snapshot
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.simulation import recorded
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.tracing.derivatives import Derivatives

#: What events may be triggered by, beside the beginning, and how that is called.
TRIGGERS = Periodic, Witness, Settling
EXPECTED = "updates at ticks, crossings and the beginning"
#: The part of a step before updates that counts as a step of its own: where equations bend at an
#: event, as those of a limit do, hardly any stage is to see more than one side of it.
_SHORT = 1e-7
_COINCIDENT = 1e3  # spacings of time, within which events are one but for rounding
#: Differences of what orders of events give that are rounding: relative, and beside the largest.
_ALIKE, _ROUNDING = 1e-6, 1e-10


class Steps:
    """A piece of a run: its steps, how they were tried and from where, and what held meanwhile.

    ``spans``, shape (k, 3), are begin, end, and the latest time to evaluate at. Between ``first``
    and ``last``, ``taken`` of the steps begin where steps of the run do. If it ``breaks``, the
    equations break at its end. One of its last steps begins at ``begin``. A piece ``is_instant`` if
    it is as short as rounding makes it between events at one instant.
    """

    def __init__(self, ledger: Ledger, piece: int) -> None:
        low, high = [*ledger.first[piece : piece + 2].tolist(), len(ledger.times)][:2]
        self._ledger, self._piece, self._rows = ledger, piece, np.arange(low, high)
        times, clips = ledger.times[low:high], ledger.clips(self._rows)
        clips[-1] = min(clips[-1], ledger.limits[piece])
        self.taken = len(times) - 1
        before = times[-1] - _SHORT * (times[-1] - times[-2:][0])
        if high < len(ledger.times) and times[-2:][0] < before < times[-1]:  # parts the last step
            times, clips = np.insert(times, -1, before), np.append(clips, clips[-1])
            self._rows = np.append(self._rows, high - 1)
        self.spans = np.column_stack([times[:-1], times[1:], clips[1:]])
        self._snapshot = ledger.snapshot(low)
        self.first, self.last = (
            Instant(float(time), x, self._snapshot)
            for time, x in zip(times[[0, -1]], ledger.states(self._rows[[0, -1]]), strict=True)
        )
        self.breaks = self.taken > 0 and bool(clips[-1] < times[-1])
        self.begin = float(times[-3:][0])
        self.is_instant = self.last.time - self.first.time <= _COINCIDENT * math.ulp(times[-1])

    def earlier(self) -> Steps | None:
        """Return the piece before."""
        return Steps(self._ledger, self._piece - 1) if self._piece else None

    def states(self, first: int, last: int) -> FloatArray:
        """Return the states at the beginnings of some steps, shape (k, n)."""
        return self._ledger.states(self._rows[first:last])

    def instant(self, k: int) -> Instant:
        """Return the values at the beginning of a step."""
        return Instant(float(self.spans[k, 0]), self.states(k, k + 1)[0], self._snapshot)


class RecordedEvents:
    """The events of recorded runs of a context, and their derivatives.

    All methods change the context. Variables are parameters and fixed inputs; a number is computed
    from ``outputs``.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable],
        attempt: str,
        outputs: Sequence[Shown] = (),
    ) -> None:
        self._context = context
        keys = [key for variable in variables for key in variable.keys]
        self.rates = Derivatives(context.store, compiled=True)
        self.rates(context.store.time, context.store.x)  # parts may keep what they use first
        self.slopes = EventSlopes(context, keys, attempt, outputs)
        self.breaks = BreakSlopes(context, [*self.slopes.held, *variables], attempt)
        self._rtol = self._atol = 0.0

    def pieces(
        self, ledger: Ledger, start: Instant, tolerances: tuple[float, float]
    ) -> Iterator[tuple[Steps, Instant, bool, FloatArray | None]]:
        """Yield the pieces of a run from the last to the first, with the instant before each.

        That is the values there, whether a motion ends there, and by how much a break moves. Raises
        EvaluationError when an event coincides with the beginning or the end of the run.
        """
        self._rtol, self._atol = tolerances
        before_start = math.nextafter(start.time, -math.inf)
        if self._jumps(before_start, start):
            self.refuse_coincident(start.time, [BREAK])
        piece: Steps | None = Steps(ledger, len(ledger.first) - 1)
        assert piece is not None
        before = None if len(piece.spans) else piece.earlier()
        if before is not None and not np.any(self._shift(before)):
            piece = before  # updates do not run where a jump is at the end of the run
        self.refuse_coincident(piece.last.time, self._reached(piece))
        while piece is not None:
            earlier, shift = self._before(piece)
            last = start if earlier is None else earlier.last
            if earlier is None and shift is None:
                shift = self._way(before_start, start)
            yield piece, last, earlier is not None, shift
            piece = earlier

    def inside(self, steps: Steps, *, thorough: bool) -> list[tuple[int, bool]]:
        """Return the steps of a piece that begin with updates that changed no number.

        Crossings are looked for only if that is to be thorough. They come with True, ticks alone
        with False; the first step is left out.
        """
        ticks: list[int] = []
        time = self.slopes.next_time(steps.first.time)
        while time < steps.last.time:
            ticks.append(int(np.searchsorted(steps.spans[:, 0], time)))
            time = self.slopes.next_time(time)
        passing = partial(self.slopes.passing, rates=self.rates, tolerance=self._tolerance)
        found = range(1, steps.taken) if thorough else ()
        events = [k for k in found if passing(steps.instant(k))]
        return [(k, k in events) for k in sorted({*ticks, *events})]

    def cross(
        self,
        before: Instant,
        after: Instant | None,
        *,
        moving: bool,
        shift: FloatArray | None = None,
    ) -> tuple[list[list[Jump]], list[int]]:
        """Repeat the updates of an instant, as `EventSlopes.cross` does.

        The second result is the events whose instant moves.
        """
        orders = self.slopes.cross(
            before, after, self.rates, self._tolerance, moving=moving, shift=shift
        )
        return orders, [
            k for jump in orders[0] for k in jump.events if jump.crossing is not None or k == BREAK
        ]

    def common(self, found: Sequence[FloatArray], time: float, events: list[int]) -> FloatArray:
        """Return what all orders of events give; refuse those that do not agree."""
        first, *others = found
        least = _ROUNDING * np.max(np.abs(first), initial=0.0)
        if all(np.allclose(first, other, rtol=_ALIKE, atol=least) for other in others):
            return first
        expected = "events one after the other"
        raise self.slopes.refusal(time, events, expected, "at once, whose order matters")

    def refuse_at(
        self,
        times: FloatArray,
        before: Instant,
        piece: Steps,
        end: float,
        events: list[int],
        shift: FloatArray | None = None,
    ) -> None:
        """Refuse events before a piece at instants that count, or beside others.

        There, a break that moves by ``shift`` is one also if it is none of the rates.
        """
        if np.any(np.abs(times - before.time) <= _COINCIDENT * math.ulp(end)):
            moves = shift is not None and bool(np.any(shift))
            self.refuse_coincident(before.time, events or [BREAK] * moves)
        if piece.is_instant:
            self.refuse_coincident(piece.last.time, events)

    def refuse_coincident(self, time: float, events: list[int]) -> None:
        """Refuse events that are one, but for rounding, with a tick, the start or the end."""
        if events:
            expected = "events apart from the beginning, the end and instants that count"
            raise self.slopes.refusal(time, events, expected, "which coincide with one of them")

    def _before(self, piece: Steps) -> tuple[Steps | None, FloatArray | None]:
        """Return the piece before one, and by how much a break between them moves.

        Pieces that rounding makes between events at one instant are left out.
        """
        shift: FloatArray | None = None
        while (earlier := piece.earlier()) is not None:
            own = self._shift(earlier)
            shift = shift if own is None else own
            piece = earlier
            if not piece.is_instant:
                return piece, shift
            before = piece.earlier()
            events = self._reached(piece) or ([] if before is None else self._reached(before))
            shifts = [own, None if before is None else self._shift(before)]
            if not events and not any(each is not None and np.any(each) for each in shifts):
                return piece, shift
            if before is None:
                self.refuse_coincident(piece.last.time, events)
        return None, shift

    def _shift(self, steps: Steps) -> FloatArray | None:
        """Return by how much a break at the end of a piece moves, if there is one."""
        return self._way(steps.begin, steps.last) if steps.breaks else None

    def _way(self, begin: float, at: Instant) -> FloatArray:
        """Return by how much a break at an instant moves with states and numbers.

        If it moves in several ways, return by how much the states do.
        """
        time, x, snapshot = at
        snapshot.restore(self._context)
        found, *others = self.breaks.ways(begin, time)
        if not others:
            return np.append(np.zeros(len(x)), found)
        changes = self.breaks.changes(self.rates, begin, time, x)
        if changes is None:
            return np.zeros(len(x) + len(found))
        return np.hstack([np.eye(len(x)), changes])

    def _reached(self, steps: Steps) -> list[int]:
        """Return which functions cross zero at the end of a piece, and whether a jump moves."""
        end = steps.last
        found = self.slopes.passing(end, self.rates, self._tolerance)
        end.snapshot.restore(self._context)
        return [*found, BREAK] if steps.breaks and self._jumps(steps.begin, end) else found

    def _jumps(self, begin: float, at: Instant) -> bool:
        """Return whether rates jump at an instant that moves."""
        return self.breaks.changes(self.rates, begin, at.time, at.x) is not None

    def _tolerance(self, x: FloatArray) -> FloatArray:
        return self._atol + self._rtol * np.abs(x)


class _Stretch(NamedTuple):
    """A part of a run between two instants, and what takes place where it begins."""

    before: float  # the time of the instant, in seconds
    first: Instant  # the values behind it
    stop: float  # where the stretch ends, in seconds
    clip: float  # the equations are evaluated no later than this
    orders: list[list[Jump]]
    events: list[int]  # whose instant moves


class EventMotion(MotionDerivatives):
    """The motion of a context with state events, and its derivatives, for any number of runs.

    The instants of events, and the values on both sides, are those of a recorded run. In between,
    states and derivatives are integrated together, as without events; at each instant they jump as
    `flexure.solvers.analysis.sensitivities.event_slopes` states.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable],
        outputs: Sequence[Place],
        attempt: str,
    ) -> None:
        own = [variable for variable in variables if not variable.is_state]
        self._events = RecordedEvents(context, own, attempt)
        super().__init__(context, variables, outputs, attempt, updates=self._events.slopes)

    def run(
        self, t_final: float, grid: FloatArray, method: Method, rtol: float, atol: float
    ) -> MotionSamples:
        """Run the updates at the beginning, and integrate up to a time.

        Where nothing else is wanted, the states are those of the recorded run.
        """
        simulator = Simulator(
            self._context.system,
            self._context.clone(),
            method=method,
            rtol=rtol,
            atol=atol,
            record=True,
        )
        self._record = recorded(simulator, t_final)
        if self._record.outcome != "completed":
            raise EvaluationError(
                self._attempt, expected="a run up to t_final", found=self._record.message
            )
        if self._all or self._places:
            return super().run(t_final, grid, method, rtol, atol)
        states = np.array([self._record.context_at(time).continuous_state for time in grid])
        slopes = np.zeros((*states.shape, 0))
        return MotionSamples(states, states[:, :0], slopes, slopes[:, :0])

    def _integrate(self, t_final: float, method: Method, rtol: float, atol: float) -> None:
        """Integrate along the run, and sample at the times of the grid."""
        if t_final <= self._time:
            super()._integrate(t_final, method, rtol, atol)
            return
        start = Instant(self._time, self._store.x, Snapshot.of(self._context))
        stretches = self._stretches(self._record, start, (rtol, atol))
        n, own, grid = self._size, len(self._steering), self._grid
        begin = partial(self._begun, t_final, method, (rtol, atol))
        motion = None
        for stretch in stretches:
            columns, others = self._columns(), self._weights[:own]
            found = []
            for order in stretch.orders:
                pushed = columns
                for jump in order:
                    pushed = jump.push(pushed, others)
                found.append(pushed)
            columns = self._events.common(found, stretch.before, stretch.events)
            self._weights = np.concatenate([others, columns[n:]])
            self._x = np.concatenate([stretch.first.x, columns[:n].T.ravel()])
            self._time = stretch.first.time
            stretch.first.snapshot.restore(self._context)
            self._store.set_motion(self._time, freeze(stretch.first.x.copy()))
            if motion is None:
                motion = begin() if n else None
            else:
                motion.hold(self._x, self._weights)
            self._samples += [self._x] * int(
                np.sum((grid >= stretch.before) & (grid <= self._time))
            )
            is_last = stretch is stretches[-1]
            times = grid[
                (grid > self._time) & ((grid <= stretch.stop) if is_last else (grid < stretch.stop))
            ]
            motion = self._advance(motion, begin, stretch.stop, stretch.clip, times, anew=True)
            self._store.set_motion(self._time, freeze(self._x[:n].copy()))
            self._put_together()

    def _stretches(
        self, record: SimulationResult, start: Instant, tolerances: tuple[float, float]
    ) -> list[_Stretch]:
        """Return the run in parts between instants at which derivatives jump."""
        events, ledger = self._events, record._history.ledger()
        found: list[_Stretch] = []
        for thorough in (False, True):
            found = []
            for piece, last, moving, shift in events.pieces(ledger, start, tolerances):
                marks = [(last, piece.first, moving, shift)]
                marks += [
                    (piece.instant(k), piece.instant(k), crosses, None)
                    for k, crosses in events.inside(piece, thorough=thorough)
                ]
                stop, clip = piece.last.time, float(piece.spans[-1:, 2].min(initial=math.inf))
                for before, first, crosses, way in reversed(marks):
                    behind = first if crosses or first is piece.first else None
                    orders, which = events.cross(before, behind, moving=crosses, shift=way)
                    found.append(_Stretch(before.time, first, stop, clip, orders, which))
                    stop, clip = before.time, math.inf
                events.refuse_at(self._grid, last, piece, ledger.times[-1], found[-1].events)
            count = sum(
                k != BREAK for each in found for jump in each.orders[0] for k in jump.events
            )
            if count >= record.statistics.witness_events:  # else some changed no number
                break
        return found[::-1]


def has_state_events(context: Context) -> bool:
    """Return whether updates of a context follow crossings, or settle after others."""
    return any(
        event.kind != "publish" and isinstance(event.trigger, (Witness, Settling))
        for leaf in context.leaves()
        for event in leaf.system.events
    )
