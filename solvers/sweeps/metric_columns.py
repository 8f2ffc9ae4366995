"""The metrics of a sweep: which are wanted, and their numbers, chunk by chunk of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.arguments import is_one_of, items_of, shown
from flexure.diagrams.errors import UnknownNameError, ValueRefusedError, quoted, suggestion, warn
from flexure.diagrams.values import FloatArray
from flexure.solvers.results import metric_kinds
from flexure.solvers.results.metrics import Measure, Metric, Records
from flexure.solvers.results.step_characteristics import StepInfo
from flexure.solvers.results.step_responses import way_to_rest
from flexure.solvers.sweeps.step_sources import find_steps
from flexure.solvers.sweeps.variants import Variants
from flexure.solvers.tracing.signals import Reader

#: A figure of step responses by its name, a metric, or a function of a `SimulationResult`.
Wanted: TypeAlias = str | Metric | Measure

_METRICS = tuple(field.name for field in fields(StepInfo))
_WANTED = (
    "names of step figures, metrics of fx.metrics or functions of a result, alone or in a list, or "
    "by names in a mapping"
)
_ROWS = 256  # of samples that are measured at once, which bounds the memory for it


def listed(metrics: Any, attempt: str) -> list[tuple[str | None, Wanted]]:
    """Return what a user asks for: metrics, with the names that they were given."""
    pairs: list[tuple[Any, Any]]
    if isinstance(metrics, Mapping):
        pairs = list(metrics.items())
    else:
        several = not (isinstance(metrics, (str, Metric)) or callable(metrics))
        each = items_of(metrics, _WANTED, attempt) if several else (metrics,)
        pairs = [(None, item) for item in each]
    for name, each in pairs:
        fits = isinstance(each, (str, Metric)) or callable(each)
        if not fits or not (name is None or (isinstance(name, str) and name)):
            found = shown(each if name is None else {name: each})
            raise ValueRefusedError(attempt, expected=_WANTED, found=found)
        if isinstance(each, str):
            check_names([each])
    return pairs


def check_names(names: Iterable[str]) -> None:
    """Refuse what is no figure of step responses."""
    for name in names:
        if not is_one_of(name, _METRICS):
            raise UnknownNameError(
                f"Cannot measure {name!r} of step responses", remedy=suggestion(name, _METRICS)
            )


def chosen(
    pairs: Sequence[tuple[str | None, Wanted]], responses: Sequence[str], attempt: str
) -> dict[str, Metric]:
    """Return metrics by name; figures of step responses are those of several signals."""
    found: dict[str, Metric] = {}
    for given, each in pairs:
        if isinstance(each, str):
            name = given or each
            made = {
                name if len(responses) == 1 else f"{name} of {path}": metric_kinds.step(each, path)
                for path in responses
            }
        else:
            metric = each if isinstance(each, Metric) else metric_kinds.of(each)
            made = {given or metric.label: metric}
        twice = found.keys() & made.keys()
        if twice and not all(isinstance(each, str) for _, each in pairs):
            raise ValueRefusedError(
                attempt,
                expected="metrics with different names",
                found=f"two of the name {quoted(twice)}",
                remedy="Name them in a mapping, as in metrics={'name': metric}",
            )
        found |= made
    return found


class MetricColumns:
    """The metrics of all runs of a sweep.

    Parameters
    ----------
    metrics : mapping
        The metrics by name.
    variants : Variants
        The runs.
    readers : mapping
        What is sampled, by path: at least what the metrics read.
    times : ndarray, shape (K,)
        When.

    Raises
    ------
    FlexureError
        When a metric cannot be computed from such samples.

    Attributes
    ----------
    columns : dict
        Arrays of shape (N,) by name; NaN where nothing is known yet.
    numbers : dict
        What functions of whole results returned, by function, shape (N,).
    """

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        variants: Variants,
        readers: Mapping[str, Reader],
        times: FloatArray,
    ) -> None:
        if any(metric.signals for metric in metrics.values()) and not len(times):
            raise ValueRefusedError(
                "Cannot measure signals", expected="at least one time in times=", found="none"
            )
        count = self._count = len(variants)
        self._metrics, self._readers, self._times = metrics, readers, times
        self.columns = {name: np.full(count, np.nan) for name in metrics}
        functions = [function for metric in metrics.values() for function in metric.functions]
        self.numbers: dict[Measure, FloatArray] = {f: np.full(count, np.nan) for f in functions}
        responses = {each for metric in metrics.values() for each in metric.responses}
        self._steps = {
            each: find_steps(
                variants,
                readers[each.path],
                times[0],
                times[-1],
                np.full(count, np.nan if each.at is None else each.at),
                each.disturbs,
            )
            for each in responses
        }
        self._longer: dict[str, FloatArray] = {}
        self._lacking: set[tuple[str, str]] = set()
        nothing = [np.empty((0, len(times), reader.size)) for reader in readers.values()]
        self.measure(0, nothing, {})

    def measure(self, first: int, samples: Sequence[FloatArray], failures: dict[int, str]) -> None:
        """Measure runs from one on, whose samples have the shape (n, K, size).

        Functions that raise an error leave it in ``failures``, by the index among these runs.
        """
        count = len(samples[0]) if samples else self._count
        for start in range(0, max(1, count), _ROWS) if self._metrics else ():
            rows = slice(first + start, first + min(start + _ROWS, count))
            arrays = {
                path: np.ascontiguousarray(sample[start : start + _ROWS]).reshape(
                    -1, len(self._times), *reader.shape
                )
                for (path, reader), sample in zip(self._readers.items(), samples, strict=True)
            }
            steps = {
                each: {key: column[rows] for key, column in found.items()}
                for each, found in self._steps.items()
            }
            numbers = {function: column[rows] for function, column in self.numbers.items()}
            records = Records(self._times, arrays, steps, numbers, failures={})
            for name, metric in self._metrics.items():
                self.columns[name][rows] = metric.measure(records)
            self._note(rows, records)
            failures |= {start + index: text for index, text in (records.failures or {}).items()}

    def blank(self, index: int) -> None:
        """Remove the numbers of a run."""
        for column in self.columns.values():
            column[index] = np.nan

    def _note(self, rows: slice, records: Records) -> None:
        """Note which figures of step responses are lacking."""
        self._lacking |= records.lacking
        for path, longer in records.longer.items():
            self._longer.setdefault(path, np.zeros(self._count))[rows] = longer

    def warn_of_motion(self) -> None:
        """Warn where figures are NaN because signals still move at the end of the runs."""
        for path, longer in self._longer.items():
            lacking = [name for name in _METRICS if (path, name) in self._lacking]
            if lacking:
                warn_of_motion(path, lacking, longer)


def warn_of_motion(path: str, lacking: Sequence[str], longer: FloatArray) -> None:
    """Warn that figures are NaN in runs of which a signal still moves at the end."""
    moving = longer[longer > 0.0]
    warn(
        f"'{path}' still moves at the end of {len(moving)} of {len(longer)} runs, "
        f"so that {quoted(lacking)} is NaN there: {way_to_rest(moving)}"
    )


__all__ = ["MetricColumns", "Wanted", "check_names", "chosen", "listed", "warn_of_motion"]
