"""Transcription: a problem on a mesh as a nonlinear program, and its solutions in our terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.design.optimal_motion.collocation import Collocation
from flexure.solvers.design.optimal_motion.motion_problem import MotionProblem
from flexure.solvers.design.optimal_motion.node_functions import NodeFunctions, Row

#: Sizes of states, of inputs and of durations.
Scales = tuple[FloatArray, FloatArray, FloatArray]
_BEFORE = 1e-9  # of the motion, in which inputs go over to their values behind an event
_SHORTEST = 1e-3  # part of its share of the whole motion that a phase takes at least
_PEAK = 2.0  # of a rate, in units of its mean: that of smooth motions from rest to rest


@dataclass(frozen=True, eq=False)
class Plan:
    """States, inputs and durations on a mesh: a guess, or what the solver found.

    States are those at the points, inputs those at the nodes of the mesh, or on the intervals if
    they are held; both of all phases, end to end. Rates are derivatives by the part of the
    duration, at the evaluations.
    """

    collocation: Collocation
    states: FloatArray
    inputs: FloatArray
    durations: FloatArray
    rates: FloatArray
    cost: float

    def states_at(self, instants: FloatArray) -> FloatArray:
        """Return the states at parts of the duration."""
        return self.collocation.states_at(self.states, self.rates, instants)

    def inputs_at(self, instants: FloatArray) -> FloatArray:
        """Return the inputs at parts of the duration."""
        return self.collocation.inputs_at(self.inputs, instants)

    @property
    def duration(self) -> float:
        """The duration of the whole motion."""
        return float(np.sum(self.durations))

    def times_at(self, start: float, instants: FloatArray) -> FloatArray:
        """Return the times at parts of the durations, shape (phases, instants)."""
        begins = start + np.cumsum(self.durations) - self.durations
        times: FloatArray = begins[:, np.newaxis] + np.outer(self.durations, instants)
        return times

    def node_times(self, start: float) -> FloatArray:
        """Return the times of the nodes of all phases, which end just before events."""
        times = self.times_at(start, self.collocation.mesh)
        times[:-1, -1] -= _BEFORE * self.duration
        return times.ravel()

    def along(self, values: FloatArray) -> FloatArray:
        """Return values at the nodes of all phases, one after the other."""
        count = len(self.durations)
        return np.hstack([*values.reshape(count, -1, values.shape[1])])

    @property
    def nodes(self) -> FloatArray:
        """The states at the nodes of the mesh."""
        return self.states[:, :: self.collocation.per_interval]

    @property
    def node_inputs(self) -> FloatArray:
        """The inputs at the nodes of the mesh; held ones count twice at the end of a phase."""
        nodes = np.minimum(np.arange(self.collocation.intervals + 1), self.collocation.inputs - 1)
        return self.inputs[:, nodes]


class Transcription:
    """A nonlinear program in scaled unknowns: states at points, inputs at nodes, durations.

    States, inputs and durations are divided by ``scales``, and the cost by ``cost_scale``, by
    default its change at unknowns of half their size.
    """

    def __init__(
        self,
        ca: Any,
        functions: NodeFunctions,
        collocation: Collocation,
        scales: Scales,
        cost_scale: float | None = None,
    ) -> None:
        self.ca, self.functions, self.collocation = ca, functions, collocation
        self.problem: MotionProblem = functions.problem
        self.state_scale, self.input_scale, self.time_scale = scales
        problem, start = self.problem, self.problem.context.time
        num_states, num_inputs = len(self.state_scale), len(self.input_scale)
        self._shapes = ((num_states, len(collocation.points)), (num_inputs, collocation.inputs))
        points, instants, of_stage, blend = collocation.evaluations
        self._at = points, instants
        states, inputs = ca.MX.sym("x", *self._shapes[0]), ca.MX.sym("u", *self._shapes[1])
        count = len(problem.phases)
        time = ca.MX.sym("duration", count) if problem.free_durations else ca.MX(1.0)
        x = ca.mtimes(ca.diag(ca.DM(self.state_scale)), states)
        u = ca.mtimes(ca.diag(ca.DM(self.input_scale)), inputs)
        duration = ca.DM(self.time_scale) * time
        begins = start + ca.cumsum(duration) - duration
        every = x[:, points.tolist()]
        at = ca.repmat(begins, 1, len(points)) + ca.mtimes(duration, ca.DM(instants).T)
        blended = ca.mtimes(u, ca.sparsify(ca.DM(blend)))
        rates, along = functions.running.map(len(points))(every, blended, at)
        integrand = functions.integrand.map(len(points))(every, blended, at)
        size, rows = collocation.per_interval, []
        spans = ca.repmat(duration.T, num_states // count, 1).reshape((num_states, 1))
        lengths = ca.mtimes(spans, ca.DM(collocation.lengths).T)
        begin = x[:, 0:-1:size]
        moves = [rates[:, stage.tolist()] * lengths for stage in of_stage.T]
        for k, weights in enumerate(collocation.weights):
            reached = begin + sum(w * move for w, move in zip(weights, moves, strict=True) if w)
            if functions.projected is not None and k == size - 1:
                reached = functions.projected.map(collocation.intervals)(reached)
            rows.append(x[:, k + 1 :: size] - reached)
        scaled = ca.mtimes(ca.diag(ca.DM(1.0 / np.tile(self.state_scale, size))), ca.vertcat(*rows))
        ends = begins + duration
        last, final = functions.ending(x[:, -1], u[:, -1], ends)
        behind = functions.joints(x[:, -1], u[:, -1], ends) - x[num_states // count :, 0]
        equations = [ca.vec(scaled), behind / ca.DM(self.state_scale[num_states // count :])]
        quadrature = np.zeros(len(points))
        np.add.at(quadrature, of_stage, np.outer(collocation.lengths, collocation.weights[-1]))
        cost = ca.dot(duration, ca.mtimes(integrand, ca.DM(quadrature))) + final
        cost += problem.time_weight * ends[-1]
        unknowns = [ca.vec(states), ca.vec(inputs)] + [time] * problem.free_durations
        all_unknowns, motion = ca.vertcat(*unknowns), ca.vertcat(*equations)
        moving = rates * ca.repmat(spans, 1, len(points))
        self._compute = ca.Function("compute", [all_unknowns], [moving, cost])
        self.equations = motion.numel()  # constraints that are equations of motion and events
        self._set_bounds()
        row_scale = np.concatenate(
            [np.repeat(_sizes(functions.path_rows), len(points)), _sizes(functions.end_rows)]
        )
        bounded = ca.vertcat(ca.vec(along.T), last) / ca.DM(row_scale)
        self._set_rows(row_scale)
        self.program = {  # as `casadi.nlpsol` takes it
            "x": all_unknowns,
            "f": cost / (cost_scale or self._size_of(cost, all_unknowns)),
            "g": ca.vertcat(motion, bounded) if row_scale.size else motion,
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
        self.soft[:, 0] &= functions.start_lower[:n] < functions.start_upper[:n]
        lower[:, 0] = np.maximum(lower[:, 0], functions.start_lower[:n])
        upper[:, 0] = np.minimum(upper[:, 0], functions.start_upper[:n])
        limits = [
            np.tile(side[:, np.newaxis], self._shapes[1][1])
            for side in (
                np.maximum(functions.start_lower[n:], functions.path_lower[n:]),
                np.minimum(functions.start_upper[n:], functions.path_upper[n:]),
            )
        ]
        limits[0][:, -1] = np.maximum(limits[0][:, -1], functions.end_lower[n:])
        limits[1][:, -1] = np.minimum(limits[1][:, -1], functions.end_upper[n:])
        low, high = problem.duration
        if (count := len(problem.phases)) > 1:  # their sum has the bounds
            low *= _SHORTEST / count
        self.lower, self.upper = (
            self.packed(side, limit, np.full(count, bound))
            for side, limit, bound in zip((lower, upper), limits, (low, high), strict=True)
        )

    def _set_rows(self, row_scale: FloatArray) -> None:
        functions, instants = self.functions, self._at[1]
        # The other constraints in their order: name, phase, and instants of a group's members.
        self.rows = [(row.name, row.phase, instants) for row in functions.path_rows]
        self.rows += [(row.name, row.phase, np.ones(1)) for row in functions.end_rows]
        sides = []
        for side in (1, 2):
            along = [np.full(len(instants), row[side]) for row in functions.path_rows]
            last = np.array([row[side] for row in functions.end_rows])
            sides.append(np.concatenate([np.zeros(self.equations), *along, last]))
        self.row_scale = np.concatenate([np.ones(self.equations), row_scale])
        self.row_lower, self.row_upper = (side / self.row_scale for side in sides)

    def packed(self, states: FloatArray, inputs: FloatArray, durations: FloatArray) -> FloatArray:
        """Return unknowns of the program, scaled, in their order."""
        parts = [
            (states / self.state_scale[:, np.newaxis]).T.ravel(),
            (inputs / self.input_scale[:, np.newaxis]).T.ravel(),
        ]
        if self.problem.free_durations:
            parts.append(durations / self.time_scale)
        return np.concatenate(parts)

    def guess(self, plan: Plan) -> FloatArray:
        """Return the unknowns for another plan, on another mesh perhaps."""
        nodes = self.collocation.mesh[: self.collocation.inputs]
        states, inputs = plan.states_at(self.collocation.points), plan.inputs_at(nodes)
        return np.clip(self.packed(states, inputs, plan.durations), self.lower, self.upper)

    def plan(self, unknowns: FloatArray) -> Plan:
        """Return what the unknowns of the program mean."""
        (n, points), (m, nodes) = self._shapes
        states = unknowns[: n * points].reshape(points, n).T * self.state_scale[:, np.newaxis]
        rest = unknowns[n * points : n * points + m * nodes].reshape(nodes, m).T
        free = self.problem.free_durations
        durations = self.time_scale * (unknowns[-len(self.time_scale) :] if free else 1.0)
        rates, cost = self._compute(unknowns)
        inputs = rest * self.input_scale[:, np.newaxis]
        return Plan(self.collocation, states, inputs, durations, np.array(rates), float(cost))

    def soft_names(self) -> list[tuple[str, int, float]]:
        """Return the name, phase and instant of each bound of states that a diagnosis may break."""
        names, points = self.functions.names, self.collocation.points.tolist()
        size = len(self.problem.states)
        return [(names[k], k // size, points[p]) for p, k in np.argwhere(self.soft.T)]


def _sizes(rows: list[Row]) -> FloatArray:
    """Return what bounded signals are divided by: their size, their largest bound, or one."""
    sizes = [
        row.size or max((abs(b) for b in (row.lower, row.upper) if np.isfinite(b)), default=1.0)
        for row in rows
    ]
    return np.array([size or 1.0 for size in sizes])


def nominal_scales(functions: NodeFunctions, plan: Plan) -> Scales:
    """Return the sizes of states and inputs, from bounds and a guess, and those of the durations.

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
        (functions.start_lower, functions.start_upper),
    ]
    for side in (side for pair in bounds for side in pair):
        known = np.maximum(known, np.where(np.isfinite(side), np.abs(side), 0.0))
    instants = np.linspace(0.0, 1.0, 5)
    count, size = len(problem.phases), len(problem.states)
    slopes = functions.slopes.map(5)(
        plan.states_at(instants),
        plan.inputs_at(instants),
        plan.times_at(problem.context.time, instants),
    )
    moves = np.abs(np.array(slopes)).reshape(n, 5, len(known)).mean(axis=1)
    moves *= np.repeat(plan.durations, size)[:, np.newaxis]
    moves[~np.isfinite(moves)] = 0.0
    groups = [
        [k + phase * size for k in part.tolist() if span.start <= k < span.stop]
        for part in (problem.layout.q_indices, problem.layout.v_indices)
        for span in problem.layout.x_slices
        for phase in range(count)
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
        for w, scale in found.items():
            known[w] = scale
    known[known == 0.0] = 1.0
    return known[:n], known[n:], plan.durations
