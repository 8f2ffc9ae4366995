"""A step of the Rosenbrock method in every lane of an ensemble, and its linear equations.

The sparse factorization runs in all lanes at once. Lanes in which it is not accurate, or all where
there is none, take a dense one, which chooses pivots, each by itself. So every lane does what
`flexure.solvers.native.kernels.steps.rosenbrock.attempt` does for a single run.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.ensembles.ensemble_data import Ensemble
from flexure.solvers.native.kernels.parts.arithmetic import NAN, all_finite, copy, smaller
from flexure.solvers.native.kernels.parts.linear_solves import (
    FactorData,
    factorize_dense,
    factorize_sparse,
    solve_dense,
    solve_sparse,
)
from flexure.solvers.native.kernels.steps import rosenbrock
from flexure.solvers.native.language.language import (
    Function,
    Mask,
    Real,
    Reals,
    Static,
    any_lane,
    lane,
    unrolled,
    where,
    with_lane,
)

REORDERED = True


def attempt(ensemble: Ensemble, tableau: Static, n: int, f: Function, factors: FactorData) -> float:
    """Try a step in every lane."""
    step, env, linear = ensemble.step, ensemble.system.env, ensemble.linear
    t, h, clip = step.time[0], step.h[0], step.clip[0]
    x, x_new, y, k = step.x, step.x_new, step.work, step.k
    linear.jacobian(smaller(t, clip), x, env, linear.entries)
    slope, timed = step.time_slope, ensemble.system.timed
    rosenbrock.find_time_slope(n, f, timed, t, h, clip, x, k, env, slope, y)
    check = factorize(ensemble, factors, n, 1.0 / (tableau.gamma * h))
    for s in unrolled(len(tableau.alpha)):
        b = k[(s + 1) * n :]
        if s == 0:
            copy(n, k, b)
            copy(n, x, y)
        else:
            rosenbrock.point(tableau.A, s, n, x, k[n:], y)
            f(smaller(t + tableau.alpha[s] * h, clip), y, env, b)
            rosenbrock.add_stages(tableau, s, n, h, k[n:], b)
        if tableau.gammas[s] != 0.0:
            rosenbrock.add(n, h * tableau.gammas[s], slope, b)
        solve(ensemble, factors, n, b)
        check += nothing(n, b)
    copy(n, y, x_new)
    rosenbrock.add(n, 1.0, k[len(tableau.alpha) * n :], x_new)
    error = k[len(tableau.alpha) * n :]
    rtol, atol = ensemble.tolerances.rtol, ensemble.tolerances.atol
    norm = rosenbrock.error_norm(n, x, x_new, error, rtol, atol) + check
    last = k[(len(tableau.alpha) + 1) * n :]
    f(smaller(t + h, clip), x_new, env, last)
    step.error[0] = where(norm < 1.0, norm + nothing(n, last), norm)
    return 0.0


def attempt_any(ensemble: Ensemble, tableau: Static) -> float:
    """Try a step of any system."""
    system = ensemble.system
    return attempt(ensemble, tableau, system.n, system.rhs, ensemble.linear.factors)


def nothing(n: int, a: Reals) -> Real:
    """Return 0.0 where all numbers are finite, else NaN."""
    total: Real = 0.0
    for i in range(n):
        total += a[i] * 0.0
    return total


# Linear equations --------------------------------------------------------------------------


def factorize(ensemble: Ensemble, factors: FactorData, n: int, d: Real) -> Real:
    """Factorize ``d I - J``; return NaN in lanes in which that is not possible, else 0.0."""
    linear, step = ensemble.linear, ensemble.step
    lost: Mask = ensemble.lanes.live[0] > 0.0
    if linear.sparse == 1:
        accurate = factorize_sparse(factors, n, d, linear.entries, linear.values, linear.row)
        lost = lost and not accurate
    step.dense[0] = where(lost, 1.0, 0.0)
    lack: Real = 0.0
    if any_lane(lost):
        for place in range(ensemble.lanes.count):
            if lane(lost, place) and not factorize_lane(ensemble, n, lane(d, place), place):
                lack = with_lane(lack, place, NAN)
    return lack


def factorize_lane(ensemble: Ensemble, n: int, d: float, place: int) -> bool:
    """Compute the dense factors of a lane; tell whether that is possible."""
    linear, one = ensemble.linear, ensemble.step.one
    for e in range(linear.nonzeros):
        one[e] = lane(linear.entries[e], place)
    if not all_finite(linear.nonzeros, one):
        return False
    matrix, pivots = linear.matrix[place * n * n :], linear.pivots[place * n :]
    return factorize_dense(n, d, linear.nonzeros, one, linear.rows, linear.columns, matrix, pivots)


def solve(ensemble: Ensemble, factors: FactorData, n: int, b: Reals) -> None:
    """Replace the right-hand sides by the solutions."""
    linear, dense = ensemble.linear, ensemble.step.dense[0] > 0.0
    kept = ensemble.step.x_new  # free until all stages are solved
    if any_lane(dense):
        copy(n, b, kept)
    if linear.sparse == 1:
        solve_sparse(factors, n, linear.values, linear.row, b)
    if any_lane(dense):
        for place in range(ensemble.lanes.count):
            if lane(dense, place):
                solve_lane(ensemble, n, place, kept, b)


def solve_lane(ensemble: Ensemble, n: int, place: int, kept: Reals, b: Reals) -> None:
    """Solve with the dense factors of a lane."""
    linear, one = ensemble.linear, ensemble.step.one
    for i in range(n):
        one[i] = lane(kept[i], place)
    solve_dense(n, linear.matrix[place * n * n :], linear.pivots[place * n :], one)
    for i in range(n):
        b[i] = with_lane(b[i], place, one[i])
