"""Exact derivatives of metrics: along sensitivities of the signals that they read, or by adjoints.

A metric is a function of signals y, and so is its derivative by a number p: that in the direction
∂y/∂p, which is integrated with the motion. In a direction, a central difference of the metric takes
no run. Its step moves the signals, where they are known in the steps of the run, by 6e-6 of their
size, where rounding and curvature err by a part in 10¹⁰, and it goes through whatever a metric does
with them: extremes, crossings, quotients of other metrics. Metrics that have derivatives by their
signals need no step, which would go beyond the bends of a signal, as at the limits of a Saturation.

A direction costs about as much as a run. The adjoint gives the derivatives of one metric by all
coordinates at the cost of a few runs, so it is used if there are many coordinates for each metric.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, FlexureError
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.systems.ports import Port
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import find_variables
from flexure.solvers.analysis.sensitivities.gradients import MetricGradients, with_slopes
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    MotionDerivatives,
    refuse_events,
)
from flexure.solvers.design.optimization.candidates import Study
from flexure.solvers.design.optimization.search_space import SearchSpace
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metric_slopes import MetricSlopes, has_slopes
from flexure.solvers.results.measures.metrics import Records, columns_of
from flexure.solvers.results.measures.polynomials import NODES
from flexure.solvers.simulation.simulation import simulate
from flexure.solvers.tracing.signals import resolve

_STEP = float(np.finfo(float).eps ** (1 / 3))
_MANY = 5  # coordinates for each metric
_AGREED = 1e3  # relative tolerances: errors of derivatives, where motions rest


class MotionSlopes:
    """Derivatives of goal and constraints by the coordinates of a search, where there are some."""

    kind = "sensitivities of {} motions"

    def __init__(self, study: Study, space: SearchSpace) -> None:
        if study.functions:
            raise EvaluationError(
                study.attempt, found="a function of whole results, which has no derivatives"
            )
        self._study, self._space = study, space
        self._context = study.base.clone()
        space.write(self._context, np.full(len(space), 0.5))
        refuse_events(self._context, study.attempt)
        variables = find_variables(self._context, space.paths, study.attempt, states=True)
        self._signals = {
            path: with_slopes(each, study.attempt) for path, each in study.signals.items()
        }
        self._shapes = {path: resolve(study.system, path).shape for path in self._signals}
        ports = [p for p in self._signals.values() if isinstance(p.handle, Port)]
        self._motion = MotionDerivatives(self._context, variables, ports, study.attempt)
        self.count = 0  # number of motions integrated so far
        self.rtol = 1e-6  # relative tolerance of these motions, whatever that of the runs is

    @property
    def may_step(self) -> bool:
        """Whether goal and constraints may jump with the coordinates."""
        return self._motion.may_step

    def __call__(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return goal and constraints at a point, (1 + m,), and their derivatives, (1 + m, n).

        Values and derivatives are those of one motion, so they agree with each other to its
        tolerance, which is what a line search needs.
        """
        study, space, count = self._study, self._space, len(self._space)
        dense, slopes = self._integrate(point)
        scale, samples = space.slopes(point), dense.values
        largest = np.max(np.abs(samples), axis=(0, 1))
        points = np.clip(point, _STEP, 1.0 - _STEP) + np.zeros((2 * count + 1, 1))
        points[-1] = point
        moved, steps = [], np.empty(count)
        for k in range(count):
            way = slopes[..., k] * scale[k]
            wide = np.max(np.abs(way), axis=(0, 1))
            steps[k] = _STEP / max(
                1.0, np.max(wide / np.where(largest, largest, wide + 1.0), initial=0.0)
            )
            points[2 * k, k] += steps[k]
            points[2 * k + 1, k] -= steps[k]
            moved += [
                replace(dense, values=samples + sign * steps[k] * way) for sign in (1.0, -1.0)
            ]
        joined = DenseOutput.joined([*moved, dense], samples.shape[2])
        numbers = study.measured(space, points, joined)
        found = (numbers[:-1:2] - numbers[1:-1:2]).T / (2.0 * steps)
        records = Records(dense, columns_of(self._shapes))
        for row, metric in zip(found, study.metrics, strict=True):
            if has_slopes(metric) and {*map(path_of, metric.signals)} <= self._signals.keys():
                with suppress(EvaluationError):  # exact, also beside bends, which steps go beyond
                    weights = MetricSlopes.of(metric, records).values
                    row[:] = np.tensordot(weights, slopes, axes=3) * scale
        if not np.isfinite(found).all():
            raise EvaluationError(study.attempt, found="metrics without a derivative")
        return numbers[-1], found

    def _integrate(self, point: FloatArray) -> tuple[DenseOutput, FloatArray]:
        """Return what signals do in a run, and their derivatives, with an axis behind."""
        study, context = self._study, self._context
        assert study.t_final is not None
        context.copy_from(study.base)
        self._space.write(context, point)
        options = study.options
        if "step" not in options:
            options = options | {"rtol": self.rtol, "atol": 1e-3 * self.rtol}
        run = simulate(study.system, study.t_final, context=context.clone(), **options)
        dense = run._dense_output(list(study.signals))
        begin, end = dense.begin[:, np.newaxis], dense.end[:, np.newaxis]
        times = begin + (end - begin) * (0.5 * (1.0 + np.array(NODES)))
        times[:, -1] = np.nextafter(dense.end, -np.inf)  # before what jumps there
        motion = self._motion.run(study.t_final, times.ravel(), "auto", self.rtol, 1e-3 * self.rtol)
        self.count += 1
        slopes, shown = [], 0
        for place in self._signals.values():
            size = place.components.size
            if isinstance(place.handle, Port):
                slopes.append(motion.output_slopes[:, shown : shown + size])
                shown += size
            else:
                leaf = context.find_leaf(place.handle.system, place.handle)
                slopes.append(motion.state_slopes[:, leaf.x_slice.start + place.components])
        columns = np.concatenate(
            [np.empty((times.size, 0, len(self._space.spread))), *slopes], axis=1
        )
        columns = columns @ self._space.spread
        return dense, columns.reshape(*times.shape, *columns.shape[1:])


