"""The structured singular value of a frequency response: how little change at all wires suffices.

For a matrix M and changes Δ = diag(δ₁, ..., δₘ) of complex numbers,

    1/μ(M) = min { max |δₖ| : det(I - M Δ) = 0 }.

μ lies between the spectral radius of M Q for any Q = diag of phases, and the largest singular value
of D M D⁻¹ for any positive diagonal D. The minimum over D is a convex problem in log D; for up to
three changes it is μ itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.frequency_search import Curve, QuadraticSearch

_GUARANTEE = 1e-4  # up to which no other frequency is worse than that of the peak
_RATIO = 4.0  # of one power of singular values to the next
_POWERS = 64.0 * _RATIO ** np.arange(12)  # of which sums stand for the largest one
_ORDERS = 5  # of 1/q, by which minima are extrapolated
_MOST_STEPS, _MOST_BANDS, _STARTS = 100, 100, 8
_CLOSE = 1e-11  # relative
_BESIDE = 1e-10  # relative: differences of values at an end and beside it
_SETTLED = 1e-8  # of scales and slopes from one power to the next
_REACHED = 1e-14  # decrease that Newton's method does not look for
_NOISE = 1e-15  # of a logarithm
_WIDEST = 14.0  # logarithm of the ratio of two scales


@dataclass(frozen=True, eq=False)
class Bound:
    """An upper bound of μ.

    ``value`` is the largest singular value of d M / d, ``scales`` are d, and ``slopes`` are W, so
    that the least of all bounds has the slope ``Re Σ W ∘ dM/dω``.
    """

    value: float
    scales: FloatArray
    slopes: Curve


def least_bound(M: Curve, start: FloatArray, enough: float = 0.0) -> Bound:
    """Return scales d for which the largest singular value of d M / d is least, and this value.

    The search begins at the scales ``start``, and stops at a value of ``enough``.

    Newton's method in x = log d for ``log(Σ sᵢ²ᵠ) / 2q`` of the singular values s, which is convex
    and tends to that of the largest one as q rises. Its minima are a series in 1/q, by which they
    are extrapolated (Richardson), since values of several equal singular values err by 1/q.
    """
    x = np.log(start)
    best = Bound(_largest(M, start), start, np.zeros_like(M))
    minima: list[Curve] = []
    before: Curve = np.zeros(0, dtype=complex)
    for q in _POWERS if len(M) > 1 and best.value > enough else ():
        here = _newton_step(M, x, q)
        for _ in range(_MOST_STEPS):
            decrease, level = -float(here.slope @ here.step), here.level
            if here.largest < best.value:
                best = Bound(here.largest, np.exp(x), here.by_matrix)
            if best.value <= enough:
                return best
            if decrease < _REACHED or np.ptp(x) > _WIDEST:
                break
            length = min(1.0, 2.0 / max(np.abs(here.step).max(), 2.0))
            there = _newton_step(M, x + length * here.step, q)
            while there.level > level - 0.1 * length * decrease + _NOISE and length > 1e-4:
                length *= 0.5
                there = _newton_step(M, x + length * here.step, q)
            x, here = x + length * here.step, there
        if np.ptp(x) > _WIDEST:
            break
        minima.append(np.concatenate([x, here.by_matrix.ravel()]))
        limit = _extrapolated(minima[-_ORDERS:])
        end = limit[: len(x)].real
        value = _largest(M, np.exp(end)) if np.ptp(end) < _WIDEST else np.inf
        if value <= best.value * (1.0 + _CLOSE):
            best = Bound(value, np.exp(end), limit[len(x) :].reshape(M.shape))
        if len(minima) > 1 and np.abs(limit - before).max() <= _SETTLED * np.abs(limit).max():
            break
        x, before = end + (x - end) / _RATIO, limit
    return best


def _extrapolated(minima: list[Curve]) -> Curve:
    """Return the limit of what is a series in 1/q, of values for rising powers q."""
    factor = _RATIO
    while len(minima) > 1:
        minima = [b + (b - a) / (factor - 1.0) for a, b in pairwise(minima)]
        factor *= _RATIO
    return minima[0]


@dataclass(frozen=True, eq=False)
class _NewtonStep:
    """The smoothed value, the largest singular value, slopes by x and M, and Newton's step."""

    level: float
    largest: float
    slope: FloatArray
    by_matrix: Curve
    step: FloatArray


