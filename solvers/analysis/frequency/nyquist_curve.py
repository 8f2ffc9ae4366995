"""The curve L(jω) of one input and output: where it crosses circles and the real axis, its peak.

Where |L| has a given value, or L is real, s = jω solves a generalized eigenvalue problem: that of L
together with its adjoint L(-s), or L(1/z) of a sampled model. Where rounding allows it, that is one
for s², of half the size. The crossing itself is the root of the function of ω, to the last digits.
"""

from __future__ import annotations

from copy import copy
from typing import TypeAlias

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

_SEEN = 1e-11  # relative: what is no rounding of modes
_ROUNDING = 8.0 * float(np.finfo(float).eps)
_FAITHFUL = 1e-3  # relative error up to which a value says something
_POLE = 1e9  # what a loop gain does not reach but at a pole
_MOST_STEPS, _CLOSE = 200, 1e-15  # of roots, in logarithms of frequencies
_NEGLIGIBLE = 1e-6  # of the distance of poles from the axis: what rounding of squares may move
_BESIDE_POLES = 1.37  # times the mean square of the poles: no square of a pole
_BESIDE = 0.1  # of the magnitude: how far from the axis rounding moves what is on it
_AROUND = 0.8, 1.0 - 1e-7, 1.0 + 1e-7, 1.25  # times a place: where signs are compared

#: Frequencies and the values of L there.
Crossings: TypeAlias = tuple[FloatArray, Curve]


