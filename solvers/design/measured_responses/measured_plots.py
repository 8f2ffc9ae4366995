"""Pictures of measured frequency responses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
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
    from matplotlib.figure import Figure

    from flexure.solvers.design.measured_responses.frequency_response import FrequencyResponse

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
    omega, count = self.frequency, len(self.output_names)
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
