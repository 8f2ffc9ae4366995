"""The result of a sweep as a labelled table: values, metrics, signals and outcomes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import path_of, several
from flexure.diagrams.interface.completion import HasSignals
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.tables import Table
from flexure.solvers.results.measures.metrics import Metric
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.sweeps.plans.plans import Plan, with_range
from flexure.solvers.sweeps.running.metric_columns import Measuring
from flexure.solvers.sweeps.running.sweep_record import INTERRUPTED, Settings, SweepRecord
from flexure.solvers.sweeps.running.variants import SweptContexts, Variants
from flexure.solvers.sweeps.sweep_figures import SweepFigures
from flexure.solvers.sweeps.tables import sweep_tables
from flexure.solvers.sweeps.tables.regression import Regression, regress
from flexure.solvers.sweeps.tables.sweep_tables import AbsentMetrics, AbsentModel
from flexure.solvers.tracing.signals import Signal, resolve

if TYPE_CHECKING:
    from flexure.solvers.sweeps.pictures import (
        distribution_plots,
        grid_maps,
        parallel_coordinates,
        tornado,
    )
else:
    distribution_plots = Deferred("flexure.solvers.sweeps.pictures.distribution_plots")
    grid_maps = Deferred("flexure.solvers.sweeps.pictures.grid_maps")
    parallel_coordinates = Deferred("flexure.solvers.sweeps.pictures.parallel_coordinates")
    tornado = Deferred("flexure.solvers.sweeps.pictures.tornado")

BAND = 0.02  # half the width of the settling band, unless it is given


class Sweep(Answer, HasSignals):
    """The result of a sweep: a table with a row for each run, and its pictures.

    ``sweep["plant.y"]`` is a sampled signal in all runs: an array of shape (N, K), or (N, K, size)
    for a signal with several components.

    Attributes
    ----------
    system : System
        What was simulated.
    plan : Plan or None
        What the runs differ in, with its dimensions; None for runs from given contexts.
    values : dict
        What was swept: arrays with an entry for each of the N runs, by path.
    t_final : float
        End of the runs in seconds.
    times : ndarray, shape (K,)
        When the signals were sampled, also those that only metrics read.
    signals : tuple of str
        Their paths.
    final_states : ndarray, shape (N, n)
        Continuous states at the ends of the runs; NaN where a run failed or was interrupted.
    steps : ndarray of int, shape (N,)
        Integrator steps of the runs.
    outcomes : ndarray of str, shape (N,)
        "completed", "terminated" or "failed", or "interrupted": not run to the end.
    failures : dict
        What went wrong, by the index of the run.
    metrics : dict
        What was measured, arrays of shape (N,) by name; NaN where a run failed or was interrupted.
    units : dict
        Units of values, signals and metrics by name; empty texts where they are not known.
    how : str
        How the runs were run.

    See Also
    --------
    sweep : Simulate a plan.
    load_study : Read a stored study.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 1.0)
    >>> found = fx.sweep(
    ...     lag, {"time_constant": [0.5, 1.0], "u": [1.0, 1.0]}, 1.0, metrics=fx.metrics.final("y")
    ... )
    >>> found.metrics["final(y)"].round(3)
    array([0.865, 0.632])
    """

    def __init__(
        self,
        settings: Settings,
        variants: Variants | AbsentModel,
        measuring: Measuring | AbsentMetrics,
        kept: int,
        record: SweepRecord,
        metrics: Mapping[str, FloatArray],
    ) -> None:
        self.system: System = settings.system
        swept = variants if isinstance(variants, (SweptContexts, AbsentModel)) else None
        self.plan: Plan | None = None if swept is None else swept.plan
        self.values: dict[str, FloatArray] = {} if swept is None else dict(swept.values)
        self.t_final = settings.t_final
        self.times = freeze(measuring.times)
        self._readers = dict(list(measuring.readers.items())[:kept])
        self.signals = tuple(self._readers)
        self.final_states = freeze(record.finals)
        self.steps = freeze(record.steps)
        self.outcomes = np.array(record.outcomes, dtype="U11")
        self.failures = dict(sorted(record.failures.items()))
        self.metrics = dict(metrics)
        self._varied = {} if swept is None else dict(swept.varied)
        self.units = {path: each.unit for path, each in self._varied.items()}
        self.units |= {path: reader.unit for path, reader in self._readers.items()}
        self.units |= measuring.units
        self.how = record.how
        self._settings = settings
        self._variants: Any = variants
        self._measuring = measuring if isinstance(measuring, Measuring) else None
        self._samples = {
            name: freeze(sample.reshape(*sample.shape[:2], *reader.shape))
            for (name, reader), sample in zip(self._readers.items(), record.samples, strict=True)
        }

    def __copy__(self) -> Sweep:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Sweep:
        """Return a sweep of the same system; what cannot be changed is shared."""
        twin = object.__new__(Sweep)
        twin.__dict__ = self.__dict__ | {
            name: copy.deepcopy(getattr(self, name), memo)
            for name in ("values", "outcomes", "failures", "metrics")
        }
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickles keep: without metrics that are functions that they cannot hold."""
        try:
            pickle.dumps(self._measuring)
        except Exception:
            return self.__dict__ | {"_measuring": None}
        return self.__dict__

    def __len__(self) -> int:
        return len(self.outcomes)

    def __getitem__(self, signal: Signal) -> FloatArray:
        """Return a sampled signal in all runs, shape (N, K) or (N, K, size)."""
        name = path_of(signal)
        if name not in self._samples:
            raise UnknownNameError(
                f"Cannot find the signal '{name}' in the sweep of '{self.system.label}'",
                expected=f"one of the sampled signals: {quoted(self.signals)}",
                remedy=f"The attribute metrics has the metric '{name}'"
                if name in self.metrics
                else "Name it in signals= of the sweep",
            )
        samples: FloatArray = self._samples[name]
        return samples

    # Tables --------------------------------------------------------------------------------

    def table(self) -> Table:
        """Return a table with a row for each run: its number, values, metrics and outcome.

        Values with a shape have a column for each component. Where runs failed, there is a column
        with the reasons. ``print`` shows all rows.
        """
        columns = {"run": np.arange(len(self)), **sweep_tables.columns(self)}
        if not self.failures:
            del columns["reason"]
        return Table(columns, zip(*map(list, columns.values()), strict=True))

    to_pandas = sweep_tables.to_pandas
    to_csv = sweep_tables.to_csv
    to_mat = sweep_tables.to_mat
    to_parquet = sweep_tables.to_parquet
    to_xarray = sweep_tables.to_xarray
    failure_table = sweep_tables.failure_table
    _pieces = sweep_tables.pieces

    def regression(self, metric: str) -> Regression:
        """Return the linear regression of a metric over all values of the sweep.

        Parameters
        ----------
        metric : str
            The name of a metric of the sweep.

        Returns
        -------
        Regression

        Raises
        ------
        UnknownNameError
            When there is no such metric.
        ValueRefusedError
            When nothing was varied, or fewer runs have a number than the plane has coefficients.
        """
        return regress(self.values, self.metrics, metric, self.system.label)

    # Pictures, with names as those of `table`; runs without numbers are marked or counted ---

    plot = distribution_plots.plot_responses
    plot_histogram = distribution_plots.plot_histogram
    plot_scatter = distribution_plots.plot_scatter
    plot_parallel = parallel_coordinates.plot_parallel
    plot_map = grid_maps.plot_map
    plot_tornado = tornado.plot_tornado

    # Single runs ---------------------------------------------------------------------------

    def context(self, index: int) -> Context:
        """Return a new context with the values with which a run began."""
        row = self._row(index, "Cannot make the context of run")
        context: Context = self._variants.context(row)
        return context

    def rerun(self, index: int, *, signals: Signal | Iterable[Signal] = ()) -> Sweep:
        """Repeat one of the runs on its own, with the same result bit for bit.

        Common decisions are the same as for all runs, so that the run is in a lane again if it was
        in one. Which lane, thread or chunk that is has no influence.

        Parameters
        ----------
        index : int
            Which run.
        signals : Handle, str or sequence, optional
            What to sample beside the signals of the sweep, for a closer look.

        Returns
        -------
        Sweep
            Of this run alone, at the same times, with the same metrics.

        Raises
        ------
        UnknownNameError
            When there is no such signal.
        ValueRefusedError
            When there is no such run, or the sweep comes from a pickle that had to leave behind
            functions that were its metrics.

        See Also
        --------
        simulate : the same run with its whole history.
        """
        from flexure.solvers.sweeps.running.runs import run_again

        row = self._row(index, "Cannot repeat run")
        measuring = self._measuring
        if measuring is None:
            raise ValueRefusedError(
                f"Cannot repeat run {row} of '{self.system.label}'",
                expected="the metrics of the sweep",
                found="a sweep from a file, or from a pickle, which cannot hold local functions",
                remedy="Use simulate(index), or in pickles metrics of functions of a module",
            )
        more = {path_of(each): resolve(self.system, each) for each in several(signals)}
        kept = self._readers | more
        known = (measuring.times, measuring.span, measuring.constants)
        again = Measuring(measuring.metrics, kept | dict(measuring.readers), *known)
        if kept and not len(again.times):
            raise ValueRefusedError(
                f"Cannot sample signals of run {row} of '{self.system.label}'",
                expected="a sweep with signals or metrics, and so with times of samples",
                found="none",
                remedy="Use simulate(index), which has the whole history",
            )
        variants, chunk = run_again(self._variants, self._settings, again, len(kept), row)
        found = Sweep(
            self._settings, variants, again, len(kept), chunk.record, chunk.metrics.columns
        )
        if chunk.record.interruption is not None:
            raise chunk.record.interruption
        return found

    def simulate(self, index: int) -> SimulationResult:
        """Simulate one of the runs on its own, with its whole history and the same options.

        Where the sweep ran single simulations, the numbers are those of the sweep to the last bit.
        Lanes compute sine, exponential and their like by other routines, and add in another order:
        in smooth motion, a part in 10¹² is between them. `rerun` gives the very numbers.

        Parameters
        ----------
        index : int
            Which run.

        Returns
        -------
        SimulationResult

        Raises
        ------
        ValueRefusedError
            When there is no such run.
        FlexureError
            The whole error of a run that failed.
        """
        row = self._row(index, "Cannot simulate run")
        return self._settings.simulate(self._variants.context(row))

    def _row(self, index: int, attempt: str) -> int:
        whole = isinstance(index, (int, np.integer))
        if not (whole and -len(self) <= index < len(self)):
            raise ValueRefusedError(
                f"{attempt} {index}",
                expected=f"the index of one of {len(self)} runs",
                found=repr(index),
            )
        return int(index) % len(self)

    # Metrics -------------------------------------------------------------------------------

    def metric(
        self,
        name: str | Metric,
        signal: Signal | None = None,
        *,
        at: npt.ArrayLike | None = None,
        initial: npt.ArrayLike | None = None,
        final: npt.ArrayLike | None = None,
        target: npt.ArrayLike | None = None,
        band: float = BAND,
        control: Signal | None = None,
    ) -> FloatArray:
        """Return a metric of sampled signals, or a step metric, in all runs.

        Samples are too coarse for that, so the runs are run once more, in this process. Name what
        you want to measure in ``metrics=`` of the sweep to have it from the first runs. A study
        that was loaded without its model is measured from its samples, with a warning.

        Parameters
        ----------
        name : str or Metric
            An attribute of `StepInfo`, such as "overshoot". Or a metric of `flexure.metrics` of
            sampled signals, which says all that the other arguments would.
        signal : Handle or str, optional
            A sampled signal with one component; the only one when omitted.
        at, initial, final, target, band
            As for `SimulationResult.step_info`; but for the band, numbers or arrays with one for
            each run. What is found through the wires is found for each run.
        control : Handle or str, optional
            The manipulated input, a sampled signal, for "control_variation" and "control_peak".

        Returns
        -------
        ndarray, shape (N,)
            NaN where a run failed or ended before its time, where nothing changes, and where the
            metric is lacking.

        Warns
        -----
        UserWarning
            When the metric is NaN in runs that still move at the end; see `flexure.step_info`.

        Raises
        ------
        UnknownNameError
            When there is no such metric or signal.
        ValueRefusedError
            When the signal has several components, an option has no value for each run, or sources
            upstream of the signal jump or bend at several times and ``at`` is not given.
        """
        figures = SweepFigures(self, self._variants, self._readers)
        if isinstance(name, Metric):
            return figures.metric(name)
        given = {"at": at, "initial": initial, "final": final, "target": target}
        return figures.step(name, signal, given, band, control)

    def __repr__(self) -> str:
        counts = {"failed": len(self.failures), INTERRUPTED: sum(self.outcomes == INTERRUPTED)}
        lost = "".join([f", {count} {outcome}" for outcome, count in counts.items() if count])
        parts = [f"Sweep of '{self.system.label}', {len(self)} runs to {self.t_final:g} s{lost}"]
        if self.values and len(self):
            parts.append(", ".join(starmap(with_range, self.values.items())))
        if self.signals:
            parts.append(f"signals {quoted(self.signals)} at {len(self.times)} times")
        if self.metrics:
            parts.append(f"metrics {quoted(self.metrics)}")
        return f"<{'; '.join(parts)}>"
