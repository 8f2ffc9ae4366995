"""The kernel of an ensemble: many runs of one system, as many at once as there are lanes.

Every lane integrates a run of its own, with its own time and step. All lanes try a step together;
then each keeps it or tries a shorter one, by the rules of
`flexure.solvers.native.kernels.steps.stepping`. A lane whose run has ended takes the next one.
Nothing goes from lane to lane, so that the numbers of a run do not depend on which lane it is in,
nor on its neighbors.

The runs have no events but periodic updates. At a break time, and where updates are due, a lane
ends its motion and begins another.
"""

from __future__ import annotations

from flexure.solvers.integration.guard.progress_limits import (
    MARKS,
    STRIDE,
    carried_step,
    makes_slow_progress,
)
from flexure.solvers.integration.methods.step_control import LEAST_FACTOR, SAFETY, SMALLEST_ERROR
from flexure.solvers.native.kernels.ensembles.ensemble_data import Ensemble, LaneStepData
from flexure.solvers.native.kernels.ensembles.ensemble_samples import (
    find_bends,
    sample_at_rest,
    sample_inside,
)
from flexure.solvers.native.kernels.ensembles.ensemble_trail import close, follow
from flexure.solvers.native.kernels.ensembles.ensemble_updates import (
    note_due,
    place_lanes,
    run_updates,
    set_clocks,
)
from flexure.solvers.native.kernels.parts.arithmetic import INFINITY, larger, smaller, spacing
from flexure.solvers.native.kernels.steps import explicit
from flexure.solvers.native.kernels.steps.stepping import initial_step
from flexure.solvers.native.language.language import (
    Function,
    Mask,
    Real,
    Static,
    any_lane,
    lane,
    nextafter,
    power,
    unrolled,
    where,
    with_lane,
)

LEAST_STEP = 5e-323
FREE = -1  # the run of a lane that has none
# Beyond these errors the length of a step changes by the largest or the smallest factor.
LOWEST, HIGHEST = 1e-12, 1e12

# How a run ended
UNFINISHED = -1
COMPLETE = 0
NOT_FINITE = 1  # the equations, where a motion begins or within every short step
TOO_SMALL = 2  # the step, so that time does not advance
TOO_SLOW = 3  # the advance of time
ASTRAY = 4  # far from where it belongs

# How a call ended
FINISHED = 0
PAUSED = 1


def integrate(ensemble: Ensemble, method: Static) -> int:
    """Integrate all runs, or as far as the budget leads."""
    lanes = ensemble.lanes
    while True:
        while lanes.waiting > 0:
            lanes.waiting = 0
            load_runs(ensemble)
            begin_motions(ensemble, method)
        if lanes.working == 0:
            return FINISHED
        if (
            ensemble.budget <= 0
            or ensemble.trail.room - ensemble.trail.count < ensemble.trail.reserve
        ):
            return PAUSED
        ensemble.budget -= 1
        take_step(ensemble, method)


# Runs --------------------------------------------------------------------------------------


def load_runs(ensemble: Ensemble) -> None:
    """Give every free lane the next run."""
    runs, lanes = ensemble.runs, ensemble.lanes
    loaded = 0
    for place in range(lanes.count):
        if lanes.run_of[place] == FREE and runs.next < runs.count:
            load(ensemble, place, runs.next)
            runs.next += runs.apart
            loaded += 1
    lanes.working += loaded
    if loaded > 0:
        ensemble.prepare(0.0, ensemble.step.x, ensemble.system.env, ensemble.prepared)


