"""Kernels around those of runs: what a model in C does when it is called.

They are translated like all kernels, see `flexure.solvers.native.language.language`. An `Instance`
is the memory of one model: a run, and what its caller can ask for.
"""

from __future__ import annotations

from flexure.solvers.export.loop_assembly import ClosingData, assemble_loops
from flexure.solvers.native.kernels.parts.arithmetic import (
    INFINITY,
    all_finite,
    copy,
    larger,
    next_tick,
    smaller,
    spacing,
)
from flexure.solvers.native.kernels.parts.run import DOUBTFUL, INTERRUPTED, Run
from flexure.solvers.native.kernels.parts.run_samples import triggers
from flexure.solvers.native.kernels.runs.advance import (
    DISCRETE,
    GOING,
    UNRESTRICTED,
    follow_jumps,
    place_start,
    settle,
    update,
)
from flexure.solvers.native.kernels.runs.run_events import first_values
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Functions,
    Ints,
    Static,
    Structure,
    nextafter,
)

EXACT = True

# What a call returns
DONE = 0
ENDED = 1  # an event has ended the run
STATES, VALUES, FINISHED = 1, 2, 4  # bits of what events have done
NOT_FINITE, UNSETTLED, UNDEFINED, ASTRAY, OPEN = -1, -2, -3, -6, -9

# When updates run, and which publishes end a run
AT_START, AT_STEPS, AT_TICKS, AT_CROSSINGS = 0, 1, 2, 3


class DriverData(Structure):
    """Constants and functions of a model beside its run."""

    start: float  # the time of the first step
    period: float  # of steps
    rtol: float  # of adaptive steps between them; absolute ones are a thousandth
    count: int  # steps that were taken
    begun: int  # whether initialization updates have run
    status: int  # what the last step has returned
    prepared: int  # whether values that depend on parameters alone are known
    checked: int  # whether motions may begin with the present parameters
    starts: int  # numbers that limit with what motions may begin
    limits: Function  # computes them, each followed by its limit
    pairs: Floats
    begun_at: Floats  # the states before mechanisms are assembled
    prepare: Function
    first_parameter: int  # where parameters are in the environment
    behind_parameters: int
    signals: Function
    inputs: int  # their number
    places: Ints  # where they are in the environment
    causes: Ints  # when each update runs, if not with a clock or after a crossing
    steps: int  # whether any runs at every step
    first: Ints  # the number of the step at which each clock ticks first
    every: Ints  # how many steps are between its ticks
    ends: int  # publishes that may end a run
    triggers: Ints  # when they run
    numbers: Ints  # of which clock, or witness function
    verdicts: Functions
    verdict: Floats
    watches: Floats  # of witness functions, for those that pile up
    stiff: int  # whether the method for stiff equations goes on
    doubts: int  # tries of one step
    pausing: int  # whether calls return after each step of the integrator
    directional: Function  # slopes of derivatives and signals by states and inputs
    adjoint: Function
    seed: int  # where their direction is in the environment
    given: int  # numbers of states and inputs
    computed: int  # numbers of derivatives and signals


class Instance(Structure):
    """The memory of a model."""

    run: Run
    driver: DriverData
    closings: ClosingData


def refresh(m: Instance) -> None:
    """Compute what depends on parameters alone, when one of them has changed."""
    if m.driver.prepared == 0:
        env = m.run.system.env
        m.driver.prepare(m.run.step.time, m.run.step.x, env, env)
        m.driver.prepared = 1


# Values ------------------------------------------------------------------------------------


def get(m: Instance, place: int) -> float:
    """Return a discrete value, a parameter or an input."""
    value: float = m.run.system.env[place]
    return value


def put(m: Instance, place: int, value: float) -> None:
    """Set a discrete value, a parameter or an input."""
    m.run.system.env[place] = value
    first, behind = m.driver.first_parameter, m.driver.behind_parameters
    if behind > 0 and place >= first and place < behind:
        m.driver.prepared = 0
        m.driver.checked = 0


def time(m: Instance) -> float:
    """Return the time."""
    return m.run.step.time


def set_time(m: Instance, value: float) -> None:
    """Set the time."""
    m.run.step.time = value


def state(m: Instance, place: int) -> float:
    """Return a state."""
    value: float = m.run.step.x[place]
    return value


def set_state(m: Instance, place: int, value: float) -> None:
    """Set a state."""
    m.run.step.x[place] = value


# Events ------------------------------------------------------------------------------------


