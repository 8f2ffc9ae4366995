"""Path following along equilibria: steps, stations, and points where stability changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from flexure.solvers.analysis.forces_at_rest.curve_points import Crossing, CurvePoint, LostError
from flexure.solvers.analysis.forces_at_rest.equilibrium_curve import UNIT_LOAD, EquilibriumCurve
from flexure.solvers.analysis.forces_at_rest.singular_points import (
    crossing_between,
    with_regular_rows,
)

_FIRST = 0.2  # length of the first step
_LONGEST, _SHORTEST = 1.0, 1e-7
_WANTED = 0.03  # correction in parts of the prediction
_PULLED = 1e-4  # pull of the load, from which on it turns; see `Crossing`
_FARTHEST = 10.0  # legs before the beginning
#: Kinds of special points at which another path crosses.
CROSSED = ("branch", "change point")
_DEPARTURES = (0.05, 0.01, 0.2, 0.002, 0.6)  # lengths of the first step on a branch


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
