"""Local search from the best candidate: with derivatives (SLSQP) or without them (COBYLA).

A descent ends where the objective changes by less than its runs resolve, and near a minimum that
is long before the numbers stop changing. So the descent is repeated from its end, with slopes by
motions of tighter tolerances, and the distance between the two last ends says how precise the
numbers are. If another number gives the same value, the objective does not determine it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import FlexureError, warn
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.sensitivities.motion_derivatives import warn_of_jumps
from flexure.solvers.design.optimization.candidates import RestCandidates
from flexure.solvers.design.optimization.motion_slopes import AdjointSlopes, MotionSlopes, slopes_of
from flexure.solvers.design.optimization.trials import Trials, bound_of

_Slopes: TypeAlias = MotionSlopes | AdjointSlopes | RestCandidates | None
_INSIDE = 1e-6  # of a bound, by which constraints are kept rather than broken
_ROUNDS = 25  # of the method with slopes
_TRIES = 40  # of that without, for each number that is looked for and one more
_WIDTH, _NARROW = 0.05, 0.005  # of the box: where that looks first, and where when it is repeated
_ENOUGH = 1e-7  # of the objective, and of the box: less of a change ends it
_SAME = 1e-6  # of the objective: ends of local searches that differ by less are one
_TIGHT = (1e-7, 1e-9)  # relative tolerances of the motions that repeat a descent with slopes
_LEAST = 1e-10  # of the objective: less of a change ends these
_ASIDE = 1e-3  # of the box: how far from the last end the repetition begins
_FINEST = 1e-8  # of the box: no precision is claimed beyond it
_LOOKED = (1e-3, 1e-2)  # of the box: how far from the end jumps are looked for
_BENT = 0.75  # of a change of slopes, which no kink exceeds
_MATTERS = 1e-4  # of the objective: smaller jumps decide nothing
_BESIDE = 0.05  # of the box: how far from the end an equal objective shows that it is flat


@dataclass(frozen=True)
class Polish:
    """The end of a search."""

    how: str  # how the search went downhill
    best: int  # index of the trial with the answer
    # How far the coordinates moved when the descent was repeated; infinite where it is flat,
    # shape (n,).
    precision: FloatArray


class _Downhill:
    """Objective and constraints in the scale of where the search begins."""

    def __init__(self, trials: Trials, start: FloatArray, slopes: _Slopes) -> None:
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
        self._slopes = slopes
        self._last: tuple[bytes, float, FloatArray, FloatArray] | None = None
        self._shift = np.zeros(len(first))  # from the numbers of motions to those of runs
        self.constrained = bool(constraints)  # whether there are constraints
        self.by_motions = False  # whether values come from the motions of the slopes, not from runs
        self.doubt = 0.0  # by how much the objective of runs differs from that of motions

    def shift_to_runs(self, point: FloatArray) -> None:
        """Let the numbers of motions be those of runs at a point."""
        self._shift = self._run(point) - self.move(point)[0]
        self.doubt = 2.0 * abs(float(self._shift[0]))

    def _run(self, point: FloatArray) -> FloatArray:
        """Return the numbers of a run."""
        return np.asarray(self._trials(point[np.newaxis], "polish")[0])

    def move(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the numbers of a motion, and their derivatives."""
        slopes = self._slopes
        assert slopes is not None
        point = np.clip(point, 0.0, 1.0)
        if self._last is None or self._last[:2] != (point.tobytes(), slopes.rtol):
            self._last = (point.tobytes(), slopes.rtol, *slopes(point))
        return self._last[2], self._last[3]

    def _numbers(self, point: FloatArray) -> FloatArray:
        found = self.move(point)[0] + self._shift if self.by_motions else self._run(point)
        return np.where(np.isfinite(found).all(), found, np.nan)

    def goal(self, point: FloatArray) -> float:
        """Return the objective."""
        return float(np.nan_to_num(self._numbers(point)[0] / self.scales[0], nan=self._instead))

    def room(self, point: FloatArray) -> FloatArray:
        """Return how much is left of each constraint; negative where it is broken."""
        left = self._signs * (self._bounds - self._numbers(point)[1:]) / self.scales[1:]
        return np.asarray(np.nan_to_num(left - _INSIDE, nan=-self._instead))

    def goal_slopes(self, point: FloatArray) -> FloatArray:
        """Return the derivatives of the objective."""
        return np.asarray(self.move(point)[1][0] / self.scales[0])

    def room_slopes(self, point: FloatArray) -> FloatArray:
        """Return the derivatives of what is left of the constraints."""
        return np.asarray(
            -self._signs[:, np.newaxis] * self.move(point)[1][1:] / self.scales[1:, np.newaxis]
        )


