"""Transcription: a problem on a mesh as a nonlinear program, and its solutions in our terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.design.optimal_motion.collocation import Collocation
from flexure.solvers.design.optimal_motion.motion_problem import MotionProblem
from flexure.solvers.design.optimal_motion.node_functions import NodeFunctions

_PEAK = 2.0  # of a rate, in units of its mean: that of smooth motions from rest to rest


@dataclass(frozen=True, eq=False)
class Plan:
    """States, inputs and duration on a mesh: a guess, or what the solver found.

    States are those at the points, inputs those at the nodes of the mesh, or on the intervals if
    they are held. Rates are derivatives by the part of the duration, at the evaluations.
    """

    collocation: Collocation
    states: FloatArray
    inputs: FloatArray
    duration: float
    rates: FloatArray
    cost: float

    def states_at(self, instants: FloatArray) -> FloatArray:
        """Return the states at parts of the duration."""
        return self.collocation.states_at(self.states, self.rates, instants)

    def inputs_at(self, instants: FloatArray) -> FloatArray:
        """Return the inputs at parts of the duration."""
        return self.collocation.inputs_at(self.inputs, instants)

    @property
    def nodes(self) -> FloatArray:
        """The states at the nodes of the mesh."""
        return self.states[:, :: self.collocation.per_interval]


class Transcription:
    """A nonlinear program in scaled unknowns: states at points, inputs at nodes, the duration.

    States, inputs and the duration are divided by ``scales``, and the cost by ``cost_scale``, by
    default its change at unknowns of half their size.

    Attributes
    ----------
    program : dict
        Unknowns ``x``, objective ``f`` and constraints ``g``, as `casadi.nlpsol` takes them.
    lower, upper, row_lower, row_upper : ndarray
        Bounds of the unknowns and of the constraints.
    rows : list of (str, ndarray)
        Name of each group of constraints beside the equations of motion, and the instants of its
        members, in the order of the constraints behind them.
    equations : int
        How many of the constraints are the equations of motion.
    """

    def __init__(
        self,
        ca: Any,
        functions: NodeFunctions,
        collocation: Collocation,
        scales: tuple[FloatArray, FloatArray, float],
        cost_scale: float | None = None,
    ) -> None:
        self.ca, self.functions, self.collocation = ca, functions, collocation
        self.problem: MotionProblem = functions.problem
        self.state_scale, self.input_scale, self.time_scale = scales
        problem, start = self.problem, self.problem.context.time
        num_states, num_inputs = len(self.state_scale), len(self.input_scale)
        self._shapes = (
            (num_states, len(collocation.points)),
            (num_inputs, collocation.inputs),
        )
        points, instants, of_stage, blend = collocation.evaluations
        self._at = points, instants
        states, inputs = ca.MX.sym("x", *self._shapes[0]), ca.MX.sym("u", *self._shapes[1])
        time = ca.MX.sym("duration") if problem.free_time else ca.MX(1.0)
        x = ca.mtimes(ca.diag(ca.DM(self.state_scale)), states)
        u = ca.mtimes(ca.diag(ca.DM(self.input_scale)), inputs)
        duration = self.time_scale * time
        every, at = x[:, points.tolist()], start + ca.DM(instants).T * duration
        blended = ca.mtimes(u, ca.sparsify(ca.DM(blend)))
        rates, along = functions.running.map(len(points))(every, blended, at)
        integrand = functions.integrand.map(len(points))(every, blended, at)
        size, rows = collocation.per_interval, []
        lengths = ca.repmat(ca.DM(collocation.lengths).T, len(self.state_scale), 1)
        begin = x[:, 0:-1:size]
        moves = [rates[:, stage.tolist()] * lengths * duration for stage in of_stage.T]
        for k, weights in enumerate(collocation.weights):
            reached = begin + sum(w * move for w, move in zip(weights, moves, strict=True) if w)
            if functions.projected is not None and k == size - 1:
                reached = functions.projected.map(collocation.intervals)(reached)
            rows.append(x[:, k + 1 :: size] - reached)
        scaled = ca.mtimes(ca.diag(ca.DM(1.0 / np.tile(self.state_scale, size))), ca.vertcat(*rows))
        last, final = functions.ending(x[:, -1], u[:, -1], start + duration)
        quadrature = np.zeros(len(points))
        np.add.at(quadrature, of_stage, np.outer(collocation.lengths, collocation.weights[-1]))
        cost = duration * ca.mtimes(integrand, ca.DM(quadrature)) + final
        cost += problem.time_weight * (start + duration)
        unknowns = [ca.vec(states), ca.vec(inputs)] + [time] * problem.free_time
        all_unknowns = ca.vertcat(*unknowns)
        self._compute = ca.Function("compute", [all_unknowns], [rates * duration, cost])
        self.equations = scaled.numel()
        self._set_bounds()
        row_scale = np.concatenate(
            [np.repeat(_sizes(functions.path_rows), len(points)), _sizes(functions.end_rows)]
        )
        bounded = ca.vertcat(ca.vec(along.T), last) / ca.DM(row_scale)
        self._set_rows(row_scale)
        self.program = {
            "x": all_unknowns,
            "f": cost / (cost_scale or self._size_of(cost, all_unknowns)),
            "g": ca.vertcat(ca.vec(scaled), bounded) if row_scale.size else ca.vec(scaled),
        }

    def _size_of(self, cost: Any, unknowns: Any) -> float:
        """Return by how much the cost changes, at unknowns of half their size, over their size."""
        slope = self.ca.Function("slope", [unknowns], [self.ca.gradient(cost, unknowns)])
        size = float(np.sum(np.abs(np.array(slope(np.full(unknowns.numel(), 0.5))))))
        return size if 0.0 < size < np.inf else 1.0

    def _set_bounds(self) -> None:
        """Set the bounds of the unknowns, and note which ones can be broken in a diagnosis."""
        functions, problem, n = self.functions, self.problem, len(self.state_scale)
        lower, upper = (np.full(self._shapes[0], each) for each in (-np.inf, np.inf))
        lower[:], upper[:] = functions.path_lower[:n, None], functions.path_upper[:n, None]
        lower[:, -1] = np.maximum(lower[:, -1], functions.end_lower[:n])
        upper[:, -1] = np.minimum(upper[:, -1], functions.end_upper[:n])
        self.soft = np.isfinite(lower) | np.isfinite(upper)
        self.soft[:, 0] &= problem.start_lower < problem.start_upper
        lower[:, 0] = np.maximum(lower[:, 0], problem.start_lower)
        upper[:, 0] = np.minimum(upper[:, 0], problem.start_upper)
        limits = [
            np.tile(side[:, np.newaxis], self._shapes[1][1])
            for side in (
                np.maximum(problem.input_lower, functions.path_lower[n:]),
                np.minimum(problem.input_upper, functions.path_upper[n:]),
            )
        ]
        limits[0][:, -1] = np.maximum(limits[0][:, -1], functions.end_lower[n:])
        limits[1][:, -1] = np.minimum(limits[1][:, -1], functions.end_upper[n:])
        low, high = problem.duration
        self.lower, self.upper = (
            self.packed(side, limit, bound)
            for side, limit, bound in zip((lower, upper), limits, (low, high), strict=True)
        )

    def _set_rows(self, row_scale: FloatArray) -> None:
        functions, instants = self.functions, self._at[1]
        self.rows = [(name, instants) for name, _, _ in functions.path_rows]
        self.rows += [(name, np.ones(1)) for name, _, _ in functions.end_rows]
        sides = []
        for side in (1, 2):
            along = [np.full(len(instants), row[side]) for row in functions.path_rows]
            last = np.array([row[side] for row in functions.end_rows])
            sides.append(np.concatenate([np.zeros(self.equations), *along, last]))
        self.row_scale = np.concatenate([np.ones(self.equations), row_scale])
        self.row_lower, self.row_upper = (side / self.row_scale for side in sides)

    def packed(self, states: FloatArray, inputs: FloatArray, duration: float) -> FloatArray:
        """Return unknowns of the program, scaled, in their order."""
        parts = [
            (states / self.state_scale[:, np.newaxis]).T.ravel(),
            (inputs / self.input_scale[:, np.newaxis]).T.ravel(),
        ]
        if self.problem.free_time:
            parts.append(np.array([duration / self.time_scale]))
        return np.concatenate(parts)

    def guess(self, plan: Plan) -> FloatArray:
        """Return the unknowns for another plan, on another mesh perhaps."""
        nodes = self.collocation.mesh[: self.collocation.inputs]
        states, inputs = plan.states_at(self.collocation.points), plan.inputs_at(nodes)
        return np.clip(self.packed(states, inputs, plan.duration), self.lower, self.upper)

    def plan(self, unknowns: FloatArray) -> Plan:
        """Return what the unknowns of the program mean."""
        (n, points), (m, nodes) = self._shapes
        states = unknowns[: n * points].reshape(points, n).T * self.state_scale[:, np.newaxis]
        rest = unknowns[n * points : n * points + m * nodes].reshape(nodes, m).T
        free = self.problem.free_time
        duration = self.time_scale * (float(unknowns[-1]) if free else 1.0)
        rates, cost = self._compute(unknowns)
        inputs = rest * self.input_scale[:, np.newaxis]
        return Plan(self.collocation, states, inputs, duration, np.array(rates), float(cost))

    def soft_names(self) -> list[tuple[str, float]]:
        """Return the name and instant of each bound of states that a diagnosis may break."""
        names, points = self.functions.names, self.collocation.points.tolist()
        return [(names[k], points[p]) for p, k in np.argwhere(self.soft.T)]


def _sizes(rows: list[tuple[str, float, float]]) -> FloatArray:
    """Return what bounded signals are divided by: their largest bound, or one."""
    sizes = [max((abs(b) for b in row[1:] if np.isfinite(b)), default=1.0) for row in rows]
    return np.array([size or 1.0 for size in sizes])


def nominal_scales(functions: NodeFunctions, plan: Plan) -> tuple[FloatArray, FloatArray, float]:
    """Return the sizes of states and inputs, from bounds and a guess, and that of the duration.

    A position or velocity that stays zero there has the size of the largest one of its block. Sizes
    that are still open follow from others: a state or input ``w`` has the size at which it moves a
    state of known size by that much during the motion, ``s_i = T |df_i/dw| s_w``; and what moves
    nothing has the size to which others move it.
    """
    problem, n = functions.problem, len(plan.states)
    known = np.concatenate([np.abs(plan.states).max(axis=1), np.abs(plan.inputs).max(axis=1)])
    bounds = [
        (functions.path_lower, functions.path_upper),
        (functions.end_lower, functions.end_upper),
        (
            np.concatenate([problem.start_lower, problem.input_lower]),
            np.concatenate([problem.start_upper, problem.input_upper]),
        ),
    ]
    for side in (side for pair in bounds for side in pair):
        known = np.maximum(known, np.where(np.isfinite(side), np.abs(side), 0.0))
    instants = np.linspace(0.0, 1.0, 5)
    start, duration = problem.context.time, plan.duration
    slopes = functions.slopes.map(5)(
        plan.states_at(instants), plan.inputs_at(instants), start + duration * instants[np.newaxis]
    )
    moves = np.abs(np.array(slopes)).reshape(n, 5, len(known)).mean(axis=1) * duration
    moves[~np.isfinite(moves)] = 0.0
    groups = [
        [k for k in part.tolist() if span.start <= k < span.stop]
        for part in (problem.layout.q_indices, problem.layout.v_indices)
        for span in problem.layout.x_slices
    ]
    for _ in range(len(known)):
        for group in groups:
            still = [k for k in group if known[k] == 0.0]
            known[still] = known[group].max(initial=0.0)
        found: dict[int, float] = {}
        for w in np.flatnonzero(known == 0.0).tolist():
            moved = (moves[:, w] > 0.0) & (known[:n] > 0.0)
            if moved.any():
                found[w] = _PEAK * float(np.min(known[:n][moved] / moves[moved, w]))
        if not found:
            pushed = moves @ known
            still = np.flatnonzero((known[:n] == 0.0) & (pushed > 0.0)).tolist()
            found = {w: float(pushed[w]) for w in still}
        if not found:
            break
        for w, size in found.items():
            known[w] = size
    known[known == 0.0] = 1.0
    return known[:n], known[n:], duration
