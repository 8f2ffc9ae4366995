"""The kernel of an ensemble: many runs of one system, as many at once as there are lanes.

Every lane integrates a run of its own, with its own time and step. All lanes try a step together;
then each keeps it or tries a shorter one, by the rules of
`flexure.solvers.native.kernels.stepping`. A lane whose run has ended takes the next one. Nothing
goes from lane to lane, so that the numbers of a run do not depend on which lane it is in, nor on
its neighbors.

The runs have no events. At a break time a lane ends its motion and begins another.
"""

from __future__ import annotations

from flexure.solvers.integration.slow_strides import MARKS, STRIDE, slow_strides
from flexure.solvers.integration.step_control import LEAST_FACTOR, SAFETY, SMALLEST_ERROR
from flexure.solvers.native.kernels import explicit
from flexure.solvers.native.kernels.arithmetic import INFINITY, larger, smaller, spacing
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Ints,
    Mask,
    Real,
    Reals,
    Static,
    Structure,
    any_lane,
    lane,
    nextafter,
    power,
    sqrt,
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

# How a call ended
FINISHED = 0
PAUSED = 1


class Ensemble(Structure):
    """Runs of one system, and the lanes in which they are integrated.

    An entry of a field of the type `Reals` holds a number for each lane.
    """

    # The system
    n: int  # continuous states
    env: Reals
    rhs: Function
    prepare: Function  # computes what depends on parameters alone
    prepared: Reals  # where that belongs, in the environment
    attempt: Function  # tries one step in every lane, attempt(run)
    signals: Function  # everything that is sampled
    rtol: Floats
    atol: Floats
    max_step: float
    most_steps: float  # that may still be needed
    boundary: float  # the end of all runs

    # The runs
    runs: int
    next: int  # that a free lane takes
    stride: int  # from one to the one after it
    starts: Floats  # times
    initial: Floats  # states
    given: int  # numbers of the environment in which runs differ
    places: Ints  # where these are
    table: Floats  # these numbers, run by run
    breaks: Floats  # break times, ascending; after them infinity
    break_width: int  # from the break times of one run to those of the next; 0 if all share them

    # What becomes of them
    finals: Floats  # states at the end
    ends: Floats  # times at the end
    outcomes: Ints
    steps_taken: Ints
    samples: Floats  # signals, run by run and time by time
    times: Floats  # of samples, ascending; after them infinity
    count: int  # of these times
    width: int  # of the signals

    # The lanes
    lanes: int
    run_of: Ints
    break_of: Ints  # which break time is next
    sample_of: Ints  # which sample is next
    marks: Floats  # when the latest strides of each ended, lane by lane
    working: int  # lanes with a run
    waiting: int  # lanes that take a run or begin a motion before the next step
    budget: int  # steps to try until the call pauses
    live: Reals  # 1.0 where there is a run
    starting: Reals  # 1.0 where a motion begins
    again: Reals  # 1.0 where the last try was bad
    time: Reals
    end: Reals  # of the step that is tried
    stop: Reals  # of the present motion
    clip: Reals  # the equations are evaluated no later than this
    sample_time: Reals  # of the next sample
    h: Reals  # the step to try next; 0.0 to estimate it
    h_wanted: Reals  # the step that was meant to be tried
    h_first: Reals  # the step that was given for the first step of a motion, or 0.0
    error: Reals
    error_old: Reals
    steps: Reals
    motion_steps: Reals
    review: Reals  # number of steps at which the pace is judged next
    x: Reals
    x_new: Reals
    work: Reals
    k: Reals
    q: Reals
    row: Reals  # one sample


def integrate(run: Ensemble, method: Static) -> int:
    """Integrate all runs, or as far as the budget leads."""
    while True:
        while run.waiting > 0:
            run.waiting = 0
            load_runs(run)
            begin_motions(run, method)
        if run.working == 0:
            return FINISHED
        if run.budget <= 0:
            return PAUSED
        run.budget -= 1
        take_step(run, method)


# Runs --------------------------------------------------------------------------------------


def load_runs(run: Ensemble) -> None:
    """Give every free lane the next run."""
    loaded = 0
    for place in range(run.lanes):
        if run.run_of[place] == FREE and run.next < run.runs:
            load(run, place, run.next)
            run.next += run.stride
            loaded += 1
    run.working += loaded
    if loaded > 0:
        run.prepare(0.0, run.x, run.env, run.prepared)


