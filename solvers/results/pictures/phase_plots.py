"""Phase portraits: one signal of a run over another one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import check_axes
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, check_file, check_title, name_axis, tidy
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.step_responses import require_single
from flexure.solvers.results.pictures.panels import Scales, arrange

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.results.records.result import Signal, SimulationResult

_ARROWS = (0.15, 0.45, 0.75)  # along the way
_POINTS = 8000


def plot_phase(
    result: SimulationResult,
    x: Signal,
    y: Signal,
    *,
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot one signal over another one: a phase portrait, from an open dot to a filled one.

    Parameters
    ----------
    x, y : Handle or str
        Signals with one component.
    units, title, path
        As for `plot`.
    ax : matplotlib.axes.Axes, optional
        Where to plot, beside the portraits that are there; a new figure when omitted.

    Returns
    -------
    matplotlib.axes.Axes
    """
    attempt = f"Cannot plot a phase portrait of '{result.system.label}'"
    check_axes(ax, attempt)
    check_file(path, attempt)
    check_title(title, attempt)
    scales = Scales(units, attempt)
    grid = result.fine_time(_POINTS)
    data = result.sample_all([x, y], grid)
    for way, values in zip((x, y), data, strict=True):
        name = path_of(way)
        require_single(values, 1, f"{attempt} of '{name}'", f"Name one, as in '{name}[0]'")
    (first,), (second,) = (p.curves for p in arrange(result.system, [[x], [y]], scales, attempt))
    if ax is None:
        ax = new_figure(figsize=(6.4, 4.8), layout="constrained").subplots()
        ax.set_title(result.system.label if title is None else title)
    elif title is not None:
        ax.set_title(title)
    number = sum(line.get_gid() == "phase" for line in ax.lines)
    color = COLORS[number % len(COLORS)]
    points = np.column_stack([first.drawn(data[0]), second.drawn(data[1])])
    (line,) = ax.plot(*points.T, color=color, linewidth=1.7)
    line.set_gid("phase")
    ax.plot(*points[0], "o", color=color, markersize=6, markerfacecolor="white", zorder=4)
    ax.plot(*points[-1], "o", color=color, markersize=6, zorder=4)
    name_axis(ax.xaxis, first.name, first.unit, most=60)
    name_axis(ax.yaxis, second.name, second.unit, most=40)
    tidy(ax)
    _draw_arrows(ax, points[np.isfinite(points).all(axis=1)], color)
    return saved(ax, path)


def _draw_arrows(ax: Axes, points: FloatArray, color: str) -> None:
    """Draw the direction of time at some places of the way, as far as there is one."""
    if len(points) < 2:
        return
    size = np.ptp(points, axis=0)
    size[size == 0.0] = 1.0
    steps = np.diff(points, axis=0) / size
    way = np.cumsum(np.hypot(*steps.T))
    if not way[-1] > 0.0:
        return
    style: dict[str, Any] = {"arrowstyle": "-|>,head_width=0.3,head_length=0.6", "color": color}
    for share in _ARROWS:
        k = int(np.searchsorted(way, share * way[-1]))
        length = np.hypot(*steps[k])
        tail = points[k + 1] - 1e-3 * size * steps[k] / length
        arrow = ax.annotate("", tuple(points[k + 1]), xytext=tuple(tail), arrowprops=style)
        arrow.set_in_layout(False)
