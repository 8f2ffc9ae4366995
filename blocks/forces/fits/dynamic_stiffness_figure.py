"""The figure of a dynamic stiffness: magnitude and loss angle over frequency."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.fits.dynamic_stiffness import DynamicStiffness
from flexure.blocks.forces.fits.dynamic_stiffness_fits import as_complex
from flexure.diagrams.checks.arguments import check_axes, items_of, require
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, check_file, tidy
from flexure.diagrams.values.arrays import as_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_dynamic_stiffness(
    model: DynamicStiffness,
    frequency: npt.ArrayLike,
    amplitude: npt.ArrayLike | None = None,
    *,
    measured: npt.ArrayLike | None = None,
    ax: Sequence[Axes] | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Plot magnitude and loss angle over frequency, with a line for each amplitude.

    Parameters
    ----------
    frequency, amplitude : array_like, shape (n,)
        Where to compute it, as for `at`.
    measured : array_like of complex, shape (n,), optional
        What was measured there, as points.
    ax : sequence of matplotlib.axes.Axes, optional
        The two axes; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are those of magnitude and loss angle.
    """
    attempt = "Cannot plot a dynamic stiffness"
    computed = model.at(frequency, amplitude)
    hertz = np.asarray(frequency, dtype=float)
    levels = np.zeros(()) if amplitude is None else as_numbers(amplitude, attempt)
    fits = hertz.ndim == 1 and len(hertz) > 0 and levels.shape in {(), hertz.shape}
    require(
        fits, frequency, attempt, "frequencies in one row, and an amplitude for each or for all"
    )
    X = np.broadcast_to(levels, hertz.shape)
    points = None if measured is None else as_complex(measured, len(computed), attempt)
    check_file(path, attempt)
    axes: Any = ax
    if ax is None:
        axes = new_figure(figsize=(8.0, 6.0), layout="constrained").subplots(2, 1, sharex=True)
    else:
        axes = items_of(ax, "two axes", attempt)
        require(len(axes) == 2, ax, attempt, "two axes")
        for each in axes:
            check_axes(each, attempt)
    upper, lower = axes
    for number, level in enumerate(np.unique(X)):
        which = np.flatnonzero(level == X)
        which = which[np.argsort(hertz[which], kind="stable")]
        color = COLORS[number % len(COLORS)]
        label = "computed" if amplitude is None else f"amplitude {level:.3g}"
        for panel, show in ((upper, np.abs), (lower, _degrees)):
            panel.plot(hertz[which], show(computed[which]), color=color, label=label)
            if points is not None:
                panel.plot(hertz[which], show(points[which]), ".", color=color)
    for panel in (upper, lower):
        panel.set_xscale("log")
        tidy(panel)
    upper.set_ylabel("dynamic stiffness")
    upper.legend(frameon=False, loc="best")
    lower.set_ylabel("loss angle [°]")
    lower.set_xlabel("frequency [Hz]")
    figure: Figure = upper.figure.figure
    return saved(figure, path)


def _degrees(stiffness: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
    """Return the loss angle."""
    return np.asarray(np.rad2deg(np.angle(stiffness)))
