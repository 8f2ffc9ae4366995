"""Pictures of distributions in a sweep: histograms, scatter plots, and bands of signals over time.

Bands are quantiles of the runs at each time, beside the nominal run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from flexure.diagrams.checks.arguments import flag, is_whole, items_of, require
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError
from flexure.diagrams.contexts.value_places import Way, path_of
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import (
    COLOR_MAP,
    COLORS,
    GREY,
    RED,
    check_file,
    labelled,
    tidy,
)
from flexure.diagrams.values.arrays import FloatArray
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
from flexure.solvers.sweeps.tables.sweep_tables import AbsentModel
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.sweeps.sweep import Sweep

_MOST_PANELS, _MOST_ROWS = 24, 10
_MOST_BINS = 1000
_QUANTILES = (0.05, 0.5, 0.95)
_REACH = 1.5  # of an axis beyond the outer quantiles, in ways between these
_FEW = 12  # runs that are drawn as lines, as quantiles of so few say little
_MOST_SIGNALS = 12  # panels
#: What a panel is called, its signal, and which component that is, if it has several.
Panel: TypeAlias = tuple[str, str, int | None]


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


def plot_responses(
    sweep: Sweep,
    *signals: Signal,
    bands: tuple[float, ...] = (0.9, 0.5),
    nominal: bool = True,
    path: str | Path | None = None,
) -> Figure:
    """Plot sampled signals over time: the median of all runs, bands, and the nominal run.

    Parameters
    ----------
    *signals : Handle or str
        Sampled signals; all of them when omitted. Components are drawn in a panel each.
    bands : tuple of float
        The shares of the runs that are within the bands at each time: 0.9 from the 5 % to the
        95 % quantile.
    nominal : bool
        Whether to simulate what the runs have in common, without any of the values of the plan,
        and to draw it.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    UnknownNameError
        When a signal was not sampled.
    ValueRefusedError
        When there is none, no run has numbers, or a share is not between 0 and 1.
    """
    attempt = f"Cannot plot the signals of the sweep of '{sweep.system.label}'"
    check_file(path, attempt)
    flag(nominal, "nominal", attempt)
    shares = _checked(bands, attempt)
    panels = _panels(sweep, signals or sweep.signals)
    if not 1 <= len(panels) <= _MOST_SIGNALS:
        raise ValueRefusedError(
            attempt,
            expected=f"1 to {_MOST_SIGNALS} sampled signals and components of them",
            found=f"{len(panels)}",
            remedy="Name those that are to be kept and shown in signals= of the sweep",
        )
    if not len(sweep) or not len(sweep.times):
        raise ValueRefusedError(attempt, expected="runs and times of samples", found="none")
    reference = _nominal(sweep, panels) if nominal else None
    figure = new_figure(figsize=(8.0, 1.7 + 2.6 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (name, signal, k) in zip(axes, panels, strict=True):
        values = sweep[signal][..., k] if k is not None else sweep[signal]
        _draw_bands(ax, sweep.times, values, shares)
        if reference:
            known = reference[signal]
            line = known[..., k] if k is not None else known
            ax.plot(
                sweep.times, line, color=COLORS[1], linewidth=1.6, linestyle="--", label="nominal"
            )
        ax.set_ylabel(labelled(name, sweep.units[signal]))
        tidy(ax)
        ax.margins(x=0.0)
    if reference == {}:
        axes[0].plot([], [], color="none", label="(the nominal run failed)")
    axes[-1].set_xlabel("time [s]")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.suptitle(title_of(sweep), fontsize=11)
    return saved(figure, path)


def _checked(bands: Any, attempt: str) -> list[float]:
    """Return the shares of bands, the widest one first."""
    items = items_of(bands, "shares of the runs between 0 and 1, such as (0.9, 0.5)", attempt)
    for share in items:
        number = isinstance(share, (int, float, np.number)) and not isinstance(share, bool)
        require(number and 0.0 < share <= 1.0, share, attempt, "shares of the runs in (0, 1]")
    return sorted(map(float, items), reverse=True)


def _panels(sweep: Sweep, signals: Sequence[Signal]) -> list[Panel]:
    """Return a panel for each component of some signals."""
    found: list[Panel] = []
    for signal in signals:
        path, values = path_of(signal), sweep[signal]
        if values.ndim == 3:
            reader = sweep._readers[path]
            found += [(f"{path}[{label}]", path, k) for k, label in enumerate(reader.labels)]
        else:
            found.append((path, path, None))
    return found


def _nominal(sweep: Sweep, panels: Sequence[Panel]) -> dict[str, FloatArray] | None:
    """Return the signals of a run with what all runs have in common; none where it fails."""
    if sweep.plan is None or isinstance(sweep._variants, AbsentModel):
        return None
    with suppress(FlexureError):
        result = sweep._settings.simulate(sweep._variants.base())
        reached = sweep.times[sweep.times <= result.time[-1]]
        found = {}
        for path in {path for _, path, _ in panels}:
            values = np.asarray(result.sample(path, reached))
            found[path] = np.full((len(sweep.times), *values.shape[1:]), np.nan)
            found[path][: len(reached)] = values
        return found
    return {}


def _draw_bands(ax: Any, times: FloatArray, values: FloatArray, shares: Sequence[float]) -> None:
    """Draw quantiles at each time of the runs that came so far; single lines of few runs."""
    there = np.isfinite(values).any(axis=0)
    shown, at = values[:, there], times[there]
    if len(values) <= _FEW:
        ax.plot(at, shown.T, color=COLORS[0], linewidth=1.0, alpha=0.6)
        ax.plot([], [], color=COLORS[0], linewidth=1.0, label=f"{len(values)} runs")
        return
    for k, share in enumerate(shares):
        low, high = np.nanquantile(shown, [0.5 - 0.5 * share, 0.5 + 0.5 * share], axis=0)
        ax.fill_between(
            at,
            low,
            high,
            color=_pale(0.2 + 0.2 * k),
            linewidth=0,
            label=f"{100.0 * share:g} % of the runs",
        )
    ax.plot(at, np.nanmedian(shown, axis=0), color=COLORS[0], linewidth=1.8, label="median")


def _pale(share: float) -> tuple[float, ...]:
    """Return the color of a band, which is that of its entry in the legend, too."""
    from matplotlib.colors import to_rgb

    return tuple(1.0 - min(share, 1.0) * (1.0 - part) for part in to_rgb(COLORS[0]))