def load(run: Ensemble, place: int, which: int) -> None:
    """Put a run into a lane."""
    n = run.n
    run.run_of[place] = which
    run.break_of[place] = which * run.break_width
    run.sample_of[place] = 0
    for i in range(n):
        run.x[i] = with_lane(run.x[i], place, run.initial[which * n + i])
    for g in range(run.given):
        e = run.places[g]
        run.env[e] = with_lane(run.env[e], place, run.table[which * run.given + g])
    time = run.starts[which]
    run.time[0] = with_lane(run.time[0], place, time)
    run.marks[place * MARKS] = time
    run.sample_time[0] = with_lane(run.sample_time[0], place, run.times[0])
    run.live[0] = with_lane(run.live[0], place, 1.0)
    run.starting[0] = with_lane(run.starting[0], place, 1.0)
    run.h[0] = with_lane(run.h[0], place, 0.0)
    run.error[0] = with_lane(run.error[0], place, 0.0)
    run.steps[0] = with_lane(run.steps[0], place, 0.0)
    run.review[0] = with_lane(run.review[0], place, STRIDE)


def finish(run: Ensemble, place: int, outcome: int) -> None:
    """Store what became of a run and free its lane."""
    n, which = run.n, run.run_of[place]
    for i in range(n):
        run.finals[which * n + i] = lane(run.x[i], place)
    run.ends[which] = lane(run.time[0], place)
    run.outcomes[which] = outcome
    run.steps_taken[which] = int(lane(run.steps[0], place))
    run.run_of[place] = FREE
    run.live[0] = with_lane(run.live[0], place, 0.0)
    run.starting[0] = with_lane(run.starting[0], place, 0.0)
    run.working -= 1
    run.waiting += 1


# Motions -----------------------------------------------------------------------------------


def begin_motions(run: Ensemble, method: Static) -> None:
    """Begin the motions of all lanes in which one is to begin."""
    for place in range(run.lanes):
        if lane(run.starting[0], place) > 0.0:
            aim(run, place)
    starting: Mask = run.starting[0] > 0.0
    sample_at_rest(run, starting)
    for place in range(run.lanes):
        if lane(starting, place) and lane(run.time[0], place) >= run.boundary:
            finish(run, place, COMPLETE)
    starting = run.starting[0] > 0.0
    if any_lane(starting):
        find_slopes(run, method, starting)
        run.starting[0] = where(starting, 0.0, run.starting[0])


def aim(run: Ensemble, place: int) -> None:
    """Find the next stop of a lane. Over a rounding error of time nothing moves."""
    going = True
    while going:
        time: float = lane(run.time[0], place)
        while run.breaks[run.break_of[place]] <= time:
            run.break_of[place] += 1
        stop = run.boundary
        clip = INFINITY
        if run.breaks[run.break_of[place]] <= stop:
            stop = run.breaks[run.break_of[place]]
            clip = nextafter(stop, -INFINITY)
        run.stop[0] = with_lane(run.stop[0], place, stop)
        run.clip[0] = with_lane(run.clip[0], place, clip)
        going = time < run.boundary and not stop - time > 4.0 * spacing(time)
        if going:
            run.time[0] = with_lane(run.time[0], place, stop)


def find_slopes(run: Ensemble, method: Static, starting: Mask) -> None:
    """Compute the slopes where motions begin, and their first steps where none are given."""
    time, given = run.time[0], run.h[0]
    run.rhs(smaller(time, run.clip[0]), run.x, run.env, run.work)
    check: Real = 0.0
    for i in range(run.n):
        run.k[i] = where(starting, run.work[i], run.k[i])
        check += run.work[i] * 0.0
    interval = run.stop[0] - time
    longest = smaller(interval, run.max_step)
    first = smaller(given, longest)
    if any_lane(starting and given == 0.0):
        first = where(given > 0.0, first, initial_step(run, method, interval))
    run.h[0] = where(starting, first, given)
    run.h_first[0] = where(starting, given, run.h_first[0])
    run.again[0] = where(starting, 0.0, run.again[0])
    run.error_old[0] = where(starting, SMALLEST_ERROR, run.error_old[0])
    run.motion_steps[0] = where(starting, 0.0, run.motion_steps[0])
    bad = starting and check != 0.0
    if any_lane(bad):
        for place in range(run.lanes):
            if lane(bad, place):
                finish(run, place, NOT_FINITE)


