"""Pictures of how the numbers of a sweep are distributed: histograms and scatter plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import is_whole, require
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLOR_MAP, COLORS, GREY, RED, check_file, tidy
from flexure.solvers.sweeps.pictures.plot_columns import (
    Column,
    add_color_bar,
    color_norm,
    columns_of,
    few_ticks,
    lacking,
    lost_runs,
    require_columns,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.sweeps.sweep import Sweep

_MOST_PANELS, _MOST_ROWS = 24, 10
_MOST_BINS = 1000
_QUANTILES = (0.05, 0.5, 0.95)
_REACH = 1.5  # of an axis beyond the outer quantiles, in ways between these


def plot_histogram(
    sweep: Sweep, *names: Way, bins: int | None = None, path: str | Path | None = None
) -> Figure:
    """Plot histograms of metrics or values, with mean, and the 5 %, 50 % and 95 % quantiles.

    Parameters
    ----------
    *names : str or Handle
        Metrics or paths; all metrics when omitted.
    bins : int, optional
        How many bars; by the number and spread of the runs when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    UnknownNameError
        When there is no such metric or path.
    ValueRefusedError
        When there is nothing to plot.
    """
    attempt = f"Cannot plot histograms of the sweep of '{sweep.system.label}'"
    check_file(path, attempt)
    fits = bins is None or (is_whole(bins) and 1 <= bins <= _MOST_BINS)
    require(fits, bins, attempt, f"bins to be an integer in [1, {_MOST_BINS}]")
    columns = columns_of(sweep, names or tuple(sweep.metrics), attempt)
    require_columns(columns, 1, _MOST_PANELS, attempt)
    wide = min(len(columns), 3)
    rows = math.ceil(len(columns) / wide)
    figure = new_figure(figsize=(2.0 + 3.2 * wide, 0.9 + 2.9 * rows), layout="constrained")
    panels = figure.subplots(rows, wide, squeeze=False).ravel()
    for ax, column in zip(panels, columns, strict=False):
        _draw_histogram(ax, column, bins, lacking(sweep, column))
    for ax in panels[len(columns) :]:
        ax.set_visible(False)
    figure.suptitle(f"{title_of(sweep)}; lines at 5 %, 50 % and 95 %", fontsize=11)
    return saved(figure, path)


def _draw_histogram(ax: Axes, column: Column, bins: int | None, without: int) -> None:
    """Draw one histogram, with its quantiles above."""
    numbers = column.numbers[column.known]
    low, high = np.quantile(numbers, _QUANTILES[::2])
    room = _REACH * (high - low) or np.inf
    inside = numbers[(numbers >= low - room) & (numbers <= high + room)]
    edges = np.histogram_bin_edges(inside, "auto" if bins is None else bins)
    ax.hist(inside, edges.tolist(), color=COLORS[0], alpha=0.85)
    tidy(ax)
    ax.xaxis.grid(False)
    marks: dict[str, tuple[float, float]] = {}
    for quantile, value in zip(_QUANTILES, np.quantile(numbers, _QUANTILES), strict=True):
        style = "-" if quantile == 0.5 else "--"
        ax.axvline(value, color=COLORS[1], linewidth=1.2, linestyle=style)
        marks.setdefault(f"{value:.3g}", (quantile, value))
    for text, (quantile, value) in marks.items():
        ax.annotate(
            text,
            (value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha={0.05: "right", 0.5: "center", 0.95: "left"}[quantile],
            fontsize=8,
            color=COLORS[1],
        )
    said = f"mean {numbers.mean():.4g}, σ {numbers.std():.2g}"
    if len(inside) < len(numbers):
        said += f", {len(numbers) - len(inside)} beyond"
    if without:
        said += f", {without} without"
    ax.set_xlabel(f"{column.label}\n{said}", fontsize=9)
    ax.set_ylabel("runs", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.margins(x=0.08)


def plot_scatter(
    sweep: Sweep, *names: Way, color: Way | None = None, path: str | Path | None = None
) -> Figure:
    """Plot a matrix of scatter plots: each of several columns over each other one.

    On its diagonal are histograms. Failed runs are red crosses, where their values are known.

    Parameters
    ----------
    *names : str or Handle
        Metrics or paths; all of them when omitted.
    color : str or Handle, optional
        A metric or path that gives the points their colors.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    UnknownNameError
        When there is no such metric or path.
    ValueRefusedError
        When these are fewer than two, or more than ten.
    """
    attempt = f"Cannot plot a scatter matrix of the sweep of '{sweep.system.label}'"
    check_file(path, attempt)
    columns = columns_of(sweep, names, attempt)
    require_columns(columns, 2, _MOST_ROWS, attempt)
    shade = None if color is None else columns_of(sweep, [color], attempt)[0]
    if shade is not None:
        require_columns([shade], 1, 1, attempt)
    size = len(columns)
    side = max(1.35, min(2.2, 11.0 / size))
    wide = side * size + (2.0 if shade else 0.8)
    figure = new_figure(figsize=(max(5.0, wide), max(4.2, side * size + 0.7)), layout="constrained")
    panels = figure.subplots(size, size, squeeze=False, sharex="col")
    shown: Any = None
    for i, below in enumerate(columns):
        for j, left in enumerate(columns):
            ax = panels[i, j]
            if i < j:
                ax.set_axis_off()
                continue
            if i == j:
                ax.hist(left.numbers[left.known], bins=24, color=COLORS[0], alpha=0.85)
            else:
                shown = _draw_points(ax, sweep, left, below, shade)
            _dress(ax, i, j, columns)
    if shade is not None and shown is not None:
        add_color_bar(panels, shown, shade, color_norm(shade.numbers)[1])
    figure.align_labels()
    figure.suptitle(title_of(sweep, max(lacking(sweep, each) for each in columns)), fontsize=11)
    return saved(figure, path)


def _draw_points(ax: Axes, sweep: Sweep, x: Column, y: Column, shade: Column | None) -> Any:
    """Draw one column over another one; return what has colors."""
    lost = lost_runs(sweep)
    size = float(np.clip(3000.0 / max(1, len(sweep)), 1.5, 22.0))
    known = ~lost & x.known & y.known
    dots: dict[str, Any] = {"s": size, "linewidths": 0.0, "alpha": 0.75}
    if shade is None:
        ax.scatter(x.numbers[known], y.numbers[known], color=COLORS[0], **dots)
        shown = None
    else:
        plain = known & ~shade.known
        ax.scatter(x.numbers[plain], y.numbers[plain], color=GREY, **dots)
        known &= shade.known
        shown = ax.scatter(
            x.numbers[known],
            y.numbers[known],
            c=shade.numbers[known],
            cmap=COLOR_MAP,
            norm=color_norm(shade.numbers)[0],
            **dots,
        )
    crossed = lost & x.known & y.known
    ax.scatter(x.numbers[crossed], y.numbers[crossed], marker="x", color=RED, s=22, linewidths=1.0)
    return shown


def _dress(ax: Axes, i: int, j: int, columns: Sequence[Column]) -> None:
    """Write labels at the left and below, and nowhere else."""
    last = len(columns) - 1
    tidy(ax)
    ax.tick_params(labelsize=8)
    few_ticks(ax, 3 if last > 3 else 4)
    if i == j:
        ax.grid(False)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    if i == last:
        ax.set_xlabel(_broken(columns[j]), fontsize=9)
    else:
        ax.tick_params(labelbottom=False)
    if j == 0:
        ax.set_ylabel(_broken(columns[i]), fontsize=9)
    else:
        ax.tick_params(labelleft=False)


def _broken(column: Column) -> str:
    """Return a label that is broken before its unit, and where it is long."""
    name = column.name if len(column.name) <= 18 else column.name.replace(".", ".\n", 1)
    return f"{name}\n[{column.unit}]" if column.unit else name
