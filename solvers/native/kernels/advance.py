"""The kernel of a simulation: the phases of the simulator, in the same order.

A call runs until the end of the run is reached or something is for Python to do; what is to be
remembered between calls is in the record `Run`. Publishes change nothing, so that what they need is
written to rows, and Python publishes after the call.
"""

from __future__ import annotations

from flexure.solvers.integration.slow_strides import MARKS, STRIDE, is_conspicuous, slow_strides
from flexure.solvers.integration.stiffness import LOOKED_AT, SUSPICIOUS, WORTHWHILE
from flexure.solvers.native.kernels.arithmetic import (
    INFINITY,
    all_finite,
    copy,
    next_tick,
    smaller,
    spacing,
)
from flexure.solvers.native.kernels.events import (
    FOUND,
    NOTHING,
    UNDEFINED,
    find_crossing,
    first_values,
)
from flexure.solvers.native.kernels.run import (
    CHANGE,
    COMPLETE,
    CROSSING,
    DOUBTFUL,
    INTERRUPTED,
    MOST_ROWS,
    PAUSED,
    SAMPLE,
    SLOW,
    STEP,
    STIFF,
    Run,
)
from flexure.solvers.native.kernels.stepping import (
    begin,
    limited_by_stability,
    state_inside,
    take_step,
)
from flexure.solvers.native.language.language import Floats, Static, nextafter

GOING = -1  # nothing has to end the call
STEPPING = -2  # nothing has to end the motion
UNRESTRICTED, DISCRETE = 1, 0


def advance(run: Run, method: Static) -> int:
    """Advance the run as far as one call leads; return how it ended."""
    if run.moving == 0:
        find_ticks(run)
    while True:
        if run.moving == 0:
            if not update(run, UNRESTRICTED) or not update(run, DISCRETE):
                return DOUBTFUL
            if not begin_motion(run, method):
                return DOUBTFUL
        status = move(run, method)
        if status == PAUSED or status >= DOUBTFUL:
            return status
        finish_motion(run)
        if status != GOING:
            return status
        if run.time >= run.boundary:
            return COMPLETE
        if run.time == run.jump:
            return INTERRUPTED
        if not has_room(run):
            return PAUSED


def find_ticks(run: Run) -> None:
    """Find the next time of every clock, for its updates and for its publishes."""
    for c in range(run.clocks):
        run.ticks[c] = next_tick(run.periods[c], run.offsets[c], run.time)
        run.publish_ticks[c] = run.ticks[c]


# Updates -----------------------------------------------------------------------------------


def update(run: Run, kind: int) -> bool:
    """Run the pending updates of one kind on the same values; tell whether all are finite."""
    found = 0
    for e in range(run.events):
        if run.pending[e] == 1 and run.unrestricted[e] == kind:
            found += 1
    if found == 0:
        return True
    if not stage_updates(run, kind):
        return False
    for e in range(run.events):
        if run.unrestricted[e] == kind:
            run.pending[e] = 0
    if kind == UNRESTRICTED:
        run.unrestricted_updates += found
    else:
        run.discrete_updates += found
    if replace(run.n, run.staged, run.x):
        run.changed = 1
        run.jumped = 1
    if replace(run.m, run.staged[run.n :], run.env):
        run.changed = 1
    return True


def stage_updates(run: Run, kind: int) -> bool:
    """Compute what the pending updates of one kind give; tell whether all of it is finite."""
    copy(run.n, run.x, run.staged)
    copy(run.m, run.env, run.staged[run.n :])
    for e in range(run.events):
        if run.pending[e] == 1 and run.unrestricted[e] == kind:
            first, last = run.first_target[e], run.first_target[e + 1]
            call = run.updates[e]
            call(run.time, run.x, run.env, run.results)
            if not all_finite(last - first, run.results):
                return False
            for g in range(first, last):
                run.staged[run.targets[g]] = run.results[g - first]
    return True


def replace(n: int, new: Floats, old: Floats) -> bool:
    """Replace values by new ones; tell whether some are different."""
    changed = False
    for i in range(n):
        if old[i] != new[i]:
            changed = True
            old[i] = new[i]
    return changed


# Motion ------------------------------------------------------------------------------------


def begin_motion(run: Run, method: Static) -> bool:
    """Find the next stop and prepare the integrator; tell whether it can start."""
    stop = smaller(run.boundary, run.jump)
    for c in range(run.clocks):
        if run.updating[c] == 1 or run.stepwise == 1:
            stop = smaller(stop, run.ticks[c])
    run.stop = stop
    run.clip = INFINITY
    if stop == run.jump:
        run.clip = nextafter(stop, -INFINITY)
    if not stop - run.time > 4.0 * spacing(run.time):
        return False
    if run.changed == 1:
        run.changed = 0
        if run.recording == 1:
            add_row(run, CHANGE, 0, run.time, run.x)
    run.time_old, run.time_new = run.time, run.time
    run.crossed = 0
    run.motion_steps = 0
    begin(run, method)
    if not all_finite(run.n, run.k):
        return False
    if run.witnesses > 0 and not first_values(run):
        return False
    run.moving = 1
    return True


def move(run: Run, method: Static) -> int:
    """Take steps up to the stop, an event or the end of this call."""
    while True:
        if run.unpublished == 1:
            if not publish(run, method):
                return PAUSED
            run.unpublished = 0
            if run.verdict != STEPPING:
                return run.verdict
        if run.budget <= 0 or not has_room(run):
            return PAUSED
        run.budget -= 1
        run.verdict = go_on(run, method)
        if run.verdict != STEPPING:
            return run.verdict
        found = NOTHING
        if run.witnesses > 0:
            found = find_crossing(run, method)
        if found == UNDEFINED:
            step_back(run)
            return DOUBTFUL
        run.unpublished = 1
        if found == FOUND:
            cut(run, method)
            run.verdict = cross(run)
        elif run.time == run.stop:
            run.verdict = GOING
        elif run.watching == 1 and is_stiff(run, method):
            run.verdict = STIFF


