"""The same signals of several runs in the same axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flexure.diagrams.checks.arguments import can_be_written, mapping, require
from flexure.solvers.results.pictures.result_pictures import ResultPictures
from flexure.solvers.results.pictures.signal_plots import plot_signals
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.results.records.result import SimulationResult


def compare(
    runs: Mapping[str, SimulationResult],
    *signals: Signal | Iterable[Signal | Iterable[Signal]],
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    ax: Axes | Sequence[Axes] | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Plot the same signals of several runs over time, in the same axes.

    Each run has a color, and where a panel has several signals, each of these its dashes.

    Parameters
    ----------
    runs : dict of str to SimulationResult
        The runs to compare, by their labels. They may be of different systems if the signals have
        the same paths and units.
    *signals, units, title, ax, path
        As for `SimulationResult.plot`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueRefusedError
        As for `SimulationResult.plot`, and when units of a signal differ among the runs.
    UnknownNameError
        When a run has no such signal.

    See Also
    --------
    sweep : Many runs, with their own plots.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 1.0)
    >>> runs = {}
    >>> for level in (1.0, 2.0):
    ...     context = lag.create_default_context()
    ...     lag.u.fix(context, level)
    ...     runs[f"u = {level:g}"] = fx.simulate(lag, 5.0, context=context)
    >>> figure = fx.compare(runs, "y")
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['u = 1', 'u = 2']
    """
    attempt = "Cannot compare simulations"
    wanted = "results of simulations by their labels, such as {'kp = 30': result}"
    chosen = mapping(runs, wanted, attempt)
    fits = all(isinstance(run, ResultPictures) for run in chosen.values())
    require(chosen and fits and all(map(can_be_written, chosen)), runs, attempt, wanted)
    return plot_signals(chosen, signals, attempt, units=units, title=title, ax=ax, path=path)
