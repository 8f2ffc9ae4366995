"""Kernels of the search for zeros that interpreted and native runs share.

The search for one zero is Brent's method, step by step as `scipy.optimize.brentq` has it, except
that it cannot fail: after a number of looks that simple zeros never need, it only halves. Near a
flat zero, as that of x³, the method by itself creeps.

A search is an array. The caller fills it with `start_search`, and evaluates the function at the
times that `next_look` returns, as long as it returns any::

    start_search(search, low, high, f_low, f_high)
    while next_look(search, resolution):
        search[VALUE] = function(search[NOW])
    zero = search[NOW]
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import larger, smaller, spacing
from flexure.solvers.native.language.language import Floats

#: Where the present time and its value are; the other places are for the search.
NOW, VALUE = 0, 1
BEFORE, VALUE_BEFORE, OTHER, VALUE_OTHER, STEP, STEP_BEFORE, LOOKS = 2, 3, 4, 5, 6, 7, 8
SEARCH_SIZE = 9
PATIENCE = 25.0  # looks, after which the method only halves

MIDDLE = 0.4721359549995794  # where a stretch is looked at: no neat part, which may be a period
SHORTEST = 2.0**-20  # of the stretches, as a part of the step
MOST_STRETCHES = 4000  # of one step that are chosen here
MISFIT = 0.05  # of a cubic that is too large, as a part of how much a function changes,
STEEP_MISFIT = 0.003  # and of how much it would change with its slopes
APPARENT = 1e-3  # changes in the shortest stretch that are no mere corner of a function
ONE_WAY = 0.01  # of all changes that go the other way are none
NOISE = 1e5  # slopes that belong to no motion, in units of the values
FEW_STEPS = 8  # from an event to the next of the same function, which are looked at closely
RESTING = 1e-3  # the part of a motion that the first rate may explain of one that begins at rest
REACH, FURTHER = 1e-3, 8.0  # of looks at where a function goes: part of the step, factor


def start_search(search: Floats, low: float, high: float, f_low: float, f_high: float) -> None:
    """Begin between two times at which the function has different signs, or is zero at the last."""
    search[BEFORE] = low
    search[VALUE_BEFORE] = f_low
    search[NOW] = high
    search[VALUE] = f_high
    search[OTHER] = 0.0
    search[VALUE_OTHER] = 0.0
    search[STEP] = 0.0
    search[STEP_BEFORE] = 0.0
    search[LOOKS] = 0.0


def next_look(search: Floats, resolution: float) -> bool:
    """Choose the next time to look at; tell whether that is needed, or the zero is found."""
    if search[VALUE] == 0.0:
        return False
    if search[VALUE_BEFORE] != 0.0 and (search[VALUE_BEFORE] < 0.0) != (search[VALUE] < 0.0):
        search[OTHER] = search[BEFORE]
        search[VALUE_OTHER] = search[VALUE_BEFORE]
        search[STEP_BEFORE] = search[NOW] - search[BEFORE]
        search[STEP] = search[STEP_BEFORE]
    if abs(search[VALUE_OTHER]) < abs(search[VALUE]):
        search[BEFORE] = search[NOW]
        search[NOW] = search[OTHER]
        search[OTHER] = search[BEFORE]
        search[VALUE_BEFORE] = search[VALUE]
        search[VALUE] = search[VALUE_OTHER]
        search[VALUE_OTHER] = search[VALUE_BEFORE]
    now, value = search[NOW], search[VALUE]
    delta = 0.5 * (resolution + 1e-15 * abs(now))
    half = 0.5 * (search[OTHER] - now)
    if value == 0.0 or abs(half) < delta:
        return False
    trial = half
    if search[LOOKS] < PATIENCE:
        trial = interpolated(search, half, delta)
    if trial == half:
        search[STEP_BEFORE] = half
    else:
        search[STEP_BEFORE] = search[STEP]
    search[STEP] = trial
    search[LOOKS] += 1.0
    search[BEFORE] = now
    search[VALUE_BEFORE] = value
    if abs(trial) > delta:
        search[NOW] = now + trial
    elif half > 0.0:
        search[NOW] = now + delta
    else:
        search[NOW] = now - delta
    return True


def interpolated(search: Floats, half: float, delta: float) -> float:
    """Return a step by a line or an inverse parabola, or half of the interval if that is better."""
    now, value = search[NOW], search[VALUE]
    before, f_before = search[BEFORE], search[VALUE_BEFORE]
    step_before = abs(search[STEP_BEFORE])
    if not (step_before > delta and abs(value) < abs(f_before)):
        return half
    other, f_other = search[OTHER], search[VALUE_OTHER]
    if before == other:
        trial: float = -value * (now - before) / (value - f_before)
    else:
        d_before = (f_before - value) / (before - now)
        d_other = (f_other - value) / (other - now)
        trial = (
            -value
            * (f_other * d_other - f_before * d_before)
            / (d_other * d_before * (f_other - f_before))
        )
    if 2.0 * abs(trial) < smaller(step_before, 3.0 * abs(half) - delta):
        return trial
    return half


def shortest_stretch(start: float, end: float) -> float:
    """Return the length of stretches of a step that are not made shorter."""
    return larger(SHORTEST * (end - start), 1e6 * spacing(larger(abs(start), abs(end))))


def end_of_stretch(low: float, width: float, end: float) -> float:
    """Return where a stretch ends; no sliver is left at the end of the step."""
    high = low + width
    if high + 0.01 * width < end and high > low:
        return high
    return end


def varies_fast(
    low: float, middle: float, high: float, d_low: float, d_middle: float, d_high: float
) -> int:
    """Return whether a cubic through the ends of a stretch may miss a zero, as its middle shows.

    Slopes are in units of the length of the stretch. The answer is 0 for no, 1 for yes, and 2
    where the function goes up and down, and does not merely jump.
    """
    rise = high - low
    a = d_low + d_high - 2.0 * rise
    b = 3.0 * rise - 2.0 * d_low - d_high
    misfit = abs(d_low + MIDDLE * (2.0 * b + MIDDLE * 3.0 * a) - d_middle)
    slopes = abs(d_low) + abs(d_middle) + abs(d_high)
    if not does_not_fit(low, middle, high, d_low, d_high, 0.25 * misfit, slopes):
        return 0
    first, second = middle - low, high - middle
    if slopes <= 2.0 * (abs(first) + abs(second)):
        return 1
    # Where a jump is close to one of the points, the slope there is large, but none is against it.
    up = larger(d_low, 0.0) + larger(d_middle, 0.0) + larger(d_high, 0.0)
    up += larger(first, 0.0) + larger(second, 0.0)
    down = up - (d_low + d_middle + d_high + rise)
    return 2 if smaller(up, down) > ONE_WAY * (up + down) else 1


def does_not_fit(
    low: float,
    middle: float,
    high: float,
    d_low: float,
    d_high: float,
    misfit: float,
    slopes: float,
) -> bool:
    """Return whether a cubic through the ends does not give the middle, and that matters for zeros.

    To the difference is added what else does not fit.
    """
    rise = high - low
    a = d_low + d_high - 2.0 * rise
    b = 3.0 * rise - 2.0 * d_low - d_high
    total = misfit + abs(low + MIDDLE * (d_low + MIDDLE * (b + MIDDLE * a)) - middle)
    if total <= MISFIT * (abs(middle - low) + abs(high - middle)) + STEEP_MISFIT * slopes:
        return False
    if slopes > NOISE * larger(abs(low), larger(abs(middle), abs(high))):
        return False
    changes = low * middle < 0.0 or middle * high < 0.0
    return changes or smaller(abs(low), smaller(abs(middle), abs(high))) < 8.0 * total


def is_far(low: float, middle: float, high: float, d_low: float, d_high: float) -> bool:
    """Return whether a function stays away from zero in a stretch, as its ends and middle show."""
    if low * middle <= 0.0 or middle * high <= 0.0 or is_near(low, high, d_low, d_high):
        return False
    return not does_not_fit(low, middle, high, d_low, d_high, 0.0, abs(d_low) + abs(d_high))


def is_near(low: float, high: float, d_low: float, d_high: float) -> bool:
    """Return whether a function may be zero between two points, as its slopes there are."""
    return smaller(abs(low), abs(high)) <= abs(d_low) + abs(d_high)


def first_distance(start: float, end: float) -> float:
    """Return how far ahead one looks first to see where a function goes by the equations."""
    close = 1e5 * spacing(larger(abs(start), abs(end)))
    return smaller(close, REACH * (end - start) / FURTHER)


def is_clear(known: float, change: float) -> bool:
    """Return whether a change, and the one known from closer by, are more than rounding errors."""
    return known * change > 0.0 and abs(change) >= 0.5 * FURTHER * abs(known)