def go_on(run: Run, method: Static) -> int:
    """Take a step, unless there is none or it leads nowhere."""
    if not take_step(run, method):
        return DOUBTFUL
    run.motion_steps += 1
    if run.steps == run.judged_at and is_slow(run):
        step_back(run)
        return SLOW
    return STEPPING


def is_slow(run: Run) -> bool:
    """Judge the pace at the end of a stride."""
    run.judged_at = run.steps + STRIDE
    run.strides += 1
    run.slow = slow_strides(
        run.marks,
        run.strides,
        STRIDE,
        run.time,
        run.horizon,
        run.most_steps,
        run.deliberate,
    )
    if run.slow > 0:
        return True
    if is_conspicuous(
        run.marks,
        run.strides,
        STRIDE,
        run.time,
        run.horizon,
        run.most_steps,
        run.deliberate,
    ):
        run.budget = 0  # Python looks ahead of the next steps
    run.marks[run.strides % MARKS] = run.time
    return False


def step_back(run: Run) -> None:
    """Undo the last step."""
    new = run.x
    run.x = run.x_old
    run.x_old = new
    run.time = run.time_old
    run.steps -= 1
    run.h_next = run.h_wanted


def cut(run: Run, method: Static) -> None:
    """End the last step at an event."""
    state_inside(run, method, run.time_crossed, run.point)
    copy(run.n, run.point, run.x)
    run.time = run.time_crossed


def cross(run: Run) -> int:
    """Note a witness event, and make its updates pending; tell whether Python is needed."""
    status = GOING
    bit = 1
    for k in range(run.witnesses):
        if run.crossed // bit % 2 == 1:
            if run.handled[k] == 0:
                status = INTERRUPTED
            for e in range(run.events):
                if run.trigger[e] == k:
                    run.pending[e] = 1
        bit *= 2
    return status


def is_stiff(run: Run, method: Static) -> bool:
    """Look for stiffness as `flexure.solvers.integration.stiffness.StiffnessDetector` does."""
    if method.threshold == 0.0:
        return False
    else:  # noqa: RET505, only one of the branches is translated
        run.looked += 1
        if run.suspicious == 0 and run.looked % LOOKED_AT != 0:
            return False
        if limited_by_stability(run, method):
            run.suspicious += 1
        else:
            run.suspicious = 0
        ahead = (run.horizon - run.time) / (run.time - run.time_old)
        return run.suspicious >= SUSPICIOUS and ahead > WORTHWHILE


def finish_motion(run: Run) -> None:
    """End a motion: remember the step to begin with, and what is due now."""
    run.moving = 0
    wanted = run.h_wanted
    if run.motion_steps == 1 and run.h_first > 0.0:
        wanted = run.h_first
    if run.time_new == run.stop and run.time_old + wanted > run.stop and wanted > run.h_next:
        run.h_next = wanted
    for e in range(run.events):
        c = run.clock[e]
        if c >= 0 and run.ticks[c] == run.time:
            run.pending[e] = 1
    for c in range(run.clocks):
        if run.ticks[c] <= run.time:
            run.ticks[c] = next_tick(run.periods[c], run.offsets[c], run.time)


# Publishes ---------------------------------------------------------------------------------


def publish(run: Run, method: Static) -> bool:
    """Write the rows of the last step: samples inside of it, its end, an event and a sample there.

    Return False where there is no room; another call goes on from there.
    """
    mask = 0
    while run.publishes == 1 and mask == 0:
        time = INFINITY
        for c in range(run.clocks):
            if run.publishing[c] == 1:
                time = smaller(time, run.publish_ticks[c])
        if time > run.time:
            break
        if not has_room(run):
            return False
        if time == run.time:
            mask = due_publishes(run, time)
        else:
            state_inside(run, method, time, run.point)
            add_row(run, SAMPLE, due_publishes(run, time), time, run.point)
    if not has_room(run):
        return False
    if run.recording == 1:
        add_row(run, STEP, 0, run.time, run.x)
    if run.crossed != 0:
        add_row(run, CROSSING, run.crossed, run.time, run.x)
    if mask != 0 or run.stepwise == 1:
        add_row(run, SAMPLE, mask, run.time, run.x)
    return True


def due_publishes(run: Run, time: float) -> int:
    """Return the mask of the clocks with publishes at a time, and move on to their next."""
    mask = 0
    bit = 1
    for c in range(run.clocks):
        if run.publishing[c] == 1 and run.publish_ticks[c] == time:
            mask += bit
            run.publish_ticks[c] = next_tick(run.periods[c], run.offsets[c], time)
        bit *= 2
    return mask


def has_room(run: Run) -> bool:
    """Tell whether the rows that are written at once fit."""
    return run.rows_used + MOST_ROWS <= run.rows_room


def add_row(run: Run, kind: int, mask: int, time: float, x: Floats) -> None:
    """Write a row."""
    row = run.table[run.rows_used * run.width :]
    run.kinds[2 * run.rows_used] = kind
    run.kinds[2 * run.rows_used + 1] = mask
    row[0] = time
    row[1] = run.time_old
    row[2] = run.time_new
    copy(run.n, x, row[3:])
    copy(run.m, run.env, row[3 + run.n :])
    if run.logging == 1 and kind == SAMPLE:
        run.signals(time, x, run.env, row[3 + run.n + run.m :])
    run.rows_used += 1
