"""Location of witness events inside of one integrator step.

A sign check at the ends of a step misses whatever happens twice in between, such as a short hop of
a bouncing ball. Here every witness function is also looked at inside of the step: from values and
slopes at a few points cubic pieces are formed, and where the extremum of a piece has another sign
than its ends, the function itself is evaluated there. Every change of sign so found is narrowed
down to the resolution of floating-point time, and the earliest one wins. The event takes place at
the late end of the last interval, so that the function has reached or just passed zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.errors import NonFiniteError
from flexure.diagrams.events import Witness
from flexure.diagrams.store import annotate
from flexure.diagrams.values import FloatArray
from flexure.solvers.agenda import Entry

#: Evaluates all witness functions at a time inside of the step.
Evaluate = Callable[[float], FloatArray]

_PIECES = 2
_SLOPE_STEP = 1e-7


@dataclass(frozen=True)
class Crossing:
    """The earliest trigger inside of a step.

    Attributes
    ----------
    time : float
        When.
    entries : list of Entry
        The events that trigger then.
    values : ndarray
        All witness functions at that time.
    """

    time: float
    entries: list[Entry]
    values: FloatArray


def witness_value(entry: Entry) -> float:
    """Evaluate the witness function of an event with the present values.

    Raises
    ------
    NonFiniteError
        When it is not one finite number.
    """
    time, label = entry.leaf.time, entry.event.label
    try:
        value = np.asarray(_witness(entry).calc(entry.leaf), dtype=np.float64)
    except Exception as error:
        annotate(error, f"while computing the witness function of '{label}'", time)
        raise
    if value.size == 1 and np.isfinite(value).all():
        return float(value.reshape(()))
    refusal = NonFiniteError(
        f"Cannot watch the witness function of '{label}' at t = {time:.9g} s",
        expected="one finite number",
        found=repr(value.tolist()),
    )
    refusal.time = time
    raise refusal


def find_crossing(
    entries: list[Entry],
    evaluate: Evaluate,
    start: float,
    end: float,
    first: FloatArray,
) -> Crossing | None:
    """Return the earliest trigger in a step from ``start`` to ``end``, or None.

    Parameters
    ----------
    entries : list of Entry
        Witness events, in the order of the components of ``evaluate``.
    evaluate : callable
        ``evaluate(t)`` gives all witness functions at a time inside of the step.
    start, end : float
        The step.
    first : ndarray
        The functions at ``start``, with exact zeros for those that start on their surface.
    """
    times, values = _profile(evaluate, start, end, first)
    best = math.inf
    for k, entry in enumerate(entries):
        bracket = _first_trigger(_witness(entry), times, values[:, k])
        if bracket is not None and times[bracket - 1] < best:
            best = min(best, _narrow(entry, evaluate, k, times, values[:, k], bracket))
    if best == math.inf:
        return None
    return _crossing(entries, best, values[np.searchsorted(times, best) - 1], evaluate(best))


def find_change(
    entries: list[Entry],
    evaluate: Evaluate,
    start: float,
    end: float,
    first: FloatArray,
) -> Crossing | None:
    """Return what has triggered at the end of a step, if anything, without looking inside.

    Parameters are those of `find_crossing`.
    """
    crossing = _crossing(entries, end, first, evaluate(end))
    return crossing if crossing.entries else None


def _crossing(
    entries: list[Entry], time: float, before: FloatArray, values: FloatArray
) -> Crossing:
    """Gather the events that a change of the functions triggers."""
    triggered = [
        entry
        for entry, old, new in zip(entries, before, values, strict=True)
        if _witness(entry).triggers(float(old), float(new))
    ]
    return Crossing(time, triggered, values)


def _witness(entry: Entry) -> Witness:
    witness = entry.event.trigger
    assert isinstance(witness, Witness)
    return witness


def _profile(
    evaluate: Evaluate, start: float, end: float, first: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sample all witness functions, adding the inner extrema that change a sign."""
    nodes = np.linspace(start, end, _PIECES + 1)
    samples: dict[float, FloatArray] = {start: first}
    slopes = []
    for node in nodes[1:]:
        if node > start:  # in the shortest of steps the middle is one of the ends
            samples[float(node)] = evaluate(float(node))
    # A function that starts on its surface may be back there soon: look closely at its slope.
    width = end - start
    close = min(1e5 * math.ulp(max(abs(start), abs(end))), 0.25 * width)
    delta = max(_SLOPE_STEP * width, close)
    for node in nodes:
        if node == start and not np.all(first):
            slopes.append(_slope(evaluate(start), evaluate(start + close), close))
        else:
            toward = delta if node < end else -delta
            slopes.append(_slope(samples[float(node)], evaluate(float(node) + toward), toward))
    for left, right, slope_left, slope_right in zip(
        nodes, nodes[1:], slopes, slopes[1:], strict=False
    ):
        low, high = samples[float(left)], samples[float(right)]
        for time in _suspects(float(left), float(right), low, high, slope_left, slope_right):
            samples[time] = evaluate(time)
    times = np.array(sorted(samples))
    return times, np.array([samples[float(time)] for time in times])


