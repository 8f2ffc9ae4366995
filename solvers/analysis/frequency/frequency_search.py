"""Search over all frequencies: the highest value of a function of jω, and where it has a level.

Where such a function has a given value, s = jω solves a generalized eigenvalue problem: that of
the model together with its adjoint, x and p. The eigenvalues are only used as places to look at:
between two neighbors nothing can happen unnoticed, however sharp a resonance is.

Gains, passivity and sectors are extremes of quadratic forms. A form of the output y = G u and the
input u, with the weights Q, S and R,

    φ(y, u) = y* Q y + 2 Re(y* S u) + u* R u,

is compared with |u|² or with |y|². Its largest ratio over all u is an eigenvalue, its highest value
over all frequencies a norm or an index: for Q = 1 the squared peak gain.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.realizations import scaling

#: Complex numbers over frequency.
Curve = npt.NDArray[np.complex128]

_FLAT = 1e-13  # relative: what is no difference of values
_BENT = 1e-7  # relative: differences up to which a parabola has all digits
_AROUND_TOP = -0.03, -1e-3, 0.0, 1e-3, 0.03  # of a bracket, where to look around its top
#: Frequencies, each of which LAPACK solves by itself.
FEW = 8
_LEVEL_STEP = 1e-10  # by which a peak is raised to look whether it is the highest
_INDEPENDENT = 1e4  # condition of eigenvectors up to which responses are sums over them
_REGULAR = 1e8  # condition up to which the input is eliminated
_NOISE = 1e-12  # of the size of a response: what of its real part is rounding
_BESIDE = 1e-8  # of the highest natural frequency
_LOST = 1e-7  # of the size of a response: what is no output


class FrequencySearch(ABC):
    """A function of the frequency response of a model, whose highest value is searched.

    Hidden states of the model A, B, C, D only cost time; a sampled one has a period in s. Matrices
    are ``rotated`` if they come from orthogonal transformations, which spread rounding over all
    entries: then zeros among them are not exact. ``is_precise`` states that rounding beside the
    largest entry of a response may change the result.
    """

    #: Size of differences that count, where values may be zero.
    scale = 0.0
    #: Of the inverse value, which is a parabola around a resonance.
    _power = 2.0

    def __init__(
        self,
        A: FloatArray,
        B: FloatArray,
        C: FloatArray,
        D: FloatArray,
        period: float | None,
        *,
        rotated: bool = False,
        is_precise: bool = False,
    ) -> None:
        from scipy.linalg import schur

        unit = np.ones(len(A)) if rotated else scaling(A, B, C)
        self.A, self.B, self.C = A * unit / unit[:, np.newaxis], B / unit[:, np.newaxis], C * unit
        self.D, self.period, self.rotated = D, period, rotated
        self.end = np.inf if period is None else np.pi / period  # the highest frequency in rad/s
        values, shapes = np.linalg.eig(self.A)
        # A = turn T back with a triangle T: diagonal where eigenvectors are well conditioned.
        self._is_diagonal = not is_precise and len(A) > 0 and np.linalg.cond(shapes) < _INDEPENDENT
        if self._is_diagonal:
            self._triangle: Curve = np.diag(values).astype(complex)
            self._turn: Curve = shapes.astype(complex)
            self._back: Curve = np.asarray(np.linalg.inv(self._turn), dtype=complex)
        else:
            triangle, turn = schur(self.A, output="complex") if len(A) else (self.A, self.A)
            self._triangle = np.asarray(triangle, dtype=complex)
            self._turn = np.asarray(turn, dtype=complex)
            self._back = self._turn.conj().T
        poles: Curve = np.diagonal(self._triangle)
        moving = poles[poles != 0.0]
        sizes = np.abs(moving if period is None else np.log(moving) / period)
        sizes = sizes[(sizes > 0.0) & (sizes < self.end)]
        # The natural frequencies of the poles, in ascending order.
        self.natural = np.union1d(self._frequencies(poles), sizes)

    def shifted(self, center: float) -> Self:
        """Return the search for G - center in place of G, with as many inputs as outputs."""
        other = copy(self)
        other.D = self.D - center * np.eye(len(self.D))
        return other

    @abstractmethod
    def sizes(self, frequency: FloatArray) -> FloatArray:
        """Return the values of the function at frequencies in rad/s."""

    @abstractmethod
    def end_sizes(self) -> Sequence[tuple[float, float]]:
        """Return the values at zero and at the highest frequency, each with the frequency."""

    @abstractmethod
    def where_level(self, level: float) -> FloatArray:
        """Return the frequencies at which the function may have a value."""

    def peak(self) -> tuple[float, float]:
        """Return the highest value, and the frequency: inf when it is approached there."""
        best, where = max(self.end_sizes(), key=lambda end: end[0])
        places = self.natural
        for attempt in range(50):
            least = self._raised(best) if attempt > 0 else -np.inf
            value, frequency = self._highest(self.between(places), least)
            if value > self._raised(best):
                best, where = value, frequency
            elif attempt > 0:
                break
            if best == self.scale == 0.0 or not np.isfinite(best):
                break
            places = self.where_level(self._raised(best))
        return best, where

    def _raised(self, best: float) -> float:
        """Return a value above the best by more than rounding."""
        if not np.isfinite(best):
            return best
        return best + _LEVEL_STEP * max(abs(best), self.scale)

    def _highest(self, points: FloatArray, least: float) -> tuple[float, float]:
        """Return the highest value near points, by looking closer and closer, and where."""
        # If no point has at least some value, none is looked for.
        value, frequency = -np.inf, 0.0
        while len(points) > 2:
            values = self.sizes(points)
            k = int(values.argmax())
            if values[k] > value:
                value, frequency = float(values[k]), float(points[k])
            if value < least:
                break
            near = slice(max(k - 1, 0), k + 2)
            points = self._closer(points[near].tolist(), values[near].tolist())
        return value, frequency

    def _closer(self, near: list[float], values: list[float]) -> FloatArray:
        """Return frequencies around the best of two or three; none where it is the top."""
        low, high, best, least = near[0], near[-1], max(values), min(values)
        # Around a maximum, half of the digits of the frequency make no difference.
        if best - least <= _FLAT * abs(best) or high - low <= 1e-9 * high:
            return np.zeros(0)
        around: list[float] = []
        if len(near) == 3 and np.isfinite(best) and np.isfinite(least):  # 1/values are a parabola
            depths = [
                min(best / v, 1e9) ** self._power - 1.0
                if least > 0.0
                else (best - v) / (abs(best) or 1.0)
                for v in values
            ]
            left, right = near[1] - low, high - near[1]
            first, last = depths[0] / left, depths[2] / right
            slope, bend = last * left - first * right, first + last  # times the width
            if bend > 0.0:
                is_top = 0.25 * slope**2 <= _FLAT * bend * (high - low)
                if is_top and best - least <= _BENT * abs(best):
                    return np.zeros(0)
                top = near[1] - 0.5 * slope / bend
                around = [top + share * (high - low) for share in _AROUND_TOP]
        points = np.linspace(low, high, 9).tolist()
        return np.array(sorted([*points, *(w for w in around if low < w < high)]))

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

    def between(self, frequency: FloatArray) -> FloatArray:
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

    def _pencil(self, driven: FloatArray, balance: Sequence[FloatArray]) -> FloatArray:
        """Return the frequencies of the eigenvalues of the states x, the adjoint ones p, and u."""
        # x follows A x + B u, p follows backwards in time, with C and what drives it by x and u;
        # and the balance of x, p and u is zero. Where the balance can be solved for u, it is.
        from scipy.linalg import eig

        n, m = self.B.shape
        if n == 0:
            return np.zeros(0)
        zero, one, column = np.zeros((n, n)), np.eye(n), np.zeros((n, m))
        by_x, by_u = driven[:, :n], driven[:, n:]
        balanced = np.hstack(balance)
        if self.period is None:
            left = np.block([[self.A, zero, self.B], [-by_x, -self.A.T, -by_u], [balanced]])
            right = np.block([[one, zero, column], [zero, one, column], [np.zeros((m, 2 * n + m))]])
            direct = balanced[:, 2 * n :]
            if m > 1 and np.linalg.cond(direct) < _REGULAR:
                solved = np.linalg.solve(direct, balanced[:, : 2 * n])
                whole = left[: 2 * n, : 2 * n] - left[: 2 * n, 2 * n :] @ solved
                return self._frequencies(np.linalg.eigvals(whole))
        else:
            left = np.block([[self.A, zero, self.B], [zero, one, column], [balanced]])
            right = np.block(
                [[one, zero, column], [by_x, self.A.T, by_u], [np.zeros((m, 2 * n + m))]]
            )
        with np.errstate(all="ignore"):
            return self._frequencies(eig(left, right, right=False))

    def _solved(self, away: Curve, right: Curve) -> Curve:
        """Return (s - T)⁻¹ right for the upper triangle T, given s minus its diagonal."""
        # ``away`` has the shape (n, k), ``right`` (n, 1), (n, k) or (n, 1, m).
        T, (n, k) = self._triangle, away.shape
        if self._is_diagonal:
            return np.asarray(right / away.reshape(n, k, *[1] * (right.ndim - 2)))
        if k <= FEW:
            right = np.broadcast_to(right, (n, k, *right.shape[2:]))
            columns = [solved_triangle(T, away[:, j], right[:, j]) for j in range(k)]
            return np.stack(columns, axis=1) if columns else np.asarray(right, dtype=complex)
        away = away.reshape(*away.shape, *[1] * (right.ndim - 2))
        x = np.zeros(np.broadcast_shapes(away.shape, right.shape), dtype=complex)
        flat = x.reshape(len(T), math.prod(x.shape[1:]))
        for k in reversed(range(len(T))):
            x[k] = (right[k] + (T[k, k + 1 :] @ flat[k + 1 :]).reshape(x.shape[1:])) / away[k]
        return x


def solved_triangle(T: Curve, away: Curve, right: Curve, *, transposed: bool = False) -> Curve:
    """Return (s - T)⁻¹ right for an upper triangle T, given s minus its diagonal."""
    from scipy.linalg.lapack import ztrtrs

    if not len(T):
        return right  # LAPACK prints a complaint
    matrix = -T
    np.fill_diagonal(matrix, away)
    return np.asarray(ztrtrs(matrix, right, trans=int(transposed))[0]).reshape(right.shape)


class QuadraticSearch(FrequencySearch):
    """The largest ratio of a quadratic form to |u|², or to |y|², over frequency.

    The form has numbers Q, S and R; it is compared with |y|² if ``of_output``. Beside poles at the
    frequencies ``neutral`` nothing counts.
    """

    _power = 1.0  # values are squares of gains

    def __init__(
        self,
        A: FloatArray,
        B: FloatArray,
        C: FloatArray,
        D: FloatArray,
        period: float | None,
        *,
        Q: float = 0.0,
        S: float = 0.0,
        R: float = 0.0,
        of_output: bool = False,
        neutral: FloatArray | None = None,
    ) -> None:
        super().__init__(A, B, C, D, period, is_precise=S != 0.0 or of_output)
        self._weights, self._of_output = (Q, S, R), of_output
        self._neutral = np.zeros(0) if neutral is None else neutral
        if S != 0.0:
            self.scale = 1.0

    @classmethod
    def squared(cls, other: FrequencySearch) -> QuadraticSearch:
        """Return the search for the squared gain of the model of another search."""
        found = cls.__new__(cls)
        vars(found).update(vars(other))
        found._weights, found._of_output, found._neutral = (1.0, 0.0, 0.0), False, np.zeros(0)
        return found

    def rescaled(self, d: FloatArray) -> QuadraticSearch:
        """Return the search for d G / d in place of G, with as many inputs as outputs."""
        other = copy(self)
        other.B, other.C = self.B / d, self.C * d[:, np.newaxis]
        other.D = self.D * d[:, np.newaxis] / d
        return other

    def responses(self, frequency: FloatArray) -> Curve:
        """Return G at frequencies in rad/s, shape (k, p, m); NaN at a pole."""
        away = self._points(frequency) - np.diagonal(self._triangle)[:, np.newaxis]
        poles = np.any(away == 0.0, axis=0)
        away[away == 0.0] = 1.0
        driven = (self._back @ self.B)[:, np.newaxis, :]
        states = self._solved(away, driven).transpose(1, 0, 2)
        responses = np.asarray((self.C @ self._turn) @ states + self.D, dtype=complex)
        responses[poles] = np.nan
        return responses

    def slopes(self, frequency: float) -> Curve:
        """Return dG/dω at a frequency in rad/s, shape (p, m)."""
        s = self._points(np.array([frequency]))
        away = s - np.diagonal(self._triangle)[:, np.newaxis]
        states = self._solved(away, self._solved(away, (self._back @ self.B)[:, np.newaxis, :]))
        turn = 1.0 if self.period is None else self.period * s[0]
        return np.asarray(-1j * turn * (self.C @ self._turn) @ states[:, 0])

    def ratios(self, responses: Curve) -> FloatArray:
        """Return the largest ratio for each response; of a gain inf at a pole.

        Indices are not counted at a pole, nor beside an output of zero: their limits are.
        """
        Q, S, R = self._weights
        usable = np.isfinite(responses).all(axis=(1, 2))
        G = responses[usable]
        noise, lost = np.abs(G).max(axis=(1, 2)), np.zeros(len(G), dtype=bool)
        if self._of_output:  # in terms of y: u = G⁻¹ y
            u, sizes, vh = np.linalg.svd(G)
            lost = sizes[:, -1] <= _LOST * np.maximum(sizes[:, 0], np.finfo(float).tiny)
            inverse = 1.0 / np.where(lost[:, np.newaxis], 1.0, sizes)
            G = (vh.conj().transpose(0, 2, 1) * inverse[:, np.newaxis]) @ u.conj().transpose(
                0, 2, 1
            )
            Q, R, noise = R, Q, inverse[:, -1]
        adjoint = G.conj().transpose(0, 2, 1)
        form = Q * (adjoint @ G) + R * np.eye(G.shape[2]) + (S * (G + adjoint) if S else 0.0)
        values = np.linalg.eigvalsh(form)[:, -1]
        values = np.where(np.abs(values) < _NOISE * noise, 0.0, values) if S else values
        found = np.full(len(responses), -np.inf if S else np.inf)
        found[usable] = np.where(lost, -np.inf, values)
        return found

    def sizes(self, frequency: FloatArray) -> FloatArray:
        """Return the largest ratios."""
        found = self.ratios(self.responses(frequency))
        if len(self._neutral):
            away = np.abs(frequency[:, np.newaxis] - self._neutral).min(axis=1)
            found = np.where(away < _BESIDE * self.natural.max(initial=0.0), -np.inf, found)
        return found

    def end_sizes(self) -> list[tuple[float, float]]:
        """Return the ratios at zero and at the highest frequency."""
        if not len(self.A):
            return [(float(self.ratios(self.D[np.newaxis].astype(complex))[0]), 0.0)]
        found = [(float(self.sizes(np.zeros(1))[0]), 0.0)]
        last = self.D[np.newaxis] if self.period is None else self.responses(np.array([self.end]))
        return [*found, (float(self.ratios(last.astype(complex))[0]), self.end)]

    def where_level(self, level: float) -> FloatArray:
        """Return where an eigenvalue may be at a level: a singular form of y, u and a level."""
        Q, S, R = self._weights
        Q, R = (Q - level, R) if self._of_output else (Q, R - level)
        B, C, D, unit = self.B, self.C, self.D, np.eye(self.B.shape[1])
        by_u = Q * D + S * (unit if S else 0.0)
        driven = np.hstack([Q * C.T @ C, C.T @ by_u])
        direct = Q * D.T @ D + R * unit + (S * (D + D.T) if S else 0.0)
        return self._pencil(driven, [by_u.T @ C, B.T, direct])

    def grows_without_bound(self) -> bool:
        """Return whether ratios tend to infinity at neutral poles, or at the ends."""
        around = np.array([1e-4, 1e-5, 1e-6])
        low, high = self.natural[[0, -1]] if len(self.natural) else (1.0, 1.0)
        rows = [low * around, high / around if self.period is None else self.end * (1.0 - around)]
        neutral = self._neutral
        for frequency in neutral[(neutral > 0.0) & (neutral < self.end)]:
            rows += [frequency * (1.0 - around), frequency * (1.0 + around)]
        points = np.array(rows)
        responses = self.responses(points.ravel())
        values = self.ratios(responses).reshape(points.shape)
        with np.errstate(all="ignore"):
            sizes = np.abs(responses).max(axis=(1, 2)).reshape(points.shape)
            sizes = 1.0 / sizes if self._of_output else sizes
            rises = (values[:, 1:] > 3.0 * values[:, :-1]).all(axis=1)
            return bool(np.any(rises & (values[:, 0] > _LOST * sizes[:, 0])))


def peak_gain(
    A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray, period: float | None
) -> tuple[float, float]:
    """Return the highest singular value over all frequencies, and the frequency."""
    gain = QuadraticSearch(A, B, C, D, period, Q=1.0)
    value, frequency = gain.peak()
    return float(np.sqrt(max(value, 0.0))), frequency
