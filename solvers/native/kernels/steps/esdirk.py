"""Kernels of the diagonally implicit method: one trial step, made of Newton's iterations.

The rules are those that `flexure.solvers.integration.methods.esdirk` states. The interpolant is
that of the Rosenbrock method, with other coefficients.
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
from flexure.solvers.native.kernels.steps.rosenbrock import add_up, error_norm, point
from flexure.solvers.native.language.language import Floats, Function, Static, unrolled

REORDERED = True


def attempt(
    run: Run, tableau: Static, n: int, tile: Static, f: Function, factors: FactorData
) -> float:
    """Try a step of the length ``step.h``; return the norm of its error, or NaN.

    The slope at the present state is in the first row of ``k``, the increments of the stages are
    in the rows from the second on, the slope at the new state in the last one.
    """
    step = run.step
    h, x, y, k = step.h, step.x, step.point, step.k
    scale(n, h, k, k[n:])
    ratio = 1.0
    largest = 0.0
    for s in unrolled(1, len(tableau.alpha)):
        point(tableau.A, s, n, x, k[n:], step.work)
        point(tableau.G, s, n, x, k[n:], y)
        time = smaller(step.time + tableau.alpha[s] * h, step.clip)
        ratio = find_stage(run, 1.0 / (tableau.gamma * h), n, tile, f, factors, time, ratio)
        if not ratio < INFINITY:
            return FAILED_ERROR if ratio == INFINITY else NAN
        largest = larger(largest, ratio)
        take_increment(n, 1.0 / tableau.gamma, y, step.work, k[(s + 1) * n :])
    copy(n, y, step.x_new)
    add_up(tableau.E, n, k[n:], step.time_slope)
    scale(n, 1.0 / (tableau.gamma * h), step.time_slope, step.work)
    solve(run.linear, factors, n, tile, step.work)
    error = error_norm(n, x, y, step.work, run.tolerances.rtol, run.tolerances.atol)
    if largest > RENEWING_RATIO:
        error = larger(error, LABORED_ERROR)
    if error < 1.0:
        last = k[(len(tableau.alpha) + 1) * n :]
        f(smaller(step.time + h, step.clip), step.x_new, run.system.env, last)
        run.counts.evaluations += 1
        if not all_finite(n, last):
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