def initial_step(run: Ensemble, method: Static, interval: Real) -> Real:
    """Suggest a first step, as `flexure.solvers.native.kernels.stepping.initial_step` does."""
    n, x, k, y = run.n, run.x, run.k, run.work
    d0 = scaled_norm(n, x, x, run.rtol, run.atol)
    d1 = scaled_norm(n, k, x, run.rtol, run.atol)
    h = where(d0 >= 1e-5 and d1 >= 1e-5, 0.01 * d0 / d1, 1e-6)
    h = smaller(h, interval)
    for i in range(n):
        y[i] = x[i] + h * k[i]
    run.rhs(smaller(run.time[0] + h, run.clip[0]), y, run.env, run.x_new)
    for i in range(n):
        run.x_new[i] = run.x_new[i] - k[i]
    d2 = scaled_norm(n, run.x_new, x, run.rtol, run.atol) / h
    d2 = where(d2 < INFINITY, d2, d1)
    later = power(0.01 / larger(d1, d2), 1.0 / (method.error_order + 1))
    later = where(d1 > 1e-15 or d2 > 1e-15, later, larger(1e-6, h * 1e-3))
    return smaller(smaller(100.0 * h, later), smaller(interval, run.max_step))


def scaled_norm(n: int, v: Reals, x: Reals, rtol: Floats, atol: Floats) -> Real:
    """Return the root mean square of a vector in units of the tolerance at a state."""
    total: Real = 0.0
    for i in range(n):
        part = v[i] / (atol[i] + abs(x[i]) * rtol[i])
        total += part * part
    norm: Real = sqrt(total / n)
    return norm


# Steps -------------------------------------------------------------------------------------


def take_step(run: Ensemble, method: Static) -> None:
    """Try a step in every lane; go on where it is good."""
    n, asked = run.n, run.h[0]
    live: Mask = run.live[0] > 0.0
    again: Mask = run.again[0] > 0.0
    begin = run.time[0]
    smallest = larger(10.0 * gap(begin), LEAST_STEP)
    run.h_wanted[0] = where(again, run.h_wanted[0], asked)
    allowed = where(asked > run.max_step, run.max_step, larger(asked, smallest))
    h = where(again, asked, allowed)
    stuck = live and not h >= smallest
    if any_lane(stuck):
        give_up(run, stuck)
        return
    end = smaller(begin + h, run.stop[0])
    h = end - begin
    run.h[0] = h
    run.end[0] = end
    run.attempt(run)
    good = live and run.error[0] < 1.0
    factor = where(good, growth(run, method, again), shrinking(run, method))
    run.h[0] = where(live, h * factor, h)
    run.again[0] = where(good, 0.0, 1.0)
    run.error_old[0] = where(good, larger(run.error[0], SMALLEST_ERROR), run.error_old[0])
    run.steps[0] = where(good, run.steps[0] + 1.0, run.steps[0])
    run.motion_steps[0] = where(good, run.motion_steps[0] + 1.0, run.motion_steps[0])
    if any_lane(good and run.sample_time[0] <= end):
        sample_inside(run, method, good)
    for i in range(n):
        run.x[i] = where(good, run.x_new[i], run.x[i])
        run.k[i] = where(good, run.k[method.last * n + i], run.k[i])
    run.time[0] = where(good, end, begin)
    arrived = good and end == run.stop[0]
    if any_lane(arrived):
        arrive(run, arrived, begin)
    if any_lane(good and run.steps[0] >= run.review[0]):
        judge_pace(run)


def gap(time: Real) -> Real:
    """Return the distance to the next larger floating-point number; 0.0 next to zero."""
    return (time + (2.0**-53 + 2.0**-105) * abs(time)) - time


def bounded_error(run: Ensemble) -> Real:
    """Return the error, within the bounds between which it has an influence; NaN is large."""
    return larger(LOWEST, smaller(HIGHEST, run.error[0]))


def growth(run: Ensemble, method: Static, again: Mask) -> Real:
    """Return how much longer than a good step the next one is to be."""
    error = bounded_error(run)
    if method.beta > 0.0:
        wanted = SAFETY * power(error, -1.0 / (method.error_order + 1) + 0.75 * method.beta)
        wanted = wanted * power(run.error_old[0], method.beta)
    else:
        wanted = SAFETY * power(error, -1.0 / (method.error_order + 1))
    factor = larger(LEAST_FACTOR, smaller(method.largest_factor, wanted))
    return where(again, smaller(factor, 1.0), factor)


def shrinking(run: Ensemble, method: Static) -> Real:
    """Return how much shorter than a bad step the next try is to be."""
    wanted = SAFETY * power(bounded_error(run), -1.0 / (method.error_order + 1))
    return larger(LEAST_FACTOR, wanted)