def load(ensemble: Ensemble, place: int, which: int) -> None:
    """Put a run into a lane."""
    system, runs, lanes, step = ensemble.system, ensemble.runs, ensemble.lanes, ensemble.step
    n = system.n
    lanes.run_of[place] = which
    lanes.break_of[place] = which * runs.break_width
    lanes.sample_of[place] = 0
    for i in range(n):
        step.x[i] = with_lane(step.x[i], place, runs.initial[which * n + i])
    time = runs.starts[which]
    if ensemble.updates.count > 0:
        set_clocks(ensemble, place, time)
    for g in range(runs.given):
        e = runs.places[g]
        system.env[e] = with_lane(system.env[e], place, runs.table[which * runs.given + g])
    step.time[0] = with_lane(step.time[0], place, time)
    lanes.marks[place * MARKS] = time
    lanes.sample_time[0] = with_lane(lanes.sample_time[0], place, ensemble.samples.times[0])
    lanes.live[0] = with_lane(lanes.live[0], place, 1.0)
    lanes.starting[0] = with_lane(lanes.starting[0], place, 1.0)
    step.h[0] = with_lane(step.h[0], place, 0.0)
    step.error[0] = with_lane(step.error[0], place, 0.0)
    lanes.steps[0] = with_lane(lanes.steps[0], place, 0.0)
    lanes.review[0] = with_lane(lanes.review[0], place, STRIDE)
    ensemble.manifold.allowed[0] = with_lane(ensemble.manifold.allowed[0], place, 1.0)
    for s in range(ensemble.trail.width):
        ensemble.trail.scale[s] = with_lane(ensemble.trail.scale[s], place, 0.0)


def finish(ensemble: Ensemble, place: int, outcome: int) -> None:
    """Store what became of a run and free its lane."""
    lanes, step = ensemble.lanes, ensemble.step
    n, which = ensemble.system.n, lanes.run_of[place]
    close(ensemble, place)
    for i in range(n):
        ensemble.outcome.finals[which * n + i] = lane(step.x[i], place)
    ensemble.outcome.ends[which] = lane(step.time[0], place)
    ensemble.outcome.outcomes[which] = outcome
    ensemble.outcome.steps[which] = int(lane(lanes.steps[0], place))
    lanes.run_of[place] = FREE
    lanes.live[0] = with_lane(lanes.live[0], place, 0.0)
    lanes.starting[0] = with_lane(lanes.starting[0], place, 0.0)
    lanes.working -= 1
    lanes.waiting += 1


# Motions -----------------------------------------------------------------------------------


def begin_motions(ensemble: Ensemble, method: Static) -> None:
    """Begin the motions of all lanes in which one is to begin."""
    lanes = ensemble.lanes
    going = True
    while going:
        going = False
        if ensemble.updates.count > 0:
            end_bad(ensemble, run_updates(ensemble) != 0.0)
        if ensemble.updates.breaking == 1:
            find_breaks(ensemble)
        still: Real = 0.0
        for place in range(lanes.count):
            if lane(lanes.starting[0], place) > 0.0 and aim(ensemble, place):
                going = True
                still = with_lane(still, place, 1.0)
        if going:
            pass_over(ensemble, still > 0.0)
    starting: Mask = lanes.starting[0] > 0.0
    if ensemble.manifold.count > 0:
        place_lanes(ensemble, starting, ensemble.step.time[0], ensemble.step.x)
        end_lost(ensemble, starting)
        starting = lanes.starting[0] > 0.0
    sample_at_rest(ensemble, starting)
    for place in range(lanes.count):
        if lane(starting, place) and lane(ensemble.step.time[0], place) >= ensemble.boundary:
            finish(ensemble, place, COMPLETE)
    starting = lanes.starting[0] > 0.0
    if any_lane(starting):
        ensemble.trail.fresh[0] = where(starting, 1.0, ensemble.trail.fresh[0])
        find_slopes(ensemble, method, starting)
        lanes.starting[0] = where(starting, 0.0, lanes.starting[0])


def find_breaks(ensemble: Ensemble) -> None:
    """Find the next break times, where updates may move them."""
    lanes, step, updates = ensemble.lanes, ensemble.step, ensemble.updates
    updates.breaks(step.time[0], step.x, ensemble.system.env, step.work)
    lanes.jump[0] = where(lanes.starting[0] > 0.0, step.work[0], lanes.jump[0])


