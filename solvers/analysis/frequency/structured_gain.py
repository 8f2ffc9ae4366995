"""The structured singular value of a frequency response: how little change at all wires suffices.

For a matrix M and changes Δ = diag(δ₁, ..., δₘ) of complex numbers,

    1/μ(M) = min { max |δₖ| : det(I - M Δ) = 0 }.

μ lies between the spectral radius of M Q for any Q = diag of phases, and the largest singular value
of D M D⁻¹ for any positive diagonal D. The minimum over D is a convex problem in log D; for up to
three changes it is μ itself.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.frequency_search import Curve
from flexure.solvers.analysis.frequency.quadratic_search import QuadraticSearch

_GUARANTEE = 1e-4  # up to which no other frequency is worse than that of the peak
_POWERS = 2.0 * 4.0 ** np.arange(15)  # of singular values: what the largest one is of
_MOST_STEPS, _MOST_BANDS, _STARTS = 100, 100, 8
_CLOSE = 1e-11  # relative
_NOISE = 1e-15  # of a logarithm
_WIDEST = 14.0  # logarithm of the ratio of two scales


def scales_of(M: Curve, start: FloatArray, enough: float = 0.0) -> tuple[FloatArray, float]:
    """Return scales d for which the largest singular value of d M / d is least, and this value.

    Parameters
    ----------
    M : ndarray, shape (m, m)
        A complex matrix.
    start : ndarray, shape (m,)
        Scales from which to begin.
    enough : float, optional
        A value at which to stop.

    Notes
    -----
    Newton's method in x = log d for ``log(Σ sᵢ²ᵠ) / 2q`` of the singular values s, which is convex
    and tends to that of the largest one as q rises.
    """
    x = np.log(start)
    best, value = start, _largest(M, start)
    for q in _POWERS if len(M) > 1 else ():
        for _ in range(_MOST_STEPS):
            if value <= enough:
                return best, value
            level, slope, step = _newton_step(M, x, q)
            decrease = -float(slope @ step)
            length = min(1.0, 2.0 / max(np.abs(step).max(), 2.0))
            while length > 1e-4:
                if _smoothed(M, x + length * step, q) <= level - 0.1 * length * decrease + _NOISE:
                    break
                length *= 0.5
            x = x + length * step
            found = _largest(M, np.exp(x))
            if found < value:
                best, value = np.exp(x), found
            if decrease < 0.1 / q or np.ptp(x) > _WIDEST:
                break
        is_settled = decrease < _CLOSE and _smoothed(M, x, q) - np.log(value) < _CLOSE
        if is_settled or np.ptp(x) > _WIDEST:
            break
    return best, value


def _smoothed(M: Curve, x: FloatArray, q: float) -> float:
    """Return log(Σ sᵢ²ᵠ) / 2q of the singular values of eˣ M e⁻ˣ."""
    sizes = np.linalg.svd(M * np.exp(x[:, np.newaxis] - x), compute_uv=False)
    logs = np.log(np.maximum(sizes, np.finfo(float).tiny))
    return float(logs[0] + np.log(np.exp(2.0 * q * (logs - logs[0])).sum()) / (2.0 * q))


def _newton_step(M: Curve, x: FloatArray, q: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the smoothed value, its slopes, and Newton's step.

    M and Mᴴ are the blocks of a Hermitian matrix W, with ±s as its eigenvalues, which becomes
    E W E with E = diag(eˣ, e⁻ˣ). So derivatives of its functions are those of eigenvalues.
    """
    m = len(M)
    u, s, vh = np.linalg.svd(M * np.exp(x[:, np.newaxis] - x))
    top = s[0] or 1.0
    w = np.concatenate([s, -s]) / top
    upper, lower = np.hstack([u, u]), np.hstack([vh.conj().T, -vh.conj().T])
    turned = 0.5 * (
        upper.conj()[:, :, np.newaxis] * upper[:, np.newaxis]
        - lower.conj()[:, :, np.newaxis] * lower[:, np.newaxis]
    )
    power = np.exp(2.0 * q * np.log(np.maximum(np.abs(w), 1e-300)))
    first = 2.0 * q * power / np.where(w == 0.0, 1.0, w)
    second = 2.0 * q * (2.0 * q - 1.0) * power / np.where(w == 0.0, 1.0, w) ** 2
    away, both = w[:, np.newaxis] - w, w[:, np.newaxis] + w
    alike = np.abs(away) < 1e-12
    slopes = np.where(
        alike, second[:, np.newaxis], (first[:, np.newaxis] - first) / np.where(alike, 1.0, away)
    )
    curve = slopes * both**2 + (first[:, np.newaxis] + first) * both
    total = power.sum()
    slope = 2.0 * np.einsum("kii,i->k", turned, first * w).real / (2.0 * q * total)
    flat = turned.reshape(m, -1)
    hessian = ((flat * curve.ravel()) @ flat.conj().T).real / (2.0 * q * total)
    hessian = hessian - 2.0 * q * slope[:, np.newaxis] * slope
    step = np.zeros(m)
    ridge = 1e-12 * max(float(np.trace(hessian)), 1e-300) * np.eye(m - 1)
    step[:-1] = np.linalg.solve(hessian[:-1, :-1] + ridge, -slope[:-1])
    value = float(np.log(top) + np.log(0.5 * total) / (2.0 * q))
    return value, slope, step


def _largest(M: Curve, d: FloatArray) -> float:
    return float(np.linalg.svd(M * d[:, np.newaxis] / d, compute_uv=False)[0])


