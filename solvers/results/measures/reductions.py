"""Numbers of sampled signals, one for each of many runs: extremes, integrals, crossings.

Between the samples, records are straight lines, and all integrals are exact for those; where a time
is repeated, they jump. Every function takes the times, shape (K,), and the values, shape (N, K),
and returns an array of shape (N,). The integrals of errors also take times of shape (N, K), and may
have pieces of no length. No row knows of the others, so that the numbers of a run do not
depend on what it is measured with.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values.values import FloatArray


def cut(
    t: FloatArray, y: FloatArray, start: float | None, end: float | None
) -> tuple[FloatArray, FloatArray]:
    """Return the part of a record between two times, which lie in it; None leaves an end as it is.

    Where the record jumps at these times, the part begins after and ends before the jump.
    """
    first, last = 0, len(t) - 1
    if start is not None:
        first = int(np.searchsorted(t, start, side="right")) - 1
        t, y = _with_point(t, y, start, first)
        first += int(t[first] < start)
        last = len(t) - 1
    if end is not None:
        last = int(np.searchsorted(t, end, side="left"))
        t, y = _with_point(t, y, end, last - 1)
    last = max(first, last)
    return t[first : last + 1], np.ascontiguousarray(y[:, first : last + 1])


def _with_point(
    t: FloatArray, y: FloatArray, when: float, before: int
) -> tuple[FloatArray, FloatArray]:
    """Return a record with a point at a time after the one with an index, unless there is one."""
    after = before + 1
    if when in (t[max(before, 0)], t[min(after, len(t) - 1)]):
        return t, y
    value = y[:, before] + (when - t[before]) / (t[after] - t[before]) * (
        y[:, after] - y[:, before]
    )
    return np.insert(t, after, when), np.insert(y, after, value, axis=1)


def value_at(t: FloatArray, y: FloatArray, when: float) -> FloatArray:
    """Return the values at a time, those after where the record jumps."""
    return cut(t, y, when, None)[1][:, 0]


def values_at(t: FloatArray, y: FloatArray, when: FloatArray) -> FloatArray:
    """Return the value of each row at a time of its own, the one before where the row jumps."""
    index = np.clip(np.searchsorted(t, when), 0, len(t) - 1)
    before, rows = np.maximum(index - 1, 0), np.arange(len(y))
    there = (t[index] <= when) | (index == 0)
    fraction = np.where(there, 1.0, (when - t[before]) / (t[index] - t[before]))
    first, last = y[rows, before], y[rows, index]
    return np.where(there, last, first + fraction * (last - first))


def final(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the last values."""
    return y[:, -1]


def maximum(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the largest values."""
    return np.asarray(np.max(y, axis=1))


def minimum(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the smallest values."""
    return np.asarray(np.min(y, axis=1))


def peak(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the largest magnitudes."""
    return np.asarray(np.max(np.abs(y), axis=1))


def total_variation(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the sums of all ways up and down."""
    return _total(np.abs(np.diff(y, axis=1)))


def integral(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the integrals of y."""
    return _total(np.diff(t) * (y[:, :-1] + y[:, 1:]) / 2.0)


def mean(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the integrals of y, divided by the time."""
    return np.asarray(integral(t, y) / (t[-1] - t[0]))


def rms(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the roots of the means of y²."""
    return np.asarray(np.sqrt(ise(t, y) / (t[-1] - t[0])))


def ise(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the integrals of y²."""
    a, b = y[:, :-1], y[:, 1:]
    return _total(np.diff(t) * (a * a + a * b + b * b) / 3.0)


def iae(t: FloatArray, y: FloatArray) -> FloatArray:
    """Return the integrals of the magnitude of y."""
    h, before, after = _lengths(t)
    whole = _total(np.abs(y) * (before + after) / 2.0)
    row, piece, a, b = _changes(y)
    return _corrected(whole, row, -h[row % len(h), piece] * a * b / (a + b))


def itae(t: FloatArray, y: FloatArray, since: FloatArray | None = None) -> FloatArray:
    """Return the integrals of the magnitude of y, times the time since the first, or a given one.

    A straight piece of ``|y|`` from a to b over a time h is made of two triangles: one of the
    height a, one of the height b, of which the distances of their centers count. Both are as long
    as the piece. Where y changes its sign, one ends and the other begins there.
    """
    h, before, after = _lengths(t)
    late = np.atleast_2d(t) - (t[:1] if since is None else since)[:, np.newaxis]
    weights = after * (late + after / 3.0) + before * (late - before / 3.0)
    whole = _total(np.abs(y) * weights / 2.0)
    row, piece, a, b = _changes(y)
    start, h = late[row % len(late), piece], h[row % len(h), piece]
    share = a / (a + b)
    straight = a * (start + h / 3.0) + b * (start + 2.0 * h / 3.0)
    bent = a * share * (start + h * share / 3.0)
    bent = bent + b * (1.0 - share) * (start + h * (2.0 + share) / 3.0)
    return _corrected(whole, row, h * (bent - straight) / 2.0)


def _lengths(t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how long pieces are, and those before and after each point; a row for all, or each."""
    h = np.diff(np.atleast_2d(t))
    none = np.zeros((len(h), 1))
    return h, np.hstack([none, h]), np.hstack([h, none])


def _changes(y: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray, FloatArray]:
    """Return rows and pieces in which y changes its sign, and the magnitudes at their ends."""
    changes = np.ravel(y[:, :-1] * y[:, 1:] < 0.0)
    row, piece = np.divmod(np.flatnonzero(changes), max(1, y.shape[1] - 1))
    return row, piece, np.abs(y[row, piece]), np.abs(y[row, piece + 1])


def _corrected(whole: FloatArray, row: NDArray[np.intp], parts: FloatArray) -> FloatArray:
    """Add to each row what belongs to it."""
    return np.asarray(whole + np.bincount(row, parts, len(whole)))


def first_crossing(t: FloatArray, y: FloatArray, level: float, direction: str) -> FloatArray:
    """Return when the record first crosses a level, NaN where it never does."""
    below, reached = y[:, :-1] < level, y[:, 1:] >= level
    above, fallen = y[:, :-1] > level, y[:, 1:] <= level
    rising, falling = below & reached, above & fallen
    crossed = {"rising": rising, "falling": falling, "either": rising | falling}[direction]
    if not crossed.shape[1]:
        return np.full(len(y), np.nan)
    index, rows = np.argmax(crossed, axis=1), np.arange(len(y))
    a, b = y[rows, index], y[rows, index + 1]
    some = crossed[rows, index]
    share = np.where(some, level - a, np.nan) / np.where(some, b - a, 1.0)
    return np.asarray(t[index] + share * (t[index + 1] - t[index]))


def _total(pieces: FloatArray) -> FloatArray:
    """Return the sums of rows, each in the same order whatever the others are."""
    return np.asarray(np.sum(np.ascontiguousarray(pieces), axis=1))
