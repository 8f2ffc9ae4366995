"""Unit quaternions (w, x, y, z) as orientations, and their rates.

``q_AB`` and ``-q_AB`` describe the same rotation matrix ``R_AB``. Products go along with those of
rotation matrices: ``q_AC = q_AB ⊗ q_BC``.
"""

from __future__ import annotations

import numpy as np

from flexure.blocks.math.vectors import dot
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


def quaternion_product(q_AB: Array, q_BC: Array) -> Array:
    """Return the product q_AC = q_AB ⊗ q_BC.

    With q_AB = (w₁, v₁) and q_BC = (w₂, v₂)::

        w = w₁ w₂ - v₁ · v₂
        v = w₁ v₂ + w₂ v₁ + v₁ × v₂

    Parameters
    ----------
    q_AB, q_BC : array_like, shape (4,)
        Two quaternions (w, v).

    Returns
    -------
    array, shape (4,)

    See Also
    --------
    quaternion_conjugate : Compute the conjugate (w.

    Examples
    --------
    >>> quaternion_product([0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    array([0., 0., 0., 1.])
    """
    a, b, c, d = q_AB
    w, x, y, z = q_BC
    return scalars.array(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ]
    )


def quaternion_conjugate(q_AB: Array) -> Array:
    """Return the conjugate (w, -x, -y, -z); for a unit quaternion, this is q_BA.

    Parameters
    ----------
    q_AB : array_like, shape (4,)
        A quaternion.

    Returns
    -------
    array, shape (4,)

    See Also
    --------
    quaternion_product : Compute the product q_AC = q_AB ⊗ q_BC.

    Examples
    --------
    >>> quaternion_conjugate([0.5, 0.5, -0.5, 0.5])
    array([ 0.5, -0.5,  0.5, -0.5])
    """
    w, x, y, z = q_AB
    return scalars.array([w, -x, -y, -z])


def normalized_quaternion(q_AB: Array) -> Array:
    """Normalize a quaternion: return ``q / |q|``.

    Parameters
    ----------
    q_AB : array_like, shape (4,)
        A quaternion that is not zero.

    Returns
    -------
    array, shape (4,)

    See Also
    --------
    nearest_quaternion : Compute the quaternion of the same rotation that is nearest to a reference.

    Examples
    --------
    >>> normalized_quaternion([3.0, 0.0, 4.0, 0.0])
    array([0.6, 0. , 0.8, 0. ])
    """
    return np.divide(q_AB, np.sqrt(dot(q_AB, q_AB)))


def canonical_quaternion(q_AB: Array) -> Array:
    """Return q or -q, whichever has w >= 0 and so an angle of at most π.

    Parameters
    ----------
    q_AB : array_like, shape (4,)
        A quaternion; with w = 0 it is returned as it is.

    Returns
    -------
    array, shape (4,)

    See Also
    --------
    nearest_quaternion : Compute the quaternion of the same rotation that is nearest to a reference.

    Examples
    --------
    >>> canonical_quaternion([-0.5, 0.5, -0.5, 0.5])
    array([ 0.5, -0.5,  0.5, -0.5])
    """
    return np.where(np.less(q_AB[0], 0.0), np.negative(q_AB), q_AB)


def nearest_quaternion(q_AB: Array, reference: Array) -> Array:
    """Return the quaternion of the same rotation that is nearest to a reference.

    ``±|r| q / |q|``, with that sign for which the product with r is not negative.

    Parameters
    ----------
    q_AB : array_like, shape (4,)
        A quaternion that is not zero.
    reference : array_like, shape (4,)
        A quaternion r.

    Returns
    -------
    array, shape (4,)

    See Also
    --------
    canonical_quaternion : Compute q or -q.

    Examples
    --------
    >>> nearest_quaternion([-3.0, 0.0, 0.0, 4.0], [1.0, 0.0, 0.0, 0.0])
    array([ 0.6, -0. , -0. , -0.8])
    """
    length = np.sqrt(np.divide(dot(reference, reference), dot(q_AB, q_AB)))
    return np.multiply(np.where(np.less(dot(q_AB, reference), 0.0), -length, length), q_AB)


