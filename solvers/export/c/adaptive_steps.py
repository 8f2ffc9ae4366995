"""Kernels of steps in C: fixed ones, and the loops of adaptive methods from event to event."""

from __future__ import annotations

from flexure.solvers.export.c.driver import (
    ASTRAY,
    AT_CROSSINGS,
    AT_STEPS,
    AT_TICKS,
    DONE,
    ENDED,
    FINISHED,
    NOT_FINITE,
    OPEN,
    UNDEFINED,
    UNSETTLED,
    Instance,
    assemble,
    ends,
    expect,
    fixed_events,
    initialize,
    refresh,
    settle_events,
    take_fixed_step,
    take_inputs,
)
from flexure.solvers.integration.guard.progress_limits import MARKS, STRIDE
from flexure.solvers.native.kernels.parts.arithmetic import INFINITY, copy, spacing
from flexure.solvers.native.kernels.parts.output_rows import CROSSING, SAMPLE, STATE, TIME
from flexure.solvers.native.kernels.parts.run import DEPARTED, DOUBTFUL, SLOW, STIFF
from flexure.solvers.native.kernels.runs.advance import (
    DISCRETE,
    UNRESTRICTED,
    advance,
    finish_motion,
    update,
)
from flexure.solvers.native.kernels.runs.zeno_detection import WATCH_SIZE, piles_up
from flexure.solvers.native.language.language import Floats, Static

EXACT = True

#: What a call may return beside what `driver` has.
STUCK, TOO_SLOW, CROWDED, BACKWARD = -4, -5, -7, -8
#: Steps of one call of a loop, and tries of steps in which events cannot be told.
_MANY = 1_000_000_000
_MOST_DOUBTS = 8


def advance_to(
    m: Instance, end: float, rtol: float, atol: float, method: Static, stiff_method: Static
) -> int:
    """Go on to a time by steps within a tolerance; return how that ended."""
    run, driver = m.run, m.driver
    if end < run.step.time:
        return BACKWARD
    if run.motion.moving == 0:
        refresh(m)
        if driver.starts > 0 and not assemble(m):
            return OPEN
        prepare_run(m, end, rtol, atol)
    while run.step.time < end or run.motion.moving == 1:
        run.budget = 1 if driver.steps == 1 or driver.pausing == 1 else _MANY
        if driver.steps == 1 and run.motion.moving == 0:
            expect(m, driver.causes, AT_STEPS)
        if stiff_method is not None and driver.stiff == 1:
            status = advance(run, stiff_method, True)
        else:
            status = advance(run, method, True)
        found = read_rows(m)
        if found == DONE:
            found = conclude(m, status)
        if found != DONE or driver.pausing == 1:
            return found
    return DONE


def step(
    m: Instance,
    inputs: Floats,
    outputs: Floats,
    fixed: Static,
    method: Static,
    stiff_method: Static,
) -> int:
    """Take the inputs, run what is due, compute the outputs, and go on by one step."""
    run, driver = m.run, m.driver
    take_inputs(m, inputs)
    if driver.status == DONE:
        driver.status = adaptive_events(m) if method is not None else fixed_events(m)
    driver.signals(run.step.time, run.step.x, run.system.env, outputs)
    if driver.status == DONE:
        driver.count += 1
        later = driver.start + driver.count * driver.period
        if method is not None:
            driver.status = advance_to(
                m, later, driver.rtol, driver.rtol / 1000.0, method, stiff_method
            )
        else:
            if run.system.n > 0:
                driver.status = take_fixed_step(m, later, fixed)
            run.step.time = later
    return driver.status


def adaptive_events(m: Instance) -> int:
    """Run the initialization updates, or what is pending."""
    if m.driver.begun == 1:
        return settle_events(m)
    found = initialize(m)
    return found if found < DONE else found // FINISHED


def settle_now(m: Instance) -> int:
    """Run what is due now, and would else wait for the next values of inputs."""
    refresh(m)
    return settle_events(m) if m.run.motion.moving == 0 else DONE


def pause(m: Instance, inside: int) -> None:
    """Let calls to go on return after each step of the integrator, or at the end."""
    m.driver.pausing = inside
    m.run.motion.moving = 0


