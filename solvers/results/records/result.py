"""The result of a simulation: every signal of the diagram, at any time of the run."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks import Plant
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import path_of, several
from flexure.diagrams.interface.completion import HasSignals
from flexure.diagrams.interface.html import Shown
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_numbers, freeze
from flexure.diagrams.values.events import Periodic
from flexure.solvers.results.pictures.panels import ENERGIES, coordinate_ports
from flexure.solvers.results.records.exports import Exported, Jumps, SignalTable, make_table
from flexure.solvers.results.records.history import History
from flexure.solvers.results.records.statistics import Statistics
from flexure.solvers.results.records.time_batch import Moments, Timeline
from flexure.solvers.tracing.lanes import BatchReader
from flexure.solvers.tracing.signals import Reader, Signal, resolve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.pages import pages
    from flexure.solvers.results.measures import disturbances
    from flexure.solvers.results.measures.curves import DenseOutput
    from flexure.solvers.results.measures.disturbances import DisturbanceInfo
    from flexure.solvers.results.measures.step_characteristics import StepInfo
    from flexure.solvers.results.measures.step_responses import StepResponse
    from flexure.solvers.results.measures.step_sources import StepInput
    from flexure.solvers.results.pictures import energy_plots, signal_plots
    from flexure.solvers.results.records import spectra
else:
    disturbances = Deferred("flexure.solvers.results.measures.disturbances")
    energy_plots = Deferred("flexure.solvers.results.pictures.energy_plots")
    pages = Deferred("flexure.solvers.pages.pages")
    signal_plots = Deferred("flexure.solvers.results.pictures.signal_plots")
    spectra = Deferred("flexure.solvers.results.records.spectra")

_PANELS = 12  # of a plot for which nobody named signals


class SimulationResult(Shown, HasSignals, Exported):
    """The result of a simulation: signals, events and the final context.

    Every output port and every state of the diagram is a signal, whether or not it was logged: the
    result keeps the motion and evaluates the equations where a signal is asked for.

    At an instant at which something jumps, `time` holds the instant twice: first with the values
    before, then with the values after. A single time passed to `sample` means after.

    Attributes
    ----------
    system : System
        What was simulated.
    context : Context
        The values at the end.
    outcome : {"completed", "terminated", "interrupted", "failed"}
        How the run ended.
    message : str
        The same in words.
    statistics : Statistics
        Counts of steps, evaluations and events.

    See Also
    --------
    simulate : Simulate a system.
    load_result : Read a stored result.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("charge")
    >>> builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    >>> builder.connect_chain("source", "lag")
    >>> charge = builder.build()
    >>> result = fx.simulate(charge, 1.5)
    >>> result["lag.y"][-1].round(4)
    np.float64(0.6321)
    >>> result.sample("lag.y", [0.5, 1.5]).round(4)
    array([0.    , 0.6321])
    >>> result.outcome
    'completed'
    """

    def __init__(
        self,
        system: System,
        context: Context,
        history: History,
        statistics: Statistics,
        outcome: str,
        message: str,
        start: Context | None = None,
    ) -> None:
        self.system = system
        self.context = context
        self.outcome = outcome
        self.message = message
        self.statistics = statistics
        self._history = history
        self._start = start  # before the updates at the start of the run
        self._scratch = context.clone()  # what the user does to the context changes no signal
        self._lock = Lock()  # while it is moved
        self._timeline: Timeline | None = None
        self._time: FloatArray | None = None
        self._known: dict[str, FloatArray] = {}
        self._reader = BatchReader(system)

    def __copy__(self) -> SimulationResult:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> SimulationResult:
        """Return a result for the same system; the motion, which does not change, is shared."""
        with self._lock:
            scratch = self._scratch.clone()
        statistics = copy.deepcopy(self.statistics, memo)
        twin = SimulationResult(
            self.system, scratch, self._history, statistics, self.outcome, self.message, self._start
        )
        twin.context = copy.deepcopy(self.context, memo)
        return twin

    @property
    def time(self) -> FloatArray:
        """Times of all accepted steps in seconds; instants with jumps occur twice."""
        if self._time is None:
            self._time = freeze(self._history.grid())
        return self._time

    @property
    def signals(self) -> tuple[str, ...]:
        """Paths of all vector signals: output ports and states.

        The outputs of the system come first. An output of a block inside of a nested diagram that
        exports it is listed by the name it has outside, such as ``"door.axis.angle"``; all names
        can be used.
        """
        return tuple(handle.path for handle in self._handles())

    def _handles(self) -> list[Any]:
        """Return the handles behind `signals`."""
        found: list[Any] = []
        shown: set[Any] = set()  # outputs of leaves that a nested diagram exports
        stack = [self.system]
        while stack:
            top = stack.pop()
            found += [port for port in top.output_ports if port.origin not in shown]
            if isinstance(top, LeafSystem):
                states = [] if top.continuous_state is None else [top.continuous_state]
                found += [*states, *top.discrete_states]
            else:
                stack.extend(reversed(top.children or ()))
                if top is not self.system:
                    shown |= {port.origin for port in top.output_ports}
        return [handle for handle in found if handle.size is not None]

    @property
    def foremost(self) -> tuple[str, ...]:
        """Paths of the most important signals, which `plot` shows by default.

        They are the outputs of the system. If it has none, they are the first twelve signals of its
        wires, or else of its states. A plant shows its coordinates and energies.
        """
        return tuple(handle.path for handle in self._foremost())

    def _foremost(self) -> list[Any]:
        outputs = self.system.output_ports
        if isinstance(self.system, Plant):
            energies = [port for port in outputs if port.name in ENERGIES]
            return [*coordinate_ports(self.system), *energies] or [*outputs]
        wired = self.system.wires.values() if isinstance(self.system, Diagram) else ()
        ways = (outputs, dict.fromkeys(wired), self._handles())
        vectors = [[each for each in way if each.size] for way in ways]
        chosen = next((way for way in vectors if way), [])
        return chosen if outputs else chosen[:_PANELS]

    def __getitem__(self, signal: Signal) -> FloatArray:
        """Return a signal at the times `time`: shape (k,) for one component, else (k, n)."""
        key = path_of(signal)
        if key not in self._known:
            self._known[key] = freeze(self.sample(signal, self.time))
        return self._known[key]

    def sample(self, signal: Signal, times: npt.ArrayLike) -> FloatArray:
        """Return a signal at given times.

        Parameters
        ----------
        signal : Handle or str
            A port or state, or its path; ``"plant.x[1]"`` or ``"plant.x[rate]"`` is a component.
        times : array_like
            Times within the run, ascending, in seconds.

        Returns
        -------
        ndarray, shape (k,) or (k, n)
            One row per time; no second axis for a single component.
        """
        return self.sample_all([signal], times)[0]

    def sample_all(self, signals: Sequence[Signal], times: npt.ArrayLike) -> list[FloatArray]:
        """Return several signals at given times, all from the same pass over the equations.

        Many times are evaluated at once where the equations can be traced, which the module
        ``flexure.solvers.tracing.lanes`` tells, and one after the other elsewhere. Last bits can
        depend on it.
        """
        grid = self._check_times(times)
        readers = [self.resolve(signal) for signal in several(signals)]
        with self._lock:
            self._timeline = self._timeline or Timeline(self._history)
            return self._reader.read(readers, Moments(self._timeline, self._scratch, grid))

    def context_at(self, time: float) -> Context:
        """Return a new context with all values at a time of the run.

        Parameters
        ----------
        time : float
            Within the run, in seconds; where something jumps, the values after it count.

        Returns
        -------
        Context
            From which `flexure.simulate` goes on as the run did. Where periodic updates have taken
            place at this time, that of the context is the next number, so that they do not again.
        """
        grid = self._check_times(time)
        with self._lock:
            self._timeline = self._timeline or Timeline(self._history)
            found = Moments(self._timeline, self._scratch, grid).last().clone()
        triggers = [
            event.trigger
            for leaf in (found.leaves() if grid[-1] < self._history.end else ())
            for event in leaf.system.events
            if event.kind != "publish"
        ]
        if any(isinstance(each, Periodic) and each.is_due(grid[-1]) for each in triggers):
            found.time = math.nextafter(grid[-1], math.inf)
        return found

    def _begun(self) -> Context:
        """Return the values with which the run began, from which it can be repeated."""
        start = self._start
        return self.context_at(self._history.start) if start is None else start.clone()

    def _check_times(self, times: npt.ArrayLike) -> FloatArray:
        attempt = f"Cannot sample the simulation of '{self.system.label}'"
        grid = np.atleast_1d(as_numbers(times, attempt, "ascending times"))
        start, end = self._history.start, self._history.end
        if (
            grid.ndim != 1
            or np.any(np.diff(grid) < 0.0)
            or not np.all((grid >= start) & (grid <= end))
        ):
            raise ValueRefusedError(
                attempt,
                expected=f"ascending times in [{start!r}, {end!r}] s",
                found=np.array2string(grid, threshold=6),
            )
        return grid

    def resolve(self, signal: Signal) -> Reader:
        """Return the handle of a signal, and the component that the path names, if any."""
        return resolve(self.system, signal)

    # Analysis and plots --------------------------------------------------------------------

    @answers_other_words
    def fine_time(self, num_points: int = 2000) -> FloatArray:
        """Return the step times with points between them, about ``num_points`` in all.

        Points are added inside of steps, so that jumps keep their two values.
        """
        span = self._history.end - self._history.start
        coarse = self.time
        if span <= 0.0 or len(coarse) < 2:
            return coarse
        extra = np.linspace(self._history.start, self._history.end, num_points)
        extra = extra[~np.isin(extra, coarse)]
        merged = np.concatenate([coarse, extra])
        return merged[np.argsort(merged, kind="stable")]

    def _dense_output(self, signals: Sequence[Signal]) -> DenseOutput:
        """Return signals in all steps, on which metrics of the run rest."""
        from flexure.solvers.results.records.time_batch import dense_signals

        paths = [path_of(signal) for signal in signals]
        return dense_signals(self.time, partial(self.sample_all, [*signals]), paths)

    def step_info(
        self,
        signal: Signal,
        *,
        at: float | None = None,
        initial: float | None = None,
        final: float | None = None,
        target: float | None = None,
        band: float = 0.02,
        control: Signal | None = None,
    ) -> StepInfo:
        """Return rise time, overshoot, settling time and more of a signal.

        Parameters
        ----------
        signal : Handle or str
            A signal with one component.
        at : float, optional
            Instant of the step. When omitted, the time at which a source upstream of the signal
            jumps or bends, as a `Step` does; the beginning of the run when none does.
        initial, final, band
            As for `flexure.step_info`.
        target : float, optional
            What was asked for. When omitted, the setpoint of the controller whose measurement the
            signal is, where that setpoint comes from a `Step` at the instant of the step, or stays
            what it is. A controller is a block with the inputs ``setpoint`` and ``measurement``.
        control : Handle or str, optional
            The manipulated input, a signal with one component, for its total variation and peak.

        Returns
        -------
        StepInfo

        Warns
        -----
        UserWarning
            When metrics are NaN because the signal still moves at the end; see
            `flexure.step_info`.

        Raises
        ------
        ValueRefusedError
            When the signal cannot be measured, or sources upstream of it jump or bend at several
            times and ``at`` is not given.
        """
        response = self.step_response(
            signal, at=at, initial=initial, final=final, target=target, band=band, control=control
        )
        return response.info

    def step_response(
        self,
        signal: Signal,
        *,
        at: float | None = None,
        initial: float | None = None,
        final: float | None = None,
        target: float | None = None,
        band: float = 0.02,
        control: Signal | None = None,
    ) -> StepResponse:
        """Return a signal with one component as a step response, ready to be plotted.

        Options are those of `step_info`.
        """
        from flexure.solvers.results.measures.step_responses import record_response

        found = self.find_step(signal, at)
        if target is None and not math.isnan(found.target):
            target = found.target
        return record_response(
            self,
            signal,
            at=found.at,
            initial=initial,
            final=final,
            target=target,
            band=band,
            control=control,
        )

    def find_step(
        self, signal: Signal, at: float | None = None, disturbs: bool = False
    ) -> StepInput:
        """Return the step or disturbance that a signal responds to, found along the wires."""
        from flexure.solvers.results.measures.step_sources import StepFinder

        finder = StepFinder(self.system, self.resolve(signal))
        find = finder.find_disturbance if disturbs else finder.find
        return find(self._scratch.clone(), self._history.start, self._history.end, at)

    def disturbance_info(
        self,
        signal: Signal,
        *,
        at: float | None = None,
        target: float | None = None,
        band: float = 0.05,
        tolerance: float | None = None,
        control: Signal | None = None,
    ) -> DisturbanceInfo:
        """Return peak deviation, recovery time and more of a signal after a disturbance.

        Parameters
        ----------
        signal : Handle or str
            A signal with one component.
        at : float, optional
            Instant of the disturbance. When omitted, the time at which a source upstream of the
            signal jumps or bends that is not its setpoint; the beginning of the run when none does.
        target : float, optional
            Where the signal belongs. When omitted, the setpoint of the controller whose measurement
            it is, where that is a `Step`, a `Constant` or a free input and rests at that instant;
            else the value of the signal at the disturbance.
        band, tolerance
            As for `flexure.disturbance_info`.
        control : Handle or str, optional
            The manipulated input, a signal with one component, for its total variation and peak.

        Returns
        -------
        DisturbanceInfo

        Warns
        -----
        UserWarning
            When the signal has not recovered at the end.

        Raises
        ------
        ValueRefusedError
            When the signal cannot be measured, or such sources jump or bend at several times and
            ``at`` is not given.
        """
        return self.disturbance_response(
            signal, at=at, target=target, band=band, tolerance=tolerance, control=control
        ).info

    disturbance_response = disturbances.record_disturbance

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

        attempt = f"Cannot plot the simulation of '{self.system.label}'"
        runs = {"": self}
        return plot_signals(runs, signals, attempt, units=units, title=title, ax=ax, path=path)

    page = pages.page_of
    plot_phase = signal_plots.plot_phase
    plot_energy = energy_plots.plot_energy
    spectrum = spectra.spectrum

    def unit_of(self, signal: Signal) -> str:
        """Return the unit of a signal, declared or following from wires; empty when unknown.

        It is that of all components of the signal.
        """
        return self.resolve(signal).unit

    def save(
        self,
        path: str | Path,
        signals: Iterable[Signal] | None = None,
        times: npt.ArrayLike | None = None,
        jumps: Jumps = "both",
    ) -> None:
        """Write signals, outcome, final values and provenance to a file for `load_result`.

        It is a NumPy archive, with one array per signal, as `to_npz` writes it. An older file is
        replaced as a whole, or not at all.

        Parameters
        ----------
        path : str or Path
            Where to write it.
        signals, times, jumps
            As for `to_dict`. Values between the times are not stored.

        Raises
        ------
        RecordFileError
            When the file cannot be written.
        """
        from flexure.solvers.results.records.stored_results import save_result

        save_result(self, self._table(signals, times, jumps), path)

    def _table(
        self, signals: Iterable[Signal] | None, times: npt.ArrayLike | None, jumps: Jumps
    ) -> SignalTable:
        chosen: list[Signal] = [*self._handles()] if signals is None else several(signals)
        names = [path_of(signal) for signal in chosen]
        if "time" in names:
            raise ValueRefusedError(
                f"Cannot make a table of signals of '{self.system.label}'",
                expected="'time' to be the times",
                found="a signal of that name",
                remedy="Rename the port, or leave it out with signals=",
            )
        grid = self.time if times is None else self._check_times(times)
        readers = [self.resolve(signal) for signal in chosen]
        return make_table(names, readers, partial(self.sample_all, chosen), grid, jumps)

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.results.records.result_tables import result_pieces

        return result_pieces(self)

    def __repr__(self) -> str:
        return (
            f"<SimulationResult of '{self.system.label}', t = {self._history.start:g} to "
            f"{self._history.end:g} s, {self.statistics.steps} steps, {self.outcome}>"
        )
