"""The solver IPOPT: runs that can be watched and interrupted, and what their outcomes mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.concurrency.deferred_interrupt import DeferredInterrupt
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.design.optimal_motion.collocation import IntArray

_TOLERANCE = 1e-8
_FEASIBLE = 1e-6  # scaled constraints that are kept
_BEYOND = 1e8  # scaled unknowns, from which on a problem counts as unbounded
_SOLVED = ("Solve_Succeeded", "Solved_To_Acceptable_Level")
#: Options of runs that begin near a solution; unstable motions amplify what equations miss.
NEAR = {"mu_init": 1e-3, "bound_push": 1e-6, "bound_frac": 1e-6, "constr_viol_tol": 1e-11}


@dataclass(frozen=True)
class Outcome:
    """How a run of the solver ended."""

    # The solution, or the best point: with the smallest objective of those that keep the
    # constraints, else the one that comes nearest to keeping them.
    unknowns: FloatArray
    status: str  # what IPOPT says
    iterations: int  # number of iterations
    violation: float  # by how much the scaled constraints are broken

    @property
    def solved(self) -> bool:
        """Whether the point is a solution."""
        return self.status in _SOLVED

    @property
    def runs_away(self) -> bool:
        """Whether unknowns grow without bound."""
        largest = float(np.max(np.abs(self.unknowns)))
        return self.status == "Diverging_Iterates" or largest > 1e-2 * _BEYOND


def minimize(
    ca: Any,
    program: dict[str, Any],
    bounds: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    guess: FloatArray,
    *,
    max_iterations: int,
    watch: Callable[[int], None],
    interrupt: DeferredInterrupt,
    near: bool = False,
) -> Outcome:
    """Run IPOPT on a nonlinear program: unknowns ``x``, objective ``f`` and constraints ``g``.

    Bounds are those of the unknowns, then of the constraints. ``watch(k)`` is called in iteration
    ``k``; an interruption that waits ends the run. Runs that begin ``near`` a solution stay there.
    """
    lower, upper, row_lower, row_upper = bounds
    size, rows = program["x"].numel(), program["g"].numel()
    best: list[Any] = [(np.inf, np.inf), guess, np.inf]
    count = [0]

    class Watch(ca.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            ca.Callback.__init__(self)
            self.construct("watch")

        def get_n_in(self) -> int:
            return int(ca.nlpsol_n_out())

        def get_n_out(self) -> int:
            return 1

        def get_sparsity_in(self, k: int) -> Any:
            shapes = {"x": size, "lam_x": size, "f": 1, "g": rows, "lam_g": rows}
            return ca.Sparsity.dense(shapes.get(ca.nlpsol_out(k), 0), 1)

        def eval(self, values: Any) -> list[int]:
            found = dict(zip(ca.nlpsol_out(), values, strict=True))
            f, broken = float(found["f"]), excess(found["g"].full(), row_lower, row_upper)
            rank = (0.0, f) if broken < _FEASIBLE else (broken, f)
            if rank <= best[0]:
                best[:] = rank, found["x"].full().ravel(), broken
            count[0] += 1
            watch(count[0])
            return [int(interrupt.interrupted)]

    watcher = Watch()
    options: dict[str, Any] = {"max_iter": max_iterations, "tol": _TOLERANCE, "sb": "yes"}
    options |= {"print_level": 0, "diverging_iterates_tol": _BEYOND}
    options |= NEAR if near else {"mu_init": 1e-2}  # as costs are scaled to about one
    solver = ca.nlpsol(
        "motion",
        "ipopt",
        program,
        {
            "ipopt": options,
            "print_time": False,
            "error_on_fail": False,
            "show_eval_warnings": False,
            "iteration_callback": watcher,
        },
    )
    with interrupt:
        found = solver(x0=guess, lbx=lower, ubx=upper, lbg=row_lower, ubg=row_upper)
    status = str(solver.stats()["return_status"])
    x = found["x"].full().ravel()
    broken = excess(found["g"].full(), row_lower, row_upper)
    ended = status in _SOLVED or status == "Diverging_Iterates"
    if not ended and best[2] < np.inf:
        x, broken = best[1], best[2]
    return Outcome(x, status, count[0], broken)


def excess(values: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """Return by how much values are beyond their bounds at most."""
    values = values.ravel()
    beyond = np.maximum(lower - values, values - upper)
    worst = float(np.max(beyond, initial=0.0))
    return worst if np.isfinite(worst) else np.inf


def least_violation(
    ca: Any,
    program: dict[str, Any],
    bounds: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    soft_rows: IntArray,
    soft_unknowns: IntArray,
    guess: FloatArray,
    **options: Any,
) -> tuple[Outcome, FloatArray]:
    """Find the point at which the sum of violations of some constraints is smallest.

    Constraints ``soft_rows`` and bounds of ``soft_unknowns`` can be broken, all others are kept.
    The outcome has the unknowns of the program alone. Violations are those of the soft constraints
    followed by those of the soft unknowns, scaled; negative where a value is below its bound.
    """
    lower, upper, row_lower, row_upper = bounds
    size, count = len(guess), len(soft_rows) + len(soft_unknowns)
    above, below = ca.MX.sym("above", count), ca.MX.sym("below", count)
    x, g = program["x"], program["g"]
    give = ca.MX(above - below)
    rows, columns = soft_rows.tolist(), list(range(len(soft_rows)))
    spread = ca.DM.triplet(rows, columns, ca.DM.ones(len(rows)), g.numel(), count)
    tied = x[soft_unknowns.tolist()] - give[len(rows) :]
    free_lower, free_upper = lower.copy(), upper.copy()
    free_lower[soft_unknowns], free_upper[soft_unknowns] = -np.inf, np.inf
    outcome = minimize(
        ca,
        {
            "x": ca.vertcat(x, above, below),
            "f": ca.sum1(above) + ca.sum1(below),
            "g": ca.vertcat(g - ca.mtimes(spread, give), tied),
        },
        (
            np.concatenate([free_lower, np.zeros(2 * count)]),
            np.concatenate([free_upper, np.full(2 * count, np.inf)]),
            np.concatenate([row_lower, lower[soft_unknowns]]),
            np.concatenate([row_upper, upper[soft_unknowns]]),
        ),
        np.concatenate([guess, np.zeros(2 * count)]),
        **options,
    )
    slack = outcome.unknowns[size:]
    point = Outcome(outcome.unknowns[:size], outcome.status, outcome.iterations, outcome.violation)
    return point, slack[:count] - slack[count:]
