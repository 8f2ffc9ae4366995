"""Kernels that locate witness events inside of a step.

A sign check at the ends of a step misses whatever happens twice in between, such as a short hop of
a bouncing ball. Here every witness function is also looked at inside of the step: from values and
slopes at a few points cubic pieces are formed, and where the extremum of a piece has another sign
than its ends, the function itself is evaluated there. A cubic through the ends alone has to agree
with the point in between, in value and slope; where it does not, the function varies too fast to
be known by these points, and shorter stretches of the step are checked one after the other.

Every change of sign so found is narrowed down by Brent's method to the resolution of floating-point
time, and the earliest one wins. The event takes place at the late end of the last interval, so that
the function has reached or just passed zero.

Runs in Python call `profile` and `narrow` as functions of Python: see
`flexure.solvers.simulation.events.witnesses`.

A function that starts on its surface has to leave it as the equations say, and to come back so;
where the method sees something else, Python is to say what is wrong.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import (
    INFINITY,
    all_finite,
    larger,
    smaller,
    spacing,
)
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.kernels.parts.run_samples import (
    all_far,
    first_trigger,
    forget_old_events,
    is_suspect,
    leaving_mask,
    looks_closer,
    may_miss,
    note_peaks,
    piece_varies_fast,
    some_vary_fast,
    sort_samples,
    triggers,
)
from flexure.solvers.native.kernels.parts.zero_search import (
    FURTHER,
    MIDDLE,
    MOST_STRETCHES,
    NOW,
    REACH,
    RESTING,
    VALUE,
    end_of_stretch,
    first_distance,
    is_clear,
    next_look,
    shortest_stretch,
    start_search,
)
from flexure.solvers.native.kernels.steps.stepping import state_inside
from flexure.solvers.native.language.language import Floats, Static, sqrt

APART = True
SLOPE_STEP = 1e-7
NOTHING = 0
FOUND = 1
UNDEFINED = 2


def witness_values(run: Run, method: Static, time: float, out: Floats) -> None:
    """Compute all witness functions at a time inside of the last step."""
    point = run.step.point
    if run.system.n > 0:
        state_inside(run, method, time, point)
    run.witnesses.values(time, point, run.system.env, out)


def first_values(run: Run) -> bool:
    """Compute the functions at the start of a motion; tell whether they are finite.

    A function that has just triggered and still is where it triggered counts as zero.
    """
    witnesses = run.witnesses
    witnesses.values(run.step.time, run.step.x, run.system.env, witnesses.first)
    total = 0.0
    for k in range(witnesses.count):
        if witnesses.on_surface[k] == 1 and witnesses.first[k] == witnesses.surface[k]:
            witnesses.first[k] = 0.0
        total += witnesses.first[k] * 0.0
    witnesses.known, witnesses.stirred = 1, 0
    return total == 0.0


def find_jumps(run: Run) -> int:
    """Look for functions that updates have made jump through zero since they were known.

    What is found is the mask ``witnesses.crossed``, and noted in ``witnesses.leaping``.
    """
    step, witnesses = run.step, run.witnesses
    witnesses.stirred = 0
    witnesses.values(step.time, step.x, run.system.env, witnesses.slopes)
    if not all_finite(witnesses.count, witnesses.slopes):
        return UNDEFINED
    mask = 0
    bit = 1
    for k in range(witnesses.count):
        if triggers(witnesses.directions[k], witnesses.first[k], witnesses.slopes[k]):
            mask += bit
            witnesses.leaping[k] = 1
        witnesses.first[k] = witnesses.slopes[k]
        bit *= 2
    witnesses.crossed = mask
    return FOUND if mask > 0 else NOTHING


def find_crossing(run: Run, method: Static) -> int:
    """Look for the earliest trigger in the last step.

    What is found is the mask ``witnesses.crossed`` and the time ``witnesses.time_crossed``; else
    the functions at the end of the step become those at the start of the next.
    """
    witnesses = run.witnesses
    w = witnesses.count
    end = run.step.time_new
    shortest = shortest_stretch(run.step.time_old, end)
    low = run.step.time_old
    width = smaller(end - low, witnesses.longest)
    left = MOST_STRETCHES
    asked = 25 * MOST_STRETCHES
    leaving = leaving_mask(witnesses)
    unseen = leaving
    for k in range(w):
        witnesses.peaks[k] = 0.0
    while True:
        high = end_of_stretch(low, width, end)
        if width < witnesses.longest:
            left -= 1
        asked -= 1
        if asked <= 0:
            return UNDEFINED  # what takes long has to hear the interrupt key
        count = profile(run, method, low, high, width > shortest)
        if not all_finite((count if count > 0 else -count) * w, witnesses.samples):
            return UNDEFINED
        if left <= 0 or (width <= shortest and may_miss(witnesses, count)):
            return UNDEFINED  # Python says what may have been missed
        if count < 0:
            note_peaks(witnesses, -count)
            width = larger(0.5 * (high - low), shortest)
            continue
        unseen = still_unseen(run, unseen, count)
        if unseen < 0:
            return UNDEFINED
        found = first_crossing(run, method, count, leaving)
        if found != NOTHING:
            return found
        last = witnesses.samples[witnesses.order[count - 1] * w :]
        for k in range(w):
            witnesses.first[k] = last[k]
        if high == end:
            forget_old_events(witnesses)
            return NOTHING
        low = high
        width = smaller(2.0 * width, witnesses.longest)


def first_crossing(run: Run, method: Static, count: int, leaving: int) -> int:
    """Look for the earliest trigger among the samples of a stretch."""
    witnesses = run.witnesses
    w = witnesses.count
    best = INFINITY
    for k in range(w):
        at = first_trigger(witnesses, k, count)
        if at > 0 and witnesses.instants[witnesses.order[at - 1]] < best:
            time = narrow(run, method, k, at)
            if not time < INFINITY:
                return UNDEFINED
            best = smaller(best, time)
    if best == INFINITY:
        return NOTHING
    # The values before are those of the last sample before the event.
    position = 0
    while position < count - 1 and witnesses.instants[witnesses.order[position + 1]] < best:
        position += 1
    before = witnesses.samples[witnesses.order[position] * w :]
    witness_values(run, method, best, witnesses.slopes)
    mask = 0
    bit = 1
    for k in range(w):
        if triggers(witnesses.directions[k], before[k], witnesses.slopes[k]):
            mask += bit
            recent = leaving // bit % 2 == 1 or witnesses.on_surface[k] > 0
            if recent and witnesses.turning[k] == 1:
                # By the equations it must not move away; the state is still that of this time.
                value = witnesses.slopes[k]
                moves = tendency(run, k, best, run.step.point, value)
                if moves * before[k] > 0.0 and (value + moves) * before[k] > 0.0:  # no jump there
                    return UNDEFINED
        bit *= 2
    bit = 1
    forget_old_events(witnesses)
    for k in range(w):
        witnesses.first[k] = witnesses.slopes[k]
        if mask // bit % 2 == 1:
            witnesses.on_surface[k] = 1
            witnesses.surface[k] = witnesses.slopes[k]
            witnesses.first[k] = 0.0
        bit *= 2
    witnesses.crossed = mask
    witnesses.time_crossed = best
    witnesses.jumped = 0
    return FOUND


def profile(run: Run, method: Static, start: float, end: float, shorten: bool) -> int:
    """Sample all functions at the ends of a stretch, between them and at suspicious extrema.

    Returns how many samples there are; their negative number where some function varies too fast
    for that, and the stretch may be shortened.
    """
    witnesses = run.witnesses
    w = witnesses.count
    width = end - start
    middle = start + MIDDLE * width
    witnesses.instants[0] = start
    witnesses.instants[1] = middle
    witnesses.instants[2] = end
    leaving = False
    for k in range(w):
        witnesses.samples[k] = witnesses.first[k]
        if witnesses.first[k] == 0.0:
            leaving = True
    if middle > start:
        witness_values(run, method, middle, witnesses.samples[w:])
    else:  # in the shortest of steps
        for k in range(w):
            witnesses.samples[w + k] = witnesses.first[k]
    witness_values(run, method, end, witnesses.samples[2 * w :])
    close = smaller(1e5 * spacing(larger(abs(start), abs(end))), 0.25 * width)
    delta = larger(SLOPE_STEP * width, close)
    if leaving:
        # A function that starts on its surface may be back there soon: look closely.
        for k in range(w):
            witnesses.slopes[3 * w + k] = witnesses.first[k]
            if witnesses.first[k] == 0.0 and witnesses.on_surface[k] == 1:
                witnesses.slopes[3 * w + k] = witnesses.surface[k]  # what it is indeed
        slope(run, method, start, close, witnesses.slopes[3 * w :], witnesses.slopes)
    else:
        slope(run, method, start, delta, witnesses.samples, witnesses.slopes)
    slope(run, method, end, -delta, witnesses.samples[2 * w :], witnesses.slopes[2 * w :])
    count = 3
    if all_far(witnesses, width):
        sort_samples(witnesses, count)
        return count
    slope(run, method, middle, delta, witnesses.samples[w:], witnesses.slopes[w:])
    if some_vary_fast(witnesses, width) and shorten:
        return -count
    if looks_closer(witnesses):
        count = look_closer(run, method)
        if count < 0 and shorten:
            return count
        count = 5
    return add_extrema(run, method, count)


def look_closer(run: Run, method: Static) -> int:
    """Sample all functions in both pieces; return the number of samples, as `profile` does."""
    witnesses = run.witnesses
    w = witnesses.count
    for piece in range(2):
        left, right = witnesses.instants[piece], witnesses.instants[piece + 1]
        witnesses.instants[3 + piece] = left + MIDDLE * (right - left)
        inside = witnesses.samples[(3 + piece) * w :]
        witness_values(run, method, witnesses.instants[3 + piece], inside)
    count = 5
    for k in range(w):
        if piece_varies_fast(witnesses, k, 0) or piece_varies_fast(witnesses, k, 1):
            if witnesses.fast[k] == 0:
                witnesses.fast[k] = 1
            count = -5
    return count


def add_extrema(run: Run, method: Static, count: int) -> int:
    """Sample all functions at suspicious extrema; return how many samples there are then."""
    witnesses = run.witnesses
    w = witnesses.count
    for piece in range(2):
        left, right = witnesses.instants[piece], witnesses.instants[piece + 1]
        for k in range(w):
            low, high = witnesses.samples[piece * w + k], witnesses.samples[(piece + 1) * w + k]
            d0 = witnesses.slopes[piece * w + k] * (right - left)
            d1 = witnesses.slopes[(piece + 1) * w + k] * (right - left)
            a = d0 + d1 - 2.0 * (high - low)
            b = 3.0 * (high - low) - 2.0 * d0 - d1
            root = sqrt(b * b - 3.0 * a * d0)
            q = -(b + root) if b >= 0.0 else -(b - root)
            for which in range(2):
                s = q / (3.0 * a) if which == 0 else d0 / q
                if is_suspect(s, low, high, d0, b, a):
                    count = add_sample(run, method, left + s * (right - left), count)
    sort_samples(witnesses, count)
    return count


def still_unseen(run: Run, unseen: int, count: int) -> int:
    """Return the mask of those functions out of some that are zero at all samples.

    It is negative if one is first seen where, by the equations, only a crossing can have led it.
    """
    step, witnesses = run.step, run.witnesses
    w = witnesses.count
    mask = 0
    bit = 1
    for k in range(w):
        if unseen // bit % 2 == 1:
            position = 1
            while position < count and witnesses.samples[witnesses.order[position] * w + k] == 0.0:
                position += 1
            if position == count:
                mask += bit
            else:
                side = witnesses.samples[witnesses.order[position] * w + k]
                crossing = triggers(witnesses.directions[k], -side, side)
                if crossing:
                    witnesses.values(step.time_old, step.x_old, run.system.env, witnesses.slopes)
                    moves = tendency(run, k, step.time_old, step.x_old, witnesses.slopes[k])
                    if moves * side < 0.0:
                        return -1
                    turned = witnesses.jumped * witnesses.turning[k] == 1
                    if moves == 0.0 and turned and witnesses.on_surface[k] == 1:
                        instant = witnesses.instants[witnesses.order[position]]
                        if begins_at_rest(run, k, instant, side):
                            return -1
        bit *= 2
    return mask


def tendency(run: Run, k: int, time: float, x: Floats, base: float) -> float:
    """Return by how much a function grows or falls next by the equations, 0.0 where unclear."""
    step, witnesses, staged = run.step, run.witnesses, run.updates.staged
    there = witnesses.slopes[witnesses.count :]
    run.system.rhs(smaller(time, step.clip), x, run.system.env, step.x_new)
    run.counts.evaluations += 1
    reach = REACH * (step.time_new - step.time_old)
    ahead = first_distance(step.time_old, step.time_new)
    known = 0.0
    while ahead > 0.0 and ahead <= reach:
        for i in range(run.system.n):
            staged[i] = x[i] + ahead * step.x_new[i]
        witnesses.values(time + ahead, staged, run.system.env, there)
        change: float = there[k] - base
        if is_clear(known, change):
            return change
        known = change
        ahead *= FURTHER
    return 0.0


def begins_at_rest(run: Run, k: int, time: float, value: float) -> bool:
    """Return whether its first rate explains nothing of how a function came to a value.

    The rates of the states at the beginning of the step are there from `tendency`.
    """
    step, witnesses, staged = run.step, run.witnesses, run.updates.staged
    there = witnesses.slopes[witnesses.count :]
    ahead = time - step.time_old
    for i in range(run.system.n):
        staged[i] = step.x_old[i] + ahead * step.x_new[i]
    witnesses.values(time, staged, run.system.env, there)
    base: float = witnesses.slopes[k]
    predicted: float = there[k] - base
    return abs(predicted) < RESTING * abs(value - base)


def slope(run: Run, method: Static, time: float, toward: float, here: Floats, out: Floats) -> None:
    """Compute the slopes of all functions at a time by differences."""
    witness_values(run, method, time + toward, out)
    for k in range(run.witnesses.count):
        out[k] = (out[k] - here[k]) / toward


def add_sample(run: Run, method: Static, time: float, count: int) -> int:
    """Sample the functions at one more time, unless it is known; return how many there are."""
    witnesses = run.witnesses
    for e in range(count):
        if witnesses.instants[e] == time:
            return count
    witnesses.instants[count] = time
    witness_values(run, method, time, witnesses.samples[count * witnesses.count :])
    return count + 1


def value_at(run: Run, method: Static, k: int, time: float) -> float:
    """Return one function at a time inside of the step."""
    witnesses = run.witnesses
    witness_values(run, method, time, witnesses.slopes)
    value: float = witnesses.slopes[k]
    return value


def narrow(run: Run, method: Static, k: int, at: int) -> float:
    """Return a time at which a function has triggered, as close to its zero as time resolves.

    It is infinite when the function is undefined on the way there.
    """
    witnesses = run.witnesses
    w = witnesses.count
    low, high = witnesses.instants[witnesses.order[at - 1]], witnesses.instants[witnesses.order[at]]
    f_low = witnesses.samples[witnesses.order[at - 1] * w + k]
    f_high = witnesses.samples[witnesses.order[at] * w + k]
    resolution: float = 4.0 * spacing(larger(abs(low), abs(high)))
    start_search(witnesses.search, low, high, f_low, f_high)
    while next_look(witnesses.search, resolution):
        witnesses.search[VALUE] = value_at(run, method, k, witnesses.search[NOW])
    root: float = witnesses.search[NOW]
    margin = 0.0
    time = smaller(root + margin, high)
    while time < high:
        value = value_at(run, method, k, time)
        if value * 0.0 != 0.0:
            return INFINITY
        if triggers(witnesses.directions[k], f_low, value):
            beyond = smaller(time + resolution, high)
            # An update that turns the function around cannot be seen to do so at exactly zero.
            if value != 0.0 or witnesses.turning[k] == 0:
                return time
            if value_at(run, method, k, beyond) * f_low < 0.0:
                return beyond
            return time
        margin = larger(resolution, 2.0 * margin)
        time = smaller(root + margin, high)
    return float(high)
