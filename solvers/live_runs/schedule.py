"""The schedule of a live run: when steps are due by a clock, and how far they keep to it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError

_SLICE = 0.05  # seconds of sleep, after which a run checks whether it was stopped
_PATIENCE = 1000  # sleeps during which a clock may stand still
_PERIODS, _SECONDS = 20, 1.0  # of delay that a run makes up for
_LEAST, _PER_DECADE, _BINS = 1e-7, 100, 1000  # of durations, in seconds


class Clock(Protocol):
    """The clock of a live run."""

    def now(self) -> float:
        """Return the time in seconds, from any beginning."""

    def sleep(self, seconds: float) -> None:
        """Return after some time, at most about this one."""


class MonotonicClock:
    """The clock of this machine that never goes back."""

    now = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)


class Durations:
    """Durations of any number, in bins of 2.3 %: their quantiles, and the exact worst one."""

    def __init__(self) -> None:
        self.counts = np.zeros(_BINS, dtype=np.int64)
        self.worst, self.worst_at = 0.0, math.nan

    def add(self, seconds: float, time: float) -> None:
        """Count a duration, at a time of the run."""
        place = math.log10(seconds / _LEAST) * _PER_DECADE if seconds > _LEAST else 0.0
        self.counts[min(int(place), _BINS - 1)] += 1
        if seconds > self.worst:
            self.worst, self.worst_at = seconds, time

    def quantile(self, share: float) -> float:
        """Return the duration that a share of all do not exceed, at most 2.4 % too large."""
        total = np.cumsum(self.counts)
        if not total[-1]:
            return math.nan
        place = int(np.searchsorted(total, share * total[-1]))
        return float(min(_LEAST * 10.0 ** ((place + 1) / _PER_DECADE), self.worst))

    @staticmethod
    def edges() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return the upper ends of the bins, in seconds."""
        return _LEAST * 10.0 ** (np.arange(1, _BINS + 1) / _PER_DECADE)


class Schedule:
    """Waits until steps are due, every ``interval`` s of a clock; at once if it is 0.

    After a delay, steps follow each other at once until they are on time again. After a long one,
    or when the clock has jumped, the schedule is shifted instead, and ``tell(text)`` records it.
    """

    def __init__(self, clock: Clock, interval: float, tell: Callable[[str], None]) -> None:
        self._clock, self.interval, self._tell = clock, interval, tell
        self.most = max(2.0 * interval, min(_PERIODS * interval, _SECONDS))
        self._last = -math.inf
        self.shifted = 0.0
        self.due = 0.0

    def begin(self) -> None:
        """Let the next step be due now."""
        self.due = self.now()

    def now(self) -> float:
        """Return the time of the clock, and shift the schedule when it has gone back."""
        now: Any = self._clock.now()
        if not (isinstance(now, (int, float)) and math.isfinite(now)):
            raise ValueRefusedError(
                "Cannot follow a clock", expected="now() to be a finite time", found=repr(now)
            )
        if now < self._last:
            back = self._last - now
            self.due -= back
            self._tell(f"the clock went back by {back:.3g} s")
        self._last = float(now)
        return self._last

    def wait(self, stopped: Callable[[], bool]) -> float:
        """Wait until the next step is due; return how much later it is, in seconds."""
        now, idle = self.now(), 0
        if not self.interval:
            self.due = now
            return 0.0
        while now < self.due and not stopped():
            self._clock.sleep(min(self.due - now, _SLICE))
            before, now = now, self.now()
            idle = idle + 1 if now == before else 0
            if idle > _PATIENCE:
                raise ValueRefusedError(
                    "Cannot follow a clock",
                    expected="sleep() to let now() move on",
                    found=f"{now!r} after {_PATIENCE} sleeps",
                )
        late = max(now - self.due, 0.0)
        if late > self.most:
            self.due += late
            self.shifted += late
            self._tell(f"{late:.3g} s behind the clock: the schedule was shifted")
        return late

    def turn(self) -> None:
        """Let the step after this one be next."""
        self.due += self.interval
