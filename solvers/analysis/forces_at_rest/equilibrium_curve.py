"""Arc-length continuation of equilibria: tangents, corrections, zero crossings.

Along a leg, inputs and parameters move from one set of values to another in proportion to one
number λ, and so do the values at which holders keep outputs. With the increments θ of all unknowns
and the forces μ of the holders, a point of the curve solves

    forces(θ, λ) + Σ μ (∂g/∂θ)ᵀ = 0,    g(θ) = ĝ(λ)

and with constraints φ(θ, λ) = 0, the forces of which are among the others. A step solves them
with one more equation, that it goes as far along the tangent as it is to go.
That is possible where λ itself turns. Lengths are measured with angles in radians, translations in
parts of the size of the mechanism, and λ in parts of the leg.

Newton's method begins where the tangent leads if it bends as in the step before. A step is judged
by how far the solution is from what the tangent alone has predicted. Corrections
that are not small in comparison have found another curve, or a turn that the step has cut. They
are not judged by the forces that are left: those of stiff directions rise first after a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import lapack

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.curve_points import (
    NEUTRAL,
    ROUNDING,
    Crossing,
    CurvePoint,
    Leg,
    LinearizedEquilibria,
    LostError,
)
from flexure.solvers.analysis.forces_at_rest.static_coordinates import allowed_motions
from flexure.solvers.analysis.forces_at_rest.static_equations import (
    SLIGHT,
    StaticEquations,
    StaticPoint,
)

_UNIT_TURN = 0.1  # rad, or part of the size, that counts as much as
UNIT_LOAD = 0.05  # this part of a leg
_ITERATIONS = 12
_FAR_ITERATIONS = 60  # and at the beginning of a path, with
_LONGEST = 3.0  # as the longest correction
_CLOSE = 1e-8  # length of a correction that is the last one, as the next is its square
_SAME = 1e-11  # length of one after which the linear equations are those before, and
_ALIKE = 1e-6  # with which these have errors of rounding without constraints
_NOISE = 1e-5  # length below which corrections that do not shrink any more are rounding
_STRAY = 0.3  # correction in parts of the prediction, beyond which a step is refused
_SLACK = 1e-6  # length that is always allowed to a correction
_TRIES = 40
_FREE = 1e-14  # part of the largest stiffness that is rounding
_BESIDE = (-0.02, 0.02, 0.05)  # parts of a step from there, where it is looked at as well
_APART = 0.1  # of the next stiffness, and
_NEAR = 3e-3  # part of the stiffness, or of a step, within which a crossing is interpolated


class EquilibriumCurve:
    """The equilibria of a mechanism along one leg.

    The equations have the variables and holders of the leg. A length of ``size``, in m, counts as
    much as a radian.
    """

    def __init__(self, equations: StaticEquations, leg: Leg, size: float) -> None:
        self.equations = equations
        self.refusal: EvaluationError | None = None  # what the equations have refused last
        self._leg = leg
        coordinates = equations.coordinates
        d = coordinates.num_displacements
        scales = np.ones(len(coordinates))
        scales[:d] = np.where(coordinates.turns, 1.0, size)
        scales[d:] = np.maximum(np.abs(equations.states[coordinates.others]), 1.0)
        self.scales = _UNIT_TURN * scales  # increments of the unknowns that count as 1
        self._most = 0  # constraints that have been independent so far

    # Points ----------------------------------------------------------------------------------

    def settled(self, x: FloatArray, reactions: FloatArray, load: float) -> CurvePoint:
        """Return the equilibrium near some states at a load; its tangent goes to larger loads."""
        ahead = self._ahead()
        x, reactions, load, _, linear = self._corrected(x, reactions, load, ahead, far=True)
        return self._point(x, reactions, load, ahead, linear)

    def departed(
        self,
        start: CurvePoint,
        direction: FloatArray,
        length: float,
        *,
        load: float | None = None,
        stray: float = _STRAY,
        singular: bool = False,
    ) -> tuple[CurvePoint, float]:
        """Return the point at a distance along a direction, or where that comes to a load.

        Equations that are ``singular`` are refused unless they may be, as they are at a branch
        point.

        The tangent of the point goes on from there. The second result is the length of the
        correction, as a part of that of the prediction.
        """
        predicted = length * direction
        held = direction if load is None else self._ahead()
        bent = np.zeros(len(predicted))
        if start.bend is not None and direction is start.along:
            bent = length**2 * (start.bend - (start.bend @ held) * held)
            bent *= _length(bent) < _STRAY * length
        x = self.equations.coordinates.moved(start.x, self.scales * (predicted + bent)[:-1])
        load = start.load + UNIT_LOAD * (predicted + bent)[-1] if load is None else load
        x, reactions, load, correction, linear = self._corrected(
            x, start.reactions, load, held, singular=singular
        )
        correction += bent
        ratio = max(
            _length(correction) / (_length(predicted) + _SLACK),
            (_length(correction[:-1]) - _SLACK) / (_length(predicted[:-1]) + _SLACK),
        )
        if ratio > stray:
            raise LostError
        there = self._point(x, reactions, load, direction, linear, singular=singular)
        if direction is start.along and length > 0.0:
            there = replace(there, bend=(there.along - direction) / (2.0 * length))
        return there, ratio

    def crossing(self, start: CurvePoint, end: CurvePoint, length: float, number: int) -> Crossing:
        """Return where the stiffness of a number becomes zero between a point and the next."""
        low, at_low = 0.0, float(start.stiffnesses[number])
        high, at_high = length, float(end.stiffnesses[number])
        largest, side = max(abs(at_low), abs(at_high)), 0
        ends = (at_low, low, start), (at_high, high, end)
        found, where, near = min(ends, key=lambda each: abs(each[0]))
        around: list[tuple[float, CurvePoint]] = []
        with suppress(LostError):
            for _ in range(_TRIES):
                others = np.abs(np.delete(near.stiffnesses, number))
                enough = min(_NEAR * largest, _APART * np.min(others, initial=np.inf))
                if abs(found) <= enough or high - low <= _NEAR * length:
                    break
                where = (low * at_high - high * at_low) / (at_high - at_low)
                near = self.looked(start, where)
                found = float(near.stiffnesses[number])
                if (found > 0.0) == (at_low > 0.0):  # the rule of Illinois
                    low, at_low, at_high = where, found, at_high * (0.5 if side == -1 else 1.0)
                    side = -1
                else:
                    high, at_high, at_low = where, found, at_low * (0.5 if side == 1 else 1.0)
                    side = 1
            for beside in _BESIDE:
                place = where + beside * length
                around.append((place, self.looked(start, place)))
        return self._at_crossing([(where, near), *around], largest)

    def told_apart(self, crossings: list[Crossing], length: float) -> list[Crossing]:
        """Return crossings of a step in their order; those at one place with a direction each."""
        ordered = sorted(crossings, key=lambda each: each.at)
        found: list[Crossing] = []
        while len(found) < len(ordered):
            rest = ordered[len(found) :]
            group = [each for each in rest if each.at - rest[0].at <= _NEAR * length]
            found += self._with_own_directions(group) if len(group) > 1 else group
        return found

    def _with_own_directions(self, group: list[Crossing]) -> list[Crossing]:
        """Return crossings at one place, with directions each of which moves what others do not."""
        at, n = group[0].point, len(self.scales)
        matrix = self._linear(at.x, at.reactions, at.load).matrix
        if not np.isfinite(matrix).all():
            return group
        free = np.linalg.svd(matrix)[2][-len(group) :, :n]
        left, chosen = free, []
        for _ in group:  # the unknowns that move most, one after the other
            chosen.append(int(np.argmax(np.linalg.norm(left, axis=0))))
            along = left[:, chosen[-1]] / np.linalg.norm(left[:, chosen[-1]])
            left = left - np.outer(along, along @ left)
        directions = np.linalg.solve(free[:, chosen], free)
        return [
            replace(each, direction=direction / _length(direction))
            for each, direction in zip(group, directions, strict=True)
        ]

    def looked(self, start: CurvePoint, length: float) -> CurvePoint:
        """Return the point at a distance along the tangent, also where equations are singular."""
        return self.departed(start, start.along, length, stray=np.inf, singular=True)[0]

    def _at_crossing(self, near: list[tuple[float, CurvePoint]], largest: float) -> Crossing:
        """Return the crossing near some points, of which the first one is the nearest.

        At a branch point itself the equations are singular, and very near it they lead to any of
        the paths. So nothing is solved there: it is where a polynomial through the points has no
        stiffness. As such counts g of

            [ M   u ] [ w ]   [ 0 ]
            [ vᵀ  0 ] [ g ] = [ 1 ]

        with the singular vectors u, v of the matrix M at the nearest point, since it is smooth,
        which eigenvalues in their order are not.
        """
        points = [point for _, point in near]
        nodes = self._counts([self._linear(p.x, p.reactions, p.load).matrix for p in points])
        if len(np.unique(nodes)) < len(nodes):  # two stiffnesses at once
            points, near, nodes = points[:1], near[:1], nodes[:1]
        if abs(nodes[0]) > np.ptp(nodes):  # it jumps over zero, and is nowhere near it
            points, near, nodes = points[:1], near[:1], nodes[:1]
        others = [np.delete(nodes, k) for k in range(len(nodes))]
        parts = [np.prod(o / (o - node)) for node, o in zip(nodes, others, strict=True)]

        def at_zero(rows: Sequence[Any]) -> Any:
            return sum(part * row for part, row in zip(parts, rows, strict=True))

        x = at_zero([point.x for point in points])
        point = replace(
            points[0],
            x=self.equations.coordinates.moved(x, np.zeros(len(self.scales))),
            reactions=at_zero([point.reactions for point in points]),
            load=float(at_zero([point.load for point in points])),
        )
        linear = self._linear(point.x, point.reactions, point.load)
        if not np.isfinite(linear.matrix).all():  # so far away that it is out of range
            return self._at_crossing(near[:1], largest)
        left, _, right = np.linalg.svd(linear.matrix)
        direction = right[-1][: len(self.scales)]
        direction = direction / _length(direction)
        first = np.argmax(np.abs(direction) > 0.999 * np.max(np.abs(direction)))
        pulled = abs(float(left[:, -1] @ linear.pull)) / largest
        at = float(at_zero([place for place, _ in near]))
        return Crossing(point, at, direction * np.sign(direction[first]), pulled)

    def _counts(self, matrices: list[FloatArray]) -> FloatArray:
        """Return g of all matrices, with the singular vectors of the first one."""
        left, _, right = np.linalg.svd(matrices[0])
        unit = np.append(np.zeros(len(left)), 1.0)
        found = []
        for matrix in matrices:
            bordered = np.block([[matrix, left[:, -1:]], [right[-1:], np.zeros((1, 1))]])
            found.append(np.linalg.lstsq(bordered, unit, rcond=None)[0][-1])
        return np.array(found)

    def free_directions(self, x: FloatArray, reactions: FloatArray, load: float) -> FloatArray:
        """Return scaled increments that nothing resists at some states; none if all is resisted."""
        matrix = self._linear(x, reactions, load).matrix
        if not np.isfinite(matrix).all():
            return np.zeros((0, len(self.scales)))
        factors, _, failed = lapack.dgetrf(matrix)
        if not failed:  # the norm of an inverse bounds singular values, and is found faster
            part, _ = lapack.dgecon(factors, np.max(np.sum(np.abs(matrix), axis=0)))
            if part > 10.0 * len(matrix) * _FREE:
                return np.zeros((0, len(self.scales)))
        _, values, right = np.linalg.svd(matrix)
        return np.asarray(right[values <= _FREE * values[0]][:, : len(self.scales)])

    def is_neutral(self, point: CurvePoint, weight: float) -> bool:
        """Return whether the least stiffness is none beside the largest, or beside a moment.

        Small parts of a load that is far too large move a mechanism far, too; its least stiffness
        is about what its weight can do, nevertheless.
        """
        K = self._linear(point.x, point.reactions, point.load).matrix
        n, least = len(self.scales), np.min(np.abs(point.stiffnesses), initial=np.inf)
        largest = np.max(np.abs(K[:n, :n]))
        return bool(least <= max(NEUTRAL * _UNIT_TURN**2 * weight, ROUNDING * largest))

    # Equations -------------------------------------------------------------------------------

    def rows(self, x: FloatArray, load: float) -> FloatArray:
        """Return the rows of a `CurvePoint` at some states."""
        return self._rows(self._linear(x, np.zeros(self.equations.num_held), load).point)

    def _rows(self, point: StaticPoint) -> FloatArray:
        if not len(point.rows):
            return point.rows
        return np.vstack([point.rows, point.directions]) * self.scales

    def _ahead(self) -> FloatArray:
        """Return the direction of the load alone."""
        return np.append(np.zeros(len(self.scales)), 1.0)

    def _corrected(
        self,
        x: FloatArray,
        reactions: FloatArray,
        load: float,
        held: FloatArray,
        *,
        far: bool = False,
        singular: bool = False,
    ) -> tuple[FloatArray, FloatArray, float, FloatArray, LinearizedEquilibria | None]:
        """Return what solves the equations at right angles to a direction, and how far that is."""
        # The last corrections take the linear equations before again. Behind the results are these,
        # if they hold there as well.
        n, moved, before = len(self.scales), np.zeros(len(self.scales) + 1), np.inf
        linear: LinearizedEquilibria | None = None
        point: StaticPoint | None = None
        for iteration in range(_FAR_ITERATIONS if far else _ITERATIONS):
            is_new = linear is None or point is None
            if linear is None or point is None:
                linear = self._linear(x, reactions, load)
                point = linear.point
            left = np.append(self._left(linear, point, load), 0.0)
            step = self._solved(linear, held, -left, singular)
            length = _length(np.append(step[:n], step[-1]))
            step *= min(1.0, _LONGEST / length) if far and length > 0.0 else 1.0
            x = self.equations.coordinates.moved(x, self.scales * step[:n])
            held_from = len(point.errors)
            reactions = reactions + linear.weights[held_from:] * step[n + held_from : -1]
            load += UNIT_LOAD * step[-1]
            moved += np.append(step[:n], step[-1])
            is_same = not is_new or length < (_SAME if len(point.gaps) else _ALIKE)
            if length < _CLOSE or (iteration > 2 and before <= length < _NOISE):
                holds = (is_new and length < _SAME) or (is_same and linear.is_definite)
                return x, reactions, load, moved, linear if holds else None
            before, point = length, None
            if is_same:
                self._place(x, load)
                point = self.equations.point_with_slopes_of(linear.point, reactions)
        raise LostError

    def _point(
        self,
        x: FloatArray,
        reactions: FloatArray,
        load: float,
        held: FloatArray,
        linear: LinearizedEquilibria | None,
        *,
        singular: bool = False,
    ) -> CurvePoint:
        """Return a point with its tangent, which goes on in a direction."""
        n = len(self.scales)
        if linear is None:
            linear = self._linear(x, reactions, load)
        else:
            self._place(x, load)
        point = linear.point
        if not (singular or point.is_closed):
            raise LostError
        ahead = np.append(np.zeros(len(linear.matrix)), 1.0)
        along = held
        self._most = max(self._most, len(point.errors))
        if len(point.errors) == self._most:  # else constraints depend on each other here alone
            step = self._solved(linear, held, ahead, singular)
            along = np.append(step[:n], step[-1])
        along = along / _length(along)
        is_symmetric = linear.is_definite
        asymmetry = 0.0 if is_symmetric else point.asymmetry(self.scales)
        calc, resists = partial(self._calc_stiffnesses, x, reactions, load), True
        if not is_symmetric:
            K, is_symmetric = self._free_stiffness(linear), asymmetry <= SLIGHT
            resists = is_symmetric and _is_definite(K)
            if not resists:
                calc = partial(np.asarray, _stiffnesses(K, is_symmetric))
        return CurvePoint(x, reactions, load, along, resists, calc, self._rows(point), asymmetry)

    def _calc_stiffnesses(self, x: FloatArray, reactions: FloatArray, load: float) -> FloatArray:
        """Return the stiffnesses of a point at which they are symmetric."""
        return _stiffnesses(self._free_stiffness(self._linear(x, reactions, load)), True)

    def _place(self, x: FloatArray, load: float) -> None:
        """Set states and variables."""
        variables = self._leg.variables
        self.equations.set_variables(variables[0] + load * (variables[1] - variables[0]))
        self.equations.move_to(x)

    def _linear(self, x: FloatArray, reactions: FloatArray, load: float) -> LinearizedEquilibria:
        """Return the linear equations at a point."""
        variables, held = self._leg.variables, self._leg.held
        self._place(x, load)
        try:
            point = self.equations.point(reactions)
        except EvaluationError as error:
            self.refusal = error
            raise LostError from error
        weights, units = self._weights(point), self._row_scales(point)
        matrix = K = units[:, np.newaxis] * point.stiffness
        K *= self.scales
        if len(weights):
            C = H = weights[:, np.newaxis] * _rows(point) * self.scales
            if point.pushes.size:
                C = np.vstack([point.pushes, point.directions]) * self.scales
                C = weights[:, np.newaxis] * C
            matrix = np.block([[K, -C.T], [-H, np.zeros((len(H), len(H)))]])
        change = variables[1] - variables[0]
        kept = np.concatenate(
            [point.error_slopes @ change, point.stroke_slopes @ change - (held[1] - held[0])]
        )
        along = point.loads @ change
        if self._leg.released is not None:
            along = along + self._leg.released
        pull = np.concatenate([units * along, weights * kept])
        return LinearizedEquilibria(point, units, weights, matrix, UNIT_LOAD * pull)

    def _left(self, linear: LinearizedEquilibria, point: StaticPoint, load: float) -> FloatArray:
        """Return what is left of the equations at a point, scaled."""
        held = self._leg.held
        strokes = point.strokes - (held[0] + load * (held[1] - held[0]))
        missing = np.concatenate([point.errors, strokes])
        forces = point.forces
        if self._leg.released is not None:
            forces = forces - (1.0 - load) * self._leg.released
        return np.concatenate([linear.units * forces, linear.weights * missing])

    def _row_scales(self, point: StaticPoint) -> FloatArray:
        """Return what forces are scaled by; rates of other states, to rows as large as theirs."""
        # So it does not matter how slowly a controller integrates beside how stiff a mechanism is.
        d, scales = point.num_displacements, self.scales.copy()
        if d == len(scales):
            return scales
        rows = np.max(np.abs(point.stiffness * scales), axis=1, initial=0.0)
        largest = np.max(scales[:d] * rows[:d], initial=0.0)
        fits = (rows[d:] > 0.0) & np.isfinite(rows[d:]) & np.isfinite(largest) & (largest > 0.0)
        scales[d:] = np.divide(largest, rows[d:], out=scales[d:], where=fits)
        return scales

    def _weights(self, point: StaticPoint) -> FloatArray:
        """Return what constraints and holders are scaled by, to rows as large as those of K."""
        if not len(_rows(point)):
            return np.zeros(0)
        largest = np.max(np.abs(self.scales[:, np.newaxis] * point.stiffness * self.scales))
        rows = np.max(np.abs(_rows(point) * self.scales), axis=1, initial=0.0)
        fits = (rows > 0.0) & np.isfinite(rows) & np.isfinite(largest) & (largest > 0.0)
        return np.asarray(np.divide(largest, rows, out=np.ones_like(rows), where=fits))

    def _solved(
        self, linear: LinearizedEquilibria, held: FloatArray, right: FloatArray, singular: bool
    ) -> FloatArray:
        """Solve the linear equations, and one for a direction; raise where that is impossible."""
        step = linear.solved(held, right, singular=singular)
        if not np.isfinite(step).all():
            self._note_refusal()
            raise LostError
        return step

    def _note_refusal(self) -> None:
        """Learn from the equations themselves why something is not finite."""
        try:
            self.equations.forces()
        except EvaluationError as error:
            self.refusal = error

    def _free_stiffness(self, linear: LinearizedEquilibria) -> FloatArray:
        """Return the scaled stiffness where holders leave it free."""
        # Columns of other states are as large as those of displacements. Positive factors of rows
        # and columns do not change whether a small displacement takes work, and rounding does.
        point, rows, columns = linear.point, linear.units, self.scales.copy()
        d = point.num_displacements
        K = rows[:, np.newaxis] * point.stiffness
        if d < len(columns):
            sizes = np.max(np.abs(K), axis=0, initial=0.0)
            largest = np.max(sizes[:d] * columns[:d], initial=0.0)
            fits = (sizes[d:] > 0.0) & np.isfinite(sizes[d:]) & (largest > 0.0)
            columns[d:] = np.divide(largest, sizes[d:], out=columns[d:], where=fits)
        K = K * columns
        if point.normals.size:
            pushes = np.vstack([point.pushes, point.directions]) * rows
            K = allowed_motions(_rows(point) * columns, pushes).stiffness(K)
        elif point.directions.size:
            H = point.directions * columns
            basis = np.linalg.svd(H)[2][np.linalg.matrix_rank(H) :].T
            K = basis.T @ K @ basis
        return K


def _is_definite(K: FloatArray) -> bool:
    """Return whether a symmetric stiffness has no negative eigenvalue but for rounding."""
    largest = np.max(np.diagonal(K), initial=0.0)  # at most the largest eigenvalue
    shifted = 0.5 * (K + K.T)
    shifted.flat[:: len(K) + 1] += NEUTRAL * largest
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(shifted).all())


def _stiffnesses(K: FloatArray, is_symmetric: bool) -> FloatArray:
    """Return the eigenvalues of a stiffness as a `CurvePoint` has them."""
    if is_symmetric:
        return np.asarray(np.linalg.eigvalsh(0.5 * (K + K.T)))
    found = np.linalg.eigvals(K)
    sizes = np.abs(found)
    chosen = np.where(np.abs(found.imag) > 1e-12 * sizes, sizes, found.real)
    return np.asarray(np.sort(chosen))


def _rows(point: StaticPoint) -> FloatArray:
    """Return the derivatives of what constraints and holders keep."""
    if not point.normals.size:
        return point.directions
    return np.vstack([point.normals, point.directions])


def _length(vector: FloatArray) -> float:
    return float(np.linalg.norm(vector))
