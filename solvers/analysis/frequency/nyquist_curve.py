"""The curve L(jω) of one input and output: where it crosses circles and the real axis, its peak.

Where |L| has a given value, or L is real, s = jω solves a generalized eigenvalue problem: that of L
together with its adjoint L(-s), or L(1/z) of a sampled model. The crossing itself is then the root
of the function of ω, to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
import numpy.typing as npt

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.frequency_search import (
    FEW,
    Curve,
    FrequencySearch,
    solved_triangle,
)

_ROUNDING = 8.0 * float(np.finfo(float).eps)
_FAITHFUL = 1e-3  # relative error up to which a value says something
_POLE = 1e9  # what a loop gain does not reach but at a pole


class NyquistCurve(FrequencySearch):
    """The frequency response of a model with one input and one output; its size is searched."""

    @cached_property
    def _entries(self) -> list[FloatArray]:
        """Sizes of the entries of A, B and C, as far as rounding has left them to themselves."""
        return [
            np.full(each.shape, np.linalg.norm(each)) if self.rotated else np.abs(each)
            for each in (self.A, self.B, self.C)
        ]

    def shifted(self, center: float) -> NyquistCurve:
        """Return the curve of L - center."""
        other = copy(self)
        other.D = self.D - center
        return other

    def at(self, frequency: FloatArray) -> tuple[Curve, FloatArray]:
        """Return L at frequencies in rad/s, inf at poles, and how far off rounding may make it.

        That is the rounding of each entry of the matrices, to first order.
        """
        away, poles, x = self._states(frequency)
        row = (self.C @ self._turn)[0]
        if self._is_diagonal:
            y = self._back.T @ (row[:, np.newaxis] / away)
        else:
            y = self._turn.conj() @ _forward_substitution(self._triangle, away, row)
        (by_A, by_B, by_C), direct = self._entries, self.D[0, 0]
        noise = np.sum(np.abs(y) * (by_A @ np.abs(x) + by_B), axis=0)
        noise = _ROUNDING * (noise + (by_C @ np.abs(x))[0] + abs(direct))
        values = np.where(poles, np.inf, (self.C @ x)[0] + direct)
        return values, np.where(poles, np.inf, noise)

    def _states(self, frequency: FloatArray) -> tuple[Curve, npt.NDArray[np.bool_], Curve]:
        """Return s minus the poles, which points are poles, and the states for an input of 1.

        One step of refinement keeps zeros of the matrices: where L falls as 1/s², no rounding of a
        term with 1/s hides its phase.
        """
        s, turn, back = self._points(frequency), self._turn, self._back
        away = s - np.diagonal(self._triangle)[:, np.newaxis]
        poles = np.any(away == 0.0, axis=0)
        away[away == 0.0] = 1.0
        x = turn @ self._solved(away, back @ self.B)
        left_over = self.B - (s * x - self.A @ x)
        return away, poles, x + turn @ self._solved(away, back @ left_over)

    def sizes(self, frequency: FloatArray) -> FloatArray:
        """Return |L|."""
        _, poles, x = self._states(frequency)
        return np.where(poles, np.inf, np.abs((self.C @ x)[0] + self.D[0, 0]))

    def end_sizes(self) -> list[tuple[float, float]]:
        """Return |L| at both ends."""
        return [(abs(value), frequency) for frequency, value in self.ends()]

    def ends(self) -> list[tuple[float, float]]:
        """Return zero and the highest frequency, each with L, which is real there."""
        lowest = (0.0, float(self.at(np.zeros(1))[0].real[0]))
        if not len(self.A):
            return [lowest]
        if self.period is None:
            return [lowest, (np.inf, float(self.D[0, 0]))]
        return [lowest, (self.end, float(self.at(np.array([self.end]))[0].real[0]))]

    def is_faithful(self, frequency: float) -> bool:
        """Return whether L is neither lost in rounding nor at a pole."""
        if np.isinf(frequency):
            return True
        return _is_faithful(*self.at(np.array([frequency])))

    def unit_crossings(self) -> FloatArray:
        """Return all frequencies above zero at which |L| goes through 1."""

        def excess(values: Curve, noise: FloatArray) -> FloatArray:
            size = np.abs(values)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.log(size)
                return np.where(np.abs(size - 1.0) > noise, found, 0.0)

        return self._roots(excess, self.where_level(1.0))

    def real_crossings(self) -> FloatArray:
        """Return all frequencies between the ends at which L goes through the real axis."""

        def sine(values: Curve, noise: FloatArray) -> FloatArray:
            meant = np.abs(values.imag) > noise
            return np.where(meant, values.imag / np.where(meant, np.abs(values), 1.0), 0.0)

        return self._roots(sine, self._where_real())

    def _roots(
        self, function: Callable[[Curve, FloatArray], FloatArray], places: FloatArray
    ) -> FloatArray:
        """Return where a function of L and its rounding changes its sign, if L is continuous."""
        from scipy.optimize import brentq

        def at(exponent: float) -> float:
            return float(function(*self.at(np.exp([exponent])))[0])

        around = np.concatenate([places * share for share in (0.8, 1.0, 1.25)])
        points = self.between(np.union1d(around[around < self.end], self.natural))
        values = function(*self.at(points))
        points, values = points[values != 0.0], values[values != 0.0]
        roots = []
        for k in np.flatnonzero(values[1:] * values[:-1] < 0.0):
            low, high = (float(np.log(point)) for point in points[k : k + 2])
            root = np.exp(brentq(at, low, high, xtol=1e-15))
            jumps = 0.5 * min(abs(values[k]), abs(values[k + 1]))
            there = self.at(np.array([root]))
            if _is_faithful(*there) and abs(function(*there)[0]) < jumps:
                roots.append(root)
        return np.array(roots)

    def where_level(self, level: float) -> FloatArray:
        """Return where |L| may be at a level: L~ L = level² with the adjoint L~."""
        B, C, D = self.B, self.C / level, self.D / level
        return self._pencil(np.hstack([C.T @ C, C.T @ D]), [D.T @ C, B.T, D.T @ D - 1.0])

    def _where_real(self) -> FloatArray:
        """Return where L may be real: L = L~ with the adjoint L~."""
        n = len(self.A)
        driven = np.hstack([np.zeros((n, n)), self.C.T])
        return self._pencil(driven, [self.C, -self.B.T, np.zeros((1, 1))])


def _is_faithful(values: Curve, noise: FloatArray) -> bool:
    size = abs(values[0])
    return bool(noise[0] < _FAITHFUL * size and size < _POLE)


def _forward_substitution(T: Curve, away: Curve, right: Curve) -> Curve:
    """Return the solution y of yᵀ (s - T) = right for an upper triangle T."""
    if away.shape[1] <= FEW:
        columns = [solved_triangle(T, each, right, transposed=True) for each in away.T]
        return np.stack(columns, axis=1) if columns else np.zeros(away.shape, dtype=complex)
    y = np.zeros(away.shape, dtype=complex)
    for k in range(len(T)):
        y[k] = (right[k] + T[:k, k] @ y[:k]) / away[k]
    return y