def aim(ensemble: Ensemble, place: int) -> bool:
    """Find the next stop of a lane; tell whether it is there but for a rounding error."""
    runs, lanes, step, updates = ensemble.runs, ensemble.lanes, ensemble.step, ensemble.updates
    time: float = lane(step.time[0], place)
    jump: float = lane(lanes.jump[0], place)
    if updates.breaking == 0:
        while runs.breaks[lanes.break_of[place]] <= time:
            lanes.break_of[place] += 1
        jump = runs.breaks[lanes.break_of[place]]
    earliest: Real = ensemble.boundary
    for c in range(updates.clocks):
        earliest = smaller(earliest, updates.ticks[c])
    stop: float = lane(earliest, place)
    clip = INFINITY
    if jump <= stop:
        stop = jump
        clip = nextafter(stop, -INFINITY)
    until = stop
    if updates.clocks > 0 and stop < ensemble.boundary:
        until = nextafter(stop, -INFINITY)
    lanes.stop[0] = with_lane(lanes.stop[0], place, stop)
    lanes.until[0] = with_lane(lanes.until[0], place, until)
    step.clip[0] = with_lane(step.clip[0], place, clip)
    return time < ensemble.boundary and not stop - time > 4.0 * spacing(time)


def pass_over(ensemble: Ensemble, still: Mask) -> None:
    """Go to stops that are there but for a rounding error of time, over which nothing moves."""
    lanes, step = ensemble.lanes, ensemble.step
    sample_at_rest(ensemble, still)
    step.time[0] = where(still, lanes.stop[0], step.time[0])
    for place in range(lanes.count):
        if lane(still, place) and lane(lanes.stop[0], place) < ensemble.boundary:
            note_due(ensemble.updates, place, lane(lanes.stop[0], place))


def find_slopes(ensemble: Ensemble, method: Static, starting: Mask) -> None:
    """Compute the slopes where motions begin, and their first steps where none are given."""
    system, lanes, step = ensemble.system, ensemble.lanes, ensemble.step
    time, given = step.time[0], step.h[0]
    system.rhs(smaller(time, step.clip[0]), step.x, system.env, step.work)
    check: Real = 0.0
    for i in range(system.n):
        step.k[i] = where(starting, step.work[i], step.k[i])
        check += step.work[i] * 0.0
    interval = lanes.stop[0] - time
    longest = smaller(interval, ensemble.tolerances.max_step)
    first = smaller(given, longest)
    if any_lane(starting and given == 0.0):
        x, k, y, slope = step.x, step.k, step.work, step.x_new
        tried = initial_step(
            method, system, ensemble.tolerances, time, step.clip[0], interval, x, k, y, slope
        )
        first = where(given > 0.0, first, tried)
    step.h[0] = where(starting, first, given)
    step.h_first[0] = where(starting, given, step.h_first[0])
    step.again[0] = where(starting, 0.0, step.again[0])
    step.error_old[0] = where(starting, SMALLEST_ERROR, step.error_old[0])
    lanes.motion_steps[0] = where(starting, 0.0, lanes.motion_steps[0])
    end_bad(ensemble, starting and check != 0.0)


def end_bad(ensemble: Ensemble, bad: Mask) -> None:
    """End the runs whose numbers are not finite."""
    if any_lane(bad):
        for place in range(ensemble.lanes.count):
            if lane(bad, place):
                finish(ensemble, place, NOT_FINITE)


# Steps -------------------------------------------------------------------------------------


