"""The figure of a fit: what was measured, what was fitted, and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexure.diagrams.drawing.canvas import new_figure, save_figure
from flexure.diagrams.places import find_place
from flexure.solvers.design.records import names_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.design.fits import Fit

_LINES = ("#1f5a99", "#c8641e", "#3a7d44", "#7a4f9a", "#555555")


def plot_fit(fit: Fit, path: str | Path | None = None) -> Figure:
    """Plot every component of every signal, with its residuals below.

    Parameters
    ----------
    fit : Fit
        What to plot.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    panels = []
    for signal in fit.deviations:
        place = find_place(fit.system, signal)
        panels += [(signal, k, name, place.handle.unit) for k, name in enumerate(names_of(place))]
    figure = new_figure(figsize=(8.0, 0.8 + 3.0 * len(panels)), layout="constrained")
    ratios = [3.0, 1.0] * len(panels)
    axes = figure.subplots(
        len(ratios), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": ratios}
    )[:, 0]
    for row, (signal, component, name, unit) in enumerate(panels):
        above, below = axes[2 * row], axes[2 * row + 1]
        for number, times in enumerate(fit.times):
            if signal not in fit.measured[number]:
                continue
            color = _LINES[number % len(_LINES)]
            measured = fit.measured[number][signal][:, component]
            computed = fit.computed[number][signal][:, component]
            which = f", record {number}" if len(fit.times) > 1 else ""
            above.plot(
                times,
                measured,
                ".",
                color=color,
                alpha=0.45,
                markersize=4,
                label="measured" + which,
            )
            above.plot(times, computed, color=color, linewidth=1.6, label="fitted" + which)
            below.plot(times, measured - computed, ".", color=color, markersize=3)
        deviation = fit.deviations[signal]
        below.axhspan(-2.0 * deviation, 2.0 * deviation, color="#777777", alpha=0.12, linewidth=0)
        below.axhline(0.0, color="#777777", linewidth=0.9)
        _label(above, f"{name} [{unit}]" if unit else name)
        _label(below, f"residual [{unit}]" if unit else "residual")
        if row == 0:
            above.legend(frameon=False, loc="best")
    axes[-1].set_xlabel("time [s]")
    figure.suptitle(f"{fit.system.label}: measured and fitted, residuals with ±2 σ")
    if path is not None:
        save_figure(figure, path)
    return figure


def _label(ax: Any, text: str) -> None:
    """Write the axis label and draw a light grid."""
    ax.set_ylabel(text)
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


__all__ = ["plot_fit"]
