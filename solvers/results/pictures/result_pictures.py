"""The pictures of a run, which its result is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from flexure.diagrams.interface.option_names import answers_other_words
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.blocks.multibody.bodies.bodies import FrameLike
    from flexure.solvers.pages.pages import Page
    from flexure.solvers.results.mechanisms.camera import View
    from flexure.solvers.results.records.result import SimulationResult
    from flexure.solvers.results.records.spectra import Spectrum


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

    def page(
        self,
        path: str | Path | None = None,
        *,
        parameters: Sequence[Signal] | None = None,
        signals: Sequence[Signal | Sequence[Signal]] | None = None,
        units: Mapping[str, str] | None = None,
        title: str | None = None,
        view: View = "auto",
        forces: bool = False,
        stress: bool = False,
        trace: Sequence[FrameLike] | FrameLike = (),
        ground: float | None = None,
    ) -> Page:
        """Make a page of HTML that shows the run, and in which the diagram runs with other values.

        Where equations cannot be read as JavaScript, the page shows what was recorded, and says so.

        Parameters
        ----------
        path : str or Path, optional
            Where to save the page.
        parameters, signals, units, title, view, forces, stress, trace, ground
            As for `flexure.page`.

        Returns
        -------
        Page
        """
        from flexure.solvers.pages.pages import page_of

        run = cast("SimulationResult", self)
        return page_of(
            run,
            parameters=parameters,
            signals=signals,
            units=units,
            title=title,
            view=view,
            forces=forces,
            stress=stress,
            trace=trace,
            ground=ground,
            path=path,
        )

    def plot_phase(
        self,
        x: Signal,
        y: Signal,
        *,
        units: Mapping[str, str] | None = None,
        title: str | None = None,
        ax: Axes | None = None,
        path: str | Path | None = None,
    ) -> Axes:
        """Plot one signal over another one: a phase portrait, from an open dot to a filled one.

        Parameters
        ----------
        x, y : Handle or str
            Signals with one component.
        units, title, path
            As for `plot`.
        ax : matplotlib.axes.Axes, optional
            Where to plot, beside the portraits that are there; a new figure when omitted.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from flexure.solvers.results.pictures.phase_plots import plot_phase

        return plot_phase(
            cast("SimulationResult", self), x, y, units=units, title=title, ax=ax, path=path
        )

    def plot_energy(
        self,
        ledger: str | None = None,
        *,
        units: Mapping[str, str] | None = None,
        title: str | None = None,
        ax: Sequence[Axes] | None = None,
        path: str | Path | None = None,
    ) -> Figure:
        """Plot where the energy of a plant is, and how well its ledger adds up.

        Kinetic and stored energies are stacked, and on them what was lost in each source of work
        that never gave any. Their sum should be the black line: what was there at first, and the
        work of all other sources. The residual below, the change of the balance, is the difference.
        Stored energies count from the lowest one in the run.

        Parameters
        ----------
        ledger : str, optional
            Path of an `EnergyLedger`, or of a plant with one; needed where there are several.
        units, title, path
            As for `plot`; energies are in J.
        ax : sequence of matplotlib.axes.Axes, optional
            Two axes, for energies and residual; a new figure when omitted.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ValueRefusedError
            When there is no ledger, or none of them is meant.
        """
        from flexure.solvers.results.pictures.energy_plots import plot_energy

        return plot_energy(
            cast("SimulationResult", self), ledger, units=units, title=title, ax=ax, path=path
        )

    @answers_other_words
    def spectrum(
        self,
        signal: Signal,
        *,
        kind: str = "amplitude",
        window: str = "hann",
        start: float | None = None,
        num_samples: int | None = None,
    ) -> Spectrum:
        """Return the spectrum of a signal, ready to be plotted.

        The signal is sampled at even times, its mean is removed, and it is weighted by a window. An
        oscillation a sin(2π f t) has the amplitude a at its frequency; the power spectral density
        is that of Welch's method with eight segments, each half over the next one, and its integral
        over frequency is the variance.

        Parameters
        ----------
        signal : Handle or str
            A signal with one component.
        kind : {"amplitude", "psd"}
            Amplitudes, or the power spectral density.
        window : {"hann", "hamming", "blackman", "blackmanharris", "flattop", "boxcar"}
            What the samples are weighted by; ``"boxcar"`` weights all alike.
        start : float, optional
            Where the samples begin, in seconds; at the beginning of the run when omitted.
        num_samples : int, optional
            Their number. When omitted, a power of two that is at least 4096, and twice the number
            of steps of the run.

        Returns
        -------
        Spectrum

        Raises
        ------
        ValueRefusedError
            When the signal has several components, or samples cannot be taken.
        """
        from flexure.solvers.results.records.spectra import make_spectrum

        run = cast("SimulationResult", self)
        return make_spectrum(
            run, signal, kind=kind, window=window, start=start, num_samples=num_samples
        )

    def unit_of(self, signal: Signal) -> str:
        """Return the unit of a signal, declared or following from wires; empty when unknown.

        It is that of all components of the signal.
        """
        return cast("SimulationResult", self).resolve(signal).unit
