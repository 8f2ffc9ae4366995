"""The instants of a period: when updates are due, and when equations are not smooth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.events import Event, Periodic
from flexure.solvers.simulation.events.agenda import Entry

SAME = 1e-9  # part of a period: instants that are closer to each other are one
MOST = 10**5  # instants in a period


class Instants:
    """The schedule of a period from one instant of the slowest clock to the next.

    ``clocks`` maps the clocks of the updates to the updates of each.
    """

    def __init__(
        self, context: Context, clocks: Mapping[Periodic, list[Entry]], period: float, attempt: str
    ) -> None:
        self._context, self._clocks = context, clocks
        self._period, self._attempt = period, attempt
        self._refuse_what_does_not_fit()
        # The first instant of the slowest clock that is not before the time of the context.
        self.start = float(context.time)
        if clocks:
            slowest = max(clocks, key=lambda clock: clock.period)
            self.start = slowest.next_time(np.nextafter(self.start, -np.inf))
        self.ticks = self._ticks()  # the times after an instant at which updates are due, ascending

    def _refuse_what_does_not_fit(self) -> None:
        for clock, due in self._clocks.items():
            what, count = due[0].event.label, self._period / clock.period
            if round(count) < 1 or abs(count - round(count)) > SAME * count:
                raise EvaluationError(
                    self._attempt,
                    expected="a period in which every update is due a whole number of times",
                    found=f"period={self._period:g} s and '{what}', which is due every "
                    f"{clock.period:g} s",
                    remedy="Pass a whole multiple of the periods of all updates",
                )
            self._refuse_many(count, f"'{what}', which is due every {clock.period:g} s")

    def _refuse_many(self, count: float, what: str) -> None:
        if count > MOST:
            raise EvaluationError(
                self._attempt,
                expected=f"a period with at most {MOST} instants",
                found=f"period={self._period:g} s and {what}",
                remedy="Pass a shorter period",
            )

    def _ticks(self) -> list[float]:
        phases: list[float] = []
        for clock in self._clocks:
            first = (clock.offset - self.start) % clock.period
            count = round(self._period / clock.period)
            phases += [(first + k * clock.period) % self._period for k in range(count)]
        same = SAME * self._period
        ends = same, self._period - same
        phases = sorted(phase if ends[0] < phase < ends[1] else 0.0 for phase in phases)
        return [p for k, p in enumerate(phases) if k == 0 or p - phases[k - 1] > same]

    def stops(self, *, smooth: bool) -> list[float]:
        """Return the ticks, the ends and, unless equations are smooth, the times of breaks."""
        fixed = np.unique([0.0, *self.ticks, self._period])
        breaks = np.array([] if smooth else self._breaks())
        after = np.searchsorted(fixed, breaks).clip(1, len(fixed) - 1)
        distance = np.minimum(breaks - fixed[after - 1], fixed[after] - breaks)
        apart = breaks[distance > SAME * self._period]
        return sorted({*fixed.tolist(), *apart.tolist()})

    def _breaks(self) -> list[float]:
        """Return the times after an instant at which equations are not smooth."""
        store = self._context.store
        breaks: list[float] = []
        for leaf in self._context.leaves():
            time = self.start
            while leaf.system.has_break_times:
                store.set_motion(time, store.x)
                following = float(leaf.system.calc_next_break_time(leaf))
                if not time < following < self.start + self._period:
                    break
                breaks.append(following - self.start)
                what = f"'{leaf.system.label}', whose equations are not smooth at more than that"
                self._refuse_many(len(breaks), what)
                time = following
        store.set_motion(self.start, store.x)
        return breaks

    def due(self, phase: float) -> dict[Event, float]:
        """Return the updates that are due some time after an instant, and exactly when."""
        found: dict[Event, float] = {}
        for clock, entries in self._clocks.items():
            count = (phase + self.start - clock.offset) / clock.period
            if abs(count - round(count)) * clock.period <= SAME * self._period:
                time = clock.offset + round(count) * clock.period
                found |= dict.fromkeys([entry.event for entry in entries], time)
        return found

    def time(self, phase: float) -> float:
        """Return some time after an instant: that of what is due there, up to the last digit."""
        return next(iter(self.due(phase).values()), self.start + phase)
