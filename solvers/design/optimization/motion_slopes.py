"""Exact derivatives of metrics: along the sensitivities of the signals that they read.

A metric is a function of samples y, and so is its derivative by a number p: that in the direction
∂y/∂p, which is integrated with the motion. In a direction, a central difference of the metric takes
no run. Its step moves the samples by 6e-6 of their size, where rounding and curvature err by a part
in 10¹⁰, and it goes through whatever a metric does with samples: extremes, interpolated crossings,
quotients of other metrics.
"""

from __future__ import annotations

import numpy as np

from flexure.diagrams.common.errors import EvaluationError, ValueRefusedError
from flexure.diagrams.contexts.places import Place
from flexure.diagrams.systems.ports import Port
from flexure.diagrams.values.state import ContinuousState
from flexure.diagrams.values.values import FloatArray
from flexure.solvers.analysis.equations.equations import find_variables
from flexure.solvers.analysis.sensitivities.motion_derivatives import (
    MotionDerivatives,
    refuse_events,
)
from flexure.solvers.design.optimization.candidate_runs import Study, sample_times
from flexure.solvers.design.optimization.search_space import SearchSpace

_STEP = float(np.finfo(float).eps ** (1 / 3))


class MotionSlopes:
    """Derivatives of goal and constraints by the coordinates of a search.

    Parameters
    ----------
    study : Study
        What is run and measured.
    space : SearchSpace
        The coordinates.

    Attributes
    ----------
    count : int
        Number of motions integrated so far.
    rtol : float
        Relative tolerance of these motions, whatever that of the runs is.

    Raises
    ------
    FlexureError
        When there are none.
    """

    def __init__(self, study: Study, space: SearchSpace) -> None:
        if study.functions:
            raise EvaluationError(
                study.attempt, found="a function of whole results, which has no derivatives"
            )
        self._study, self._space = study, space
        self._times = sample_times(study)
        self._context = study.base.clone()
        space.write(self._context, np.full(len(space), 0.5))
        refuse_events(self._context, study.attempt)
        variables = find_variables(self._context, space.paths, study.attempt, states=True)
        self._signals = {path: _settled(place) for path, place in study.signals.items()}
        ports = [p for p in self._signals.values() if isinstance(p.handle, Port)]
        self._motion = MotionDerivatives(self._context, variables, ports, study.attempt)
        self.count = 0
        self.rtol = 1e-6

    def __call__(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return goal and constraints at a point, shape (1 + m,), and their derivatives by it.

        The derivatives have shape (1 + m, n). Values and derivatives are those of one motion, so
        they agree with each other to its tolerance, which is what a line search needs.

        Raises
        ------
        FlexureError
            When the motion cannot be differentiated there.
        """
        study, space, count = self._study, self._space, len(self._space)
        samples, slopes = self._integrate(point)
        scale = space.slopes(point)
        points = np.clip(point, _STEP, 1.0 - _STEP) + np.zeros((2 * count + 1, 1))
        points[-1] = point
        rows = len(points)
        moved = {path: np.repeat(y[np.newaxis], rows, axis=0) for path, y in samples.items()}
        steps = np.empty(count)
        for k in range(count):
            ways = {path: slope[..., k] * scale[k] for path, slope in slopes.items()}
            shares = [
                np.max(np.abs(way)) / (np.max(np.abs(samples[path])) or np.max(np.abs(way)) or 1.0)
                for path, way in ways.items()
            ]
            steps[k] = _STEP / max([1.0, *shares])
            points[2 * k, k] += steps[k]
            points[2 * k + 1, k] -= steps[k]
            for path, way in ways.items():
                moved[path][2 * k] += steps[k] * way
                moved[path][2 * k + 1] -= steps[k] * way
        numbers, _ = study.measured(space, points, self._times, moved)
        found = (numbers[:-1:2] - numbers[1:-1:2]).T / (2.0 * steps)
        if not np.isfinite(found).all():
            raise EvaluationError(study.attempt, found="metrics without a derivative")
        return numbers[-1], found

    def _integrate(self, point: FloatArray) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Return signals at the times of samples, and their derivatives, with an axis behind."""
        study, context = self._study, self._context
        context.copy_from(study.base)
        self._space.write(context, point)
        run = self._motion.run(study.t_final, self._times, "auto", self.rtol, 1e-3 * self.rtol)
        self.count += 1
        samples, slopes, begin = {}, {}, 0
        for path, place in self._signals.items():
            values, derivatives, columns = run.outputs, run.output_slopes, place.components + begin
            if isinstance(place.handle, Port):
                columns = np.arange(begin, begin + place.components.size)
                begin += place.components.size
            else:
                leaf = context.find_leaf(place.handle.system, place.handle)
                values, derivatives = run.states, run.state_slopes
                columns = leaf.x_slice.start + place.components
            shape = () if place.components.size == 1 else (place.components.size,)
            samples[path] = values[:, columns].reshape(len(self._times), *shape)
            slopes[path] = derivatives[:, columns].reshape(len(self._times), *shape, -1)
        return samples, slopes


def _settled(place: Place) -> Place:
    """Refuse signals that have no derivatives."""
    if isinstance(place.handle, (Port, ContinuousState)):
        return place
    raise ValueRefusedError(
        "Cannot differentiate a signal",
        expected="a port or a continuous state",
        found=f"the {place.handle.what} '{place.path}'",
    )


__all__ = ["MotionSlopes"]
