"""A load path: what varies along it, its legs, why it ends, and which motions grow beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody import MultibodyTree, Plant
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.plants.energy_ledger import EnergyTotals
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import EvaluationError, UnknownNameError, ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, Way, find_place, path_of
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.values.arrays import FloatArray, as_numbers, check_bounds
from flexure.solvers.analysis.equations.equations import (
    LARGEST,
    Equations,
    Variable,
    can_vary,
    carries_vector,
    find_variables,
)
from flexure.solvers.analysis.forces_at_rest.curve_points import CurvePoint, Leg, LostError
from flexure.solvers.analysis.forces_at_rest.equilibrium_curve import EquilibriumCurve
from flexure.solvers.analysis.forces_at_rest.path_following import (
    Stop,
    TurnedAwayError,
    Walk,
    released,
)
from flexure.solvers.analysis.forces_at_rest.static_coordinates import (
    allowed_motions,
    size_of,
    trees_of,
    weight_of,
)
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from flexure.solvers.analysis.statics.nearby_equilibrium import not_closed

_MOVES = 0.05  # part of the largest amplitude that is mentioned
_STANDS = 1e-9  # part of a step that the load changes, where nothing may resist it
_STRAIGHT = 1e-9  # part of the way by which stations may be off one line
#: Asymmetry of a stiffness from which on forces may have no potential.
NO_POTENTIAL = 1e-6
_GROWS = 1e-6  # negative damping ratio of a motion that grows
_ROUNDING = 1e-13  # of the square of the fastest pole, what rounding leaves in that of another
_MASSLESS = 1e-13  # part of the largest inertia that is none


@dataclass(frozen=True, eq=False)
class PathPlan:
    """Values through which a path is to go."""

    # What is varied: inputs and parameters first, then outputs that are held.
    places: tuple[Place, ...]
    variables: list[Variable]  # the inputs and parameters
    held: tuple[Place, ...]  # the outputs
    stations: FloatArray  # the values of all components at the stations, shape (K, m)

    def legs(self) -> Iterator[tuple[Leg, FloatArray, FloatArray]]:
        """Yield the parts of the way that are straight, with λ and values at its stations."""
        first = 0
        while first < len(self.stations) - 1:
            last, rest = first + 1, self.stations[first:] - self.stations[first]
            while last < len(self.stations) - 1 and _is_ahead(rest[: last - first + 2]):
                last += 1
            way = self.stations[last] - self.stations[first]
            marks = rest[: last - first + 1] @ way / (way @ way)
            marks[-1] = 1.0
            ends, count = self.stations[[first, last]], self.num_variables
            yield Leg(ends[:, :count], ends[:, count:]), marks, self.stations[first : last + 1]
            first = last

    @property
    def num_variables(self) -> int:
        """Number of components of inputs and parameters."""
        return sum(len(variable.keys) for variable in self.variables)

    def write_first(self, context: Context) -> None:
        """Set inputs and parameters to their first values."""
        for place, rows in zip(self.places, self.values_of(self.stations).values(), strict=True):
            if place not in self.held:
                place.write(context, rows[0].reshape(place.shape or ()))

    def values_of(self, rows: FloatArray) -> dict[str, FloatArray]:
        """Return the values of all components as those of what is varied, by path."""
        return _parted(self.places, rows)

    def required_of(self, rows: FloatArray) -> dict[str, FloatArray]:
        """Return the forces of all holders, by the path of what they hold."""
        return _parted(self.held, rows)


def _parted(places: tuple[Place, ...], rows: FloatArray) -> dict[str, FloatArray]:
    """Return columns as arrays of the shape of each place, by path."""
    found, start = {}, 0
    for place in places:
        end = start + place.components.size
        shape = place.shape if place.components.size > 1 else ()
        found[place.path] = rows[:, start:end].reshape(len(rows), *(shape or ()))
        start = end
    return found


def path_plan(context: Context, along: Mapping[Any, Any], attempt: str) -> PathPlan:
    """Find what is to be varied, and check all values."""
    wanted = "a dictionary of inputs, parameters or strokes with their values"
    is_mapping: object = isinstance(along, Mapping)
    require(is_mapping and len(along) > 0, along, attempt, wanted)
    loads: list[tuple[Way, Place, Any]] = []
    strokes: list[tuple[Way, Place, Any]] = []
    for way, values in along.items():
        place = replace(find_place(context.system, way, _can_lead), alias=path_of(way))
        if can_vary(place.handle):
            loads.append((way, place, values))
        elif isinstance(place.handle, OutputPort) and carries_vector(place.handle):
            strokes.append((way, place, values))
        else:
            raise UnknownNameError(
                f"{attempt} along '{place.path}'",
                expected="a numeric parameter, a free vector input, or an output such as the angle "
                "of a joint or the position of a body",
                found=f"the {place.handle.what} '{place.handle.full_name}'",
            )
    variables = find_variables(context, [way for way, _, _ in loads], attempt)
    places = [place for _, place, _ in (*loads, *strokes)]
    columns = [
        _stations(context, place, values, attempt) for _, place, values in (*loads, *strokes)
    ]
    counts = {place.path: len(column) for place, column in zip(places, columns, strict=True)}
    if len(set(counts.values())) > 1:
        raise ValueRefusedError(
            attempt,
            expected="as many values of each, or the last value of each",
            found=", ".join(f"{count} of '{name}'" for name, count in counts.items()),
        )
    for place, column in zip(places[: len(loads)], columns, strict=False):
        twin = context.clone()
        for row in column:
            place.write(twin, row.reshape(place.shape or ()))
    stations = np.hstack(columns)
    stands = np.flatnonzero(np.all(stations[1:] == stations[:-1], axis=1))
    require(not stands.size, along, attempt, "values that change from each station to the next")
    return PathPlan(tuple(places), variables, tuple(places[len(loads) :]), stations)


def _can_lead(handle: Any) -> bool:
    return can_vary(handle) or (isinstance(handle, OutputPort) and carries_vector(handle))


def _stations(context: Context, place: Place, values: Any, attempt: str) -> FloatArray:
    """Return the values of the components of one place at all stations."""
    attempt = f"{attempt} along '{place.path}'"
    numbers = as_numbers(values, attempt)
    check_bounds(numbers, attempt)
    check_bounds(numbers, attempt, lower=-LARGEST, upper=LARGEST)
    size = place.components.size
    shape = place.shape if size > 1 else ()
    if numbers.shape == (shape or ()):
        present = np.array(place.read(context), dtype=float)
        return np.stack([present.reshape(size), numbers.reshape(size)])
    fits = numbers.shape[1:] == (shape or ()) and len(numbers) > 1
    kind = "a number" if size == 1 else f"an array of shape {shape}"
    require(fits, values, attempt, f"{kind} to go to, or two or more of them to go through")
    return numbers.reshape(len(numbers), size)


def _is_ahead(rows: FloatArray) -> bool:
    """Return whether the last of several rows continues a straight way from the first, zero."""
    way = rows[-1]
    length = way @ way
    if length == 0.0:
        return False
    marks = rows @ way / length
    off = np.max(np.abs(rows - np.outer(marks, way)))
    return bool(off <= _STRAIGHT * np.max(np.abs(way)) and np.all(np.diff(marks) > 0.0))


class PathRun:
    """What is there of a path.

    The first equilibrium is searched at ``start``, which has all values that are not varied;
    ``context`` and ``equations`` have a copy each. ``stops`` are the points so far, and ``numbers``
    the values there of all that is varied.
    """

    def __init__(
        self, start: Context, plan: PathPlan, attempt: str, branch: int, max_points: int
    ) -> None:
        self.context, self.plan = start.clone(), plan
        self._attempt, self._branch, self._max_points = attempt, branch, max_points
        plan.write_first(self.context)
        self.equations = StaticEquations(
            self.context.clone(), plan.variables, plan.held, attempt=attempt
        )
        self._size = size_of(self.equations.context)
        if plan.held:
            self._refuse_idle_strokes()
        self.stops: list[Stop] = []
        self.numbers: list[FloatArray] = []

    def go(self) -> None:
        """Follow the path to its end."""
        point: CurvePoint | None = None
        to_pass = abs(self._branch)
        for leg, marks, rows in self.plan.legs():
            curve = EquilibriumCurve(self.equations, leg, self._size)
            is_first = point is None
            point = self._begun(curve, leg, point)
            if is_first:
                self._add(Stop(point, point.num_unstable, station=True), rows[0])
            walk = Walk(curve, marks.tolist(), to_pass * int(np.sign(self._branch)))
            try:
                for stop in walk.stops(point):
                    values = rows[0] + stop.point.load * (rows[-1] - rows[0])
                    if stop.station:
                        values = rows[np.argmin(np.abs(marks - stop.point.load))]
                    self._add(stop, values)
                    if len(self.stops) >= self._max_points:
                        raise self._ended(curve, f"more than {self._max_points} points")
            except TurnedAwayError as error:
                found = "a path that turns back and goes farther and farther away"
                raise self._ended(curve, found) from error
            except LostError as error:
                raise self._ended(curve, "no equilibrium that follows") from error
            point, to_pass = self.stops[-1].point, max(walk.to_pass, 0)
        if to_pass > 0:
            passed = abs(self._branch) - to_pass
            raise EvaluationError(
                f"{self._attempt} onto branch {self._branch}",
                expected=f"{abs(self._branch)} branch points on the way",
                found=f"{passed}",
                remedy="The path without branch= shows where they are, as the attribute special; a "
                "mechanism that is not symmetric has none",
            )

    def _begun(self, curve: EquilibriumCurve, leg: Leg, before: CurvePoint | None) -> CurvePoint:
        """Return the first point of a leg."""
        here = self.equations
        x = here.states if before is None else before.x
        reactions = np.zeros(here.num_held) if before is None else before.reactions
        try:
            point = curve.settled(x, reactions, 0.0)
        except LostError as error:
            if before is not None:
                raise self._unsettled(curve, x, reactions) from error
            try:
                here.set_variables(leg.variables[0])
                point = curve.settled(*released(here, self._size, x, leg.held[0]), 0.0)
            except (LostError, EvaluationError):
                raise self._unsettled(curve, x, reactions) from error
        if stays_open := here.open_constraints():
            raise not_closed(stays_open, self._attempt)
        if before is None:
            free = curve.free_directions(point.x, point.reactions, 0.0)
            if len(free):
                raise self._unresisted(free)
            if abs(point.along[-1]) < _STANDS and curve.is_neutral(point, weight_of(self.context)):
                raise self._unresisted([point.along[:-1]])
        return point

    def _add(self, stop: Stop, values: FloatArray) -> None:
        self.stops.append(stop)
        self.numbers.append(values)

    def _refuse_idle_strokes(self) -> None:
        """Refuse strokes that nothing can move, or that others decide."""
        point = self.equations.point()
        directions = point.directions
        names = [name for place in self.plan.held for name in place.names]
        still = [name for name, row in zip(names, directions, strict=True) if not np.any(row)]
        kept = np.vstack([point.normals, directions])
        if still or np.linalg.matrix_rank(kept) < len(kept):
            found = f"'{still[0]}', which none changes" if still else f"{len(names)} that are not"
            if point.normals.size and not still:
                found += " of the constraints and of each other"
            raise ValueRefusedError(
                self._attempt,
                expected="independent strokes that are functions of positions",
                found=found,
            )

    # Where it ends ---------------------------------------------------------------------------

    def _unsettled(
        self, curve: EquilibriumCurve, x: FloatArray, reactions: FloatArray
    ) -> EvaluationError:
        """Return the error for a beginning without equilibrium."""
        if curve.refusal is not None:
            return EvaluationError(
                self._attempt, expected="forces that are defined", found=str(curve.refusal)
            )
        try:
            free = curve.free_directions(x, reactions, 0.0)
        except LostError:
            free = np.zeros((0, 1))
        stays_open = self.equations.open_constraints()
        if stays_open:
            return not_closed(stays_open, self._attempt)
        if len(free):
            return self._unresisted(free)
        return EvaluationError(
            self._attempt,
            expected="an equilibrium to begin with",
            found="none near the values of the context",
            remedy="Start nearer to one, or with less load; gradual release of the residual "
            "forces (homotopy) found none",
        )

    def _unresisted(self, directions: Iterable[FloatArray]) -> EvaluationError:
        """Return the error for motions without stiffness."""
        motions = "; nor against ".join(map(self._named, directions))
        return EvaluationError(
            self._attempt,
            expected="a stiffness against every motion",
            found=f"none against {motions}",
            remedy="Add a spring or a joint, lock one, or follow a stroke that holds it",
        )

    def _ended(self, curve: EquilibriumCurve, found: str) -> EvaluationError:
        """Return the error for a path that ends too early."""
        why = f": {curve.refusal}" if curve.refusal is not None else ""
        dead = [index for index, stop in enumerate(self.stops) if stop.kind == "dead point"]
        if dead:
            at = self._at(dead[0])
            why += f"; it turns back at a dead point, {at}, and cannot drive the mechanism farther"
        limits = [index for index, stop in enumerate(self.stops) if stop.kind == "limit"]
        if limits and not dead:
            why += f"; its first limit point, at which it turns back, is at {self._at(limits[0])}"
        return EvaluationError(
            self._attempt,
            expected="a path to the last of the values",
            found=f"{found}, at {self._at(-1)}, after {len(self.stops)} points{why}",
            remedy="The attribute result of this error has the path up to there",
        )

    def _at(self, index: int) -> str:
        """Return the values at one of the points, in words."""
        values = self.plan.values_of(self.numbers[index][np.newaxis])
        return ", ".join(f"'{name}' = {np.round(rows[0], 9)}" for name, rows in values.items())

    def _named(self, direction: FloatArray) -> str:
        """Return what moves in some direction, in words."""
        parts = direction / np.max(np.abs(direction))
        names = self.equations.coordinates.names
        shown = [name for name, part in zip(names, parts, strict=True) if abs(part) >= _MOVES]
        return ", ".join(f"'{name}'" for name in shown)


def may_drive(context: Context) -> bool:
    """Return whether anything but gravity and elements of the library acts on mechanisms."""
    return not all(
        isinstance(leaf.system, (MultibodyTree, EnergyTotals))
        or not leaf.system.input_ports
        or (
            isinstance(leaf.system, ForceElement)
            and type(leaf.system).__module__.startswith("flexure.blocks.")
        )
        for leaf in context.leaves()
    )


def count_growing(
    context: Context,
    plan: PathPlan,
    numbers: FloatArray,
    states: FloatArray,
    reactions: FloatArray,
    attempt: str,
) -> npt.NDArray[np.intp]:
    """Return at some points of a path how many motions grow, oscillations counted once.

    Forces that have a potential and passive damping make no motion grow where no stiffness is
    negative. Follower forces and controllers may (flutter). Then the motions themselves decide:
    with the mass M, the damping D and the stiffness K of displacements θ, and other states s,

        M θ̈ + D θ̇ + K θ = F s,    ṡ = S θ + V θ̇ + A s

    restricted to the displacements ``θ = R y`` that constraints and held strokes allow.

    The context is changed. Numbers are the values of what the plan varies, reactions the forces of
    holders; each has a row for each point, as states have. Raises EvaluationError when motions are
    not defined, as those of bodies without mass.
    """
    static = StaticEquations(context, plan.variables, plan.held, attempt=attempt)
    rates = Equations(context.clone(), plan.variables, shares=True)
    found = []
    for row, x, held in zip(numbers[:, : plan.num_variables], states, reactions, strict=True):
        static.set_variables(row)
        static.move_to(x)
        poles = _poles(static, rates.jacobian(np.concatenate([static.states, row])), held, attempt)
        sizes = np.abs(poles)
        fastest = np.max(sizes, initial=0.0)
        least = _GROWS * sizes + _ROUNDING * fastest * (fastest / np.maximum(sizes, 1e-300))
        found.append(np.sum((poles.real > least) & (poles.imag >= 0.0)))
    return np.array(found, dtype=np.intp)


def _poles(
    static: StaticEquations, slopes: FloatArray, reactions: FloatArray, attempt: str
) -> npt.NDArray[np.complex128]:
    """Return the poles of small motions around the present equilibrium, by slopes of all rates."""
    from scipy.linalg import block_diag

    point, coordinates = static.point(reactions), static.coordinates
    free, others, d = coordinates.free, coordinates.others, point.num_displacements
    v, K = coordinates.velocities[free], point.stiffness
    rows = np.vstack([point.normals, point.directions])
    if np.any(rows[:, d:]):
        raise EvaluationError(attempt, found="constraints that other states move")
    plants = [tree.parent_plant for _, tree in trees_of(static.context)]
    masses = [p.calc_mass_matrix(static.context) for p in plants if isinstance(p, Plant)]
    M, R = block_diag(*masses)[np.ix_(free, free)], allowed_motions(rows[:, :d], rows[:, :d]).R
    reduced = R.T @ M @ R
    size = np.sqrt(np.diag(reduced))
    pushed = R.T @ np.hstack([-K[:d, :d] @ R, M @ slopes[np.ix_(v, v)] @ R, -K[:d, d:]])
    least = np.linalg.eigvalsh(reduced / np.outer(size, size))[:1] if np.all(size) else np.zeros(1)
    if np.any(least < _MASSLESS) or not np.isfinite(pushed).all():
        raise EvaluationError(
            attempt,
            expected="masses against all motions, which decide where forces have no potential",
            found="motions without mass",
            remedy="Give all bodies their mass and inertia",
        )
    n = R.shape[1]
    return np.asarray(
        np.linalg.eigvals(
            np.block(
                [
                    [np.zeros((n, n)), np.eye(n), np.zeros((n, len(others)))],
                    [np.linalg.solve(reduced, pushed)],
                    [-K[d:, :d] @ R, slopes[np.ix_(others, v)] @ R, -K[d:, d:]],
                ]
            )
        ),
        dtype=complex,
    )
