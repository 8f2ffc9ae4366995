"""Measures of signals in all runs of a sweep, from the same runs simulated once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import ValueRefusedError, warn
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.values.arrays import FloatArray, as_numbers
from flexure.solvers.results.measures import response_metrics
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metrics import Metric
from flexure.solvers.results.measures.step_responses import require_single
from flexure.solvers.sweeps.running.metric_columns import (
    Measuring,
    MetricColumns,
    Steps,
    check_names,
    find_steps,
)
from flexure.solvers.sweeps.running.runs import run_all
from flexure.solvers.sweeps.running.sweep_record import INTERRUPTED
from flexure.solvers.sweeps.running.variants import Variants
from flexure.solvers.sweeps.tables.sweep_tables import AbsentModel
from flexure.solvers.tracing.lanes import TIME_KEY
from flexure.solvers.tracing.signals import Reader, Signal

if TYPE_CHECKING:
    from flexure.solvers.sweeps.sweep import Sweep


class SweepFigures:
    """Measures the sampled signals of a sweep, from its runs; readers are by path."""

    def __init__(self, sweep: Sweep, variants: Variants, readers: Mapping[str, Reader]) -> None:
        self._sweep, self._variants, self._readers = sweep, variants, readers

    def step(
        self,
        name: str,
        signal: Signal | None,
        given: Mapping[str, npt.ArrayLike | None],
        band: float,
        control: Signal | None,
    ) -> FloatArray:
        """Return a step metric; see `Sweep.metric`."""
        check_names([name])
        label = self._only_signal() if signal is None else path_of(signal)
        self._one_component(label)
        options = {key: self._for_each_run(key, item) for key, item in given.items()}
        for each in response_metrics.with_control(name, label, control)[1:]:
            self._one_component(path_of(each))
        metric = response_metrics.step(name, label, band=band, control=control)

        def steps(measuring: Measuring, variants: Variants, runs: NDArray[np.int64]) -> Steps:
            chosen = {key: column[runs] for key, column in options.items()}
            found = find_steps(variants, self._readers[label], *measuring.span, chosen["at"])
            for key, column in found.items():
                chosen[key] = np.where(np.isnan(chosen[key]), column, chosen[key])
            return {metric.responses[0]: chosen}

        return self._measure(metric, steps)

    def metric(self, metric: Metric) -> FloatArray:
        """Return a metric of sampled signals in all runs."""
        if metric.functions:
            raise ValueRefusedError(
                f"Cannot measure {metric.label}",
                expected="a metric of sampled signals",
                found="a function of the whole result of a run",
                remedy="Name it in metrics= of the sweep",
            )
        return self._measure(metric, lambda measuring, variants, _: measuring.find_steps(variants))

    def _one_component(self, label: str) -> FloatArray:
        """Return a sampled signal that has one component."""
        values = self._sweep[label]
        attempt = f"Cannot measure step responses of '{label}'"
        require_single(values, 2, attempt, "Sample a single one, as in signals=['plant.y[0]']")
        return values

    def _measure(
        self, metric: Metric, find: Callable[[Measuring, Variants, NDArray[np.int64]], Steps]
    ) -> FloatArray:
        """Return a metric of all runs, which are run again for it, with steps that are found."""
        sweep, variants = self._sweep, self._variants
        samples = {path_of(each): sweep[each] for each in metric.signals}
        readers = {path: self._readers[path] for path in samples}
        runs = np.flatnonzero(sweep.outcomes != INTERRUPTED)
        columns = MetricColumns({metric.label: metric}, len(sweep))
        if isinstance(sweep.system, AbsentModel):
            span = (float(sweep.times[0]), float(sweep.times[-1]))
            measuring = Measuring({metric.label: metric}, readers, sweep.times, span)
            steps = find(measuring, variants, runs)
            blocks = [each.reshape(*each.shape[:2], -1) for each in samples.values()]
            dense = DenseOutput.of_samples(sweep.times, np.concatenate(blocks, axis=2))
            columns.put(np.arange(len(sweep)), measuring.measure(dense, steps, {}))
            warn(
                f"{metric.label} is measured from {len(sweep.times)} samples of each run, and "
                "values between them are unknown, since the study was loaded without its model"
            )
        elif len(runs):
            variants = variants.loaded(variants.cargo(runs))
            start = float(np.max(variants.lanes(())[TIME_KEY]))
            span = (start, sweep.t_final)
            measuring = Measuring({metric.label: metric}, readers, sweep.times[:0], span)
            steps = find(measuring, variants, runs)
            record, found = run_all(variants, sweep._settings, measuring, steps, 0)
            if record.interruption is not None:
                raise record.interruption
            columns.put(runs, found)
        columns.warn_of_motion()
        return columns.columns[metric.label]

    def _for_each_run(self, name: str, item: npt.ArrayLike | None) -> FloatArray:
        """Return an option with one number for each run; NaN where it is not given."""
        attempt = f"Cannot measure step responses with this {name}="
        column = np.asarray(np.nan) if item is None else as_numbers(item, attempt)
        if column.shape not in ((), (len(self._sweep),)):
            raise ValueRefusedError(
                attempt,
                expected=f"a number, or one for each of {len(self._sweep)} runs",
                found=f"an array of shape {column.shape}",
            )
        return np.broadcast_to(column, len(self._sweep))

    def _only_signal(self) -> str:
        if len(self._sweep.signals) == 1:
            return self._sweep.signals[0]
        raise ValueRefusedError(
            f"Cannot measure step responses of '{self._sweep.system.label}'",
            expected="the name of one of the sampled signals",
            found=f"{len(self._sweep.signals)} sampled signals",
        )
