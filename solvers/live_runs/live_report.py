"""Reports of live runs: deadlines, jitter, partners, and events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.checks.arguments import check_axes
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import BLUE, ORANGE, check_file, name_axis, tidy
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.tables import Table
from flexure.solvers.live_runs.connections.channels import Channel
from flexure.solvers.live_runs.schedule import Durations, Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUANTILES = (0.5, 0.9, 0.99, 0.999)
_SHOWN = 12  # events in the text


@dataclass(frozen=True, repr=False)
class LiveReport(Answer):
    """How a live run kept to its clock, and what its partners did.

    A step is late by the time from when it was due to when it began (jitter). It answers when its
    outputs are sent, and misses its deadline when it has not ended before the next one is due.

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

    def plot(self, *, ax: Axes | None = None, path: str | Path | None = None) -> Axes:
        """Plot which share of the steps exceeds a delay, and the period between steps.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to plot; a new figure when omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        attempt = "Cannot plot a live run"
        check_axes(ax, attempt)
        check_file(path, attempt)
        ax = axes_or_new(ax)
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
        return saved(ax, path)


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
