"""The schedule of a live run, and its report: deadlines, jitter, partners, and events."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.drawing.formats.new_figures import Plotted
from flexure.diagrams.drawing.formats.style import BLUE, ORANGE, name_axis, tidy
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.tables import Table
from flexure.solvers.live_runs.connections.channels import Channel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


_QUANTILES = (0.5, 0.9, 0.99, 0.999)
_SHOWN = 12  # events in the text


@dataclass(frozen=True, repr=False)
class LiveReport(Answer, Plotted):
    """How a live run kept to its clock, and what its partners did.

    A step is late by the time from when it was due to when it began (jitter). It answers when its
    outputs are sent, and misses its deadline when it has not ended before the next one is due.

    The picture has the share of the steps that exceeds a delay, and the period between steps.

    Attributes
    ----------
    outcome : str
        "completed"; "stopped", by `Live.stop` or a page; "interrupted", by Ctrl-C or SIGTERM;
        "terminated", by an event of the diagram; or "failed".
    message : str
        Why, in words.
    start, end : float
        Simulated time, in seconds.
    period, rate : float
        Simulated seconds from step to step, and simulated seconds per second; infinite for "max".
    steps, missed : int
        Steps, and those that missed their deadlines.
    shifted : float
        By how much the schedule was shifted after long delays, in seconds of the clock.
    jitter, response, overrun : Durations
        How late steps began, when they answered, and by how much deadlines were missed:
        ``jitter.quantile(0.99)`` and ``jitter.worst`` are in seconds of the clock.
    partners : Table
        For each partner its paths, kind, state, numbers of values taken and refused, and the reason
        of the last refusal.
    events : tuple of (float, str)
        Lost partners, shifts of the schedule and the like, with simulated times in s; the latest
        thousand.

    See Also
    --------
    live : Run a diagram with the clock.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> report = fx.live(lag, rate="max", inputs={"u": lambda time: 1.0}).run(0.5)
    >>> report.outcome, report.steps
    ('completed', 500)
    """

    _function = "live"

    outcome: str
    message: str
    start: float
    end: float
    period: float
    rate: float
    steps: int
    missed: int
    shifted: float
    jitter: Durations
    response: Durations
    overrun: Durations
    partners: Table
    events: tuple[tuple[float, str], ...]

    def __str__(self) -> str:
        pace = "as fast as possible" if np.isinf(self.rate) else f"at rate {self.rate:g}"
        lines = [
            f"{'outcome':<10}{self.outcome}, {self.message}",
            f"{'steps':<10}{self.steps} of {_short(self.period)}, {pace}",
        ]
        if np.isfinite(self.rate):
            share = self.missed / max(self.steps, 1)
            text = f"{self.missed} ({share:.3%})" if self.missed else "none"
            if self.missed:
                late, at = self.overrun.worst, self.overrun.worst_at
                text += f", the worst {_short(late)} late at t = {at:.6g} s"
            lines.append(f"{'missed':<10}{text}")
            if self.shifted:
                lines.append(f"{'shifted':<10}{_short(self.shifted)}")
        heads = [f"{100 * share:g} %" for share in _QUANTILES]
        lines.append(" " * 10 + "".join(f"{head:<12}" for head in [*heads, "worst"]).rstrip())
        kinds = {"jitter": self.jitter} if np.isfinite(self.rate) else {}
        for name, durations in (kinds | {"response": self.response}).items():
            cells = [_short(durations.quantile(share)) for share in _QUANTILES]
            cells.append(_short(durations.worst))
            lines.append(f"{name:<10}" + "".join(f"{cell:<12}" for cell in cells).rstrip())
        if len(self.partners):
            lines += ["", str(self.partners)]
        lines += [f"t = {time:<10.6g} {text}" for time, text in self.events[:_SHOWN]]
        if len(self.events) > _SHOWN:
            lines.append(f"and {len(self.events) - _SHOWN} more events")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<LiveReport of {self.steps} steps, {self.missed} missed, jitter at most "
            f"{_short(self.jitter.worst)}, {self.outcome}>"
        )

    def _draw(self, ax: Axes) -> None:
        for durations, name, color in (
            (self.jitter, "begins late", BLUE),
            (self.response, "answers late", ORANGE),
        ):
            beyond = 1.0 - np.cumsum(durations.counts) / max(self.steps, 1)
            seen = np.flatnonzero(beyond > 0.5 / max(self.steps, 1))
            if seen.size:
                edges = 1e3 * durations.edges()[: seen[-1] + 2]
                ax.step(edges, beyond[: edges.size], where="post", color=color, label=name)
        if np.isfinite(self.rate):
            limit = 1e3 * self.period / self.rate
            ax.axvline(limit, color="0.4", linestyle="--", label="period")
        ax.set(xscale="log", yscale="log", title=f"{self.steps} steps, {self.missed} missed")
        name_axis(ax.xaxis, "delay", "ms")
        name_axis(ax.yaxis, "share of steps beyond", "")
        ax.legend()
        tidy(ax)


def _short(seconds: float) -> str:
    """Return a duration in a unit that suits it."""
    if not np.isfinite(seconds):
        return "-"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us" if seconds else "0"


@dataclass
class Figures:
    """The metrics of one run."""

    start: float
    steps: int = 0
    missed: int = 0
    outcome: str = "completed"
    message: str = ""
    jitter: Durations = field(default_factory=Durations)
    response: Durations = field(default_factory=Durations)
    overrun: Durations = field(default_factory=Durations)

    def count(
        self, due: float, late: float, answered: float, ended: float, interval: float, time: float
    ) -> None:
        """Count a step that was due at a time of the clock."""
        self.jitter.add(late, time)
        self.response.add(max(answered - due, 0.0), time)
        if interval and ended > due + interval:
            self.missed += 1
            self.overrun.add(ended - due - interval, time)

    def report(
        self,
        end: float,
        period: float,
        rate: float,
        schedule: Schedule,
        channels: Sequence[Channel],
        events: Sequence[tuple[float, str]],
    ) -> LiveReport:
        """Return the report of the run."""
        columns = ("path", "role", "partner", "state", "values", "refused", "reason")
        rows = [
            (
                each.name,
                each.role,
                repr(each.partner),
                each.state,
                each.count,
                each.refused,
                each.reason,
            )
            for each in channels
        ]
        return LiveReport(
            **(vars(self) | {"message": self.message or f"reached t = {end:.6g} s"}),
            end=end,
            period=period,
            rate=rate,
            shifted=schedule.shifted,
            partners=Table(columns, rows),
            events=tuple(events),
        )
