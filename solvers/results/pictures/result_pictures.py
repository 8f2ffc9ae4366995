"""The pictures of a run, which its result is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from flexure.diagrams.interface.lazy_names import Deferred
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.pages import pages
    from flexure.solvers.results.pictures import energy_plots, signal_plots
    from flexure.solvers.results.records import spectra
    from flexure.solvers.results.records.result import SimulationResult
else:
    energy_plots = Deferred("flexure.solvers.results.pictures.energy_plots")
    pages = Deferred("flexure.solvers.pages.pages")
    signal_plots = Deferred("flexure.solvers.results.pictures.signal_plots")
    spectra = Deferred("flexure.solvers.results.records.spectra")


class ResultPictures:
    """Plot methods of a result: one per picture, with the units of its labels."""

    def plot(
        self,
        *signals: Signal | Iterable[Signal | Iterable[Signal]],
        units: Mapping[str, str] | None = None,
        title: str | None = None,
        ax: Axes | Sequence[Axes] | None = None,
        path: str | Path | None = None,
    ) -> Figure:
        """Plot signals over time with Matplotlib.

        Signals of the same unit share a panel, also where the unit follows from wires alone, as
        that of a setpoint; those without a unit have one each. Instead, each list of signals is a
        panel, and so is each signal beside lists: ``plot(["target.y", "door.axis.angle"],
        "pid.u")``. Thin dotted lines are at instants at which something jumps, unless it is sampled
        there, and a line with the reason is where a run ended that did not reach its end.

        Parameters
        ----------
        *signals : Handle, str or iterable of them
            What to plot; `foremost` when omitted, at most twelve panels. A single list names
            signals as if they were given one by one, or holds panels, if there are lists in it.
        units : dict of str to str, optional
            Units by those in whose place they are shown, as ``{"rad": "deg", "s": "ms"}``.
        title : str, optional
            What is above; the name of the system when omitted.
        ax : matplotlib.axes.Axes or sequence of them, optional
            Where to plot: single axes for all signals, or axes for each panel; a new figure when
            omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ValueRefusedError
            When there is nothing to plot, a unit is not known or measures something else, or there
            are more axes or fewer than panels.
        """
        from flexure.solvers.results.pictures.signal_plots import plot_signals

        run = cast("SimulationResult", self)
        attempt = f"Cannot plot the simulation of '{run.system.label}'"
        return plot_signals({"": run}, signals, attempt, units=units, title=title, ax=ax, path=path)

    page = pages.page_of
    plot_phase = signal_plots.plot_phase
    plot_energy = energy_plots.plot_energy
    spectrum = spectra.spectrum

    def unit_of(self, signal: Signal) -> str:
        """Return the unit of a signal, declared or following from wires; empty when unknown.

        It is that of all components of the signal.
        """
        return cast("SimulationResult", self).resolve(signal).unit