class AdjointSlopes:
    """Derivatives as of `MotionSlopes`, by many coordinates, from the adjoint of each metric."""

    kind = "adjoints of {} motions"

    def __init__(self, study: Study, space: SearchSpace) -> None:
        assert study.t_final is not None
        self._study, self._space = study, space
        self._context = study.base.clone()
        space.write(self._context, np.full(len(space), 0.5))
        variables = find_variables(self._context, space.paths, study.attempt, states=True)
        self._gradients = MetricGradients(
            study.system,
            self._context,
            variables,
            list(study.signals),
            study.t_final,
            study.options.get("method", "auto"),
            study.attempt,
        )
        self.count = 0
        self.rtol = 1e-6

    @property
    def may_step(self) -> bool:
        """Whether goal and constraints may jump with the coordinates."""
        return self._gradients.may_jump

    def __call__(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return goal and constraints at a point, and their derivatives by it."""
        study, space, tolerances = self._study, self._space, (self.rtol, 1e-3 * self.rtol)
        self._context.copy_from(study.base)
        space.write(self._context, point)
        agreed = _AGREED * self.rtol
        _, found = self._gradients.settled(self._context, study.metrics, tolerances, agreed)
        self.count += 1
        slopes = np.array([each for _, each in found]) @ space.spread * space.slopes(point)
        return np.array([metric.value for metric, _ in found]), slopes


def slopes_of(study: Study, space: SearchSpace) -> MotionSlopes | AdjointSlopes:
    """Return the derivatives that cost less."""
    many = len(space) > _MANY * len(study.metrics) and "step" not in study.options
    if many and all(map(has_slopes, study.metrics)):
        with suppress(FlexureError):
            return AdjointSlopes(study, space)
    return MotionSlopes(study, space)
