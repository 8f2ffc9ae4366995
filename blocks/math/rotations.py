"""Rotation matrices about given axes."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math.vectors import axial_matrix
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


def x_rotation(angle: Array) -> Array:
    """Return the rotation matrix R_AB of a rotation about the x axis of A.

    Parameters
    ----------
    angle : float or Symbol
        Right-handed angle in rad.

    Returns
    -------
    array, shape (3, 3)

    See Also
    --------
    rotation_about : Compute the rotation matrix R_AB of a rotation about any axis.

    Examples
    --------
    >>> x_rotation(np.pi / 6) @ [0.0, 2.0, 0.0]
    array([0.        , 1.73205081, 1.        ])
    """
    c, s = np.cos(angle), np.sin(angle)
    return scalars.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def y_rotation(angle: Array) -> Array:
    """Return the rotation matrix R_AB of a rotation about the y axis of A.

    Parameters
    ----------
    angle : float or Symbol
        Right-handed angle in rad.

    Returns
    -------
    array, shape (3, 3)

    See Also
    --------
    rotation_about : Compute the rotation matrix R_AB of a rotation about any axis.

    Examples
    --------
    >>> y_rotation(np.pi / 6) @ [0.0, 0.0, 2.0]
    array([1.        , 0.        , 1.73205081])
    """
    c, s = np.cos(angle), np.sin(angle)
    return scalars.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def z_rotation(angle: Array) -> Array:
    """Return the rotation matrix R_AB of a rotation about the z axis of A.

    Parameters
    ----------
    angle : float or Symbol
        Right-handed angle in rad.

    Returns
    -------
    array, shape (3, 3)

    See Also
    --------
    rotation_about : Compute the rotation matrix R_AB of a rotation about any axis.

    Examples
    --------
    >>> z_rotation(np.pi / 6) @ [2.0, 0.0, 0.0]
    array([1.73205081, 1.        , 0.        ])
    """
    c, s = np.cos(angle), np.sin(angle)
    return scalars.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation_about(axis: Array, angle: Array) -> Array:
    """Return the rotation matrix R_AB of a rotation about any axis.

    It is the formula of Euler and Rodrigues::

        R_AB = cos θ 1 + sin θ [λ]× + (1 - cos θ) λ λᵀ

    Parameters
    ----------
    axis : array_like, shape (3,)
        Unit vector λ, which has the same components in A and in B.
    angle : float or Symbol
        Right-handed angle θ in rad.

    Returns
    -------
    array, shape (3, 3)

    See Also
    --------
    axis_angle_from_rotation : Compute axis and angle of the shortest rotation of a rotation matrix.

    Examples
    --------
    >>> rotation_about([0.0, 0.6, 0.8], np.pi / 6) @ [2.0, 0.0, 0.0]
    array([ 1.73205081,  0.8       , -0.6       ])
    """
    c = np.cos(angle)
    return axial_matrix(c, np.sin(angle), 1.0 - c, axis)
