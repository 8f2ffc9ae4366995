"""The runs of candidates: all in one sweep, or one by one where whole results are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.common.arguments import require
from flexure.diagrams.common.errors import ExecutorError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.places import Place, find_place, is_signal, path_of
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.values import FloatArray
from flexure.solvers.design.optimization.search_space import SearchSpace
from flexure.solvers.results.measures.metric_kinds import of
from flexure.solvers.results.measures.metrics import Constraint, Measure, Metric, Records, Response
from flexure.solvers.sweeps.running.step_sources import find_steps
from flexure.solvers.sweeps.running.sweep_record import INTERRUPTED
from flexure.solvers.sweeps.running.variants import SweptContexts
from flexure.solvers.sweeps.sweeps import checked_times, sweep
from flexure.solvers.tracing.signals import resolve


@dataclass(frozen=True, eq=False)
class Study:
    """What is run and measured for each candidate.

    Attributes
    ----------
    system : System
        What is simulated.
    base : Context
        What all candidates have in common.
    t_final : float
        End of the runs in seconds.
    goal : Metric
        What is to be small.
    constraints : tuple of Constraint
        What is to be kept.
    times : array_like or None
        When signals are sampled, as for `flexure.sweep`.
    options : dict
        How runs are integrated.
    executor : Executor or None
        Who runs the candidates.
    threads : int or None
        As for `flexure.sweep`.
    attempt : str
        Beginning of messages.
    signals, constants : dict of str to Place
        What metrics read that is sampled, and parameters, which stay what they are in a run.
    """

    system: System
    base: Context
    t_final: float
    goal: Metric
    constraints: tuple[Constraint, ...]
    times: npt.ArrayLike | None
    options: dict[str, Any]
    executor: Executor | None
    threads: int | None
    attempt: str
    signals: dict[str, Place] = field(init=False)
    constants: dict[str, Place] = field(init=False)

    def __post_init__(self) -> None:
        signals, constants = {}, {}
        for way in (each for metric in self.metrics for each in metric.signals):
            path, place = path_of(way), find_place(self.system, way, _can_be_read)
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
    def functions(self) -> tuple[Measure, ...]:
        """Functions of whole results that the metrics need."""
        return tuple(dict.fromkeys(f for metric in self.metrics for f in metric.functions))

    def measured(
        self,
        space: SearchSpace,
        points: FloatArray,
        times: FloatArray,
        samples: Mapping[str, FloatArray],
        numbers: Mapping[Measure, FloatArray] | None = None,
    ) -> tuple[FloatArray, dict[int, str]]:
        """Return goal and constraints of runs, shape (N, 1 + m), and why some have none.

        Parameters
        ----------
        space, points
            The candidates that ran.
        times : ndarray, shape (K,)
            When signals were sampled.
        samples : mapping
            The signals by path, of shape (N, K) or (N, K, size).
        numbers : mapping, optional
            What functions of whole results returned.
        """
        constants = {
            path: np.repeat(space.read(self.base, place, points)[:, np.newaxis], len(times), axis=1)
            for path, place in self.constants.items()
        }
        steps = self._steps(space, points, times)
        records = Records(times, {**samples, **constants}, steps, numbers or {}, failures={})
        columns = [metric.measure(records) for metric in self.metrics]
        return np.column_stack(columns).astype(float), records.failures or {}

    def _steps(
        self, space: SearchSpace, points: FloatArray, times: FloatArray
    ) -> dict[Response, dict[str, FloatArray]]:
        """Return the steps that signals respond to in each run."""
        responses = {each for metric in self.metrics for each in metric.responses}
        if not responses:
            return {}
        variants = SweptContexts(self.base.clone(), space.values(points))
        return {
            each: find_steps(
                variants,
                resolve(self.system, each.path),
                times[0],
                times[-1],
                np.full(len(points), np.nan if each.at is None else each.at),
            )
            for each in responses
        }


@dataclass
class CandidateRuns:
    """What the runs of some candidates gave.

    Attributes
    ----------
    numbers : ndarray, shape (N, 1 + m)
        Goal and constraints; NaN where there are none.
    reasons : list of str or None
        Why a run failed, "" where it did not; None where it was interrupted.
    how : str
        How the runs were run.
    interruption : KeyboardInterrupt, ExecutorError or None
        What ended them early.
    """

    numbers: FloatArray
    reasons: list[str | None]
    how: str
    interruption: KeyboardInterrupt | ExecutorError | None = None


def run_candidates(study: Study, space: SearchSpace, points: FloatArray) -> CandidateRuns:
    """Run candidates, and measure.

    Raises
    ------
    ValueRefusedError
        When one of them is refused by its context, or an option is.
    """
    interruption: KeyboardInterrupt | ExecutorError | None = None
    functions = dict(enumerate(study.functions))
    try:
        swept = sweep(
            study.system,
            space.values(points),
            study.t_final,
            context=study.base,
            signals=list(study.signals),
            times=study.times,
            metrics={str(k): of(function) for k, function in functions.items()},
            executor=study.executor,
            threads=study.threads,
            **study.options,
        )
    except (KeyboardInterrupt, ExecutorError) as error:
        if not hasattr(error, "result"):
            raise
        interruption, swept = error, error.result
    times = swept.times if len(swept.times) else np.array([study.t_final])
    samples = {path: swept[path] for path in study.signals}
    returned = {function: swept.metrics[str(k)] for k, function in functions.items()}
    numbers, failures = study.measured(space, points, times, samples, returned)
    reasons = [
        None if how == INTERRUPTED else swept.failures.get(k) or failures.get(k, "")
        for k, how in enumerate(swept.outcomes.tolist())
    ]
    numbers[[reason != "" for reason in reasons]] = np.nan  # constants have values, too
    return CandidateRuns(numbers, reasons, swept.how, interruption)


def sample_times(study: Study) -> FloatArray:
    """Return when the signals of all runs are sampled."""
    times = checked_times(study.system, study.times, study.base.time, study.t_final)
    require(times.size, times, study.attempt, "at least one of times")
    return times


def _can_be_read(handle: Any) -> bool:
    """Tell whether metrics can read a handle: as a signal, or as a constant."""
    return is_signal(handle) or isinstance(handle, NumericParameter)


__all__ = ["CandidateRuns", "Study", "run_candidates", "sample_times"]
