"""The runs of candidates: all in one sweep, or one by one where whole results are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import items_of
from flexure.diagrams.checks.errors import ExecutorError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, find_place, path_of
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.design.optimization.search_space import SearchSpace
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metrics import Constraint, Measure, Metric
from flexure.solvers.sweeps.running.metric_columns import Measuring
from flexure.solvers.sweeps.running.sweep_record import INTERRUPTED
from flexure.solvers.sweeps.running.variants import SweptContexts
from flexure.solvers.sweeps.sweeps import sweep_candidates
from flexure.solvers.tracing.signals import can_be_read, resolve


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
        """Return goal and constraints of candidates, (N, 1 + m), from what signals did in them.

        The dense output has them in the order of `signals`.
        """
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
    numbers[[reason != "" for reason in reasons]] = np.nan  # constants have values, too
    return CandidateRuns(numbers, reasons, swept.how, interruption)


def _columns(numbers: Mapping[str, FloatArray]) -> FloatArray:
    """Return the metrics of a study as columns."""
    return np.column_stack(list(numbers.values())).astype(float)
