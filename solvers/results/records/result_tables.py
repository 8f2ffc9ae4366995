"""Notebook display of runs and responses: outcomes, and small drawings of signals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.interface.html import code, escaped, fold, heading, lines, note
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.tables import Table
from flexure.solvers.results.records.statistics import Statistics
from flexure.solvers.tracing.signals import Reader

if TYPE_CHECKING:
    from flexure.solvers.results.measures.disturbances import DisturbanceResponse
    from flexure.solvers.results.measures.step_responses import StepResponse
    from flexure.solvers.results.records.result import SimulationResult
    from flexure.solvers.results.records.stored_results import StoredResult

_SIGNALS = 4  # that are drawn
_NAMES = 60  # of signals in a table
POINTS = 240  # of a line
_WIDTH, _HEIGHT = 300.0, 90.0  # of the panel, in pixels
_LEFT, _ABOVE, _BELOW = 4.0, 5.0, 16.0
_LINES = 6  # components of a signal
#: Light enough for dark notebooks and dark enough for light ones.
_COLORS = ("#3d7fc4", "#d0722b", "#3a9a66", "#9a6fc8", "#888888", "#cc4b4b")


def result_pieces(result: SimulationResult) -> Iterator[str]:
    """Show the outcome of a run, its foremost signals, and its statistics."""
    time = result.time
    about = f"{result.outcome}, t = {time[0]:g} to {time[-1]:g} s, {result.statistics.steps} steps"
    yield heading("Simulation", result.system.label, about)
    if result.outcome != "completed":
        yield note(result.message)
    with suppress(Exception):  # of a run that failed, there may be none to be had
        names = result.foremost[:_SIGNALS]
        grid = np.linspace(time[0], time[-1], POINTS)
        for name, values in zip(names, result.sample_all(names, grid), strict=True):
            yield thumbnail(name, result.resolve(name).unit, grid, values)
    units = ((handle.path, Reader(handle, None).unit) for handle in result._handles())
    yield from _folded(result.statistics, Table(("path", "unit"), units))


def stored_pieces(stored: StoredResult) -> Iterator[str]:
    """Show the outcome of a run from a file, its first signals, and its statistics."""
    about = f"{stored.outcome}, {len(stored.signals)} signals at {len(stored.time)} times"
    yield heading("Stored result", stored.label, about)
    if stored.outcome != "completed":
        yield note(stored.message)
    units = [(each.name, each.reader.unit) for each in stored._table.series]
    for name, unit in units[:_SIGNALS] if len(stored.time) else ():
        yield thumbnail(name, unit, *thinned(stored.time, stored[name]))
    yield from _folded(stored.statistics, Table(("path", "unit"), units))


def response_pieces(response: StepResponse | DisturbanceResponse) -> Iterator[str]:
    """Show a response with its target, and its metrics."""
    yield heading(type(response).__name__, response.name)
    levels = [response.info.target]
    yield thumbnail(
        response.name, response.unit, *thinned(response.time, response.values), levels=levels
    )
    yield lines(str(response.info))


def _folded(statistics: Statistics, signals: Table) -> Iterator[str]:
    counts = asdict(statistics)
    methods = counts.pop("methods")
    inside = Table(("count", "number"), counts.items()).to_html()
    inside += Table(("from t [s]", "method", "why"), methods[:_SIGNALS]).to_html()
    yield fold("Statistics", inside)
    yield fold("Signals", signals.to_html(_NAMES), len(signals))


def thumbnail(
    name: str, unit: str, time: FloatArray, values: FloatArray, levels: Sequence[float] = ()
) -> str:
    """Draw a signal.

    Values have the shape (k,) or (k, n), with time in seconds; what is not finite is left out.
    Broken lines mark the levels, such as a target.
    """
    columns = values.reshape(len(time), -1)
    shown = columns[:, :_LINES]
    known = np.concatenate([shown[np.isfinite(shown)], [x for x in levels if np.isfinite(x)]])
    low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
    about = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    if not 0.5 * high > 0.5 * low:  # which is drawn in the middle
        low, high = low - max(1.0, 0.5 * abs(low)), high + max(1.0, 0.5 * abs(low))
    span = 0.5 * high - 0.5 * low  # half of it, which does not overflow
    start, end = time[0], time[-1]

    def place(t: Any, y: Any) -> tuple[Any, Any]:
        across, down = (t - start) / (end - start or 1.0), (0.5 * high - 0.5 * y) / span
        return _LEFT + across * (_WIDTH - 2.0 * _LEFT), _ABOVE + down * _HEIGHT

    height = _ABOVE + _HEIGHT + _BELOW
    marks = [(low, "none"), (high, "none")]
    marks += [(level, "4,3") for level in levels if np.isfinite(level)]
    pieces = [f"<title>{escaped(name)}</title>"]
    pieces += [_line(*place(start, y), *place(end, y), dashes) for y, dashes in marks]
    for color, column in zip(_COLORS, shown.T, strict=False):
        pieces += [_path(*place(t, y), color) for t, y in _finite_runs(time, column)]
    for x, anchor, t in ((_LEFT, "start", start), (_WIDTH - _LEFT, "end", end)):
        pieces.append(
            f'<text x="{x:g}" y="{height - 4.0:g}" text-anchor="{anchor}" font-size="11" '
            f'fill="currentColor" opacity=".75">{t:.4g} s</text>'
        )
    left_out = columns.shape[1] - shown.shape[1]
    more = f", {left_out} more components" if left_out else ""
    about = f"{about} {unit}".strip() + more
    caption = f"<figcaption>{code(name)} <small>{escaped(about)}</small></figcaption>"
    size = f'width="{_WIDTH:g}" height="{height:g}" viewBox="0 0 {_WIDTH:g} {height:g}"'
    return f'<figure>{caption}<svg {size} role="img">{"".join(pieces)}</svg></figure>'


def thinned(time: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return some of the rows of a record, about as many as a line has points."""
    chosen = np.unique(np.linspace(0, len(time) - 1, POINTS).round().astype(int))
    return time[chosen], values[chosen]


def _finite_runs(time: FloatArray, values: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return the pieces of a line between what is not finite."""
    breaks = np.flatnonzero(np.diff(np.isfinite(values))) + 1
    pieces = zip(np.split(time, breaks), np.split(values, breaks), strict=True)
    return [(t, y) for t, y in pieces if len(t) and np.isfinite(y[0])]


def _path(x: FloatArray, y: FloatArray, color: str) -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.6"/>'


def _line(x1: float, y1: float, x2: float, y2: float, dashes: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    opacity = 0.25 if dashes == "none" else 0.7
    look = f'stroke="currentColor" opacity="{opacity:g}" stroke-dasharray="{dashes}"'
    return f"<line {ends} {look}/>"
