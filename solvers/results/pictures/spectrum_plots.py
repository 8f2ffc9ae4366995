"""Pictures of spectra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.checks.arguments import check_axes
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import BLUE, ORANGE, check_file, name_axis, tidy
from flexure.solvers.results.pictures.free_labels import Label, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.results.records.spectra import Spectrum

_DEPTH = {"amplitude": 1e-6, "psd": 1e-12}  # of the largest value, below which nothing is shown


def plot_spectrum(
    spectrum: Spectrum, ax: Axes | None = None, path: str | Path | None = None
) -> Axes:
    """Plot the spectrum over frequency, both in powers of ten.

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
    attempt = f"Cannot plot the spectrum of '{spectrum.name}'"
    check_axes(ax, attempt)
    check_file(path, attempt)
    ax = axes_or_new(ax, figsize=(8.0, 4.4))
    frequency, values = spectrum.frequency[1:], spectrum.values[1:]
    lines = ax.plot(frequency, values, color=BLUE, linewidth=1.4)
    ax.set_xscale("log")
    ax.set_xlim(frequency[0], frequency[-1])
    what = "amplitude" if spectrum.kind == "amplitude" else "density"
    name_axis(ax.yaxis, f"{what} of {spectrum.name}", spectrum.unit, most=60)
    ax.set_xlabel(f"frequency [Hz], {spectrum.window} window")
    tidy(ax)
    largest = float(np.max(values))
    if largest > 0.0:
        ax.set_yscale("log")
        low = max(float(np.min(values)), _DEPTH[spectrum.kind] * largest)
        ax.set_ylim(0.5 * low, 4.0 * largest)
        ax.set_xlim(right=float(frequency[np.flatnonzero(values >= low)[-1]]))
        at = float(frequency[np.argmax(values)])
        ax.plot(at, largest, "o", color=ORANGE, markersize=5, zorder=4)
        label = Label(f"{largest:.3g} at {at:.4g} Hz", (at, largest), ORANGE)
        place_labels(ax, [label], lines, outside=True)
    return saved(ax, path)
