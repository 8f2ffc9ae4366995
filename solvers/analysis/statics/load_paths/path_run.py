"""Computation of a load path: its legs one after the other, and the reason for its end."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.curve_points import CurvePoint, Leg, LostError
from flexure.solvers.analysis.forces_at_rest.equilibrium_curve import EquilibriumCurve
from flexure.solvers.analysis.forces_at_rest.homotopy import released
from flexure.solvers.analysis.forces_at_rest.path_following import Stop, TurnedAwayError, Walk
from flexure.solvers.analysis.forces_at_rest.static_coordinates import size_of, weight_of
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from flexure.solvers.analysis.statics.load_paths.path_plan import PathPlan
from flexure.solvers.analysis.statics.nearby_equilibrium import not_closed

_MOVES = 0.05  # part of the largest amplitude that is mentioned
_STANDS = 1e-9  # part of a step that the load changes, where nothing may resist it


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
