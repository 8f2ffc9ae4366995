"""The picture of Sobol indices: bars of first and total order, beside what a plane explains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.checks.arguments import check_axes
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, DARK, check_file, tidy
from flexure.solvers.sweeps.pictures.plot_columns import title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.sweeps.sobol_indices import SobolIndices

_MOST = 20  # paths
_WIDTH = 0.36  # of a bar


def plot_indices(
    indices: SobolIndices,
    metric: str | None = None,
    *,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot the indices of a metric as bars, with their intervals and the linear shares.

    Parameters
    ----------
    metric : str, optional
        Which metric; the only one when omitted.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    attempt = f"Cannot plot Sobol indices of '{indices.sweep.system.label}'"
    check_axes(ax, attempt)
    check_file(path, attempt)
    metric = indices._only(metric)
    found, table = indices[metric], indices.table(metric)[:_MOST]
    if ax is None:
        wide = max(6.0, 2.0 + 1.0 * len(table))
        ax = new_figure(figsize=(min(wide, 16.0), 4.8), layout="constrained").subplots()
    places = np.arange(len(table))
    for k, order in enumerate(("first", "total")):
        heights = np.array(table[order])
        intervals = np.array(table[f"{order} interval"])
        ways = np.abs(intervals - heights[:, np.newaxis]).T
        ax.bar(
            places + (k - 0.5) * _WIDTH,
            heights,
            _WIDTH,
            yerr=ways,
            capsize=3,
            color=COLORS[k],
            error_kw={"elinewidth": 1.0, "ecolor": DARK},
            label=f"{order} order",
        )
    if found.regression is not None:
        label = f"linear (R² = {found.regression.r_squared:.3g})"
        ax.plot(places - 0.5 * _WIDTH, table["linear"], "D", color="black", ms=4, label=label)
    turned = len(table) > 6 or max(map(len, table["path"])) > 12
    ax.set_xticks(places, table["path"], rotation=20 if turned else 0)
    ax.set_ylabel(f"share of the variance of {metric}")
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    tidy(ax)
    ax.xaxis.grid(False)
    ax.legend(frameon=False, fontsize=9)
    ax.set_title(f"{title_of(indices.sweep)}, {indices.confidence:.0%} intervals", fontsize=11)
    return saved(ax, path)
