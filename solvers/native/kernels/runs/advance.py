"""The kernel of a simulation: the phases of the simulator, in the same order.

A call runs until the end of the run is reached or something is for Python to do; what is to be
remembered between calls is in `Run`. Publishes change nothing, so that what they need is
written to rows, and Python publishes after the call.
"""

from __future__ import annotations

from flexure.solvers.integration.guard.progress_limits import carried_step
from flexure.solvers.integration.guard.stiffness_detection import LOOKED_AT, SUSPICIOUS, WORTHWHILE
from flexure.solvers.native.kernels.parts.arithmetic import (
    INFINITY,
    all_finite,
    copy,
    smaller,
    spacing,
)
from flexure.solvers.native.kernels.parts.clocks import (
    due_publishes,
    find_ticks,
    go_past,
    next_publish,
    next_stop,
)
from flexure.solvers.native.kernels.parts.manifold import ASTRAY, LOST, MOVED, NONE, place
from flexure.solvers.native.kernels.parts.output_rows import (
    BEGIN,
    CHANGE,
    CLIP,
    CROSSING,
    END,
    SAMPLE,
    STATE,
    STEP,
    TIME,
    has_room,
)
from flexure.solvers.native.kernels.parts.run import (
    COMPLETE,
    CONSPICUOUS,
    DEPARTED,
    DOUBTFUL,
    INTERRUPTED,
    MOST_ROUNDS,
    PAUSED,
    SENSIBLE,
    SLOW,
    STIFF,
    TOO_SLOW,
    Run,
    StepData,
    SystemData,
    UpdateData,
    judge,
)
from flexure.solvers.native.kernels.parts.run_samples import WitnessData
from flexure.solvers.native.kernels.runs.run_events import (
    FOUND,
    NOTHING,
    UNDEFINED,
    find_crossing,
    find_jumps,
    first_values,
)
from flexure.solvers.native.kernels.steps.stepping import (
    begin,
    limited_by_stability,
    place_end,
    state_inside,
    take_step,
)
from flexure.solvers.native.language.language import Floats, Static, nextafter

GOING = -1  # nothing has to end the call
STEPPING = -2  # nothing has to end the motion
UNRESTRICTED, DISCRETE = 1, 0


def advance(run: Run, method: Static, eventful: Static) -> int:
    """Advance the run as far as one call leads; return how it ended.

    A loop that is not eventful is for systems that can neither be updated, nor cross a surface, nor
    leave a manifold. It is less than half as long, and compiled that much faster.
    """
    if run.motion.moving == 0:
        find_ticks(run.clocks, run.step.time)
    while True:
        if run.motion.moving == 0:
            begun = set_out(run, method, eventful)
            if begun != GOING:
                return begun
        status = move(run, method, eventful)
        if status == PAUSED or status >= DOUBTFUL:
            return status
        finish_motion(run)
        if status != GOING:
            return status
        if run.step.time >= run.boundary:
            return COMPLETE
        if run.step.time == run.jump and run.clocks.breaking == 0:
            return INTERRUPTED
        if not has_room(run.rows):
            return PAUSED


def set_out(run: Run, method: Static, eventful: Static) -> int:
    """Run the updates that are due, and begin a motion; return what has to end the call."""
    if eventful:
        if not update(run, UNRESTRICTED) or not update(run, DISCRETE):
            return DOUBTFUL
        if run.updates.settles == 1 and not settle(run):
            return DOUBTFUL
        if run.witnesses.known == 1 and run.witnesses.stirred == 1:
            found = follow_jumps(run)
            if found != GOING:
                return found
        if run.manifold.count > 0:
            found = place_start(run)
            if found != GOING:
                return found
    return GOING if begin_motion(run, method, eventful) else DOUBTFUL


# Updates -----------------------------------------------------------------------------------