def take_step(ensemble: Ensemble, method: Static) -> None:
    """Try a step in every lane; go on where it is good."""
    lanes, step, longest = ensemble.lanes, ensemble.step, ensemble.tolerances.max_step
    n, asked = ensemble.system.n, step.h[0]
    live: Mask = lanes.live[0] > 0.0
    again: Mask = step.again[0] > 0.0
    begin = step.time[0]
    smallest = larger(10.0 * gap(begin), LEAST_STEP)
    step.h_wanted[0] = where(again, step.h_wanted[0], asked)
    allowed = where(asked > longest, longest, larger(asked, smallest))
    h = where(again, asked, allowed)
    stuck = live and not h >= smallest
    if any_lane(stuck):
        give_up(ensemble, stuck)
        return
    end = smaller(begin + h, lanes.stop[0])
    h = end - begin
    step.h[0] = h
    step.end[0] = end
    ensemble.system.attempt(ensemble)
    good = live and step.error[0] < 1.0
    factor = where(good, growth(step, method, again), shrinking(step, method))
    step.h[0] = where(live, h * factor, h)
    step.again[0] = where(good, 0.0, 1.0)
    step.error_old[0] = where(good, larger(step.error[0], SMALLEST_ERROR), step.error_old[0])
    lanes.steps[0] = where(good, lanes.steps[0] + 1.0, lanes.steps[0])
    lanes.motion_steps[0] = where(good, lanes.motion_steps[0] + 1.0, lanes.motion_steps[0])
    if ensemble.manifold.count > 0:
        place_ends(ensemble, good, end)
    step.until[0] = end
    if ensemble.updates.clocks > 0:
        step.until[0] = where(end == lanes.stop[0], lanes.until[0], end)
    sampled = any_lane(good and lanes.sample_time[0] <= step.until[0])
    if sampled or ensemble.trail.width > 0:
        find_bends(ensemble, method)
        if sampled:
            sample_inside(ensemble, method, good)
        if ensemble.trail.width > 0:
            follow(ensemble, method, good)
    for i in range(n):
        step.x[i] = where(good, step.x_new[i], step.x[i])
        step.k[i] = where(good, step.k[method.last * n + i], step.k[i])
    step.time[0] = where(good, end, begin)
    if ensemble.manifold.any_moved > 0:
        moved: Mask = ensemble.manifold.moved[0] > 0.0
        for i in range(n):
            step.k[i] = where(moved, ensemble.manifold.slope[i], step.k[i])
        end_lost(ensemble, good)
        good = good and lanes.live[0] > 0.0
    arrived = good and end == lanes.stop[0]
    if any_lane(arrived):
        arrive(ensemble, arrived, begin)
    if any_lane(good and lanes.steps[0] >= lanes.review[0]):
        judge_pace(ensemble)


def place_ends(ensemble: Ensemble, good: Mask, end: Real) -> None:
    """Move the ends of good steps to where they belong, and find the slopes there."""
    manifold, step, system = ensemble.manifold, ensemble.step, ensemble.system
    time = smaller(end, step.clip[0])
    place_lanes(ensemble, good, time, step.x_new)
    if manifold.any_moved > 0:
        system.rhs(time, step.x_new, system.env, manifold.slope)
        moved: Mask = manifold.moved[0] > 0.0
        check: Real = 0.0
        for i in range(system.n):
            check += manifold.slope[i] * 0.0
        manifold.lost[0] = where(moved and check != 0.0, 1.0, manifold.lost[0])


def end_lost(ensemble: Ensemble, among: Mask) -> None:
    """End the runs whose states are too far from where they belong."""
    if ensemble.manifold.any_moved > 0:
        lost: Mask = ensemble.manifold.lost[0] > 0.0
        for place in range(ensemble.lanes.count):
            if lane(among and lost, place):
                finish(ensemble, place, ASTRAY)


def gap(time: Real) -> Real:
    """Return the distance to the next larger floating-point number; 0.0 next to zero."""
    return (time + (2.0**-53 + 2.0**-105) * abs(time)) - time


def bounded_error(step: LaneStepData) -> Real:
    """Return the error, within the bounds between which it has an influence; NaN is large."""
    return larger(LOWEST, smaller(HIGHEST, step.error[0]))


def growth(step: LaneStepData, method: Static, again: Mask) -> Real:
    """Return how much longer than a good step the next one is to be."""
    error = bounded_error(step)
    if method.beta > 0.0:
        wanted = SAFETY * power(error, -1.0 / (method.error_order + 1) + 0.75 * method.beta)
        wanted = wanted * power(step.error_old[0], method.beta)
    else:
        wanted = SAFETY * power(error, -1.0 / (method.error_order + 1))
    factor = larger(LEAST_FACTOR, smaller(method.largest_factor, wanted))
    return where(again, smaller(factor, 1.0), factor)


