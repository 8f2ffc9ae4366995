"""The record of a native run: everything that the loops read and write, shared with Python."""

from __future__ import annotations

from flexure.solvers.native.language.language import Floats, Function, Functions, Ints, Structure

# How a call of `advance` ended; the run goes on with another call, unless it is complete.
COMPLETE = 0  # the end of the run is reached
PAUSED = 1  # enough steps for one call, or no more room for rows
INTERRUPTED = 2  # a break time, or an event that Python has to handle, is reached
STIFF = 3  # stability limits the steps
DOUBTFUL = 4  # something is not finite or fails; nothing happened, Python is to try the same
SLOW = 5  # the last steps hardly advance time; `slow` tells how many strides do not

# Kinds of rows
STEP = 0  # the end of a step
CHANGE = 1  # values after an update that changed something
SAMPLE = 2  # a publish; the mask tells which clocks are due
CROSSING = 3  # a witness event; the mask tells which functions triggered

MOST_ROWS = 4  # that are written at once


class Run(Structure):
    """One run of one system.

    Equations are functions ``f(t, x, env, out)``. The environment ``env`` begins with the discrete
    values of the system.
    """

    # The system
    n: int  # continuous states
    m: int  # discrete values
    env: Floats
    rhs: Function
    attempt: Function  # tries one step and returns its error, attempt(run)
    jacobian: Function  # its nonzero entries
    witness: Function  # all witness functions
    signals: Function  # everything that is logged

    # The integrator
    rtol: Floats
    atol: Floats
    max_step: float
    time: float
    time_old: float  # start of the last step
    time_new: float  # end of the last step; later than the time when an event cut it
    stop: float  # of the present motion
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
    keeping: int  # whether all slopes of a step are looked at later, and not only the last
    moved: int  # whether the slope at the present state is the last one of k
    ready: int  # whether q belongs to the last step
    watching: int  # whether to look for stiffness
    looked: int  # steps since then
    suspicious: int  # steps in a row that stability seems to limit
    horizon: float  # the end of the run, for that

    # The pace
    judged_at: int  # the number of steps after which it is judged
    strides: int  # judged so far
    marks: Floats  # when the latest of them ended
    most_steps: float  # that may still be needed
    deliberate: float  # the length of a step that was asked for
    slow: int  # how many of the latest strides are too slow

    # The linear systems of implicit methods
    nonzeros: int  # entries of the Jacobian that are not always zero
    entries: Floats
    rows: Ints
    columns: Ints
    known: int  # whether the entries belong to the present state
    factored_sparse: int
    timed: int  # whether the right-hand side depends on time
    sparse: int  # whether a sparse factorization is tried first
    starts: Ints  # of the rows of the factors; one more entry than rows
    diagonal: Ints  # where the diagonal entry of each row is
    column: Ints  # of each entry of the factors
    slots: Ints  # where each entry of the Jacobian goes
    ranks: Ints  # position of each state in the order of elimination
    pairs: int  # entries left of the diagonal with a counterpart across it
    lower: Ints  # where these are
    upper: Ints  # where their counterparts are
    factors: Floats
    roomy: int  # whether there is room for a dense matrix
    matrix: Floats
    pivots: Ints
    time_slope: Floats

    # The simulation
    boundary: float  # the end of the run
    jump: float  # the next break time
    moving: int  # whether a motion is under way
    budget: int  # steps until the call pauses
    recording: int  # whether rows of steps and changes are wanted
    clocks: int
    periods: Floats
    offsets: Floats
    updating: Ints  # whether updates belong to a clock
    publishing: Ints  # whether publishes belong to a clock
    ticks: Floats  # the next time of each
    publish_ticks: Floats  # the next time that is not published
    publishes: int  # whether there are clocks with publishes
    stepwise: int  # whether something is published at every step
    logging: int  # whether there are signals to log
    changed: int  # whether an update changed something since the last motion
    motion_steps: int  # good steps of the present motion
    unpublished: int  # whether rows of the last step are still to be written
    verdict: int  # what follows when they are

    # Updates, in the order in which they run
    events: int
    updates: Functions
    unrestricted: Ints  # their kind
    clock: Ints  # of each update, or -1
    trigger: Ints  # witness function of each update, or -1
    pending: Ints
    first_target: Ints  # where the targets of each begin; one more entry than events
    targets: Ints  # state, or n + discrete value
    staged: Floats  # new values
    results: Floats  # of one update

    # Witness functions
    witnesses: int
    directions: Ints  # -1 falling, 1 rising, 0 either
    handled: Ints  # whether nothing but native updates belongs to each
    on_surface: Ints  # 1 where each has just triggered, 2 a step later and so on, up to a few
    surface: Floats  # its value then
    first: Floats  # values at the start of the step
    samples: Floats  # values inside of the step
    instants: Floats  # when
    order: Ints
    slopes: Floats
    jumped: int  # whether an update has changed the continuous state since the last event
    fast: Ints  # whether each varies too fast for a stretch of time, see `varies_fast`
    peaks: Floats  # the largest values of each in a step
    search: Floats  # for the zero of one of them
    longest: float  # stretch of time that is looked at as a whole
    crossed: int  # mask of the functions that triggered last
    time_crossed: float  # when
    turning: Ints  # whether updates belong to each

    # Rows
    rows_used: int
    rows_room: int
    width: int
    kinds: Ints  # kind and mask of each row
    table: Floats  # time, start and end of the step, x, discrete values, signals

    # Statistics
    steps: int
    rejected: int
    restarts: int
    evaluations: int
    jacobians: int
    factorizations: int
    discrete_updates: int
    unrestricted_updates: int
