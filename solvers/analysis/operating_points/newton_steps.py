"""Newton steps to an equilibrium, damped or by a homotopy, and how far from the start they end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import lstsq, solve_triangular
from scipy.linalg.lapack import dtpqrt

from flexure.diagrams.checks.errors import EvaluationError, warn
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Equations, Variable, write_variables
from flexure.solvers.analysis.forces_at_rest.static_coordinates import path_in_plant, trees_of
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.linearization import linearized

_STANDSTILL = 1e-15  # relative length of a step that changes nothing any more
_LEAST_GAIN = 1e-4  # part of the promised improvement with which a step is taken
_LEAST_DAMPING = 1e-8
_CRAWLING, _WATCHED = 0.9, 10  # part of the values that is left, and the steps after which
_LONGEST = 0.5  # step, in parts of states, that is not judged by the forces behind it,
_STRAY = 0.5  # part of it that others may correct,
_ROUGH = 1e-3  # length of the last one while something still holds, and of the last of all
_CLOSE = 1e-9  # since the next is its square,
_NOISE = 1e-6  # length below which those that do not shrink any more are rounding,
_NO_STRETCH = 1e-14  # part of the largest stretch that is none, and
_PIVOT = 1e-10  # part of the largest pivot below which steps come from singular values
_BLOCK = 24  # columns that are eliminated together
_LEAST_PART = 1e-4  # of what holds the start
_RELEASE = 5  # times as many steps for that
_ARRIVED = 1e-3  # length of the next step at an equilibrium
_LEAST_WEIGHT = 1e-3  # of an equation, as a part of that of the steepest one


@dataclass(frozen=True)
class _LinearModel:
    """The equations linearized at a point, ``values + matrix @ step``, each with its weight."""

    values: FloatArray
    matrix: FloatArray

    @cached_property
    def size(self) -> float:
        """Length of the vector of values."""
        return float(np.linalg.norm(self.values))

    @cached_property
    def _decomposition(self) -> Any:
        return np.linalg.svd(self.matrix, full_matrices=False)

    def step(self, damping: float) -> FloatArray:
        """Return the step that minimizes ``|values + matrix @ step|² + damping size |step|²``.

        The damping vanishes with the values. So the steps converge quadratically also where the
        equilibria form a continuum, and hardly move along it.
        """
        count = self.matrix.shape[1]
        damped = np.sqrt(damping * self.size) * np.eye(count + 1, order="F")
        damped[count, count] = 0.0
        rows = np.column_stack([self.matrix, -self.values])
        # of triangular rows above full ones
        R = dtpqrt(0, min(_BLOCK, count + 1), damped, rows, overwrite_a=1)[0][:count]
        pivots = np.abs(np.diagonal(R))
        if count and np.min(pivots) > _PIVOT * np.max(pivots):
            return np.asarray(solve_triangular(R[:, :-1], R[:, -1], check_finite=False))
        left, stretches, right = self._decomposition
        divisors = stretches**2 + damping * self.size
        factors = np.divide(stretches, divisors, out=np.zeros_like(divisors), where=divisors > 0.0)
        step: FloatArray = -(factors * (self.values @ left)) @ right
        return step

    def gain(self, step: FloatArray, found: FloatArray) -> float:
        """Return by how much the values shrink at a step, as a part of what the model promises."""
        promise = self.size**2 - float(np.sum((self.values + self.matrix @ step) ** 2))
        with np.errstate(over="ignore"):  # far away
            return (self.size**2 - float(np.sum(found**2))) / promise if promise > 0.0 else -1.0


@dataclass(frozen=True)
class NewtonSearch:
    """A search for a point at which what a point makes of equations becomes zero."""

    equations: Equations | SampleSteps
    unknown: npt.NDArray[np.bool_]  # which components of a point are to be found
    needed: npt.NDArray[np.bool_]  # which values are to become zero
    normal: Callable[[FloatArray], FloatArray]  # brings a point to its normal form
    max_iterations: int

    def damped(self, point: FloatArray) -> Iterator[tuple[FloatArray, int]]:
        """Take damped steps until nothing improves; yield the point and their number.

        Both are also yielded where the steps begin to crawl, before they go on.
        """
        values = self.equations.values(point)[self.needed]
        scale = np.maximum(np.abs(point[self.unknown]), 1.0)
        weights = np.zeros(len(values))
        latest: deque[FloatArray] = deque(maxlen=_WATCHED)
        damping = 1.0
        iterations = 0
        is_crawling = False
        while iterations < self.max_iterations and np.isfinite(values).all():
            matrix = self._matrix(point) * scale
            if not np.isfinite(matrix).all():
                break
            weights = np.maximum(weights, _weights(matrix))
            model = _LinearModel(values / weights, matrix / weights[:, np.newaxis])
            if len(latest) == _WATCHED and not is_crawling:
                is_crawling = model.size > _CRAWLING * float(np.linalg.norm(latest[0] / weights))
                if is_crawling:
                    yield point, iterations
            latest.append(values)
            gain = -1.0
            while gain < _LEAST_GAIN:
                step = model.step(damping)
                if not np.linalg.norm(step) > _STANDSTILL:
                    yield point, iterations
                    return
                trial = point.copy()
                trial[self.unknown] += scale * step
                trial = self.normal(trial)
                found = self._values_if_defined(trial)
                if np.isfinite(found).all():
                    gain = model.gain(step, found / weights)
                if gain < 0.25:
                    damping *= 4.0
            if gain > 0.75:
                damping = max(0.1 * damping, _LEAST_DAMPING)
            point, values = trial, found
            iterations += 1
        yield point, iterations

    def farthest(self, point: FloatArray) -> int | None:
        """Return the equation with the largest value if the next Newton step is long, else None."""
        values = np.where(self.needed, self.equations.values(point), 0.0)
        matrix = self._matrix(point) * np.maximum(np.abs(point[self.unknown]), 1.0)
        weights = _weights(matrix)
        rows = matrix / weights[:, np.newaxis]
        step = lstsq(rows, values[self.needed] / weights, _NO_STRETCH, lapack_driver="gelsy")[0]
        return int(np.argmax(np.abs(values))) if np.linalg.norm(step) > _ARRIVED else None

    def released(self, point: FloatArray) -> tuple[FloatArray, int]:
        """Balance the start, and release the balance gradually; return as `damped` does.

        What is stiff along and soft across, as a beam is, has larger forces after a step that turns
        it, and next to none after the one that follows. Steps that have to lower the forces crawl
        there. So these are judged by their lengths: none of them may correct the first one much.
        """
        scale = np.maximum(np.abs(point[self.unknown]), 1.0)
        held = self._values_if_defined(point)
        iterations, left, part = 0, 1.0, 1.0
        most = _RELEASE * self.max_iterations
        while left > 0.0 and part > _LEAST_PART and iterations < most:
            aim, trial, first, before = max(left - part, 0.0), point, 0.0, np.inf
            found = False
            while not found and iterations < most:
                values = self._values_if_defined(trial) - aim * held
                if not np.isfinite(values).all():
                    break
                matrix = self._matrix(trial) * scale
                if not np.isfinite(matrix).all():
                    break
                weights = _weights(matrix)
                rows = matrix / weights[:, np.newaxis]
                step = -lstsq(rows, values / weights, _NO_STRETCH, lapack_driver="gelsy")[0]
                length = float(np.linalg.norm(step))
                first = first or length
                if length > _LONGEST or (length > _STRAY * first and trial is not point):
                    break
                trial = trial.copy()
                trial[self.unknown] += scale * step
                trial = self.normal(trial)
                iterations += 1
                found = length <= (_CLOSE if aim == 0.0 else _ROUGH) or before <= length < _NOISE
                before = length
            if found:
                point, left, part = trial, aim, 2.0 * part
            else:
                part *= 0.25
        return point, iterations

    def _matrix(self, point: FloatArray) -> FloatArray:
        """Return the derivatives of the values that are needed by what is unknown."""
        return self.equations.jacobian(point)[np.ix_(self.needed, self.unknown)]

    def _values_if_defined(self, point: FloatArray) -> FloatArray:
        """Return the derivatives at a point, NaN where they are refused, as in gimbal lock."""
        try:
            return self.equations.values(point)[self.needed]
        except EvaluationError:
            return np.full(np.count_nonzero(self.needed), np.nan)


def _weights(matrix: FloatArray) -> FloatArray:
    """Return what to divide equations by, so that their units do not matter."""
    # An equation that hardly depends on anything is not blown up to the size of the others: rates
    # of the length of quaternions and powers of dampers vanish with the square of velocities.
    rows: FloatArray = np.max(np.abs(matrix), axis=1, initial=0.0)
    largest = np.max(rows, initial=0.0)
    return np.maximum(rows, _LEAST_WEIGHT * largest) if largest > 0.0 else np.ones_like(rows)


class SampleSteps:
    """The change of states and discrete values over a period, with the interface of `Equations`.

    It is that of the linear model with the derivatives at each point, which do not change along the
    way. So the derivatives by the point are exact where nothing moves, which is enough for Newton
    steps towards such a point. Evaluations change the context.
    """

    def __init__(
        self, context: Context, variables: Sequence[Variable], period: float, attempt: str
    ) -> None:
        self._context, self._variables, self._period = context, variables, period
        self._attempt = attempt
        self._model = self._linearized()
        self._at = self.point()
        self.names = self._model.state_names  # of states and discrete values
        self.how = self._model.how

    def _linearized(self) -> LinearModel:
        inputs = [variable.place.path for variable in self._variables]
        context, period = self._context, self._period
        system, attempt = context.system, self._attempt
        return linearized(
            system, context, inputs, [], attempt, period=period, as_gain=False, frozen=True
        )

    def point(self) -> FloatArray:
        """Return the present states, discrete values and variables, end to end."""
        store = self._context.store
        return np.concatenate([self._model.x0, *[v.read(store) for v in self._variables]])

    def values(self, point: FloatArray) -> FloatArray:
        """Return what a period adds at a point."""
        return self._model_at(point).xdot0

    def jacobian(self, point: FloatArray) -> FloatArray:
        """Return the derivatives of `values` by the point, for a point where nothing moves."""
        model = self._model_at(point)
        return np.hstack([model.A - np.eye(len(model.A)), model.B])

    def write(self, context: Context, point: FloatArray) -> None:
        """Set states and discrete values in a context."""
        n = context.store.layout.num_states
        context.continuous_state = point[:n]
        for name, number in zip(self.names[n:], point[n:], strict=False):
            place = find_place(context.system, name)
            place.write(context, np.full(place.shape or (), number))

    def _model_at(self, point: FloatArray) -> LinearModel:
        if not np.array_equal(point, self._at):
            self.write(self._context, point)
            write_variables(self._context.store, self._variables, point[len(self.names) :])
            self._model = self._linearized()
            self._at = point.copy()
        return self._model


FAR = 0.5 * np.pi  # rad, from which on an equilibrium is not near the start


class Turn(NamedTuple):
    """The turn of the body that turns farthest."""

    angle: float  # by how much, in rad, up to π
    body: str  # its path; empty where there is no body

    @property
    def is_far(self) -> bool:
        """Whether the angle is larger than `FAR`."""
        return self.angle > FAR


def farthest_turn(context: Context, first: FloatArray, last: FloatArray) -> Turn:
    """Return the farthest turn of a body between two states, with the other values of a context."""
    start, end, most = context.clone(), context.clone(), Turn(0.0, "")
    start.continuous_state, end.continuous_state = first, last
    for (before, tree), (after, _) in zip(trees_of(start), trees_of(end), strict=True):
        pairs = zip(tree.placements(before), tree.placements(after), strict=True)
        for body, (here, there) in zip(tree.topology.bodies, pairs, strict=True):
            cosine = 0.5 * (np.sum(here.R_WB * there.R_WB) - 1.0)
            angle = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
            if angle > most.angle:
                most = Turn(angle, path_in_plant(tree, body.name))
    return most


def warn_of_far(turn: Turn, label: str) -> None:
    """Warn of an equilibrium of a system to which a body turned far."""
    if turn.is_far:
        warn(
            f"The equilibrium of '{label}' is not near the start: '{turn.body}' turned by "
            f"{np.rad2deg(turn.angle):.0f}°. Start near the intended one, or raise the loads in "
            "steps, each from the equilibrium of the last one"
        )