def update(run: Run, kind: int) -> bool:
    """Run the pending updates of one kind on the same values; tell whether all are finite."""
    updates = run.updates
    found = 0
    for e in range(updates.count):
        if updates.pending[e] == 1 and updates.unrestricted[e] == kind:
            found += 1
    if found == 0:
        return True
    if not compute_updates(updates, kind, run.system, run.step):
        return False
    for e in range(updates.count):
        if updates.pending[e] == 1 and updates.unrestricted[e] == kind:
            updates.pending[e] = 0
            pass_on(run, e)
            replace(run, updates.first_target[e], updates.first_target[e + 1])
    if kind == UNRESTRICTED:
        run.counts.unrestricted_updates += found
    else:
        run.counts.discrete_updates += found
    return True


def settle(run: Run) -> bool:
    """Run settling updates until they change nothing; tell whether they do."""
    updates, motion = run.updates, run.motion
    before = motion.changed
    settled = False
    for _ in range(MOST_ROUNDS):
        for e in range(updates.count):
            if updates.settling[e] == 1:
                updates.pending[e] = 1
        motion.changed = 0
        if not update(run, UNRESTRICTED) or not update(run, DISCRETE):
            break
        if motion.changed == 0:
            settled = True
            break
        before = 1
    motion.changed = before
    updates.unsettled = 0 if settled else 1
    for e in range(updates.count):
        if updates.settling[e] == 1:
            updates.pending[e] = 0
    return settled


def follow_jumps(run: Run) -> int:
    """Run the witness events that updates cause by jumps, and those that these cause.

    Return what has to end the call.
    """
    witnesses, updates = run.witnesses, run.updates
    for k in range(witnesses.count):
        witnesses.leaping[k] = 0
    found = find_jumps(run)
    rounds = 0
    status = GOING
    while found == FOUND:
        rounds += 1
        if cross(witnesses, updates) == INTERRUPTED:
            status = INTERRUPTED
        if not update(run, UNRESTRICTED) or not update(run, DISCRETE):
            return DOUBTFUL
        if updates.settles == 1 and not settle(run):
            return DOUBTFUL
        if rounds == MOST_ROUNDS:
            updates.unsettled = 2
            return DOUBTFUL
        found = find_jumps(run)
    if found == UNDEFINED:
        return DOUBTFUL
    if rounds > 0 and run.rows.room > 0:
        note_change(run)
        mask = 0
        bit = 1
        for k in range(witnesses.count):
            mask += bit * witnesses.leaping[k]
            bit *= 2
        add_row(run, CROSSING, mask, run.step.time, run.step.x)
    return status


def compute_updates(updates: UpdateData, kind: int, system: SystemData, step: StepData) -> bool:
    """Compute what the pending updates of one kind give; tell whether all of it is finite."""
    for e in range(updates.count):
        if updates.pending[e] == 1 and updates.unrestricted[e] == kind:
            first, last = updates.first_target[e], updates.first_target[e + 1]
            call = updates.functions[e]
            call(step.time, step.x, system.env, updates.results[first:])
            if not all_finite(last - first, updates.results[first:]):
                return False
    return True


def pass_on(run: Run, e: int) -> None:
    """Move the lines that an update passes on."""
    updates, env = run.updates, run.system.env
    bit = 1
    for k in range(updates.lines):
        if updates.mover[k] == e:
            start, apart = updates.starts[k], updates.aparts[k]
            count = updates.ends[k] - start - apart
            for i in range(count):
                to = start + apart + count - 1 - i
                env[to] = env[to - apart]
            run.motion.changed = 1
            run.witnesses.stirred = 1
            if updates.moved // bit % 2 == 0:
                updates.moved += bit
        bit *= 2


def replace(run: Run, first: int, last: int) -> None:
    """Put results of updates where they belong, and note whether that changes something."""
    updates, x, env = run.updates, run.step.x, run.system.env
    n = run.system.n
    for g in range(first, last):
        target, new = updates.targets[g], updates.results[g]
        if n == 0 or target >= n:
            if env[target - n] != new:
                env[target - n] = new
                run.motion.changed = 1
                run.witnesses.stirred = 1
        elif x[target] != new:
            x[target] = new
            run.motion.changed = 1
            run.witnesses.jumped = 1
            run.witnesses.stirred = 1


