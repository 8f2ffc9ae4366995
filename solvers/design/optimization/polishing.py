"""The last part of a search, from the best candidate downhill: with slopes or without."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.diagrams.common.errors import FlexureError
from flexure.diagrams.values.values import FloatArray
from flexure.solvers.design.optimization.motion_slopes import MotionSlopes
from flexure.solvers.design.optimization.trials import Trials, bound_of

_INSIDE = 1e-6  # of a bound, by which constraints are kept rather than broken
_ROUNDS = 25  # of the method with slopes
_TRIES = 40  # of that without, for each number that is looked for and one more
_WIDTH = 0.05  # of the box: where that looks first
_ENOUGH = 1e-7  # of the objective, and of the box: less of a change ends it


class _Downhill:
    """Objective and constraints in the scale of where the search begins.

    Parameters
    ----------
    trials : Trials
        What was tried.
    start : ndarray, shape (n,)
        A candidate with all numbers.
    """

    def __init__(self, trials: Trials, start: FloatArray) -> None:
        self._trials = trials
        first = trials(start[np.newaxis], "polish")[0]
        goal = trials.numbers[:, 0]
        spread = np.ptp(goal[np.isfinite(goal)])
        self.scales = np.concatenate([[abs(first[0]) or spread or 1.0], trials.scales()])
        constraints = trials.study.constraints
        self._bounds = np.array([bound_of(each) for each in constraints])
        self._signs = np.array([1.0 if np.isfinite(each.upper) else -1.0 for each in constraints])
        worst = np.max(np.abs(first / self.scales))
        self._instead = 1e3 * (1.0 + worst)  # of numbers that are not finite

    def _numbers(self, point: FloatArray) -> FloatArray:
        found = self._trials(point[np.newaxis], "polish")[0]
        return np.where(np.isfinite(found).all(), found, np.nan)

    def goal(self, point: FloatArray) -> float:
        """Return the objective."""
        return float(np.nan_to_num(self._numbers(point)[0] / self.scales[0], nan=self._instead))

    def room(self, point: FloatArray) -> FloatArray:
        """Return how much is left of each constraint; negative where it is broken."""
        left = self._signs * (self._bounds - self._numbers(point)[1:]) / self.scales[1:]
        return np.asarray(np.nan_to_num(left - _INSIDE, nan=-self._instead))

    def goal_slopes(self, slopes: FloatArray) -> FloatArray:
        """Return the derivatives of the objective from those of all numbers."""
        return np.asarray(slopes[0] / self.scales[0])

    def room_slopes(self, slopes: FloatArray) -> FloatArray:
        """Return the derivatives of what is left of the constraints."""
        return np.asarray(-self._signs[:, np.newaxis] * slopes[1:] / self.scales[1:, np.newaxis])


def polish(trials: Trials, start: FloatArray) -> str:
    """Go downhill from a candidate, and say how; everything that is tried is in the trials.

    Parameters
    ----------
    trials : Trials
        What was tried so far.
    start : ndarray, shape (n,)
        A candidate with all numbers.
    """
    downhill = _Downhill(trials, start)
    try:
        slopes = MotionSlopes(trials.study, trials.space)
        _descend(downhill, slopes, start, bool(trials.study.constraints))
    except FlexureError as error:
        best = trials.best()
        assert best is not None
        _grope(downhill, trials.points[best], bool(trials.study.constraints))
        return f"polished without derivatives (COBYLA), because of {_reason(error)}"
    return f"polished with exact sensitivities of {slopes.count} motions (SLSQP)"


def _reason(error: FlexureError) -> str:
    """Say what is in the way of derivatives."""
    return error.found if error.found is not None else str(error).rstrip(".")


def _descend(downhill: _Downhill, slopes: MotionSlopes, start: FloatArray, bounded: bool) -> None:
    """Use quadratic programs from exact derivatives."""
    from scipy import optimize

    minimize: Any = optimize.minimize
    last: dict[bytes, FloatArray] = {}

    def slopes_at(point: FloatArray) -> FloatArray:
        key = point.tobytes()
        if key not in last:
            last.clear()
            last[key] = slopes(np.clip(point, 0.0, 1.0))
        return last[key]

    constraint: dict[str, Any] = {
        "type": "ineq",
        "fun": downhill.room,
        "jac": lambda point: downhill.room_slopes(slopes_at(point)),
    }
    minimize(
        downhill.goal,
        start,
        jac=lambda point: downhill.goal_slopes(slopes_at(point)),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start),
        constraints=[constraint] if bounded else [],
        options={"maxiter": _ROUNDS, "ftol": _ENOUGH},
    )


def _grope(downhill: _Downhill, start: FloatArray, bounded: bool) -> None:
    """Use linear models of values alone."""
    from scipy import optimize

    minimize: Any = optimize.minimize
    constraints: list[dict[str, Any]] = [{"type": "ineq", "fun": downhill.room}] if bounded else []
    minimize(
        downhill.goal,
        start,
        method="COBYLA",
        bounds=[(0.0, 1.0)] * len(start),
        constraints=constraints,
        options={"rhobeg": _WIDTH, "tol": _ENOUGH, "maxiter": _TRIES * (1 + len(start))},
    )


__all__ = ["polish"]
