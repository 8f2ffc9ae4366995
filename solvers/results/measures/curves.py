"""Curves: signals of many runs as polynomials over pieces of time, and as arcs of these.

Integrators leave a polynomial for each step. A signal is known by its values at a few `NODES` of
each piece, with two nodes by a straight line. An arc is a piece, or a part of one. Where a question
needs it, arcs are divided where the signal turns, so that extremes are ends of arcs, and a level is
crossed once in an arc. Arcs whose bounds exclude an answer stay as they are.

The pieces of all runs are in one row, run after run. No run knows of the others, so that its
numbers do not depend on what it is measured with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.interpolation_nodes import NODES, OVERSHOOT

_FLAT = 8.0 * float(np.finfo(float).eps)  # the part of a value below which nothing turns
_TRIES = 80  # of the search for a zero
_CLOSE = 2.0 * float(np.finfo(float).eps)
_NEAR = 0.1  # beyond an end, where that is tried instead
_ROUNDING = 2.0 * float(np.finfo(float).eps)  # of a polynomial, as a part of its coefficients


@dataclass(frozen=True, eq=False)
class DenseOutput:
    """Signals of N runs, at the nodes of S pieces of time.

    Attributes
    ----------
    begin, end : ndarray, shape (S,)
        Times at which pieces begin and end, ascending in each run.
    first : ndarray of int, shape (N + 1,)
        The first piece of each run, and behind the last one of all; no run is without a piece.
    values : ndarray, shape (S, nodes, W)
        Components of the signals.
    """

    begin: FloatArray
    end: FloatArray
    first: NDArray[np.intp]
    values: FloatArray

    def __len__(self) -> int:
        return len(self.first) - 1

    def part(self, runs: slice) -> DenseOutput:
        """Return some of the runs."""
        start, stop, _ = runs.indices(len(self))
        first = self.first[start : max(start, stop) + 1]
        k = slice(first[0], first[-1])
        return DenseOutput(self.begin[k], self.end[k], first - first[0], self.values[k])

    def with_constant(self, numbers: FloatArray) -> DenseOutput:
        """Return the same with one component more, a number of each run."""
        counts, shape = np.diff(self.first), (*self.values.shape[:2], 1)
        column = np.broadcast_to(np.repeat(numbers, counts)[:, None, None], shape)
        return replace(self, values=np.concatenate([self.values, column], axis=2))

    def points(self, run: int) -> tuple[FloatArray, FloatArray]:
        """Return times and values at all nodes of a run; at jumps twice, before and after."""
        k = slice(self.first[run], self.first[run + 1])
        begin, end, y = self.begin[k, None], self.end[k, None], self.values[k]
        nodes = nodes_of(y.shape[1])
        t = np.where(nodes == 1.0, end, begin + (end - begin) * (0.5 * (nodes + 1.0)))
        t, y = t.ravel(), y.reshape(t.size, *y.shape[2:])
        same = (t[1:] == t[:-1]) & (y[1:] == y[:-1]).reshape(len(t) - 1, -1).all(axis=1)
        fresh = np.append(True, ~same)
        return t[fresh], y[fresh]

    @classmethod
    def of_samples(cls, t: FloatArray, y: FloatArray) -> DenseOutput:
        """Return N runs that are straight between samples y, shape (N, K, W), at times t."""
        count, size = y.shape[0], max(1, len(t) - 1)
        before, after = (y[:, :-1], y[:, 1:]) if len(t) > 1 else (y, y)
        values = np.stack([before, after], axis=2).reshape(count * size, 2, *y.shape[2:])
        first = np.arange(count + 1) * size
        begin, end = (np.tile(t[k] if len(t) > 1 else t, count) for k in (np.s_[:-1], np.s_[1:]))
        return cls(begin, end, first, values)

    @classmethod
    def unknown(cls, end: float, width: int, begin: float) -> DenseOutput:
        """Return a run of which nothing is known."""
        values = np.full((1, len(NODES), width), np.nan)
        return cls(np.array([begin]), np.array([end]), np.array([0, 1]), values)

    def as_one(self) -> DenseOutput:
        """Return all pieces as those of one run."""
        return replace(self, first=self.first[[0, -1]])

    @classmethod
    def joined(cls, runs: Iterable[DenseOutput], width: int) -> DenseOutput:
        """Return all runs of several, each of so many components."""
        several = list(runs)
        counts = [np.diff(each.first) for each in several]
        first = np.append(0, np.cumsum(np.concatenate([np.empty(0, np.intp), *counts])))
        empty = np.empty((0, len(NODES), width))
        return cls(
            np.concatenate([np.empty(0), *(each.begin for each in several)]),
            np.concatenate([np.empty(0), *(each.end for each in several)]),
            first.astype(np.intp),
            np.concatenate([*(each.values for each in several)]) if several else empty,
        )


@lru_cache
def nodes_of(count: int) -> FloatArray:
    """Return the nodes of pieces that have so many, from -1 to 1."""
    return np.array([-1.0, 1.0] if count == 2 else NODES)


@lru_cache
def _from_values(count: int) -> FloatArray:
    """Return the matrix that makes coefficients, of the powers of z, of values at nodes."""
    return np.asarray(np.linalg.inv(np.vander(nodes_of(count), increasing=True)).T)


@lru_cache
def _weights(count: int) -> FloatArray:
    """Return the weights of values at nodes in the integrals of y and of z y."""
    powers = np.arange(count)
    even = np.where(powers % 2 == 0, 2.0 / (powers + 1.0), 0.0)
    odd = np.where(powers % 2 == 1, 2.0 / (powers + 2.0), 0.0)
    return np.asarray(_from_values(count) @ np.column_stack([even, odd]))


@lru_cache
def _quadrature(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return points and weights of Gauss, and the matrix from values at nodes to the points."""
    points, weights = np.polynomial.legendre.leggauss(count)
    at_points = _from_values(count) @ np.vander(points, count, increasing=True).T
    return points, weights[:, np.newaxis], at_points