def worst_phases(M: Curve, d: FloatArray) -> tuple[Curve, float]:
    """Return phases q, |qₖ| = 1, for which the spectral radius of M q is large, and this value.

    M q has the radius as a real and positive eigenvalue. The fixed-point iteration runs from
    several starts at once, the first of which are the singular vectors of d M / d.
    """
    u, _, vh = np.linalg.svd(M * d[:, np.newaxis] / d)
    noise = np.random.default_rng(0).normal(size=(2, len(M), _STARTS, 2)) @ np.array([1.0, 1.0j])
    b = np.hstack([vh.conj().T / d[:, np.newaxis], noise[0]])
    w = np.hstack([u * d[:, np.newaxis], noise[1]])
    for _ in range(_MOST_STEPS):
        a = _unit(M @ b)
        w = _unit(M.conj().T @ (_phase(a) * np.abs(w)))
        before, b = b, _phase(w) * np.abs(a)
        if np.allclose(b, before, rtol=1e-12, atol=1e-13):
            break
    phases = (_phase(b) * _phase(M @ b).conj()).T
    values = np.linalg.eigvals(M * phases[:, np.newaxis])
    tops = np.take_along_axis(values, np.abs(values).argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
    best = int(np.abs(tops).argmax())
    return phases[best] * np.exp(-1j * np.angle(tops[best])), float(abs(tops[best]))


def _unit(columns: Curve) -> Curve:
    lengths = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(lengths > 0.0, lengths, 1.0))


def _phase(numbers: Curve) -> Curve:
    return np.asarray(np.exp(1j * np.angle(numbers)))


def structured_peak(
    A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray, period: float | None
) -> tuple[float, float, Curve, FloatArray]:
    """Return the highest μ over all frequencies, its frequency, M there, and its scales d.

    The highest upper bound of μ is searched from the natural frequencies. Then scales are
    collected, each of which proves that μ is higher nowhere within some bands, by more than
    0.01 %, until these bands cover all frequencies.
    """
    found = _Climb(QuadraticSearch(A, B, C, D, period, Q=1.0))
    allowed = found.cover() if len(A) else _GUARANTEE
    best = found.best * (1.0 + allowed * (allowed > _GUARANTEE))
    return best, found.where, found.at(found.where), found.scales


class _Climb:
    """The highest upper bound of μ found so far: ``best``, at ``where``, with ``scales``."""

    def __init__(self, gain: QuadraticSearch) -> None:
        self.gain = gain
        self.best, self.where, self.scales = 0.0, 0.0, np.ones(len(gain.D))
        for frequency in (0.0, gain.end):
            self._take(frequency)
        self.points = gain.between(gain.natural)
        left = self.points if len(gain.A) else self.points[:0]
        while len(left):  # scales of the best leave few points to look at
            sizes = np.sqrt(gain.rescaled(self.scales).sizes(left))
            enough = self.best * (1.0 + _CLOSE)
            order = np.argsort(-sizes)[: np.count_nonzero(sizes > enough)]
            if len(order) and self._bound(left[order[0]], enough)[1] > enough:
                self._take(left[order[0]])
            left = left[order[1:]]
        if 0.0 < self.where < gain.end:
            self.rise(self.where)

    def at(self, frequency: float) -> Curve:
        """Return M at a frequency, which may be inf."""
        if not (len(self.gain.A) and np.isfinite(frequency)):
            return self.gain.D.astype(complex)
        return np.asarray(self.gain.responses(np.array([frequency]))[0])

    def rise(self, frequency: float) -> None:
        """Take the top near a frequency that is higher than the best."""
        from scipy.optimize import minimize_scalar

        k = int(np.searchsorted(self.points, frequency))
        low, high = self.points[max(k - 1, 0)], self.points[min(k + 1, len(self.points) - 1)]
        top = minimize_scalar(
            lambda w: -self._bound(w)[1],
            bounds=(low, high),
            method="bounded",
            options={"xatol": 1e-8 * high},
        )
        for each in (frequency, float(top.x)):
            self._take(each)

    def cover(self) -> float:
        """Look at all frequencies; return by how much μ may be higher than the best."""
        left, allowed, bands, d = [(0.0, self.gain.end)], _GUARANTEE, 0, self.scales
        while left:
            left = self._not_below(left, d, self.best * (1.0 + allowed))
            if left:
                middle, enough = _middle(*left[0]), self.best * (1.0 + 0.5 * allowed)
                d, value = self._bound(middle, enough)
                if value > enough:
                    self.rise(middle)
                    d = self.scales
                bands += 1
                if bands % _MOST_BANDS == 0:
                    allowed *= 10.0
        return allowed

    def _not_below(
        self, bands: list[tuple[float, float]], d: FloatArray, level: float
    ) -> list[tuple[float, float]]:
        """Return where in some bands given scales do not prove that μ is below a level."""
        scaled = self.gain.rescaled(d)
        crossings = scaled.where_level(level**2)
        left = []
        for low, high in bands:
            inside = crossings[(crossings > low) & (crossings < high)]
            parts = list(pairwise([low, *inside.tolist(), high]))
            higher = scaled.sizes(np.array([_middle(*part) for part in parts])) > level**2
            left += [part for part, is_higher in zip(parts, higher, strict=True) if is_higher]
        return left

    def _bound(self, frequency: float, enough: float = 0.0) -> tuple[FloatArray, float]:
        return scales_of(self.at(frequency), self.scales, enough)

    def _take(self, frequency: float) -> None:
        scales, value = self._bound(frequency, self.best)
        if value > self.best:
            self.best, self.where, self.scales = value, frequency, scales


def _middle(low: float, high: float) -> float:
    """Return a frequency between two others, which may be zero and inf."""
    if np.isinf(high):
        return max(2.0 * low, 1.0)
    return float(np.sqrt(low * high)) if low > 0.0 else 0.5 * high