def _newton_step(M: Curve, x: FloatArray, q: float) -> _NewtonStep:
    """Return Newton's step for log(Σ sᵢ²ᵠ) / 2q of the singular values of eˣ M e⁻ˣ.

    M and Mᴴ are the blocks of a Hermitian matrix W, with ±s as its eigenvalues, which becomes
    E W E with E = diag(eˣ, e⁻ˣ). So derivatives of its functions are those of eigenvalues: of pairs
    of the same sign, and of opposite ones.
    """
    m, scale = len(M), np.exp(x[:, np.newaxis] - x)
    u, sizes, vh = np.linalg.svd(M * scale)
    v, top = vh.conj().T, float(sizes[0]) or 1.0
    s = sizes / top
    power = s ** (2.0 * q)
    total, divisor = float(power.sum()), np.maximum(s, 1e-300)
    first = 2.0 * q * power / divisor
    rows, factors = s[:, np.newaxis], first[:, np.newaxis]
    apart, both, less, more = rows - s, rows + s, factors - first, factors + first
    alike = np.abs(apart) < 1e-12
    second = (2.0 * q - 1.0) * factors / divisor[:, np.newaxis]
    same = both * (both * np.where(alike, second, less / (apart + alike)) + more)
    opposite = apart * (apart * more / np.maximum(both, 1e-300) + less)
    left, right = (w.conj()[:, :, np.newaxis] * w[:, np.newaxis] for w in (u, v))
    turned = np.array([left - right, left + right])
    slope = turned[0].diagonal(axis1=1, axis2=2).real @ (first * s) / (2.0 * q * total)
    weighted = (turned * np.array([same, opposite])[:, np.newaxis]).swapaxes(0, 1).reshape(m, -1)
    turned = turned.swapaxes(0, 1).reshape(m, -1)
    hessian = (weighted @ turned.conj().T).real / (8.0 * q * total)
    hessian -= 2.0 * q * slope[:, np.newaxis] * slope
    step = np.zeros(m)
    ridge = 1e-12 * max(float(np.trace(hessian)), 1e-300) * np.eye(m - 1)
    step[:-1] = np.linalg.solve(hessian[:-1, :-1] + ridge, -slope[:-1])
    by_sizes = first / (2.0 * q * total * top)
    return _NewtonStep(
        level=float(np.log(top) + np.log(total) / (2.0 * q)),
        largest=float(sizes[0]),
        slope=slope,
        by_matrix=scale * ((u.conj() * by_sizes) @ vh.conj()),
        step=step,
    )


def _largest(M: Curve, d: FloatArray) -> float:
    return float(np.linalg.svd(M * d[:, np.newaxis] / d, compute_uv=False)[0])


def worst_phases(M: Curve, d: FloatArray) -> tuple[Curve, float]:
    """Return phases q, |qₖ| = 1, for which the spectral radius of M q is large, and this value.

    M q has the radius as a real and positive eigenvalue. The fixed-point iteration runs from
    several starts at once, the first of which are the singular vectors of d M / d, until all have
    converged, or one to the largest singular value, above which none can come.
    """
    u, s, vh = np.linalg.svd(M * d[:, np.newaxis] / d)
    enough = s[0] * (1.0 - 1e-12)
    noise = np.random.default_rng(0).normal(size=(2, len(M), _STARTS, 2)) @ np.array([1.0, 1.0j])
    b = np.hstack([vh.conj().T / d[:, np.newaxis], noise[0]])
    w = np.hstack([u * d[:, np.newaxis], noise[1]])
    for _ in range(_MOST_STEPS):
        a = _unit(M @ b)
        w = _unit(M.conj().T @ (_phase(a) * np.abs(w)))
        before, b = b, _phase(w) * np.abs(a)
        is_still = np.abs(b - before).max(axis=0) <= 1e-13
        if is_still.all() or np.linalg.norm(M @ b[:, is_still], axis=0).max(initial=0.0) >= enough:
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
    sizes = np.abs(numbers)
    return np.asarray(np.where(sizes > 0.0, numbers, 1.0) / np.where(sizes > 0.0, sizes, 1.0))


