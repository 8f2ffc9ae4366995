"""Coordinates that are proportional, and cams: followers that move as a table gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constraints.coordinate_constraints import HolonomicConstraint
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import LeafSystem, scalars
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.values.arrays import (
    Array,
    FloatArray,
    as_number,
    as_numbers,
    bounded,
    check_bounds,
    freeze,
    show,
)
from flexure.diagrams.values.parameters import NumericParameter

#: A joint with one position, or a joint with the suffix of one of its positions.
Coordinate: TypeAlias = Joint | tuple[Joint, str]
#: Beyond it, the square of a ratio by which coordinates move each other is soon infinite.
LARGEST_RATIO = 1e100


@dataclass(frozen=True, eq=False)
class Gearing:
    """Coordinates that are proportional, Σ c_k q_k = b, and the constants that say how."""

    coordinates: tuple[tuple[Joint, int], ...]  # joints, and which of their positions
    parameter: str  # what the constants n are called, such as ``"ratio"``
    constants: FloatArray  # their default values, a number or a vector
    # factors_at_zero, factor_slopes: each factor c is constant, or linear in the constants,
    # shapes (k,) and (k, m).
    factors_at_zero: FloatArray
    factor_slopes: FloatArray
    offset: float  # the default value of b
    # unit, doc: unit and description of the constants.
    unit: str = ""
    doc: str = ""
    lower: float = -np.inf  # what the constants have to exceed

    @property
    def joints(self) -> list[Joint]:
        """The joints, each one once."""
        return list(dict.fromkeys(joint for joint, _ in self.coordinates))

    def factors(self, constants: Array) -> Array:
        """Return c for the constants n, without terms that are zero in any case."""
        numbers = np.reshape(constants, (-1,))
        factors = []
        for zero, slopes in zip(self.factors_at_zero, self.factor_slopes, strict=True):
            terms = [slopes[k] * numbers[k] for k in np.flatnonzero(slopes)]
            factors.append(sum(terms[1:], terms[0]) if terms else zero)
        return scalars.array(factors)

    @property
    def places(self) -> list[int]:
        """Where the coordinates are among the positions of all joints."""
        ends = np.cumsum([0, *(joint.num_positions for joint in self.joints)])
        starts = dict(zip(self.joints, map(int, ends), strict=False))
        return [starts[joint] + k for joint, k in self.coordinates]

    def declare(
        self, block: LeafSystem, prefix: str = "", *, allow_zeros: bool = False
    ) -> list[NumericParameter]:
        """Declare the constants and the offset as parameters of a block.

        Zeros, with which a coordinate is not coupled, are harmless where a coupling gives way.
        """
        constants = block.declare_numeric_parameter(
            f"{prefix}{self.parameter}",
            self.constants,
            unit=self.unit,
            lower=self.lower,
            exclusive=self.lower == 0.0,
            problem=self.excess if allow_zeros else self.problem,
            doc=self.doc,
        )
        offset = block.declare_numeric_parameter(
            f"{prefix}offset", self.offset, doc="sum of factors times positions"
        )
        return [constants, offset]

    def problem(self, constants: FloatArray) -> str | None:
        """Say which constants mean nothing."""
        return self.excess(constants) if np.all(constants) else f"a zero in {self.parameter}"

    def excess(self, constants: FloatArray) -> str | None:
        """Say which constants are so large that masses seen through them are infinite."""
        if np.max(np.abs(constants)) <= LARGEST_RATIO:
            return None
        return f"{show(constants)} as {self.parameter}, beyond {LARGEST_RATIO:g}"


def gearing(
    attempt: str,
    coordinates: Sequence[Coordinate],
    parameter: str,
    constants: npt.ArrayLike,
    slopes: npt.ArrayLike,
    offset: float,
    *,
    at_zero: npt.ArrayLike = 0.0,
    **options: Any,
) -> Gearing:
    """Return a gearing of checked coordinates and constants.

    A coordinate is a joint, or a joint with the suffix of a position. ``slopes`` are the
    derivatives of the factors by the constants, of shape (k,) or (k, m); ``at_zero`` are factors
    that are constant.
    """
    pairs = tuple(_coordinate(each, attempt) for each in coordinates)
    if len(set(pairs)) < len(pairs) or not pairs:
        names = [f"'{joint.name}' [{joint.POSITION_SUFFIXES[k]}]" for joint, k in pairs]
        raise DeclarationError(
            attempt,
            expected="different coordinates, at least one",
            found=", ".join(names) or "none",
            remedy="Use each of them once, with the sum of its factors",
        )
    matrix = np.reshape(np.asarray(slopes, dtype=float), (len(pairs), -1))
    what = f"{attempt} with this {parameter}"
    shape = np.shape(np.asarray(constants, dtype=object))
    numbers = as_number(constants, shape, what)
    count = matrix.shape[1]
    wanted = "one number" if count == 1 else f"{count} numbers"
    require(numbers.size == count, constants, what, wanted)
    check_bounds(numbers, what)
    number = bounded(offset, f"{attempt} with this offset")
    zeros = np.broadcast_to(np.asarray(at_zero, dtype=float), len(pairs))
    made = Gearing(pairs, parameter, numbers, zeros, matrix, number, **options)
    if made.excess(numbers) is not None:
        raise ValueRefusedError(
            attempt, expected=f"{parameter} within ±{LARGEST_RATIO:g}", found=show(numbers)
        )
    if made.problem(numbers) is not None or np.min(numbers) <= made.lower:
        verb = "are" if numbers.ndim else "is"
        bound = f"greater than {made.lower:g}" if made.lower == 0.0 else "not zero"
        raise ValueRefusedError(
            attempt, expected=f"{parameter} that {verb} {bound}", found=show(numbers)
        )
    return made


def _coordinate(value: object, attempt: str) -> tuple[Joint, int]:
    """Return a joint, and which of its positions."""
    joint, suffix = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    require(isinstance(joint, Joint), value, attempt, "a joint", error=DeclarationError)
    assert isinstance(joint, Joint)
    if suffix is None and joint.num_positions == 1:
        return joint, 0
    if suffix in joint.POSITION_SUFFIXES:
        return joint, joint.POSITION_SUFFIXES.index(suffix)
    names = ", ".join(repr(each) for each in joint.POSITION_SUFFIXES) or "none"
    raise DeclarationError(
        attempt,
        expected="joints with one position, or a joint with the name of a position",
        found=f"the {joint.type_name} joint '{joint.name}', which has {joint.num_positions}",
        remedy=f"Name one, as in (joint, name); there are {names}",
    )


_FEWEST = 4  # points
_SAME = 1e-6  # part of the stroke by which both ends may differ, where the table has both
#: Second difference of the curvature at three points, over the largest curvature: 2.2 where the
#: acceleration jumps between two constants, 2.5 at a corner, 3.3 at a jump, up to 4 for noise, and
#: below 2.1 for cams of whose rises the points show five parts. A corner between two points cannot
#: be told from a rounded one.
_ROUGHEST = 2.3


class CamFollower(HolonomicConstraint):
    """A follower moved by a rotating cam, with a table of lifts over angles.

    With the position q of the follower, the angle θ of the cam, and the periodic cubic spline s
    through the points of the table, which has two continuous derivatives::

        φ = q - s(θ) = 0,    q̇ = s'(θ) θ̇,    q̈ = s'(θ) θ̈ + s''(θ) θ̇²

    The multiplier is the force of the cam on the follower along q, in N or N m, also the output
    ``<name>.contact_force``. A real follower would lift off where that is negative, as the output
    ``<name>.lift_off`` tells by a 1; this one does not.

    Parameters
    ----------
    name : str
        Name within the plant.
    cam, follower : Joint
        Joints with one position: what turns, and what slides or swings.
    angles : array_like, shape (n,)
        Strictly increasing angles of the cam in rad, at least four, over one turn at most.
    lifts : array_like, shape (n,)
        Positions of the follower there, in m or rad. Where the angles span a whole turn, the first
        is the last.

    Attributes
    ----------
    angles, lifts : ndarray
        The points, with the first one again at the end.

    Raises
    ------
    DeclarationError
        When the angles do not increase, or span more than a turn, or there are not as many lifts,
        or these do not close after a turn, or have a corner, a jump or noise, where accelerations
        mean nothing.

    See Also
    --------
    Bumper : A stop that a cam may push.
    GearPair : A constant ratio of two joints.

    Notes
    -----
    The table is structure, not a parameter. The work for one value is proportional to the number of
    points; a few dozen are enough for smooth cams.

    Examples
    --------
    >>> import numpy as np
    >>> import flexure as fx
    >>> turned = np.deg2rad(np.arange(0.0, 360.0, 15.0))
    >>> shaft, guide = (
    ...     kind(name, fx.Body("frame"), fx.Body(name), axis=(0, 0, 1))
    ...     for kind, name in ((fx.RevoluteJoint, "cam"), (fx.PrismaticJoint, "valve"))
    ... )
    >>> cam = fx.constraints.CamFollower(
    ...     "lobe", shaft, guide, turned, 5e-3 * (1.0 - np.cos(turned))
    ... )
    >>> cam.lift(np.pi), cam.lift(np.pi, derivative=2).round(5)
    (np.float64(0.01), np.float64(-0.005))
    """

    contact_equation = 0

    def __init__(
        self, name: str, cam: Joint, follower: Joint, angles: npt.ArrayLike, lifts: npt.ArrayLike
    ) -> None:
        attempt = f"Cannot make constraint '{name}'"
        for joint in (cam, follower):
            require(isinstance(joint, Joint), joint, attempt, "a joint", error=DeclarationError)
            if joint.num_positions != 1:
                raise DeclarationError(
                    attempt,
                    expected="joints with one position",
                    found=f"the {joint.type_name} joint '{joint.name}'",
                )
        self.angles, self.lifts = _table(angles, lifts, attempt)
        from scipy.interpolate import CubicSpline

        self._spline = CubicSpline(self.angles, self.lifts, bc_type="periodic")
        _require_smooth(self.angles, self._spline(self.angles[:-1], 2), attempt)
        super().__init__(name, [cam, follower], lambda q, t: q[1] - self._evaluated(q[0]))

    def lift(self, angle: npt.ArrayLike, derivative: int = 0) -> Any:
        """Return the lift, or a derivative of it by the angle, at angles of any shape.

        Parameters
        ----------
        angle : array_like
            Angles of the cam in rad.
        derivative : int
            0 for the lift, 1 and 2 for what velocities and accelerations are made of.
        """
        attempt = f"Cannot evaluate the lift of '{self.name}'"
        numbers = as_numbers(angle, attempt)
        order = float(as_number(derivative, (), attempt))
        require(order in (0.0, 1.0, 2.0), derivative, attempt, "a derivative of 0, 1 or 2")
        return self._spline(numbers, int(order))[()]

    def _evaluated(self, angle: Array) -> Array:
        """Return the lift with the polynomial of the interval that an angle is in."""
        first, turn = self.angles[0], 2.0 * np.pi
        x = angle - turn * np.floor((angle - first) / turn)
        rows = np.vstack([self._spline.c, self.angles[:-1]])
        found: list[Any] = list(rows[:, 0])
        for row in rows[:, 1:].T:
            found = [np.where(x >= row[-1], *each) for each in zip(row, found, strict=True)]
        a, b, c, d, start = found
        u = x - start
        return ((a * u + b) * u + c) * u + d


def _table(
    angles: npt.ArrayLike, lifts: npt.ArrayLike, attempt: str
) -> tuple[FloatArray, FloatArray]:
    """Return angles and lifts over a whole turn."""
    x, y = (as_numbers(each, attempt) for each in (angles, lifts))
    if x.ndim != 1 or x.shape != y.shape or len(x) < _FEWEST:
        raise DeclarationError(
            attempt,
            expected=f"at least {_FEWEST} angles, and as many lifts",
            found=f"angles of shape {x.shape}, lifts of shape {y.shape}",
        )
    for what, numbers in (("angles", x), ("lifts", y)):
        most = LARGEST_RATIO
        check_bounds(numbers, f"{attempt} with these {what}", lower=-most, upper=most)
    falling = np.flatnonzero(np.diff(x) <= 0.0)
    if falling.size:
        k = int(falling[0])
        raise DeclarationError(
            attempt,
            expected="angles that increase strictly",
            found=f"{x[k]:.6g} rad and then {x[k + 1]:.6g} rad",
            remedy="Sort the table, and remove repeated angles",
        )
    turn, span = 2.0 * np.pi, float(x[-1] - x[0])
    if span > turn * (1.0 + 1e-9):
        raise DeclarationError(
            attempt,
            expected="angles over one turn, in rad",
            found=f"{span:.6g} rad from the first to the last",
            remedy="Convert degrees by np.deg2rad, and pass one turn only",
        )
    if span < turn * (1.0 - 1e-9):
        x, y = np.append(x, x[0] + turn), np.append(y, y[0])
    elif abs(y[-1] - y[0]) > _SAME * np.ptp(y):
        raise DeclarationError(
            attempt,
            expected="the same lift at the beginning and the end of a turn",
            found=f"{y[0]:.6g} and {y[-1]:.6g}",
        )
    y = y.copy()
    y[-1] = y[0]
    return freeze(x), freeze(y)


def _require_smooth(angles: FloatArray, curvatures: FloatArray, attempt: str) -> None:
    """Refuse tables whose curvature goes up and down from point to point."""
    bends = np.roll(curvatures, 1) - 2.0 * curvatures + np.roll(curvatures, -1)
    k = int(np.argmax(np.abs(bends)))
    if abs(bends[k]) > _ROUGHEST * np.max(np.abs(curvatures)):
        around = ", ".join(f"{curvatures[(k + i) % len(curvatures)]:.3g}" for i in (-1, 0, 1))
        raise DeclarationError(
            attempt,
            expected="a smooth table, from which accelerations can be computed",
            found=f"a corner, a jump or noise at {angles[k]:.6g} rad: lift'' is {around} at this "
            "point and its neighbors",
            remedy="Round corners, smooth measured lifts, or give more points there",
        )
