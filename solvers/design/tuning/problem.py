"""Goals over several contexts as one minimax problem, and the search that solves it.

Each goal in each context gives *excesses*, which are at most 0 where it is met: with the bound b,
``(value - b) / |b|`` or the negative of that. Metrics without a bound are divided by what they are
at first. The search levels the highest of them (epigraph form): it minimizes t under ``excess ≤ t``
with sequential quadratic programming and exact derivatives. Each goal has several of its peaks in
the problem, so that two peaks of one height are no kink.

Derivatives of exponentials and of updates of sampled models are exact, by the trace. Where their
matrices change with time or along the run of a period, they are central differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import find_ports, find_variables
from flexure.solvers.analysis.equations.tangents import gains
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs
from flexure.solvers.analysis.linear_models.linearization import linearized
from flexure.solvers.analysis.sampled.sampling import SampledEquations
from flexure.solvers.design.objectives.measures import Measure, PoleMeasure, Seen, is_stable
from flexure.solvers.design.objectives.parametric_models import (
    ParametricModel,
    Realization,
    Request,
)
from flexure.solvers.design.objectives.rest_numbers import slopes_of
from flexure.solvers.design.optimization.search_space import SearchSpace

_STEP = float(np.finfo(float).eps ** (1 / 3))
_SMALLEST = 1e-3


@dataclass(frozen=True, eq=False)
class SampledPoint:
    """A context, and the derivatives of models there, as far as they were asked for."""

    context: Context
    made: dict[int, FloatArray]


class SampledModel:
    """The linear models of a root context from sample to sample, as functions of parameters."""

    def __init__(
        self,
        context: Context,
        parameters: Iterable[Way],
        requests: Sequence[Request],
        attempt: str,
        *,
        period: float,
    ) -> None:
        self._variables = find_variables(context, list(parameters), attempt)
        self.num_parameters = sum(len(variable.keys) for variable in self._variables)
        self._requests, self._attempt, self._period = requests, attempt, period
        self.is_exact = True  # whether all derivatives so far were exact

    def at(self, context: Context) -> SampledPoint:
        """Return a point at the values of a context."""
        return SampledPoint(context.clone(), {})

    def realization(self, point: SampledPoint, number: int) -> Realization:
        """Return the linear model of a request at a point."""
        context, request = point.context, self._requests[number]
        model = linearized(
            context.system,
            context,
            list(request.inputs),
            cast("list[Way]", list(request.outputs)),
            self._attempt,
            openings=list(request.openings),
            period=self._period,
        )
        matrices = model.A, model.B, model.C, model.D
        return Realization(*matrices, model.tangent, model.y0, self._period)

    def slopes(
        self,
        point: SampledPoint,
        realization: Realization,
        number: int,
        weights: FloatArray,
        *_: object,
    ) -> FloatArray:
        """Return the derivatives by the parameters, as `ParametricModel.slopes` does."""
        if number not in point.made:
            exact = self._exact_changes(point.context, number)
            self.is_exact = self.is_exact and exact is not None
            point.made[number] = self._differences(point, number) if exact is None else exact
        return np.asarray(np.tensordot(point.made[number], weights, 2))

    def _exact_changes(self, context: Context, number: int) -> FloatArray | None:
        """Return the derivatives of a model by the parameters, if they are known."""
        request = self._requests[number]
        entries = LinearInputs(context, request.inputs, request.openings, self._attempt)
        outputs = cast("list[Way]", list(request.outputs))
        places = find_ports(context.system, outputs, "an output")
        as_gain = any(gains(entries.context))
        sampled = SampledEquations(entries, places, self._period, self._attempt, as_gain=as_gain)
        return sampled.slopes_by(self._variables)

    def _differences(self, point: SampledPoint, number: int) -> FloatArray:
        """Return central differences of a model by the parameters."""
        changes = []
        for variable in self._variables:
            numbers = variable.read(point.context.store)
            for k in range(len(numbers)):
                step = np.zeros(len(numbers))
                step[k] = _STEP * max(abs(numbers[k]), _SMALLEST)
                ends = []
                for sign in (1.0, -1.0):
                    beside = point.context.clone()
                    variable.write(beside.store, numbers + sign * step)
                    found = self.realization(SampledPoint(beside, {}), number)
                    ends.append(np.block([[found.A, found.B], [found.C, found.D]]))
                changes.append((ends[0] - ends[1]) / (2.0 * step[k]))
        return np.array(changes)


_ROWS = 4  # pieces of a goal in a context
BEYOND = 1e3  # excess where there is no number
_ROUNDS = 40  # of quadratic programs
_ENOUGH = 1e-7  # of t
_STEPS = 30  # of linear programs
_REACH, _FARTHEST, _SHORTEST = 0.1, 0.3, 3e-4  # of the box: steps of linear programs
_RESERVE = 0.02  # of bounds: once all are met, less of a gain ends a search
_PENALTY = 1e3  # for what is lost of an earlier aim
_STABLE = 1e-3  # decay rate beside the fastest that was seen, that a search wants of stable loops
_KEPT = 1e-7  # by which bounds are kept rather than broken
_STILL = 1e-6  # rad/s: slower poles are those of integrators that nothing feeds back


@dataclass(frozen=True, eq=False)
class Goal:
    """A measure with a bound, or one that is to be as small as possible."""

    label: str
    measure: Measure
    bound: float  # NaN if it has none
    sign: float  # 1 for an upper bound and for what is to be small, -1 for a lower bound

    @property
    def is_free(self) -> bool:
        """Whether it has no bound."""
        return math.isnan(self.bound)

    def excess(self, value: float, scale: float) -> float:
        """Return by how much of its scale a value is beyond the bound."""
        return self.sign * (value - (0.0 if self.is_free else self.bound)) / scale


@dataclass(frozen=True, eq=False)
class Level:
    """The goals at one point."""

    values: FloatArray  # (goals, contexts); infinite or NaN where loops are unstable
    excesses: FloatArray  # of their pieces, (goals, contexts, _ROWS)
    slopes: FloatArray  # derivatives of these by the coordinates, (goals, contexts, _ROWS, n)
    decay: FloatArray  # rates of the least stable poles, (contexts, _ROWS)
    decay_slopes: FloatArray  # derivatives of these, (contexts, _ROWS, n)
    stable: npt.NDArray[np.bool_]  # whether loops are, (contexts,)


class Problem:
    """The goals as functions of the coordinates of a search, at several operating points."""

    def __init__(
        self,
        contexts: Sequence[Context],
        space: SearchSpace,
        goals: Sequence[Goal],
        period: float | None,
        attempt: str,
    ) -> None:
        self.contexts, self.space, self.goals = list(contexts), space, list(goals)
        self._attempt = attempt
        self._measures = [_without_verdict(goal.measure) for goal in goals]
        poles = PoleMeasure("decay_rate", 0, _STILL)
        self._all = [*self._measures, poles]
        requests = [each.request(contexts[0], attempt) for each in self._all]
        self._models: list[ParametricModel | SampledModel] = [
            ParametricModel(context, space.paths, requests, attempt, follows=False)
            if period is None
            else SampledModel(context, space.paths, requests, attempt, period=period)
            for context in contexts
        ]
        self.scales = np.array([abs(goal.bound) or 1.0 for goal in goals])
        # What was found at points, by their bytes.
        self.levels: dict[bytes, tuple[FloatArray, Level]] = {}
        self.failure: FlexureError | None = None

    def __call__(self, point: FloatArray) -> Level:
        """Return the goals at a point."""
        point = np.clip(point, 0.0, 1.0) + 0.0
        key = point.tobytes()
        if key not in self.levels:
            self.levels[key] = point, self._level(point)
        return self.levels[key][1]

    def _level(self, point: FloatArray) -> Level:
        shape = len(self.goals), len(self.contexts), _ROWS
        excesses = np.full(shape, BEYOND)
        slopes = np.zeros((*shape, len(self.space)))
        values = np.full(shape[:2], np.nan)
        decay = np.full(shape[1:], -BEYOND)
        decay_slopes = np.zeros((*shape[1:], len(self.space)))
        stable = np.zeros(shape[1], dtype=bool)
        by_coordinates = self.space.spread * self.space.slopes(point)
        for c, (context, model) in enumerate(zip(self.contexts, self._models, strict=True)):
            here = context.clone()
            try:
                self.space.write(here, point)
                place: Any = model.at(here)
                for g, measure in enumerate(self._all):
                    seen = Seen(model.realization(place, g), model, place)
                    pieces = measure.pieces(seen)[:_ROWS]
                    if g == len(self.goals):
                        stable[c] = is_stable(seen.model)
                    else:
                        verdict = measure is not self.goals[g].measure and not is_stable(seen.model)
                        first = pieces[0].value
                        values[g, c] = (
                            (math.inf if measure.is_largest else 0.0) if verdict else first
                        )
                    for k, piece in enumerate(pieces):
                        if g == len(self.goals) and piece.value == math.inf:
                            decay[c] = BEYOND
                        elif math.isfinite(piece.value):
                            by = np.nan_to_num(slopes_of(seen, piece, g)) @ by_coordinates
                            if g == len(self.goals):
                                decay[c, k:], decay_slopes[c, k:] = piece.value, by
                            else:
                                goal, scale = self.goals[g], self.scales[g]
                                excesses[g, c, k:] = goal.excess(piece.value, scale)
                                slopes[g, c, k:] = goal.sign * by / scale
            except FlexureError as error:
                self.failure = self.failure or error
        return Level(values, excesses, slopes, decay, decay_slopes, stable)

    @property
    def is_exact(self) -> bool:
        """Whether no derivative was one of differences."""
        return all(not isinstance(m, SampledModel) or m.is_exact for m in self._models)

    # The search ------------------------------------------------------------------------------

    def worst(self, level: Level, *, free: bool) -> float:
        """Return the highest excess of goals with a bound, or of those without."""
        chosen = [k for k, goal in enumerate(self.goals) if goal.is_free == free]
        found = level.excesses[chosen].max(initial=-np.inf)
        return float(found)

    def rank(self, level: Level) -> tuple[float, float, float]:
        """Return what is smaller for better points: instability, broken bounds, what is left."""
        unstable = np.sum(~level.stable) - min(level.decay.min(), 0.0) * (~level.stable).any()
        bounded = self.worst(level, free=False)
        rest = self.worst(level, free=True)
        if math.isinf(rest):
            return float(unstable), bounded, bounded
        return float(unstable), max(bounded, 0.0), rest

    def best(self) -> tuple[FloatArray, Level]:
        """Return the best point, and the goals there."""
        return min(self.levels.values(), key=lambda each: self.rank(each[1]))

    def descend(self, start: FloatArray) -> bool:
        """Search for stability, then bounds, then what is free; return whether nothing is left."""
        has_free = any(goal.is_free for goal in self.goals)
        has_bounds = not all(goal.is_free for goal in self.goals)
        if not self(start).stable.all():
            start = self._leveled(start, "stability")
        if has_bounds:
            start = self._leveled(start, "bounds")
        if has_free:
            self._leveled(start, "free")
        return not has_free and self.rank(self.best()[1]) <= (0.0, 0.0, 0.0)

    def _leveled(self, start: FloatArray, aim: str) -> FloatArray:
        """Minimize the highest excess from a point; return where it is lowest.

        Linear programs within a trust region go far with few looks. Where they end, quadratic
        programs take the curvature into account.
        """
        point, reach = start, _REACH
        for _ in range(_STEPS):
            level = self(point)
            step, promised = self._linear_step(point, level, aim, reach)
            if aim == "stability" and level.stable.all():
                return point
            if promised < _ENOUGH or reach < _SHORTEST:
                break
            there = np.clip(point + step, 0.0, 1.0)
            gained = self._merit(level, aim) - self._merit(self(there), aim)
            if gained > 0.75 * promised:
                reach = min(2.0 * reach, _FARTHEST)
            elif gained < 0.25 * promised:
                reach *= 0.25
            if gained > 1e-4 * promised:
                point = there
            if aim == "bounds" and gained < _RESERVE and self._merit(self(point), aim) < 0.0:
                break
        if aim == "free" or self._merit(self(point), aim) > 0.0:
            self._quadratic_steps(point, aim)
        return min(self.levels.values(), key=lambda each: self._merit(each[1], aim))[0]

    def _merit(self, level: Level, aim: str) -> float:
        """Return what an aim makes small: the highest excess, and what is lost of earlier aims."""
        return float(self._aim(level, aim)[0].max()) + _PENALTY * self._broken(level, aim)

    def _linear_step(
        self, point: FloatArray, level: Level, aim: str, reach: float
    ) -> tuple[FloatArray, float]:
        """Return the best step of a linear program, and the gain that it promises."""
        from scipy.optimize import linprog

        values, _ = self._aim(level, aim)
        t = float(values.max())
        room, by = self._room(np.append(point, t), aim)
        limits = np.maximum(room, 0.0)
        limits[: len(values)] = t - values
        n = len(point)
        bounds = [(max(-reach, -x), min(reach, 1.0 - x)) for x in point]
        found = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=-np.hstack([by[:, :n], by[:, n:]]),
            b_ub=limits,
            bounds=[*bounds, (None, 0.0)],
            method="highs",
        )
        if found.x is None:
            return np.zeros(n), 0.0
        return np.asarray(found.x[:n]), -float(found.x[n])

    def _quadratic_steps(self, start: FloatArray, aim: str) -> None:
        """Minimize t under all excesses by sequential quadratic programming."""
        from scipy.optimize import minimize

        t = float(self._aim(self(start), aim)[0].max())
        search: Any = minimize
        search(
            lambda z: z[-1],
            np.append(start, t),
            jac=lambda z: np.eye(len(z))[-1],
            bounds=[(0.0, 1.0)] * len(start) + [(None, None)],
            constraints={
                "type": "ineq",
                "fun": lambda z: self._room(z, aim)[0],
                "jac": lambda z: self._room(z, aim)[1],
            },
            method="SLSQP",
            options={"maxiter": _ROUNDS, "ftol": _ENOUGH},
        )

    def _broken(self, level: Level, aim: str) -> float:
        """Return by how much what is reached before an aim is lost."""
        if aim == "stability":
            return 0.0
        lost = float(np.sum(~level.stable))
        return lost if aim == "bounds" else lost + max(self.worst(level, free=False) - _KEPT, 0.0)

    def _aim(self, level: Level, aim: str) -> tuple[FloatArray, FloatArray]:
        """Return what an aim levels, and its derivatives."""
        n = len(self.space)
        if aim == "stability":
            size = max(1.0, _largest(level.decay))
            return (-level.decay / size).ravel(), (-level.decay_slopes / size).reshape(-1, n)
        chosen = [k for k, goal in enumerate(self.goals) if goal.is_free == (aim == "free")]
        return level.excesses[chosen].ravel(), level.slopes[chosen].reshape(-1, n)

    def _room(self, z: FloatArray, aim: str) -> tuple[FloatArray, FloatArray]:
        """Return t less all that is leveled, and what is left of what has to be kept."""
        level = self(z[:-1])
        values, slopes = self._aim(level, aim)
        rows, by = [z[-1] - values], [np.hstack([-slopes, np.ones((len(slopes), 1))])]
        if aim != "stability":
            size = max(1e-9, _largest(level.decay))
            decay = level.decay.ravel() / size - _STABLE * 1e-3
            slope = level.decay_slopes.reshape(-1, len(self.space)) / size
            rows.append(decay)
            by.append(np.hstack([slope, np.zeros((len(slope), 1))]))
        if aim == "free":
            kept = [k for k, goal in enumerate(self.goals) if not goal.is_free]
            bounded = level.slopes[kept].reshape(-1, len(self.space))
            rows.append(-level.excesses[kept].ravel() - _KEPT)
            by.append(np.hstack([-bounded, np.zeros((len(bounded), 1))]))
        return np.concatenate(rows), np.vstack(by)


def _largest(decay: FloatArray) -> float:
    """Return the largest size of the decay rates that are numbers."""
    return float(np.abs(decay[np.abs(decay) < BEYOND]).max(initial=0.0))


def _without_verdict(measure: Any) -> Any:
    """Return a measure that has numbers of unstable models as well, if there are some."""
    known = getattr(measure, "needs_stability", None)
    return measure if known is None else replace(measure, needs_stability=False)
