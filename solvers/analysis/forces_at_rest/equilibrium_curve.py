"""Arc-length continuation of equilibria: tangents, corrections, zero crossings.

Along a leg, inputs and parameters move from one set of values to another in proportion to one
number λ, and so do the values at which holders keep outputs. With the increments θ of all unknowns
and the forces μ of the holders, a point of the curve solves

    forces(θ, λ) + Σ μ (∂g/∂θ)ᵀ = 0,    g(θ) = ĝ(λ)

and with constraints φ(θ, λ) = 0, the forces of which are among the others. A step solves them
with one more equation, that it goes as far along the tangent as it is to go.
That is possible where λ itself turns. Lengths are measured with angles in radians, translations in
parts of the size of the mechanism, and λ in parts of the leg.

A step is judged by how far the correction goes from what the tangent has predicted. Corrections
that are not small in comparison have found another curve, or a turn that the step has cut. They
are not judged by the forces that are left: those of stiff directions rise first after a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.allowed_motions import allowed_motions
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
_SAME = 1e-11  # length of one after which the linear equations are those before
_NOISE = 1e-5  # length below which corrections that do not shrink any more are rounding
_STRAY = 0.3  # correction in parts of the prediction, beyond which a step is refused
_SLACK = 1e-6  # length that is always allowed to a correction
_TRIES = 40
_FREE = 1e-14  # part of the largest stiffness that is rounding, and
_NEUTRAL = 1e-10  # part of the largest stiffness that counts as none
_ROUNDING = 1e-12  # the same, of one that cancels
_BESIDE = (-0.02, 0.02, 0.05)  # parts of a step from there, where it is looked at as well
_APART = 0.1  # of the next stiffness, and
_NEAR = 3e-3  # part of the stiffness, or of a step, within which a crossing is interpolated


#: A point, minus the derivatives of the equations by increments and μ, and those by λ.
_Linear: TypeAlias = tuple[StaticPoint, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Leg:
    """From which values of variables and held outputs to which others.

    Attributes
    ----------
    variables, held : ndarray, shape (2, m) and (2, k)
        Their values at λ = 0 and at λ = 1.
    released : ndarray, shape (n,), or None
        Forces on unknowns that balance them at λ = 0, and are reduced to zero until λ = 1; None for
        none.
    """

    variables: FloatArray
    held: FloatArray
    released: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """A point of a curve of equilibria.

    Attributes
    ----------
    x : ndarray
        The states.
    reactions : ndarray
        The forces of holders.
    load : float
        λ.
    along : ndarray
        The tangent by the unknowns and λ, scaled, of the length 1.
    stiffnesses : ndarray
        Ascending eigenvalues of the scaled stiffness against what holders let move; the real parts,
        where it is not symmetric, but for pairs of complex ones their magnitude.
    rows : ndarray
        The derivatives of what constraints and holders keep, by scaled increments; none without
        constraints.
    asymmetry : float
        That of the stiffness, see `StaticPoint`.
    """

    x: FloatArray
    reactions: FloatArray
    load: float
    along: FloatArray
    stiffnesses: FloatArray
    rows: FloatArray
    asymmetry: float

    @property
    def num_unstable(self) -> int:
        """Number of negative stiffnesses."""
        tolerance = _NEUTRAL * np.max(np.abs(self.stiffnesses), initial=0.0)
        return int(np.sum(self.stiffnesses < -tolerance))


@dataclass(frozen=True, eq=False)
class Crossing:
    """Where a stiffness becomes zero.

    Attributes
    ----------
    point : CurvePoint
        The point.
    at : float
        How far it is from the beginning of the step.
    direction : ndarray
        Scaled increments against which there is no stiffness; the length is 1.
    pull : float
        How much the load pulls in this direction, in parts of the stiffness a step away; next to
        nothing at a branch point.
    """

    point: CurvePoint
    at: float
    direction: FloatArray
    pull: float


class LostError(Exception):
    """No equilibrium is found where one was looked for."""


class EquilibriumCurve:
    """The equilibria of a mechanism along one leg.

    Parameters
    ----------
    equations : StaticEquations
        The forces, with the variables and holders of the leg.
    leg : Leg
        What changes.
    size : float
        Length that counts as much as a radian, in m.

    Attributes
    ----------
    scales : ndarray
        Increments of the unknowns that count as 1.
    refusal : EvaluationError or None
        What the equations have refused last.
    """

    def __init__(self, equations: StaticEquations, leg: Leg, size: float) -> None:
        self.equations = equations
        self.refusal: EvaluationError | None = None
        self._leg = leg
        coordinates = equations.coordinates
        d = coordinates.num_displacements
        scales = np.ones(len(coordinates))
        scales[:d] = np.where(coordinates.turns, 1.0, size)
        scales[d:] = np.maximum(np.abs(equations.states[coordinates.others]), 1.0)
        self.scales = _UNIT_TURN * scales
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

        Returns
        -------
        point : CurvePoint
            The point. Its tangent goes on from there.
        ratio : float
            Length of the correction, as a part of that of the prediction.

        Raises
        ------
        LostError
            When there is none, or the ratio is larger than ``stray``.
        """
        predicted = length * direction
        x = self.equations.coordinates.moved(start.x, self.scales * predicted[:-1])
        held = direction if load is None else self._ahead()
        load = start.load + UNIT_LOAD * predicted[-1] if load is None else load
        x, reactions, load, correction, linear = self._corrected(
            x, start.reactions, load, held, singular=singular
        )
        ratio = max(
            _length(correction) / (_length(predicted) + _SLACK),
            (_length(correction[:-1]) - _SLACK) / (_length(predicted[:-1]) + _SLACK),
        )
        if ratio > stray:
            raise LostError
        return self._point(x, reactions, load, direction, linear, singular=singular), ratio

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
        _, matrix, _ = self._linear(at.x, at.reactions, at.load)
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
        nodes = self._counts([self._linear(p.x, p.reactions, p.load)[1] for p in points])
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
        _, matrix, pull = self._linear(point.x, point.reactions, point.load)
        if not np.isfinite(matrix).all():  # so far away that it is out of range
            return self._at_crossing(near[:1], largest)
        left, _, right = np.linalg.svd(matrix)
        direction = right[-1][: len(self.scales)]
        direction = direction / _length(direction)
        first = np.argmax(np.abs(direction) > 0.999 * np.max(np.abs(direction)))
        pulled = abs(float(left[:, -1] @ pull)) / largest
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
        _, matrix, _ = self._linear(x, reactions, load)
        if not np.isfinite(matrix).all():
            return np.zeros((0, len(self.scales)))
        _, values, right = np.linalg.svd(matrix)
        return np.asarray(right[values <= _FREE * values[0]][:, : len(self.scales)])

    def is_neutral(self, point: CurvePoint, weight: float) -> bool:
        """Return whether the least stiffness is none beside the largest, or beside a moment.

        Small parts of a load that is far too large move a mechanism far, too; its least stiffness
        is about what its weight can do, nevertheless.
        """
        K = self._linear(point.x, point.reactions, point.load)[1]
        n, least = len(self.scales), np.min(np.abs(point.stiffnesses), initial=np.inf)
        largest = np.max(np.abs(K[:n, :n]))
        return bool(least <= max(_NEUTRAL * _UNIT_TURN**2 * weight, _ROUNDING * largest))

    # Equations -------------------------------------------------------------------------------

    def rows(self, x: FloatArray, load: float) -> FloatArray:
        """Return the rows of a `CurvePoint` at some states."""
        return self._rows(self._linear(x, np.zeros(self.equations.num_held), load)[0])

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
    ) -> tuple[FloatArray, FloatArray, float, FloatArray, _Linear | None]:
        """Return what solves the equations at right angles to a direction, and how far that is.

        Behind these are the linear equations there, if the last correction was rounding.
        """
        n, moved, before = len(self.scales), np.zeros(len(self.scales) + 1), np.inf
        for iteration in range(_FAR_ITERATIONS if far else _ITERATIONS):
            point, matrix, pull = linear = self._linear(x, reactions, load)
            left = np.append(self._left(point, load), 0.0)
            step = self._solved(matrix, pull, held, -left, singular)
            length = _length(np.append(step[:n], step[-1]))
            step *= min(1.0, _LONGEST / length) if far and length > 0.0 else 1.0
            x = self.equations.coordinates.moved(x, self.scales * step[:n])
            held_from = len(point.errors)
            weights = self._weights(point)
            reactions = reactions + weights[held_from:] * step[n + held_from : -1]
            load += UNIT_LOAD * step[-1]
            moved += np.append(step[:n], step[-1])
            if length < _CLOSE or (iteration > 2 and before <= length < _NOISE):
                return x, reactions, load, moved, linear if length < _SAME else None
            before = length
        raise LostError

    def _point(
        self,
        x: FloatArray,
        reactions: FloatArray,
        load: float,
        held: FloatArray,
        linear: _Linear | None,
        *,
        singular: bool = False,
    ) -> CurvePoint:
        """Return a point with its tangent, which goes on in a direction."""
        n = len(self.scales)
        if linear is None:
            linear = self._linear(x, reactions, load)
        else:
            self._place(x, load)
        point, matrix, pull = linear
        if not (singular or point.is_closed):
            raise LostError
        ahead = np.append(np.zeros(len(matrix)), 1.0)
        along = held
        self._most = max(self._most, len(point.errors))
        if len(point.errors) == self._most:  # else constraints depend on each other here alone
            step = self._solved(matrix, pull, held, ahead, singular)
            along = np.append(step[:n], step[-1])
        asymmetry = point.asymmetry(self.scales)
        stiffnesses = self._stiffnesses(point, asymmetry <= SLIGHT)
        along = along / _length(along)
        return CurvePoint(x, reactions, load, along, stiffnesses, self._rows(point), asymmetry)

    def _place(self, x: FloatArray, load: float) -> None:
        """Set states and variables."""
        variables = self._leg.variables
        self.equations.set_variables(variables[0] + load * (variables[1] - variables[0]))
        self.equations.move_to(x)

    def _linear(self, x: FloatArray, reactions: FloatArray, load: float) -> _Linear:
        """Return the equations at a point: minus their derivatives by increments and μ, and by λ.

        All is scaled, so that rows are what columns are.
        """
        variables, held = self._leg.variables, self._leg.held
        self._place(x, load)
        try:
            point = self.equations.point(reactions)
        except EvaluationError as error:
            self.refusal = error
            raise LostError from error
        weights, units = self._weights(point)[:, np.newaxis], self._row_scales(point)
        K = units[:, np.newaxis] * point.stiffness * self.scales
        H = weights * _rows(point) * self.scales
        C = H
        if point.pushes.size:
            C = weights * np.vstack([point.pushes, point.directions]) * self.scales
        matrix = np.block([[K, -C.T], [-H, np.zeros((len(H), len(H)))]])
        change = variables[1] - variables[0]
        kept = np.concatenate(
            [point.error_slopes @ change, point.stroke_slopes @ change - (held[1] - held[0])]
        )
        along = point.loads @ change
        if self._leg.released is not None:
            along = along + self._leg.released
        pull = np.concatenate([units * along, weights[:, 0] * kept])
        return point, matrix, UNIT_LOAD * pull

    def _left(self, point: StaticPoint, load: float) -> FloatArray:
        """Return what is left of the equations, scaled."""
        held = self._leg.held
        strokes = point.strokes - (held[0] + load * (held[1] - held[0]))
        missing = np.concatenate([point.errors, strokes])
        forces = point.forces
        if self._leg.released is not None:
            forces = forces - (1.0 - load) * self._leg.released
        return np.concatenate([self._row_scales(point) * forces, self._weights(point) * missing])

    def _row_scales(self, point: StaticPoint) -> FloatArray:
        """Return what forces are scaled by; rates of other states, to rows as large as theirs.

        So it does not matter how slowly a controller integrates beside how stiff a mechanism is.
        """
        d, scales = point.num_displacements, self.scales.copy()
        rows = np.max(np.abs(point.stiffness * scales), axis=1, initial=0.0)
        largest = np.max(scales[:d] * rows[:d], initial=0.0)
        fits = (rows[d:] > 0.0) & np.isfinite(rows[d:]) & np.isfinite(largest) & (largest > 0.0)
        scales[d:] = np.divide(largest, rows[d:], out=scales[d:], where=fits)
        return scales

    def _weights(self, point: StaticPoint) -> FloatArray:
        """Return what constraints and holders are scaled by, to rows as large as those of K."""
        largest = np.max(np.abs(self.scales[:, np.newaxis] * point.stiffness * self.scales))
        rows = np.max(np.abs(_rows(point) * self.scales), axis=1, initial=0.0)
        fits = (rows > 0.0) & np.isfinite(rows) & np.isfinite(largest) & (largest > 0.0)
        weights: FloatArray = np.divide(largest, rows, out=np.ones_like(rows), where=fits)
        return weights

    def _solved(
        self,
        matrix: FloatArray,
        pull: FloatArray,
        held: FloatArray,
        right: FloatArray,
        singular: bool,
    ) -> FloatArray:
        """Solve the linear equations, and one for a direction; raise where that is impossible."""
        k = len(matrix) - len(self.scales)
        last = np.concatenate([held[:-1], np.zeros(k), held[-1:]])
        bordered = np.vstack([np.column_stack([-matrix, pull]), last])
        if not (np.isfinite(bordered).all() and np.isfinite(right).all()):
            self._note_refusal()
            raise LostError
        try:
            step: FloatArray = np.linalg.solve(bordered, right)
        except np.linalg.LinAlgError as error:
            if not singular:
                raise LostError from error
            step = np.linalg.lstsq(bordered, right, rcond=1e-14)[0]
        if not np.isfinite(step).all():
            raise LostError
        return step

    def _note_refusal(self) -> None:
        """Learn from the equations themselves why something is not finite."""
        try:
            self.equations.forces()
        except EvaluationError as error:
            self.refusal = error

    def _stiffnesses(self, point: StaticPoint, is_symmetric: bool) -> FloatArray:
        """Return the eigenvalues of the scaled stiffness where holders leave it free.

        Columns of other states are as large as those of displacements. Positive factors of rows and
        columns do not change whether a small displacement takes work, and rounding does.
        """
        d, rows, columns = point.num_displacements, self._row_scales(point), self.scales.copy()
        K = rows[:, np.newaxis] * point.stiffness
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
