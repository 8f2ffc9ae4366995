"""Figures of sampled signals in all runs of a sweep, measured after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from flexure.diagrams.common.errors import ValueRefusedError
from flexure.diagrams.contexts.places import path_of
from flexure.diagrams.values.values import FloatArray, as_numbers
from flexure.solvers.results.measures.metric_kinds import KNOWN_IN_MOTION, with_control
from flexure.solvers.results.measures.metrics import Metric
from flexure.solvers.results.measures.step_characteristics import effort_figures, step_figures
from flexure.solvers.results.measures.step_responses import require_single
from flexure.solvers.sweeps.running.metric_columns import Measuring, check_names, warn_of_motion
from flexure.solvers.sweeps.running.step_sources import find_steps
from flexure.solvers.sweeps.running.variants import Variants
from flexure.solvers.tracing.signals import Reader, Signal

if TYPE_CHECKING:
    from flexure.solvers.sweeps.sweep import Sweep


class SweepFigures:
    """What measures the sampled signals of a sweep.

    Parameters
    ----------
    sweep : Sweep
        Whose signals.
    variants : Variants
        Its runs.
    readers : mapping
        What the signals read, by path.
    """

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
        """Return a figure of step responses; see `Sweep.metric`."""
        check_names([name])
        label = self._only_signal() if signal is None else path_of(signal)
        self._one_component(label)
        options = {key: self._for_each_run(key, item) for key, item in given.items()}
        sweep = self._sweep
        if len(sweep):
            reader, span = self._readers[label], (sweep.times[0], sweep.times[-1])
            found = find_steps(self._variants, reader, *span, options["at"])
            for key, column in found.items():
                options[key] = np.where(np.isnan(options[key]), column, options[key])
        return self._measure(name, label, options, band, control)

    def metric(self, metric: Metric) -> FloatArray:
        """Return a metric of sampled signals in all runs."""
        if metric.functions:
            raise ValueRefusedError(
                f"Cannot measure {metric.label}",
                expected="a metric of sampled signals",
                found="a function of the whole result of a run",
                remedy="Name it in metrics= of the sweep",
            )
        read = {path_of(each): self._sweep[each] for each in metric.signals}
        readers = {path: self._readers[path] for path in read}
        measuring = Measuring({metric.label: metric}, readers, self._sweep.times)
        steps = measuring.find_steps(self._variants)
        found = measuring.measure(len(self._sweep), list(read.values()), steps, {})
        found.warn_of_motion()
        return found.columns[metric.label]

    def _one_component(self, label: str) -> FloatArray:
        """Return a sampled signal that has one component."""
        values = self._sweep[label]
        attempt = f"Cannot measure step responses of '{label}'"
        require_single(values, 2, attempt, "Sample a single one, as in signals=['plant.y[0]']")
        return values

    def _measure(
        self,
        name: str,
        label: str,
        options: Mapping[str, FloatArray],
        band: float,
        control: Signal | None,
    ) -> FloatArray:
        """Return a figure of a signal in all runs; warn where it is NaN as that still moves."""
        values, (_, *others) = self._one_component(label), with_control(name, label, control)
        figures, longer = step_figures(self._sweep.times, values, **options, band=band)
        if name not in figures:
            u = self._one_component(path_of(others[0])) if others else None
            figures |= effort_figures(self._sweep.times, values, figures, u)
        moving = longer > 0.0
        if name not in KNOWN_IN_MOTION and np.isnan(figures[name][moving]).any():
            warn_of_motion(label, [name], longer)
        return figures[name]

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


__all__ = ["SweepFigures"]
