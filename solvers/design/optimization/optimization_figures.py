"""The figure of an optimization: how the objective fell, and what the best candidate does."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.drawing.formats.new_figures import new_figure
from flexure.diagrams.drawing.formats.style import COLORS, GREY, tidy
from flexure.solvers.tracing.signals import resolve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.design.optimization.optimization import Optimization

_WIDE = 20.0  # quotient of objectives from which on their axis is logarithmic


def plot_optimization(found: Optimization) -> Figure:
    """Plot the objective of all candidates, and below it the signals of the best one."""
    signals = found._signals
    rows = 1 + len(signals)
    figure = new_figure(figsize=(8.0, 1.0 + 2.4 * rows), layout="constrained")
    above, *below = figure.subplots(rows, 1, squeeze=False)[:, 0]
    _plot_convergence(above, found)
    result = found.simulate() if signals else None
    for signal, ax in zip(signals, below, strict=True):
        reader, time = resolve(found.system, signal), result.time  # type: ignore[union-attr]
        values = np.reshape(result.sample(signal, time), (len(time), -1))  # type: ignore[union-attr]
        for k, column in enumerate(values.T):
            label = str(reader.labels[k])
            ax.plot(time, column, color=COLORS[k % len(COLORS)], linewidth=1.6, label=label)
        if values.shape[1] > 1:
            ax.legend(frameon=False, loc="best")
        ax.set_ylabel(f"{signal} [{reader.unit}]" if reader.unit else signal)
        tidy(ax)
    if below:
        below[-1].set_xlabel("time [s]")
    goal = fill(f"{found.goal} = {found.objective:.5g}", 80)
    figure.suptitle(f"{found.system.label}\n{goal}", fontsize=11)
    return figure


def _plot_convergence(ax: Any, found: Optimization) -> None:
    """Draw a point for each candidate, and the best so far of those that keep all constraints."""
    table = found.table()
    goal = np.array(table[found.goal], dtype=float)
    feasible = np.array(table["feasible"], dtype=bool)
    number = np.array(table["evaluation"])
    kinds = ((False, GREY, "breaks a constraint"), (True, COLORS[0], "candidate"))
    for kept, color, label in kinds:
        which = (feasible == kept) & np.isfinite(goal)
        if which.any():
            ax.plot(
                number[which], goal[which], ".", color=color, alpha=0.4, markersize=4, label=label
            )
    lowest = np.minimum.accumulate(np.where(feasible, goal, np.inf))
    some = np.isfinite(lowest)
    ax.plot(number[some], lowest[some], color=COLORS[1], linewidth=1.8, label="best so far")
    finite = goal[np.isfinite(goal)]
    if 0.0 < _WIDE * np.min(finite) < np.max(finite):
        ax.set_yscale("log")
    ax.set(xlabel="evaluation", ylabel="objective")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False, fontsize=9)
    tidy(ax)
