"""Cams that are given by a table, and the followers that they move."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constraints.coordinate_constraints import HolonomicConstraint
from flexure.blocks.multibody.constraints.gearing import LARGEST_RATIO
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import (
    Array,
    FloatArray,
    as_number,
    as_numbers,
    check_bounds,
    freeze,
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