def settle_events(m: Instance) -> int:
    """Run the pending updates, and what follows from them at the same time."""
    run = m.run
    if not update(run, UNRESTRICTED) or not update(run, DISCRETE):
        return NOT_FINITE
    if run.updates.settles == 1 and not settle(run):
        return UNSETTLED
    if m.driver.starts > 0 and not assemble(m):
        return OPEN
    status = DONE
    if run.witnesses.count > 0 and run.witnesses.known == 1:
        found = follow_jumps(run)
        if found == DOUBTFUL:
            return UNSETTLED if run.updates.unsettled > 0 else UNDEFINED
        if found == INTERRUPTED:
            for k in range(run.witnesses.count):
                if run.witnesses.leaping[k] == 1 and ends(m, AT_CROSSINGS, k):
                    status = ENDED
    return status


def ends(m: Instance, trigger: int, number: int) -> bool:
    """Return whether a publish ends the run now."""
    run, driver = m.run, m.driver
    for e in range(driver.ends):
        if driver.triggers[e] == trigger and driver.numbers[e] == number:
            call = driver.verdicts[e]
            call(run.step.time, run.step.x, run.system.env, driver.verdict)
            if driver.verdict[0] != 0.0:
                return True
    return False


def assemble(m: Instance) -> bool:
    """Assemble mechanisms with loops if parameters have changed; tell whether motions may begin.

    Where one cannot be assembled, the states are those from before.
    """
    run, driver, closings = m.run, m.driver, m.closings
    if driver.checked == 1:
        return True
    far = 0 if may_begin(m) else 1
    copy(run.system.n, run.step.x, driver.begun_at)
    if assemble_loops(closings, far, run.step.time, run.step.x, run.system.env) >= 0:
        copy(run.system.n, driver.begun_at, run.step.x)
        return False
    for c in range(closings.count):
        if closings.moved[c] == 1:
            run.motion.changed = 1
            run.witnesses.jumped = 1
    driver.checked = 1 if may_begin(m) else 0
    return driver.checked == 1


def may_begin(m: Instance) -> bool:
    """Return whether constraints are met as far as a motion needs it."""
    driver = m.driver
    driver.limits(m.run.step.time, m.run.step.x, m.run.system.env, driver.pairs)
    met = True
    for k in range(driver.starts):
        if not driver.pairs[2 * k] <= driver.pairs[2 * k + 1]:
            met = False
    return met


def initialize_events(m: Instance) -> int:
    """Run the initialization updates."""
    expect(m, m.driver.causes, AT_START)
    m.driver.begun = 1
    return settle_events(m)


def expect(m: Instance, belonging: Ints, number: int) -> None:
    """Let the updates that belong to a trigger run with the next ones."""
    for e in range(m.run.updates.count):
        if belonging[e] == number:
            m.run.updates.pending[e] = 1


# Fixed steps -------------------------------------------------------------------------------


def take_inputs(m: Instance, inputs: Floats) -> None:
    """Take the values of inputs."""
    for i in range(m.driver.inputs):
        m.run.system.env[m.driver.places[i]] = inputs[i]
    refresh(m)


def fixed_events(m: Instance) -> int:
    """Run the events at the present step: crossings since the last one, and then clocks."""
    run, driver = m.run, m.driver
    status = DONE
    if driver.begun == 0:
        status = initialize_events(m)
        if status == DONE and ends(m, AT_START, -1):
            status = ENDED
    elif run.witnesses.count > 0:
        status = settle_events(m)
    if status != DONE:
        return status
    if m.driver.steps == 1:
        expect(m, m.driver.causes, AT_STEPS)
    for c in range(run.clocks.count):
        if ticks_now(m, c):
            expect(m, run.updates.clock, c)
    status = settle_events(m)
    if run.witnesses.count > 0 and status == DONE and not first_values(run):
        status = UNDEFINED
    for c in range(run.clocks.count):
        if status == DONE and ticks_now(m, c) and ends(m, AT_TICKS, c):
            status = ENDED
    if status == DONE and ends(m, AT_STEPS, -1):
        status = ENDED
    return status


def ticks_now(m: Instance, c: int) -> bool:
    """Return whether a clock ticks at the present step."""
    since = m.driver.count - m.driver.first[c]
    ticks: bool = since >= 0 and since % m.driver.every[c] == 0
    return ticks


def take_fixed_step(m: Instance, later: float, method: Static) -> int:
    """Take one step of an explicit method, of which nothing is estimated."""
    run, step = m.run, m.run.step
    step.h = later - step.time
    step.clip = INFINITY
    if run.clocks.breaking == 1:
        run.clocks.breaks(step.time, step.x, run.system.env, step.work)
        if step.work[0] == later:
            step.clip = nextafter(later, -INFINITY)
    method(run)
    run.step.time = later
    if run.manifold.count > 0 and place_start(run) != GOING:
        return ASTRAY
    return DONE if all_finite(run.system.n, step.x) else NOT_FINITE


# For integrators outside -------------------------------------------------------------------


