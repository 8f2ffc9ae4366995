"""Location of witness events inside of one integrator step.

A sign check at the ends of a step misses whatever happens twice in between, such as a short hop of
a bouncing ball. Here every witness function is also looked at inside of the step: from values and
slopes at a few points cubic pieces are formed, and where the extremum of a piece has another sign
than its ends, the function itself is evaluated there. A cubic through the ends alone has to agree
with the point in between, in value and slope; where it does not, the function varies too fast to
be known by these points, and shorter parts of the step are checked one after the other.

Every change of sign so found is narrowed down to the resolution of floating-point time, and the
earliest one wins. The event takes place at the late end of the last interval, so that the function
has reached or just passed zero.

`flexure.solvers.native.kernels.runs.run_events` does the same with the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.arguments import shown
from flexure.diagrams.checks.errors import EvaluationError, NonFiniteError
from flexure.diagrams.contexts.store import annotate
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Witness
from flexure.solvers.native.kernels.parts.zero_search import (
    APPARENT,
    MIDDLE,
    MOST_STRETCHES,
    NOW,
    SEARCH_SIZE,
    VALUE,
    does_not_fit,
    end_of_stretch,
    is_far,
    is_near,
    next_look,
    shortest_stretch,
    start_search,
    varies_fast,
)
from flexure.solvers.simulation.events.agenda import Entry

#: Evaluates all witness functions at a time inside of the step.
Evaluate = Callable[[float], FloatArray]

_SLOPE_STEP = 1e-7


@dataclass(frozen=True, eq=False)
class Crossing:
    """The earliest trigger inside of a step."""

    time: float  # when
    entries: list[Entry]  # the events that trigger then
    # before, values: all witness functions at the last look before that time, and at that time.
    before: FloatArray
    values: FloatArray


def witness_value(entry: Entry) -> float:
    """Evaluate the witness function of an event with the present values."""
    try:
        found = _witness(entry).calc(entry.leaf)
    except Exception as error:
        where = f"while computing the witness function of '{entry.event.label}'"
        annotate(error, where, entry.leaf.time)
        raise
    value = _real(found)
    if value is not None and value.size == 1 and math.isfinite(number := float(value.item())):
        return number
    time, label = entry.leaf.time, entry.event.label
    refused = EvaluationError if value is None else NonFiniteError
    refusal = refused(
        f"Cannot watch the witness function of '{label}' at t = {time:.9g} s",
        expected="one finite number",
        found=shown(found)
        if value is None or found is None  # which NumPy reads as NaN
        else repr(value.tolist()),
    )
    if isinstance(refusal, NonFiniteError):
        refusal.time = time
    raise refusal


def _real(value: Any) -> FloatArray | None:
    """Return real numbers as an array, None for anything else, such as a complex number."""
    try:
        found = np.asarray(value)
        return None if found.dtype.kind in "cSUmM" else found.astype(np.float64)
    except (TypeError, ValueError):  # rows of different lengths, and objects that are no numbers
        return None


@dataclass(frozen=True, eq=False)
class Search:
    """The result of checking the witness functions in a step."""

    crossing: Crossing | None  # the earliest trigger
    # The sign with which each function is seen first, after the start of the step.
    sides: FloatArray
    # All functions where the search ended, which is the end of the step without a crossing.
    values: FloatArray
    lost: list[Entry]  # events whose functions vary so fast that crossings may have been missed


def find_crossing(
    entries: list[Entry],
    evaluate: Evaluate,
    start: float,
    end: float,
    first: FloatArray,
    longest: float = math.inf,
) -> Search:
    """Look for the earliest trigger in a step from ``start`` to ``end``.

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
    longest : float
        The longest interval that is checked as a whole.
    """
    shortest = shortest_stretch(start, end)
    low, values, width, left = start, first, min(end - start, longest), MOST_STRETCHES
    sides, peaks = np.zeros(len(entries)), np.zeros(len(entries))
    lost = np.zeros(len(entries), dtype=bool)
    while True:
        high = end_of_stretch(low, width, end)
        left -= width < longest
        shorten = width > shortest and left > 0
        times, samples, fast = _profile(evaluate, low, high, values, shorten=shorten)
        if fast.any() and shorten:
            peaks = np.maximum(peaks, np.max(np.abs(samples), axis=0))
            width = max(0.5 * (high - low), shortest)
            continue
        steady = np.all(samples > 0.0, axis=0) | np.all(samples < 0.0, axis=0)
        apparent = (np.ptp(samples, axis=0) > APPARENT * peaks) & (peaks > 0.0)
        lost |= (fast == 2) & (steady & apparent) | (fast > 0) & (left <= 0)
        for sample in samples[1:]:
            sides = np.where(sides == 0.0, np.sign(sample), sides)
        crossing = _first_crossing(entries, evaluate, times, samples)
        values = samples[-1]
        if crossing is not None or high == end:
            missed = [entry for entry, each in zip(entries, lost, strict=True) if each]
            return Search(crossing, sides, values, missed)
        low, width = high, min(2.0 * width, longest) if left > 0 else end - high


def find_change(
    entries: list[Entry],
    evaluate: Evaluate,
    end: float,
    first: FloatArray,
) -> Search:
    """Return what has triggered at the end of a step, without looking inside.

    Parameters are those of `find_crossing`.
    """
    values = evaluate(end)
    crossing = _crossing(entries, end, first, values)
    return Search(crossing if crossing.entries else None, np.sign(values), values, [])


def _first_crossing(
    entries: list[Entry], evaluate: Evaluate, times: FloatArray, samples: FloatArray
) -> Crossing | None:
    """Return the earliest trigger between samples of all functions."""
    best = math.inf
    for k, entry in enumerate(entries):
        bracket = _first_trigger(_witness(entry), times, samples[:, k])
        if bracket is not None and times[bracket - 1] < best:
            best = min(best, _narrow(entry, evaluate, k, times, samples[:, k], bracket))
    if best == math.inf:
        return None
    return _crossing(entries, best, samples[np.searchsorted(times, best) - 1], evaluate(best))


def _crossing(
    entries: list[Entry], time: float, before: FloatArray, values: FloatArray
) -> Crossing:
    """Gather what happens at a time inside of a step."""
    return Crossing(time, triggered(entries, before, values), before, values)


def triggered(entries: list[Entry], before: FloatArray, values: FloatArray) -> list[Entry]:
    """Return the events that a change of the functions triggers."""
    return [
        entry
        for entry, old, new in zip(entries, before, values, strict=True)
        if _witness(entry).triggers(float(old), float(new))
    ]


def _witness(entry: Entry) -> Witness:
    witness = entry.event.trigger
    assert isinstance(witness, Witness)
    return witness


def _profile(
    evaluate: Evaluate, start: float, end: float, first: FloatArray, *, shorten: bool
) -> tuple[FloatArray, FloatArray, NDArray[np.int_]]:
    """Sample all witness functions in a stretch, adding the inner extrema that change a sign.

    Where a function varies too fast, and the stretch may be shortened, there are no extrema. Times
    and samples are returned, and whether each function varies too fast, as `varies_fast` says.
    """
    width = end - start
    nodes = [start, start + MIDDLE * width, end]
    samples: dict[float, FloatArray] = {start: first}
    for node in nodes[1:]:
        if node > start:  # in the shortest of steps the middle is one of the ends
            samples[node] = evaluate(node)
    # A function that starts on its surface may be back there soon: look closely at its slope.
    close = min(1e5 * math.ulp(max(abs(start), abs(end))), 0.25 * width)
    delta = max(_SLOPE_STEP * width, close)

    def slope(node: float) -> FloatArray:
        if node == start and not np.all(first):
            return _slope(evaluate(start), evaluate(start + close), close)
        toward = delta if node < end else -delta
        return _slope(samples[node], evaluate(node + toward), toward)

    values, slopes = [samples[node] for node in nodes], {node: slope(node) for node in (start, end)}
    fast = np.zeros(len(first), dtype=int)
    with np.errstate(all="ignore"):
        known = *values, width * slopes[start], width * slopes[end]
        far = all(is_far(*each) for each in zip(*known, strict=True))
    if not far:
        slopes[nodes[1]] = slope(nodes[1])
        with np.errstate(all="ignore"):
            known = *values, *(width * slopes[node] for node in nodes)
            fast += [varies_fast(*each) for each in zip(*known, strict=True)]
    if not (far or (shorten and fast.any())):
        pieces: list[Any] = [
            (*ends, *(samples[t] for t in ends), *((ends[1] - ends[0]) * slopes[t] for t in ends))
            for ends in (nodes[:2], nodes[1:])
        ]
        fast = np.maximum(fast, _look_closer(evaluate, samples, pieces))
        for piece in [] if shorten and fast.any() else pieces:
            for time in _suspects(*piece):
                samples[time] = evaluate(time)
    times = np.array(sorted(samples))
    return times, np.array([samples[float(time)] for time in times]), fast


def _look_closer(
    evaluate: Evaluate, samples: dict[float, FloatArray], pieces: list[Any]
) -> NDArray[np.bool_]:
    """Where some function may be zero, sample all once more in each piece; tell which vary fast."""
    ends = [tuple(zip(*piece[2:], strict=True)) for piece in pieces]  # by piece and function
    fast = np.zeros(len(ends[0]), dtype=bool)
    with np.errstate(all="ignore"):
        if not any(is_near(*each) for piece in ends for each in piece):
            return fast
    for (left, right, *_), piece in zip(pieces, ends, strict=True):
        time = left + MIDDLE * (right - left)
        inner = samples[time] = evaluate(time)
        with np.errstate(all="ignore"):
            for k, (low, high, d0, d1) in enumerate(piece):
                fast[k] |= does_not_fit(low, inner[k], high, d0, d1, 0.0, abs(d0) + abs(d1))
    return fast


def _slope(here: FloatArray, there: FloatArray, toward: float) -> FloatArray:
    """Return slopes by differences; where time has no room for them, NaN or infinite ones."""
    with np.errstate(all="ignore"):
        return (there - here) / toward


def _suspects(
    left: float,
    right: float,
    low: FloatArray,
    high: FloatArray,
    d0: FloatArray,
    d1: FloatArray,
) -> list[float]:
    """Find times at which the cubic through values and slopes has an extremum of another sign."""
    # Slopes are in units of the length of the piece.
    width = right - left
    with np.errstate(all="ignore"):
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
    low, high = float(times[index - 1]), float(times[index])
    known = {low: float(values[index - 1]), high: float(values[index])}

    def function(time: float) -> float:
        return known[time] if time in known else float(evaluate(time)[k])

    resolution = 4.0 * math.ulp(max(abs(low), abs(high)))
    root = _zero(function, low, high, resolution)
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


def _zero(function: Callable[[float], float], low: float, high: float, resolution: float) -> float:
    """Return where a function is zero, to a resolution; its signs at both ends are different."""
    search = np.empty(SEARCH_SIZE)
    start_search(search, low, high, function(low), function(high))
    while True:
        with np.errstate(all="ignore"):
            if not next_look(search, resolution):
                return float(search[NOW])
        search[VALUE] = function(float(search[NOW]))
