"""The runs of candidates: all in one sweep, or one by one where whole results are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.arguments import require
from flexure.diagrams.context import Context
from flexure.diagrams.errors import FlexureError
from flexure.diagrams.parameters import NumericParameter
from flexure.diagrams.places import Place, find_place, is_signal, path_of
from flexure.diagrams.system import System
from flexure.diagrams.values import FloatArray
from flexure.solvers.design.search_space import SearchSpace
from flexure.solvers.results.metrics import Constraint, Measure, Metric, Records
from flexure.solvers.simulation.simulation import simulate
from flexure.solvers.sweeps.step_sources import find_steps
from flexure.solvers.sweeps.sweep_record import INTERRUPTED
from flexure.solvers.sweeps.sweeps import checked_times, sweep
from flexure.solvers.sweeps.variants import SweptContexts
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
        samples: dict[str, FloatArray],
        numbers: Mapping[Measure, FloatArray] | None = None,
    ) -> FloatArray:
        """Return goal and constraints of runs, shape (N, 1 + m).

        Parameters
        ----------
        space, points
            The candidates that ran.
        times : ndarray, shape (K,)
            When signals were sampled.
        samples : dict
            The signals by path, of shape (N, K) or (N, K, size).
        numbers : mapping, optional
            What functions of whole results returned.
        """
        constants = {
            path: np.repeat(space.read(self.base, place, points)[:, np.newaxis], len(times), axis=1)
            for path, place in self.constants.items()
        }
        records = Records(
            times, samples | constants, self._steps(space, points, times), numbers or {}
        )
        columns = [metric.measure(records) for metric in self.metrics]
        return np.column_stack(columns).astype(float)

    def _steps(
        self, space: SearchSpace, points: FloatArray, times: FloatArray
    ) -> dict[str, dict[str, FloatArray]]:
        """Return the steps that signals respond to in each run."""
        ways = {path_of(way): way for metric in self.metrics for way in metric.responses}
        if not ways:
            return {}
        variants, unknown = self.variants(space, points), np.full(len(points), np.nan)
        first, last = float(times[0]), float(times[-1])
        return {
            path: find_steps(variants, resolve(self.system, way), first, last, unknown)
            for path, way in ways.items()
        }

    def variants(self, space: SearchSpace, points: FloatArray) -> SweptContexts:
        """Return the beginnings of the runs of candidates."""
        return SweptContexts(self.base.clone(), space.values(points))


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
    interruption : KeyboardInterrupt or None
        What ended them early.
    """

    numbers: FloatArray
    reasons: list[str | None]
    how: str
    interruption: KeyboardInterrupt | None = None


def run_candidates(study: Study, space: SearchSpace, points: FloatArray) -> CandidateRuns:
    """Run candidates, and measure.

    Raises
    ------
    ValueRefusedError
        When one of them is refused by its context, or an option is.
    """
    if study.functions:
        return _run_singly(study, space, points)
    interruption = None
    try:
        swept = sweep(
            study.system,
            space.values(points),
            study.t_final,
            context=study.base,
            signals=list(study.signals),
            times=study.times,
            threads=study.threads,
            **study.options,
        )
    except KeyboardInterrupt as error:
        if not hasattr(error, "result"):
            raise
        interruption, swept = error, error.result
    times = swept.times if len(swept.times) else np.array([study.t_final])
    samples = {path: swept[path] for path in study.signals}
    numbers = study.measured(space, points, times, samples)
    reasons = [
        None if how == INTERRUPTED else swept.failures.get(k, "")
        for k, how in enumerate(swept.outcomes.tolist())
    ]
    numbers[[reason != "" for reason in reasons]] = np.nan  # constants have values, too
    return CandidateRuns(numbers, reasons, swept.how, interruption)


def _run_singly(study: Study, space: SearchSpace, points: FloatArray) -> CandidateRuns:
    """Simulate one candidate after the other, and keep what functions say of the results."""
    count, variants = len(points), study.variants(space, points)
    times = sample_times(study)
    samples = {
        path: np.full((count, len(times), *resolve(study.system, path).shape), np.nan)
        for path in study.signals
    }
    numbers = {function: np.full(count, np.nan) for function in study.functions}
    reasons: list[str | None] = [None] * count
    interruption = None
    for k in range(count):
        try:
            result = simulate(study.system, study.t_final, variants.context(k), **study.options)
            for path, rows in samples.items():
                rows[k] = result.sample(path, times)
            for function, column in numbers.items():
                column[k] = function(result)
            reasons[k] = ""
        except KeyboardInterrupt as error:
            interruption = error
            break
        except FlexureError as error:
            reasons[k] = str(error)
    measured = study.measured(space, points, times, samples, numbers)
    measured[[reason != "" for reason in reasons]] = np.nan
    how = "one after the other, because a function asks for whole results"
    return CandidateRuns(measured, reasons, how, interruption)


def sample_times(study: Study) -> FloatArray:
    """Return when the signals of all runs are sampled."""
    times = checked_times(study.system, study.times, study.base.time, study.t_final)
    require(times.size, times, study.attempt, "at least one of times")
    return times


def _can_be_read(handle: Any) -> bool:
    """Tell whether metrics can read a handle: as a signal, or as a constant."""
    return is_signal(handle) or isinstance(handle, NumericParameter)


__all__ = ["CandidateRuns", "Study", "run_candidates", "sample_times"]
