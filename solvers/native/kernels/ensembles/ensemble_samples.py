"""The samples of an ensemble: signals inside of good steps and where motions begin.

The samples of a step are taken in all lanes at once as long as many lanes have some left. The
remaining samples of a lane whose step is much longer follow after that: consecutive ones, each in a
lane of its own. The operations are the same, and so are the numbers.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.ensembles.ensemble_data import Ensemble
from flexure.solvers.native.kernels.steps import explicit, rosenbrock
from flexure.solvers.native.language.language import (
    Mask,
    Real,
    Reals,
    Static,
    any_lane,
    lane,
    lanes_in,
    where,
    with_lane,
)

APART = True
MANY = 4  # one of so many lanes has to have samples left, for all lanes to take one


def sample_at_rest(ensemble: Ensemble, starting: Mask) -> None:
    """Sample where motions begin."""
    system, lanes, step = ensemble.system, ensemble.lanes, ensemble.step
    due = starting and lanes.sample_time[0] <= step.time[0]
    while any_lane(due):
        time = where(due, lanes.sample_time[0], step.time[0])
        system.signals(time, step.x, system.env, ensemble.samples.sample)
        keep(ensemble, due)
        due = starting and lanes.sample_time[0] <= step.time[0]


def sample_inside(ensemble: Ensemble, method: Static, good: Mask) -> None:
    """Sample inside of good steps, and at their ends unless updates come first."""
    system, lanes, step = ensemble.system, ensemble.lanes, ensemble.step
    n, begin, end, until = system.n, step.time[0], step.end[0], step.until[0]
    x, x_new, work, q, shift = step.x, step.x_new, step.work, step.q, ensemble.manifold.shift
    due = good and lanes.sample_time[0] <= until
    while MANY * lanes_in(due) > lanes.count:
        time = where(due, lanes.sample_time[0], end)
        find_state(method, n, time, begin, end, x, x_new, q, work)
        if ensemble.manifold.any_moved > 0:
            add_shift(n, time, begin, end, shift, work)
        system.signals(time, work, system.env, ensemble.samples.sample)
        keep(ensemble, due)
        due = good and lanes.sample_time[0] <= until
    if any_lane(due):
        for place in range(lanes.count):
            if lane(due, place):
                sample_along(ensemble, method, place)


def find_bends(ensemble: Ensemble, method: Static) -> None:
    """Compute the coefficients of the interpolants of all steps."""
    system, step = ensemble.system, ensemble.step
    n, x, k, q, clip = system.n, step.x, step.k, step.q, step.clip[0]
    begin = step.time[0]
    h, end = step.end[0] - begin, step.x_new
    if ensemble.manifold.any_moved > 0:
        end = ensemble.manifold.landed
    if method.linear:
        rosenbrock.bends(method.tableau, n, x, end, k[n:], q)
    else:
        env, work = system.env, step.work
        explicit.bends(method.tableau, n, system.rhs, begin, h, clip, x, end, work, k, env, q)


def add_shift(n: int, time: Real, begin: Real, end: Real, shift: Reals, out: Reals) -> None:
    """Add what the displacement of the end of a step makes inside of it."""
    s = (time - begin) / (end - begin)
    part = where(time == end, 0.0, s * s * (3.0 - 2.0 * s))
    for i in range(n):
        out[i] += part * shift[i]


def find_state(
    method: Static,
    n: int,
    time: Real,
    begin: Real,
    end: Real,
    x: Reals,
    x_new: Reals,
    q: Reals,
    out: Reals,
) -> None:
    """Compute the state at a time inside of a step, or at its end."""
    h = end - begin
    if method.linear:
        rosenbrock.point_inside(n, (time - begin) / h, x, q, out)
    else:
        explicit.point_inside(method.tableau, n, (time - begin) / h, h, x, q, out)
    for i in range(n):
        out[i] = where(time == end, x_new[i], out[i])


def keep(ensemble: Ensemble, due: Mask) -> None:
    """Store a sample of each lane in which one is due."""
    samples, lanes = ensemble.samples, ensemble.lanes
    for place in range(lanes.count):
        if lane(due, place):
            which = lanes.sample_of[place]
            first = (lanes.run_of[place] * samples.count + which) * samples.width
            for s in range(samples.width):
                samples.values[first + s] = lane(samples.sample[s], place)
            lanes.sample_of[place] = which + 1
            lanes.sample_time[0] = with_lane(lanes.sample_time[0], place, samples.times[which + 1])


def sample_along(ensemble: Ensemble, method: Static, place: int) -> None:
    """Take all samples of the step in one lane, consecutive ones in all lanes at once."""
    system, lanes, step, samples = ensemble.system, ensemble.lanes, ensemble.step, ensemble.samples
    n, last = system.n, float(lane(step.until[0], place))
    begin: Real = lane(step.time[0], place)
    end: Real = lane(step.end[0], place)
    for i in range(n):
        samples.x[i] = lane(step.x[i], place)
        samples.x_new[i] = lane(step.x_new[i], place)
    if ensemble.manifold.any_moved > 0:
        for i in range(n):
            ensemble.manifold.shift_of_one[i] = lane(ensemble.manifold.shift[i], place)
    for i in range(samples.bends * n):
        samples.q[i] = lane(step.q[i], place)
    for d in range(samples.reads):
        e = samples.places[d]
        samples.env[e] = lane(system.env[e], place)
    which = lanes.sample_of[place]
    while samples.times[which] <= last:
        for other in range(lanes.count):
            number = samples.times[which + other]
            samples.time[0] = with_lane(samples.time[0], other, number)
        due = samples.time[0] <= last
        time = where(due, samples.time[0], end)
        find_state(method, n, time, begin, end, samples.x, samples.x_new, samples.q, samples.work)
        if ensemble.manifold.any_moved > 0:
            add_shift(n, time, begin, end, ensemble.manifold.shift_of_one, samples.work)
        system.signals(time, samples.work, samples.env, samples.sample)
        count = lanes_in(due)
        for other in range(count):
            first = (lanes.run_of[place] * samples.count + which + other) * samples.width
            for s in range(samples.width):
                samples.values[first + s] = lane(samples.sample[s], other)
        which += count
    lanes.sample_of[place] = which
    lanes.sample_time[0] = with_lane(lanes.sample_time[0], place, samples.times[which])