def note_change(run: Run) -> None:
    """Write down what updates have changed, if anything."""
    if run.motion.changed == 1 and run.rows.recording == 1:
        add_row(run, CHANGE, run.updates.moved, run.step.time, run.step.x)
        run.updates.moved = 0
    run.motion.changed = 0


# Motion ------------------------------------------------------------------------------------


def place_start(run: Run) -> int:
    """Move the state from which a motion begins to where it belongs; return what ends the call."""
    step, system, farthest = run.step, run.system, run.manifold.farthest
    found = place(
        run.manifold, system.n, step.time, INFINITY, farthest, step.x, system.env, step.work
    )
    if found == MOVED:
        run.motion.changed = 1
        run.witnesses.jumped = 1
    return DEPARTED if found == ASTRAY else (DOUBTFUL if found == LOST else GOING)


def begin_motion(run: Run, method: Static, eventful: Static) -> bool:
    """Find the next stop and prepare the integrator; tell whether it can start."""
    step, motion = run.step, run.motion
    if run.clocks.breaking == 1:
        pass_break(run)
    motion.stop = next_stop(run.clocks, run.rows.stepwise, smaller(run.boundary, run.jump))
    step.clip = INFINITY
    if motion.stop == run.jump:
        step.clip = nextafter(motion.stop, -INFINITY)
    if not motion.stop - step.time > 4.0 * spacing(step.time):
        return False
    note_change(run)
    step.time_old, step.time_new = step.time, step.time
    run.witnesses.crossed = 0
    motion.steps = 0
    begin(run, method)
    if not all_finite(run.system.n, step.k):
        return False
    if eventful and run.witnesses.count > 0 and not first_values(run):
        return False
    motion.moving = 1
    return True


def pass_break(run: Run) -> None:
    """Note where the equations jump now, as an update would, and find the next break time."""
    step = run.step
    if step.time == run.jump:
        run.motion.changed = 1
    find = run.clocks.breaks
    find(step.time, step.x, run.system.env, step.work)
    run.jump = step.work[0]


def move(run: Run, method: Static, eventful: Static) -> int:
    """Take steps up to the stop, an event or the end of this call."""
    motion = run.motion
    while True:
        if motion.unpublished == 1:
            if not publish(run, method):
                return PAUSED
            motion.unpublished = 0
            if motion.verdict != STEPPING:
                return motion.verdict
        if run.budget <= 0 or not has_room(run.rows):
            return PAUSED
        run.budget -= 1
        motion.verdict = go_on(run, method, eventful)
        if motion.verdict != STEPPING:
            return motion.verdict
        found = NOTHING
        if eventful and run.witnesses.count > 0:
            found = find_crossing(run, method)
        if found == UNDEFINED:
            step_back(run)
            return DOUBTFUL
        motion.unpublished = 1
        if found == FOUND:
            cut(run, method)
            motion.verdict = cross(run.witnesses, run.updates)
        elif run.step.time == motion.stop:
            motion.verdict = GOING
        elif run.stiffness.watching == 1 and is_stiff(run, method):
            motion.verdict = STIFF


def go_on(run: Run, method: Static, eventful: Static) -> int:
    """Take a step, unless there is none or it leads nowhere."""
    if run.manifold.answer == NONE:  # else this is about the step that was taken before
        if not take_step(run, method):
            return DOUBTFUL
        run.motion.steps += 1
    if eventful and run.manifold.count > 0:
        found = place_end(run)
        if found == ASTRAY:
            return DEPARTED
        if found == LOST:
            step_back(run)
            return DOUBTFUL
    pace = SENSIBLE
    if run.counts.steps == run.pace.judged_at:
        pace = judge(run.pace, run.counts.steps, run.step.time)
    if pace == TOO_SLOW:
        step_back(run)
        return SLOW
    if pace == CONSPICUOUS:
        run.budget = 0  # Python looks ahead of the next steps
    return STEPPING