def _slope(here: FloatArray, there: FloatArray, toward: float) -> FloatArray:
    """Return slopes by differences; where time has no room for them, NaN or infinite ones."""
    with np.errstate(all="ignore"):
        return (there - here) / toward


def _suspects(
    left: float,
    right: float,
    low: FloatArray,
    high: FloatArray,
    slope_left: FloatArray,
    slope_right: FloatArray,
) -> list[float]:
    """Find times at which the cubic through values and slopes has an extremum of another sign."""
    width = right - left
    with np.errstate(all="ignore"):
        d0, d1 = slope_left * width, slope_right * width
        rise = high - low
        a, b = d0 + d1 - 2.0 * rise, 3.0 * rise - 2.0 * d0 - d1
        root = np.sqrt(b * b - 3.0 * a * d0)
        q = -(b + np.copysign(root, b))
        extrema = np.stack([q / (3.0 * a), d0 / q])
        peaks = low + extrema * (d0 + extrema * (b + extrema * a))
        scale = np.abs(d0) + np.abs(b) + np.abs(a)
        suspect = (peaks * low <= 0.0) | (peaks * high <= 0.0) | (np.abs(peaks) < 1e-3 * scale)
        inside = (extrema > 1e-12) & (extrema < 1.0 - 1e-12)
    return [left + float(s) * width for s in np.unique(extrema[inside & suspect])]


def _first_trigger(witness: Witness, times: FloatArray, values: FloatArray) -> int | None:
    """Return the index of the first sample at which the witness has triggered."""
    before = float(values[0])
    for index in range(1, len(times)):
        after = float(values[index])
        if witness.triggers(before, after):
            return index
        before = after
    return None


def _narrow(
    entry: Entry,
    evaluate: Evaluate,
    k: int,
    times: FloatArray,
    values: FloatArray,
    index: int,
) -> float:
    """Return a time at which an event has triggered, as close to its zero as time resolves."""
    from scipy.optimize import brentq

    low, high = float(times[index - 1]), float(times[index])
    known = {low: float(values[index - 1]), high: float(values[index])}

    def function(time: float) -> float:
        return known[time] if time in known else float(evaluate(time)[k])

    resolution = 4.0 * math.ulp(max(abs(low), abs(high)))
    root = brentq(function, low, high, xtol=resolution, rtol=1e-15)
    margin = 0.0
    while (time := min(root + margin, high)) < high:
        value = function(time)
        if _witness(entry).triggers(known[low], value):
            beyond = min(time + resolution, high)
            # An update that turns the function around cannot be seen to do so at exactly zero.
            at_zero = value == 0.0 and entry.event.kind != "publish"
            return beyond if at_zero and function(beyond) * known[low] < 0.0 else time
        margin = max(resolution, 2.0 * margin)
    return high
