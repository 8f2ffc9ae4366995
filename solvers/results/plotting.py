"""Plots of signals and step responses with Matplotlib, which is imported when first needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.arguments import check_axes
from flexure.diagrams.drawing.canvas import new_figure, save_figure
from flexure.diagrams.places import path_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.results.disturbances import DisturbanceResponse
    from flexure.solvers.results.result import Signal, SimulationResult
    from flexure.solvers.results.step_responses import StepResponse

_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.5}  # behind a text
_BLUE, _GREY, _ORANGE = "#1f5a99", "#777777", "#c8641e"


def plot_signals(
    result: SimulationResult, signals: Sequence[Signal], *, path: str | Path | None = None
) -> Figure:
    """Plot signals of a simulation over time, one panel per signal.

    Parameters
    ----------
    result : SimulationResult
        Where the signals come from.
    signals : sequence of Handle or str
        What to plot.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    grid = result.fine_time()
    data = result.sample_all(signals, grid)
    figure = new_figure(figsize=(8.0, 1.2 + 1.9 * len(signals)), layout="constrained")
    axes = figure.subplots(len(signals), 1, sharex=True, squeeze=False)
    for ax, signal, values in zip(axes[:, 0], signals, data, strict=True):
        reader = result.resolve(signal)
        lines = ax.plot(grid, values, linewidth=1.6)
        if values.ndim == 1:
            lines[0].set_color(_BLUE)
        elif values.shape[1] <= 8:
            ax.legend(lines, [str(label) for label in reader.labels], frameon=False, loc="best")
        _label(ax, path_of(signal), reader.unit)
    axes[-1, 0].set_xlabel("time [s]")
    figure.suptitle(result.system.label)
    if path is not None:
        save_figure(figure, path)
    return figure


def plot_step_response(
    response: StepResponse, *, ax: Axes | None = None, path: str | Path | None = None
) -> Axes:
    """Plot a step response with its figures marked.

    Parameters
    ----------
    response : StepResponse
        What to plot.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    check_axes(ax, "Cannot plot a step response")
    if ax is None:
        ax = new_figure(figsize=(8.0, 4.8), layout="constrained").subplots()
    info = response.info
    at, change = response.at, abs(info.final - info.initial)
    if np.isfinite(change):  # a response that still moves has no final value
        ax.axhspan(
            info.final - info.band * change,
            info.final + info.band * change,
            color=_BLUE,
            alpha=0.10,
            linewidth=0,
            label=f"settling band ±{info.band:.0%}",
        )
        ax.axhline(info.final, color=_GREY, linewidth=0.9, linestyle="--")
    if np.isfinite(info.target) and info.target != info.final:
        ax.axhline(
            info.target,
            color=_ORANGE,
            linewidth=0.9,
            linestyle=":",
            label=f"target {info.target:.4g}",
        )
    ax.plot(response.time, response.values, color=_BLUE, linewidth=1.8)
    _mark_rise(ax, response)
    _mark_error(ax, response)
    if info.overshoot > 0.05:
        ax.plot(at + info.peak_time, info.peak, "o", color=_ORANGE, markersize=6)
        ax.annotate(
            f"overshoot {info.overshoot:.3g} %",
            (at + info.peak_time, info.peak),
            xytext=(8, 6),
            textcoords="offset points",
            color=_ORANGE,
            bbox=_PAPER,
        )
    if np.isfinite(info.settling_time):
        settled = at + info.settling_time
        ax.axvline(settled, color=_GREY, linewidth=0.9, linestyle="--")
        ax.annotate(
            f"settled after {info.settling_time:.3g} s",
            (settled, info.initial + 0.25 * (info.final - info.initial)),
            xytext=(6, 0),
            textcoords="offset points",
            color=_GREY,
            bbox=_PAPER,
        )
    _label(ax, response.name, response.unit)
    ax.set_xlabel("time [s]")
    ax.margins(y=0.12)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, loc="lower right")
    if path is not None:
        save_figure(ax.figure.figure, path)
    return ax


def plot_disturbance(
    response: DisturbanceResponse, *, ax: Axes | None = None, path: str | Path | None = None
) -> Axes:
    """Plot a response to a disturbance with its figures marked.

    Parameters
    ----------
    response : DisturbanceResponse
        What to plot.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    check_axes(ax, "Cannot plot a response to a disturbance")
    if ax is None:
        ax = new_figure(figsize=(8.0, 4.8), layout="constrained").subplots()
    info, time, values = response.info, response.time, response.values
    low, high = info.target - info.tolerance, info.target + info.tolerance
    ax.axhspan(low, high, color=_BLUE, alpha=0.10, linewidth=0, label="band of recovery")
    ax.axhline(info.target, color=_GREY, linewidth=0.9, linestyle="--")
    after: dict[str, Any] = {
        "where": time >= info.at,
        "color": _ORANGE,
        "alpha": 0.15,
        "linewidth": 0,
    }
    ax.fill_between(time, info.target, values, label=f"IAE {info.iae:.4g}", **after)
    ax.plot(time, values, color=_BLUE, linewidth=1.8)
    peak = info.at + info.peak_time
    ax.plot(peak, info.peak, "o", color=_ORANGE, markersize=6)
    ax.annotate(
        f"deviation {info.peak_deviation:.3g}",
        (peak, info.peak),
        xytext=(8, 6),
        textcoords="offset points",
        color=_ORANGE,
        bbox=_PAPER,
    )
    if np.isfinite(info.recovery_time):
        recovered = info.at + info.recovery_time
        ax.axvline(recovered, color=_GREY, linewidth=0.9, linestyle="--")
        ax.annotate(
            f"recovered after {info.recovery_time:.3g} s",
            (recovered, info.target + 0.5 * (info.peak - info.target)),
            xytext=(6, 0),
            textcoords="offset points",
            color=_GREY,
            bbox=_PAPER,
        )
    _label(ax, response.name, response.unit)
    ax.set_xlabel("time [s]")
    ax.margins(y=0.12)
    ax.legend(frameon=False, loc="best")
    if path is not None:
        save_figure(ax.figure.figure, path)
    return ax


def _mark_rise(ax: Axes, response: StepResponse) -> None:
    """Mark the way from 10 % to 90 %."""
    info = response.info
    if not np.isfinite(info.rise_time):
        return
    times = [response.at + info.rise_start, response.at + info.rise_end]
    levels = [info.initial + share * (info.final - info.initial) for share in (0.1, 0.9)]
    ax.plot(times, levels, "o", color=_BLUE, markersize=5, markerfacecolor="white")
    ax.annotate(
        f"rise time {info.rise_time:.3g} s",
        (times[1], levels[1]),
        xytext=(10, -14),
        textcoords="offset points",
        color=_BLUE,
        bbox=_PAPER,
    )


def _mark_error(ax: Axes, response: StepResponse) -> None:
    """Mark the distance from the target at the end, if there is a target."""
    error = response.info.steady_state_error
    if not np.isfinite(error):
        return
    end, last = response.time[-1], response.values[-1]
    ax.plot([end, end], [last, last + error], color=_ORANGE, linewidth=2.5)
    ax.annotate(
        f"steady-state error {error:.3g}",
        (end, last),
        xytext=(-6, -16 if error >= 0.0 else 10),
        textcoords="offset points",
        ha="right",
        color=_ORANGE,
        bbox=_PAPER,
    )


def _label(ax: Any, name: str, unit: str) -> None:
    """Write the axis label and draw a light grid."""
    ax.set_ylabel(f"{name} [{unit}]" if unit else name)
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