def step_back(run: Run) -> None:
    """Undo the last step."""
    step = run.step
    new = step.x
    step.x = step.x_old
    step.x_old = new
    step.time = step.time_old
    step.h_next = step.h_wanted
    run.counts.steps -= 1
    run.witnesses.known = 0


def cut(run: Run, method: Static) -> None:
    """End the last step at an event."""
    step = run.step
    state_inside(run, method, run.witnesses.time_crossed, step.point)
    copy(run.system.n, step.point, step.x)
    step.time = run.witnesses.time_crossed


def cross(witnesses: WitnessData, updates: UpdateData) -> int:
    """Note a witness event, and make its updates pending; tell whether Python is needed."""
    status = GOING
    bit = 1
    for k in range(witnesses.count):
        if witnesses.crossed // bit % 2 == 1:
            if witnesses.handled[k] == 0:
                status = INTERRUPTED
            for e in range(updates.count):
                if updates.trigger[e] == k:
                    updates.pending[e] = 1
        bit *= 2
    return status


def is_stiff(run: Run, method: Static) -> bool:
    """Detect stiffness like `StiffnessDetector` in `integration/guard/stiffness_detection.py`."""
    if method.threshold == 0.0:
        return False
    else:  # noqa: RET505, only one of the branches is translated
        step, stiffness = run.step, run.stiffness
        stiffness.looked += 1
        if stiffness.suspicious == 0 and stiffness.looked % LOOKED_AT != 0:
            return False
        if limited_by_stability(run, method):
            stiffness.suspicious += 1
        else:
            stiffness.suspicious = 0
        ahead = (run.pace.end - step.time) / (step.time - step.time_old)
        return stiffness.suspicious >= SUSPICIOUS and ahead > WORTHWHILE


def finish_motion(run: Run) -> None:
    """End a motion: remember the step to begin with, and what is due now."""
    step, motion, updates = run.step, run.motion, run.updates
    motion.moving = 0
    step.h_next = carried_step(
        step.h_next,
        step.h_wanted,
        step.h_first,
        motion.steps,
        step.time_old,
        step.time_new,
        motion.stop,
    )
    for e in range(updates.count):
        c = updates.clock[e]
        if c >= 0 and run.clocks.ticks[c] == step.time:
            updates.pending[e] = 1
    go_past(run.clocks, step.time)


# Publishes ---------------------------------------------------------------------------------


def publish(run: Run, method: Static) -> bool:
    """Write the rows of the last step: samples inside of it, its end, an event and a sample there.

    Return False where there is no room; another call goes on from there.
    """
    step, clocks, rows = run.step, run.clocks, run.rows
    mask = 0
    while clocks.publishes == 1 and mask == 0:
        time = next_publish(clocks)
        if time > step.time:
            break
        if not has_room(rows):
            return False
        if time == step.time:
            mask = due_publishes(clocks, time)
        else:
            state_inside(run, method, time, step.point)
            add_row(run, SAMPLE, due_publishes(clocks, time), time, step.point)
    if not has_room(rows):
        return False
    if rows.recording == 1:
        add_row(run, STEP, 0, step.time, step.x)
    if run.witnesses.crossed != 0:
        add_row(run, CROSSING, run.witnesses.crossed, step.time, step.x)
    if mask != 0 or rows.stepwise == 1:
        add_row(run, SAMPLE, mask, step.time, step.x)
    return True


def add_row(run: Run, kind: int, mask: int, time: float, x: Floats) -> None:
    """Write a row."""
    rows, system = run.rows, run.system
    row = rows.table[rows.used * rows.width :]
    rows.kinds[2 * rows.used] = kind
    rows.kinds[2 * rows.used + 1] = mask
    row[TIME] = time
    row[BEGIN] = run.step.time_old
    row[END] = run.step.time_new
    row[CLIP] = run.step.clip
    copy(system.n, x, row[STATE:])
    if kind != STEP:  # which leaves discrete values as they are
        for i in range(rows.held):
            row[rows.discrete + i] = system.env[rows.places[i]]
    if rows.logging == 1 and kind == SAMPLE:
        system.signals(time, x, system.env, row[rows.signals :])
    rows.used += 1
