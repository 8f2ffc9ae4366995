"""Checks of the values that define a joint or set its motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import (
    RigidTransform,
    canonical_quaternion,
    quaternion_from_rotation,
    rotation_from_quaternion,
)
from flexure.blocks.multibody.bodies.body_motion import checked_pose
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.values.arrays import (
    FloatArray,
    as_finite,
    as_number,
    as_numbers,
    freeze,
    show,
)

_EPSILON = 2.0**-52


def spread(value: npt.ArrayLike, size: int, attempt: str) -> FloatArray:
    """Return a vector: a number for all components, or one for each."""
    numbers = as_numbers(value, attempt)
    vector: FloatArray = as_number(
        np.full(size, numbers) if numbers.ndim == 0 else numbers, (size,), attempt
    )
    return vector


def parts_of_pair(pair: object, attempt: str, wanted: str) -> tuple[Any, Any]:
    """Return the two parts of a tuple or list, else raise ValueRefusedError."""
    if isinstance(pair, (tuple, list)) and len(pair) == 2:
        return pair[0], pair[1]
    raise ValueRefusedError(attempt, expected=wanted, found=f"{pair!r:.200}")


def pair_of_limits(limits: object, attempt: str) -> tuple[Any, Any]:
    """Return lower and upper limits, infinite ones when none are given."""
    if limits is None:
        return -np.inf, np.inf
    return parts_of_pair(limits, attempt, "a pair (lower, upper) of limits")


def checked_index(index: object, count: int, attempt: str) -> int:
    """Return an index below a count, else raise ValueRefusedError."""
    if isinstance(index, (int, np.integer)) and 0 <= index < count:
        return int(index)
    raise ValueRefusedError(attempt, expected=f"an index below {count}", found=repr(index))


def unit_axis(axis: npt.ArrayLike, attempt: str) -> FloatArray:
    """Return the unit vector along an axis; one along a coordinate axis has exact components."""
    number = as_finite(axis, (3,), attempt)
    size = np.max(np.abs(number))
    if size <= _EPSILON:
        raise ValueRefusedError(
            attempt,
            expected="an axis with a component of more than 2.2e-16 in magnitude",
            found=show(number),
        )
    scaled = number / size + 0.0  # which turns -0.0 into 0.0
    unit: FloatArray = freeze(scaled / np.linalg.norm(scaled))
    return unit


def quaternion_problem(quaternion: FloatArray) -> str | None:
    """Say what is wrong with a quaternion whose direction is lost in rounding or overflows."""
    length = np.max(np.abs(quaternion))
    if _EPSILON <= length <= 1.0 / _EPSILON:
        return None
    return (
        f"a quaternion (w, x, y, z) = {show(quaternion)}, whose length is not between 2.2e-16 "
        "and 4.5e15; the identity is (1, 0, 0, 0)"
    )


def as_pose(X: object, attempt: str) -> RigidTransform:
    """Return a pose (R, p) of a rotation matrix and a position, else raise ValueRefusedError."""
    R, p = parts_of_pair(X, attempt, "a pair (R, p) of a rotation matrix and a position")
    pose = RigidTransform(as_finite(R, (3, 3), attempt), as_finite(p, (3,), attempt))
    try:
        return checked_pose(pose, attempt)
    except DeclarationError as refusal:
        raise ValueRefusedError(
            attempt, expected=refusal.expected, found=refusal.found, remedy=refusal.remedy
        ) from None


def as_rotation(R: object, attempt: str) -> FloatArray:
    """Return a rotation matrix, else raise ValueRefusedError."""
    matrix: FloatArray = as_pose((R, np.zeros(3)), attempt).R
    return matrix


def pose_from_pair(pair: object, attempt: str) -> RigidTransform:
    """Return the pose of a quaternion, which need not be of unit length, and a position."""
    q, p = parts_of_pair(pair, attempt, "a pair (q, p) of a quaternion and a position")
    quaternion = as_finite(q, (4,), attempt)
    problem = quaternion_problem(quaternion)
    if problem is not None:
        raise ValueRefusedError(attempt, found=problem)
    return RigidTransform(rotation_from_quaternion(quaternion), as_finite(p, (3,), attempt))


def pair_from_pose(X: RigidTransform) -> tuple[FloatArray, FloatArray]:
    """Return a pose as a canonical quaternion and a position."""
    return canonical_quaternion(quaternion_from_rotation(X.R)), X.p
