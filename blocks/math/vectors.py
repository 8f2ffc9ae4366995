"""Products of vectors with three components, and the matrices that vectors make."""

from __future__ import annotations

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


def dot(a: Array, b: Array) -> Array:
    """Return the scalar product a · b, summed from left to right.

    Unlike ``a @ b`` it gives the same bits for floats and for symbols, up to 7 components.

    >>> float(dot([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
    32.0
    """
    return np.sum(np.multiply(a, b))


def cross(a: Array, b: Array) -> Array:
    """Return the vector product a × b.

    In place of one of them, a matrix of shape (3, n) gives the products with each of its columns.

    >>> cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    array([0., 0., 1.])
    """
    a0, a1, a2 = a
    b0, b1, b2 = b
    return scalars.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def skew(a: Array) -> Array:
    """Return the matrix [a]× of the vector product: ``skew(a) @ b = a × b``.

    >>> skew([1.0, 2.0, 3.0])
    array([[ 0., -3.,  2.],
           [ 3.,  0., -1.],
           [-2.,  1.,  0.]])
    """
    x, y, z = a
    return scalars.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def axial_matrix(a: Array, b: Array, c: Array, v: Array) -> Array:
    """Return a 1 + b [v]× + c v vᵀ, the form of all matrices that turn with the vector v.

    Rotations about v and the rate matrices of rotation vectors are of this kind.

    >>> axial_matrix(1.0, 2.0, 3.0, [0.0, 0.0, 1.0])
    array([[ 1., -2.,  0.],
           [ 2.,  1.,  0.],
           [ 0.,  0.,  4.]])
    """
    x, y, z = v
    bx, by, bz = b * x, b * y, b * z
    cx, cy, cz = c * x, c * y, c * z
    return scalars.array(
        [
            [a + cx * x, cx * y - bz, cx * z + by],
            [cx * y + bz, a + cy * y, cy * z - bx],
            [cx * z - by, cy * z + bx, a + cz * z],
        ]
    )
