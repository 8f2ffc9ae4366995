"""Poses as users give them, and motions of bodies, seen from the world or a moving frame."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, cross, shift_spatial_velocity
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


class Placement(NamedTuple):
    """Where a body B is, and how it can move in the body P that is next to it inboard."""

    # R_WB, p_WB: pose of B in the world, shapes (3, 3) and (3,).
    R_WB: Array
    p_WB: Array
    p_PB_W: Array  # position of Bo from Po, expressed in the world, shape (3,)
    # Spatial velocity of B in P at Bo per velocity of the joint: V_PB_W = H_PB_W v, shape (6, nv).
    H_PB_W: Array
    X_PB: RigidTransform  # pose of B in P


class BodyMotion(NamedTuple):
    """How a body B moves."""

    V_WB: Array  # spatial velocity of B in the world at Bo, expressed in the world, shape (6,)
    # What is left of the spatial acceleration of B when neither the body P inboard of it nor the
    # velocities of the joint change: Coriolis and centripetal terms, and those of Ḣ v, shape (6,).
    A_bias: Array


class PointMotion(NamedTuple):
    """How a body moves at its point P, expressed in the world."""

    p_WP: Array  # position of P in the world, shape (3,)
    # V, A: spatial velocity and acceleration of the body at P, shape (6,).
    V: Array
    A: Array


def motion_at(placement: Placement, motion: BodyMotion, A_WB: Array, p_BP: Array) -> PointMotion:
    """Return the motion of a body B at its point P, measured in the world.

    A_WB is the spatial acceleration of B at Bo, expressed in the world; p_BP is in m, expressed in
    B.
    """
    p, w = placement.R_WB @ p_BP, motion.V_WB[:3]
    A = shift_spatial_velocity(A_WB, p)
    centripetal = cross(w, cross(w, p))
    return PointMotion(
        placement.p_WB + p,
        shift_spatial_velocity(motion.V_WB, p),
        np.concatenate([A[:3], A[3:] + centripetal]),
    )


def seen_from(M: PointMotion, P: PointMotion) -> PointMotion:
    """Return the motion at P as it is measured in a frame at M, expressed in the world.

    With r = p_MP and the motions (w, v) and (α, a) of both in the world::

        w_MP = w_P - w_M
        v_MP = v_P - v_M - w_M × r
        α_MP = α_P - α_M - w_M × w_MP
        a_MP = a_P - a_M - α_M × r - w_M × (w_M × r) - 2 w_M × v_MP

    Velocities are the rates of the pose in M as they are seen there, accelerations those of
    velocities.
    """
    r, w = P.p_WP - M.p_WP, M.V[:3]
    V = P.V - shift_spatial_velocity(M.V, r)
    A = P.A - shift_spatial_velocity(M.A, r)
    alpha = A[:3] - cross(w, V[:3])
    a = A[3:] - cross(w, cross(w, r)) - 2.0 * cross(w, V[3:])
    return PointMotion(P.p_WP, V, np.concatenate([alpha, a]))
