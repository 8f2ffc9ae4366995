"""The structure of a native run: everything that its loop reads and writes, shared with Python.

It is made of parts, one for each concern. A part is in the file of the kernels that work on it
alone, or here.
"""

from __future__ import annotations

from flexure.solvers.integration.guard.progress_limits import (
    MARKS,
    STRIDE,
    is_conspicuous,
    makes_slow_progress,
)
from flexure.solvers.native.kernels.parts.clocks import ClockData
from flexure.solvers.native.kernels.parts.linear_solves import LinearData
from flexure.solvers.native.kernels.parts.manifold import ManifoldData
from flexure.solvers.native.kernels.parts.output_rows import RowData
from flexure.solvers.native.kernels.parts.run_samples import WitnessData
from flexure.solvers.native.kernels.parts.state_derivatives import ColumnData
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Functions,
    Ints,
    Reals,
    Structure,
)

# How a call of `advance` ended; the run goes on with another call, unless it is complete.
COMPLETE = 0  # the end of the run is reached
PAUSED = 1  # enough steps for one call, or no more room for rows
INTERRUPTED = 2  # a break time, or an event that Python has to handle, is reached
STIFF = 3  # stability limits the steps
DOUBTFUL = 4  # something is not finite or fails; nothing happened, Python is to try the same
SLOW = 5  # the last steps hardly advance time; `PaceData.slow` tells how many strides do not
DEPARTED = 6  # Python is to move the state to where it belongs; nothing else happened yet

# How a state was reached by a step; 0 where a motion begins, and the slope is in its place.
TAKEN = 1  # as the method leads there: its slope is the last one of k
PROJECTED = 2  # and then by a projection: its slope is that of `ManifoldData`


#: Rounds of updates at one instant after which they are taken to go on for ever.
MOST_ROUNDS = 1000


# Verdicts
SENSIBLE = 0
CONSPICUOUS = 1  # a jump of the equations may be what makes the steps short
TOO_SLOW = 2


class PaceData(Structure):
    """How fast the steps of a run bring it to its end."""

    judged_at: int  # the number of steps after which it is judged
    strides: int  # judged so far
    marks: Floats  # when the latest of them ended
    end: float  # of the run
    most_steps: float  # that may still be needed
    deliberate: float  # the length of a step that was asked for
    slow: int  # how many of the latest strides are too slow


def judge(pace: PaceData, steps: int, time: float) -> int:
    """Judge the pace at the end of a stride, as `Pace` does in Python; return a verdict."""
    pace.judged_at = steps + STRIDE
    pace.strides += 1
    pace.slow = makes_slow_progress(
        pace.marks, pace.strides, STRIDE, time, pace.end, pace.most_steps, pace.deliberate
    )
    if pace.slow > 0:
        return TOO_SLOW
    conspicuous = is_conspicuous(
        pace.marks, pace.strides, STRIDE, time, pace.end, pace.most_steps, pace.deliberate
    )
    pace.marks[pace.strides % MARKS] = time
    return CONSPICUOUS if conspicuous else SENSIBLE


class SystemData(Structure):
    """The system of a run, or of an ensemble.

    Equations are functions ``f(t, x, env, out)``. The environment ``env`` begins with the discrete
    values of the system.
    """

    n: int  # continuous states
    m: int  # discrete values
    env: Reals
    rhs: Function
    timed: int  # whether that depends on time
    attempt: Function  # tries one step and returns its error, attempt(run)
    signals: Function  # everything that is logged


class ToleranceData(Structure):
    """Conditions on the steps of a run, or of an ensemble."""

    rtol: Floats
    atol: Floats
    max_step: float


class StepData(Structure):
    """The present state, and the step that led to it."""

    time: float
    time_old: float  # start of the last step
    time_new: float  # end of the last step; later than the time when an event cut it
    clip: float  # the equations are evaluated no later than this
    h: float  # the step that is tried
    h_next: float  # the step to try next; 0.0 to estimate it
    h_wanted: float  # the step that was meant to be tried, before the last one
    h_first: float  # the step that was given for the first step of a motion, or 0.0
    error_old: float  # of the last good step
    x: Floats
    x_old: Floats
    x_new: Floats
    work: Floats
    point: Floats
    k: Floats  # slopes, or stages
    q: Floats  # coefficients of the interpolant
    time_slope: Floats  # derivative of the equations by time, for implicit methods
    keeping: int  # whether all slopes of a step are looked at later, and not only the last
    moved: int  # how the present state was reached: where the slope there is
    ready: int  # whether q belongs to the last step


class MotionData(Structure):
    """The motion between two instants at which events may happen."""

    moving: int  # whether one is under way
    stop: float  # its end, unless a witness event comes before
    steps: int  # its good steps
    changed: int  # whether an update changed something since the last one
    unpublished: int  # whether rows of the last step are still to be written
    verdict: int  # what follows when they are


class StiffnessData(Structure):
    """The look for stiffness."""

    watching: int  # whether there is one
    looked: int  # steps since then
    suspicious: int  # steps in a row that stability seems to limit


class UpdateData(Structure):
    """The updates, in the order in which they run."""

    count: int
    functions: Functions
    unrestricted: Ints  # their kind
    clock: Ints  # of each update, or -1
    trigger: Ints  # witness function of each update, or -1
    pending: Ints
    settling: Ints  # whether each runs before every motion, until nothing changes
    settles: int  # whether any does
    unsettled: int  # 1 where they have gone on to change values, 2 where events cause each other
    first_target: Ints  # where the targets of each begin; one more entry than updates
    targets: Ints  # state, or n + discrete value
    lines: int  # discrete values that are passed on as a whole
    mover: Ints  # which update does that
    starts: Ints  # where each line begins, and what is computed
    aparts: Ints  # how far values are moved
    ends: Ints
    moved: int  # the mask of those that were moved since values were written down
    staged: Floats  # states ahead, at which witness functions are looked at
    results: Floats  # of all updates, one after the other


class CountData(Structure):
    """The statistics."""

    steps: int
    rejected: int
    restarts: int
    evaluations: int
    jacobians: int
    factorizations: int
    discrete_updates: int
    unrestricted_updates: int


class Run(Structure):
    """One run of one system."""

    boundary: float  # its end
    jump: float  # the next break time
    budget: int  # steps until the call pauses
    system: SystemData
    tolerances: ToleranceData
    step: StepData
    linear: LinearData
    columns: ColumnData
    motion: MotionData
    stiffness: StiffnessData
    pace: PaceData
    clocks: ClockData
    updates: UpdateData
    witnesses: WitnessData
    manifold: ManifoldData
    rows: RowData
    counts: CountData
