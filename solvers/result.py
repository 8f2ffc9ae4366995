"""The result of a simulation: every signal of the diagram, at any time of the run."""

from __future__ import annotations

import copy
import csv
import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.context import Context
from flexure.diagrams.errors import MissingExtraError, ValueRefusedError
from flexure.diagrams.places import path_of
from flexure.diagrams.system import System
from flexure.diagrams.threads import Lock
from flexure.diagrams.values import FloatArray, freeze
from flexure.solvers.history import History
from flexure.solvers.lanes import BatchReader
from flexure.solvers.moments import Moments, Timeline
from flexure.solvers.signals import Reader, Signal, resolve
from flexure.solvers.simulator import Statistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.responses import StepResponse
    from flexure.solvers.step_figures import StepInfo


class SimulationResult:
    """What a simulation did.

    Every output port and every state of the diagram is a signal, whether or not it was logged: the
    result keeps the motion and evaluates the equations where a signal is asked for.

    At an instant at which something jumps, `time` holds the instant twice: first with the values
    before, then with the values after. A single time given to `sample` stands for after.

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
    """

    def __init__(
        self,
        system: System,
        context: Context,
        history: History,
        statistics: Statistics,
        outcome: str,
        message: str,
    ) -> None:
        self.system = system
        self.context = context
        self.outcome = outcome
        self.message = message
        self.statistics = statistics
        self._history = history
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
            self.system, scratch, self._history, statistics, self.outcome, self.message
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
        """Paths of all vector signals: output ports and states."""
        leaves = [leaf.system for leaf in self.context.leaves()]
        exported = self.system.output_ports if self.system.children is not None else ()
        handles: list[Any] = [*exported]
        for leaf in leaves:
            states = [] if leaf.continuous_state is None else [leaf.continuous_state]
            handles += [*leaf.output_ports, *states, *leaf.discrete_states]
        return tuple(handle.path for handle in handles if handle.size is not None)

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
        ``flexure.solvers.lanes`` tells, and one after the other elsewhere. Last bits can depend on
        it.
        """
        grid = self._check_times(times)
        readers = [self.resolve(signal) for signal in signals]
        with self._lock:
            self._timeline = self._timeline or Timeline(self._history)
            return self._reader.read(readers, Moments(self._timeline, self._scratch, grid))

    def _check_times(self, times: npt.ArrayLike) -> FloatArray:
        grid = np.atleast_1d(np.asarray(times, dtype=float))
        start, end = self._history.start, self._history.end
        if (
            grid.ndim != 1
            or np.any(np.diff(grid) < 0.0)
            or not np.all((grid >= start) & (grid <= end))
        ):
            raise ValueRefusedError(
                f"Cannot sample the simulation of '{self.system.label}'",
                expected=f"ascending times in [{start!r}, {end!r}] s",
                found=np.array2string(grid, threshold=6),
            )
        return grid

    def resolve(self, signal: Signal) -> Reader:
        """Return the handle of a signal, and the component that the path names, if any."""
        return resolve(self.system, signal)

    # Analysis and plots --------------------------------------------------------------------

    def fine_time(self, points: int = 2000) -> FloatArray:
        """Return the step times with points between them, about ``points`` in all.

        Points are added inside of steps, so that jumps keep their two values.
        """
        span = self._history.end - self._history.start
        coarse = self.time
        if span <= 0.0 or len(coarse) < 2:
            return coarse
        extra = np.linspace(self._history.start, self._history.end, points)
        extra = extra[~np.isin(extra, coarse)]
        merged = np.concatenate([coarse, extra])
        return merged[np.argsort(merged, kind="stable")]

    def step_info(
        self,
        signal: Signal,
        *,
        at: float | None = None,
        initial: float | None = None,
        final: float | None = None,
        target: float | None = None,
        band: float = 0.02,
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

        Returns
        -------
        StepInfo

        Warns
        -----
        UserWarning
            When figures are NaN because the signal still moves at the end; see
            `flexure.step_info`.

        Raises
        ------
        ValueRefusedError
            When the signal cannot be measured, or sources upstream of it jump or bend at several
            times and ``at`` is not given.
        """
        response = self.step_response(
            signal, at=at, initial=initial, final=final, target=target, band=band
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
    ) -> StepResponse:
        """Return a signal with one component as a step response, ready to be plotted.

        Options are those of `step_info`.
        """
        from flexure.solvers.responses import record_response
        from flexure.solvers.step_sources import StepFinder

        finder = StepFinder(self.system, self.resolve(signal))
        context, span = self._scratch.clone(), (self._history.start, self._history.end)
        found = finder.find(context, *span, at)
        if target is None and not math.isnan(found.target):
            target = found.target
        return record_response(
            self, signal, at=found.at, initial=initial, final=final, target=target, band=band
        )

    def plot(self, *signals: Signal, path: str | Path | None = None) -> Figure:
        """Plot signals over time, one panel per signal, with Matplotlib.

        Parameters
        ----------
        *signals : Handle or str
            What to plot; the outputs of the system when omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from flexure.solvers.plotting import plot_signals

        chosen = signals or tuple(self.system.output_ports)
        return plot_signals(self, chosen, path=path)

    # Export --------------------------------------------------------------------------------

    def to_dict(
        self, signals: Iterable[Signal] | None = None, times: npt.ArrayLike | None = None
    ) -> dict[str, FloatArray]:
        """Return ``{"time": ..., path: values, ...}`` for some or all signals."""
        chosen = list(self.signals if signals is None else signals)
        names = [path_of(signal) for signal in chosen]
        if "time" in names:
            raise ValueRefusedError(
                f"Cannot make a table of signals of '{self.system.label}'",
                expected="'time' to be the times",
                found="a signal of that name",
                remedy="Rename the port, or leave it out with signals=",
            )
        grid = self.time if times is None else self._check_times(times)
        values = self.sample_all(chosen, grid)
        return {"time": np.array(grid)} | dict(zip(names, values, strict=True))

    def columns(
        self, signals: Iterable[Signal] | None = None, times: npt.ArrayLike | None = None
    ) -> dict[str, FloatArray]:
        """Return the same as `to_dict`, with one entry per component."""
        table: dict[str, FloatArray] = {}
        chosen = list(self.signals if signals is None else signals)
        data = self.to_dict(chosen, times)
        table["time"] = data.pop("time")
        for signal, (name, values) in zip(chosen, data.items(), strict=True):
            if values.ndim == 1:
                table[name] = values
                continue
            labels = self.resolve(signal).labels
            table |= {f"{name}[{label}]": values[:, k] for k, label in enumerate(labels)}
        return table

    def to_csv(self, path: str | Path, signals: Iterable[Signal] | None = None) -> None:
        """Write a table with one column per component; numbers keep every bit."""
        table = self.columns(signals)
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(
                [repr(number) for number in row]
                for row in zip(*(column.tolist() for column in table.values()), strict=True)
            )

    def to_npz(self, path: str | Path, signals: Iterable[Signal] | None = None) -> None:
        """Write a NumPy archive with one array per signal."""
        arrays: Mapping[str, Any] = self.to_dict(signals)
        np.savez_compressed(path, **arrays)

    def to_pandas(self, signals: Iterable[Signal] | None = None) -> Any:
        """Return a pandas DataFrame with time as its index."""
        pandas = import_extra("pandas")
        table = self.columns(signals)
        time = table.pop("time")
        return pandas.DataFrame(table, index=pandas.Index(time, name="time"))

    def to_xarray(self, signals: Iterable[Signal] | None = None) -> Any:
        """Return an xarray Dataset with the dimension time."""
        xarray = import_extra("xarray")
        data = self.to_dict(signals)
        time = data.pop("time")
        variables = {
            name: (("time",) if values.ndim == 1 else ("time", f"{name}_component"), values)
            for name, values in data.items()
        }
        return xarray.Dataset(variables, coords={"time": time})

    def __repr__(self) -> str:
        return (
            f"<SimulationResult of '{self.system.label}', t = {self._history.start:g} to "
            f"{self._history.end:g} s, {self.statistics.steps} steps, {self.outcome}>"
        )


def import_extra(name: str) -> Any:
    """Import an optional package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"Cannot convert the result with {name}",
            expected=f"the package {name}",
            found="none installed",
            remedy="Install it with: pip install 'flexure[data]'",
        ) from error


__all__ = ["Signal", "SimulationResult"]
