"""Kernels of the explicit Runge-Kutta methods: one trial step, and the interpolant of a good one.

The formulas are those of `flexure.solvers.integration.methods.tableaus.ExplicitTableau`; the
coefficients become constants of the code.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import copy, larger, smaller
from flexure.solvers.native.kernels.parts.run import Run, StepData
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Real,
    Reals,
    Static,
    local,
    sqrt,
    unrolled,
)

REORDERED = True


def attempt(run: Run, tableau: Static, n: int, f: Function) -> float:
    """Try a step of the length ``step.h``; return the norm of its error, or NaN.

    The slope at the present state is in the first row of ``k``.
    """
    step = run.step
    return try_step(run, tableau, n, f, step.x, step.work, step.x_new, step.k)


def attempt_small(run: Run, tableau: Static, n: Static, f: Function) -> float:
    """Try a step of a small system, with everything close at hand."""
    step = run.step
    x, y, x_new = local(n), local(n), local(n)
    k = local((len(tableau.B) + 1) * n)
    copy(n, step.x, x)
    copy(n, step.k, k)
    error = try_step(run, tableau, n, f, x, y, x_new, k)
    copy(n, x_new, step.x_new)
    if step.keeping == 1:
        copy((len(tableau.B) - 1) * n, k[n:], step.k[n:])
    copy(n, k[len(tableau.B) * n :], step.k[len(tableau.B) * n :])
    return error


def try_step(
    run: Run, tableau: Static, n: int, f: Function, x: Floats, y: Floats, x_new: Floats, k: Floats
) -> float:
    """Compute the stages of a step, the new state and the norm of the error."""
    t, h, clip, env = run.step.time, run.step.h, run.step.clip, run.system.env
    for s in unrolled(1, len(tableau.B)):
        stage(tableau, s, n, h, x, k, y)
        f(smaller(t + tableau.C[s] * h, clip), y, env, k[s * n :])
    stage(tableau, len(tableau.B), n, h, x, k, x_new)
    f(smaller(t + h, clip), x_new, env, k[len(tableau.B) * n :])
    run.counts.evaluations += len(tableau.B)
    return error_norm(tableau, n, h, x, x_new, k, run.tolerances.rtol, run.tolerances.atol)


def attempt_any(run: Run, tableau: Static) -> float:
    """Try a step of any system."""
    return attempt(run, tableau, run.system.n, run.system.rhs)


def attempt_from_afar(run: Run, tableau: Static, n: int) -> float:
    """Try a step of a system whose derivatives are in another library."""
    return attempt(run, tableau, n, run.system.rhs)


def stage(tableau: Static, s: Static, n: int, h: Real, x: Reals, k: Reals, y: Reals) -> None:
    """Compute the point of a stage; the new state counts as the last stage."""
    for i in range(n):
        change: Real = 0.0
        for j in unrolled(s):
            if (*tableau.A, tableau.B)[s][j] != 0.0:
                change += (*tableau.A, tableau.B)[s][j] * k[j * n + i]
        y[i] = x[i] + h * change


def error_norm(
    tableau: Static, n: int, h: Real, x: Reals, x_new: Reals, k: Reals, rtol: Floats, atol: Floats
) -> Real:
    """Return the root mean square of the error in units of the tolerance, as SciPy does.

    It is NaN when some slope is not finite.
    """
    total: Real = 0.0
    total_3: Real = 0.0
    check: Real = 0.0
    for i in range(n):
        error: Real = 0.0
        error_3: Real = 0.0
        unseen: Real = 0.0
        for j in unrolled(len(tableau.E)):
            if tableau.E[j] == 0.0:
                unseen += k[j * n + i]  # a NaN there would not show in the error
            else:
                error += tableau.E[j] * k[j * n + i]
            if len(tableau.E3) > 0 and tableau.E3[j] != 0.0:
                error_3 += tableau.E3[j] * k[j * n + i]
        scale = atol[i] + larger(abs(x[i]), abs(x_new[i])) * rtol[i]
        error = h * error / scale
        total += error * error
        error_3 = h * error_3 / scale
        total_3 += error_3 * error_3
        check += unseen * 0.0
    if len(tableau.E3) > 0:
        total = total * total / larger(total + 0.01 * total_3, 1e-300)
    norm: Real = sqrt(total / n) + check
    return norm


def prepare_interpolant(run: Run, tableau: Static, n: int, f: Function, end: Floats) -> None:
    """Compute the coefficients of the interpolant of the last step."""
    step, env = run.step, run.system.env
    t, h, clip = step.time_old, step.time_new - step.time_old, step.clip
    bends(tableau, n, f, t, h, clip, step.x_old, end, step.work, step.k, env, step.q)
    run.counts.evaluations += len(tableau.C_extra)


def bends(
    tableau: Static,
    n: int,
    f: Function,
    t: Real,
    h: Real,
    clip: Real,
    x_old: Reals,
    x_new: Reals,
    y: Reals,
    k: Reals,
    env: Reals,
    q: Reals,
) -> None:
    """Compute the coefficients of the interpolant of a step from a time t."""
    if len(tableau.P) > 0:
        polynomial(tableau, n, k, q)
    else:
        for s in unrolled(len(tableau.C_extra)):
            extra_stage(tableau, s, n, h, x_old, k, y)
            f(smaller(t + tableau.C_extra[s] * h, clip), y, env, k[(len(tableau.E) + s) * n :])
        nested(tableau, n, h, x_old, x_new, k, q)


def polynomial(tableau: Static, n: int, k: Reals, q: Reals) -> None:
    """Compute ``q_p = Σ_j P_jp k_j``."""
    for p in unrolled(len(tableau.P[0])):
        for i in range(n):
            total: Real = 0.0
            for j in unrolled(len(tableau.P)):
                if tableau.P[j][p] != 0.0:
                    total += tableau.P[j][p] * k[j * n + i]
            q[p * n + i] = total


def extra_stage(tableau: Static, s: Static, n: int, h: Real, x: Reals, k: Reals, y: Reals) -> None:
    """Compute the point of a stage that only the interpolant needs."""
    for i in range(n):
        change: Real = 0.0
        for j in unrolled(len(tableau.A_extra[s])):
            if tableau.A_extra[s][j] != 0.0:
                change += tableau.A_extra[s][j] * k[j * n + i]
        y[i] = x[i] + h * change


def nested(
    tableau: Static, n: int, h: Real, x_old: Reals, x_new: Reals, k: Reals, q: Reals
) -> None:
    """Compute the coefficients F of the interpolant of DOP853."""
    last = len(tableau.B) * n
    for i in range(n):
        change = x_new[i] - x_old[i]
        q[i] = change
        q[n + i] = h * k[i] - change
        q[2 * n + i] = 2.0 * change - h * (k[i] + k[last + i])
        for p in unrolled(len(tableau.D)):
            total: Real = 0.0
            for j in unrolled(len(tableau.D[p])):
                if tableau.D[p][j] != 0.0:
                    total += tableau.D[p][j] * k[j * n + i]
            q[(3 + p) * n + i] = h * total


def interpolate(step: StepData, tableau: Static, n: int, time: float, out: Floats) -> None:
    """Compute the state at a time inside of the last step."""
    h = step.time_new - step.time_old
    point_inside(tableau, n, (time - step.time_old) / h, h, step.x_old, step.q, out)


def point_inside(tableau: Static, n: int, s: Real, h: Real, x: Reals, q: Reals, out: Reals) -> None:
    """Compute the state at a fraction s of a step."""
    if len(tableau.P) > 0:
        for i in range(n):
            total: Real = 0.0
            for p in unrolled(len(tableau.P[0])):
                total = total * s + q[(len(tableau.P[0]) - 1 - p) * n + i]
            out[i] = x[i] + h * s * total
    else:
        r = 1.0 - s
        for i in range(n):
            inner: Real = q[4 * n + i] + r * (q[5 * n + i] + s * q[6 * n + i])
            inner = q[2 * n + i] + r * (q[3 * n + i] + s * inner)
            out[i] = x[i] + s * (q[i] + r * (q[n + i] + s * inner))
