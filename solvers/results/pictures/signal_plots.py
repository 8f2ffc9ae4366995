"""Pictures of signals over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flexure.diagrams.drawing.canvas import new_figure, save_figure
from flexure.diagrams.drawing.style import BLUE, labelled, tidy
from flexure.diagrams.places import path_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.results.result import Signal, SimulationResult


def plot_signals(
    result: SimulationResult, signals: Sequence[Signal], *, path: str | Path | None = None
) -> Figure:
    """Plot signals of a simulation over time, one panel per signal.

    Parameters
    ----------
    result : SimulationResult
        Where the signals come from.
    signals : sequence of Handle or str
        What to plot.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    grid = result.fine_time()
    data = result.sample_all(signals, grid)
    figure = new_figure(figsize=(8.0, 1.2 + 1.9 * len(signals)), layout="constrained")
    axes = figure.subplots(len(signals), 1, sharex=True, squeeze=False)
    for ax, signal, values in zip(axes[:, 0], signals, data, strict=True):
        reader = result.resolve(signal)
        lines = ax.plot(grid, values, linewidth=1.6)
        if values.ndim == 1:
            lines[0].set_color(BLUE)
        elif values.shape[1] <= 8:
            ax.legend(lines, [str(label) for label in reader.labels], frameon=False, loc="best")
        ax.set_ylabel(labelled(path_of(signal), reader.unit))
        tidy(ax)
    axes[-1, 0].set_xlabel("time [s]")
    figure.suptitle(result.system.label)
    if path is not None:
        save_figure(figure, path)
    return figure


__all__ = ["plot_signals"]
