"""The picture of tolerances: the scatter of each metric, and what each tolerance contributes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, RED, check_file, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.design.optimization.tolerances import Tolerances

_MOST = 12  # tolerances in a panel


def plot_tolerances(found: Tolerances, *names: str, path: str | Path | None = None) -> Figure:
    """Plot histograms of metrics with their bounds, and the shares of all tolerances below.

    Parameters
    ----------
    *names : str
        Metrics, by their labels; all when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    UnknownNameError
        When there is no such metric.
    """
    check_file(path, "Cannot plot tolerances")
    shown = [found._metric(name) for name in names or found.values]
    figure = new_figure(figsize=(1.5 + 3.6 * len(shown), 5.6), layout="constrained")
    panels = figure.subplots(2, len(shown), squeeze=False)
    for name, (above, below) in zip(shown, panels.T, strict=True):
        values = found.values[name]
        above.hist(values[np.isfinite(values)], bins="auto", color=COLORS[0])
        bounds = [
            bound
            for each in found._constraints
            for bound in (each.lower, each.upper)
            if each.metric.label == name and np.isfinite(bound)
        ]
        for bound in bounds:
            above.axvline(bound, color=RED, linewidth=1.4)
        above.set_title(name, fontsize=9, wrap=True)
        shares = found.shares[name]
        order = np.argsort(shares, kind="stable")[-_MOST:]
        below.barh([found.paths[k] for k in order], shares[order], color=COLORS[1])
        below.set_xlabel("share of the variance")
        below.set_xlim(left=min(0.0, float(shares.min())), right=1.0)
        for ax in (above, below):
            tidy(ax)
    low, high = found.interval
    text = f"yield {found.yield_rate:.1%} ({low:.1%} to {high:.1%})"
    figure.suptitle(f"{found.system.label}: {text}", fontsize=11)
    return saved(figure, path)
