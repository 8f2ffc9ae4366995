"""Kernels of the diagonally implicit method: one trial step, made of Newton's iterations.

The rules are those that `flexure.solvers.integration.methods.esdirk` states. The interpolant is
that of the Rosenbrock method, with other coefficients.

Columns of derivatives may lie behind the states. The stage of the states is solved first, as
without columns; those of the columns are then linear, and each is solved with the factors that were
good enough for the states. The error of a step is that of states and columns together.
"""

from __future__ import annotations

from flexure.solvers.integration.methods.step_control import (
    DIVERGING_RATIO,
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
from flexure.solvers.native.kernels.parts.linear_solves import FactorData, factorize, solve
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.kernels.parts.state_derivatives import (
    ColumnData,
    linearize,
    move_column,
    move_columns,
)
from flexure.solvers.native.kernels.steps.rosenbrock import add_up, error_norm, point
from flexure.solvers.native.language.language import Floats, Function, Static, unrolled

REORDERED = True


def attempt(
    run: Run, tableau: Static, n: int, tile: Static, f: Function, factors: FactorData
) -> float:
    """Try a step of the length ``step.h``; return the norm of its error, or NaN."""
    return try_step(run, tableau, n, n, tile, f, factors, False)


def attempt_with_columns(run: Run, tableau: Static, tile: Static, f: Function) -> float:
    """Try a step of states and columns; f computes the rates of the states."""
    n, size = run.columns.n, run.system.n
    return try_step(run, tableau, n, size, tile, f, run.linear.factors, True)


def try_step(
    run: Run,
    tableau: Static,
    n: int,
    size: int,
    tile: Static,
    f: Function,
    factors: FactorData,
    columns: Static,
) -> float:
    """Try a step of n states, or of ``size`` states and columns.

    The slope at the present state is in the first row of ``k``, the increments of the stages are
    in the rows from the second on, the slope at the new state in the last one.
    """
    step = run.step
    h, x, y, k = step.h, step.x, step.point, step.k
    d = 1.0 / (tableau.gamma * h)
    scale(size, h, k, k[size:])
    ratio = 1.0
    largest = 0.0
    for s in unrolled(1, len(tableau.alpha)):
        point(tableau.A, s, size, x, k[size:], step.work)
        point(tableau.G, s, size, x, k[size:], y)
        time = smaller(step.time + tableau.alpha[s] * h, step.clip)
        ratio = find_stage(run, d, n, tile, f, factors, time, ratio)
        if columns and ratio < INFINITY:
            ratio = larger(ratio, find_columns(run, d, tile, time, ratio))
        if not ratio < INFINITY:
            return FAILED_ERROR if ratio == INFINITY else NAN
        largest = larger(largest, ratio)
        take_increment(size, 1.0 / tableau.gamma, y, step.work, k[(s + 1) * size :])
    copy(size, y, step.x_new)
    add_up(tableau.E, size, k[size:], step.time_slope)
    scale(size, d, step.time_slope, step.work)
    solve(run.linear, factors, n, tile, step.work)
    if columns:
        for c in range(run.columns.count):
            solve(run.linear, factors, n, tile, step.work[(c + 1) * n :])
    error = error_norm(size, x, y, step.work, run.tolerances.rtol, run.tolerances.atol)
    if largest > RENEWING_RATIO:
        error = larger(error, LABORED_ERROR)
    if error < 1.0:
        last = k[(len(tableau.alpha) + 1) * size :]
        f(smaller(step.time + h, step.clip), step.x_new, run.system.env, last)
        if columns:  # the last stage is the end of the step: its derivatives are those there
            move_columns(run.columns, step.x_new, last)
        run.counts.evaluations += 1
        if not all_finite(size, last):
            return NAN
    return error


def attempt_any(run: Run, tableau: Static) -> float:
    """Try a step of any system."""
    return attempt_in_tiles(run, tableau, 0)


def attempt_in_tiles(run: Run, tableau: Static, tile: Static) -> float:
    """Try a step of any system whose linear equations have factors in tiles of a size."""
    return attempt(run, tableau, run.system.n, tile, run.system.rhs, run.linear.factors)


def attempt_from_afar(run: Run, tableau: Static, n: int, factors: FactorData) -> float:
    """Try a step of a system whose derivatives are in another library."""
    return attempt(run, tableau, n, 0, run.system.rhs, factors)


def find_stage(
    run: Run,
    d: float,
    n: int,
    tile: Static,
    f: Function,
    factors: FactorData,
    time: float,
    before: float,
) -> float:
    """Solve the equation ``d (y - base) = f(time, y)`` of a stage for y.

    The first guess is in ``step.point``, where the solution goes, and the base in ``step.work``.
    Return the largest ratio of two updates, or that of the stage before if there was only one;
    infinity without convergence, NaN where something is not finite.
    """
    step, linear, env = run.step, run.linear, run.system.env
    y, base, b = step.point, step.work, step.time_slope
    ratio = before
    if before > KEEPING_RATIO:
        ratio = 1.0
        if not make_equations(run, d, n, tile, factors, time):
            return NAN
    largest = 0.0
    size = 0.0
    for update in range(MOST_UPDATES):
        f(time, y, env, b)
        run.counts.evaluations += 1
        for i in range(n):
            b[i] += d * (base[i] - y[i])
        solve(linear, factors, n, tile, b)
        for i in range(n):
            y[i] += b[i]
        previous = size
        size = error_norm(n, step.x, y, b, run.tolerances.rtol, run.tolerances.atol)
        if not size < INFINITY:
            return NAN
        if update == 0:
            if ratio * size < FIRST_REST:
                return smaller(ratio, KEEPING_RATIO)
        else:
            ratio = size / previous
            largest = larger(largest, ratio)
            if ratio < 1.0 and ratio * size < NEWTON_REST * (1.0 - ratio):
                return largest
            if ratio > DIVERGING_RATIO and update > 1:
                return INFINITY
            if ratio > RENEWING_RATIO and not make_equations(run, d, n, tile, factors, time):
                return NAN
    return INFINITY


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


def make_equations(
    run: Run, d: float, n: int, tile: Static, factors: FactorData, time: float
) -> bool:
    """Make the linear equations at ``step.point``; tell whether they have a solution."""
    linear = run.linear
    linear.jacobian(time, run.step.point, run.system.env, linear.entries)
    run.counts.jacobians += 1
    if not all_finite(linear.nonzeros, linear.entries):
        return False
    run.counts.factorizations += 1
    return factorize(linear, factors, n, tile, d)


def scale(n: int, factor: float, a: Floats, out: Floats) -> None:
    """Multiply a vector by a number."""
    for i in range(n):
        out[i] = factor * a[i]


def take_increment(n: int, factor: float, y: Floats, base: Floats, z: Floats) -> None:
    """Compute the increment of a stage from its state."""
    for i in range(n):
        z[i] = factor * (y[i] - base[i])
