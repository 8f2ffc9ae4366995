"""Candidates at rest: their numbers and exact derivatives without a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.design.objectives.measures import Measure
from flexure.solvers.design.objectives.rest_numbers import RestNumbers, RestPoint
from flexure.solvers.design.objectives.strokes import StrokeMeasure
from flexure.solvers.design.optimization.candidate_runs import CandidateRuns, Study
from flexure.solvers.design.optimization.search_space import SearchSpace
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metrics import Records, columns_of

_STEP = float(np.finfo(float).eps ** (1 / 3))


def require_rest(study: Study) -> None:
    """Refuse metrics of runs where there is no run."""
    for metric in study.metrics:
        functions = [f for f in metric.functions if not isinstance(f, (Measure, StrokeMeasure))]
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
    if of_runs:
        raise ValueRefusedError(
            f"{study.attempt} without t_final",
            expected="no options of runs",
            found=quoted(of_runs),
        )


class RestCandidates:
    """Goal and constraints of candidates at rest, and their derivatives by coordinates.

    Metrics are sums, products and quotients of numbers at rest and parameters. Those have exact
    derivatives; a metric is differentiated along them by a central difference of its arithmetic.

    Parameters
    ----------
    study : Study
        What is measured.
    space : SearchSpace
        The coordinates.

    Attributes
    ----------
    count : int
        Number of candidates of which derivatives were computed.
    rtol : float
        Not used: there are no motions.
    may_step : bool
        False: numbers at rest do not jump.
    """

    kind = "derivatives of {} candidates"
    may_step = False

    def __init__(self, study: Study, space: SearchSpace) -> None:
        self._study, self._space = study, space
        measures = cast("tuple[Measure | StrokeMeasure, ...]", study.functions)
        self._numbers = RestNumbers(space.paths, measures, study.attempt, space.spread)
        self._last: tuple[bytes, RestPoint] | None = None
        self.count, self.rtol = 0, 0.0

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
