"""Pictures of responses to steps and disturbances, with their metrics marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.drawing.formats.style import BLUE, GREY, ORANGE, name_axis, tidy
from flexure.solvers.results.pictures.free_labels import Label, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.results.measures.disturbances import DisturbanceResponse
    from flexure.solvers.results.measures.step_responses import StepResponse

_PLACES = 9  # along a line, at which its label can be


def draw_step_response(response: StepResponse, ax: Axes) -> None:
    """Draw a response with rise time, peak, settling time and final value marked."""
    info = response.info
    at, change = response.at, abs(info.final - info.initial)
    said: list[Label] = []
    if np.isfinite(change):  # a response that still moves has no final value
        width = info.band * change
        style: dict[str, Any] = {"color": BLUE, "alpha": 0.10, "linewidth": 0}
        ax.axhspan(info.final - width, info.final + width, **style)
    curve = _draw(ax, response)
    end = float(response.time[-1])
    if np.isfinite(change) and info.final != info.target:
        ax.axhline(info.final, color=GREY, linewidth=0.9, linestyle="--")
        said.append(_along_row(ax, f"final value {info.final:.4g}", info.final, GREY))
    if np.isfinite(info.target):
        ax.axhline(info.target, color=ORANGE, linewidth=0.9, linestyle="--")
        said.append(_along_row(ax, f"target {info.target:.4g}", info.target, ORANGE))
    if np.isfinite(info.rise_time):
        times = [at + info.rise_start, at + info.rise_end]
        levels = [info.initial + share * (info.final - info.initial) for share in (0.1, 0.9)]
        ax.plot(times, levels, "o", color=BLUE, markersize=5, markerfacecolor="white", zorder=4)
        said.append(Label(f"rise time {info.rise_time:.3g} s", (times[1], levels[1]), BLUE))
    error, last = info.steady_state_error, float(response.values[-1])
    if np.isfinite(error):
        ax.plot([end, end], [last, last + error], color=ORANGE, linewidth=2.5)
        said.append(Label(f"steady-state error {error:.3g}", (end, last), ORANGE))
    if info.overshoot > 0.05:
        peak = at + info.peak_time, info.peak
        ax.plot(*peak, "o", color=ORANGE, markersize=6, zorder=4)
        said.append(Label(f"overshoot {info.overshoot:.3g} %", peak, ORANGE))
    if np.isfinite(info.settling_time):
        settled = at + info.settling_time
        ax.axvline(settled, color=GREY, linewidth=0.9, linestyle="--")
        text = f"settled after {info.settling_time:.3g} s (±{info.band:.0%})"
        said.append(_along_column(ax, text, settled, GREY))
    place_labels(ax, said, curve, outside=True)


def draw_disturbance(response: DisturbanceResponse, ax: Axes) -> None:
    """Draw a response with its peak, its recovery and the area of its error marked."""
    info, time, values = response.info, response.time, response.values
    low, high = info.target - info.tolerance, info.target + info.tolerance
    ax.axhspan(low, high, color=BLUE, alpha=0.10, linewidth=0)
    ax.axhline(info.target, color=GREY, linewidth=0.9, linestyle="--")
    after: dict[str, Any] = {"where": time >= info.at, "color": ORANGE, "alpha": 0.15}
    ax.fill_between(time, info.target, values, linewidth=0, **after)
    curve = _draw(ax, response)
    peak = info.at + info.peak_time, info.peak
    ax.plot(*peak, "o", color=ORANGE, markersize=6, zorder=4)
    said = [
        _along_row(ax, f"target {info.target:.4g}", info.target, GREY),
        Label(f"deviation {info.peak_deviation:.3g} (IAE {info.iae:.4g})", peak, ORANGE),
    ]
    if np.isfinite(info.recovery_time):
        recovered = info.at + info.recovery_time
        ax.axvline(recovered, color=GREY, linewidth=0.9, linestyle="--")
        text = f"recovered after {info.recovery_time:.3g} s (±{info.tolerance:.3g})"
        said.append(_along_column(ax, text, recovered, GREY))
    place_labels(ax, said, curve, outside=True)


def _draw(ax: Axes, response: StepResponse | DisturbanceResponse) -> list[Any]:
    """Draw the curve and what is beside it; the limits of the axes do not change afterwards."""
    lines = ax.plot(response.time, response.values, color=BLUE, linewidth=1.8)
    name_axis(ax.yaxis, response.name, response.unit, most=60)
    ax.set_xlabel("time [s]")
    tidy(ax)
    ax.margins(y=0.12)
    return lines


def _along_row(ax: Axes, text: str, level: float, color: str) -> Label:
    """Return the label of a horizontal line, which is at its right end if possible."""
    left, right = ax.get_xlim()
    places = [(float(x), level) for x in np.linspace(right, left, _PLACES)]
    return Label(text, places[0], color, along=places[1:])


def _along_column(ax: Axes, text: str, time: float, color: str) -> Label:
    """Return the label of a vertical line, which is low if possible."""
    low, high = ax.get_ylim()
    places = [(time, float(y)) for y in np.linspace(low, high, _PLACES)]
    return Label(text, places[1], color, along=[places[0], *places[2:]])