class NyquistCurve(FrequencySearch):
    """The frequency response of a model with one input and one output; its size is searched."""

    @cached_property
    def _entries(self) -> list[FloatArray]:
        """Sizes of the entries of A, B and C, as far as rounding has left them to themselves."""
        return [
            np.full(each.shape, np.linalg.norm(each)) if self.rotated else np.abs(each)
            for each in (self.A, self.B, self.C)
        ]

    def channel(self, k: int) -> NyquistCurve:
        """Return the curve from one of several inputs to the output with the same number."""
        other = copy(self)
        other.B, other.C, other.D = self.B[:, [k]], self.C[[k]], self.D[[k]][:, [k]]
        return other

    @cached_property
    def shows_all(self) -> bool:
        """Whether the input moves each mode, and the output shows it: rounding decides nothing."""
        if not (self._is_diagonal and np.any(self.B) and np.any(self.C)):
            return False
        poles: Curve = np.diagonal(self._triangle)
        apart = np.abs(poles[:, np.newaxis] - poles) + np.diag(np.abs(poles) + 1.0)
        moved = np.abs(self._back @ self.B)[:, 0] / np.linalg.norm(self._back, axis=1)
        shown = np.abs(self.C @ self._turn)[0]  # by vectors of length 1
        return bool(
            apart.min() > _SEEN * np.abs(poles).max()
            and moved.min() > _SEEN * np.linalg.norm(self.B)
            and shown.min() > _SEEN * np.linalg.norm(self.C)
        )

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
        if self._is_diagonal:
            away = self._points(frequency) - np.diagonal(self._triangle)[:, np.newaxis]
            with np.errstate(all="ignore"):
                sizes = np.abs(self._residues @ (1.0 / away) + self.D[0, 0])
            return np.where(np.isnan(sizes), np.inf, sizes)
        return np.abs(self._values(frequency))

    def _values(self, frequency: FloatArray) -> Curve:
        """Return L, inf at poles."""
        _, poles, x = self._states(frequency)
        return np.where(poles, np.inf, (self.C @ x)[0] + self.D[0, 0])

    @cached_property
    def _residues(self) -> Curve:
        """The residues of L at the poles, in a basis of eigenvectors."""
        return np.asarray((self.C @ self._turn)[0] * (self._back @ self.B)[:, 0])

    def end_sizes(self) -> list[tuple[float, float]]:
        """Return |L| at both ends."""
        return [(abs(value), frequency) for frequency, value in self.ends()]

    def ends(self) -> list[tuple[float, float]]:
        """Return zero and the highest frequency, each with L, which is real there."""
        lowest = (0.0, float(self._values(np.zeros(1)).real[0]))
        if not len(self.A):
            return [lowest]
        if self.period is None:
            return [lowest, (np.inf, float(self.D[0, 0]))]
        return [lowest, (self.end, float(self._values(np.array([self.end])).real[0]))]

    def is_faithful(self, frequency: float) -> bool:
        """Return whether L is neither lost in rounding nor at a pole."""
        if np.isinf(frequency):
            return True
        return bool(_are_faithful(*self.at(np.array([frequency])))[0])

    def crossings(self, S: NyquistCurve | None) -> tuple[Crossings, Crossings]:
        """Return where L goes through the real axis, between the ends, and where |L| through 1.

        With S = 1 / (1 + L) of a stable loop, that is where S is real, and its real part is 1/2.
        """
        if S is None or S._square is None:
            places = np.concatenate([self._where_real(), self.where_level(1.0)])
        else:
            real, unit = S._where_squares(S.B, 0.0), S._where_squares(S.A @ S.B, S.D[0, 0] - 0.5)
            places = np.concatenate([real, unit])
        around = np.concatenate([places * share for share in _AROUND])
        points = self.between(np.union1d(around[around < self.end], self.natural))
        return self._roots(points, self.at(points))

    def _roots(
        self, points: FloatArray, seen: tuple[Curve, FloatArray]
    ) -> tuple[Crossings, Crossings]:
        """Return where sine and excess change their sign between points, if L is continuous."""
        sides = []
        for number, function in enumerate((_sine, _excess)):
            values = function(*seen)
            w, values = np.log(points[values != 0.0]), values[values != 0.0]
            k = np.flatnonzero(values[1:] * values[:-1] < 0.0)
            sides.append((w[k], w[k + 1], values[k], values[k + 1], np.full(len(k), number)))
        a, b, f_a, f_b, which = (np.concatenate(each) for each in zip(*sides, strict=True))
        jumps = 0.5 * np.minimum(np.abs(f_a), np.abs(f_b))
        there = seen[0][:0], seen[1][:0]
        for _ in range(_MOST_STEPS if len(which) else 0):  # regula falsi with the steps of Illinois
            x = b - f_b * ((b - a) / (f_b - f_a))
            there = self.at(np.exp(x))
            f_x = np.where(which == 0, _sine(*there), _excess(*there))
            step, passed = np.abs(x - b).max(), f_x * f_b < 0.0
            a, f_a = np.where(passed, b, a), np.where(passed, f_b, 0.5 * f_a)
            b, f_b = x, f_x
            if step <= _CLOSE:
                break
        is_root = _are_faithful(*there) & (np.abs(f_b) < jumps)
        found = (is_root & (which == number) for number in (0, 1))
        real, unit = ((np.exp(b[each]), there[0][each]) for each in found)
        return real, unit

    def where_level(self, level: float) -> FloatArray:
        """Return where |L| may be at a level: L~ L = level² with the adjoint L~."""
        if self._square is not None:
            return self._where_squares(self._gramian_input, self.D[0, 0] ** 2 - level**2)
        B, C, D = self.B, self.C / level, self.D / level
        return self._pencil(np.hstack([C.T @ C, C.T @ D]), [D.T @ C, B.T, D.T @ D - 1.0])

    def _where_real(self) -> FloatArray:
        """Return where L may be real: L = L~ with the adjoint L~."""
        n = len(self.A)
        driven = np.hstack([np.zeros((n, n)), self.C.T])
        return self._pencil(driven, [self.C, -self.B.T, np.zeros((1, 1))])

    # Functions of s² = -ω² have half as many poles ------------------------------------------------

    @cached_property
    def _square(self) -> FloatArray | None:
        """A² of a stable continuous model, if its rounding moves none of its poles."""
        poles: Curve = np.diagonal(self._triangle)
        if self.period is not None or not self._is_diagonal or poles.real.max() >= 0.0:
            return None
        square: FloatArray = self.A @ self.A
        return square if self._is_negligible(square) else None

    def _is_negligible(self, square: FloatArray) -> bool:
        """Return whether rounding in a matrix of the size of A² is small beside all poles."""
        poles: Curve = np.diagonal(self._triangle)
        away = float(np.min(np.abs(poles) * np.abs(poles.real)))
        return bool(_ROUNDING * np.linalg.norm(square) < _NEGLIGIBLE * away)

    @property
    def _gramian_input(self) -> FloatArray:
        """The input b of |L|² = D² + C (s² - A²)⁻¹ b: of partial fractions b = 2 A L(-A) B."""
        poles: Curve = np.diagonal(self._triangle)
        driven = (self._back @ self.B)[:, 0]
        mirrored = self.D[0, 0] - np.sum(self._residues / (poles[:, np.newaxis] + poles), axis=1)
        return np.asarray((self._turn @ (2.0 * poles * mirrored * driven)).real[:, np.newaxis])

    def _where_squares(self, driven: FloatArray, direct: float) -> FloatArray:
        """Return where C (s² - A²)⁻¹ driven + direct may be zero for s = jω."""
        square = self._square
        assert square is not None
        if direct != 0.0:
            whole = square - driven @ self.C / direct
            if self._is_negligible(whole):
                return self._on_axis(np.linalg.eigvals(whole).astype(complex))
        size = np.linalg.norm(square)
        b, c = (each / (np.linalg.norm(each) or 1.0) for each in (driven, self.C))
        straight = direct * size / (np.linalg.norm(driven) * np.linalg.norm(self.C) or 1.0)
        # Finite eigenvalues z of a pencil are those 1 / (z - shift) of its inverse beside a shift,
        # which is positive: off the axis of frequencies, where s² is negative.
        poles: Curve = np.diagonal(self._triangle)
        shift = _BESIDE_POLES * np.exp(2.0 * np.mean(np.log(np.abs(poles)))) / size
        moved = np.block([[square / size, b], [c, np.full((1, 1), straight)]])
        moved[range(len(square)), range(len(square))] -= shift
        try:
            inverse = np.linalg.inv(moved)[:-1, :-1]
        except np.linalg.LinAlgError:  # no output at all
            return np.zeros(0)
        with np.errstate(all="ignore"):
            return self._on_axis(size * (shift + 1.0 / np.linalg.eigvals(inverse).astype(complex)))

    def _on_axis(self, squares: Curve) -> FloatArray:
        """Return the frequencies of the squares s² that may belong to s = jω."""
        s = np.sqrt(squares[np.isfinite(squares)])
        return self._frequencies(s[np.abs(s.real) <= _BESIDE * np.abs(s.imag)])


