"""Pictures of measured frequency responses and of describing functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import check_axes, one_of
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, check_file, tidy
from flexure.solvers.analysis.frequency.frequency_curves import (
    UNITS,
    Models,
    curves_of,
    labelled,
    to_decibels,
)
from flexure.solvers.analysis.frequency.frequency_plots import bode
from flexure.solvers.analysis.frequency.picture_style import frequency_ticks, turn_ticks, widen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.design.measured_responses.describing_functions import DescribingFunction
    from flexure.solvers.design.measured_responses.frequency_response import FrequencyResponse
    from flexure.solvers.design.measured_responses.limit_cycles import LimitCycles

_WIDER = 1.25  # than the measured frequencies
_POINTS = 400
_DOT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4, "zorder": 3}


def plot_frequency_response(
    self: FrequencyResponse,
    models: Models | None = None,
    *,
    units: str = "rad/s",
    path: str | Path | None = None,
) -> Figure:
    """Plot magnitude and phase, beside linear models of the same channels if you pass some.

    Parameters
    ----------
    models : LinearModel, or list or dict of them, optional
        What `linearize` returns for the same input and outputs; a dictionary gives labels.
    units : str
        ``"rad/s"`` or ``"Hz"``.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
        A pair of axes for each output: magnitude and phase.
    """
    attempt = "Cannot draw a frequency response"
    unit = UNITS[one_of(units, UNITS, "units", attempt)]
    check_file(path, attempt)
    omega, count = self.frequencies, len(self.output_names)
    low, high = omega[0] / _WIDER / unit, omega[-1] * _WIDER / unit
    references: list[Any] = []
    if models is None:
        figure = new_figure(figsize=(8.0, 6.0 if count == 1 else 4.4 * count), layout="constrained")
        panels = list(figure.subplots(2 * count, 1, sharex=True, squeeze=False).ravel())
    else:
        for label, model in labelled(models, attempt):
            wanted = (count, 1)
            if model.D.shape != wanted:
                raise ValueRefusedError(
                    attempt,
                    expected=f"models with 1 input and {count} outputs, as were measured",
                    found=f"{model.D.shape[1]} inputs and {model.D.shape[0]} outputs"
                    + (f" in '{label}'" if label else ""),
                )
        periods = [model.period for _, model in labelled(models, attempt) if model.period]
        high = min([high, *(np.pi / period / unit for period in periods)])
        grid = np.geomspace(low, max(high, omega[-1] / unit), _POINTS)
        figure = bode(models, grid, units=units, margins=False)
        panels = figure.axes
        references = curves_of(models, grid, units, attempt, single=False)
    for k in range(count):
        upper, lower = panels[2 * k], panels[2 * k + 1]
        response = self.response[:, k]
        if references:
            near = np.interp(omega, references[k].omega, references[k].phase)
        else:
            known = np.isfinite(response)
            near = np.zeros(len(omega))
            near[known] = np.degrees(np.unwrap(np.angle(response[known])))
        phase = np.degrees(np.angle(response))
        phase = phase + 360.0 * np.round((near - phase) / 360.0)
        style = {**_DOT, "color": COLORS[min(len(references) // count, len(COLORS) - 1)]}
        upper.plot(omega / unit, to_decibels(np.abs(response)), label="measured", **style)
        lower.plot(omega / unit, phase, **style)
        upper.set_ylabel("magnitude [dB]")
        lower.set_ylabel("phase [°]")
        if count > 1:
            upper.set_title(f"{self.output_names[k]} / {self.input_name}", fontsize=10)
        for panel in (upper, lower):
            frequency_ticks(panel, low, max(high, omega[-1] / unit))
            tidy(panel)
        widen(upper, 1.0)
        widen(lower, 1.0)
        turn_ticks(lower.yaxis, lower)
    for old in list(figure.legends):
        old.remove()
    if references:
        first = panels[0].lines[0]
        if first.get_label().startswith("_"):
            first.set_label("linear model")
        panels[0].legend(frameon=False)
    panels[2 * count - 1].set_xlabel(f"frequency [{units}]")
    return saved(figure, path)


def plot_describing_function(
    self: DescribingFunction, *, ax: Axes | None = None, path: str | Path | None = None
) -> Axes:
    """Plot the magnitude of the describing function over the amplitude, and its phase if any.

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
    check_axes(ax, "Cannot draw a describing function")
    check_file(path, "Cannot draw a describing function")
    ax = axes_or_new(ax, figsize=(8.0, 4.2))
    ax.plot(self.amplitudes, np.abs(self.gains), color=COLORS[0], label="|N|")
    ax.set_xlabel("amplitude")
    ax.set_ylabel("magnitude")
    phases = np.degrees(np.angle(self.gains))
    if np.any(np.abs(phases[self.gains != 0.0]) > 1e-6):
        ax.plot(self.amplitudes, phases / 90.0, color=COLORS[1], label="phase / 90°")
        ax.legend(frameon=False)
        ax.set_ylabel("magnitude, phase / 90°")
    tidy(ax)
    return saved(ax, path)


def plot_limit_cycles(
    self: LimitCycles, *, ax: Axes | None = None, path: str | Path | None = None
) -> Axes:
    """Plot the loop gain L(jω) of the rest and -1/N(A) in the complex plane, with their crossings.

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
    attempt = "Cannot draw limit cycles"
    check_axes(ax, attempt)
    check_file(path, attempt)
    ax = axes_or_new(ax, figsize=(7.0, 6.0))
    gains = self.describing_function.gains
    inverse = -1.0 / gains[gains != 0.0]
    centers = -self.model.frequency_response(self.frequencies)[:, 0, 0]
    reach = 2.5 * float(np.max(np.abs(centers))) if len(centers) else 2.0 * np.min(np.abs(inverse))
    period = self.model.period
    end = np.inf if period is None else np.pi / period
    slow = np.abs(self.model.poles[:1]) + 1e-300 if period is None else np.array([0.1 * end])
    around = self.frequencies if len(self) else slow
    highest = min(1e2 * np.max(around), end)
    grid = np.geomspace(1e-2 * np.min(around), highest, 10 * _POINTS)
    curve = -self.model.frequency_response(grid)[:, 0, 0]
    ax.plot(curve.real, curve.imag, color=COLORS[0], label="L(jω), the linear rest")
    ax.plot(inverse.real, inverse.imag, color=COLORS[1], label="-1/N(A)")
    for k, center in enumerate(centers):
        text = f"A = {self.amplitudes[k]:.3g}, {self.frequencies[k]:.3g} rad/s"
        text += ", stable" if self.is_stable[k] else ", unstable"
        filled = COLORS[2] if self.is_stable[k] else "white"
        style = {**_DOT, "markersize": 7, "color": COLORS[2], "markerfacecolor": filled}
        ax.plot([center.real], [center.imag], label=text, **style)
    ax.set_xlim(-reach, 0.5 * reach)
    ax.set_ylim(-0.75 * reach, 0.75 * reach)
    ax.set_xlabel("real part")
    ax.set_ylabel("imaginary part")
    tidy(ax)
    ax.legend(frameon=False, loc="best")
    return saved(ax, path)
