"""A motion with state events and its derivatives: first a run, then the derivatives along it.

The instants of events, and the values on both sides, are those of a recorded run. In between,
states and derivatives are integrated together, as without events; at each instant they jump as
`flexure.solvers.analysis.sensitivities.event_slopes` states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.events import Settling, Witness
from flexure.solvers.analysis.equations.equations import Variable
from flexure.solvers.analysis.sensitivities.event_slopes import BREAK, Instant, Jump
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    MotionDerivatives,
    MotionSamples,
)
from flexure.solvers.analysis.sensitivities.recorded_events import RecordedEvents
from flexure.solvers.results.records.history import Snapshot
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.simulation import recorded
from flexure.solvers.simulation.simulator import Simulator


class _Stretch(NamedTuple):
    """A part of a run between two instants, and what takes place where it begins."""

    before: float  # the time of the instant, in seconds
    first: Instant  # the values behind it
    stop: float  # where the stretch ends, in seconds
    clip: float  # the equations are evaluated no later than this
    orders: list[list[Jump]]
    events: list[int]  # whose instant moves


class EventMotion(MotionDerivatives):
    """The motion of a context with state events, and its derivatives, for any number of runs."""

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
