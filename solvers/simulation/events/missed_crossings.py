"""Functions on their surfaces: whether a method sees them leave and come back as they have to.

After an event, and often after its update, a witness function is zero. A method whose error is as
large as what follows, say a hop of a ball, may show the function on the wrong side at once, as if
it had gone there without a crossing, or show a crossing while the function still moves away. Then
events are missed, and a ball falls through the floor. So where a step begins on a surface, what the
method shows is compared with where the function goes by the equations themselves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.checks.errors import FlexureError, warn
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.integration.methods.methods import is_fixed_step, method_name
from flexure.solvers.native.kernels.parts.zero_search import (
    FEW_STEPS,
    FURTHER,
    REACH,
    RESTING,
    first_distance,
    is_clear,
)
from flexure.solvers.simulation.events.due_events import PileUp, zeno_error

if TYPE_CHECKING:
    from flexure.solvers.integration.guard.integration import TakenStep
    from flexure.solvers.simulation.events.agenda import Entry
    from flexure.solvers.simulation.events.witnesses import Crossing, Search
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState

_TOO_FEW_STEPS = 2  # in which methods of first order do not see a function turn around
_LARGE_ERROR = 0.1  # of a function in one step


class MissedCrossings:
    """Watches functions that are, or have just been, on their surfaces."""

    def __init__(self, simulation: SimulationState) -> None:
        self._simulation = simulation
        self._store = simulation.store
        # Events whose functions have turned around too soon for the method.
        self.blurred: set[Entry] = set()
        self._still: set[int] = set()  # functions that have not moved since their updates
        self._expected: dict[int, float] = {}  # the side on which each is seen next
        self._steps: dict[int, int] = {}  # since the last event of each, if that are few
        self._begins = False
        self._clip = math.inf
        self._pile_ups: dict[Entry, PileUp] = {}
        self._warned: set[Entry] = set()

    def begin(self, clip: float) -> None:
        """Begin a motion, in which the equations are evaluated no later than at a time."""
        self._clip = clip
        self._expected = {}
        self._still = set()
        self._begins = not self._simulation.isolate

    def watch_for_zeno(self, crossed: list[Entry]) -> None:
        """Raise when the events of a witness function pile up at one instant."""
        now = self._store.time
        for entry in crossed:
            blurred = entry in self.blurred
            self.blurred.discard(entry)
            if self._pile_ups.setdefault(entry, PileUp()).add(now, blurred=blurred):
                raise zeno_error(
                    self._simulation.system.label,
                    now,
                    f"witness events '{entry.event.label}' closer and closer together",
                )

    def warn_of(self, entry: Entry, message: str) -> None:
        """Warn of missed events, once for each witness function."""
        if entry not in self._warned:
            self._warned.add(entry)
            warn(message)

    def warn_of_lost(self, entry: Entry, start: float, end: float) -> None:
        """Warn of a function that varies too fast in a stretch of time."""
        self.warn_of(
            entry,
            f"'{entry.event.label}' may have missed events between t = {start:.9g} s and "
            f"{end:.9g} s: its witness function varies faster than it is evaluated. "
            "Pass max_check_interval=, the longest time between two evaluations",
        )

    def check(self, step: TakenStep, first: FloatArray, search: Search) -> None:
        """Compare a step, from the values with which it began, with the equations.

        Raises `ZenoError` when a function with an update has gone the wrong way.
        """
        simulation = self._simulation
        leaving = set(np.flatnonzero(first == 0.0).tolist())
        still, self._still = self._still, set()
        for k in leaving | still:
            self._check_side(k, search.sides[k] if k in leaving else search.values[k], step)
            if self._is_still(k, step):
                self._still.add(k)
            elif k in still and self._triggers(k, search.values[k]):
                self._report_rest(k, step)
        if not simulation.isolate:
            self._check_ends(step, first, search.values)
        elif search.crossing is not None:
            self._check_return(step, search.crossing, leaving | set(self._steps))
        elif self._steps and is_fixed_step(simulation.choice.method):
            soon = [k for k, steps in self._steps.items() if steps <= _TOO_FEW_STEPS]
            self.blurred |= {self._entry(k) for k in soon if self._turns_blurred(k, step)}
        self._steps = {k: n + 1 for k, n in self._steps.items() if n < FEW_STEPS}
        if search.crossing is not None:
            entries = simulation.agenda.witnesses
            self._steps |= {entries.index(entry): 1 for entry in search.crossing.entries}

    def _check_side(self, k: int, side: float, step: TakenStep) -> None:
        """Look at a function that leaves its surface to a side where a crossing would lead it."""
        if not self._triggers(k, side):
            return
        tendency = self._tendency(k, float(step.t_old), step.x_old, step)
        if tendency * side < 0.0:
            self._report(k, step)
        elif tendency == 0.0 and self._was_brought(k) and self._begins_at_rest(k, step):
            self._report_rest(k, step)

    def _triggers(self, k: int, side: float) -> bool:
        """Return whether a function gets to a side by a crossing."""
        return self._entry(k).witness.triggers(-side, side)

    def _was_brought(self, k: int) -> bool:
        """Return whether its update may have brought a function to where it is."""
        surfaces = self._simulation.surfaces
        return surfaces.jumped and k in surfaces.triggered and self._has_update(k)

    def _is_still(self, k: int, step: TakenStep) -> bool:
        """Return whether a function has not moved since its update, as far as a method can see."""
        if not self._was_brought(k):
            return False
        start = self._values(float(step.t_old), step.x_old)[k]
        return bool(self._values(float(step.t), step.x)[k] == start)

    def _begins_at_rest(self, k: int, step: TakenStep) -> bool:
        """Return whether the rate at the beginning explains nothing of what a function does."""
        start, end = float(step.t_old), float(step.t)
        try:
            ahead = step.x_old + (end - start) * self._rate(start, step.x_old)
            base = self._values(start, step.x_old)[k]
            predicted = self._values(end, ahead)[k] - base
        except (FlexureError, ArithmeticError, ValueError):
            return False  # as for the tendency
        return bool(abs(predicted) < RESTING * abs(self._values(end, step.x)[k] - base))

    def _report_rest(self, k: int, step: TakenStep) -> None:
        label = self._entry(k).event.label
        raise zeno_error(
            self._simulation.system.label,
            float(step.t_old),
            f"the witness function of '{label}' at rest on zero, where its update has brought it, "
            "and moving on from there to where the event is to keep it from",
            "Let the update end what drives it, as by a discrete state for lying on the floor",
        )

    def _check_ends(self, step: TakenStep, first: FloatArray, values: FloatArray) -> None:
        """Look at functions that updates send back from beyond their surfaces."""
        if self._begins:
            self._begins = False
            updated = [k for k in self._simulation.surfaces.resting if self._has_update(k)]
            sides = {k: self._tendency(k, float(step.t_old), step.x_old, step) for k in updated}
            self._expected = {k: side for k, side in sides.items() if side * first[k] < 0.0}
        for k, side in list(self._expected.items()):
            if values[k] * side > 0.0:
                del self._expected[k]
            elif (values[k] - first[k]) * side < 0.0:
                self._report(k, step)

    def _check_return(self, step: TakenStep, crossing: Crossing, recent: set[int]) -> None:
        """Look at how functions come back to their surfaces soon after they were there.

        A function that jumps across is beyond its surface, wherever it moves from there.
        """
        for k in sorted(recent):
            entry = self._entry(k)
            if entry in crossing.entries and self._has_update(k):
                x = step.x if crossing.time == step.t else step.dense()(crossing.time)
                tendency = self._tendency(k, crossing.time, x, step)
                ahead = self._values(crossing.time, x)[k] + tendency
                if min(tendency * crossing.before[k], ahead * crossing.before[k]) > 0.0:
                    self._report(k, step)

    def _turns_blurred(self, k: int, step: TakenStep) -> bool:
        """Return whether a function has turned back in a step with an error as large as itself."""
        # What it is by the trapezoidal rule shows the error of methods of first order.
        if not self._has_update(k):
            return False
        start, end = float(step.t_old), float(step.t)
        value = self._values(end, step.x)[k]
        if self._tendency(k, end, step.x, step) * value >= 0.0:
            return False
        rates = self._rate(start, step.x_old) + self._rate(end, step.x)
        better = self._values(end, step.x_old + 0.5 * (end - start) * rates)[k]
        return bool(abs(better - value) > _LARGE_ERROR * abs(value))

    def _rate(self, time: float, x: FloatArray) -> FloatArray:
        self._simulation.statistics.evaluations += 1
        return self._simulation.derivatives(min(time, self._clip), freeze(np.array(x)))

    def _tendency(self, k: int, time: float, x: FloatArray, step: TakenStep) -> float:
        """Return by how much a function grows or falls next by the equations, 0.0 if unclear."""
        known = 0.0
        try:
            rate = self._rate(time, x)
            base = self._values(time, x)[k]
            ahead = first_distance(float(step.t_old), float(step.t))
            while 0.0 < ahead <= REACH * (step.t - step.t_old):
                change = float(self._values(time + ahead, x + ahead * rate)[k] - base)
                if is_clear(known, change):
                    return change
                known = change
                ahead *= FURTHER
        except (FlexureError, ArithmeticError, ValueError):
            pass  # the equations end here, and say so where they are needed
        return 0.0

    def _values(self, time: float, x: FloatArray) -> FloatArray:
        """Evaluate all witness functions anywhere."""
        self._store.set_motion(time, freeze(np.array(x)))
        return self._simulation.surfaces.values()

    def _entry(self, k: int) -> Entry:
        return self._simulation.agenda.witnesses[k]

    def _has_update(self, k: int) -> bool:
        return self._entry(k).is_update

    def _report(self, k: int, step: TakenStep) -> None:
        """Raise an error, or warn where nothing but a publish is missed."""
        simulation, entry = self._simulation, self._entry(k)
        method = method_name(simulation.choice.method)
        time, width = float(step.t_old), step.t - step.t_old
        missed = (
            f"a step of {width:.3g} s in which {method} does not see "
            f"the witness function of '{entry.event.label}' leave zero and come back"
        )
        advice = "Take smaller steps or tolerances"
        if self._has_update(k):
            raise zeno_error(simulation.system.label, time, missed, advice)
        text = f"'{entry.event.label}' may have missed events at t = {time:.9g} s: found {missed}"
        self.warn_of(entry, f"{text}. {advice}")