def initialize(m: Instance) -> int:
    """Run the initialization updates and what is due; return flags, or a failure."""
    run = m.run
    refresh(m)
    run.motion.changed, run.witnesses.jumped = 0, 0
    status = initialize_events(m)
    if status == DONE and (ends(m, AT_START, -1) or ends(m, AT_STEPS, -1)):
        status = ENDED
    if m.driver.steps == 1:
        expect(m, m.driver.causes, AT_STEPS)
    before = nextafter(run.step.time, -INFINITY)
    for c in range(run.clocks.count):
        run.clocks.ticks[c] = next_tick(run.clocks.periods[c], run.clocks.offsets[c], before)
    return settle_due(m, status)


def settle_due(m: Instance, status: int) -> int:
    """Run the clocks that are due, with all pending updates; return what they have done."""
    run, clocks = m.run, m.run.clocks
    now = run.step.time + 4.0 * spacing(run.step.time)
    for c in range(clocks.count):
        if clocks.ticks[c] <= now:
            expect(m, m.run.updates.clock, c)
    found = settle_events(m)
    if status == DONE or found < DONE:
        status = found
    if status == DONE and pass_ticks(m, now):
        status = ENDED
    if run.witnesses.count > 0:
        if not first_values(run) and status >= DONE:
            status = UNDEFINED
        for k in range(run.witnesses.count):
            run.witnesses.on_surface[k] = 0
    if status < DONE:
        return status
    flags = FINISHED * status
    if run.witnesses.jumped == 1:
        flags += STATES
    if run.motion.changed == 1:
        flags += VALUES
    return flags


def pass_ticks(m: Instance, now: float) -> bool:
    """Go past the clocks that were due; tell whether one of them ends the run."""
    clocks = m.run.clocks
    ended = False
    for c in range(clocks.count):
        if clocks.ticks[c] <= now:
            if ends(m, AT_TICKS, c):
                ended = True
            late = larger(clocks.ticks[c], m.run.step.time)
            clocks.ticks[c] = next_tick(clocks.periods[c], clocks.offsets[c], late)
    return ended


def derivatives(m: Instance, out: Floats) -> None:
    """Compute the derivatives of the states."""
    refresh(m)
    m.run.system.rhs(m.run.step.time, m.run.step.x, m.run.system.env, out)


def signals(m: Instance, out: Floats) -> None:
    """Compute all signals."""
    refresh(m)
    m.driver.signals(m.run.step.time, m.run.step.x, m.run.system.env, out)


def witnesses(m: Instance, out: Floats) -> None:
    """Compute the witness functions."""
    refresh(m)
    m.run.witnesses.values(m.run.step.time, m.run.step.x, m.run.system.env, out)


def directional(m: Instance, seed: Floats, out: Floats) -> None:
    """Compute slopes of derivatives and signals by states and inputs, along one."""
    env = m.run.system.env
    refresh(m)
    copy(m.driver.given, seed, env[m.driver.seed :])
    m.driver.directional(m.run.step.time, m.run.step.x, env, out)


def adjoint(m: Instance, seed: Floats, out: Floats) -> None:
    """Compute slopes of a weighted sum of derivatives and signals by states and inputs."""
    env = m.run.system.env
    refresh(m)
    copy(m.driver.computed, seed, env[m.driver.seed :])
    m.driver.adjoint(m.run.step.time, m.run.step.x, env, out)


def next_time(m: Instance) -> float:
    """Return the next time of a clock, or at which the equations jump."""
    run = m.run
    found = INFINITY
    for c in range(run.clocks.count):
        found = smaller(found, run.clocks.ticks[c])
    if run.clocks.breaking == 1:
        refresh(m)
        run.clocks.breaks(run.step.time, run.step.x, run.system.env, run.step.work)
        found = smaller(found, run.step.work[0])
    return found


def look(m: Instance) -> bool:
    """Remember which witness functions have crossed zero; tell whether events are to run."""
    run, seen = m.run, m.run.witnesses
    some = m.driver.steps == 1
    if seen.count > 0:
        refresh(m)
        seen.values(run.step.time, run.step.x, run.system.env, seen.slopes)
        for k in range(seen.count):
            if triggers(seen.directions[k], seen.first[k], seen.slopes[k]):
                seen.on_surface[k] = 1
                seen.surface[k] = seen.slopes[k]
            seen.first[k] = seen.slopes[k]
            if seen.on_surface[k] == 1:
                some = True
    return some


def handle(m: Instance) -> int:
    """Run the events that are due or remembered; return flags, or a failure."""
    run = m.run
    refresh(m)
    look(m)
    run.motion.changed, run.witnesses.jumped = 0, 0
    status = DONE
    for k in range(run.witnesses.count):
        if run.witnesses.on_surface[k] == 1:
            if ends(m, AT_CROSSINGS, k):
                status = ENDED
            expect(m, run.updates.trigger, k)
    if m.driver.steps == 1:
        expect(m, m.driver.causes, AT_STEPS)
    if status == DONE and ends(m, AT_STEPS, -1):
        status = ENDED
    return settle_due(m, status)
