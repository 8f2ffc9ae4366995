"""The metrics of a sweep: which are wanted, and their numbers, chunk by chunk of its runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.arguments import items_of, require_known, shown
from flexure.diagrams.checks.errors import ValueRefusedError, quoted, warn
from flexure.diagrams.contexts.value_places import Place, path_of
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures import response_metrics
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metrics import Measure, Metric, Records, Response, columns_of
from flexure.solvers.results.measures.step_characteristics import StepInfo
from flexure.solvers.results.measures.step_responses import way_to_rest
from flexure.solvers.results.measures.step_sources import StepFinder, StepInput
from flexure.solvers.sweeps.running.variants import Variants
from flexure.solvers.tracing.signals import Reader

#: A step metric by its name, a metric, or a function of a `SimulationResult`.
Wanted: TypeAlias = str | Metric | Measure
#: Instants and targets of steps in runs: arrays of shape (N,) by name, for each response. And the
#: ``"value"`` of parameters, by path.
Steps: TypeAlias = Mapping[Response | str, Mapping[str, FloatArray]]

_METRICS = tuple(field.name for field in fields(StepInfo))
_WANTED = (
    "names of step metrics, metrics of fx.metrics or functions of a result, alone or in a list, or "
    "by names in a mapping"
)
_PIECES = 100_000  # of the steps that are measured at once, which bounds the memory for it


def listed(metrics: Any, attempt: str) -> list[tuple[str | None, Wanted]]:
    """Return what a user asks for: metrics, with the names that they were given."""
    pairs: list[tuple[Any, Any]]
    if isinstance(metrics, type):
        raise ValueRefusedError(attempt, expected=_WANTED, found=shown(metrics))
    if isinstance(metrics, Mapping):
        pairs = list(metrics.items())
    else:
        several = not (isinstance(metrics, (str, Metric)) or callable(metrics))
        each = items_of(metrics, _WANTED, attempt) if several else (metrics,)
        pairs = [(None, item) for item in each]
    for name, each in pairs:
        fits = isinstance(each, (str, Metric)) or (callable(each) and not isinstance(each, type))
        if not fits or not (name is None or (isinstance(name, str) and name)):
            found = shown(each if name is None else {name: each})
            raise ValueRefusedError(attempt, expected=_WANTED, found=found)
        if isinstance(each, str):
            check_names([each])
    return pairs


def check_names(names: Iterable[str]) -> None:
    """Refuse what is no step metric."""
    for name in names:
        require_known(name, _METRICS, f"Cannot measure {name!r} of step responses")


def chosen(
    pairs: Sequence[tuple[str | None, Wanted]], responses: Sequence[str], attempt: str
) -> dict[str, Metric]:
    """Return metrics by name; step metrics are those of several signals."""
    found: dict[str, Metric] = {}
    for given, each in pairs:
        if isinstance(each, str):
            name = given or each
            made = {
                name if len(responses) == 1 else f"{name} of {path}": response_metrics.step(
                    each, path
                )
                for path in responses
            }
        else:
            metric = each if isinstance(each, Metric) else response_metrics.of(each)
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
    """The metrics of runs, and what is known of those that are NaN."""

    def __init__(self, names: Iterable[str], count: int) -> None:
        # Arrays of shape (N,) by name; NaN where nothing is known yet.
        self.columns = {name: np.full(count, np.nan) for name in names}
        # How much longer runs have to be of which a signal still moves at the end, by path, (N,).
        self.longer: dict[str, FloatArray] = {}
        # Paths and names of the step metrics that some of these runs lack.
        self.lacking: set[tuple[str, str]] = set()
        self._count = count

    def put(self, runs: slice | NDArray[np.int64], part: MetricColumns) -> None:
        """Enter the metrics of some of the runs, by their numbers."""
        for name, column in part.columns.items():
            self.columns[name][runs] = column
        for path, longer in part.longer.items():
            self.longer.setdefault(path, np.zeros(self._count))[runs] = longer
        self.lacking |= part.lacking

    def blank(self, index: int) -> None:
        """Remove the numbers of a run."""
        for column in self.columns.values():
            column[index] = np.nan

    def warn_of_motion(self) -> None:
        """Warn where metrics are NaN because signals still move at the end of the runs."""
        for path, longer in self.longer.items():
            lacking = [name for name in _METRICS if (path, name) in self.lacking]
            if lacking:
                warn_of_motion(path, lacking, longer)


class Measuring:
    """How runs are sampled, and how metrics are computed from what signals did in them.

    ``readers`` are the signals by path, those that are kept before those that metrics read. Kept
    ones are sampled at ``times``, (K,), on which metrics do not depend. ``span`` is the begin and
    the end of runs, ``constants`` are parameters that metrics read as constant signals, by path.
    """

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        readers: Mapping[str, Reader],
        times: FloatArray,
        span: tuple[float, float],
        constants: Mapping[str, Place] | None = None,
    ) -> None:
        self.metrics, self.readers, self.times, self.span = metrics, readers, times, span
        self.constants = constants or {}
        read = dict.fromkeys(path_of(way) for each in metrics.values() for way in each.signals)
        # The signals that metrics read, by path.
        self.followed = {path: readers[path] for path in read if path not in self.constants}

    @property
    def components(self) -> list[int]:
        """The components that metrics read, counted through all signals."""
        sizes = [reader.size for reader in self.readers.values()]
        begins = dict(zip(self.readers, np.cumsum([0, *sizes]).tolist(), strict=False))
        return [
            begins[path] + k for path, reader in self.followed.items() for k in range(reader.size)
        ]

    @property
    def units(self) -> dict[str, str]:
        """Units of the metrics; empty texts where they are not known."""
        given = {path: reader.unit for path, reader in self.readers.items()}
        return {name: metric.unit_among(given) for name, metric in self.metrics.items()}

    @property
    def functions(self) -> list[Measure]:
        """Functions of whole results that are to be called."""
        return [function for metric in self.metrics.values() for function in metric.functions]

    def find_steps(self, variants: Variants) -> Steps:
        """Return the steps to which runs respond, and what parameters are in them."""
        count = len(variants)
        responses = {each for metric in self.metrics.values() for each in metric.responses}
        steps: dict[Response | str, Mapping[str, FloatArray]] = {
            each: find_steps(
                variants,
                self.readers[each.path],
                *self.span,
                np.full(count, np.nan if each.at is None else each.at),
                each.disturbs,
            )
            for each in responses
        }
        for path, place in self.constants.items():
            steps[path] = {"value": variants.read(place)}
        none = dict.fromkeys(self.functions, np.empty(0))
        nothing = DenseOutput.joined([], sum(reader.size for reader in self.followed.values()))
        self.measure(nothing, part_of(steps, slice(0)), none)
        return steps

    def measure(
        self,
        dense: DenseOutput,
        steps: Steps,
        numbers: Mapping[Measure, FloatArray],
        failures: dict[int, str] | None = None,
    ) -> MetricColumns:
        """Measure N runs, of which is known what followed signals did.

        Functions that raise an error leave it in ``failures``, by the index among these runs.
        ``numbers`` holds the values that functions of whole results returned.
        """
        count = len(dense)
        found = MetricColumns(self.metrics, count)
        shapes = {path: reader.shape for path, reader in self.followed.items()}
        columns = columns_of({**shapes, **dict.fromkeys(self.constants, ())})
        size = max(1, _PIECES * max(1, count) // max(1, len(dense.begin)))
        for start in range(0, max(1, count), size) if self.metrics else ():
            rows = slice(start, start + size)
            some = {function: column[rows] for function, column in numbers.items()}
            known, part = part_of(steps, rows), dense.part(rows)
            for path in self.constants:
                part = part.with_constant(known[path]["value"])
            records = Records(part, columns, known, some, failures={}, span=self.span)
            for name, metric in self.metrics.items():
                found.columns[name][rows] = metric.measure(records)
            for path, longer in records.longer.items():
                found.longer.setdefault(path, np.zeros(count))[rows] = longer
            found.lacking |= records.lacking
            if failures is not None:
                told = (records.failures or {}).items()
                failures |= {start + index: text for index, text in told}
        return found


def part_of(steps: Steps, runs: slice | NDArray[np.int64]) -> Steps:
    """Return the steps of some of the runs."""
    return {
        each: {key: column[runs] for key, column in found.items()} for each, found in steps.items()
    }


def warn_of_motion(path: str, lacking: Sequence[str], longer: FloatArray) -> None:
    """Warn that metrics are NaN in runs of which a signal still moves at the end."""
    moving = longer[longer > 0.0]
    warn(
        f"'{path}' still moves at the end of {len(moving)} of {len(longer)} runs, "
        f"so that {quoted(lacking)} is NaN there: {way_to_rest(moving)}"
    )


def find_steps(
    variants: Variants,
    reader: Reader,
    start: float,
    end: float,
    at: FloatArray,
    disturbs: bool = False,
) -> dict[str, FloatArray]:
    """Return instant and target of the step in each run of a sweep; see `StepFinder`.

    ``at``, (N,), are the instants of the steps, NaN where they are not known. If it ``disturbs``,
    a disturbance is looked for, and not a step.
    """
    base = variants.base()
    finder = StepFinder(base.system, reader)
    find = finder.find_disturbance if disturbs else finder.find
    known = [None if math.isnan(time) else time for time in at.tolist()]
    if not (known and (len(set(known)) > 1 or any(map(variants.differ_in, finder.deciding)))):
        found = [find(base, start, end, time) for time in known[:1]] * len(known)
    else:
        found = [find(variants.context(k), start, end, time) for k, time in enumerate(known)]
    columns = np.array(found, dtype=float).reshape(-1, 2).T
    return dict(zip(StepInput._fields, columns, strict=True))