def shrinking(step: LaneStepData, method: Static) -> Real:
    """Return how much shorter than a bad step the next try is to be."""
    wanted = SAFETY * power(bounded_error(step), -1.0 / (method.error_order + 1))
    return larger(LEAST_FACTOR, wanted)


def give_up(ensemble: Ensemble, stuck: Mask) -> None:
    """End the runs that cannot go on."""
    for place in range(ensemble.lanes.count):
        if lane(stuck, place):
            if lane(ensemble.step.error[0], place) < INFINITY:
                finish(ensemble, place, TOO_SMALL)
            else:
                finish(ensemble, place, NOT_FINITE)


def arrive(ensemble: Ensemble, arrived: Mask, begin: Real) -> None:
    """End the motions that have come to their stops, and remember the steps to go on with."""
    lanes, step = ensemble.lanes, ensemble.step
    for place in range(lanes.count):
        if lane(arrived, place):
            stop: float = lane(lanes.stop[0], place)
            carried = carried_step(
                lane(step.h[0], place),
                lane(step.h_wanted[0], place),
                lane(step.h_first[0], place),
                1 if lane(lanes.motion_steps[0], place) == 1.0 else 2,
                lane(begin, place),
                stop,
                stop,
            )
            step.h[0] = with_lane(step.h[0], place, carried)
            if stop >= ensemble.boundary:
                finish(ensemble, place, COMPLETE)
            else:
                note_due(ensemble.updates, place, stop)
                lanes.starting[0] = with_lane(lanes.starting[0], place, 1.0)
                lanes.waiting += 1


def judge_pace(ensemble: Ensemble) -> None:
    """Give up runs that would take far too many steps, as interpreted runs are."""
    lanes, longest = ensemble.lanes, ensemble.tolerances.max_step
    most, end = ensemble.most_steps, ensemble.boundary
    for place in range(lanes.count):
        if lanes.run_of[place] != FREE and lane(lanes.steps[0] >= lanes.review[0], place):
            time: float = lane(ensemble.step.time[0], place)
            review: float = lane(lanes.review[0], place)
            strides = int(review) // STRIDE
            lanes.review[0] = with_lane(lanes.review[0], place, review + STRIDE)
            marks = lanes.marks[place * MARKS :]
            slow = makes_slow_progress(marks, strides, STRIDE, time, end, most, longest)
            if slow > 0:
                finish(ensemble, place, TOO_SLOW)
            else:
                marks[strides % MARKS] = time


# A step of the method ----------------------------------------------------------------------


def attempt(ensemble: Ensemble, tableau: Static, n: int, f: Function) -> float:
    """Try a step in every lane, as `flexure.solvers.native.kernels.steps.explicit.attempt` does."""
    step, rtol, atol = ensemble.step, ensemble.tolerances.rtol, ensemble.tolerances.atol
    t, h, clip = step.time[0], step.h[0], step.clip[0]
    x, x_new, y, k, env = step.x, step.x_new, step.work, step.k, ensemble.system.env
    for s in unrolled(1, len(tableau.B)):
        explicit.stage(tableau, s, n, h, x, k, y)
        f(smaller(t + tableau.C[s] * h, clip), y, env, k[s * n :])
    explicit.stage(tableau, len(tableau.B), n, h, x, k, x_new)
    f(smaller(t + h, clip), x_new, env, k[len(tableau.B) * n :])
    step.error[0] = explicit.error_norm(tableau, n, h, x, x_new, k, rtol, atol)
    return 0.0


def attempt_any(ensemble: Ensemble, tableau: Static) -> float:
    """Try a step of any system."""
    return attempt(ensemble, tableau, ensemble.system.n, ensemble.system.rhs)
