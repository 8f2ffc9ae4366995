"""The quadratic programs of a predictive controller: the inputs to come, and where they lead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, null_space

from flexure.diagrams.checks.extras import import_extra
from flexure.diagrams.values.arrays import FloatArray

_ACCURACY = 1e-9  # of solutions, in the units of the scaled program
_WITHIN = 1e-9  # of a limit: how far rounding may lead beyond it
_OUT_OF_REACH = 1e6  # weight of a reference that limits keep out of reach, over all others


@dataclass(frozen=True)
class Limits:
    """Bounds of inputs and outputs, with infinity where there are none.

    Attributes
    ----------
    inputs, outputs : ndarray, shapes (2, m) and (2, q)
        Lower and upper bounds.
    changes : ndarray, shape (m,)
        Largest change of an input from sample to sample.
    weight : float
        Cost of an output beyond its bounds, for each unit and unit squared; infinity for hard
        bounds.
    """

    inputs: FloatArray
    outputs: FloatArray
    changes: FloatArray
    weight: float

    def hold(self, u: FloatArray, y: FloatArray) -> bool:
        """Return whether inputs and outputs, or rows of them, are within the bounds."""
        return _within(u, self.inputs) and _within(y, self.outputs)


@dataclass(frozen=True)
class Plan:
    """Inputs over the horizon.

    Attributes
    ----------
    inputs : ndarray, shape (N, m)
        Those of the periods to come.
    violation : float
        By how much an output exceeds its soft bounds at the most.
    iterations : int
        Of the solver; 0 where no bound is in the way.
    """

    inputs: FloatArray
    violation: float
    iterations: int


class HorizonProblem:
    """Minimize ``Σ (dxᵀ Q dx + duᵀ R du) + dxᵀ P dx`` behind N periods, within limits.

    The deviations dx and du from a point at rest follow ``dx[k+1] = A dx[k] + B du[k]`` whatever
    the lasting disturbance. With the feedback K that is optimal without limits, P its cost, and
    ``du = -K dx + v``, the sum is ::

        dx[0]ᵀ P dx[0] + Σ vᵀ (R + Bᵀ P B) v

    so that v is what the limits cost, and zero where they are not in the way: then nothing is to be
    searched.

    Parameters
    ----------
    A, B, C, D : ndarray
        Model from sample to sample; C and D of the bounded outputs.
    R, P, K : ndarray
        Weights of inputs, cost and gain of the feedback.
    horizon : int
        N.
    limits : Limits
        The bounds.
    max_iterations : int
        Of the solver.
    """

    def __init__(
        self,
        model: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        cost: tuple[FloatArray, FloatArray, FloatArray],
        horizon: int,
        limits: Limits,
        max_iterations: int,
    ) -> None:
        (A, B, C, D), (R, P, K) = model, cost
        N, (n, m), q = horizon, B.shape, len(C)
        self._limits, self._most = limits, max_iterations
        # What states, inputs and outputs are made of: of dx[0], and of all v.
        x = np.zeros((N + 1, n, n + N * m))
        x[0, :, :n] = np.eye(n)
        u = np.zeros((N, m, n + N * m))
        for k in range(N):
            u[k] = -K @ x[k]
            u[k, :, n + k * m : n + (k + 1) * m] += np.eye(m)
            x[k + 1] = A @ x[k] + B @ u[k]
        y = C @ x
        y[:-1] += D @ u
        self._inputs, self._outputs = u, y
        changes = np.diff(u, axis=0, prepend=0.0 * u[:1])
        soft = (N + 1) * q if np.isfinite(limits.weight) else 0
        excess = np.eye((N + 1) * q, soft)
        seen, moved = (each[..., n:].reshape(-1, N * m) for each in (y, u))
        rows = [
            np.hstack([moved, np.zeros((N * m, soft))]),
            np.hstack([changes[..., n:].reshape(-1, N * m), np.zeros((N * m, soft))]),
            np.hstack([seen, excess]),
            np.hstack([seen, -excess]),
        ]
        limited = np.repeat(np.isfinite(limits.outputs)[:, np.newaxis], N + 1, axis=1)
        limited[:, 0] &= D.any(axis=1)  # no input changes the others at once
        kept = [np.tile(np.isfinite(limits.inputs).any(axis=0), N)]
        kept += [np.tile(np.isfinite(limits.changes), N), limited.ravel()]
        self._kept = np.concatenate(kept)
        self._rows = np.vstack(rows)[self._kept]
        weight = limits.weight if soft else 0.0
        squares = [np.kron(np.eye(N), R + B.T @ P @ B), weight * np.eye(soft)]
        self._cost = 2.0 * block_diag(*squares), np.repeat([0.0, weight], [N * m, soft])

    def solve(
        self, x: FloatArray, before: FloatArray, xs: FloatArray, us: FloatArray, ys: FloatArray
    ) -> Plan | None:
        """Return the optimal inputs, None where the solver finds none.

        Parameters
        ----------
        x, before : ndarray, shapes (n,) and (m,)
            The state, and the inputs of the period before.
        xs, us, ys : ndarray, shapes (n,), (m,) and (q,)
            The point at rest, with its bounded outputs.
        """
        limits, n = self._limits, len(x)
        u = self._inputs[..., :n] @ (x - xs) + us
        y = self._outputs[..., :n] @ (x - xs) + ys
        changes = np.diff(u, axis=0, prepend=before[np.newaxis])
        largest = np.stack([-limits.changes, limits.changes])
        if limits.hold(u, y) and _within(changes, largest):
            return Plan(u, 0.0, 0)
        (low, high), none = limits.outputs, np.full(y.size, np.inf)
        bounds = [
            [(bound - u).ravel() for bound in limits.inputs],
            [(bound - changes).ravel() for bound in largest],
            [(low - y).ravel(), none],
            [-none, (high - y).ravel()],
        ]
        lower, upper = (np.concatenate(each)[self._kept] for each in zip(*bounds, strict=True))
        least = np.repeat([-np.inf, 0.0], [u.size, len(self._cost[1]) - u.size])
        found = quadratic_program(*self._cost, self._rows, lower, upper, least, self._most)
        if found is None:
            return None
        z, iterations = found
        v, excess = z[: u.size], z[u.size :]
        inputs = np.clip(u + (self._inputs[..., n:] @ v), *limits.inputs)
        return Plan(inputs, float(np.max(excess, initial=0.0)), iterations)


class PointAtRest:
    """Where a model comes to rest under a disturbance, with given outputs.

    If there are many such points, the nearest to the point of the model counts, in the norm of Q
    and R. If it is beyond the limits, outputs come as near to the reference as these allow.

    Parameters
    ----------
    A, B, C, D : ndarray
        Model from sample to sample, with all outputs.
    Q, R : ndarray
        Weights of states and inputs.
    tracked, bounded : list of int
        Outputs that follow a reference, and those with bounds.
    limits : Limits
        The bounds.
    max_iterations : int
        Of the solver.
    """

    def __init__(
        self,
        model: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        weights: tuple[FloatArray, FloatArray],
        tracked: list[int],
        bounded: list[int],
        limits: Limits,
        max_iterations: int,
    ) -> None:
        A, B, C, D = model
        n, m = B.shape
        self._motion = np.hstack([A - np.eye(n), B])
        self._outputs = np.hstack([C, D])
        self._tracked, self._bounded = tracked, bounded
        self._limits, self._most = limits, max_iterations
        size = float(max(np.abs(each).max() for each in weights))
        self._weights = block_diag(*weights) + 1e-12 * size * np.eye(n + m)
        self.conditions = np.vstack([self._motion, self._outputs[tracked]])

    def find(self, f: FloatArray, r: FloatArray) -> FloatArray | None:
        """Return the deviations of states and inputs from the point of the model.

        Parameters
        ----------
        f : ndarray, shape (n,)
            Change of the states over a period at the point of the model.
        r : ndarray, shape (p,)
            Reference, as a deviation.
        """
        n, rows = len(f), len(self.conditions)
        system = np.block(
            [[self._weights, self.conditions.T], [self.conditions, np.zeros((rows, rows))]]
        )
        known = np.concatenate([np.zeros(len(self._weights)), -f, r])
        point: FloatArray = np.linalg.solve(system, known)[: len(self._weights)]
        limits, shown = self._limits, self._outputs[self._bounded]
        if limits.hold(point[n:], shown @ point):
            return point
        soft = len(shown) if np.isfinite(limits.weight) else 0
        C, excess = self._outputs[self._tracked], np.eye(len(shown), soft)
        scale = np.abs(self._weights).max() / max(np.abs(C).max(initial=0.0) ** 2, 1e-300)
        free = null_space(self._motion)  # of all points at rest, point + free @ z
        C, error = C @ free, C @ point - r
        weight = limits.weight if soft else 0.0
        near = free.T @ self._weights
        square = near @ free + _OUT_OF_REACH * scale * C.T @ C
        linear = near @ point + _OUT_OF_REACH * scale * C.T @ error
        inputs, none = point[n:], np.full(len(shown), np.inf)
        low, high = limits.outputs - shown @ point
        found = quadratic_program(
            2.0 * block_diag(square, weight * np.eye(soft)),
            np.concatenate([2.0 * linear, np.full(soft, weight)]),
            np.block(
                [
                    [free[n:], np.zeros((len(inputs), soft))],
                    [shown @ free, excess],
                    [shown @ free, -excess],
                ]
            ),
            np.concatenate([limits.inputs[0] - inputs, low, -none]),
            np.concatenate([limits.inputs[1] - inputs, none, high]),
            np.repeat([-np.inf, 0.0], [free.shape[1], soft]),
            self._most,
        )
        return None if found is None else point + free @ found[0][: free.shape[1]]


def quadratic_program(
    square: FloatArray,
    linear: FloatArray,
    rows: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    least: FloatArray,
    max_iterations: int,
    most: FloatArray | None = None,
) -> tuple[FloatArray, int] | None:
    """Minimize ½ zᵀ H z + cᵀ z with bounds of rows and of z by PIQP; None if there is no solution.

    A solver is made for each program, since one that is used again keeps a scaling of before: the
    answer depends on the numbers alone.
    """
    piqp = import_extra("piqp", "optimal", "Cannot solve a quadratic program")
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = _ACCURACY
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = _ACCURACY
    settings.max_iter = max_iterations
    size = np.abs(square).max()
    solver.setup(
        square / size,
        linear / size,
        G=rows,
        h_l=lower,
        h_u=upper,
        x_l=least,
        x_u=np.full(len(least), np.inf) if most is None else most,
    )
    if solver.solve() != piqp.PIQP_SOLVED:
        return None
    return np.array(solver.result.x), int(solver.result.info.iter)


def _within(values: FloatArray, bounds: FloatArray) -> bool:
    """Return whether values are within bounds, but for rounding."""
    slack = _WITHIN * np.where(np.isfinite(bounds), np.abs(bounds), 0.0)
    return bool(np.all(values >= bounds[0] - slack[0]) and np.all(values <= bounds[1] + slack[1]))
