"""Rotations given by an axis and an angle, or by their product, the rotation vector.

All components of an axis and of a rotation vector are the same in the frame A and in the turned
frame B.

A formula with sin θ / θ divides zero by zero where nothing is turned, and the length θ of a vector
has a tip there. As functions of θ² the quotients are analytic at zero, and near it they are
computed as series, so that values and derivatives of all orders that matter are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from flexure.blocks.math.quaternions import canonical_quaternion, quaternion_from_rotation
from flexure.blocks.math.vectors import axial_matrix, dot
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


def quaternion_from_axis_angle(axis: Array, angle: Array) -> Array:
    """Return the quaternion q_AB = (cos θ/2, sin θ/2 λ).

    Parameters
    ----------
    axis : array_like, shape (3,)
        Unit vector λ.
    angle : float or Symbol
        Right-handed angle θ in rad.

    Returns
    -------
    array, shape (4,)
        Unit quaternion, with w < 0 for angles between π and 3π.

    See Also
    --------
    axis_angle_from_quaternion : Compute axis and angle of the shortest rotation of a quaternion.

    Examples
    --------
    >>> quaternion_from_axis_angle([0.0, 0.0, 1.0], np.pi / 3)
    array([0.8660254, 0.       , 0.       , 0.5      ])
    """
    x, y, z = axis
    half = 0.5 * angle
    sine = np.sin(half)
    return scalars.array([np.cos(half), sine * x, sine * y, sine * z])


def axis_angle_from_quaternion(q_AB: Array) -> tuple[Array, Array]:
    """Return axis and angle of the shortest rotation of a quaternion.

    With the canonical quaternion (w, v), ``λ = v / |v|`` and ``θ = 2 atan2(|v|, w)``.

    Parameters
    ----------
    q_AB : array_like, shape (4,)
        A quaternion that is not zero; sign and length do not matter.

    Returns
    -------
    axis : array, shape (3,)
        Unit vector λ; that of x where nothing is turned, and all its derivatives are then zero.
    angle : float or Symbol
        In rad, from 0 to π. Its derivative at 0, where it has a tip, is zero.

    See Also
    --------
    quaternion_from_axis_angle : Compute the quaternion q_AB = (cos θ/2.

    Notes
    -----
    Use the rotation vector where derivatives near zero matter.

    Examples
    --------
    >>> axis, angle = axis_angle_from_quaternion([0.0, 0.0, -1.0, 0.0])
    >>> axis, float(angle)
    (array([ 0., -1.,  0.]), 3.141592653589793)
    """
    w, x, y, z = canonical_quaternion(q_AB)
    square = x * x + y * y + z * z
    sine = np.sqrt(square)
    turned = square > 0.0
    axis = np.where(turned, scalars.array([x, y, z]), [1.0, 0.0, 0.0])
    return axis / scalars.where(turned, sine, 1.0), 2.0 * np.arctan2(sine, w)


def axis_angle_from_rotation(R_AB: Array) -> tuple[Array, Array]:
    """Return axis and angle of the shortest rotation of a rotation matrix.

    Parameters
    ----------
    R_AB : array_like, shape (3, 3)
        A rotation matrix.

    Returns
    -------
    axis : array, shape (3,)
        Unit vector; that of x where nothing is turned.
    angle : float or Symbol
        In rad, from 0 to π.

    See Also
    --------
    rotation_about : Compute the rotation matrix R_AB of a rotation about any axis.

    Examples
    --------
    >>> axis, angle = axis_angle_from_rotation([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> axis, float(angle)
    (array([0., 0., 1.]), 1.5707963267948966)
    """
    return axis_angle_from_quaternion(quaternion_from_rotation(R_AB))


def quaternion_from_rotation_vector(theta: Array) -> Array:
    """Return the quaternion ``q_AB = (cos |θ|/2, sin(|θ|/2) θ/|θ|)``.

    Parameters
    ----------
    theta : array_like, shape (3,)
        Rotation vector in rad, of any length, zero included.

    Returns
    -------
    array, shape (4,)
        Unit quaternion, with w < 0 for lengths between π and 3π.

    See Also
    --------
    rotation_vector_from_quaternion : Compute the shortest rotation vector of a quaternion.

    Examples
    --------
    >>> quaternion_from_rotation_vector([0.0, 0.0, np.pi / 3])
    array([0.8660254, 0.       , 0.       , 0.5      ])
    """
    x, y, z = theta
    square = 0.25 * dot(theta, theta)
    scale = 0.5 * stumpff(1, square)
    return scalars.array([stumpff(0, square), scale * x, scale * y, scale * z])


def rotation_vector_from_quaternion(q_AB: Array) -> Array:
    """Return the shortest rotation vector of a quaternion.

    With the canonical quaternion (w, v), ``θ = 2 atan2(|v|, w) v / |v|``.

    Parameters
    ----------
    q_AB : array_like, shape (4,)
        A quaternion that is not zero; sign and length do not matter.

    Returns
    -------
    array, shape (3,)
        Rotation vector in rad, of length up to π. It jumps at half turns.

    See Also
    --------
    quaternion_from_rotation_vector : Compute the quaternion.

    Examples
    --------
    >>> rotation_vector_from_quaternion([0.5, 0.0, 0.0, 0.8660254037844386])
    array([0.       , 0.       , 2.0943951])
    """
    w, x, y, z = canonical_quaternion(q_AB)
    scale = 2.0 * arc_quotient(x * x + y * y + z * z, w)
    return scalars.array([scale * x, scale * y, scale * z])


def rotation_from_rotation_vector(theta: Array) -> Array:
    """Return the rotation matrix R_AB = exp [θ]×.

    With the Stumpff functions of ``|θ|²``, of which c₀ is the cosine and c₁ the sine over the
    angle::

        R_AB = c₀ 1 + c₁ [θ]× + c₂ θ θᵀ

    Parameters
    ----------
    theta : array_like, shape (3,)
        Rotation vector in rad, of any length, zero included.

    Returns
    -------
    array, shape (3, 3)

    See Also
    --------
    rotation_vector_from_rotation : Compute the shortest rotation vector of a rotation matrix.

    Examples
    --------
    >>> rotation_from_rotation_vector([0.0, 0.0, np.pi / 6]) @ [2.0, 0.0, 0.0]
    array([1.73205081, 1.        , 0.        ])
    """
    square = dot(theta, theta)
    return axial_matrix(stumpff(0, square), stumpff(1, square), stumpff(2, square), theta)


def rotation_vector_from_rotation(R_AB: Array) -> Array:
    """Return the shortest rotation vector of a rotation matrix.

    Parameters
    ----------
    R_AB : array_like, shape (3, 3)
        A rotation matrix.

    Returns
    -------
    array, shape (3,)
        Rotation vector in rad, of length up to π. It jumps at half turns.

    See Also
    --------
    rotation_from_rotation_vector : Compute the rotation matrix R_AB = exp [θ]×.

    Examples
    --------
    >>> rotation_vector_from_rotation([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    array([0.        , 0.        , 1.57079633])
    """
    return rotation_vector_from_quaternion(quaternion_from_rotation(R_AB))


def rotation_vector_velocity_matrix(theta: Array) -> Array:
    """Return the matrix N⁺ that maps the rate of a rotation vector to the angular velocity.

    w_AB_A = N⁺ θ̇ and w_AB_B = N⁺ᵀ θ̇, with the Stumpff functions of ``|θ|²``::

        N⁺ = c₁ 1 + c₂ [θ]× + c₃ θ θᵀ

    It is singular where the length of θ is 2π, 4π and so on.

    Also known as the left Jacobian of the rotation group, for instance in T. D. Barfoot, State
    Estimation for Robotics, Cambridge 2017, section 7.1.

    >>> rotation_vector_velocity_matrix([0.0, 0.0, np.pi / 2])
    array([[ 0.63661977, -0.63661977,  0.        ],
           [ 0.63661977,  0.63661977,  0.        ],
           [ 0.        ,  0.        ,  1.        ]])
    """
    square = dot(theta, theta)
    return axial_matrix(stumpff(1, square), stumpff(2, square), stumpff(3, square), theta)


def rotation_vector_rate_matrix(theta: Array) -> Array:
    """Return the matrix N that maps the angular velocity to the rate of a rotation vector.

    θ̇ = N w_AB_A = Nᵀ w_AB_B, with the Stumpff functions of ``|θ|²``::

        N = (c₁ 1 - c₂ [θ]× + (c₃ - 2 c₄) θ θᵀ) / (2 c₂)

    It is the inverse of `rotation_vector_velocity_matrix` for θ shorter than 2π, where N grows
    without limit.

    >>> rotation_vector_rate_matrix([0.0, 0.0, np.pi / 2])
    array([[ 0.78539816,  0.78539816,  0.        ],
           [-0.78539816,  0.78539816,  0.        ],
           [ 0.        ,  0.        ,  1.        ]])
    """
    square = dot(theta, theta)
    c1, c2, c3, c4 = [stumpff(k, square) for k in (1, 2, 3, 4)]
    return axial_matrix(0.5 * c1 / c2, -0.5, (0.5 * c3 - c4) / c2, theta)


# Ten terms are exact to rounding up to the squares at which the series end, also in the slope.
_STUMPFF_SERIES = [[(-1) ** i / factorial(2 * i + k) for i in range(10)] for k in range(5)]
_ARC_SERIES = [(-1) ** i / (2 * i + 1) for i in range(10)]


def stumpff(k: int, square: Array) -> Array:
    """Return the Stumpff function c_k of a squared angle.

    With s = θ²::

        c₀ = cos θ                  c₁ = sin θ / θ
        c₂ = (1 - cos θ) / θ²       c₃ = (θ - sin θ) / θ³
        c₄ = (θ²/2 - 1 + cos θ) / θ⁴

    In general c_k = Σ (-s)ⁱ / (2i + k)!, and c_{k+2} = (1/k! - c_k) / s. Here k is 0 to 4,
    and s >= 0 is in rad².

    The series is used below s = 1, the closed form above. Errors are below 4e-16. The functions are
    named after K. Stumpff, who used them in celestial mechanics.

    >>> float(stumpff(1, np.pi**2 / 4.0)), float(stumpff(2, 0.0))
    (0.6366197723675814, 0.5)
    """
    near = square < 1.0
    series = _polynomial(_STUMPFF_SERIES[k], scalars.where(near, square, 0.0))
    square = scalars.where(near, 1.0, square)
    angle = np.sqrt(square)
    closed = np.sin(angle) / angle if k % 2 else np.cos(angle)
    for j in range(k % 2, k, 2):
        closed = (1.0 / factorial(j) - closed) / square
    return scalars.where(near, series, closed)


def arc_quotient(square: Array, cosine: Array) -> Array:
    """Return atan2(√s, c) / √s of the squared sine s >= 0 and the cosine c >= 0 of an angle.

    They are not both zero, and both may be scaled as the sides of a triangle.

    Below s = 0.01 c² it is the series of arctan, with errors below 4e-16.

    >>> float(arc_quotient(1.0, 0.0)), float(arc_quotient(0.0, 1.0))
    (1.5707963267948966, 1.0)
    """
    near = square < 0.01 * (cosine * cosine)
    divisor = scalars.where(near, cosine, 1.0)
    squared_tangent = scalars.where(near, square, 0.0) / (divisor * divisor)
    series = _polynomial(_ARC_SERIES, squared_tangent) / divisor
    sine = np.sqrt(scalars.where(near, 1.0, square))
    return scalars.where(near, series, np.arctan2(sine, cosine) / sine)


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Return the sum of the coefficients, from the lowest, times the powers of x."""
    result: Array = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result
