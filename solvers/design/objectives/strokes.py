"""The extreme value of a signal over a stroke, with its derivatives where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, path_of
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Equations, find_ports, find_variables
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations, StaticPoint
from flexure.solvers.analysis.statics.load_paths.load_path import load_path
from flexure.solvers.design.objectives.parametric_models import solve

_ITERATIONS = 12  # of Newton, to hold the output elsewhere
_LONGEST = 2.0  # times the step before: beyond that, they are given up
_CLOSE = 1e-8  # last step, whose error is about the square


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
        from flexure.solvers.design.objectives.rest_numbers import number_at_rest

        return number_at_rest(self, result.context)


class _Held(NamedTuple):
    """Where an output is held, the states there, the force that holds it, and how both moved."""

    states: FloatArray
    force: float
    at: float
    way: FloatArray


class Stroke:
    """The equations of a stroke, as functions of parameters; the root context is not changed.

    ``spread`` is that of `ParametricModel`.
    """

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
