"""The overshoot of the step response of a linear model, with its derivatives by the matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.realizations import HIDDEN, reduction
from flexure.solvers.design.objectives.measures import Measure, Piece, Seen, is_stable
from flexure.solvers.design.objectives.parametric_models import Realization, Request

_SETTLED = 8.0  # time constants of the slowest pole, after which nothing overshoots
_SAMPLES = 3000  # of a step response


@dataclass(frozen=True, eq=False)
class OvershootMeasure(Measure):
    """The overshoot of the step response of a linear model, in percent of its final value.

    With the input as one more state, the response is ``y = c exp(M t) e``. At its highest point,
    its derivatives by M are those of the exponential (Fréchet). In sampled models, they follow
    from the adjoint states.

    Attributes
    ----------
    input, output : Way
        The way of the step.
    """

    input: Way
    output: Way

    unit = "%"

    def request(self, context: Context, attempt: str) -> Request:
        """Return the linear model that is needed."""
        return Request((self.input,), (self.output,))

    def pieces(self, seen: Seen) -> list[Piece]:
        """Return the pieces, the number first."""
        from scipy.linalg import expm, expm_frechet

        model = seen.model
        if model.D.shape != (1, 1):
            raise EvaluationError(
                "Cannot measure an overshoot",
                expected="one input and one output",
                found=f"{model.D.shape[1]} and {model.D.shape[0]}",
            )
        if not is_stable(model):
            return [Piece(math.inf)]
        T, period = model.tangent, model.period
        part = reduction(T.T @ model.A @ T, T.T @ model.B, model.C @ T, HIDDEN)
        n, h = len(model.A), period or 0.0
        final, by_final = _steady(model)
        if not len(part.A) or final == 0.0:
            return [Piece(0.0 if final else math.nan)]
        poles = np.linalg.eigvals(part.A).astype(complex)
        row, first = np.append(model.C[0], model.D[0]), np.append(np.zeros(n), 1.0)
        if period is None:
            rates = np.block([[model.A, model.B], [np.zeros((1, n + 1))]])
            slowest, fastest = np.abs(poles.real).min(), np.abs(poles).max()
            h = max(0.3 / fastest, _SETTLED / slowest / _SAMPLES)
            count, whole = math.ceil(_SETTLED / slowest / h), expm(h * rates)
        else:
            whole = np.block([[model.A, model.B], [np.zeros((1, n)), np.ones((1, 1))]])
            count = math.ceil(_SETTLED / max(-np.log(np.abs(poles).max()), _SETTLED / _SAMPLES))
        states = [first]
        for _ in range(count):
            states.append(whole @ states[-1])
        values = np.array(states) @ row / final
        top = int(np.argmax(values))
        if values[top] <= 1.0 or top == 0:
            return [Piece(0.0)]
        total = np.zeros((n + 1, n + 1))
        if period is None:
            time = h * top + _turn(rates, row @ rates, states[top - 1], h)
            peak, by = map(np.real, expm_frechet(time * rates.T, np.outer(row, first)))
            peak_state, total = peak.T @ first, time * by
        else:
            peak_state, adjoint = states[top], row
            for k in range(top - 1, -1, -1):
                total += np.outer(adjoint, states[k])
                adjoint = whole.T @ adjoint
        value = float(row @ peak_state)
        weights = total / final - value / final**2 * by_final
        weights[n] += peak_state / final
        return [Piece(100.0 * (value / final - 1.0), 100.0 * weights)]


def _turn(rates: FloatArray, slope: FloatArray, start: FloatArray, h: float) -> float:
    """Return when a response turns, from h beyond a state, which is within h of there."""
    from scipy.linalg import expm
    from scipy.optimize import brentq

    def rate(time: float) -> float:
        return float(slope @ expm(time * rates) @ start)

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
