"""Numbers of signals, one for each of many runs: extremes, integrals, crossings.

Every function takes a curve of N runs and returns an array of shape (N,). Extremes are looked for
inside of the steps, and integrals are those of the polynomials, to rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.curves import Curve


def cut(curve: Curve, start: float | None, end: float | None) -> Curve:
    """Return the part of a curve between two times; None leaves an end as it is."""
    if start is None and end is None:
        return curve
    begin = curve.start if start is None else np.full(len(curve), start)
    return curve.between(begin, curve.stop if end is None else np.full(len(curve), end))


def value_at(curve: Curve, when: float) -> FloatArray:
    """Return the values at a time, those after where the curve jumps."""
    after = cut(curve, when, None)
    return after.y0[after.first[:-1]]


def final(curve: Curve) -> FloatArray:
    """Return the last values."""
    return curve.final


def maximum(curve: Curve) -> FloatArray:
    """Return the largest values."""
    return _greatest(curve.at_extremes())


def minimum(curve: Curve) -> FloatArray:
    """Return the smallest values."""
    return _least(curve.at_extremes())


def peak(curve: Curve) -> FloatArray:
    """Return the largest magnitudes."""
    divided = curve.at_extremes()
    return np.maximum(_greatest(divided), -_least(divided))


def _greatest(curve: Curve) -> FloatArray:
    return curve.over(np.maximum, curve.high)


def _least(curve: Curve) -> FloatArray:
    return curve.over(np.minimum, curve.low)


def total_variation(curve: Curve) -> FloatArray:
    """Return the sums of all ways up and down, jumps included."""
    curve = curve.everywhere()
    jumps = np.abs(curve.y0 - np.append(curve.y0[:1], curve.y1[:-1]))
    jumps[curve.first[:-1]] = 0.0
    return curve.over(np.add, np.abs(curve.y1 - curve.y0) + jumps)


def integral(curve: Curve) -> FloatArray:
    """Return the integrals of y."""
    return curve.over(np.add, curve.integral())


def mean(curve: Curve) -> FloatArray:
    """Return the integrals of y, divided by the time."""
    return np.asarray(integral(curve) / (curve.stop - curve.start))


def rms(curve: Curve) -> FloatArray:
    """Return the roots of the means of y²."""
    return np.asarray(np.sqrt(ise(curve) / (curve.stop - curve.start)))


def ise(curve: Curve) -> FloatArray:
    """Return the integrals of y²."""
    return curve.square_integral()


def iae(curve: Curve) -> FloatArray:
    """Return the integrals of the magnitude of y."""
    return curve.magnitude_integral()


def itae(curve: Curve, since: FloatArray | None = None) -> FloatArray:
    """Return the integrals of the magnitude of y, times the time since the first, or given ones."""
    begin = curve.start if since is None else since
    return curve.magnitude_integral(begin)


def first_crossing(curve: Curve, level: float, direction: str) -> FloatArray:
    """Return when the curve first crosses a level, NaN where it never does."""
    curve, arc, jumps = crossing_arc(curve, level, direction)
    crossed = curve.crossing(arc, np.full(len(curve), level))
    return np.where(arc >= 0, np.where(jumps, curve.t0[arc], crossed), np.nan)


def crossing_arc(
    curve: Curve, level: float, direction: str
) -> tuple[Curve, NDArray[np.intp], NDArray[np.bool_]]:
    """Return the curve divided at a level, the arcs that first cross it, and whether by a jump.

    An arc is -1 where there is none; a jump is before it.
    """
    curve = curve.at_level(np.full(len(curve), level))
    before = np.append(curve.y0[:1], curve.y1[:-1])  # what comes before an arc
    before[curve.first[:-1]] = curve.y0[curve.first[:-1]]
    jumps = _crosses(before, curve.y0, level, direction)
    arc = curve.first_of(jumps | _crosses(curve.y0, curve.y1, level, direction))
    return curve, arc, jumps[arc]


def _crosses(a: FloatArray, b: FloatArray, level: float, direction: str) -> NDArray[np.bool_]:
    """Return where a signal that goes from a to b crosses a level."""
    rising, falling = (a < level) & (b >= level), (a > level) & (b <= level)
    ways = {"rising": rising, "falling": falling, "either": rising | falling}
    return np.asarray(ways[direction])