def polish(trials: Trials, starts: FloatArray) -> Polish:
    """Go downhill from candidates, the best first; everything that is tried is in the trials."""
    slopes: _Slopes = None
    try:
        slopes = trials.rest or slopes_of(trials.study, trials.space)
        downhill = _Downhill(trials, starts[0], slopes)
        ends = [_descend(downhill, start, _ENOUGH) for start in starts]
        end = ends[0] if len(ends) == 1 else _point(trials)
    except FlexureError as error:
        slopes = None
        downhill = _Downhill(trials, _point(trials), None)
        ends = [_grope(downhill, _point(trials), width) for width in (_WIDTH, _NARROW)]
        why = error.found if error.found is not None else str(error).rstrip(".")
        how = f"polished without derivatives (COBYLA), because of {why}"
    else:
        ends = _alike(trials, ends) if trials.rest else _repeat(downhill, slopes, end)
        how = f"polished with exact {slopes.kind.format(slopes.count)} (SLSQP)"
        if slopes.may_step and _jumps_beside(downhill, ends[-1] if ends else end):
            remedy = "Repeat it with another seed or a larger population, and keep the best answer"
            warn_of_jumps(f"The optimization of '{trials.study.system.label}'", remedy)
    end = _point(trials) if len(ends) < 2 else ends[-1]
    flat = _flat(trials, end, max(_ENOUGH * downhill.scales[0], downhill.doubt))
    best = trials.best(end, downhill.doubt)
    assert best is not None
    away = np.ptp([*ends, trials.points[best]], axis=0)
    precision = np.maximum(away if len(ends) > 1 else np.nan, _FINEST)
    if not slopes:
        first, second = trials.numbers[best, 0], trials.again(best)[0]
        if not abs(second - first) <= _ENOUGH * downhill.scales[0]:
            warn(
                f"The objective '{trials.study.goal.label}' is not a function of the variables: a "
                f"second run of the best candidate gives {second:.6g} instead of {first:.6g}. The "
                "answer may be the luckiest of many alike. Fix the seeds of what is random, or "
                "use a mean over several runs as the objective"
            )
            precision[:] = np.nan
    return Polish(how, best, np.where(flat, np.inf, precision))


def _jumps_beside(downhill: _Downhill, end: FloatArray) -> bool:
    """Return whether the objective changes beside an end by other than its slopes say."""
    # Over a short way, the mean of the slopes at both ends foretells the change, but for at most
    # half of what the slopes differ by, where there is a kink. A jump has no part in any slope.
    with suppress(FlexureError):
        for away in _LOOKED:
            for aside in away * np.concatenate([np.eye(len(end)), -np.eye(len(end))]):
                points = end, np.clip(end + aside, 0.0, 1.0)
                (here, slope), (there, other) = (
                    (g[0], s[0]) for g, s in map(downhill.move, points)
                )
                way = points[1] - points[0]
                foretold, bend = 0.5 * (slope + other) @ way, (other - slope) @ way
                small = _MATTERS * abs(here)
                if abs(there - here - foretold) > _BENT * abs(bend) + small:
                    return True
    return False


def _flat(trials: Trials, end: FloatArray, small: float) -> NDArray[np.bool_]:
    """Return along which coordinates candidates beside an end are as good, and keep constraints."""
    asides = _BESIDE * np.eye(len(end))
    beside = np.concatenate([end + asides, end - asides])
    numbers = trials(np.concatenate([end[np.newaxis], beside]), "polish")
    alike = np.abs(numbers[1:, 0] - numbers[0, 0]) <= small
    inside = ((beside >= 0.0) & (beside <= 1.0)).all(axis=1)
    as_good = alike & inside & trials.feasible(numbers[1:])
    return np.asarray(as_good.reshape(2, -1).any(axis=0))


def _point(trials: Trials) -> FloatArray:
    """Return the best candidate so far."""
    best = trials.best()
    assert best is not None
    return np.asarray(trials.points[best])


def _alike(trials: Trials, ends: list[FloatArray]) -> list[FloatArray]:
    """Return the ends of local searches that are as good as the best one, which comes last."""
    numbers = trials(np.array(ends), "polish")
    goal = np.where(trials.feasible(numbers), numbers[:, 0], np.inf)
    best = goal.min()
    near = np.flatnonzero(goal <= best + _SAME * abs(best))
    return [ends[k] for k in near[np.argsort(-goal[near])]]


def _repeat(
    downhill: _Downhill, slopes: MotionSlopes | AdjointSlopes | RestCandidates, end: FloatArray
) -> list[FloatArray]:
    """Repeat a descent by motions of ever tighter tolerances; return where each of them ended."""
    ends: list[FloatArray] = []
    downhill.by_motions = True
    for slopes.rtol in _TIGHT:
        try:
            downhill.shift_to_runs(end)
            aside = end + np.where(end > 0.5, -_ASIDE, _ASIDE)
            end = _descend(downhill, aside, _LEAST)
            downhill.shift_to_runs(end)
        except FlexureError:  # such as a motion that gives up at this tolerance
            break
        ends.append(end)
    return ends


def _descend(downhill: _Downhill, start: FloatArray, enough: float) -> FloatArray:
    """Use quadratic programs from exact derivatives; return where they end."""
    slopes = {"jac": downhill.goal_slopes}
    room = {"jac": downhill.room_slopes}
    options = {"maxiter": _ROUNDS, "ftol": enough}
    return _minimized(downhill, start, room, method="SLSQP", options=options, **slopes)


def _grope(downhill: _Downhill, start: FloatArray, width: float) -> FloatArray:
    """Use linear models of values alone; return where they end."""
    options = {"rhobeg": width, "tol": _ENOUGH, "maxiter": _TRIES * (1 + len(start))}
    return _minimized(downhill, start, {}, method="COBYLA", options=options)


def _minimized(
    downhill: _Downhill, start: FloatArray, room: dict[str, Any], **how: Any
) -> FloatArray:
    """Return where a local method of SciPy ends."""
    from scipy import optimize

    minimize: Any = optimize.minimize
    found = minimize(
        downhill.goal,
        start,
        bounds=[(0.0, 1.0)] * len(start),
        constraints=[{"type": "ineq", "fun": downhill.room, **room}] * downhill.constrained,
        **how,
    )
    return np.asarray(np.clip(found.x, 0.0, 1.0) + 0.0)