def prepare_run(m: Instance, end: float, rtol: float, atol: float) -> None:
    """Begin a run to a time."""
    run = m.run
    run.boundary = end
    run.jump = INFINITY
    run.rows.used = 0
    for i in range(run.system.n):
        run.tolerances.rtol[i] = rtol
        run.tolerances.atol[i] = atol
    for k in range(MARKS):
        run.pace.marks[k] = run.step.time
    run.pace.strides = 0
    run.pace.judged_at = run.counts.steps + STRIDE
    run.pace.end = end
    m.driver.doubts = 0


def read_rows(m: Instance) -> int:
    """Return whether what a loop has written down ends the run."""
    run, rows, driver = m.run, m.run.rows, m.driver
    status = DONE
    count = rows.used if run.witnesses.count > 0 or driver.ends > 0 else 0
    for r in range(count):
        if status == DONE and rows.kinds[2 * r] == CROSSING:
            status = read_crossing(m, rows.kinds[2 * r + 1], rows.table[r * rows.width + TIME])
        elif status == DONE and rows.kinds[2 * r] == SAMPLE:
            status = read_sample(m, rows.kinds[2 * r + 1], rows.table[r * rows.width :])
    rows.used = 0
    if driver.steps == 1 and status == DONE and ends(m, AT_STEPS, -1):
        status = ENDED
    if status != DONE:
        run.motion.moving = 0
    return status


def read_crossing(m: Instance, mask: int, at: float) -> int:
    """Return whether crossings end the run."""
    status = DONE
    bit = 1
    for k in range(m.run.witnesses.count):
        if mask // bit % 2 == 1 and status == DONE:
            if ends(m, AT_CROSSINGS, k):
                status = ENDED
            elif piles_up(m.driver.watches[k * WATCH_SIZE :], at, False):
                status = CROWDED
        bit *= 2
    return status


def read_sample(m: Instance, mask: int, row: Floats) -> int:
    """Return whether ticks of clocks end the run; the state is then that of the tick."""
    run, step = m.run, m.run.step
    now = step.time
    copy(run.system.n, step.x, step.work)
    copy(run.system.n, row[STATE:], step.x)
    step.time = row[TIME]
    bit = 1
    for c in range(run.clocks.count):
        if mask // bit % 2 == 1 and ends(m, AT_TICKS, c):
            return ENDED
        bit *= 2
    step.time = now
    copy(run.system.n, step.work, step.x)
    return DONE


def conclude(m: Instance, status: int) -> int:
    """Return what the end of a loop means for the run: DONE if it goes on."""
    run, driver = m.run, m.driver
    if status == STIFF:
        driver.stiff = 1
        run.stiffness.watching = 0
        run.step.h_next = 0.0
        run.motion.moving = 0
    elif status == SLOW:
        return TOO_SLOW
    elif status == DEPARTED:
        return ASTRAY
    elif status == DOUBTFUL:
        return doubt(m)
    elif driver.steps == 1 and run.motion.moving == 1 and run.motion.unpublished == 0:
        expect(m, driver.causes, AT_STEPS)
        if not update(run, UNRESTRICTED) or not update(run, DISCRETE):
            return NOT_FINITE
        if run.motion.changed == 1:
            finish_motion(run)
    return DONE


def doubt(m: Instance) -> int:
    """Return why a loop could not go on; DONE if it can."""
    run, driver = m.run, m.driver
    if run.updates.unsettled > 0:
        return UNSETTLED
    if run.motion.moving == 1 and run.motion.verdict == DOUBTFUL:
        return STUCK
    if run.motion.moving == 1:
        driver.doubts += 1
        if driver.doubts > _MOST_DOUBTS:
            return UNDEFINED
        run.motion.moving = 0  # in a shorter step, events may be told
        run.step.h_next = run.step.h_next / 8.0
        return DONE
    if not run.motion.stop - run.step.time > 4.0 * spacing(run.step.time):
        run.step.time = run.motion.stop  # too close to move
        finish_motion(run)
        return DONE
    return NOT_FINITE
