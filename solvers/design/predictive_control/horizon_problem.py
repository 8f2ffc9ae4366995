"""The quadratic programs of a predictive controller: the inputs to come, and where they lead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, null_space

from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.values.arrays import FloatArray

_ACCURACY = 1e-9  # of solutions, in the units of the scaled program
_WITHIN = 1e-9  # of a limit: how far rounding may lead beyond it
_OUT_OF_REACH = 1e6  # weight of a reference that limits keep out of reach, over all others
_BEYOND = 1e9  # weight of soft limits that no point at rest keeps, over the reference
_NEGLIGIBLE = 1e-3  # of the room within the bounds: smaller steps need no better accuracy
_SIZES = np.array([1.0, 1e3, 1e6])  # one after the other, until the solver converges
_SWEEPS = 20  # of a balance


@dataclass(frozen=True)
class Limits:
    """Bounds of inputs and outputs, with infinity where there are none."""

    # inputs, outputs: lower and upper bounds, shapes (2, m) and (2, q).
    inputs: FloatArray
    outputs: FloatArray
    changes: FloatArray  # largest change of an input from sample to sample, shape (m,)
    # Costs of outputs beyond their bounds, for each unit and unit squared; infinity for hard
    # bounds, shape (2, q).
    weights: FloatArray

    @property
    def soft(self) -> bool:
        """Whether outputs can be beyond their bounds, at a cost."""
        return bool(np.isfinite(self.weights).all())

    def hold(self, u: FloatArray, y: FloatArray) -> bool:
        """Return whether inputs and outputs, or rows of them, are within the bounds."""
        return _within(u, self.inputs) and _within(y, self.outputs)


@dataclass(frozen=True)
class Plan:
    """Inputs over the horizon."""

    inputs: FloatArray  # those of the periods to come, (N, m)
    violation: float  # by how much an output exceeds its soft bounds at the most
    iterations: int  # of the solver; 0 where no bound is in the way


class HorizonProblem:
    """Minimize ``Σ (dxᵀ Q dx + duᵀ R du) + dxᵀ P dx`` behind N periods, within limits.

    The deviations dx and du from a point at rest follow ``dx[k+1] = A dx[k] + B du[k]`` whatever
    the lasting disturbance; C and D are those of the bounded outputs. With the feedback K that is
    optimal without limits, P its cost, and ``du = -K dx + v``, the sum is ::

        dx[0]ᵀ P dx[0] + Σ vᵀ (R + Bᵀ P B) v

    so that v is what the limits cost, and zero where they are not in the way: then nothing is to be
    searched. ``cost`` is (R, P, K).
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
        y[-1] -= D @ K @ x[-1]
        self._inputs, self._outputs = u, y
        changes = np.diff(u, axis=0, prepend=0.0 * u[:1])
        soft = (N + 1) * q if limits.soft else 0
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
        first, second = (np.tile(each, N + 1)[:soft] for each in limits.weights)
        squares = [np.kron(np.eye(N), R + B.T @ P @ B), np.diag(second)]
        self._cost = 2.0 * block_diag(*squares), np.append(np.zeros(N * m), first)

    def solve(
        self, x: FloatArray, before: FloatArray, xs: FloatArray, us: FloatArray, ys: FloatArray
    ) -> Plan | None:
        """Return the optimal inputs to a point at rest; None where the solver finds none."""
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
    Soft limits that no point at rest keeps are exceeded as little as possible. The model, from
    sample to sample, has all outputs, of which some are ``tracked``, and others ``bounded``.
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
        motion = np.hstack([A - np.eye(len(A)), B])
        self._outputs = np.hstack([C, D])
        self._tracked, self._bounded = tracked, bounded
        self._limits, self._most = limits, max_iterations
        self.conditions = np.vstack([motion, self._outputs[tracked]])
        norm = block_diag(*weights)
        self._exact, self._nearby = (_solutions(each, norm) for each in (self.conditions, motion))

    def find(self, f: FloatArray, r: FloatArray) -> FloatArray | None:
        """Return the deviations of states and inputs from the point of the model.

        ``f`` is the change of states over a period there, ``r`` the reference as a deviation.
        """
        n, limits, shown = len(f), self._limits, self._outputs[self._bounded]
        point: FloatArray = self._exact[0] @ np.concatenate([-f, r])
        if limits.hold(point[n:], shown @ point):
            return point
        inverse, free = self._nearby  # all points at rest are point + free @ z
        point = inverse @ -f
        C = self._outputs[self._tracked]
        lengths = _lengths(C @ free)
        seen, error = (C @ free) / lengths[:, np.newaxis], (C @ point - r) / lengths
        square = np.eye(free.shape[1]) + _OUT_OF_REACH * seen.T @ seen
        linear = _OUT_OF_REACH * seen.T @ error
        moved = shown @ free
        moved[np.abs(moved) <= 1e-12 * (np.abs(shown) @ np.abs(free))] = 0.0  # by rounding
        rows = np.vstack([free[n:], moved])
        low, high = np.hstack([limits.inputs, limits.outputs]) - np.append(point[n:], shown @ point)
        found = quadratic_program(
            square, linear, rows, low, high, np.full(len(square), -np.inf), self._most
        )
        if found is None and limits.soft:
            count, held = len(shown), len(free) - n
            excess = np.diag(_lengths(rows))[:, held:]
            found = quadratic_program(
                block_diag(square, _BEYOND * np.eye(count)),
                np.append(linear, np.zeros(count)),
                np.hstack([np.vstack([rows, rows]), np.vstack([excess, -excess])]),
                np.append(low, np.full(len(rows), -np.inf)),
                np.append(np.full(len(rows), np.inf), high),
                np.repeat([-np.inf, 0.0], [len(square), count]),
                self._most,
            )
        return None if found is None else point + free @ found[0][: len(square)]


