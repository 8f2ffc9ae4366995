"""The picture of a sweep in parallel coordinates: a line for each run, an axis for each column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import COLOR_MAP, RED, check_target
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.sweeps.pictures.plot_columns import (
    Column,
    add_color_bar,
    color_norm,
    columns_of,
    lacking,
    lost_runs,
    require_columns,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.sweeps.sweep import Sweep

_MOST = 20
_TICKS = 5
_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.6}


def plot_parallel(
    sweep: Sweep,
    *names: Way,
    color: Way | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot parallel coordinates: each run is a line across an axis for each column.

    Failed runs are red and dashed, as far as their values are known.

    Parameters
    ----------
    *names : str or Handle
        Metrics or paths; all of them when omitted.
    color : str or Handle, optional
        The column that gives the lines their colors; the last one when omitted.
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
        When there is no such metric or path.
    ValueRefusedError
        When these are fewer than two.
    """
    from matplotlib.collections import LineCollection

    attempt = f"Cannot plot parallel coordinates of the sweep of '{sweep.system.label}'"
    check_target(ax, path, attempt)
    columns = columns_of(sweep, names, attempt)
    require_columns(columns, 2, _MOST, attempt)
    shade = columns[-1] if color is None else columns_of(sweep, [color], attempt)[0]
    require_columns([shade], 1, 1, attempt)
    wide = min(2.0 + 1.6 * len(columns), 18.0)
    ax = axes_or_new(ax, figsize=(max(6.0, wide), 4.8))
    heights = np.column_stack([_heights(column) for column in columns])
    points = np.stack([np.broadcast_to(np.arange(len(columns)), heights.shape), heights], axis=2)
    lost = lost_runs(sweep)
    whole = ~lost & np.isfinite(heights).all(axis=1) & shade.known
    numbers = shade.numbers[whole]  # of which the unusual ones are drawn on top
    order = np.flatnonzero(whole)
    if numbers.size:
        order = order[np.argsort(np.abs(numbers - np.median(numbers)))]
    alpha = float(np.clip(60.0 / max(1, len(order)), 0.12, 0.8))
    norm, extend = color_norm(shade.numbers)
    lines = LineCollection(
        list(points[order]), cmap=COLOR_MAP, norm=norm, alpha=alpha, linewidths=1.0
    )
    lines.set_array(shade.numbers[order])
    ax.add_collection(lines)
    for run in np.flatnonzero(lost):
        known = np.isfinite(heights[run])
        ax.plot(*points[run][known].T, color=RED, linewidth=0.9, linestyle="--", alpha=0.7)
    _draw_axes(ax, columns)
    bar = LineCollection([], cmap=COLOR_MAP, norm=norm)  # whose colors hide nothing
    add_color_bar(ax, bar, shade, extend)
    ax.set_title(title_of(sweep, lacking(sweep, shade)), fontsize=11, pad=24)
    return saved(ax, path)


def _heights(column: Column) -> FloatArray:
    """Return where the numbers of a column are on its axis, from 0 to 1."""
    low, high = _ends(column)
    return (column.numbers - low) / (high - low)


def _ends(column: Column) -> tuple[float, float]:
    """Return what is at the ends of an axis."""
    numbers = column.numbers[column.known]
    low, high = float(np.min(numbers)), float(np.max(numbers))
    room = 0.5 * abs(low) or 0.5
    return (low - room, high + room) if low == high else (low, high)


def _draw_axes(ax: Axes, columns: Sequence[Column]) -> None:
    """Draw an axis for each column, with its label above and some of its numbers."""
    from matplotlib.ticker import MaxNLocator

    round_numbers = MaxNLocator(_TICKS, steps=[1, 2, 5, 10]).tick_values
    for k, column in enumerate(columns):
        low, high = _ends(column)
        ax.axvline(k, color="black", linewidth=0.8, zorder=3)
        numbers = np.asarray(round_numbers(low, high))
        for number in numbers[(numbers >= low) & (numbers <= high)]:
            share = (number - low) / (high - low)
            ax.plot([k - 0.015, k + 0.015], [share, share], color="black", linewidth=0.8, zorder=3)
            ax.annotate(
                f"{number:.6g}",
                (k, share),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                bbox=_PAPER,
                zorder=4,
            )
    ax.set_xticks(
        range(len(columns)),
        [f"{c.name}\n[{c.unit}]" if c.unit else c.name for c in columns],
        fontsize=9,
        rotation=0 if len(columns) <= 6 else 20,
    )
    ax.set_yticks([])
    ax.set_xlim(-0.1, len(columns) - 1 + 0.35)
    ax.set_ylim(-0.04, 1.04)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