def _times(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return a product, of which each row is the same to the last bit, whatever the others are."""
    product: FloatArray = values[:, :1] * matrix[0]
    for k in range(1, len(matrix)):
        product += values[:, k : k + 1] * matrix[k]
    return product


def horner(c: FloatArray, z: FloatArray) -> FloatArray:
    """Return polynomials with coefficients of shape (P, d), at z of shape (P,) or (P, k)."""
    columns = c.T.reshape(c.shape[1], len(c), *[1] * (z.ndim - 1))
    y = columns[-1] + 0.0 * z
    for column in columns[-2::-1]:
        y = column + z * y
    return np.asarray(y)


def _slopes(c: FloatArray) -> FloatArray:
    """Return the coefficients of derivatives."""
    return c[:, 1:] * np.arange(1.0, c.shape[1])


def _integrals(c: FloatArray) -> FloatArray:
    """Return the coefficients of integrals from 0 on."""
    return np.hstack([np.zeros((len(c), 1)), c / np.arange(1.0, c.shape[1] + 1)])


def _coefficients(values: FloatArray) -> FloatArray:
    """Return the coefficients of powers of z; what is constant stays so to the last bit."""
    base = values[:, :1]
    c = _times(values - base, _from_values(values.shape[1]))
    c[:, 0] += base[:, 0]
    return c


@np.errstate(all="ignore")
def zero_between(c: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return where each polynomial is zero, which changes its sign once from low to high."""
    if c.shape[1] == 2:
        return np.clip(-c[:, 0] / c[:, 1], low, high)
    rising, slope = horner(c, high) > horner(c, low), _slopes(c)
    low, high, rows = low.copy(), high.copy(), np.arange(len(c))
    z, small = 0.5 * (low + high), _ROUNDING * np.sum(np.abs(c), axis=1)
    for k in range(_TRIES):
        at = z[rows]
        y = horner(c[rows], at)
        over = (y > 0.0) == rising[rows]
        high[rows[over]], low[rows[~over]] = at[over], at[~over]
        newton, middle = at - y / horner(slope[rows], at), 0.5 * (low[rows] + high[rows])
        near = np.clip(newton, low[rows], high[rows])  # every other time, as zeros may be at ends
        better = np.where(np.abs(newton - near) <= _NEAR * (k % 2), near, middle)
        z[rows] = better
        rows = rows[(np.abs(better - at) > _CLOSE) & (np.abs(y) > small[rows])]
        if not len(rows):
            break
    return z


@np.errstate(all="ignore")
def _zeros(c: FloatArray) -> FloatArray:
    """Return where polynomials change their sign between -1 and 1, ascending; NaN for no more."""
    if c.shape[1] == 2:
        z = -c[:, :1] / c[:, 1:]
        return np.where(np.abs(z) < 1.0, z, np.nan)
    if c.shape[1] == 3:
        root = np.sqrt(c[:, 1] ** 2 - 4.0 * c[:, 0] * c[:, 2])
        half = -0.5 * (c[:, 1] + np.copysign(root, c[:, 1]))
        z = np.sort(np.column_stack([half / c[:, 2], c[:, 0] / half]), axis=1)
        return np.where(np.abs(z) < 1.0, z, np.nan)
    turns = np.sort(_zeros(_slopes(c)), axis=1)
    ends = np.ones((len(c), 1))
    edges = np.hstack([-ends, np.where(np.isnan(turns), 1.0, turns), ends])
    above = horner(c, edges) > 0.0
    row, k = np.nonzero(above[:, 1:] != above[:, :-1])
    found = np.full((len(c), c.shape[1] - 1), np.nan)
    found[row, k] = zero_between(c[row], edges[row, k], edges[row, k + 1])
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """A signal of N runs as arcs.

    Attributes
    ----------
    dense : DenseOutput
        The pieces of which the arcs are parts.
    values : ndarray, shape (S, nodes)
        The signal at the nodes of the pieces.
    bottom, top : ndarray, shape (S,)
        What the signal exceeds nowhere in a piece.
    lift : ndarray, shape (N,)
        What is added to it in each run.
    piece : ndarray of int, shape (A,)
        The piece of each arc.
    z0, z1, t0, t1, y0, y1 : ndarray, shape (A,)
        Where and when arcs begin and end, and the signal there.
    bends : ndarray of bool, shape (A,)
        Whether the signal may turn inside of an arc.
    first : ndarray of int, shape (N + 1,)
        The first arc of each run, as in `DenseOutput`.
    """

    dense: DenseOutput
    values: FloatArray
    bottom: FloatArray
    top: FloatArray
    lift: FloatArray
    piece: NDArray[np.intp]
    z0: FloatArray
    z1: FloatArray
    t0: FloatArray
    t1: FloatArray
    y0: FloatArray
    y1: FloatArray
    bends: NDArray[np.bool_]
    first: NDArray[np.intp]

    @classmethod
    def of(cls, dense: DenseOutput, values: FloatArray) -> Curve:
        """Return a signal with one component, from its values of shape (S, nodes)."""
        count, nodes = values.shape
        ends = np.ones(count)
        bottom, top = values[:, 0], values[:, 0]
        for k in range(1, nodes):
            bottom, top = np.minimum(bottom, values[:, k]), np.maximum(top, values[:, k])
        beyond = OVERSHOOT * (top - bottom) if nodes > 2 else 0.0
        bottom, top = bottom - beyond, top + beyond
        return cls(
            dense,
            values,
            bottom,
            top,
            np.zeros(len(dense)),
            np.arange(count),
            -ends,
            ends,
            dense.begin,
            dense.end,
            values[:, 0],
            values[:, -1],
            (top > bottom) & (nodes > 2),
            dense.first,
        )

    # Divided where the signal turns ---------------------------------------------------------

    def everywhere(self) -> Curve:
        """Return the curve with all arcs divided that turn."""
        return self._divided(self.bends)

    def at_extremes(self) -> Curve:
        """Return the arcs that may hold an extreme of a run, divided."""
        least, most = self.over(np.minimum, self.low), self.over(np.maximum, self.high)
        least, most = least[self.run], most[self.run]
        bottom, top = self._bounds
        beyond = self.bends & ((bottom < least) | (top > most))
        kept = beyond | (self.low == least) | (self.high == most)
        return self._only(kept, self.first[:-1])

    def last_outside(self, low: FloatArray, high: FloatArray) -> Curve:
        """Return the arcs of which one may be the last outside of a band of each run, divided."""
        under, over = low[self.run], high[self.run]
        last = self.last_of((self.low < under) | (self.high > over))
        bottom, top = self._bounds
        beyond = self.bends & ((bottom < under) | (top > over))
        kept = beyond & (np.arange(len(self.piece)) > last[self.run])
        return self._only(kept, np.maximum(last, self.first[:-1]))

    def first_crossing(self, level: FloatArray, reached: NDArray[np.bool_]) -> Curve:
        """Return the arcs that may be the first to cross a level of each run, divided."""
        first = self.first_of(reached)
        bottom, top = self._bounds
        crosses = self.bends & (bottom <= level[self.run]) & (level[self.run] <= top)
        before = np.where(first < 0, len(self.piece), first)[self.run]
        kept = crosses & (np.arange(len(self.piece)) < before)
        return self._only(kept, np.where(first < 0, self.first[:-1], first))

    def _only(self, kept: NDArray[np.bool_], at_least: NDArray[np.intp]) -> Curve:
        """Return some of the arcs and one of each run, divided."""
        kept[at_least] = True
        found = self._take(kept)
        return replace(found, first=np.append(0, np.cumsum(kept))[self.first]).everywhere()

    def at_levels(self, *levels: FloatArray) -> Curve:
        """Return the curve with the arcs divided that may cross levels, each of shape (N,)."""
        if not np.any(self.bends):
            return self
        bottom, top = self._bounds
        crosses = np.zeros(len(self.piece), dtype=bool)
        for each in levels:
            level = each[self.run]
            crosses |= (bottom <= level) & (level <= top)
        return self._divided(self.bends & crosses)

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """What the signal exceeds nowhere in each arc."""
        lift = self.lift[self.run]
        return self.bottom[self.piece] + lift, self.top[self.piece] + lift

    def _divided(self, chosen: NDArray[np.bool_]) -> Curve:
        """Return the curve with some arcs divided where the signal turns."""
        arcs = np.flatnonzero(chosen)
        if not len(arcs):
            return self
        c = _coefficients(self.values[self.piece[arcs]])
        size = np.max(np.abs(self.values[self.piece[arcs]]), axis=1)
        slopes = np.abs(_slopes(c))
        more = np.sum(slopes[:, 1:], axis=1)
        # Not where a value is NaN.
        rows = np.flatnonzero((slopes[:, 0] <= more) & (more > _FLAT * size))
        turns = _zeros(_slopes(c[rows]))
        turning = arcs[rows]
        inside = (turns > self.z0[turning, np.newaxis]) & (turns < self.z1[turning, np.newaxis])
        turns = np.sort(np.where(inside, turns, np.nan), axis=1)
        counts = np.ones(len(self.piece), dtype=np.intp)
        counts[turning] += np.sum(inside, axis=1)
        last = np.cumsum(counts)
        found = self._take(np.repeat(np.arange(len(counts)), counts))
        found.bends[np.repeat(chosen, counts)] = False
        inner = np.ones(last[-1], dtype=bool)
        inner[last - 1] = False
        before = np.flatnonzero(inner)  # arcs that end where the signal turns
        z = found.z1[before] = found.z0[before + 1] = turns[np.isfinite(turns)]
        found = replace(found, first=np.append(0, last)[self.first])
        y = horner(found._polynomials(before), z)
        found.y1[before] = found.y0[before + 1] = y
        found.t1[before] = found.t0[before + 1] = found._time(before, z)
        return found

    def _take(self, arcs: NDArray[Any]) -> Curve:
        """Return some of the arcs, by number or by truth; where runs begin has to be told."""
        names = ("piece", "z0", "z1", "t0", "t1", "y0", "y1", "bends")
        return replace(self, **{name: getattr(self, name)[arcs] for name in names})

    def __len__(self) -> int:
        return len(self.first) - 1

    @cached_property
    def run(self) -> NDArray[np.intp]:
        """The run of each arc."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @cached_property
    def low(self) -> FloatArray:
        """The lower end of each arc."""
        return np.minimum(self.y0, self.y1)

    @cached_property
    def high(self) -> FloatArray:
        """The upper end of each arc."""
        return np.maximum(self.y0, self.y1)

    # Of each run, shape (N,) ----------------------------------------------------------------

    @property
    def start(self) -> FloatArray:
        """When runs begin."""
        return self.t0[self.first[:-1]]

    @property
    def stop(self) -> FloatArray:
        """When runs end."""
        return self.t1[self.first[1:] - 1]

    @property
    def final(self) -> FloatArray:
        """The last values."""
        return self.y1[self.first[1:] - 1]

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Whether all of a run is known."""
        extent = self.over(np.minimum, self.low) - self.over(np.maximum, self.high)
        return np.asarray(np.isfinite(extent))

    def over(self, function: np.ufunc, numbers: NDArray[Any]) -> NDArray[Any]:
        """Reduce numbers of arcs, such as their sum by ``np.add``, to one for each run."""
        if not len(self):
            return np.asarray(numbers[:0])
        return np.asarray(function.reduceat(numbers, self.first[:-1]))

    def first_of(self, arcs: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the first of some arcs in each run; -1 where there is none."""
        found = self.over(np.minimum, np.where(arcs, np.arange(len(arcs)), len(arcs)))
        return np.where(found < len(arcs), found, -1)

    def last_of(self, arcs: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the last of some arcs in each run; -1 where there is none."""
        return np.asarray(self.over(np.maximum, np.where(arcs, np.arange(len(arcs)), -1)))

    def value_before(self, when: FloatArray) -> FloatArray:
        """Return the value of each run at a time of its own, the one before where it jumps."""
        arcs = np.maximum(self.last_of(self.t0 < when[self.run]), self.first[:-1])
        before = self._value(arcs, self._place(arcs, when))
        return np.where(self.t0[arcs] < when, before, self.y0[arcs])  # a run may begin by a jump

    def extremes(self, begin: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and the greatest value of each run between two times of its own."""
        ends = self.value_before(begin), self.value_before(end)
        part = self.between(begin, end).at_extremes()
        least, greatest = part.over(np.minimum, part.low), part.over(np.maximum, part.high)
        return np.minimum(least, np.minimum(*ends)), np.maximum(greatest, np.maximum(*ends))

    def between(self, begin: FloatArray, end: FloatArray) -> Curve:
        """Return the part of each run between two times of its own.

        Where it jumps at these times, the part begins after and ends before the jump.
        """
        run = self.run
        inside = (self.t1 > begin[run]) & (self.t0 < end[run])
        at_least = np.maximum(self.last_of(self.t0 <= begin[run]), self.first[:-1])
        none = ~self.over(np.logical_or, inside)
        inside[at_least[none]] = True
        found = self._take(inside)
        first = np.append(0, np.cumsum(inside))[self.first]
        left, right = first[:-1], first[1:] - 1
        late, early = begin > found.t0[left], end < found.t1[right]
        where = found._place(left, begin), found._place(right, end)
        values = found._value(left, where[0]), found._value(right, where[1])
        for late_or_early, arcs, z, y, time, names in (
            (
                late,
                left,
                where[0],
                values[0],
                np.minimum(begin, found.t1[left]),
                ("z0", "y0", "t0"),
            ),
            (
                early,
                right,
                where[1],
                values[1],
                np.maximum(end, found.t0[right]),
                ("z1", "y1", "t1"),
            ),
        ):
            for name, numbers in zip(names, (z, y, time), strict=True):
                getattr(found, name)[arcs[late_or_early]] = numbers[late_or_early]
        return replace(found, first=first)

    def moved(self, by: FloatArray) -> Curve:
        """Return each run with a number added to the signal."""
        shift = by[self.run]
        return replace(self, lift=self.lift + by, y0=self.y0 + shift, y1=self.y1 + shift)

    # Of some of the arcs --------------------------------------------------------------------

    def _polynomials(self, arcs: NDArray[np.intp]) -> FloatArray:
        """Return the coefficients in some arcs."""
        c = _coefficients(self.values[self.piece[arcs]])
        c[:, 0] += self.lift[self.run[arcs]]
        return c

    def _time(self, arcs: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """Return the times of places in some arcs."""
        begin, end = (each[self.piece[arcs]] for each in (self.dense.begin, self.dense.end))
        return np.asarray(np.where(z == 1.0, end, begin + (end - begin) * (0.5 * (z + 1.0))))

    def _place(self, arcs: NDArray[np.intp], time: FloatArray) -> FloatArray:
        """Return the places of times in some arcs, not beyond their ends."""
        begin, end = (each[self.piece[arcs]] for each in (self.dense.begin, self.dense.end))
        length = end - begin
        z = 2.0 * (time - begin) / np.where(length > 0.0, length, 1.0) - 1.0
        z = np.clip(z, self.z0[arcs], self.z1[arcs])
        return np.where(time >= self.t1[arcs], self.z1[arcs], z)

    def _value(self, arcs: NDArray[np.intp], z: FloatArray) -> FloatArray:
        """Return the signal at places in some arcs."""
        inside = horner(self._polynomials(arcs), z)
        at_end = np.where(z == self.z1[arcs], self.y1[arcs], inside)
        return np.where(z == self.z0[arcs], self.y0[arcs], at_end)

    def crossing(self, arcs: NDArray[np.intp], level: FloatArray) -> FloatArray:
        """Return when each of some arcs crosses a level, which is between its ends.

        The curve has to be divided `at_levels`.
        """
        when = self.t1[arcs]
        rows = np.flatnonzero((self.low[arcs] <= level) & (level <= self.high[arcs]))
        rows = rows[level[rows] != self.y1[arcs[rows]]]
        some = arcs[rows]
        c = self._polynomials(some)
        c[:, 0] -= level[rows]
        when[rows] = self._time(some, zero_between(c, self.z0[some], self.z1[some]))
        return when

    def integral(self, since: FloatArray | None = None) -> FloatArray:
        """Return the integral of each arc, maybe times the time since something."""
        found = np.zeros(len(self.piece))
        whole = (self.z0 == -1.0) & (self.z1 == 1.0)
        some, parts = np.flatnonzero(whole), np.flatnonzero(~whole)
        piece, weights = self.piece[some], _weights(self.values.shape[1])
        sums = _times(self.values[piece], weights)
        sums[:, 0] += 2.0 * self.lift[self.run[some]]
        begin, end = self.dense.begin[piece], self.dense.end[piece]
        half = 0.5 * (end - begin)
        if since is None:
            found[some] = half * sums[:, 0]
        else:
            late = 0.5 * (begin + end) - since[some]
            found[some] = half * (late * sums[:, 0] + half * sums[:, 1])
        late_parts = None if since is None else since[parts]
        found[parts] = self._integral(parts, self.z1[parts], late_parts)
        return found

    def _integral(
        self, arcs: NDArray[np.intp], z: FloatArray, since: FloatArray | None = None
    ) -> FloatArray:
        """Return integrals of arcs up to a place, maybe times the time since something."""
        c, begin, end = (
            self._polynomials(arcs),
            *(each[self.piece[arcs]] for each in (self.dense.begin, self.dense.end)),
        )
        half, ends = 0.5 * (end - begin), (self.z0[arcs], z)
        low, high = (horner(_integrals(c), each) for each in ends)
        if since is None:
            return np.asarray(half * (high - low))
        turned = np.hstack([np.zeros((len(c), 1)), c])
        first, second = (horner(_integrals(turned), each) for each in ends)
        late = 0.5 * (begin + end) - since
        return np.asarray(half * (late * (high - low) + half * (second - first)))

    def magnitude_integral(self, since: FloatArray | None = None) -> FloatArray:
        """Return the integral of the magnitude of the signal over each run.

        With a time for each run, that of the magnitude times the time since then.
        """
        return self.at_levels(np.zeros(len(self)))._magnitude_integral(since)

    def _magnitude_integral(self, since: FloatArray | None) -> FloatArray:
        """Return the same where arcs cross zero once at most."""
        late = None if since is None else since[self.run]
        whole = np.abs(self.integral(late))
        arcs = np.flatnonzero(self.y0 * self.y1 < 0.0)
        if len(arcs):
            late = None if late is None else late[arcs]
            z = zero_between(self._polynomials(arcs), self.z0[arcs], self.z1[arcs])
            before, both = self._integral(arcs, z, late), self._integral(arcs, self.z1[arcs], late)
            whole[arcs] = np.abs(before) + np.abs(both - before)
        return self.over(np.add, whole)

    def square_integral(self) -> FloatArray:
        """Return the integral of the square of the signal over each run."""
        points, weights, at_points = _quadrature(self.values.shape[1])
        half, found = 0.5 * (self.z1 - self.z0), np.empty(len(self.piece))
        whole = half == 1.0
        some, parts = np.flatnonzero(whole), np.flatnonzero(~whole)
        y = self.values[self.piece[some]] + self.lift[self.run[some], np.newaxis]
        found[some] = _times(_times(y, at_points) ** 2, weights)[:, 0]
        z = 0.5 * (self.z0 + self.z1)[parts, np.newaxis] + half[parts, np.newaxis] * points
        found[parts] = _times(horner(self._polynomials(parts), z) ** 2, weights)[:, 0]
        length = (self.dense.end - self.dense.begin)[self.piece]
        return self.over(np.add, found * half * 0.5 * length)
