"""The trail of an ensemble: what signals do inside of every good step, for figures of the runs.

A signal is taken to be the polynomial through its values at a few nodes of a piece of time. Where
that misses the signal at one point more, the piece is halved. So a signal that is as smooth as the
states takes a piece for each step, and where it bends or jumps, the pieces close in on the place.
The shortest pieces of a jump are straight, so that no value is beyond those before and after.
Pieces that one polynomial describes as well are joined, as where a method takes short steps for the
sake of its stability.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.ensembles.ensemble_data import Ensemble, TrailData
from flexure.solvers.native.kernels.ensembles.ensemble_samples import add_shift, find_state
from flexure.solvers.native.kernels.parts.arithmetic import larger, smaller
from flexure.solvers.native.language.language import (
    Mask,
    Real,
    Static,
    any_lane,
    lane,
    unrolled,
    where,
    with_lane,
)
from flexure.solvers.results.measures.polynomials import (
    CHECK,
    CHECK_WEIGHTS,
    COARSE,
    NODES,
    NORMS,
    ROUGH,
    SHORTEST,
)

APART = True
LAST = len(NODES) - 1
FEW = 250  # pieces that are tried in a step, until signals may be missed by more


def follow(ensemble: Ensemble, method: Static, good: Mask) -> None:
    """Add the pieces of all good steps."""
    step, trail = ensemble.step, ensemble.trail
    stop = step.end[0]
    a, b, due = step.time[0], stop, good
    shortest, tolerance = SHORTEST * (stop - a), trail.tolerance
    tries = 0
    note_begin(ensemble, good)
    while any_lane(due):
        for k in unrolled(1, len(NODES)):
            inner = a + (b - a) * (0.5 * (1.0 + NODES[k]))
            if k == LAST:
                inner = b
            look(ensemble, method, k, where(due, inner, stop), due)
        tries += 1
        if tries > FEW and tolerance < COARSE:
            tolerance = COARSE
        if tries > trail.most:
            shortest = stop - step.time[0]
        inner = a + (b - a) * (0.5 * (1.0 + CHECK))
        look(ensemble, method, LAST + 1, where(due, inner, stop), due)
        worst = miss(trail, 0, tolerance)
        if tries > FEW:  # by chance, one place may fit
            inner = a + (b - a) * (0.5 * (1.0 - CHECK))
            look(ensemble, method, LAST + 1, where(due, inner, stop), due)
            worst = larger(worst, miss(trail, 1, tolerance))
            if tries > trail.most:
                note_rough(trail, due)
        middle = 0.5 * (a + b)
        divisible = b - a > shortest and a < middle and middle < b
        done = due and not (worst > 0.0 and divisible)
        if tries <= trail.most and any_lane(done and worst > 0.0):
            straighten(trail, done and worst > 0.0)
        add(ensemble, done, a, b)
        for s in range(trail.width):
            trail.inside[s] = where(done, trail.inside[LAST * trail.width + s], trail.inside[s])
        a = where(done, b, a)
        b = where(done, stop, where(due, middle, b))
        due = good and a < stop


def note_begin(ensemble: Ensemble, good: Mask) -> None:
    """Find the signals where steps begin: where the last ones ended, unless a motion begins."""
    system, step, trail = ensemble.system, ensemble.step, ensemble.trail
    fresh = good and trail.fresh[0] > 0.0
    if any_lane(fresh):
        system.signals(step.time[0], step.x, system.env, ensemble.samples.sample)
        for s in range(trail.width):
            value = ensemble.samples.sample[trail.which[s]]
            trail.inside[s] = where(fresh, value, trail.inside[s])
            trail.scale[s] = where(fresh, larger(abs(value), trail.scale[s]), trail.scale[s])
        for place in range(ensemble.lanes.count):
            if lane(fresh, place):
                close(ensemble, place)
        trail.fresh[0] = where(fresh, 0.0, trail.fresh[0])


def look(ensemble: Ensemble, method: Static, k: int, inner: Real, due: Mask) -> None:
    """Find the signals at a time inside of the steps, for a node or the check."""
    system, step, trail, work = ensemble.system, ensemble.step, ensemble.trail, ensemble.step.work
    n, begin, end = system.n, step.time[0], step.end[0]
    time = smaller(inner, step.clip[0])
    find_state(method, n, time, begin, end, step.x, step.x_new, step.q, work)
    if ensemble.manifold.any_moved > 0:
        add_shift(n, time, begin, end, ensemble.manifold.shift, work)
    system.signals(time, work, system.env, ensemble.samples.sample)
    for s in range(trail.width):
        value = ensemble.samples.sample[trail.which[s]]
        trail.inside[k * trail.width + s] = value
        trail.scale[s] = where(due, larger(abs(value), trail.scale[s]), trail.scale[s])


def miss(trail: TrailData, sign: Static, tolerance: float) -> Real:
    """Return by how much polynomials miss signals at a check, beyond what they may."""
    worst: Real = 0.0
    for s in range(trail.width):
        worst = larger(worst, miss_of(trail, s, sign, tolerance))
    return worst


def miss_of(trail: TrailData, s: int, sign: Static, tolerance: float) -> Real:
    """Return by how much the polynomial misses one signal, beyond what it may."""
    value: Real = 0.0
    for k in unrolled(len(NODES)):
        weight = CHECK_WEIGHTS[k] if sign == 0 else CHECK_WEIGHTS[LAST - k]
        value += weight * trail.inside[k * trail.width + s]
    value -= trail.inside[(LAST + 1) * trail.width + s]
    beyond: Real = abs(value) - tolerance * trail.scale[s]
    return beyond


def note_rough(trail: TrailData, due: Mask) -> None:
    """Note a signal that is missed at the second check."""
    for s in range(trail.width):
        if any_lane(due and miss_of(trail, s, 1, ROUGH) > 0.0):
            trail.rough = s + 1


def straighten(trail: TrailData, jumps: Mask) -> None:
    """Make pieces straight from begin to end."""
    for s in range(trail.width):
        first, last = trail.inside[s], trail.inside[LAST * trail.width + s]
        for k in unrolled(1, LAST):
            part, place = 0.5 * (1.0 + NODES[k]), k * trail.width + s
            between = (1.0 - part) * first + part * last
            trail.inside[place] = where(jumps, between, trail.inside[place])


def add(ensemble: Ensemble, done: Mask, a: Real, b: Real) -> None:
    """Join pieces to those that are open, or write these and open the others."""
    trail = ensemble.trail
    joined = done and trail.open[0] > 0.0
    if any_lane(joined):
        joined = joined and misfit(trail, a, b) <= 0.0
    for place in range(ensemble.lanes.count):
        if lane(done, place) and not lane(joined, place):
            close(ensemble, place)
    trail.begin[0] = where(done and not joined, a, trail.begin[0])
    trail.end[0] = where(done, b, trail.end[0])
    trail.open[0] = where(done, 1.0, trail.open[0])
    for s in range(len(NODES) * trail.width):
        new = where(joined, trail.both[s], trail.inside[s])
        trail.before[s] = where(done, new, trail.before[s])


def misfit(trail: TrailData, a: Real, b: Real) -> Real:
    """Find one polynomial for open pieces and the next ones, and by how much it misses these."""
    width, begin = trail.width, trail.begin[0]
    length = b - begin
    for s in range(width):
        trail.both[s] = trail.before[s]
        trail.both[LAST * width + s] = trail.inside[LAST * width + s]
    for k in unrolled(1, LAST):
        show(trail, begin + length * (0.5 * (1.0 + NODES[k])), a, b, k)
    worst: Real = 0.0
    for sign in unrolled(2):
        check = CHECK if sign == 0 else -CHECK
        show(trail, begin + length * (0.5 * (1.0 + check)), a, b, len(NODES))
        for s in range(width):
            value: Real = 0.0
            for k in unrolled(len(NODES)):
                weight = CHECK_WEIGHTS[k] if sign == 0 else CHECK_WEIGHTS[LAST - k]
                value += weight * trail.both[k * width + s]
            away = abs(value - trail.both[len(NODES) * width + s])
            worst = larger(worst, away - trail.tolerance * trail.scale[s])
    find_basis(trail, 2.0 * (a - begin) / length - 1.0)
    for s in range(width):
        between: Real = 0.0
        for k in unrolled(len(NODES)):
            between += trail.basis[k] * trail.both[k * width + s]
        away = abs(between - trail.inside[s])
        worst = larger(worst, away - trail.tolerance * trail.scale[s])
    return worst


def show(trail: TrailData, time: Real, a: Real, b: Real, k: int) -> None:
    """Find the signals at a time, in open pieces or in the next ones."""
    width = trail.width
    early: Mask = time < a
    first, last = where(early, trail.begin[0], a), where(early, a, b)
    find_basis(trail, 2.0 * (time - first) / (last - first) - 1.0)
    for s in range(width):
        base = where(early, trail.before[s], trail.inside[s])
        value: Real = base  # so that what is constant stays so to the last bit
        for j in unrolled(1, len(NODES)):
            known = where(early, trail.before[j * width + s], trail.inside[j * width + s])
            value += trail.basis[j] * (known - base)
        trail.both[k * width + s] = value


def find_basis(trail: TrailData, z: Real) -> None:
    """Find at a place the polynomials that are 1 at one node and zero at all others."""
    for j in unrolled(len(NODES)):
        value: Real = NORMS[j]
        for i in unrolled(len(NODES)):
            if i != j:
                value = value * (z - NODES[i])
        trail.basis[j] = value


def close(ensemble: Ensemble, place: int) -> None:
    """Write the open piece of one lane, if there is one."""
    trail = ensemble.trail
    if lane(trail.open[0], place) > 0.0:
        first = trail.count * trail.size
        trail.rows[first] = float(ensemble.lanes.run_of[place])
        trail.rows[first + 1] = lane(trail.begin[0], place)
        trail.rows[first + 2] = lane(trail.end[0], place)
        for s in range(len(NODES) * trail.width):
            trail.rows[first + 3 + s] = lane(trail.before[s], place)
        trail.count += 1
        trail.open[0] = with_lane(trail.open[0], place, 0.0)
