"""Pictures of responses to steps and disturbances, with their figures marked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.arguments import check_axes
from flexure.diagrams.drawing.canvas import new_figure, save_figure
from flexure.diagrams.drawing.style import BLUE, GREY, ORANGE, PAPER, labelled, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.results.disturbances import DisturbanceResponse
    from flexure.solvers.results.step_responses import StepResponse


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
            color=BLUE,
            alpha=0.10,
            linewidth=0,
            label=f"settling band ±{info.band:.0%}",
        )
        ax.axhline(info.final, color=GREY, linewidth=0.9, linestyle="--")
    if np.isfinite(info.target) and info.target != info.final:
        ax.axhline(
            info.target,
            color=ORANGE,
            linewidth=0.9,
            linestyle=":",
            label=f"target {info.target:.4g}",
        )
    ax.plot(response.time, response.values, color=BLUE, linewidth=1.8)
    _mark_rise(ax, response)
    _mark_error(ax, response)
    if info.overshoot > 0.05:
        ax.plot(at + info.peak_time, info.peak, "o", color=ORANGE, markersize=6)
        ax.annotate(
            f"overshoot {info.overshoot:.3g} %",
            (at + info.peak_time, info.peak),
            xytext=(8, 6),
            textcoords="offset points",
            color=ORANGE,
            bbox=PAPER,
        )
    if np.isfinite(info.settling_time):
        settled = at + info.settling_time
        ax.axvline(settled, color=GREY, linewidth=0.9, linestyle="--")
        ax.annotate(
            f"settled after {info.settling_time:.3g} s",
            (settled, info.initial + 0.25 * (info.final - info.initial)),
            xytext=(6, 0),
            textcoords="offset points",
            color=GREY,
            bbox=PAPER,
        )
    ax.set_ylabel(labelled(response.name, response.unit))
    tidy(ax)
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
    ax.axhspan(low, high, color=BLUE, alpha=0.10, linewidth=0, label="band of recovery")
    ax.axhline(info.target, color=GREY, linewidth=0.9, linestyle="--")
    after: dict[str, Any] = {
        "where": time >= info.at,
        "color": ORANGE,
        "alpha": 0.15,
        "linewidth": 0,
    }
    ax.fill_between(time, info.target, values, label=f"IAE {info.iae:.4g}", **after)
    ax.plot(time, values, color=BLUE, linewidth=1.8)
    peak = info.at + info.peak_time
    ax.plot(peak, info.peak, "o", color=ORANGE, markersize=6)
    ax.annotate(
        f"deviation {info.peak_deviation:.3g}",
        (peak, info.peak),
        xytext=(8, 6),
        textcoords="offset points",
        color=ORANGE,
        bbox=PAPER,
    )
    if np.isfinite(info.recovery_time):
        recovered = info.at + info.recovery_time
        ax.axvline(recovered, color=GREY, linewidth=0.9, linestyle="--")
        ax.annotate(
            f"recovered after {info.recovery_time:.3g} s",
            (recovered, info.target + 0.5 * (info.peak - info.target)),
            xytext=(6, 0),
            textcoords="offset points",
            color=GREY,
            bbox=PAPER,
        )
    ax.set_ylabel(labelled(response.name, response.unit))
    tidy(ax)
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
    ax.plot(times, levels, "o", color=BLUE, markersize=5, markerfacecolor="white")
    ax.annotate(
        f"rise time {info.rise_time:.3g} s",
        (times[1], levels[1]),
        xytext=(10, -14),
        textcoords="offset points",
        color=BLUE,
        bbox=PAPER,
    )


def _mark_error(ax: Axes, response: StepResponse) -> None:
    """Mark the distance from the target at the end, if there is a target."""
    error = response.info.steady_state_error
    if not np.isfinite(error):
        return
    end, last = response.time[-1], response.values[-1]
    ax.plot([end, end], [last, last + error], color=ORANGE, linewidth=2.5)
    ax.annotate(
        f"steady-state error {error:.3g}",
        (end, last),
        xytext=(-6, -16 if error >= 0.0 else 10),
        textcoords="offset points",
        ha="right",
        color=ORANGE,
        bbox=PAPER,
    )


__all__ = ["plot_disturbance", "plot_step_response"]
