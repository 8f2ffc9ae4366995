"""Numbers of systems at rest or over a stroke, and their derivatives by parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, path_of
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Equations, find_ports, find_variables
from flexure.solvers.analysis.forces_at_rest.static_coordinates import plants_in
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations, StaticPoint
from flexure.solvers.analysis.operating_points.equilibria import settled
from flexure.solvers.analysis.statics.load_paths.load_path import load_path
from flexure.solvers.design.objectives.measures import Measure, Piece, Seen
from flexure.solvers.design.objectives.parametric_models import ParametricModel, solve

_ITERATIONS = 12  # of Newton, to hold the output elsewhere
_LONGEST = 2.0  # times the step before: beyond that, they are given up
_CLOSE = 1e-8  # last step, whose error is about the square


@dataclass(frozen=True, eq=False)
class RestPoint:
    """The numbers at an equilibrium."""

    context: Context  # the equilibrium
    values: FloatArray  # the numbers of the measures, shape (k,)
    _slopes: list[Callable[[], FloatArray]]

    def slopes(self) -> FloatArray:
        """Return their derivatives by the parameters, a row for each; NaN where there are none."""
        return np.array([each() for each in self._slopes])


class RestNumbers:
    """The numbers of measures at the equilibria near a context, as functions of parameters."""

    def __init__(
        self,
        parameters: Iterable[Way],
        measures: Sequence[Measure | StrokeMeasure],
        attempt: str,
        spread: FloatArray | None = None,
    ) -> None:
        self._parameters, self._attempt = list(parameters), attempt
        self._measures = list(measures)
        self._spread = spread
        self._flow: Equations | None = None  # of all equilibria, traced and checked once
        self._model: ParametricModel | None = None
        self._strokes: dict[StrokeMeasure, Stroke] = {}

    @in_one_thread
    def at(self, context: Context) -> RestPoint:
        """Return the numbers at the equilibrium near a context, which is not changed."""
        start = context.clone()
        for plant in plants_in(start.system):
            if plant.tree.constraints:
                plant.assemble(start)
        of_models = [each for each in self._measures if isinstance(each, Measure)]
        if of_models and self._model is None:
            requests = [each.request(start, self._attempt) for each in of_models]
            ways, attempt = self._parameters, self._attempt
            self._model = ParametricModel(
                start, ways, requests, attempt, follows=True, spread=self._spread
            )
        model: Any = self._model
        if self._flow is None:
            self._flow = Equations(start.clone(), shares=True, known=model and model.traced)
        rest = settled(start.system, start, self._attempt, flow=self._flow).context
        point = model and model.at(rest)
        found: list[tuple[float, Callable[[], FloatArray]]] = []
        for measure in self._measures:
            if isinstance(measure, StrokeMeasure):
                if measure not in self._strokes:
                    given = self._parameters, self._attempt, self._spread
                    self._strokes[measure] = Stroke(measure, rest, *given)
                found.append(self._strokes[measure].at(rest))
                continue
            number = of_models.index(measure)
            seen = Seen(model.realization(point, number), model, point)
            piece = measure.pieces(seen)[0]
            found.append((piece.value, partial(slopes_of, seen, piece, number)))
        return RestPoint(rest, np.array([value for value, _ in found]), [by for _, by in found])


def slopes_of(seen: Seen, piece: Piece, number: int) -> FloatArray:
    """Return the derivatives of a piece by the parameters of the equations behind it."""
    if piece.weights is None:
        return np.full(seen.equations.num_parameters, np.nan)
    by = piece.weights, piece.by_errors, piece.by_values
    return np.asarray(seen.equations.slopes(seen.point, seen.model, number, *by))


def number_at_rest(measure: Measure | StrokeMeasure, context: Context) -> float:
    """Return the number of one measure at the equilibrium near a context."""
    attempt = f"Cannot measure '{context.system.label}' at rest"
    return float(RestNumbers((), [measure], attempt).at(context).values[0])


@dataclass(frozen=True, eq=False)
class StrokeMeasure:
    """The largest or smallest value of a signal while an output moves along a stroke."""

    signal: Way  # what is measured: an output, or the output that moves for the force that holds it
    output: Way  # what moves
    stroke: tuple[float, float]  # where it begins, and where it ends
    # Which value counts: ``"largest"``, ``"smallest"``, or ``"peak"``, the largest magnitude.
    worst: str
    points: int  # number of equilibria

    def __call__(self, result: Any) -> float:
        """Return the number from the equilibrium near the end of a run."""
        return number_at_rest(self, result.context)


class _Held(NamedTuple):
    """Where an output is held, the states there, the force that holds it, and how both moved."""

    states: FloatArray
    force: float
    at: float
    way: FloatArray


class Stroke:
    """The equations of a stroke as functions of parameters, or of coordinates by a ``spread``."""

    def __init__(
        self,
        measure: StrokeMeasure,
        context: Context,
        parameters: Sequence[Way],
        attempt: str,
        spread: FloatArray | None = None,
    ) -> None:
        self._measure, self._spread, context = measure, spread, context.clone()
        self._variables = find_variables(context, parameters, attempt)
        (held,) = find_ports(context.system, measure.output, "a stroke")
        (self._place,) = find_ports(context.system, measure.signal, "a signal over a stroke")
        if held.components.size != 1 or self._place.components.size != 1:
            raise EvaluationError(
                attempt,
                expected="a signal and an output with one component each",
                found=f"{self._place.components.size} and {held.components.size}",
                remedy="Name a component, as in 'plant.q[0]'",
            )
        self._static = StaticEquations(context, self._variables, [held], attempt=attempt)
        self._is_force = path_of(measure.signal) == path_of(measure.output)

    @cached_property
    def _signal(self) -> Equations:
        """The signal as a function of states and variables."""
        return Equations(self._static.context.clone(), self._variables, [self._place], rates=False)

    def at(self, context: Context) -> tuple[float, Callable[[], FloatArray]]:
        """Return the number, from the equilibrium of a context, and its derivatives."""
        static, measure, variables = self._static, self._measure, self._variables
        static.set_variables(np.concatenate([[], *(v.read(context.store) for v in variables)]))
        static.move_to(context.continuous_state)
        rest, seen = static.states, []
        start = float(static.strokes[0])
        along = np.linspace(*measure.stroke, measure.points)
        for side in (along[along < start][::-1], along[along >= start]):
            here = _Held(rest, 0.0, start, np.zeros(len(rest) + 1))
            for target in side.tolist():
                here = self._moved(here, target)
                value = here.force
                if not self._is_force:
                    value = float(np.ravel(self._place.read(static.context))[0])
                seen.append((value, here))
        values = np.array([each[0] for each in seen])
        sizes = {"largest": values, "smallest": -values, "peak": np.abs(values)}[measure.worst]
        value, where = seen[int(np.argmax(sizes))]
        sign = -1.0 if measure.worst == "peak" and value < 0.0 else 1.0
        return sign * value, partial(self._slopes, static.variables, where, sign)

    def _moved(self, here: _Held, target: float, halvings: int = 3) -> _Held:
        """Move to where the output is held at a target: by Newton steps, else along the path."""
        static, output = self._static, self._measure.output
        if (there := _newton(static, here, target)) is not None:
            return there
        if halvings:
            middle = self._moved(here, 0.5 * (here.at + target), halvings - 1)
            return self._moved(middle, target, halvings - 1)
        start = static.context.clone()
        start.continuous_state = here.states
        found = load_path(start.system, {output: target}, context=start)
        static.move_to(found.context(-1).continuous_state)
        force = float(found.required[path_of(output)][-1])
        return _Held(static.states, force, target, np.zeros(len(here.way)))

    def _slopes(self, numbers: FloatArray, where: _Held, sign: float) -> FloatArray:
        """Return the derivatives where the signal is worst, by the parameters or coordinates."""
        static = self._static
        static.set_variables(numbers)
        static.move_to(where.states)
        point, x = static.point(np.array([where.force])), static.states
        n = len(point.forces)
        right = np.vstack([point.loads, -point.stroke_slopes, -point.error_slopes])
        moved = solve(_held_equations(point), right)
        slopes = moved[n]
        if not self._is_force:
            row = self._signal.jacobian(np.concatenate([x, numbers]))
            by_unknowns = static.coordinates.along(row[:, : len(x)], x)
            slopes = (by_unknowns @ moved[:n] + row[:, len(x) :])[0]
        return np.asarray(sign * (slopes if self._spread is None else slopes @ self._spread))


def _newton(static: StaticEquations, here: _Held, target: float) -> _Held | None:
    """Return where the output is held at a target; None where Newton steps do not end there."""
    ahead = here.way * (target - here.at)  # in proportion to the last move
    static.move_to(here.states + ahead[:-1])
    if target == here.at:
        return here
    force, before = here.force + float(ahead[-1]), np.inf
    for _ in range(_ITERATIONS):
        point = static.point(np.array([force]))
        left = np.concatenate([point.forces, [target - point.strokes[0]], -point.errors])
        matrix, n = _held_equations(point), len(point.forces)
        if not (np.isfinite(matrix).all() and np.isfinite(left).all()):
            return None
        step = solve(matrix, left)
        length = float(np.abs(step[:n]).max())
        if length > _LONGEST * before:
            return None
        before = length
        force += float(step[n])
        static.move_to(static.coordinates.moved(static.states, step[:n]))
        if length < _CLOSE:
            way = np.append(static.states - here.states, force - here.force)
            return _Held(static.states, force, target, way / ((target - here.at) or np.inf))
    return None


def _held_equations(point: StaticPoint) -> FloatArray:
    """Return the derivatives of the equations of a held stroke by all unknowns.

    With displacements θ, the force μ on the stroke g and multipliers κ of constraints φ they are ::

        K δθ - gᵀ_θ δμ - φᵀ_θ δκ,    g_θ δθ,    φ_θ δθ
    """
    n, c = len(point.forces), 1 + len(point.errors)
    matrix = np.zeros((n + c, n + c))
    matrix[:n, :n] = point.stiffness
    matrix[:n, n:] = -np.vstack([point.directions, point.pushes]).T
    matrix[n:, :n] = np.vstack([point.directions, point.normals])
    return matrix
