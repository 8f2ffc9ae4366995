"""Candidates of a search: their runs, all in one sweep, or their numbers and slopes at rest."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from flexure.diagrams.checks.arguments import items_of, require_that
from flexure.diagrams.checks.errors import ExecutorError, FlexureError, ValueRefusedError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, find_place, path_of
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.design.objectives.measures import Measure as RestMeasure
from flexure.solvers.design.objectives.rest_numbers import RestNumbers, RestPoint, StrokeMeasure
from flexure.solvers.design.optimization.search_space import SearchSpace
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metrics import (
    Constraint,
    Measure,
    Metric,
    Records,
    columns_of,
)
from flexure.solvers.sweeps.running.metric_columns import Measuring
from flexure.solvers.sweeps.running.sweep_record import INTERRUPTED, TERMINATED
from flexure.solvers.sweeps.running.variants import SweptContexts
from flexure.solvers.sweeps.sweeps import sweep_candidates
from flexure.solvers.tracing.signals import can_be_read, resolve

_STEP = float(np.finfo(float).eps ** (1 / 3))


@dataclass(frozen=True, eq=False)
class Study:
    """What is run and measured for each candidate."""

    system: System  # what is simulated
    base: Context  # what all candidates have in common
    t_final: float | None  # end of the runs in seconds; None for candidates at rest
    goal: Metric  # what is to be small
    constraints: tuple[Constraint, ...]  # what is to be kept
    options: dict[str, Any]  # how runs are integrated
    executor: Executor | None  # who runs the candidates
    threads: int | None  # as for `flexure.sweep`
    attempt: str  # beginning of messages
    # signals, constants: what metrics read that is sampled, and parameters, which stay what they
    # are in a run.
    signals: dict[str, Place] = field(init=False)
    constants: dict[str, Place] = field(init=False)

    def __post_init__(self) -> None:
        signals, constants = {}, {}
        for way in (each for metric in self.metrics for each in metric.signals):
            path, place = path_of(way), find_place(self.system, way, can_be_read)
            if isinstance(place.handle, NumericParameter):
                constants[path] = place
            else:
                resolve(self.system, way)
                signals[path] = place
        object.__setattr__(self, "signals", signals)
        object.__setattr__(self, "constants", constants)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What is measured: the goal, then what the constraints bound."""
        return self.goal, *(constraint.metric for constraint in self.constraints)

    @property
    def at_rest(self) -> bool:
        """Whether candidates are computed at rest, without a run."""
        return self.t_final is None

    @property
    def functions(self) -> tuple[Measure, ...]:
        """Functions of whole results that the metrics need."""
        return tuple(dict.fromkeys(f for metric in self.metrics for f in metric.functions))

    @property
    def named(self) -> dict[str, Metric]:
        """The metrics by their numbers."""
        return {str(k): metric for k, metric in enumerate(self.metrics)}

    def measured(self, space: SearchSpace, points: FloatArray, dense: DenseOutput) -> FloatArray:
        """Return goal and constraints of candidates, (N, 1 + m), from what `signals` did."""
        readers = {path: resolve(self.system, path) for path in self.signals}
        assert self.t_final is not None
        span = (self.base.time, self.t_final)
        measuring = Measuring(self.named, readers, np.empty(0), span, self.constants)
        steps = measuring.find_steps(SweptContexts(self.base.clone(), space.values(points)))
        return _columns(measuring.measure(dense, steps, {}).columns)


@dataclass
class CandidateRuns:
    """Results of the runs of some candidates."""

    numbers: FloatArray  # goal and constraints; NaN where there are none, shape (N, 1 + m)
    # Why a run failed, "" where it did not; None where it was interrupted.
    reasons: list[str | None]
    how: str  # how the runs were run
    interruption: KeyboardInterrupt | ExecutorError | None = None  # what ended them early


def constraints_of(constraints: Any, attempt: str) -> tuple[Constraint, ...]:
    """Return what is to be kept."""
    if isinstance(constraints, Constraint):
        return (constraints,)
    wanted = "constraints such as [fx.metrics.peak('pid.u') <= 12.0]"
    return items_of(constraints, wanted, attempt, kind=Constraint)


def run_candidates(study: Study, space: SearchSpace, points: FloatArray) -> CandidateRuns:
    """Run candidates, and measure."""
    assert study.t_final is not None
    interruption: KeyboardInterrupt | ExecutorError | None = None
    try:
        swept = sweep_candidates(
            study.system,
            space.values(points),
            study.t_final,
            context=study.base,
            metrics=study.named,
            executor=study.executor,
            threads=study.threads,
            **study.options,
        )
    except (KeyboardInterrupt, ExecutorError) as error:
        if not hasattr(error, "result"):
            raise
        interruption, swept = error, error.result
    numbers = _columns(swept.metrics)
    reasons = [
        None if how == INTERRUPTED else swept.failures.get(k, "")
        for k, how in enumerate(swept.outcomes.tolist())
    ]
    for k in np.flatnonzero((swept.outcomes == TERMINATED) & ~np.isfinite(numbers).all(axis=1)):
        reasons[k] = f"terminated before t = {study.t_final:g} s, up to which metrics read"
    numbers[[reason != "" for reason in reasons]] = np.nan  # constants have values, too
    return CandidateRuns(numbers, reasons, swept.how, interruption)