def give_up(run: Ensemble, stuck: Mask) -> None:
    """End the runs that cannot go on."""
    for place in range(run.lanes):
        if lane(stuck, place):
            if lane(run.error[0], place) < INFINITY:
                finish(run, place, TOO_SMALL)
            else:
                finish(run, place, NOT_FINITE)


def arrive(run: Ensemble, arrived: Mask, begin: Real) -> None:
    """End the motions that have come to their stops, and remember the steps to go on with."""
    for place in range(run.lanes):
        if lane(arrived, place):
            wanted: float = lane(run.h_wanted[0], place)
            first: float = lane(run.h_first[0], place)
            if lane(run.motion_steps[0], place) == 1.0 and first > 0.0:
                wanted = first
            stop: float = lane(run.stop[0], place)
            if lane(begin, place) + wanted > stop and wanted > lane(run.h[0], place):
                run.h[0] = with_lane(run.h[0], place, wanted)
            if stop >= run.boundary:
                finish(run, place, COMPLETE)
            else:
                run.starting[0] = with_lane(run.starting[0], place, 1.0)
                run.waiting += 1


def judge_pace(run: Ensemble) -> None:
    """Give up runs that would take far too many steps, as interpreted runs are."""
    for place in range(run.lanes):
        if run.run_of[place] != FREE and lane(run.steps[0] >= run.review[0], place):
            time: float = lane(run.time[0], place)
            review: float = lane(run.review[0], place)
            strides = int(review) // STRIDE
            run.review[0] = with_lane(run.review[0], place, review + STRIDE)
            marks = run.marks[place * MARKS :]
            slow = slow_strides(
                marks, strides, STRIDE, time, run.boundary, run.most_steps, run.max_step
            )
            if slow > 0:
                finish(run, place, TOO_SLOW)
            else:
                marks[strides % MARKS] = time


# Samples -----------------------------------------------------------------------------------


def sample_at_rest(run: Ensemble, starting: Mask) -> None:
    """Sample where motions begin."""
    due = starting and run.sample_time[0] <= run.time[0]
    while any_lane(due):
        run.signals(where(due, run.sample_time[0], run.time[0]), run.x, run.env, run.row)
        keep(run, due)
        due = starting and run.sample_time[0] <= run.time[0]


def sample_inside(run: Ensemble, method: Static, good: Mask) -> None:
    """Sample inside of good steps and at their ends."""
    n, begin, end = run.n, run.time[0], run.end[0]
    h = end - begin
    x, x_new, work, k, q, clip = run.x, run.x_new, run.work, run.k, run.q, run.clip[0]
    explicit.bends(method.tableau, n, run.rhs, begin, h, clip, x, x_new, work, k, run.env, q)
    due = good and run.sample_time[0] <= end
    while any_lane(due):
        time = where(due, run.sample_time[0], end)
        explicit.point_inside(method.tableau, n, (time - begin) / h, h, x, q, work)
        for i in range(n):
            work[i] = where(time == end, x_new[i], work[i])
        run.signals(time, work, run.env, run.row)
        keep(run, due)
        due = good and run.sample_time[0] <= end


def keep(run: Ensemble, due: Mask) -> None:
    """Store a sample of each lane in which one is due."""
    for place in range(run.lanes):
        if lane(due, place):
            which = run.sample_of[place]
            first = (run.run_of[place] * run.count + which) * run.width
            for s in range(run.width):
                run.samples[first + s] = lane(run.row[s], place)
            run.sample_of[place] = which + 1
            run.sample_time[0] = with_lane(run.sample_time[0], place, run.times[which + 1])


# A step of the method ----------------------------------------------------------------------


def attempt(run: Ensemble, tableau: Static, n: int, f: Function) -> float:
    """Try a step in every lane, as `flexure.solvers.native.kernels.explicit.attempt` does."""
    t, h, clip = run.time[0], run.h[0], run.clip[0]
    x, x_new, y, k, env = run.x, run.x_new, run.work, run.k, run.env
    for s in unrolled(1, len(tableau.B)):
        explicit.stage(tableau, s, n, h, x, k, y)
        f(smaller(t + tableau.C[s] * h, clip), y, env, k[s * n :])
    explicit.stage(tableau, len(tableau.B), n, h, x, k, x_new)
    f(smaller(t + h, clip), x_new, env, k[len(tableau.B) * n :])
    run.error[0] = explicit.error_norm(tableau, n, h, x, x_new, k, run.rtol, run.atol)
    return 0.0


def attempt_any(run: Ensemble, tableau: Static) -> float:
    """Try a step of any system."""
    return attempt(run, tableau, run.n, run.rhs)