def balanced(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a matrix in units in which rows and columns are of size 1, and its factors."""
    left, right = np.ones(len(matrix)), np.ones(matrix.shape[1])
    for _ in range(_SWEEPS):
        sizes = np.abs(matrix * left[:, np.newaxis] * right)
        rows, columns = sizes.max(axis=1), sizes.max(axis=0)
        left /= np.sqrt(np.where(rows > 0.0, rows, 1.0))
        right /= np.sqrt(np.where(columns > 0.0, columns, 1.0))
    return matrix * left[:, np.newaxis] * right, left, right


def _solutions(matrix: FloatArray, norm: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the inverse with the least results in a norm, and an orthonormal null space."""
    scaled, left, right = balanced(matrix)
    inverse = right[:, np.newaxis] * np.linalg.pinv(scaled) * left
    free = null_space(scaled)
    free = right[:, np.newaxis] * np.where(np.abs(free) > 1e-13, free, 0.0)
    sizes = free.T @ norm @ free
    sizes += 1e-12 * np.trace(sizes) * np.eye(len(sizes))  # where states have no weight
    free = np.linalg.solve(np.linalg.cholesky(sizes), free.T).T
    return inverse - free @ (free.T @ norm @ inverse), free


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

    The diagonal of H is positive. Tolerances of the solver are absolute, so unknowns are in units
    in which their curvature is 1, rows have the length 1, and all is divided by the size of the
    step that gradient and bounds ask for at z = 0: units of inputs and outputs do not matter. A
    solver is made for each program, since one that is used again keeps a scaling of before: the
    answer depends on the numbers alone.
    """
    piqp = import_extra("piqp", "optimal", "Cannot solve a quadratic program")
    most = np.full(len(least), np.inf) if most is None else most
    if not all(np.isfinite(each).all() for each in (square, linear, rows)):
        return None
    unit = np.diag(square) ** -0.5
    lengths = _lengths(rows * unit)
    bounds = np.stack([np.append(least / unit, lower / lengths)] * 2)
    bounds[1] = np.append(most / unit, upper / lengths)
    penalty = (linear > 0.0) & (least == 0.0)  # of what is zero already
    steepest = np.abs(np.where(penalty, 0.0, linear) * unit).max()
    asked = max(steepest, bounds[0].max(), -bounds[1].min(), 0.0)
    if asked == 0.0:  # z = 0 keeps all bounds, and no step from there costs less
        return np.zeros(len(least)), 0
    rooms = np.abs(np.where(np.isfinite(bounds), bounds, 0.0)).max(axis=0)
    room = rooms[rooms > 0.0].min(initial=np.inf)
    smallest = max(asked, _NEGLIGIBLE * room) if room < np.inf else asked
    for size in smallest * _SIZES:
        solver = piqp.DenseSolver()
        settings = solver.settings
        settings.eps_abs = settings.eps_rel = _ACCURACY
        settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = _ACCURACY
        settings.max_iter = max_iterations
        solver.setup(
            square * unit * unit[:, np.newaxis],
            linear * unit / size,
            G=rows * unit / lengths[:, np.newaxis],
            h_l=lower / lengths / size,
            h_u=upper / lengths / size,
            x_l=least / unit / size,
            x_u=most / unit / size,
        )
        status = solver.solve()
        if status == piqp.PIQP_SOLVED:
            return solver.result.x * unit * size, int(solver.result.info.iter)
        if status == piqp.PIQP_PRIMAL_INFEASIBLE:
            break
    return None


def _lengths(rows: FloatArray) -> FloatArray:
    """Return the lengths of rows, 1 for those that are zero."""
    lengths = np.linalg.norm(rows, axis=1)
    return np.where(lengths > 0.0, lengths, 1.0)


def _within(values: FloatArray, bounds: FloatArray) -> bool:
    """Return whether values are within bounds, but for rounding."""
    slack = _WITHIN * np.where(np.isfinite(bounds), np.abs(bounds), 0.0)
    return bool(np.all(values >= bounds[0] - slack[0]) and np.all(values <= bounds[1] + slack[1]))