def _columns(numbers: Mapping[str, FloatArray]) -> FloatArray:
    """Return the metrics of a study as columns."""
    return np.column_stack(list(numbers.values())).astype(float)


def require_rest(study: Study) -> None:
    """Refuse metrics of runs where there is no run."""
    for metric in study.metrics:
        functions = [f for f in metric.functions if not isinstance(f, (RestMeasure, StrokeMeasure))]
        read = [path_of(way) for way in metric.signals if path_of(way) in study.signals]
        if functions or read or metric.responses:
            raise ValueRefusedError(
                f"{study.attempt} without t_final",
                expected="metrics of a system at rest, such as fx.metrics.frequency(), and of "
                "parameters",
                found=f"'{metric.label}', which measures a run",
                remedy="Pass t_final=, or use fx.metrics.at_rest(...) for the value of a signal",
            )
    given = {**study.options, "executor": study.executor, "threads": study.threads}
    of_runs = [name for name, value in given.items() if name in study.options or value is not None]
    require_that(
        not of_runs, f"{study.attempt} without t_final", "no options of runs", quoted(of_runs)
    )


class RestCandidates:
    """Goal and constraints of candidates at rest, and their derivatives by coordinates.

    Metrics are sums, products and quotients of numbers at rest and parameters. Those have exact
    derivatives; a metric is differentiated along them by a central difference of its arithmetic.
    """

    kind = "derivatives of {} candidates"
    may_step = False  # numbers at rest do not jump

    def __init__(self, study: Study, space: SearchSpace) -> None:
        self._study, self._space = study, space
        measures = cast("tuple[RestMeasure | StrokeMeasure, ...]", study.functions)
        self._numbers = RestNumbers(space.paths, measures, study.attempt, space.spread)
        self._last: tuple[bytes, RestPoint] | None = None
        self.count = 0  # number of candidates of which derivatives were computed
        self.rtol = 0.0  # not used: there are no motions

    def run(self, points: FloatArray) -> CandidateRuns:
        """Return goal and constraints of candidates, and why some have none."""
        rows, reasons = [], []
        for point in points:
            try:
                parts = self._at(point).values, self._constants(point)
                rows.append(self._metrics(*(part[np.newaxis] for part in parts))[0])
                reasons.append("")
            except FlexureError as error:
                rows.append(np.full(len(self._study.metrics), np.nan))
                reasons.append(str(error))
        return CandidateRuns(np.array(rows), [*reasons], "at rest")

    def __call__(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return goal and constraints at a point, shape (1 + m,), and their derivatives by it."""
        found, study, space = self._at(point), self._study, self._space
        slopes = found.slopes() * space.slopes(point)
        constants = self._constants(point)
        numbers = np.concatenate([found.values, constants])
        by_constants = np.zeros((len(constants), len(space)))
        for k, (coordinate, size) in enumerate(
            zip(np.eye(len(space)), space.slopes(point), strict=True)
        ):
            by_constants[:, k] = size * space.moved(
                study.base, study.constants.values(), coordinate
            )
        ways = np.vstack([slopes.reshape(-1, len(space)), by_constants])
        steps = _STEP * np.maximum(np.abs(numbers), 1.0)
        asides = np.vstack([np.diag(steps), -np.diag(steps), np.zeros(len(numbers))]) + numbers
        count = len(found.values)
        rows = self._metrics(asides[:, :count], asides[:, count:])
        half = len(numbers)
        self.count += 1
        return rows[-1], ((rows[:half] - rows[half : 2 * half]).T / (2.0 * steps)) @ ways

    def warn_of(self, point: FloatArray) -> None:
        """Give the warnings of a candidate, which a search does without."""
        self._last = None
        self._at(point)

    def _at(self, point: FloatArray) -> RestPoint:
        key = point.tobytes()
        if self._last is None or self._last[0] != key:
            context: Context = self._study.base.clone()
            self._space.write(context, point)
            self._last = key, self._numbers.at(context)
        return self._last[1]

    def _constants(self, point: FloatArray) -> FloatArray:
        """Return the parameters that metrics read, end to end."""
        read = (
            self._space.read(self._study.base, place, point[np.newaxis]).ravel()
            for place in self._study.constants.values()
        )
        return np.concatenate([np.zeros(0), *read])

    def _metrics(self, numbers: FloatArray, constants: FloatArray) -> FloatArray:
        """Return all metrics, shape (N, 1 + m), from what they are made of."""
        study = self._study
        held = np.repeat(constants[:, np.newaxis, :], 2, axis=1)
        shapes: Mapping[str, tuple[int, ...]] = {
            path: place.shape or () for path, place in study.constants.items()
        }
        records = Records(
            DenseOutput.of_samples(np.array([0.0, 1.0]), held),
            columns_of(shapes),
            numbers=dict(zip(study.functions, numbers.T, strict=True)),
        )
        return np.column_stack([metric.measure(records) for metric in study.metrics])
