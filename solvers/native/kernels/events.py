"""Kernels that locate witness events inside of a step.

They do what `flexure.solvers.simulation.witnesses` does, in the same order and with the same
numbers: look for changes of sign at the ends, at a point between them, and at extrema; narrow every
one down with Brent's method; and take the earliest. Where a function varies too fast for that, they
go through shorter stretches of the step.

A function that starts on its surface has to leave it as the equations say, and to come back so;
where the method sees something else, Python is to say what is wrong.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.arithmetic import INFINITY, all_finite, larger, smaller, spacing
from flexure.solvers.native.kernels.run import Run
from flexure.solvers.native.kernels.search import (
    APPARENT,
    FEW_STEPS,
    FURTHER,
    MIDDLE,
    MOST_STRETCHES,
    NOW,
    REACH,
    RESTING,
    VALUE,
    does_not_fit,
    end_of_stretch,
    first_distance,
    is_clear,
    is_far,
    is_near,
    next_look,
    shortest_stretch,
    start_search,
    varies_fast,
)
from flexure.solvers.native.kernels.stepping import state_inside
from flexure.solvers.native.language.language import Floats, Static, sqrt

APART = True
SLOPE_STEP = 1e-7
NOTHING = 0
FOUND = 1
UNDEFINED = 2


def witness_values(run: Run, method: Static, time: float, out: Floats) -> None:
    """Compute all witness functions at a time inside of the last step."""
    state_inside(run, method, time, run.point)
    run.witness(time, run.point, run.env, out)


def first_values(run: Run) -> bool:
    """Compute the functions at the start of a motion; tell whether they are finite.

    A function that has just triggered and still is where it triggered counts as zero.
    """
    run.witness(run.time, run.x, run.env, run.first)
    total = 0.0
    for k in range(run.witnesses):
        if run.on_surface[k] == 1 and run.first[k] == run.surface[k]:
            run.first[k] = 0.0
        total += run.first[k] * 0.0
    return total == 0.0


def triggers(direction: int, before: float, after: float) -> bool:
    """Tell whether a change of a function is a trigger."""
    falling = direction <= 0 and before > 0.0 and after <= 0.0
    rising = direction >= 0 and before < 0.0 and after >= 0.0
    return falling or rising


def find_crossing(run: Run, method: Static) -> int:
    """Look for the earliest trigger in the last step.

    What is found is the mask ``run.crossed`` and the time ``run.time_crossed``; else the functions
    at the end of the step become those at the start of the next.
    """
    w = run.witnesses
    end = run.time_new
    shortest = shortest_stretch(run.time_old, end)
    low = run.time_old
    width = smaller(end - low, run.longest)
    left = MOST_STRETCHES
    asked = 25 * MOST_STRETCHES
    leaving = leaving_mask(run)
    unseen = leaving
    for k in range(w):
        run.peaks[k] = 0.0
    while True:
        high = end_of_stretch(low, width, end)
        if width < run.longest:
            left -= 1
        asked -= 1
        if asked <= 0:
            return UNDEFINED  # what takes long has to hear the interrupt key
        count = profile(run, method, low, high, width > shortest)
        if not all_finite((count if count > 0 else -count) * w, run.samples):
            return UNDEFINED
        if left <= 0 or (width <= shortest and may_miss(run, count)):
            return UNDEFINED  # Python says what may have been missed
        if count < 0:
            note_peaks(run, -count)
            width = larger(0.5 * (high - low), shortest)
            continue
        unseen = still_unseen(run, unseen, count)
        if unseen < 0:
            return UNDEFINED
        found = first_crossing(run, method, count, leaving)
        if found != NOTHING:
            return found
        last = run.samples[run.order[count - 1] * w :]
        for k in range(w):
            run.first[k] = last[k]
        if high == end:
            forget_old_events(run)
            return NOTHING
        low = high
        width = smaller(2.0 * width, run.longest)


def note_peaks(run: Run, count: int) -> None:
    """Keep the largest values of all functions in stretches that were too long."""
    w = run.witnesses
    for e in range(count):
        for k in range(w):
            run.peaks[k] = larger(run.peaks[k], abs(run.samples[e * w + k]))


def forget_old_events(run: Run) -> None:
    """Count the steps since the last event of each function, up to a few."""
    for k in range(run.witnesses):
        if run.on_surface[k] > 0:
            run.on_surface[k] += 1
            if run.on_surface[k] > FEW_STEPS:
                run.on_surface[k] = 0


def may_miss(run: Run, count: int) -> bool:
    """Tell whether some function varies fast, and visibly, while it keeps its sign."""
    w = run.witnesses
    for k in range(w):
        least = run.samples[k]
        most = run.samples[k]
        for e in range(count):
            least = smaller(least, run.samples[e * w + k])
            most = larger(most, run.samples[e * w + k])
        steady = least > 0.0 or most < 0.0
        apparent = run.peaks[k] > 0.0 and most - least > APPARENT * run.peaks[k]
        if run.fast[k] == 2 and steady and apparent:
            return True
    return False


def first_crossing(run: Run, method: Static, count: int, leaving: int) -> int:
    """Look for the earliest trigger among the samples of a stretch."""
    w = run.witnesses
    best = INFINITY
    for k in range(w):
        at = first_trigger(run, k, count)
        if at > 0 and run.instants[run.order[at - 1]] < best:
            time = narrow(run, method, k, at)
            if not time < INFINITY:
                return UNDEFINED
            best = smaller(best, time)
    if best == INFINITY:
        return NOTHING
    # The values before are those of the last sample before the event.
    position = 0
    while position < count - 1 and run.instants[run.order[position + 1]] < best:
        position += 1
    before = run.samples[run.order[position] * w :]
    witness_values(run, method, best, run.slopes)
    mask = 0
    bit = 1
    for k in range(w):
        if triggers(run.directions[k], before[k], run.slopes[k]):
            mask += bit
            recent = leaving // bit % 2 == 1 or run.on_surface[k] > 0
            if recent and run.turning[k] == 1:
                # By the equations it must not move away; the state is still that of this time.
                moves = tendency(run, k, best, run.point, run.slopes[k])
                if moves * before[k] > 0.0:
                    return UNDEFINED
        bit *= 2
    bit = 1
    forget_old_events(run)
    for k in range(w):
        if mask // bit % 2 == 1:
            run.on_surface[k] = 1
            run.surface[k] = run.slopes[k]
        bit *= 2
    run.crossed = mask
    run.time_crossed = best
    run.jumped = 0
    return FOUND


def profile(run: Run, method: Static, start: float, end: float, shorten: bool) -> int:
    """Sample all functions at the ends of a stretch, between them and at suspicious extrema.

    Returns how many samples there are; their negative number where some function varies too fast
    for that, and the stretch may be shortened.
    """
    w = run.witnesses
    width = end - start
    middle = start + MIDDLE * width
    run.instants[0] = start
    run.instants[1] = middle
    run.instants[2] = end
    leaving = False
    for k in range(w):
        run.samples[k] = run.first[k]
        if run.first[k] == 0.0:
            leaving = True
    witness_values(run, method, middle, run.samples[w:])
    witness_values(run, method, end, run.samples[2 * w :])
    close = smaller(1e5 * spacing(larger(abs(start), abs(end))), 0.25 * width)
    delta = larger(SLOPE_STEP * width, close)
    if leaving:
        # A function that starts on its surface may be back there soon: look closely.
        for k in range(w):
            run.slopes[3 * w + k] = run.first[k]
            if run.first[k] == 0.0 and run.on_surface[k] == 1:
                run.slopes[3 * w + k] = run.surface[k]  # what it is indeed
        slope(run, method, start, close, run.slopes[3 * w :], run.slopes)
    else:
        slope(run, method, start, delta, run.samples, run.slopes)
    slope(run, method, end, -delta, run.samples[2 * w :], run.slopes[2 * w :])
    count = 3
    if all_far(run, width):
        sort_samples(run, count)
        return count
    slope(run, method, middle, delta, run.samples[w:], run.slopes[w:])
    some = False
    for k in range(w):
        run.fast[k] = varies_fast(
            run.samples[k],
            run.samples[w + k],
            run.samples[2 * w + k],
            width * run.slopes[k],
            width * run.slopes[w + k],
            width * run.slopes[2 * w + k],
        )
        if run.fast[k] > 0:
            some = True
    if some and shorten:
        return -count
    if looks_closer(run):
        count = look_closer(run, method)
        if count < 0 and shorten:
            return count
        count = 5
    return add_extrema(run, method, count)


def look_closer(run: Run, method: Static) -> int:
    """Sample all functions in both pieces; return the number of samples, as `profile` does."""
    w = run.witnesses
    for piece in range(2):
        left, right = run.instants[piece], run.instants[piece + 1]
        run.instants[3 + piece] = left + MIDDLE * (right - left)
        witness_values(run, method, run.instants[3 + piece], run.samples[(3 + piece) * w :])
    count = 5
    for k in range(w):
        if piece_varies_fast(run, k, 0) or piece_varies_fast(run, k, 1):
            count = -5
    return count


def add_extrema(run: Run, method: Static, count: int) -> int:
    """Sample all functions at suspicious extrema; return how many samples there are then."""
    w = run.witnesses
    for piece in range(2):
        left, right = run.instants[piece], run.instants[piece + 1]
        for k in range(w):
            low, high = run.samples[piece * w + k], run.samples[(piece + 1) * w + k]
            d0 = run.slopes[piece * w + k] * (right - left)
            d1 = run.slopes[(piece + 1) * w + k] * (right - left)
            a = d0 + d1 - 2.0 * (high - low)
            b = 3.0 * (high - low) - 2.0 * d0 - d1
            root = sqrt(b * b - 3.0 * a * d0)
            q = -(b + root) if b >= 0.0 else -(b - root)
            for which in range(2):
                s = q / (3.0 * a) if which == 0 else d0 / q
                if is_suspect(s, low, high, d0, b, a):
                    count = add_sample(run, method, left + s * (right - left), count)
    sort_samples(run, count)
    return count


def all_far(run: Run, width: float) -> bool:
    """Tell whether no function can be zero in a stretch, as values and slopes at the ends say."""
    w = run.witnesses
    for k in range(w):
        run.fast[k] = 0
        low, middle, high = run.samples[k], run.samples[w + k], run.samples[2 * w + k]
        d_low, d_high = width * run.slopes[k], width * run.slopes[2 * w + k]
        if not is_far(low, middle, high, d_low, d_high):
            return False
    return True


def looks_closer(run: Run) -> bool:
    """Tell whether some function may be zero inside of a stretch."""
    w = run.witnesses
    for k in range(w):
        for piece in range(2):
            low, high = run.samples[piece * w + k], run.samples[(piece + 1) * w + k]
            width = run.instants[piece + 1] - run.instants[piece]
            d_low = run.slopes[piece * w + k] * width
            d_high = run.slopes[(piece + 1) * w + k] * width
            if is_near(low, high, d_low, d_high):
                return True
    return False


def piece_varies_fast(run: Run, k: int, piece: int) -> bool:
    """Tell whether a cubic misses the point inside of one of the two pieces of a stretch."""
    w = run.witnesses
    low, high = run.samples[piece * w + k], run.samples[(piece + 1) * w + k]
    inner = run.samples[(3 + piece) * w + k]
    width = run.instants[piece + 1] - run.instants[piece]
    d_low = run.slopes[piece * w + k] * width
    d_high = run.slopes[(piece + 1) * w + k] * width
    return does_not_fit(low, inner, high, d_low, d_high, 0.0, abs(d_low) + abs(d_high))


def leaving_mask(run: Run) -> int:
    """Return the mask of the functions that start on their surfaces."""
    mask = 0
    bit = 1
    for k in range(run.witnesses):
        if run.first[k] == 0.0:
            mask += bit
        bit *= 2
    return mask


def still_unseen(run: Run, unseen: int, count: int) -> int:
    """Return the mask of those functions out of some that are zero at all samples.

    It is negative if one is first seen where, by the equations, only a crossing can have led it.
    """
    w = run.witnesses
    mask = 0
    bit = 1
    for k in range(w):
        if unseen // bit % 2 == 1:
            position = 1
            while position < count and run.samples[run.order[position] * w + k] == 0.0:
                position += 1
            if position == count:
                mask += bit
            else:
                side = run.samples[run.order[position] * w + k]
                crossing = triggers(run.directions[k], -side, side)
                if crossing:
                    run.witness(run.time_old, run.x_old, run.env, run.slopes)
                    moves = tendency(run, k, run.time_old, run.x_old, run.slopes[k])
                    if moves * side < 0.0:
                        return -1
                    if moves == 0.0 and run.jumped * run.turning[k] == 1 and run.on_surface[k] == 1:
                        instant = run.instants[run.order[position]]
                        if begins_at_rest(run, k, instant, side):
                            return -1
        bit *= 2
    return mask


def tendency(run: Run, k: int, time: float, x: Floats, base: float) -> float:
    """Return 1.0 or -1.0 as a function grows or falls by the equations, 0.0 where unclear."""
    run.rhs(smaller(time, run.clip), x, run.env, run.x_new)
    run.evaluations += 1
    reach = REACH * (run.time_new - run.time_old)
    ahead = first_distance(run.time_old, run.time_new)
    known = 0.0
    while ahead > 0.0 and ahead <= reach:
        for i in range(run.n):
            run.staged[i] = x[i] + ahead * run.x_new[i]
        run.witness(time + ahead, run.staged, run.env, run.slopes[run.witnesses :])
        change = run.slopes[run.witnesses + k] - base
        if is_clear(known, change):
            return 1.0 if change > 0.0 else -1.0
        known = change
        ahead *= FURTHER
    return 0.0


def begins_at_rest(run: Run, k: int, time: float, value: float) -> bool:
    """Tell whether its first rate explains nothing of how a function came to a value.

    The rates of the states at the beginning of the step are there from `tendency`.
    """
    ahead = time - run.time_old
    for i in range(run.n):
        run.staged[i] = run.x_old[i] + ahead * run.x_new[i]
    run.witness(time, run.staged, run.env, run.slopes[run.witnesses :])
    base: float = run.slopes[k]
    predicted: float = run.slopes[run.witnesses + k] - base
    return abs(predicted) < RESTING * abs(value - base)


def slope(run: Run, method: Static, time: float, toward: float, here: Floats, out: Floats) -> None:
    """Compute the slopes of all functions at a time by differences."""
    witness_values(run, method, time + toward, out)
    for k in range(run.witnesses):
        out[k] = (out[k] - here[k]) / toward


def is_suspect(s: float, low: float, high: float, d0: float, b: float, a: float) -> bool:
    """Tell whether a cubic piece has an extremum at s that may change the sign."""
    if not (s > 1e-12 and s < 1.0 - 1e-12):
        return False
    peak = low + s * (d0 + s * (b + s * a))
    scale = abs(d0) + abs(b) + abs(a)
    return peak * low <= 0.0 or peak * high <= 0.0 or abs(peak) < 1e-3 * scale


def add_sample(run: Run, method: Static, time: float, count: int) -> int:
    """Sample the functions at one more time, unless it is known; return how many there are."""
    for e in range(count):
        if run.instants[e] == time:
            return count
    run.instants[count] = time
    witness_values(run, method, time, run.samples[count * run.witnesses :])
    return count + 1


def sort_samples(run: Run, count: int) -> None:
    """Put the samples in the order of time."""
    for e in range(count):
        place = e
        while place > 0 and run.instants[run.order[place - 1]] > run.instants[e]:
            run.order[place] = run.order[place - 1]
            place -= 1
        run.order[place] = e


def first_trigger(run: Run, k: int, count: int) -> int:
    """Return the position of the first sample at which a function has triggered, or zero."""
    w = run.witnesses
    for position in range(1, count):
        before = run.samples[run.order[position - 1] * w + k]
        after = run.samples[run.order[position] * w + k]
        if triggers(run.directions[k], before, after):
            return position
    return 0


def value_at(run: Run, method: Static, k: int, time: float) -> float:
    """Return one function at a time inside of the step."""
    witness_values(run, method, time, run.slopes)
    value: float = run.slopes[k]
    return value


def narrow(run: Run, method: Static, k: int, at: int) -> float:
    """Return a time at which a function has triggered, as close to its zero as time resolves.

    It is infinite when the function is undefined on the way there.
    """
    w = run.witnesses
    low, high = run.instants[run.order[at - 1]], run.instants[run.order[at]]
    f_low = run.samples[run.order[at - 1] * w + k]
    f_high = run.samples[run.order[at] * w + k]
    resolution: float = 4.0 * spacing(larger(abs(low), abs(high)))
    start_search(run.search, low, high, f_low, f_high)
    while next_look(run.search, resolution):
        run.search[VALUE] = value_at(run, method, k, run.search[NOW])
    root: float = run.search[NOW]
    margin = 0.0
    time = smaller(root + margin, high)
    while time < high:
        value = value_at(run, method, k, time)
        if value * 0.0 != 0.0:
            return INFINITY
        if triggers(run.directions[k], f_low, value):
            beyond = smaller(time + resolution, high)
            # An update that turns the function around cannot be seen to do so at exactly zero.
            if value != 0.0 or run.turning[k] == 0:
                return time
            if value_at(run, method, k, beyond) * f_low < 0.0:
                return beyond
            return time
        margin = larger(resolution, 2.0 * margin)
        time = smaller(root + margin, high)
    return float(high)
