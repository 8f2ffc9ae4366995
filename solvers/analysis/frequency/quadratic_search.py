"""Extremes over frequency of quadratic forms of inputs and outputs: gains, passivity, sectors.

A form of the output y = G u and the input u, with the weights Q, S and R,

    φ(y, u) = y* Q y + 2 Re(y* S u) + u* R u,

is compared with |u|² or with |y|². Its largest ratio over all u is an eigenvalue, its highest value
over all frequencies a norm or an index: for Q = 1 the squared peak gain.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.frequency_search import Curve, FrequencySearch

_NOISE = 1e-12  # of the size of a response: what of its real part is rounding
_BESIDE = 1e-8  # of the highest natural frequency
_LOST = 1e-7  # of the size of a response: what is no output


class QuadraticSearch(FrequencySearch):
    """The largest ratio of a quadratic form to |u|², or to |y|², over frequency.

    The form is ``Q |y|² + 2 S Re(y* u) + R |u|²``; it is compared with |y|² if ``of_output``.
    Beside poles at the frequencies ``neutral`` nothing counts.
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
