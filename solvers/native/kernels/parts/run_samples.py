"""Kernels on what is known of witness functions: their samples in a stretch of a step.

The samples are the ends of the stretch, points between them and suspicious extrema, each with the
values of all functions.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import larger, smaller
from flexure.solvers.native.kernels.parts.zero_search import (
    APPARENT,
    FEW_STEPS,
    does_not_fit,
    is_far,
    is_near,
    varies_fast,
)
from flexure.solvers.native.language.language import Floats, Function, Ints, Structure

APART = True


class WitnessData(Structure):
    """The witness functions of a run, the search for their zeros, and what it has found."""

    count: int
    values: Function  # of all of them
    directions: Ints  # -1 falling, 1 rising, 0 either
    handled: Ints  # whether nothing but native updates belongs to each
    turning: Ints  # whether updates belong to each
    longest: float  # stretch of time that is looked at as a whole
    on_surface: Ints  # 1 where each has just triggered, 2 a step later and so on, up to a few
    surface: Floats  # its value then
    jumped: int  # whether an update has changed the continuous state since the last event
    first: Floats  # values at the start of the step
    known: int  # whether these are those at the present time, before the updates that are due
    stirred: int  # whether values may have jumped since then
    leaping: Ints  # whether each has jumped through zero at the present time
    samples: Floats  # values inside of the step
    instants: Floats  # when
    order: Ints
    slopes: Floats
    fast: Ints  # whether each varies too fast for a stretch of time, see `varies_fast`
    peaks: Floats  # the largest values of each in a step
    search: Floats  # for the zero of one of them
    crossed: int  # mask of the functions that triggered last
    time_crossed: float  # when


def triggers(direction: int, before: float, after: float) -> bool:
    """Return whether a change of a function is a trigger."""
    falling = direction <= 0 and before > 0.0 and after <= 0.0
    rising = direction >= 0 and before < 0.0 and after >= 0.0
    return falling or rising


def note_peaks(witnesses: WitnessData, count: int) -> None:
    """Keep the largest values of all functions in stretches that were too long."""
    w = witnesses.count
    for e in range(count):
        for k in range(w):
            witnesses.peaks[k] = larger(witnesses.peaks[k], abs(witnesses.samples[e * w + k]))


def forget_old_events(witnesses: WitnessData) -> None:
    """Count the steps since the last event of each function, up to a few."""
    for k in range(witnesses.count):
        if witnesses.on_surface[k] > 0:
            witnesses.on_surface[k] += 1
            if witnesses.on_surface[k] > FEW_STEPS:
                witnesses.on_surface[k] = 0


def may_miss(witnesses: WitnessData, count: int) -> bool:
    """Return whether some function varies so fast that a crossing may be missed."""
    some = False
    for k in range(witnesses.count):
        if varies_unseen(witnesses, k, count):
            some = True
    return some


def varies_unseen(witnesses: WitnessData, k: int, count: int) -> bool:
    """Return whether a function varies fast, and visibly, while it keeps its sign."""
    if witnesses.fast[k] != 2:
        return False
    w = witnesses.count
    least = witnesses.samples[k]
    most = witnesses.samples[k]
    for e in range(count):
        least = smaller(least, witnesses.samples[e * w + k])
        most = larger(most, witnesses.samples[e * w + k])
    steady = least > 0.0 or most < 0.0
    apparent = witnesses.peaks[k] > 0.0 and most - least > APPARENT * witnesses.peaks[k]
    unseen: bool = steady and apparent
    return unseen


def all_far(witnesses: WitnessData, width: float) -> bool:
    """Return whether no function can be zero in a stretch, as values and slopes at the ends say."""
    w = witnesses.count
    for k in range(w):
        witnesses.fast[k] = 0
        low, middle = witnesses.samples[k], witnesses.samples[w + k]
        high = witnesses.samples[2 * w + k]
        d_low, d_high = width * witnesses.slopes[k], width * witnesses.slopes[2 * w + k]
        if not is_far(low, middle, high, d_low, d_high):
            return False
    return True


def some_vary_fast(witnesses: WitnessData, width: float) -> bool:
    """Note which functions vary too fast in a stretch; return whether any does."""
    w = witnesses.count
    some = False
    for k in range(w):
        witnesses.fast[k] = varies_fast(
            witnesses.samples[k],
            witnesses.samples[w + k],
            witnesses.samples[2 * w + k],
            width * witnesses.slopes[k],
            width * witnesses.slopes[w + k],
            width * witnesses.slopes[2 * w + k],
        )
        if witnesses.fast[k] > 0:
            some = True
    return some


def looks_closer(witnesses: WitnessData) -> bool:
    """Return whether some function may be zero inside of a stretch."""
    w = witnesses.count
    for k in range(w):
        for piece in range(2):
            low, high = witnesses.samples[piece * w + k], witnesses.samples[(piece + 1) * w + k]
            width = witnesses.instants[piece + 1] - witnesses.instants[piece]
            d_low = witnesses.slopes[piece * w + k] * width
            d_high = witnesses.slopes[(piece + 1) * w + k] * width
            if is_near(low, high, d_low, d_high):
                return True
    return False


def piece_varies_fast(witnesses: WitnessData, k: int, piece: int) -> bool:
    """Return whether a cubic misses the point inside of one of the two pieces of a stretch."""
    w = witnesses.count
    low, high = witnesses.samples[piece * w + k], witnesses.samples[(piece + 1) * w + k]
    inner = witnesses.samples[(3 + piece) * w + k]
    width = witnesses.instants[piece + 1] - witnesses.instants[piece]
    d_low = witnesses.slopes[piece * w + k] * width
    d_high = witnesses.slopes[(piece + 1) * w + k] * width
    return does_not_fit(low, inner, high, d_low, d_high, 0.0, abs(d_low) + abs(d_high))


def leaving_mask(witnesses: WitnessData) -> int:
    """Return the mask of the functions that start on their surfaces."""
    mask = 0
    bit = 1
    for k in range(witnesses.count):
        if witnesses.first[k] == 0.0:
            mask += bit
        bit *= 2
    return mask


def is_suspect(s: float, low: float, high: float, d0: float, b: float, a: float) -> bool:
    """Return whether a cubic piece has an extremum at s that may change the sign."""
    if not (s > 1e-12 and s < 1.0 - 1e-12):
        return False
    peak = low + s * (d0 + s * (b + s * a))
    scale = abs(d0) + abs(b) + abs(a)
    return peak * low <= 0.0 or peak * high <= 0.0 or abs(peak) < 1e-3 * scale


def sort_samples(witnesses: WitnessData, count: int) -> None:
    """Put the samples in the order of time."""
    for e in range(count):
        place = e
        while place > 0 and witnesses.instants[witnesses.order[place - 1]] > witnesses.instants[e]:
            witnesses.order[place] = witnesses.order[place - 1]
            place -= 1
        witnesses.order[place] = e


def first_trigger(witnesses: WitnessData, k: int, count: int) -> int:
    """Return the position of the first sample at which a function has triggered, or zero."""
    w = witnesses.count
    for position in range(1, count):
        before = witnesses.samples[witnesses.order[position - 1] * w + k]
        after = witnesses.samples[witnesses.order[position] * w + k]
        if triggers(witnesses.directions[k], before, after):
            return position
    return 0
