"""Tornado charts: how far each value of a plan moves a metric, the largest way on top."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import COLORS, GREY, check_target, labelled, tidy
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.sweeps.pictures.plot_columns import title_of
from flexure.solvers.sweeps.plans.plans import by_component
from flexure.solvers.sweeps.tables.regression import metric_of, only_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.sweeps.sweep import Sweep

_MOST = 25  # bars
_HALF = 0.36  # of the height of a bar


class Way(NamedTuple):
    """The effect of one value on a metric."""

    path: str  # which value
    # low, high: the metric at the lowest and highest value; NaN where a run failed.
    low: float
    high: float
    ends: tuple[float, float]  # these values

    @property
    def length(self) -> float:
        """Length of the bar; infinite if an end is unknown."""
        return float(np.nan_to_num(abs(self.high - self.low), nan=np.inf))


def plot_tornado(
    sweep: Sweep,
    metric: str | None = None,
    *,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot how far each value moves a metric from its nominal one: a tornado chart.

    If the plan changes one value at a time, as `one_at_a_time` does, the bars end at the
    metrics of these runs. For other plans, they come from the linear `regression` over all
    runs, from the 5 % to the 95 % quantile of each value, with the share of the variance that
    it explains.

    Parameters
    ----------
    metric : str, optional
        The name of the metric; the only one when omitted.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    UnknownNameError
        When there is no such metric.
    ValueRefusedError
        When nothing was varied, or too few runs have numbers.
    """
    attempt = f"Cannot plot a tornado chart of the sweep of '{sweep.system.label}'"
    check_target(ax, path, attempt)
    name = only_metric(sweep.metrics, attempt) if metric is None else metric
    numbers = metric_of(sweep.metrics, name, attempt)
    ways, center, how = _measured(sweep, numbers), float(numbers[0]) if len(sweep) else 0.0, ""
    if not ways or not np.isfinite(center):
        ways, center, how = _fitted(sweep, name)
    ways = sorted(ways, key=lambda way: way.length, reverse=True)[:_MOST]
    ax = axes_or_new(ax, figsize=(8.0, 1.6 + 0.42 * max(3, len(ways))))
    for row, way in enumerate(ways):
        _draw_bar(ax, row, way, center)
    ax.axvline(center, color="black", linewidth=1.0)
    ax.set_yticks(range(len(ways)), [labelled(w.path, _unit(sweep, w.path)) for w in ways])
    ax.set_ylim(len(ways) - 0.4, -0.6)
    ax.margins(x=0.16)
    ax.set_xlabel(labelled(name, sweep.units[name]))
    for color, text in ((COLORS[0], "at the low value"), (COLORS[1], "at the high value")):
        ax.barh([np.nan], [np.nan], color=color, label=text)
    ax.legend(loc="best", frameon=False, fontsize=9)
    tidy(ax)
    ax.yaxis.grid(False)
    ax.set_title(title_of(sweep) + how, fontsize=11)
    return saved(ax, path)


def _draw_bar(ax: Axes, row: int, way: Way, center: float) -> None:
    """Draw the two halves of a bar, and the values at its ends."""
    sides = [(way.low, way.ends[0], COLORS[0]), (way.high, way.ends[1], COLORS[1])]
    same = (way.low - center) * (way.high - center) > 0.0
    for k, (end, value, color) in enumerate(sides):
        if not np.isfinite(end):
            continue
        height = 2.0 * _HALF if not same else _HALF
        middle = row if not same else row + (k - 0.5) * _HALF
        ax.barh(middle, end - center, height=height, left=center, color=color)
        right = end > center or (end == center and k == 1)
        ax.annotate(
            f"{value:.4g}",
            (end, middle),
            xytext=(4 if right else -4, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            fontsize=8 if not same else 7,
            color=GREY,
        )


def _unit(sweep: Sweep, component: str) -> str:
    """Return the unit of a component of what was swept."""
    for path, column in sweep.values.items():
        if component in by_component({path: column[:1]}):
            return sweep.units[path]
    return ""


def _measured(sweep: Sweep, numbers: FloatArray) -> list[Way]:
    """Return what runs did in each of which one value is moved from the first run; else nothing."""
    columns = by_component(sweep.values)
    if not columns or len(sweep) < 2:
        return []
    table = np.column_stack(list(columns.values()))
    moved = table != table[0]
    if np.any(moved[1:].sum(axis=1) > 1):
        return []
    found = []
    for k, path in enumerate(columns):
        rows = [0, *np.flatnonzero(moved[:, k])]
        if len(rows) > 1:
            least, most = (rows[pick(table[rows, k])] for pick in (np.argmin, np.argmax))
            ends = (float(table[least, k]), float(table[most, k]))
            found.append(Way(path, float(numbers[least]), float(numbers[most]), ends))
    return found


def _fitted(sweep: Sweep, name: str) -> tuple[list[Way], float, str]:
    """Return what a plane through all runs does between quantiles of each value."""
    plane, columns = sweep.regression(name), by_component(sweep.values)
    known = np.isfinite(sweep.metrics[name])
    center, found = float(np.mean(sweep.metrics[name][known])), []
    for path, slope in zip(plane.paths, plane.slopes.tolist(), strict=True):
        numbers = columns[path][known]
        low, high = np.quantile(numbers, [0.05, 0.95]).tolist()
        middle = float(np.mean(numbers))
        ends = (center + slope * (low - middle), center + slope * (high - middle))
        found.append(Way(path, *ends, (low, high)))
    return found, center, f"\nplane through the runs, 5 % to 95 %, R² = {plane.r_squared:.3g}"