def _excess(values: Curve, noise: FloatArray) -> FloatArray:
    """Return the logarithm of |L|, zero where it is rounding."""
    sizes = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(sizes - 1.0) > noise, np.log(sizes), 0.0)


def _sine(values: Curve, noise: FloatArray) -> FloatArray:
    """Return the sine of the phase of L, zero where it is rounding."""
    meant = np.abs(values.imag) > noise
    return np.where(meant, values.imag / np.where(meant, np.abs(values), 1.0), 0.0)


def _are_faithful(values: Curve, noise: FloatArray) -> npt.NDArray[np.bool_]:
    sizes = np.abs(values)
    return np.asarray((noise < _FAITHFUL * sizes) & (sizes < _POLE))


def _forward_substitution(T: Curve, away: Curve, right: Curve) -> Curve:
    """Return the solution y of yᵀ (s - T) = right for an upper triangle T."""
    if away.shape[1] <= FEW:
        columns = [solved_triangle(T, each, right, transposed=True) for each in away.T]
        return np.stack(columns, axis=1) if columns else np.zeros(away.shape, dtype=complex)
    y = np.zeros(away.shape, dtype=complex)
    for k in range(len(T)):
        y[k] = (right[k] + T[:k, k] @ y[:k]) / away[k]
    return y