def rotation_from_quaternion(q_AB: Array) -> Array:
    """Return the rotation matrix R_AB of a quaternion.

    ``R_AB = 1 + 2 (w [v]× + [v]×²) / |q|²``

    Parameters
    ----------
    q_AB : array_like, shape (4,)
        A quaternion (w, v) that is not zero; its length does not matter.

    Returns
    -------
    array, shape (3, 3)

    See Also
    --------
    quaternion_from_rotation : Compute the canonical unit quaternion q_AB of a rotation matrix.

    Examples
    --------
    >>> rotation_from_quaternion([1.0, 0.0, 0.0, 1.0])
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    w, x, y, z = q_AB
    scale = 2.0 / dot(q_AB, q_AB)
    sx, sy, sz = scale * x, scale * y, scale * z
    xx, yy, zz = sx * x, sy * y, sz * z
    xy, yz, zx = sx * y, sy * z, sz * x
    wx, wy, wz = sx * w, sy * w, sz * w
    return scalars.array(
        [
            [1.0 - (yy + zz), xy - wz, zx + wy],
            [xy + wz, 1.0 - (zz + xx), yz - wx],
            [zx - wy, yz + wx, 1.0 - (xx + yy)],
        ]
    )


def quaternion_from_rotation(R_AB: Array) -> Array:
    """Return the canonical unit quaternion q_AB of a rotation matrix.

    The entries of R_AB, added and subtracted, make the symmetric matrix 4 q qᵀ. Its row with the
    largest diagonal entry is divided by its length, so that neither small numbers nor differences
    of large ones matter, also at half turns.

    Parameters
    ----------
    R_AB : array_like, shape (3, 3)
        A rotation matrix.

    Returns
    -------
    array, shape (4,)
        Unit quaternion with w >= 0. Where w is exactly zero, the component of largest magnitude
        is positive (of equals, the first).

    See Also
    --------
    rotation_from_quaternion : Compute the rotation matrix R_AB of a quaternion.

    Notes
    -----
    The choice of the row is that of S. W. Shepperd, Quaternion from rotation matrix, Journal of
    Guidance and Control 1 (1978) 223-224.

    Examples
    --------
    >>> quaternion_from_rotation([[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    array([0., 0., 0., 1.])
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R_AB
    rows = scalars.array(
        [
            [1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy],
            [zy - yz, 1.0 + xx - yy - zz, xy + yx, xz + zx],
            [xz - zx, xy + yx, 1.0 - xx + yy - zz, yz + zy],
            [yx - xy, xz + zx, yz + zy, 1.0 - xx - yy + zz],
        ]
    )
    row, largest = rows[0], rows[0, 0]
    for k in range(1, 4):
        row = np.where(rows[k, k] > largest, rows[k], row)
        largest = np.maximum(largest, rows[k, k])
    return canonical_quaternion(normalized_quaternion(row))


def quaternion_rate_from_w_A(q_AB: Array, w_AB_A: Array) -> Array:
    """Return the rate of a quaternion, from the angular velocity in the parent frame.

    q̇_AB = ½ (0, w_AB_A) ⊗ q_AB in 1/s, with w_AB_A in rad/s. It keeps the length of q_AB.

    >>> quaternion_rate_from_w_A([0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 2.0])
    array([-1.,  0.,  1.,  0.])
    """
    w, x, y, z = q_AB
    a, b, c = w_AB_A
    return 0.5 * scalars.array(
        [
            -(a * x + b * y + c * z),
            a * w + (b * z - c * y),
            b * w + (c * x - a * z),
            c * w + (a * y - b * x),
        ]
    )


def quaternion_rate_from_w_B(q_AB: Array, w_AB_B: Array) -> Array:
    """Return the rate of a quaternion, from the angular velocity in the child frame.

    q̇_AB = ½ q_AB ⊗ (0, w_AB_B) in 1/s, with w_AB_B in rad/s. It keeps the length of q_AB.

    >>> quaternion_rate_from_w_B([0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 2.0])
    array([-1.,  0., -1.,  0.])
    """
    w, x, y, z = q_AB
    a, b, c = w_AB_B
    return 0.5 * scalars.array(
        [
            -(a * x + b * y + c * z),
            a * w - (b * z - c * y),
            b * w - (c * x - a * z),
            c * w - (a * y - b * x),
        ]
    )


def w_A_from_quaternion_rate(q_AB: Array, q_AB_rate: Array) -> Array:
    """Return the angular velocity in the parent frame, from the rate of a quaternion.

    It is the vector part of ``2 q̇ ⊗ q* / |q|²``, in which a change of length has no effect.

    >>> w_A_from_quaternion_rate([0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    array([0., 0., 2.])
    """
    w, x, y, z = q_AB
    a, b, c, d = q_AB_rate
    return (2.0 / dot(q_AB, q_AB)) * scalars.array(
        [
            w * b - a * x + (y * d - z * c),
            w * c - a * y + (z * b - x * d),
            w * d - a * z + (x * c - y * b),
        ]
    )


def w_B_from_quaternion_rate(q_AB: Array, q_AB_rate: Array) -> Array:
    """Return the angular velocity in the child frame, from the rate of a quaternion.

    It is the vector part of ``2 q* ⊗ q̇ / |q|²``, in which a change of length has no effect.

    >>> w_B_from_quaternion_rate([0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    array([ 0.,  0., -2.])
    """
    w, x, y, z = q_AB
    a, b, c, d = q_AB_rate
    return (2.0 / dot(q_AB, q_AB)) * scalars.array(
        [
            w * b - a * x - (y * d - z * c),
            w * c - a * y - (z * b - x * d),
            w * d - a * z - (x * c - y * b),
        ]
    )


def half_rotation(q_AC: Array) -> Array:
    """Return the quaternion q_AB of the frame B halfway between A and C: R_AB = R_BC.

    With the canonical quaternion (w, v) of R_AC::

        q_AB = (b, v / (2 b)),    b = √((1 + w) / 2)

    The unit quaternion q_AC has either sign. The result is canonical, with half of the angle of
    R_AC, at most π/2. It jumps where R_AC passes a half turn, because its axis does.

    >>> half_rotation([0.0, 1.0, 0.0, 0.0])
    array([0.70710678, 0.70710678, 0.        , 0.        ])
    """
    w, x, y, z = canonical_quaternion(q_AC)
    b = np.sqrt(0.5 * (1.0 + w))
    return scalars.array([b, 0.5 * x / b, 0.5 * y / b, 0.5 * z / b])


def modified_rodrigues(q_AC: Array) -> Array:
    """Return the vector σ = tan(θ/4) λ of a rotation by the angle θ about the axis λ.

    With the canonical quaternion (w, v), σ = v / (1 + w). It gives the angular velocity of the
    frame B halfway between A and C: w_AB = ½ (w_AC - σ × w_AC). q_AC is a unit quaternion of either
    sign. The vector has the same components in A, B and C. Its length is at most one, and it jumps
    where R_AC passes a half turn.

    >>> modified_rodrigues([0.0, 1.0, 0.0, 0.0])
    array([1., 0., 0.])
    """
    w, x, y, z = canonical_quaternion(q_AC)
    return scalars.array([x, y, z]) / (1.0 + w)
