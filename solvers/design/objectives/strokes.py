"""The extreme value of a signal over a stroke, with its derivatives where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, Way, path_of
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import (
    Equations,
    Variable,
    find_ports,
    find_variables,
)
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations, StaticPoint
from flexure.solvers.analysis.statics.load_paths.load_path import load_path
from flexure.solvers.design.objectives.parametric_models import solve

_ITERATIONS = 12  # of Newton, to hold the output elsewhere
_LONGEST = 2.0  # times the step before: beyond that, they are given up
_CLOSE = 1e-8  # last step, whose error is about the square
_WORST: dict[str, Callable[[FloatArray], FloatArray]] = {
    "largest": lambda y: y,
    "smallest": lambda y: -y,
    "peak": np.abs,
}


@dataclass(frozen=True, eq=False)
class StrokeMeasure:
    """The largest or smallest value of a signal while an output moves along a stroke."""

    signal: Way  # what is measured: an output, or the output that moves for the force that holds it
    output: Way  # what moves
    stroke: tuple[float, float]  # where it begins, and where it ends
    # Which value counts: ``"largest"``, ``"smallest"``, or ``"peak"``, the largest magnitude.
    worst: str
    points: int  # number of equilibria

    unit = "{}"

    def equations(self, context: Context, parameters: Sequence[Way], attempt: str) -> Stroke:
        """Return the equations of the stroke, as functions of parameters."""
        variables = find_variables(context := context.clone(), parameters, attempt)
        (held,) = find_ports(context.system, self.output, "a stroke")
        (place,) = find_ports(context.system, self.signal, "a signal over a stroke")
        if held.components.size != 1 or place.components.size != 1:
            raise EvaluationError(
                attempt,
                expected="a signal and an output with one component each",
                found=f"{place.components.size} and {held.components.size}",
                remedy="Name a component, as in 'plant.q[0]'",
            )
        static = StaticEquations(context, variables, [held], attempt=attempt)
        is_force = path_of(self.signal) == path_of(self.output)
        return Stroke(static, variables, None if is_force else place, attempt)

    def look(self, stroke: Stroke, context: Context) -> tuple[float, _Worst]:
        """Return the number, from the equilibrium of a context, and where it is."""
        static, place, attempt = stroke.static, stroke.place, stroke.attempt
        numbers = [np.zeros(0), *(each.read(context.store) for each in stroke.variables)]
        static.set_variables(np.concatenate(numbers))
        static.move_to(context.continuous_state)
        rest, seen = static.states, []
        start = float(static.strokes[0])
        along = np.linspace(*self.stroke, self.points)
        for side in (along[along < start][::-1], along[along >= start]):
            here = _Held(rest, 0.0, start, np.zeros(len(rest) + 1))
            for target in side.tolist():
                here = self._moved(static, here, target, attempt)
                value = here.force
                if place is not None:
                    value = float(np.ravel(place.read(static.context))[0])
                seen.append((value, here))
        values = np.array([each[0] for each in seen])
        value, where = seen[int(np.argmax(_WORST[self.worst](values)))]
        sign = -1.0 if self.worst == "peak" and value < 0.0 else 1.0
        return sign * value, _Worst(stroke, static.variables, where, sign)

    def _moved(
        self, static: StaticEquations, here: _Held, target: float, attempt: str, halvings: int = 3
    ) -> _Held:
        """Move to where the output is held at a target: by Newton steps, else along the path."""
        there = _newton(static, here, target)
        if there is not None:
            return there
        if halvings:
            middle = self._moved(static, here, 0.5 * (here.at + target), attempt, halvings - 1)
            return self._moved(static, middle, target, attempt, halvings - 1)
        start = static.context.clone()
        start.continuous_state = here.states
        found = load_path(start.system, {self.output: target}, context=start)
        static.move_to(found.context(-1).continuous_state)
        force = float(found.required[path_of(self.output)][-1])
        return _Held(static.states, force, target, np.zeros(len(here.way)))

    def __call__(self, result: Any) -> float:
        """Return the number from the equilibrium near the end of a run."""
        from flexure.solvers.design.objectives.rest_numbers import number_at_rest

        return number_at_rest(self, result.context)


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


@dataclass(frozen=True, eq=False)
class _Held:
    """Where an output is held, the states there, the force that holds it, and how both moved."""

    states: FloatArray
    force: float
    at: float
    way: FloatArray


@dataclass(frozen=True, eq=False)
class Stroke:
    """The equations of a stroke, and the signal; None for the force that holds the stroke."""

    static: StaticEquations
    variables: Sequence[Variable]
    place: Place | None
    attempt: str

    @cached_property
    def signal(self) -> Equations:
        """The signal as a function of states and variables."""
        context = self.static.context.clone()
        assert self.place is not None
        return Equations(context, self.variables, [self.place], rates=False)


@dataclass(frozen=True, eq=False)
class _Worst:
    """Where the signal is worst, the numbers of the parameters, and the force that holds it."""

    stroke: Stroke
    numbers: FloatArray
    where: _Held
    sign: float

    def slopes(self) -> FloatArray:
        """Return the derivatives of the number by the parameters."""
        static, place = self.stroke.static, self.stroke.place
        static.set_variables(self.numbers)
        static.move_to(self.where.states)
        point = static.point(np.array([self.where.force]))
        n = len(point.forces)
        right = np.vstack([point.loads, -point.stroke_slopes, -point.error_slopes])
        moved = solve(_held_equations(point), right)
        if place is None:
            return np.asarray(self.sign * moved[n])
        x = static.states
        row = self.stroke.signal.jacobian(np.concatenate([x, self.numbers]))
        states = len(x)
        by_unknowns = static.coordinates.along(row[:, :states], x)
        return np.asarray(self.sign * (by_unknowns @ moved[:n] + row[:, states:])[0])


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
