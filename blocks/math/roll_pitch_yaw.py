"""Orientations by roll, pitch and yaw, and the rates of these angles.

The frame B is turned from A about the axes of A: by the roll r about x, then by the pitch p about
y, then by the yaw y about z. Where cos p = 0, the axes of roll and yaw are in line: the angles are
in gimbal lock, and only the sum or the difference of roll and yaw is defined.

Angles and their extraction are those of Drake 1.51 (class RollPitchYaw), also at half turns and in
gimbal lock.
"""

from __future__ import annotations

import numpy as np

from flexure.blocks.math.quaternions import (
    canonical_quaternion,
    normalized_quaternion,
    quaternion_from_rotation,
    rotation_from_quaternion,
)
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array

_EPSILON = 2.0**-52


def rotation_from_rpy(rpy: Array) -> Array:
    """Return the rotation matrix R_AB = Rz(y) Ry(p) Rx(r).

    Parameters
    ----------
    rpy : array_like, shape (3,)
        Roll, pitch and yaw in rad, of any size.

    Returns
    -------
    array, shape (3, 3)

    See Also
    --------
    rpy_from_rotation : Compute roll.

    Examples
    --------
    >>> rotation_from_rpy([0.0, 0.0, np.pi / 6]) @ [2.0, 0.0, 0.0]
    array([1.73205081, 1.        , 0.        ])
    """
    roll, pitch, yaw = rpy
    cr, sr = np.cos(roll), np.sin(roll)
    cp, sp = np.cos(pitch), np.sin(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return scalars.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_from_rotation(R_AB: Array) -> Array:
    """Return roll, pitch and yaw of a rotation matrix.

    With the canonical quaternion e of R_AB::

        p = atan2(-R₂₀, √((R₀₀² + R₁₀² + R₂₁² + R₂₂²) / 2))
        r = a - b,  y = a + b,  each moved by a turn if outside of [-π, π]
        a = atan2(e₁ + e₃, e₀ - e₂),  b = atan2(e₃ - e₁, e₀ + e₂)

    where a or b is 0 if none of its two arguments exceeds 2⁻⁵² in magnitude.

    Parameters
    ----------
    R_AB : array_like, shape (3, 3)
        A rotation matrix.

    Returns
    -------
    array, shape (3,)
        Roll in [-π, π], pitch in [-π/2, π/2], yaw in [-π, π], in rad. In gimbal lock roll and yaw
        share evenly what is defined: r = -y for p = π/2, and r = y for p = -π/2.

    See Also
    --------
    rotation_from_rpy : Compute the rotation matrix R_AB = Rz(y) Ry(p) Rx(r).

    Notes
    -----
    ``rotation_from_rpy`` of the result is R_AB to a few 1e-16 everywhere. Close to gimbal lock
    roll and yaw by themselves are only as accurate as 1e-16 / cos p. Derivatives are finite
    everywhere; in gimbal lock they leave out what is not defined.

    Examples
    --------
    >>> rpy_from_rotation(rotation_from_rpy([0.1, 0.2, 0.3]))
    array([0.1, 0.2, 0.3])
    >>> rpy_from_rotation(rotation_from_rpy([0.5, np.pi / 2, 0.1]))
    array([ 0.2       ,  1.57079633, -0.2       ])
    """
    return _rpy_of(quaternion_from_rotation(R_AB), R_AB)


def rpy_from_quaternion(q_AB: Array) -> Array:
    """Return roll, pitch and yaw of a quaternion.

    Parameters
    ----------
    q_AB : array_like, shape (4,)
        A quaternion that is not zero; sign and length do not matter.

    Returns
    -------
    array, shape (3,)
        In the ranges that `rpy_from_rotation` states.

    See Also
    --------
    rpy_from_rotation : Compute roll.

    Examples
    --------
    >>> rpy_from_quaternion([0.0, 0.0, 1.0, 0.0])
    array([3.14159265, 0.        , 3.14159265])
    """
    unit = canonical_quaternion(normalized_quaternion(q_AB))
    return _rpy_of(unit, rotation_from_quaternion(unit))


def _rpy_of(e: Array, R: Array) -> Array:
    """Return the angles of an orientation that is given in both ways."""
    (r00, _, _), (r10, _, _), (r20, r21, r22) = R
    cos_pitch = np.sqrt(0.5 * (r00 * r00 + r10 * r10 + r21 * r21 + r22 * r22))
    a = _angle(e[1] + e[3], e[0] - e[2])
    b = _angle(e[3] - e[1], e[0] + e[2])
    return scalars.array([_wrapped(a - b), np.arctan2(0.0 - r20, cos_pitch), _wrapped(a + b)])


def _angle(y: Array, x: Array) -> Array:
    """Return atan2(y, x), or zero where both arguments are nothing but rounding errors."""
    undefined = (np.abs(y) <= _EPSILON) & (np.abs(x) <= _EPSILON)
    # Adding zero turns -0.0 into 0.0, so that a half turn is one by +π. The sign of a zero x is of
    # no importance, which is worth saying too: then less has to be computed of what makes x.
    y = scalars.where(undefined, 0.0, y + 0.0)
    return np.arctan2(y, scalars.where(undefined, 1.0, x + 0.0))


def _wrapped(angle: Array) -> Array:
    """Move an angle by one turn if it is outside of [-π, π]."""
    turns = scalars.where(angle > np.pi, 1.0, scalars.where(angle < -np.pi, -1.0, 0.0))
    return angle - 2.0 * np.pi * turns


def cos_pitch(rpy: Array) -> Array:
    """Return cos p, which measures how far the angles are from gimbal lock.

    Rates of the angles are up to 1/|cos p| times as large as the angular velocity. Drake refuses to
    compute them below 0.008 in its bushing, and below 0.001 in its ball joint.

    >>> float(cos_pitch([0.1, 0.0, 0.3]))
    1.0
    """
    return np.cos(rpy[1])


def rpy_rate_matrix(rpy: Array) -> Array:
    """Return the matrix N that maps the angular velocity to the rates of the angles.

    q̇ = N w_AB_A with q = (r, p, y)::

            ⎡ cos y / cos p   sin y / cos p   0 ⎤
        N = ⎢    -sin y           cos y       0 ⎥
            ⎣ cos y tan p     sin y tan p     1 ⎦

    It is the inverse of `rpy_velocity_matrix`, and does not exist in gimbal lock; see `cos_pitch`.

    >>> rpy_rate_matrix([0.1, 0.0, np.pi / 6]) @ [2.0, 0.0, 3.0]
    array([ 1.73205081, -1.        ,  3.        ])
    """
    _, pitch, yaw = rpy
    cp, tp = np.cos(pitch), np.tan(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return scalars.array([[cy / cp, sy / cp, 0.0], [-sy, cy, 0.0], [cy * tp, sy * tp, 1.0]])


def rpy_velocity_matrix(rpy: Array) -> Array:
    """Return the matrix N⁺ that maps the rates of the angles to the angular velocity.

    w_AB_A = N⁺ q̇ with q = (r, p, y); its columns are the axes about which the angles turn::

             ⎡ cos y cos p   -sin y   0 ⎤
        N⁺ = ⎢ sin y cos p    cos y   0 ⎥
             ⎣   -sin p         0     1 ⎦

    It is singular in gimbal lock.

    >>> rpy_velocity_matrix([0.1, 0.0, np.pi / 6]) @ [2.0, 0.0, 3.0]
    array([1.73205081, 1.        , 3.        ])
    """
    _, pitch, yaw = rpy
    cp, sp = np.cos(pitch), np.sin(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return scalars.array([[cy * cp, -sy, 0.0], [sy * cp, cy, 0.0], [-sp, 0.0, 1.0]])


def rpy_velocity_matrix_rate(rpy: Array, rpy_rate: Array) -> Array:
    """Return dN⁺/dt in 1/s, the rate of the matrix that `rpy_velocity_matrix` gives.

    >>> rpy_velocity_matrix_rate([0.1, 0.0, 0.0], [1.0, 2.0, 3.0]) @ [1.0, 2.0, 3.0]
    array([-6.,  3., -2.])
    """
    _, pitch, yaw = rpy
    _, dp, dy = rpy_rate
    cp, sp = np.cos(pitch), np.sin(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return scalars.array(
        [
            [-sy * cp * dy - cy * sp * dp, -cy * dy, 0.0],
            [cy * cp * dy - sy * sp * dp, -sy * dy, 0.0],
            [-cp * dp, 0.0, 0.0],
        ]
    )


def rpy_acceleration(rpy: Array, rpy_rate: Array, alpha_AB_A: Array) -> Array:
    """Return the accelerations of the angles: q̈ = N (α_AB_A - dN⁺/dt q̇) with q = (r, p, y).

    In rad/s², from rates in rad/s; not in gimbal lock, see `cos_pitch`.

    >>> rpy_acceleration([0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    array([ 6., -3.,  2.])
    """
    bias = rpy_velocity_matrix_rate(rpy, rpy_rate) @ rpy_rate
    return rpy_rate_matrix(rpy) @ (alpha_AB_A - bias)
