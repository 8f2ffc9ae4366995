"""Kernels of the Rosenbrock method: one trial step, and the interpolant of a good one.

The rules are those that `flexure.solvers.integration.methods.rosenbrock` states.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import NAN, all_finite, copy, larger, smaller
from flexure.solvers.native.kernels.parts.linear_solves import FactorData, factorize, solve
from flexure.solvers.native.kernels.parts.run import Run, StepData
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Mask,
    Real,
    Reals,
    Static,
    any_lane,
    sqrt,
    unrolled,
    where,
)

REORDERED = True


def attempt(
    run: Run, tableau: Static, n: int, tile: Static, f: Function, factors: FactorData
) -> float:
    """Try a step of the length ``step.h``; return the norm of its error, or NaN.

    The slope at the present state is in the first row of ``k``, the stages are in the rows from
    the second on, the slope at the new state in the last one. Where the entries of sparse factors
    are is in `FactorData`, or known while translating.
    """
    step, linear = run.step, run.linear
    t, h, env = step.time, step.h, run.system.env
    if linear.known == 0:
        linear.jacobian(smaller(t, step.clip), step.x, env, linear.entries)
        run.counts.jacobians += 1
        linear.known = 1
        if not all_finite(linear.nonzeros, linear.entries):
            return NAN
    x, x_new, y, k = step.x, step.x_new, step.point, step.k
    run.counts.evaluations += find_time_slope(
        n, f, run.system.timed, t, h, step.clip, x, k, env, step.time_slope, step.work
    )
    run.counts.factorizations += 1
    if not factorize(linear, factors, n, tile, 1.0 / (tableau.gamma * h)):
        return NAN
    for s in unrolled(len(tableau.alpha)):
        b = k[(s + 1) * n :]
        if s == 0:
            copy(n, k, b)
            copy(n, x, y)
        else:
            point(tableau.A, s, n, x, k[n:], y)
            f(smaller(t + tableau.alpha[s] * h, step.clip), y, env, b)
            add_stages(tableau, s, n, h, k[n:], b)
        if tableau.gammas[s] != 0.0:
            add(n, h * tableau.gammas[s], step.time_slope, b)
        solve(linear, factors, n, tile, b)
        if not all_finite(n, b):
            return NAN
    copy(n, y, x_new)
    add(n, 1.0, k[len(tableau.alpha) * n :], x_new)
    run.counts.evaluations += len(tableau.alpha) - 1
    error = error_norm(
        n, x, x_new, k[len(tableau.alpha) * n :], run.tolerances.rtol, run.tolerances.atol
    )
    if error < 1.0:
        last = k[(len(tableau.alpha) + 1) * n :]
        f(smaller(t + h, step.clip), x_new, env, last)
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


def find_time_slope(
    n: int,
    f: Function,
    timed: int,
    t: Real,
    h: Real,
    clip: Real,
    x: Reals,
    k: Reals,
    env: Reals,
    near: Reals,
    far: Reals,
) -> int:
    """Approximate the derivative of the equations by time with differences inside of the step.

    It goes to ``near``. Return the number of evaluations.
    """
    if timed == 0:
        for i in range(n):
            near[i] = 0.0
        return 0
    distance = (t + 0.01 * h) - t
    f(smaller(t + distance, clip), x, env, near)
    changes = subtract(n, k, near)
    if not any_lane(changes):
        return 1
    f(smaller(t + 2.0 * distance, clip), x, env, far)
    subtract(n, k, far)
    for i in range(n):
        near[i] = where(changes, (4.0 * near[i] - far[i]) / (2.0 * distance), near[i])
    return 2


def subtract(n: int, a: Reals, b: Reals) -> Mask:
    """Subtract a vector from another; tell whether something is left."""
    left: Mask = False
    for i in range(n):
        b[i] -= a[i]
        left = left or b[i] != 0.0
    return left


def point(rows: Static, s: Static, n: int, x: Reals, k: Reals, y: Reals) -> None:
    """Add what the stages before stage s contribute, by its row of weights, to x."""
    for i in range(n):
        total: Real = x[i]
        for j in unrolled(s):
            if rows[s][j] != 0.0:
                total += rows[s][j] * k[j * n + i]
        y[i] = total


def add_stages(tableau: Static, s: Static, n: int, h: Real, k: Reals, b: Reals) -> None:
    """Add what earlier stages contribute to the right-hand side of a stage."""
    for i in range(n):
        total: Real = 0.0
        for j in unrolled(s):
            if tableau.C[s][j] != 0.0:
                total += tableau.C[s][j] * k[j * n + i]
        b[i] += total / h


def add(n: int, factor: Real, a: Reals, b: Reals) -> None:
    """Add a multiple of a vector to another."""
    for i in range(n):
        b[i] += factor * a[i]


def error_norm(n: int, x: Reals, x_new: Reals, error: Reals, rtol: Floats, atol: Floats) -> Real:
    """Return the root mean square of the error in units of the tolerance."""
    total: Real = 0.0
    for i in range(n):
        part = error[i] / (atol[i] + rtol[i] * larger(abs(x[i]), abs(x_new[i])))
        total += part * part
    norm: Real = sqrt(total / n)
    return norm


def prepare_interpolant(step: StepData, tableau: Static, n: int, end: Floats) -> None:
    """Compute the coefficients of the interpolant of the last step."""
    bends(tableau, n, step.x_old, end, step.k[n:], step.q)


def bends(tableau: Static, n: int, x_old: Reals, x_new: Reals, k: Reals, q: Reals) -> None:
    """Compute the coefficients of the interpolant of a step."""
    for i in range(n):
        q[i] = x_new[i] - x_old[i]
    for p in unrolled(len(tableau.H)):
        add_up(tableau.H[p], n, k, q[(p + 1) * n :])


def add_up(weights: Static, n: int, k: Reals, out: Reals) -> None:
    """Add the stages up, each by its weight."""
    for i in range(n):
        total: Real = 0.0
        for j in unrolled(len(weights)):
            if weights[j] != 0.0:
                total += weights[j] * k[j * n + i]
        out[i] = total


def interpolate(step: StepData, n: int, time: float, out: Floats) -> None:
    """Compute the state at a time inside of the last step."""
    s = (time - step.time_old) / (step.time_new - step.time_old)
    point_inside(n, s, step.x_old, step.q, out)


def point_inside(n: int, s: Real, x: Reals, q: Reals, out: Reals) -> None:
    """Compute the state at a fraction s of a step."""
    for i in range(n):
        inner = q[n + i] + s * (q[2 * n + i] + s * q[3 * n + i])
        out[i] = x[i] + s * (q[i] + (1.0 - s) * inner)
