"""The structure of an ensemble: everything that its loop reads and writes, shared with Python."""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.linear_solves import LinearData
from flexure.solvers.native.kernels.parts.run import SystemData, ToleranceData
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Functions,
    Ints,
    Reals,
    Structure,
)


class RunsData(Structure):
    """The runs of an ensemble."""

    count: int
    next: int  # that a free lane takes
    apart: int  # from one to the one after it
    starts: Floats  # times
    initial: Floats  # states
    given: int  # numbers of the environment in which runs differ
    places: Ints  # where these are
    table: Floats  # these numbers, run by run
    breaks: Floats  # break times, ascending; after them infinity
    break_width: int  # from the break times of one run to those of the next; 0 if all share them


class LaneUpdateData(Structure):
    """The periodic updates, in the order in which they run, and their clocks."""

    count: int
    functions: Functions
    unrestricted: Ints  # their kind
    clock: Ints  # of each
    first_target: Ints  # where the targets of each begin; one more entry than updates
    targets: Ints  # state, or n + discrete value
    results: Reals  # of all updates, one after the other
    held: int  # discrete values, with which runs begin anew; 0 where nothing is updated
    values: Floats  # those that the runs share
    clocks: int
    periods: Floats
    offsets: Floats
    ticks: Reals  # the next time of each clock
    due: Reals  # 1.0 where the updates of a clock are to run
    breaking: int  # whether updates may move break times; else each run has a table of these
    breaks: Function  # the next break time


class OutcomeData(Structure):
    """Outcomes of the runs."""

    finals: Floats  # states at the end
    ends: Floats  # times at the end
    outcomes: Ints
    steps: Ints
    left: Floats  # the largest deviations that projections have left


class SampleData(Structure):
    """Samples of the signals."""

    times: Floats  # of samples, ascending; after them infinity, once for each lane
    count: int  # of these times
    width: int  # of the signals
    values: Floats  # run by run and time by time
    sample: Reals  # one in each lane
    # Of one run, where its next samples are computed in all lanes at once:
    time: Reals
    x: Reals
    x_new: Reals
    q: Reals
    work: Reals
    env: Reals
    bends: int  # rows of q
    reads: int  # numbers of the environment that signals read
    places: Ints  # where these are


class TrailData(Structure):
    """Signals in all steps: pieces of time, with the signals at a few nodes of each."""

    width: int  # of the signals that are followed; 0 where none are
    which: Ints  # of all signals
    tolerance: float  # by which polynomials may miss signals, in units of their magnitudes
    rows: Floats  # pieces: the run, begin, end, and the signals node by node
    size: int  # numbers of a row
    room: int  # for so many rows
    most: int  # pieces that are tried in a step; more are of a signal that is smooth nowhere
    reserve: int  # rows that are free when a step is tried
    count: int  # of rows that are filled
    rough: int  # number from 1 on of a signal that is too fast for the pieces; 0 if none was
    inside: Reals  # signals at the nodes of a piece, and at the check
    scale: Reals  # largest magnitudes of the signals in each run
    fresh: Reals  # 1.0 where a motion has just begun
    # Pieces that are to be joined with the next ones, where these go on likewise:
    open: Reals  # 1.0 where there is one
    begin: Reals
    end: Reals
    before: Reals  # signals at its nodes
    both: Reals  # and at those of what is joined, and at a check
    basis: Reals  # the polynomials of the nodes at one place


class LaneData(Structure):
    """The lanes, and the run and the motion in each."""

    count: int
    working: int  # lanes with a run
    waiting: int  # lanes that take a run or begin a motion before the next step
    run_of: Ints
    break_of: Ints  # which break time is next
    sample_of: Ints  # which sample is next
    marks: Floats  # when the latest strides of each ended, lane by lane
    live: Reals  # 1.0 where there is a run
    starting: Reals  # 1.0 where a motion begins
    jump: Reals  # the next break time, where updates may move it
    stop: Reals  # of the present motion
    until: Reals  # the last time of which samples belong to that, and not to the next
    sample_time: Reals  # of the next sample
    steps: Reals
    motion_steps: Reals
    review: Reals  # number of steps at which the pace is judged next


class LaneStepData(Structure):
    """The present states, and the step that all lanes try."""

    time: Reals
    end: Reals  # of the step that is tried
    until: Reals  # the last time of which samples belong to it
    clip: Reals  # the equations are evaluated no later than this
    again: Reals  # 1.0 where the last try was bad
    h: Reals  # the step to try next; 0.0 to estimate it
    h_wanted: Reals  # the step that was meant to be tried
    h_first: Reals  # the step that was given for the first step of a motion, or 0.0
    error: Reals
    error_old: Reals
    x: Reals
    x_new: Reals
    work: Reals
    k: Reals
    q: Reals
    time_slope: Reals  # derivative of the equations by time, for implicit methods
    dense: Reals  # 1.0 where their linear equations have dense factors
    one: Floats  # entries, or a right-hand side, of the equations of one lane


class LaneManifoldData(Structure):
    """Where the states belong, and the projections of the last step."""

    count: int  # of deviations; 0 where nothing is looked at
    deviations: Function
    projection: Function
    any_moved: int  # whether some state was to be moved
    away: Reals  # deviations
    allowed: Reals  # largest deviation that is left
    landed: Reals  # the states before they were moved
    shift: Reals  # by how much they were moved
    slope: Reals  # where they were moved to
    moved: Reals  # 1.0 where a state was moved
    lost: Reals  # 1.0 where it is so far away that its run ends
    shift_of_one: Reals  # of one run, see `SampleData`


class Ensemble(Structure):
    """Runs of one system, and the lanes in which they are integrated.

    An entry of a field of the type `Reals` holds a number for each lane.
    """

    boundary: float  # the end of all runs
    most_steps: float  # that may still be needed
    budget: int  # steps to try until the call pauses
    prepare: Function  # computes what depends on parameters alone
    prepared: Reals  # where that belongs, in the environment
    system: SystemData
    tolerances: ToleranceData
    runs: RunsData
    updates: LaneUpdateData
    outcome: OutcomeData
    samples: SampleData
    trail: TrailData
    lanes: LaneData
    step: LaneStepData
    manifold: LaneManifoldData
    linear: LinearData  # of implicit methods; dense factors lane by lane
