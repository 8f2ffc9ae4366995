"""The overshoot of the step response of a linear model, with its derivatives by the matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.poles import Poles
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, reduction
from flexure.solvers.design.objectives.measures import Measure, Piece, Seen, is_stable
from flexure.solvers.design.objectives.parametric_models import Realization

_SETTLED = 8.0  # time constants of a pole, after which its motion is over
_FINE = 0.3  # of the time in which a pole turns by one radian
_MOST = 2**16  # steps: motions that decay more slowly are highest before


@dataclass(frozen=True, eq=False)
class OvershootMeasure(Measure):
    """The overshoot of the step response of a linear model, in percent of its final value.

    With the input as one more state, the response is ``y = c exp(M t) e``. At its highest point,
    its derivatives by M are those of the exponential (Fréchet), in sampled models those of a power.
    It is looked for on a grid for each pole, as fine and as long as the motion of that pole.
    """

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        model = seen.model
        if model.D.shape != (1, 1):
            raise EvaluationError(
                "Cannot measure an overshoot",
                expected="one input and one output",
                found=f"{model.D.shape[1]} and {model.D.shape[0]}",
            )
        if not is_stable(model):
            return [Piece(math.inf)]
        n, period, part = len(model.A), model.period, reduction(*model.on_tangent(), HIDDEN)
        final, by_final = _steady(model)
        if final == 0.0:
            return [Piece(math.nan)]
        row, first = np.append(model.C[0], model.D[0]), np.append(np.zeros(n), 1.0)
        held = np.eye(1, n + 1, n) if period is not None else np.zeros((1, n + 1))
        rates = np.vstack([np.hstack([model.A, model.B]), held])
        best, time, before, h = row @ first / final, 0.0, first, 0.0
        for step, count in _grids(np.linalg.eigvals(part.A).astype(complex), period):
            states = _states(_power(rates, step, period), first, count)
            values = row @ states / final
            top = int(np.argmax(values))
            if values[top] > best:
                best, time, before, h = values[top], step * top, states[:, top - 1], step
        if period is not None and h > 1.0:  # the samples between those of the grid
            near = _states(rates, before, int(2 * h) + 1)
            time += int(np.argmax(row @ near / final)) - h
        if best <= 1.0:
            return [Piece(0.0)]
        if period is None and h:
            time += _turn(rates, row @ rates, before, h)
        # Of the power of a block matrix, the corner is its derivative.
        corner = np.block([[rates.T, np.outer(row, first)], [np.zeros_like(rates), rates.T]])
        peak, total = np.split(_power(corner, time, period)[: n + 1], 2, axis=1)
        peak_state = peak.T @ first
        value = float(row @ peak_state)
        weights = total / final - value / final**2 * by_final
        weights[n] += peak_state / final
        return [Piece(100.0 * (value / final - 1.0), 100.0 * weights)]


def _grids(poles: Poles, period: float | None) -> Iterator[tuple[float, int]]:
    """Yield a step, in s or in samples, and a number of steps for each pole."""
    if period is not None:
        poles = np.log(poles[np.abs(poles) > math.exp(-_SETTLED)])
        yield 1.0, int(_SETTLED / _FINE) + len(poles)  # what is over soon
    for pole in np.unique(poles[poles.imag >= 0.0]):
        step = _FINE / abs(pole)
        step = step if period is None else max(math.floor(step), 1.0)
        yield step, min(math.ceil(_SETTLED / -pole.real / step), _MOST)


def _power(rates: FloatArray, time: float, period: float | None) -> FloatArray:
    """Return what states become after a time, in s or in samples."""
    from scipy.linalg import expm

    if period is None:
        return np.asarray(expm(time * rates))
    return np.linalg.matrix_power(rates, int(time))


def _states(whole: FloatArray, first: FloatArray, count: int) -> FloatArray:
    """Return a state and what follows from it by a number of equal steps, as columns."""
    states = first[:, np.newaxis]
    while states.shape[1] <= count:
        states, whole = np.hstack([states, whole @ states]), whole @ whole
    return states[:, : count + 1]


def _turn(rates: FloatArray, slope: FloatArray, start: FloatArray, h: float) -> float:
    """Return when a response turns, from h beyond a state, which is within h of there."""
    from scipy.optimize import brentq

    def rate(time: float) -> float:
        return float(slope @ _power(rates, time, None) @ start)

    if not rate(0.0) > 0.0 > rate(2.0 * h):
        return 0.0
    return float(brentq(rate, 0.0, 2.0 * h, xtol=1e-12 * h, rtol=1e-12)) - h


def _steady(model: Realization) -> tuple[float, FloatArray]:
    """Return the gain at frequency zero, and its derivatives by the matrices."""
    n = len(model.A)
    away = (0.0 if model.period is None else 1.0) * np.eye(n) - model.A
    inverse = np.linalg.pinv(away, rcond=1e-14)
    left, right = np.append(model.C[0] @ inverse, 1.0), np.append(inverse @ model.B[:, 0], 1.0)
    return float(model.C[0] @ right[:n] + model.D[0, 0]), np.outer(left, right)
