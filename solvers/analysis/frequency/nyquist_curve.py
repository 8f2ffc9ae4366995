"""The curve L(jω) of one input and output: where it crosses circles and the real axis, its peak.

Where |L| has a given value, or L is real, s = jω solves a generalized eigenvalue problem: that of L
together with its adjoint L(-s), or L(1/z) of a sampled model. The eigenvalues are only used as
places to look at: between two neighbors nothing can happen unnoticed, however sharp a resonance
is, and the crossing itself is then the root of the function of ω, to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.realizations import scaling

Curve = npt.NDArray[np.complex128]

_ROUNDING = 8.0 * float(np.finfo(float).eps)
_FAITHFUL = 1e-3  # relative error up to which a value says something
_POLE = 1e9  # what a loop gain does not reach but at a pole
_LEVEL_STEP = 1e-10  # by which a peak is raised to look whether it is the highest


class NyquistCurve:
    """The frequency response of a model with one input and one output.

    Parameters
    ----------
    A, B, C, D : ndarray, shapes (n, n), (n, 1), (1, n) and (1, 1)
        The model; hidden states only cost time.
    period : float or None
        In s, of a sampled model.
    rotated : bool
        Whether the matrices come from orthogonal transformations, which spread rounding over all
        entries: then zeros among them are not exact.
    """

    def __init__(
        self,
        A: FloatArray,
        B: FloatArray,
        C: FloatArray,
        D: FloatArray,
        period: float | None,
        *,
        rotated: bool = False,
    ) -> None:
        from scipy.linalg import schur

        unit = np.ones(len(A)) if rotated else scaling(A, B, C)
        self.A, self.B, self.C = A * unit / unit[:, np.newaxis], B / unit[:, np.newaxis], C * unit
        self.D, self.period = D, period
        self._sizes = [
            np.full(each.shape, np.linalg.norm(each)) if rotated else np.abs(each)
            for each in (self.A, self.B, self.C)
        ]
        self.end = np.inf if period is None else np.pi / period
        triangle, turn = schur(self.A, output="complex") if len(A) else (self.A, self.A)
        self._triangle: Curve = np.asarray(triangle, dtype=complex)
        self._turn: Curve = np.asarray(turn, dtype=complex)
        poles = np.diagonal(triangle).astype(complex)
        moving = poles[poles != 0.0]
        sizes = np.abs(moving if period is None else np.log(moving) / period)
        sizes = sizes[(sizes > 0.0) & (sizes < self.end)]
        self.natural = np.union1d(self._frequencies(poles), sizes)

    def at(self, frequency: FloatArray) -> tuple[Curve, FloatArray]:
        """Return L at frequencies in rad/s, inf at poles, and how far off rounding may make it.

        That is the rounding of each entry of the matrices, to first order. One step of refinement
        keeps their zeros: where L falls as 1/s², no rounding of a term with 1/s hides its phase.
        """
        s = self._points(frequency)
        T, turn = self._triangle, self._turn
        away = s - np.diagonal(T)[:, np.newaxis]
        poles = np.any(away == 0.0, axis=0)
        away[away == 0.0] = 1.0
        x = turn @ _back_substitution(T, away, turn.conj().T @ self.B)
        left_over = self.B - (s * x - self.A @ x)
        x = x + turn @ _back_substitution(T, away, turn.conj().T @ left_over)
        y = turn.conj() @ _forward_substitution(T, away, (self.C @ turn)[0])
        (by_A, by_B, by_C), direct = self._sizes, self.D[0, 0]
        noise = np.sum(np.abs(y) * (by_A @ np.abs(x) + by_B), axis=0)
        noise = _ROUNDING * (noise + (by_C @ np.abs(x))[0] + abs(direct))
        values = np.where(poles, np.inf, (self.C @ x)[0] + direct)
        return values, np.where(poles, np.inf, noise)

    def ends(self) -> list[tuple[float, float]]:
        """Return zero and the highest frequency, each with L, which is real there."""
        lowest = (0.0, float(self.at(np.zeros(1))[0].real[0]))
        if not len(self.A):
            return [lowest]
        if self.period is None:
            return [lowest, (np.inf, float(self.D[0, 0]))]
        return [lowest, (self.end, float(self.at(np.array([self.end]))[0].real[0]))]

    def is_faithful(self, frequency: float) -> bool:
        """Tell whether L is neither lost in rounding nor at a pole."""
        if np.isinf(frequency):
            return True
        values, noise = self.at(np.array([frequency]))
        size = abs(values[0])
        return bool(noise[0] < _FAITHFUL * size and size < _POLE)

    def unit_crossings(self) -> FloatArray:
        """Return all frequencies above zero at which |L| goes through 1."""

        def excess(frequency: FloatArray) -> FloatArray:
            values, noise = self.at(frequency)
            size = np.abs(values)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.log(size)
                return np.where(np.abs(size - 1.0) > noise, found, 0.0)

        return self._roots(excess, self._where_level(1.0))

    def real_crossings(self) -> FloatArray:
        """Return all frequencies between the ends at which L goes through the real axis."""

        def sine(frequency: FloatArray) -> FloatArray:
            values, noise = self.at(frequency)
            meant = np.abs(values.imag) > noise
            return np.where(meant, values.imag / np.where(meant, np.abs(values), 1.0), 0.0)

        return self._roots(sine, self._where_real())

    def peak(self) -> tuple[float, float]:
        """Return the greatest |L|, and the frequency: inf when it is approached there."""
        ends = [(abs(value), frequency) for frequency, value in self.ends()]
        best, where = max(ends, key=lambda end: end[0])
        places = self.natural
        for attempt in range(50):
            value, frequency = self._highest(self._between(places))
            higher = value > best * (1.0 + _LEVEL_STEP)
            if higher:
                best, where = value, frequency
            if best == 0.0 or not (higher or attempt == 0):
                break
            places = self._where_level(best * (1.0 + _LEVEL_STEP))
        return best, where

    def _highest(self, points: FloatArray) -> tuple[float, float]:
        """Return the greatest |L| near points, found by looking closer and closer, and where."""
        value, frequency = 0.0, 0.0
        while len(points) > 2:
            values = np.abs(self.at(points)[0])
            k = int(values.argmax())
            if values[k] > value:
                value, frequency = float(values[k]), float(points[k])
            low, high = points[max(k - 1, 0)], points[min(k + 1, len(points) - 1)]
            # Around a maximum, half of the digits of the frequency make no difference.
            points = np.linspace(low, high, 17) if high - low > 1e-9 * high else points[:0]
        return value, frequency

    def _points(self, frequency: FloatArray) -> Curve:
        """Return s or z on the boundary of stability."""
        if self.period is None:
            return np.asarray(1j * frequency)
        return np.asarray(np.exp(1j * self.period * frequency))

    def _frequencies(self, eigenvalues: Curve) -> FloatArray:
        """Return the frequencies that belong to eigenvalues, in between the ends, in order."""
        found = eigenvalues[np.isfinite(eigenvalues)]
        turns = found.imag if self.period is None else np.angle(found) / self.period
        frequency = np.unique(np.abs(turns))
        return frequency[(frequency > 0.0) & (frequency < self.end)]

    def _between(self, frequency: FloatArray) -> FloatArray:
        """Return frequencies, one in between each two of them, and some on both sides."""
        if not len(frequency):
            frequency = np.array([1.0 if self.period is None else 0.5 * self.end])
        low, high = frequency[0], frequency[-1]
        ends = [low * 1e-6, low * 0.1, low * 0.5]
        beyond = [2.0 * high, 10.0 * high, 1e6 * high]
        if self.period is not None:
            beyond = [high + share * (self.end - high) for share in (0.1, 0.5, 1.0 - 1e-6)]
        middle = np.sqrt(frequency[1:] * frequency[:-1])
        return np.unique(np.concatenate([ends, frequency, middle, beyond]))

    def _roots(
        self, function: Callable[[FloatArray], FloatArray], places: FloatArray
    ) -> FloatArray:
        """Return where a function changes its sign, if it is continuous there."""
        from scipy.optimize import brentq

        around = np.concatenate([places * share for share in (0.8, 1.0, 1.25)])
        points = self._between(np.union1d(around[around < self.end], self.natural))
        values = function(points)
        points, values = points[values != 0.0], values[values != 0.0]
        roots = []
        for k in np.flatnonzero(values[1:] * values[:-1] < 0.0):
            low, high = (float(np.log(point)) for point in points[k : k + 2])
            root = np.exp(brentq(lambda e: float(function(np.exp([e]))[0]), low, high, xtol=1e-15))
            jumps = 0.5 * min(abs(values[k]), abs(values[k + 1]))
            if self.is_faithful(root) and abs(function(np.array([root]))[0]) < jumps:
                roots.append(root)
        return np.array(roots)

    def _where_level(self, level: float) -> FloatArray:
        """Return where |L| may be at a level: L~ L = level² with the adjoint L~."""
        B, C, D = self.B, self.C / level, self.D / level
        return self._pencil(np.hstack([C.T @ C, C.T @ D]), [D.T @ C, B.T, D.T @ D - 1.0])

    def _where_real(self) -> FloatArray:
        """Return where L may be real: L = L~ with the adjoint L~."""
        n = len(self.A)
        driven = np.hstack([np.zeros((n, n)), self.C.T])
        return self._pencil(driven, [self.C, -self.B.T, np.zeros((1, 1))])

    def _pencil(self, driven: FloatArray, balance: list[FloatArray]) -> FloatArray:
        """Return the frequencies of the eigenvalues of the states x, the adjoint ones p, and u.

        x follows A x + B u, p follows backwards in time, with C and what drives it by x and u; and
        the balance of x, p and u is zero.
        """
        from scipy.linalg import eig

        n = len(self.A)
        if n == 0:
            return np.zeros(0)
        zero, one, column = np.zeros((n, n)), np.eye(n), np.zeros((n, 1))
        by_x, by_u = driven[:, :n], driven[:, n:]
        if self.period is None:
            left = np.block([[self.A, zero, self.B], [-by_x, -self.A.T, -by_u], balance])
            right = np.block([[one, zero, column], [zero, one, column], [np.zeros((1, 2 * n + 1))]])
        else:
            left = np.block([[self.A, zero, self.B], [zero, one, column], balance])
            right = np.block(
                [[one, zero, column], [by_x, self.A.T, by_u], [np.zeros((1, 2 * n + 1))]]
            )
        with np.errstate(all="ignore"):
            return self._frequencies(eig(left, right, right=False))


def _back_substitution(T: Curve, away: Curve, right: Curve) -> Curve:
    """Return (s - T)⁻¹ right for an upper triangle T, given s minus its diagonal."""
    x = np.zeros(away.shape, dtype=complex)
    for k in reversed(range(len(T))):
        x[k] = (right[k] + T[k, k + 1 :] @ x[k + 1 :]) / away[k]
    return x


def _forward_substitution(T: Curve, away: Curve, right: Curve) -> Curve:
    """Return the solution y of yᵀ (s - T) = right for an upper triangle T."""
    y = np.zeros(away.shape, dtype=complex)
    for k in range(len(T)):
        y[k] = (right[k] + T[:k, k] @ y[:k]) / away[k]
    return y
