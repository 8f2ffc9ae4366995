"""Kernels that carry on a motion together with its derivatives by numbers.

Explicit methods take states and columns as one system. ESDIRK4 solves the stage of the states
first, as without columns; those of the columns are then linear, and each is solved with the factors
that were good enough for the states. The error of a step is that of states and columns together.
"""

from __future__ import annotations

from flexure.solvers.integration.methods.step_control import (
    FAILED_ERROR,
    FIRST_REST,
    KEEPING_RATIO,
    LABORED_ERROR,
    MOST_UPDATES,
    NEWTON_REST,
    RENEWING_RATIO,
)
from flexure.solvers.native.kernels.parts.arithmetic import (
    INFINITY,
    NAN,
    all_finite,
    copy,
    larger,
    smaller,
)
from flexure.solvers.native.kernels.parts.linear_solves import factorize, solve
from flexure.solvers.native.kernels.parts.run import (
    COMPLETE,
    DOUBTFUL,
    PAUSED,
    SENSIBLE,
    SLOW,
    STIFF,
    TOO_SLOW,
    Run,
    judge,
)
from flexure.solvers.native.kernels.parts.state_derivatives import (
    ColumnData,
    linearize,
    move_column,
    move_columns,
    rates,
)
from flexure.solvers.native.kernels.runs.advance import is_stiff, step_back
from flexure.solvers.native.kernels.steps.esdirk import find_stage, scale, take_increment
from flexure.solvers.native.kernels.steps.rosenbrock import add_up, error_norm, point
from flexure.solvers.native.kernels.steps.stepping import begin, state_inside, take_step
from flexure.solvers.native.language.language import Floats, Static, unrolled

REORDERED = True


def follow(run: Run, method: Static) -> int:
    """Advance states and columns to ``motion.stop``, as far as one call leads; return how it ended.

    Their values at the requested times are written during the run.
    """
    step, motion, data = run.step, run.motion, run.columns
    n = run.system.n
    if motion.moving == 0:
        begin(run, method)
        if not all_finite(n, step.k):
            return DOUBTFUL
        motion.moving = 1
        motion.steps = 0
    while step.time < motion.stop:
        if run.budget <= 0:
            return PAUSED
        run.budget -= 1
        if not take_step(run, method):
            return DOUBTFUL
        motion.steps += 1
        pace = SENSIBLE
        if run.counts.steps == run.pace.judged_at:
            pace = judge(run.pace, run.counts.steps, step.time)
        if pace == TOO_SLOW:
            step_back(run)
            return SLOW
        while data.given < data.wanted and data.times[data.given] <= step.time:
            state_inside(run, method, data.times[data.given], data.samples[data.given * n :])
            data.given += 1
        if run.stiffness.watching == 1 and is_stiff(run, method):
            return STIFF
    motion.moving = 0
    return COMPLETE


def attempt(run: Run, tableau: Static, tile: Static, rates_of_states: Static) -> float:
    """Try a step of the diagonally implicit method; return the norm of its error, or NaN.

    The rows of ``k`` are those of `flexure.solvers.native.kernels.steps.esdirk.attempt`.
    """
    step, data, factors = run.step, run.columns, run.linear.factors
    n, size = data.n, run.system.n
    h, x, y, k = step.h, step.x, step.point, step.k
    d = 1.0 / (tableau.gamma * h)
    scale(size, h, k, k[size:])
    ratio = 1.0
    largest = 0.0
    for s in unrolled(1, len(tableau.alpha)):
        point(tableau.A, s, size, x, k[size:], step.work)
        point(tableau.G, s, size, x, k[size:], y)
        time = smaller(step.time + tableau.alpha[s] * h, step.clip)
        ratio = find_stage(run, d, n, tile, rates_of_states, factors, time, ratio)
        if ratio < INFINITY:
            ratio = larger(ratio, find_columns(run, d, tile, time, ratio))
        if not ratio < INFINITY:
            return FAILED_ERROR if ratio == INFINITY else NAN
        largest = larger(largest, ratio)
        take_increment(size, 1.0 / tableau.gamma, y, step.work, k[(s + 1) * size :])
    copy(size, y, step.x_new)
    add_up(tableau.E, size, k[size:], step.time_slope)
    scale(size, d, step.time_slope, step.work)
    for c in range(data.count + 1):
        solve(run.linear, factors, n, tile, step.work[c * n :])
    error = error_norm(size, x, y, step.work, run.tolerances.rtol, run.tolerances.atol)
    if largest > RENEWING_RATIO:
        error = larger(error, LABORED_ERROR)
    if error < 1.0:
        # The last stage is the end of the step: its derivatives are those of the slope there.
        last = k[(len(tableau.alpha) + 1) * size :]
        rates(smaller(step.time + h, step.clip), step.x_new, data, last)
        move_columns(data, step.x_new, last)
        run.counts.evaluations += 1
        if not all_finite(size, last):
            return NAN
    return error


def find_columns(run: Run, d: float, tile: Static, time: float, before: float) -> float:
    """Solve the equations ``d (s - base) = J s + push`` of a stage for all columns s.

    The state is in ``step.point``, and behind it the first guesses, where the solutions go. Return
    the largest ratio of two updates, or that of the states if there was only one; infinity without
    convergence, NaN where something is not finite.
    """
    data = run.columns
    n = data.n
    if not linearize(time, run.step.point, data):
        return NAN
    run.counts.jacobians += 1
    largest = 0.0
    ratio = before
    for c in range(data.count):
        found = find_column(run, data, d, tile, data.push[c * n :], (c + 1) * n, ratio)
        if not found < INFINITY:
            return found
        largest = larger(largest, found)
        if found > RENEWING_RATIO:
            ratio = KEEPING_RATIO  # the factors are now those of the derivatives
    return largest


def find_column(
    run: Run, data: ColumnData, d: float, tile: Static, push: Floats, first: int, before: float
) -> float:
    """Solve the equation of one column, which begins at some place behind the states."""
    step, linear, n = run.step, run.linear, data.n
    rtol, atol = run.tolerances.rtol, run.tolerances.atol
    s, base, b = step.point[first:], step.work[first:], step.time_slope
    ratio = before
    largest = 0.0
    size = 0.0
    begun = 0  # the first update with the present factors
    for update in range(MOST_UPDATES):
        move_column(data, push, s, b)
        for i in range(n):
            b[i] += d * (base[i] - s[i])
        solve(linear, linear.factors, n, tile, b)
        for i in range(n):
            s[i] += b[i]
        previous = size
        size = error_norm(n, step.x[first:], s, b, rtol[first:], atol[first:])
        if not size < INFINITY:
            return NAN
        if update == begun:
            if ratio * size < FIRST_REST:
                return larger(largest, smaller(ratio, KEEPING_RATIO))
        else:
            ratio = size / previous
            largest = larger(largest, ratio)
            if size < FIRST_REST:
                return largest
            if ratio < 1.0 and ratio * size < NEWTON_REST * (1.0 - ratio):
                return largest
            if ratio > RENEWING_RATIO:
                if begun > 0:
                    return INFINITY
                begun = update + 1
                ratio = KEEPING_RATIO
                copy(data.nonzeros, data.entries, linear.entries)
                run.counts.factorizations += 1
                if not factorize(linear, linear.factors, n, tile, d):
                    return NAN
    return INFINITY
