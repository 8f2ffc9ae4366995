"""Poses as people give them, and as they travel on wires."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array

#: What stands for a pose: the pair (R, p), or the position p alone.
PoseLike: TypeAlias = "tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike"
#: Size of a pose on a wire: the rotation matrix R_WB row by row, then the position p_WB.
POSE_SIZE = 12

_ORTHOGONALITY = 1e-9


def checked_pose(pose: PoseLike | None, attempt: str) -> RigidTransform:
    """Return a copy of a pose that is finite and has a rotation matrix, else raise."""
    if pose is None:
        return RigidTransform(np.eye(3), np.zeros(3))
    try:
        given: Any = pose
        parts = given if len(given) == 2 else (np.eye(3), given)
        R, p = (np.array(part, dtype=float) for part in parts)
    except (TypeError, ValueError, OverflowError):
        R = p = np.empty(0)
    if R.shape != (3, 3) or p.shape != (3,):
        raise DeclarationError(
            attempt,
            expected="a pair (R, p) of a rotation matrix and a position, or a position alone",
            found=" ".join(f"{pose!r:.200}".split()),
        )
    error = np.max(np.abs(R @ R.T - np.eye(3)))
    if not (np.isfinite(p).all() and error <= _ORTHOGONALITY and np.linalg.det(R) > 0.0):
        raise DeclarationError(
            attempt,
            expected="a finite position, and a matrix R with R Rᵀ = 1 and determinant 1",
            found=f"R = {R.tolist()} and p = {p.tolist()}",
            remedy="Make rotations with rotation_from_rpy, rotation_about or similar functions",
        )
    return RigidTransform(R, p)


def pose_from_wire(values: Array) -> RigidTransform:
    """Return the pose that travels on a wire as twelve numbers."""
    return RigidTransform(values[:9].reshape(3, 3), values[9:])


def pose_on_wire(X_WB: tuple[Array, Array]) -> list[Array]:
    """Return a pose as it travels on a wire, as parts that are laid end to end."""
    R_WB, p_WB = X_WB
    return [*R_WB, p_WB]
