"""Kernels of the explicit Runge-Kutta methods: one trial step, and the interpolant of a good one.

The formulas are those of `flexure.solvers.tableaus.ExplicitTableau`; the coefficients become
constants of the code.
"""

from __future__ import annotations

from flexure.solvers.native.arithmetic import larger, smaller
from flexure.solvers.native.language import Floats, Function, Real, Reals, Static, sqrt, unrolled
from flexure.solvers.native.run import Run


def attempt(run: Run, tableau: Static, n: int, f: Function) -> float:
    """Try a step of the length ``run.h``; return the norm of its error, or NaN.

    The slope at the present state is in the first row of ``k``.
    """
    t, h, clip = run.time, run.h, run.clip
    x, x_new, y, k, env = run.x, run.x_new, run.work, run.k, run.env
    for s in unrolled(1, len(tableau.B)):
        stage(tableau, s, n, h, x, k, y)
        f(smaller(t + tableau.C[s] * h, clip), y, env, k[s * n :])
    stage(tableau, len(tableau.B), n, h, x, k, x_new)
    f(smaller(t + h, clip), x_new, env, k[len(tableau.B) * n :])
    run.evaluations += len(tableau.B)
    return error_norm(tableau, n, h, x, x_new, k, run.rtol, run.atol)


def attempt_any(run: Run, tableau: Static) -> float:
    """Try a step of any system."""
    return attempt(run, tableau, run.n, run.rhs)


def stage(tableau: Static, s: Static, n: int, h: Real, x: Reals, k: Reals, y: Reals) -> None:
    """Compute the point of a stage; the new state counts as the last stage."""
    for i in range(n):
        change: Real = 0.0
        for j in unrolled(s):
            if (tableau.A + (tableau.B,))[s][j] != 0.0:
                change += (tableau.A + (tableau.B,))[s][j] * k[j * n + i]
        y[i] = x[i] + h * change


def error_norm(
    tableau: Static,
    n: int,
    h: Real,
    x: Reals,
    x_new: Reals,
    k: Reals,
    rtol: Floats,
    atol: Floats,
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
        slopes: Real = 0.0
        for j in unrolled(len(tableau.E)):
            slopes += k[j * n + i]
            if tableau.E[j] != 0.0:
                error += tableau.E[j] * k[j * n + i]
            if len(tableau.E3) > 0 and tableau.E3[j] != 0.0:
                error_3 += tableau.E3[j] * k[j * n + i]
        scale = atol[i] + larger(abs(x[i]), abs(x_new[i])) * rtol[i]
        error = h * error / scale
        total += error * error
        error_3 = h * error_3 / scale
        total_3 += error_3 * error_3
        check += slopes * 0.0
    if len(tableau.E3) > 0:
        total = total * total / larger(total + 0.01 * total_3, 1e-300)
    return sqrt(total / n) + check


def prepare_interpolant(run: Run, tableau: Static, n: int, f: Function) -> None:
    """Compute the coefficients of the interpolant of the last step."""
    k, q, h = run.k, run.q, run.time_new - run.time_old
    if len(tableau.P) > 0:
        polynomial(tableau, n, k, q)
    else:
        x_old, y, env = run.x_old, run.work, run.env
        for s in unrolled(len(tableau.C_extra)):
            extra_stage(tableau, s, n, h, x_old, k, y)
            f(
                smaller(run.time_old + tableau.C_extra[s] * h, run.clip),
                y,
                env,
                k[(len(tableau.E) + s) * n :],
            )
        run.evaluations += len(tableau.C_extra)
        nested(tableau, n, h, x_old, run.x, k, q)


def polynomial(tableau: Static, n: int, k: Reals, q: Reals) -> None:
    """Compute ``q_p = Σ_j P_jp k_j``."""
    for p in unrolled(len(tableau.P[0])):
        for i in range(n):
            total: Real = 0.0
            for j in unrolled(len(tableau.P)):
                if tableau.P[j][p] != 0.0:
                    total += tableau.P[j][p] * k[j * n + i]
            q[p * n + i] = total


def extra_stage(tableau: Static, s: Static, n: int, h: float, x: Reals, k: Reals, y: Reals) -> None:
    """Compute the point of a stage that only the interpolant needs."""
    for i in range(n):
        change: Real = 0.0
        for j in unrolled(len(tableau.A_extra[s])):
            if tableau.A_extra[s][j] != 0.0:
                change += tableau.A_extra[s][j] * k[j * n + i]
        y[i] = x[i] + h * change


def nested(
    tableau: Static, n: int, h: float, x_old: Reals, x_new: Reals, k: Reals, q: Reals
) -> None:
    """Compute the coefficients F of the interpolant of DOP853."""
    last = len(tableau.B) * n
    for i in range(n):
        change = x_new[i] - x_old[i]
        q[i] = change
        q[n + i] = h * k[i] - change
        q[2 * n + i] = 2.0 * change - h * (k[i] + k[last + i])
        for p in unrolled(len(tableau.D)):
            total = 0.0
            for j in unrolled(len(tableau.D[p])):
                if tableau.D[p][j] != 0.0:
                    total += tableau.D[p][j] * k[j * n + i]
            q[(3 + p) * n + i] = h * total


def interpolate(run: Run, tableau: Static, n: int, time: float, out: Floats) -> None:
    """Compute the state at a time inside of the last step."""
    h = run.time_new - run.time_old
    s = (time - run.time_old) / h
    x, q = run.x_old, run.q
    if len(tableau.P) > 0:
        for i in range(n):
            total = 0.0
            for p in unrolled(len(tableau.P[0])):
                total = total * s + q[(len(tableau.P[0]) - 1 - p) * n + i]
            out[i] = x[i] + h * s * total
    else:
        r = 1.0 - s
        for i in range(n):
            total = q[4 * n + i] + r * (q[5 * n + i] + s * q[6 * n + i])
            total = q[2 * n + i] + r * (q[3 * n + i] + s * total)
            out[i] = x[i] + s * (q[i] + r * (q[n + i] + s * total))
