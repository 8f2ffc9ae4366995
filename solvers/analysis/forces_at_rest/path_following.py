"""Path following along equilibria: steps, stations, special points, and homotopy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.curve_points import (
    Crossing,
    CurvePoint,
    Leg,
    LostError,
)
from flexure.solvers.analysis.forces_at_rest.equilibrium_curve import UNIT_LOAD, EquilibriumCurve
from flexure.solvers.analysis.forces_at_rest.static_coordinates import INDEPENDENT
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations

_FIRST = 0.2  # length of the first step
_LONGEST, _SHORTEST = 1.0, 1e-7
_WANTED = 0.03  # correction in parts of the prediction
_PULLED = 1e-4  # pull of the load, from which on it turns; see `Crossing`
_FARTHEST = 10.0  # legs before the beginning
#: Kinds of special points at which another path crosses.
CROSSED = ("branch", "change point")
_DEPARTURES = (0.05, 0.01, 0.2, 0.002, 0.6)  # lengths of the first step on a branch
_BESIDE = (-0.06, -0.02, 0.02, 0.06)  # parts of a step from where g seems to be zero
_NOTHING = 1e-300
_HERE = 1e-6  # value of g of a singular point
_SINGULAR = 1e-2  # least singular value there, as a part of that before
_MOST_POINTS = 300


@dataclass(frozen=True, eq=False)
class Stop:
    """A point of a path."""

    point: CurvePoint
    # Directions in which it is unstable; next to a special point, that of the side that has less.
    num_unstable: int
    station: bool = False  # whether it is at one of the wanted values
    crossing: Crossing | None = None  # what is special about it
    kind: str = ""  # what that is, as in `SpecialPoint`


class TurnedAwayError(LostError):
    """A path goes farther and farther away from the wanted values."""


class Walk:
    """A walk along the curve of one leg.

    A point is wanted at each of the ascending values ``stations`` of λ; the walk ends at the last
    one. It leaves the curve at the branch point ``branch``, counted from 1; at none for 0, and in
    the opposite direction for negative numbers.
    """

    def __init__(self, curve: EquilibriumCurve, stations: Sequence[float], branch: int = 0) -> None:
        self._curve = curve
        self._stations = np.array(stations)
        self.to_pass, self.side = abs(branch), float(np.sign(branch))
        self._length = _FIRST

    def stops(self, start: CurvePoint) -> Iterator[Stop]:
        """Yield the points behind a start, up to the last station."""
        here = start
        while True:
            length, target = self._next(here)
            try:
                there, ratio = self._curve.departed(here, here.along, length, load=target)
                passed = self._passed(here, there)
                if passed is not None:
                    length *= (passed - here.load) / (there.load - here.load)
                    target = passed
                    there, ratio = self._curve.departed(here, here.along, length, load=target)
            except LostError:
                self._length = 0.4 * min(length, self._length)
                if self._length < _SHORTEST:
                    raise
                continue
            there = with_regular_rows(there, here)
            special = self._specials(here, there, length)
            for stop in special:
                yield stop
                if stop.crossing is not None and stop.kind in CROSSED and self._leaves():
                    there = self._departed(stop.crossing)
                    target = None
                    break
            yield Stop(there, there.num_unstable, station=target is not None)
            if target is not None and target >= self._stations[-1]:
                return
            if there.load < -_FARTHEST * self._stations[-1]:
                raise TurnedAwayError
            here = there
            if target is None:
                factor = float(np.clip(np.sqrt(_WANTED / max(ratio, 1e-9)), 0.5, 2.0))
                self._length = min(self._length * factor, _LONGEST)

    def _next(self, here: CurvePoint) -> tuple[float, float | None]:
        """Return the length of the next step, and the station that it leads to, if it does."""
        slope = float(here.along[-1])
        reached = here.load + UNIT_LOAD * self._length * slope
        if slope > 0.0:
            ahead = self._stations[(self._stations > here.load + 1e-12)]
            met = ahead[ahead <= reached]
            target = float(met[0]) if met.size else None
        else:
            ahead = self._stations[(self._stations < here.load - 1e-12)]
            met = ahead[ahead >= reached]
            target = float(met[-1]) if met.size else None
        if target is None:
            return self._length, None
        return (target - here.load) / (UNIT_LOAD * slope), target

    def _passed(self, here: CurvePoint, there: CurvePoint) -> float | None:
        """Return the first station between two points, which the tangent has not foreseen."""
        low, high = sorted((here.load, there.load))
        between = self._stations[(self._stations > low + 1e-12) & (self._stations < high - 1e-12)]
        if not between.size:
            return None
        return float(between[0] if there.load > here.load else between[-1])

    def _specials(self, here: CurvePoint, there: CurvePoint, length: float) -> list[Stop]:
        """Return the points between two others at which a stiffness becomes zero, in order."""
        few, many = sorted((here.num_unstable, there.num_unstable))
        crossings = [self._curve.crossing(here, there, length, k) for k in range(few, many)]
        crossings = self._curve.told_apart(crossings, length)
        step = 1 if there.num_unstable > here.num_unstable else -1
        found = [
            Stop(
                each.point,
                here.num_unstable + step * k + min(step, 0),
                crossing=each,
                kind="limit" if each.pull > _PULLED else "branch",
            )
            for k, each in enumerate(crossings)
        ]
        singular = crossing_between(self._curve, here, there, length)
        if singular is not None:
            turns = here.along[-1] * there.along[-1] < 0.0
            kind = "dead point" if turns else "change point"
            found.append(Stop(singular.point, few, crossing=singular, kind=kind))
        return found

    def _leaves(self) -> bool:
        """Count a branch point, and tell whether it is the one at which to leave the curve."""
        self.to_pass -= 1
        return self.to_pass == 0

    def _departed(self, crossing: Crossing) -> CurvePoint:
        """Return the first point on the branch at a branch point."""
        direction = np.append(self.side * crossing.direction, 0.0)
        for length in _DEPARTURES:
            try:
                there, _ = self._curve.departed(crossing.point, direction, length, stray=np.inf)
            except LostError:
                continue
            self._length = length
            return there
        raise LostError


def with_regular_rows(point: CurvePoint, before: CurvePoint) -> CurvePoint:
    """Return a point with the rows and stiffnesses of the one before, if it is singular itself."""
    if _count(point.rows) == _count(before.rows):
        return point
    return replace(
        point, rows=before.rows, resists=before.resists, calc_stiffnesses=before.calc_stiffnesses
    )


def crossing_between(
    curve: EquilibriumCurve, start: CurvePoint, end: CurvePoint, length: float
) -> Crossing | None:
    """Return the change point or dead point between two points of a path, if there is one.

    The derivatives J of all that is kept have as many independent rows at one point of a path as at
    the next. In between they lose one at a change point, at which a mechanism can go on in another
    way, and at a dead point, at which a stroke turns back, since it cannot drive the mechanism.
    With the singular values ``J₁ = U Σ Vᵀ`` of one point, the number

        g = det(Σ⁻¹ Uᵀ J₂ V)

    is 1 there, smooth along the path, and zero at the next singular point. Close to it the
    equations are almost singular, so that it is where a polynomial through points beside it says.

    ``length`` is the distance along the tangent from the one to the other.
    """
    at_end = _g(start.rows, end.rows)
    if not at_end < 0.0:
        return None
    at_start = _g(start.rows, curve.rows(start.x, start.load))
    near = [(0.0, at_start, start), (length, at_end, end)]
    if at_start < _HERE:
        return _crossing(curve, start, 0.0, start)
    with suppress(LostError):
        for _ in range(2):
            (low, g_low, _), (high, g_high, _) = _around(near)
            place = (low * g_high - high * g_low) / (g_high - g_low)
            span = high - low
            for beside in _BESIDE:
                where = min(max(place + beside * span, low), high)
                point = curve.looked(start, where)
                near.append((where, _g(start.rows, point.rows), point))
    (low, g_low, before), (high, g_high, behind) = _around(near)
    part = g_low / (g_low - g_high)
    x = (1.0 - part) * before.x + part * behind.x
    load = (1.0 - part) * before.load + part * behind.load
    coordinates = curve.equations.coordinates
    x = coordinates.moved(x, np.zeros(len(coordinates)))
    reactions = before.reactions
    if start.along[-1] * end.along[-1] > 0.0:  # where the load turns they grow without bounds
        reactions = (1.0 - part) * before.reactions + part * behind.reactions
    point = replace(before, x=x, load=load, reactions=reactions, rows=start.rows)
    return _crossing(curve, point, (1.0 - part) * low + part * high, start)


def _crossing(
    curve: EquilibriumCurve, point: CurvePoint, at: float, start: CurvePoint
) -> Crossing | None:
    """Return the crossing at a point with the motion that is not decided there."""
    _, sizes, right = np.linalg.svd(curve.rows(point.x, point.load))
    rank = _count(start.rows)
    least = np.linalg.svd(start.rows, compute_uv=False)[rank - 1]
    if sizes[rank - 1] > _SINGULAR * least:
        return None  # directions have turned far, and all is decided everywhere
    free = right[rank - 1 :]
    along = point.along[:-1] / max(float(np.linalg.norm(point.along[:-1])), _NOTHING)
    across = free - np.outer(free @ along, along)
    direction = np.linalg.svd(across)[2][0]
    first = np.argmax(np.abs(direction) > 0.999 * np.max(np.abs(direction)))
    return Crossing(point, at, direction * np.sign(direction[first]), 0.0)


def _around(
    near: list[tuple[float, float, CurvePoint]],
) -> tuple[tuple[float, float, CurvePoint], tuple[float, float, CurvePoint]]:
    """Return the last point before g becomes negative, and the first one behind."""
    ordered = sorted(near, key=lambda each: each[0])
    behind = next(k for k, (_, g, _) in enumerate(ordered) if g < 0.0)
    return ordered[behind - 1], ordered[behind]


def _count(rows: FloatArray) -> int:
    """Return the number of independent rows."""
    return int(np.linalg.matrix_rank(rows, rtol=INDEPENDENT)) if rows.size else 0


def _g(first: FloatArray, second: FloatArray) -> float:
    """Return g of the rows of two points."""
    if not first.size:
        return 1.0
    left, sizes, right = np.linalg.svd(first, full_matrices=False)
    rank = int(np.sum(sizes > INDEPENDENT * sizes[0]))
    along = left[:, :rank].T @ second @ right[:rank].T
    return float(np.linalg.det(along / sizes[:rank, np.newaxis]))


def released(
    equations: StaticEquations, size: float, x: FloatArray, held: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the states and the forces of holders of an equilibrium under the present variables.

    Forces that balance the states θ⁰ = ``x`` are gradually released (homotopy): if forces -r⁰ hold
    the mechanism there, and ĝ = ``held`` is what holders keep in the end, from λ = 0 to 1 the
    equilibria of

        r(θ) - (1 - λ) r⁰ = 0,    g(θ) = (1 - λ) g(θ⁰) + λ ĝ

    lead to an equilibrium. They are followed by their arc length, so that mechanisms that bend far
    or snap through reach it, where Newton's method alone diverges. A length of ``size``, in m,
    counts as much as a radian.
    """
    equations.move_to(x)
    variables, start = equations.variables, equations.point()
    if not np.isfinite(start.forces).all():
        raise LostError
    leg = Leg(np.array([variables, variables]), np.array([start.strokes, held]), start.forces)
    curve = EquilibriumCurve(equations, leg, size)
    point = curve.settled(x, np.zeros(len(held)), 0.0)
    for number, stop in enumerate(Walk(curve, [1.0]).stops(point)):
        if number == _MOST_POINTS:
            raise LostError
        point = stop.point
    return point.x, point.reactions
