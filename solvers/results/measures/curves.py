"""Curves: signals of many runs as polynomials over pieces of time, and as arcs of these.

Integrators leave a polynomial for each step. A signal is known by its values at a few `NODES` of
each piece, with two nodes by a straight line. An arc is a piece, or a part of one. Where a question
needs it, arcs are divided where the signal turns, so that extremes are ends of arcs, and a level is
crossed once in an arc. Arcs whose bounds exclude an answer stay as they are.

The pieces of all runs are in one row, run after run. No run knows of the others, so that its
numbers do not depend on what it is measured with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.polynomials import (
    NODES,
    OVERSHOOT,
    coefficients_of,
    horner,
    integral_weights,
    integrals_of,
    nodes_of,
    quadrature,
    rows_of,
    slopes_of,
    times_matrix,
    zero_between,
    zeros_of,
)

_FLAT = 8.0 * float(np.finfo(float).eps)  # the part of a value below which nothing turns


@dataclass(frozen=True, eq=False)
class DenseOutput:
    """Signals of N runs, at the nodes of S pieces of time."""

    # begin, end: times at which pieces begin and end, ascending in each run, shape (S,).
    begin: FloatArray
    end: FloatArray
    # The first piece of each run, and behind the last one of all; no run is without a piece,
    # shape (N + 1,).
    first: NDArray[np.intp]
    values: FloatArray  # components of the signals, shape (S, nodes, W)

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


@dataclass(frozen=True, eq=False)
class Curve:
    """A signal of N runs as arcs."""

    dense: DenseOutput  # the pieces of which the arcs are parts
    values: FloatArray  # the signal at the nodes of the pieces, shape (S, nodes)
    lift: FloatArray  # what is added to it in each run, shape (N,)
    piece: NDArray[np.intp]  # the piece of each arc, shape (A,)
    # z0, z1, t0, t1, y0, y1: where and when arcs begin and end, and the signal there, shape (A,).
    z0: FloatArray
    z1: FloatArray
    t0: FloatArray
    t1: FloatArray
    y0: FloatArray
    y1: FloatArray
    # least, greatest: the least and the greatest value at the nodes of the piece, shape (A,).
    least: FloatArray
    greatest: FloatArray
    bends: NDArray[np.bool_]  # whether the signal may turn inside of an arc, shape (A,)
    first: NDArray[np.intp]  # the first arc of each run, as in `DenseOutput`, shape (N + 1,)

    @classmethod
    def of(cls, dense: DenseOutput, values: FloatArray) -> Curve:
        """Return a signal with one component, from its values of shape (S, nodes)."""
        count, nodes = values.shape
        ends, values = np.ones(count), np.asfortranarray(values)
        least, greatest = values[:, 0], values[:, 0]
        for k in range(1, nodes):
            least, greatest = np.minimum(least, values[:, k]), np.maximum(greatest, values[:, k])
        return cls(
            dense,
            values,
            np.zeros(len(dense)),
            np.arange(count),
            -ends,
            ends,
            dense.begin,
            dense.end,
            values[:, 0],
            values[:, -1],
            least,
            greatest,
            (greatest > least) & (nodes > 2),
            dense.first,
        )

    # Divided where the signal turns ---------------------------------------------------------

    def everywhere(self) -> Curve:
        """Return the curve with all arcs divided that turn."""
        return self._divided(self.bends)

    def at_extremes(self) -> Curve:
        """Return the arcs that may hold an extreme of a run, divided."""
        whole = self.bends & (self.z0 == -1.0) & (self.z1 == 1.0)
        low, high = (
            np.where(whole, inside, ends)
            for inside, ends in ((self.least, self.low), (self.greatest, self.high))
        )
        least, most = self.over(np.minimum, low), self.over(np.maximum, high)
        least, most = least[self.run], most[self.run]
        bottom, top = self._bounds
        beyond = self.bends & ((bottom < least) | (top > most))
        # All arcs of a run of which a part is not known, so that it has no extremes.
        return self._only(beyond | ~(low > least) | ~(high < most), self.first[:-1])

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
        found = self._take(np.flatnonzero(kept))
        return replace(found, first=np.append(0, np.cumsum(kept))[self.first]).everywhere()

    def at_level(self, level: FloatArray) -> Curve:
        """Return the curve with the arcs divided that may cross a level of each run."""
        bottom, top = self._bounds
        at = level[self.run]
        return self._divided(self.bends & (bottom <= at) & (at <= top))

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """An upper bound of the signal in each arc."""
        beyond = OVERSHOOT * (self.greatest - self.least)
        return self.least - beyond, np.add(self.greatest, beyond, out=beyond)

    def _divided(self, chosen: NDArray[np.bool_]) -> Curve:
        """Return the curve with some arcs divided where the signal turns."""
        arcs = np.flatnonzero(chosen)
        if not len(arcs):
            return self
        values = rows_of(self.values, self.piece[arcs])
        c, size = coefficients_of(values), np.max(np.abs(values), axis=1)
        slopes = np.abs(slopes_of(c))
        more = np.sum(slopes[:, 1:], axis=1)
        # Not where a value is NaN.
        rows = np.flatnonzero((slopes[:, 0] <= more) & (more > _FLAT * size))
        turns = zeros_of(slopes_of(rows_of(c, rows)))
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

    def _take(self, arcs: NDArray[np.intp]) -> Curve:
        """Return some of the arcs by number; where runs begin has to be told."""
        names = ("piece", "z0", "z1", "t0", "t1", "y0", "y1", "least", "greatest", "bends")
        taken: dict[str, Any] = {name: np.take(getattr(self, name), arcs) for name in names}
        return replace(self, **taken)

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

    def _last_before(self, when: FloatArray, or_at: bool = False) -> NDArray[np.intp]:
        """Return the last arc of each run that begins before a time, or at it; -1 without one."""
        begins = np.less_equal if or_at else np.less
        found = self._search(lambda arcs: begins(self.t0[arcs], when)) - 1
        return np.where(found < self.first[:-1], -1, found)

    def _search(self, early: Callable[[NDArray[np.intp]], NDArray[np.bool_]]) -> NDArray[np.intp]:
        """Return the first arc of each run that is not early, where all before it are."""
        low, high = self.first[:-1].copy(), self.first[1:].copy()
        for _ in range(int(np.max(high - low, initial=0)).bit_length()):
            middle = (low + high) // 2
            going = low < high
            after = early(np.minimum(middle, len(self.piece) - 1)) & going
            low, high = np.where(after, middle + 1, low), np.where(after | ~going, high, middle)
        return low

    def value_before(self, when: FloatArray) -> FloatArray:
        """Return the value of each run at a time of its own, the one before where it jumps."""
        arcs = np.maximum(self._last_before(when), self.first[:-1])
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
        low = self._search(lambda arcs: ~(self.t1[arcs] > begin))  # or that behind the run
        high = self._last_before(end) + 1
        none = low >= high
        if np.any(none):
            low[none] = np.maximum(self._last_before(begin, or_at=True), self.first[:-1])[none]
            high[none] = low[none] + 1
        first = np.append(0, np.cumsum(high - low))
        found = self
        if first[-1] < len(self.piece):
            arcs = np.arange(first[-1]) + np.repeat(low - first[:-1], high - low)
            found = replace(self._take(arcs), first=first)
        left, right = first[:-1], first[1:] - 1
        cut = begin > found.t0[left], end < found.t1[right]
        left, late, right, early = left[cut[0]], begin[cut[0]], right[cut[1]], end[cut[1]]
        changed: dict[str, Any] = {}
        for arcs, when, time, names in (
            (left, late, np.minimum(late, found.t1[left]), ("z0", "y0", "t0")),
            (right, early, np.maximum(early, found.t0[right]), ("z1", "y1", "t1")),
        ):
            if len(arcs):
                z = found._place(arcs, when)
                for name, numbers in zip(names, (z, found._value(arcs, z), time), strict=True):
                    changed[name] = getattr(found, name).copy()
                    changed[name][arcs] = numbers
        return replace(found, **changed) if changed else found

    def moved(self, by: FloatArray) -> Curve:
        """Return each run with a number added to the signal."""
        shift = by[self.run]
        names = ("y0", "y1", "least", "greatest")
        moved: dict[str, Any] = {name: getattr(self, name) + shift for name in names}
        return replace(self, lift=self.lift + by, **moved)

    # Of some of the arcs --------------------------------------------------------------------

    def _polynomials(self, arcs: NDArray[np.intp]) -> FloatArray:
        """Return the coefficients in some arcs."""
        c = coefficients_of(rows_of(self.values, self.piece[arcs]))
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

        The curve has to be divided `at_level`, or the arcs are those of `first_crossing`.
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
        weights = integral_weights(self.values.shape[1])[:, : 1 if since is None else 2]
        sums = rows_of(times_matrix(self.values, weights), self.piece)
        sums[:, 0] += 2.0 * self.lift[self.run]
        begin, end = self.dense.begin[self.piece], self.dense.end[self.piece]
        half = 0.5 * (end - begin)
        found = sums[:, 0]
        if since is not None:
            found = (0.5 * (begin + end) - since) * found + half * sums[:, 1]
        found = half * found
        parts = np.flatnonzero((self.z0 != -1.0) | (self.z1 != 1.0))
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
        low, high = (horner(integrals_of(c), each) for each in ends)
        if since is None:
            return np.asarray(half * (high - low))
        turned = np.hstack([np.zeros((len(c), 1)), c])
        first, second = (horner(integrals_of(turned), each) for each in ends)
        late = 0.5 * (begin + end) - since
        return np.asarray(half * (late * (high - low) + half * (second - first)))

    def magnitude_integral(self, since: FloatArray | None = None) -> FloatArray:
        """Return the integral of the magnitude of the signal over each run.

        With a time for each run, that of the magnitude times the time since then.
        """
        return self.at_level(np.zeros(len(self)))._magnitude_integral(since)

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
        points, weights, at_points = quadrature(self.values.shape[1])
        half, found = 0.5 * (self.z1 - self.z0), np.empty(len(self.piece))
        whole = half == 1.0
        some, parts = np.flatnonzero(whole), np.flatnonzero(~whole)
        y = rows_of(self.values, self.piece[some]) + self.lift[self.run[some], np.newaxis]
        found[some] = times_matrix(times_matrix(y, at_points) ** 2, weights)[:, 0]
        z = 0.5 * (self.z0 + self.z1)[parts, np.newaxis] + half[parts, np.newaxis] * points
        found[parts] = times_matrix(horner(self._polynomials(parts), z) ** 2, weights)[:, 0]
        length = (self.dense.end - self.dense.begin)[self.piece]
        return self.over(np.add, found * half * 0.5 * length)
