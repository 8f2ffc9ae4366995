"""The search for an optimal motion: solve, replay, refine the mesh, and say what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, SimulationError
from flexure.diagrams.concurrency.deferred_interrupt import DeferredInterrupt
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.design.optimal_motion.collocation import FINER, FIRST, Collocation
from flexure.solvers.design.optimal_motion.interior_point import Outcome, least_violation, minimize
from flexure.solvers.design.optimal_motion.motion_problem import MotionProblem
from flexure.solvers.design.optimal_motion.motion_replay import Player, states_of
from flexure.solvers.design.optimal_motion.node_functions import NodeFunctions, require_finite
from flexure.solvers.design.optimal_motion.transcription import (
    Plan,
    Scales,
    Transcription,
    nominal_scales,
)
from flexure.solvers.results.records.result import SimulationResult

_MOST_INTERVALS = 5000
_MOST_PIECES = 4  # into which one refinement divides an interval
_PARTS = np.array([0.1, 0.3, 0.45, 0.7, 0.9])  # of an interval, where its error is measured
_COARSE = 1e-4  # residual of an interval of the first mesh that is not divided
_SHARE = 0.5  # of the tolerance that a refinement aims at
_SLIGHT = 1e-6  # scaled violation that counts as none
_SMALL = 1e-6  # of its nominal size: a state that stays below hardly moves


@dataclass(frozen=True, eq=False)
class Found:
    """The end of a search."""

    plan: Plan  # the last solution, or the best point of a run that did not end with one
    replay: SimulationResult | None  # the replay of its inputs; None if there was none
    # Largest distance of a state from its plan, in units of its size; infinite without a replay.
    replay_error: float
    # iterations, refinements: iterations of the solver in all, and how often the mesh was refined.
    iterations: int
    refinements: int


class MotionSearch:
    """Solves a problem on finer and finer meshes, until its replay ends where it should.

    Arguments have the meaning that they have for `optimal_motion`; ``watch(k)`` is called in
    iteration ``k``, counted over all meshes.
    """

    def __init__(
        self,
        ca: Any,
        problem: MotionProblem,
        *,
        method: str,
        kind: str,
        tolerance: float,
        max_refinements: int,
        max_iterations: int,
        watch: Callable[[int], None],
    ) -> None:
        self._ca, self.problem = ca, problem
        self._method, self._kind = method, kind
        self._tolerance = tolerance
        self._max_refinements, self._max_iterations = max_refinements, max_iterations
        self._watch = watch
        self._iterations = 0
        self.interrupt = DeferredInterrupt()
        self.functions = NodeFunctions(ca, problem)
        self._player = Player(problem.context, problem.inputs, problem.attempt)
        self.found: Found | None = None

    def run(self, intervals: int, guess: Plan) -> Found:
        """Return the solution on a mesh that is fine enough; else, `found` has the best point."""
        scales = nominal_scales(self.functions, guess)
        self._refuse_jumps(scales)
        self._check_guess(guess)
        mesh, plan, near = self._first_mesh(intervals), guess, False
        collocation = Collocation(self._method, FIRST, self._kind, mesh, not self.problem.breaks)
        for refinement in range(self._max_refinements + 1):
            plan = self._solved(collocation, scales, plan, near, refinement)
            sizes = self._sizes(plan, scales[0])
            replay, error = self.replayed(plan, sizes)
            self.found = Found(plan, replay, error, self._iterations, refinement)
            if error <= self._tolerance or refinement == self._max_refinements:
                break
            mesh = self._refined(plan, sizes, error)
            if len(mesh) > _MOST_INTERVALS:
                break
            collocation, near = collocation.with_mesh(mesh, FINER), True
            largest = np.maximum(np.abs(plan.inputs).max(axis=1), _SMALL * scales[1])
            scales = sizes, largest, plan.durations
        assert self.found is not None
        return self.found

    def _first_mesh(self, intervals: int) -> FloatArray:
        uniform = np.linspace(0.0, 1.0, intervals + 1)
        breaks = np.array(self.problem.breaks)
        near = np.abs(uniform[:, np.newaxis] - breaks).min(axis=1, initial=1.0) < 0.25 / intervals
        near[[0, -1]] = False
        return np.union1d(uniform[~near], breaks)

    def _refuse_jumps(self, scales: Scales) -> None:
        """Look for jumps in the box of the bounds, and of nominal sizes where there are none."""
        functions, problem = self.functions, self.problem
        size = np.concatenate(scales[:2])
        sides = (functions.path_lower, functions.path_upper)
        lower, upper = np.where(np.isinf(sides), [-size, size], sides)
        n = len(scales[0])
        lower[n:] = np.maximum(lower[n:], functions.start_lower[n:])
        upper[n:] = np.minimum(upper[n:], functions.start_upper[n:])
        functions.refuse_jumps(np.minimum(lower, upper), upper, problem.context.time)

    def _check_guess(self, guess: Plan) -> None:
        """Refuse a guess along which equations are not finite."""
        instants = np.linspace(0.0, 1.0, 7)
        times = guess.times_at(self.problem.context.time, instants)
        found = self.functions.running.map(7)(
            guess.states_at(instants), guess.inputs_at(instants), times
        )
        require_finite(np.array(found[0]), self.functions.names, self.problem.attempt)

    def _solved(
        self, collocation: Collocation, scales: Scales, guess: Plan, near: bool, refinement: int
    ) -> Plan:
        """Return the solution on a mesh, or say why there is none."""
        size = 0.1 * abs(guess.cost) if near else None
        transcription = Transcription(self._ca, self.functions, collocation, scales, size)
        self._refuse_crossed(transcription)
        start = transcription.guess(guess)
        outcome = self._minimize(transcription, start, near)
        if not outcome.solved and near and not self.interrupt.interrupted:
            outcome = self._minimize(transcription, start, near=False)
        if not outcome.solved and not outcome.runs_away and not self.interrupt.interrupted:
            outcome = self._from_feasible_point(transcription, outcome)
        plan = transcription.plan(outcome.unknowns)
        if outcome.solved:
            return plan
        if self.interrupt.interrupted:
            error = np.inf
            replay = None
            if self.found is None or outcome.violation <= _SLIGHT:
                replay, error = self.replayed(plan, self._sizes(plan, scales[0]))
                self.found = Found(plan, replay, error, self._iterations, refinement)
            self.interrupt.deliver()
            raise KeyboardInterrupt
        self.found = Found(plan, None, np.inf, self._iterations, refinement)
        raise self._failure(transcription, outcome)

    def _options(self) -> dict[str, Any]:
        before = self._iterations

        def watch(k: int) -> None:
            self._iterations = before + k
            self._watch(self._iterations)

        limit = self._max_iterations
        return {"max_iterations": limit, "watch": watch, "interrupt": self.interrupt}

    def _minimize(self, made: Transcription, start: FloatArray, near: bool) -> Outcome:
        bounds = made.lower, made.upper, made.row_lower, made.row_upper
        return minimize(self._ca, made.program, bounds, start, near=near, **self._options())

    def _from_feasible_point(self, made: Transcription, outcome: Outcome) -> Outcome:
        """Begin again where all constraints are kept; refuse a problem without such a point."""
        bounds = made.lower, made.upper, made.row_lower, made.row_upper
        rows = np.arange(made.equations, len(made.row_lower))
        points = made.soft.shape[1]
        unknowns = np.flatnonzero(made.soft.T.ravel())
        if not rows.size + unknowns.size:
            return outcome
        point, violations = least_violation(
            self._ca, made.program, bounds, rows, unknowns, outcome.unknowns, **self._options()
        )
        if self.interrupt.interrupted or not point.solved:
            return outcome
        if float(np.max(np.abs(violations), initial=0.0)) < _SLIGHT:
            return self._minimize(made, point.unknowns, near=False)
        names = [(*where, at) for *where, instants in made.rows for at in instants.tolist()]
        names += made.soft_names()
        units = np.concatenate([made.row_scale[rows], np.tile(made.state_scale, points)[unknowns]])
        worst = int(np.argmax(np.abs(violations)))
        plan = made.plan(point.unknowns)
        self.found = Found(plan, None, np.inf, self._iterations, 0)
        (name, phase, at), missed = names[worst], abs(violations[worst]) * units[worst]
        side = "above" if violations[worst] > 0.0 else "below"
        time = float(plan.times_at(self.problem.context.time, np.array([at]))[phase, 0])
        others = len({names[k][0] for k in np.flatnonzero(np.abs(violations) > _SLIGHT)}) - 1
        also = f"; {others} other signals miss their bounds, too" if others else ""
        raise EvaluationError(
            self.problem.attempt,
            expected="a motion that keeps all bounds",
            found=f"none; one that breaks them least has '{name}' at t = {time:.4g} s "
            f"{missed:.3g} {side} its bound{also}",
            remedy="Allow more time, wider bounds or larger inputs, or begin from a guess "
            "that comes nearer",
        )

    def _refuse_crossed(self, made: Transcription) -> None:
        """Refuse bounds that exclude each other before anything is solved."""
        crossed = np.flatnonzero(made.lower > made.upper)
        if not crossed.size:
            return
        n, points = made.soft.shape
        k = int(crossed[0])
        behind, names = k - n * points, self.functions.names
        is_state = behind < 0
        name = names[k % n] if is_state else names[n + behind % (len(names) - n)]
        where = made.collocation.points[k // n] if is_state else 1.0
        place = {0.0: "the beginning", 1.0: "the end"}.get(float(where), "the path")
        raise EvaluationError(
            self.problem.attempt,
            expected=f"bounds of '{name}' that meet at {place}",
            found="bounds of start, end, path or inputs that exclude each other there",
            remedy="Widen one of them",
        )

    def _failure(self, made: Transcription, outcome: Outcome) -> EvaluationError:
        """Say what a run without solution suggests."""
        problem = self.problem
        unbounded = [
            name
            for name, low, high in zip(
                problem.input_names, problem.input_lower, problem.input_upper, strict=True
            )
            if np.isinf(low) or np.isinf(high)
        ]
        if outcome.runs_away:
            found = "a cost that falls without bound as unknowns grow"
            remedy = f"Bound {', '.join(map(repr, unbounded)) or 'states by path='}, or add a cost"
        elif outcome.status == "Invalid_Number_Detected":
            found = "NaN or infinity in the equations"
            remedy = "Bound states by path= away from where the equations are not defined"
        else:
            found = (
                f"'{outcome.status}' of IPOPT after {self._iterations} iterations, with scaled "
                f"constraints that miss by {outcome.violation:.2g}"
            )
            remedy = (
                "Begin with guess='simulated' or a former motion, use more intervals, raise "
                "max_iterations, or replace kinks such as stops and dry friction by smooth laws"
            )
        return EvaluationError(
            problem.attempt, expected="a solution of the optimization", found=found, remedy=remedy
        )

    def _sizes(self, plan: Plan, nominal: FloatArray) -> FloatArray:
        """Return the size of each state during a plan."""
        layout = self.problem.layout
        largest = np.abs(plan.states).max(axis=1).reshape(-1, layout.num_states)
        for position in layout.tallying:  # what projections add up is compared with its block
            span, tally = layout.x_slices[position], layout.leaves[position].tally
            added = slice(span.stop - tally.size, span.stop)  # type: ignore[union-attr]
            largest[:, added] = np.maximum(
                largest[:, added], largest[:, span].max(1)[:, np.newaxis]
            )
        largest = np.tile(largest.max(axis=0), len(largest))
        return np.where(largest > _SMALL * nominal, largest, nominal)

    def replayed(self, plan: Plan, sizes: FloatArray) -> tuple[SimulationResult | None, float]:
        """Return the replay of a plan, and its largest error in units of the sizes of states."""
        at, values = plan.node_times(self.problem.context.time), plan.along(plan.node_inputs)
        nodes, n = plan.along(plan.nodes), len(self.problem.states)
        rtol = min(1e-10, 1e-6 * self._tolerance)
        options = {"rtol": rtol, "atol": max(rtol * float(np.min(sizes)), 1e-16)}
        try:
            run = self._player.play(at, values, self._kind, nodes[:, 0], **options)
        except SimulationError as error:
            return getattr(error, "result", None), np.inf  # the run that the error ended
        if run.outcome != "completed":
            return run, np.inf
        distance = np.abs(states_of(run, at) - nodes) / sizes[:n, np.newaxis]
        inner = np.ones(len(at), dtype=bool)
        ends = np.arange(1, len(plan.durations)) * (plan.collocation.intervals + 1)
        inner[[*(ends - 1), *ends]] = False  # there, events of the replay come earlier or later
        return run, float(np.max(distance[:, inner]))

    def _refined(self, plan: Plan, sizes: FloatArray, error: float) -> FloatArray:
        """Return a mesh with intervals divided where the plan breaks the equations most."""
        collocation = plan.collocation
        mesh, lengths = collocation.mesh, collocation.lengths
        instants = (mesh[:-1, np.newaxis] + lengths[:, np.newaxis] * _PARTS).ravel()
        step = 1e-6 * np.repeat(lengths, len(_PARTS))
        ahead, behind = plan.states_at(instants + step), plan.states_at(instants - step)
        slopes = (ahead - behind) / (2.0 * step)
        times = plan.times_at(self.problem.context.time, instants)
        rates, _ = self.functions.running.map(len(instants))(
            plan.states_at(instants), plan.inputs_at(instants), times
        )
        spans = np.repeat(plan.durations, len(self.problem.states))[:, np.newaxis]
        wrong = np.abs(slopes - spans * np.array(rates)) / sizes[:, np.newaxis]
        residual = wrong.max(axis=0).reshape(len(lengths), -1).mean(axis=1) * lengths
        residual = np.maximum(residual, 1e-300)
        if collocation.count == FIRST:  # the next mesh has a higher order
            target = np.full(len(lengths), _COARSE)
        else:
            growth = error / residual.sum() if np.isfinite(error) else 1e6
            target = np.full(len(lengths), _SHARE * self._tolerance / (growth * len(lengths)))
        pieces = np.ceil((residual / target) ** (1.0 / collocation.order))
        pieces = np.clip(pieces, 1.0, _MOST_PIECES).astype(int)
        if collocation.count == FINER and np.all(pieces == 1):
            pieces[residual >= np.median(residual)] = 2
        ends = zip(mesh[:-1], mesh[1:], pieces, strict=True)
        return np.concatenate([*(np.linspace(a, b, k + 1)[:-1] for a, b, k in ends), [1.0]])
