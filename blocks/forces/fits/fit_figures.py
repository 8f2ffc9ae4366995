"""The figure of a fit: what was measured, what was fitted, and what is left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, GREY, labelled, tidy
from flexure.diagrams.values.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.blocks.forces.fits.fit_report import FitReport


@dataclass(frozen=True, eq=False)
class Labels:
    """The content of a figure of a fit."""

    title: str  # what is above
    over: str  # what signals are drawn over
    points: list[FloatArray]  # its values, for each record
    names: dict[str, list[str]]  # what the components of each signal are called


def plot_fit(fit: FitReport, labels: Labels, path: str | Path | None = None) -> Figure:
    """Plot every component of every signal, with its residuals below."""
    panels = [
        (signal, component, name, unit)
        for signal, unit in fit.units.items()
        for component, name in enumerate(labels.names[signal])
    ]
    figure = new_figure(figsize=(8.0, 0.8 + 3.0 * len(panels)), layout="constrained")
    ratios = [3.0, 1.0] * len(panels)
    axes = figure.subplots(
        len(ratios), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": ratios}
    )[:, 0]
    for row, (signal, component, name, unit) in enumerate(panels):
        above, below = axes[2 * row], axes[2 * row + 1]
        for number, points in enumerate(labels.points):
            if signal not in fit.measured[number]:
                continue
            color = COLORS[number % len(COLORS)]
            measured = fit.measured[number][signal][:, component]
            computed = fit.computed[number][signal][:, component]
            which = f", record {number}" if len(labels.points) > 1 else ""
            above.plot(
                points,
                measured,
                ".",
                color=color,
                alpha=0.45,
                markersize=4,
                label="measured" + which,
            )
            above.plot(points, computed, color=color, linewidth=1.6, label="fitted" + which)
            below.plot(points, measured - computed, ".", color=color, markersize=3)
        deviation = fit.deviations[signal]
        below.axhspan(-2.0 * deviation, 2.0 * deviation, color=GREY, alpha=0.12, linewidth=0)
        below.axhline(0.0, color=GREY, linewidth=0.9)
        above.set_ylabel(labelled(name, unit))
        below.set_ylabel(labelled("residual", unit))
        tidy(above)
        tidy(below)
        if row == 0:
            above.legend(frameon=False, loc="best")
    axes[-1].set_xlabel(labels.over)
    figure.suptitle(f"{labels.title}, residuals with ±2 σ")
    return saved(figure, path)