def structured_peak(gain: QuadraticSearch) -> tuple[float, float, Curve, FloatArray]:
    """Return the highest μ of a gain over all frequencies, where, M there, and its scales d.

    The highest upper bound of μ is searched from the natural frequencies. Then scales are
    collected, each of which proves that μ is higher nowhere within some bands, by more than
    0.01 %, until these bands cover all frequencies.
    """
    found = _Climb(gain)
    allowed = found.cover() if len(gain.A) else _GUARANTEE
    best = found.best.value * (1.0 + allowed * (allowed > _GUARANTEE))
    return best, found.where, found.at(found.where), found.best.scales


class _Climb:
    """The highest upper bound of μ found so far: ``best``, at ``where``."""

    def __init__(self, gain: QuadraticSearch) -> None:
        m = len(gain.D)
        self.gain = gain
        self.best, self.where = Bound(0.0, np.ones(m), np.zeros((m, m), dtype=complex)), 0.0
        self.points = gain.between(gain.natural)
        left = self.points if len(gain.A) else self.points[:0]
        while len(left):  # scales of the best leave few points to look at
            sizes = np.sqrt(gain.rescaled(self.best.scales).sizes(left))
            order = np.argsort(-sizes)
            order = order[: np.count_nonzero(sizes > self.best.value * (1.0 + _CLOSE))]
            if len(order):
                self._bound(left[order[0]], enough=True)
            left = left[order[1:]]
        for frequency in (0.0, gain.end):  # rather than a frequency beside it
            self._bound(frequency, enough=True, more=-_BESIDE)
        if 0.0 < self.where < gain.end:
            self.rise(self.where)

    def at(self, frequency: float) -> Curve:
        """Return M at a frequency, which may be inf."""
        if not (len(self.gain.A) and np.isfinite(frequency)):
            return self.gain.D.astype(complex)
        return np.asarray(self.gain.responses(np.array([frequency]))[0])

    def rise(self, frequency: float) -> None:
        """Take the top near a frequency that is higher than the best: there the slope is zero."""
        from scipy.optimize import brentq

        @cache
        def look(w: float) -> tuple[float, float]:
            bound = self._bound(w)
            return bound.value, float(np.sum(bound.slopes * self.gain.slopes(w)).real)

        k = int(np.searchsorted(self.points, frequency))
        low, high = self.points[max(k - 1, 0)], self.points[min(k + 1, len(self.points) - 1)]
        near, far = frequency, float(high if look(frequency)[1] > 0.0 else low)
        for _ in range(_MOST_STEPS):
            if look(near)[1] * look(far)[1] < 0.0:
                brentq(lambda w: look(w)[1], near, far, xtol=1e-8 * high)
                break
            middle = 0.5 * (near + far)
            if look(far)[0] >= look(near)[0] or middle in (near, far):
                break
            near, far = (middle, far) if look(middle)[0] >= look(near)[0] else (near, middle)

    def cover(self) -> float:
        """Look at all frequencies; return by how much μ may be higher than the best."""
        left, allowed, bands, d = [(0.0, self.gain.end)], _GUARANTEE, 0, self.best.scales
        while left:
            left = self._not_below(left, d, self.best.value * (1.0 + allowed))
            if left:
                middle, enough = _middle(*left[0]), self.best.value * (1.0 + 0.5 * allowed)
                bound = least_bound(self.at(middle), self.best.scales, enough)
                d = bound.scales
                if bound.value > enough:
                    self.rise(middle)
                    d = self.best.scales
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

    def _bound(self, frequency: float, *, enough: bool = False, more: float = _CLOSE) -> Bound:
        """Return the least bound at a frequency, or any that is not above the best; keep the best.

        What is above the best by more than a part of it becomes the best.
        """
        level = self.best.value * (1.0 + more)
        bound = least_bound(self.at(frequency), self.best.scales, level * enough)
        if bound.value > min(level, self.best.value):
            self.best, self.where = bound, frequency
        return bound


def _middle(low: float, high: float) -> float:
    """Return a frequency between two others, which may be zero and inf."""
    if np.isinf(high):
        return max(2.0 * low, 1.0)
    return float(np.sqrt(low * high)) if low > 0.0 else 0.5 * high
