"""Kernels that locate witness events inside of a step.

They do what `flexure.solvers.witnesses` does, in the same order and with the same numbers: look for
changes of sign at the ends, at the middle, and at extrema between them; narrow every one down with
Brent's method; and take the earliest.
"""

from __future__ import annotations

from flexure.solvers.native.arithmetic import INFINITY, larger, smaller, spacing
from flexure.solvers.native.language import Floats, Static, sqrt
from flexure.solvers.native.run import Run
from flexure.solvers.native.stepping import state_inside

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
        run.on_surface[k] = 0
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
    count = profile(run, method)
    for e in range(count * w):
        if run.samples[e] * 0.0 != 0.0:
            return UNDEFINED
    best = INFINITY
    for k in range(w):
        at = first_trigger(run, k, count)
        if at > 0 and run.instants[run.order[at - 1]] < best:
            time = narrow(run, method, k, at)
            if not time < INFINITY:
                return UNDEFINED
            best = smaller(best, time)
    if best == INFINITY:
        for k in range(w):
            run.first[k] = run.samples[run.order[count - 1] * w + k]
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
            run.on_surface[k] = 1
            run.surface[k] = run.slopes[k]
        bit *= 2
    run.crossed = mask
    run.time_crossed = best
    return FOUND


def profile(run: Run, method: Static) -> int:
    """Sample all functions at the ends, the middle and at suspicious extrema; return how many."""
    w = run.witnesses
    start, end = run.time_old, run.time_new
    width = end - start
    middle = start + 0.5 * width
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
        witness_values(run, method, start, run.slopes)
        slope(run, method, start, close, run.slopes, run.slopes[3 * w :])
        for k in range(w):
            run.slopes[k] = run.slopes[3 * w + k]
    else:
        slope(run, method, start, delta, run.samples, run.slopes)
    slope(run, method, middle, delta, run.samples[w:], run.slopes[w:])
    slope(run, method, end, -delta, run.samples[2 * w :], run.slopes[2 * w :])
    count = 3
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
    root = brent(run, method, k, low, high, f_low, f_high, resolution)
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


def brent(  # noqa: C901, an algorithm in one piece
    run: Run,
    method: Static,
    k: int,
    low: float,
    high: float,
    f_low: float,
    f_high: float,
    resolution: float,
) -> float:
    """Find a zero between two times by Brent's method, as `scipy.optimize.brentq` does."""
    before, now, other = low, high, 0.0
    f_before, f_now, f_other = f_low, f_high, 0.0
    step_before, step = 0.0, 0.0
    if f_low == 0.0:
        return low
    for _ in range(100):
        if f_now == 0.0:
            return now
        if f_before != 0.0 and (f_before < 0.0) != (f_now < 0.0):
            other = before
            f_other = f_before
            step_before = now - before
            step = step_before
        if abs(f_other) < abs(f_now):
            before = now
            now = other
            other = before
            f_before = f_now
            f_now = f_other
            f_other = f_before
        delta = 0.5 * (resolution + 1e-15 * abs(now))
        half = 0.5 * (other - now)
        if f_now == 0.0 or abs(half) < delta:
            return now
        bisect = True
        if abs(step_before) > delta and abs(f_now) < abs(f_before):
            if before == other:
                trial = -f_now * (now - before) / (f_now - f_before)
            else:
                d_before = (f_before - f_now) / (before - now)
                d_other = (f_other - f_now) / (other - now)
                trial = (
                    -f_now
                    * (f_other * d_other - f_before * d_before)
                    / (d_other * d_before * (f_other - f_before))
                )
            if 2.0 * abs(trial) < smaller(abs(step_before), 3.0 * abs(half) - delta):
                step_before = step
                step = trial
                bisect = False
        if bisect:
            step_before = half
            step = half
        before = now
        f_before = f_now
        if abs(step) > delta:
            now += step
        elif half > 0.0:
            now += delta
        else:
            now -= delta
        f_now = value_at(run, method, k, now)
    return now
