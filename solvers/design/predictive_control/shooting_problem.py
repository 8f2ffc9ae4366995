"""A horizon of a nonlinear model: its motion between samples, and quadratic programs of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import block_diag

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.design.optimal_motion.casadi_form import import_casadi
from flexure.solvers.design.optimal_motion.motion_problem import MotionProblem
from flexure.solvers.design.optimal_motion.node_functions import NodeFunctions
from flexure.solvers.design.predictive_control.horizon_problem import quadratic_program

_REGULAR = 1e-10  # of the largest curvature: what keeps idle inputs where they are


class ShootingProblem:
    """Minimize ``Σ T w (y[k] - r)² + c w (y[N] - r)² + Σ s (u[k] - u[k-1])²`` within limits.

    States follow ``x[k+1] = F(x[k], u[k]) + d``, with F a period T by steps of the classical
    Runge-Kutta method. `improve` linearizes F and y along a plan, eliminates the states, and solves
    the quadratic program of the inputs that remains: a step of the Gauss-Newton method with
    multiple shooting. One step per sample is a real-time iteration (M. Diehl, H. G. Bock, J. P.
    Schlöder, SIAM J. Control Optim. 43 (2005) 1714-1736). ``words`` are ``inputs``, ``cost``,
    ``targets`` and ``path`` of `optimal_motion`.
    """

    def __init__(
        self,
        context: Context,
        period: float,
        horizon: int,
        substeps: int,
        words: dict[str, Any],
        attempt: str,
    ) -> None:
        self._made_of = context, period, horizon, substeps, words, attempt
        ca = import_casadi(attempt)
        self.problem = problem = MotionProblem(
            context,
            attempt,
            t_final=context.time + horizon * period,
            start=None,
            end=None,
            final_cost=None,
            **words,
        )
        functions = NodeFunctions(ca, problem)
        if functions.projected is not None:
            raise EvaluationError(
                attempt,
                expected="a model whose states are independent of each other",
                found="quaternions, or closed loops of joints",
                remedy="Use joints with as many velocities as positions, and no loops",
            )
        self.period, self.horizon = period, horizon
        self.weights, self.targets = (
            np.concatenate([np.zeros(0), *(getattr(each, k) for each in problem.squares)])
            for k in ("weights", "targets")
        )
        n, m = len(problem.states), len(problem.input_lower)
        low, high = functions.path_lower, functions.path_upper
        self.input_bounds = np.stack(
            [np.maximum(problem.input_lower, low[n:]), np.minimum(problem.input_upper, high[n:])]
        )
        states = np.flatnonzero(np.isfinite(low[:n]) | np.isfinite(high[:n]))
        rows = functions.path_rows
        self._limits = np.stack(
            [
                np.concatenate([side[states], [row[k] for row in rows]])
                for k, side in ((1, low[:n]), (2, high[:n]))
            ]
        )
        x, u, t = (ca.SX.sym(name, size) for name, size in (("x", n), ("u", m), ("t", 1)))
        rates, along = functions.running(x, u, t)
        shown = functions.residuals(x, u, t), ca.vertcat(x[states.tolist()], along)
        both = ca.vertcat(x, u)

        def with_slopes(*found: Any) -> Any:
            parts = [ca.horzcat(each, ca.jacobian(each, both)) for each in found]
            return ca.Function("found", [x, u, t], [ca.densify(part) for part in parts])

        self._rates = ca.Function("rates", [x, u, t], [ca.densify(rates)])
        self._rates_with_slopes = with_slopes(rates).map(horizon)
        self._signals = with_slopes(*shown).map(horizon + 1)
        self._substeps = substeps

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made of."""
        return ShootingProblem, self._made_of

    def __deepcopy__(self, memo: Any) -> ShootingProblem:
        """Return itself, since it never changes."""
        return self

    def move(self, time: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the states one period later."""
        moved, _ = self._moved(np.array([time]), x[np.newaxis], u[np.newaxis])
        return np.asarray(moved[0])

    def _moved(
        self, times: FloatArray, x: FloatArray, u: FloatArray, *, with_slopes: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return states one period later, and their slopes by states and inputs, point by point."""
        # The derivative of a Runge-Kutta step is the same step for the derivatives.
        (count, n), m = x.shape, u.shape[1]
        step = self.period / self._substeps
        whole = np.zeros((count, n, n + m)) + np.eye(n, n + m)
        inputs = np.zeros((count, m, n + m))
        inputs[:, :, n:] = np.eye(m)
        for k in range(self._substeps):
            rate, slope, total, grown = 0.0 * x, 0.0 * whole, x, whole
            for share, weight in ((0.0, 1.0), (0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
                point, time = x + share * step * rate, times + (k + share) * step
                if with_slopes:
                    (local,) = _mapped(self._rates_with_slopes, point, u, time)
                    rate = local[..., 0]
                    both = np.concatenate([whole + share * step * slope, inputs], axis=1)
                    slope = local[..., 1:] @ both
                    grown = grown + weight / 6.0 * step * slope
                else:
                    rate = _mapped(self._rates, point, u, time)[0][..., 0]
                total = total + weight / 6.0 * step * rate
            x, whole = total, grown
        return x, whole

    def improve(
        self,
        time: float,
        plan: tuple[FloatArray, FloatArray],
        before: FloatArray,
        start: FloatArray,
        disturbance: FloatArray,
        targets: FloatArray,
        *,
        final_weight: float,
        changes: tuple[FloatArray, FloatArray],
        violation_weight: float,
        max_iterations: int,
    ) -> tuple[FloatArray, FloatArray, float, int] | None:
        """Return a better plan, its violation, and the iterations of the solver.

        ``time`` is that of the first sample in s, ``plan`` the inputs (N, m) and states (N + 1, n)
        to linearize at, ``before`` the inputs of the period before, ``disturbance`` d, ``targets``
        r, ``final_weight`` c in s, and ``changes`` weights s and bounds (m,) of changes of inputs.
        A signal beyond its limits costs ``violation_weight`` for each unit and unit squared.
        """
        inputs, states = plan
        N, m, n = self.horizon, inputs.shape[1], states.shape[1]
        times = np.asarray(time + self.period * np.arange(N + 1), dtype=float)
        moved, A = self._moved(times[:-1], states[:-1], inputs, with_slopes=True)
        held = np.vstack([inputs, inputs[-1:]])
        shown = _mapped(self._signals, states, held, times)
        (y, dy), (g, dg) = ((each[..., 0], each[..., 1:]) for each in shown)
        # States, signals and limits are affine in the steps of all inputs: column 0 is constant.
        x = np.zeros((N + 1, n, 1 + N * m))
        u = np.zeros((N + 1, m, 1 + N * m))
        x[0, :, 0] = start - states[0]
        for k in range(N):
            u[k, :, 1 + k * m : 1 + (k + 1) * m] = np.eye(m)
            x[k + 1] = A[k, :, :n] @ x[k] + A[k, :, n:] @ u[k]
            x[k + 1, :, 0] += moved[k] + disturbance - states[k + 1]
        u[N] = u[N - 1]
        both = np.concatenate([x, u], axis=1)
        seen, limited = dy @ both, dg @ both
        seen[..., 0] += y - targets
        limited[..., 0] += g
        moves = np.diff(u[:-1], axis=0, prepend=0.0 * u[:1])
        moves[..., 0] = np.diff(inputs, axis=0, prepend=before[np.newaxis])
        nodes = np.append(np.full(N, self.period), final_weight)
        scaled = [
            (np.sqrt(np.outer(nodes, self.weights))[..., np.newaxis] * seen).reshape(-1, 1 + N * m),
            (np.sqrt(changes[0])[:, np.newaxis] * moves).reshape(-1, 1 + N * m),
        ]
        R = np.vstack(scaled)
        square = 2.0 * R[:, 1:].T @ R[:, 1:]
        square += _REGULAR * max(float(np.diag(square).max()), 1e-300) * np.eye(N * m)
        kept = np.repeat(np.isfinite(self._limits)[:, np.newaxis], N + 1, axis=1)
        kept[:, 0] &= dg[0, :, n:].any(axis=1)  # no input changes the others at once
        soft = kept.any(axis=0)
        rows = limited[soft]
        low, high = (np.broadcast_to(side, soft.shape)[soft] - rows[:, 0] for side in self._limits)
        bound = np.isfinite(np.broadcast_to(changes[1], (N, m)))
        steps = moves[bound]
        largest = np.broadcast_to(changes[1], (N, m))[bound]
        size, count = N * m, len(rows)
        none = np.full(count, np.inf)
        least, most = ((side - inputs).ravel() for side in self.input_bounds)
        found = quadratic_program(
            block_diag(square, 2.0 * violation_weight * np.eye(count)),
            np.concatenate([2.0 * R[:, 1:].T @ R[:, 0], np.full(count, violation_weight)]),
            np.block(
                [
                    [rows[:, 1:], np.eye(count)],
                    [rows[:, 1:], -np.eye(count)],
                    [steps[:, 1:], np.zeros((len(steps), count))],
                ]
            ),
            np.concatenate([low, -none, -largest - steps[:, 0]]),
            np.concatenate([none, high, largest - steps[:, 0]]),
            np.concatenate([least, np.zeros(count)]),
            max_iterations,
            np.concatenate([most, none]),
        )
        if found is None:
            return None
        step, iterations = found[0][:size], found[1]
        better = np.clip(inputs + step.reshape(N, m), *self.input_bounds)
        reached = states + x[..., 0] + x[..., 1:] @ step
        return better, reached, float(np.max(found[0][size:], initial=0.0)), iterations


def _mapped(function: Any, x: FloatArray, u: FloatArray, times: FloatArray) -> list[FloatArray]:
    """Return the dense results of a function of CasADi at several points, the points first."""
    found = function(x.T, u.T, times[np.newaxis])
    found = found if isinstance(found, tuple) else (found,)
    count = len(x)
    return [
        each.full().reshape(each.shape[0], count, each.shape[1] // count).transpose(1, 0, 2)
        for each in found
    ]
