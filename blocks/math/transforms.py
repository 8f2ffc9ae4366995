"""Rotation matrices about given axes, and rigid transforms: the pose of a frame B in a frame A."""

from __future__ import annotations

from typing import NamedTuple

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


class RigidTransform(NamedTuple):
    """The pose X_AB of a frame B in a frame A; any pair (R, p) is accepted as one.

    Attributes
    ----------
    R : array, shape (3, 3)
        Rotation matrix R_AB.
    p : array, shape (3,)
        Position p_AB of Bo from Ao, expressed in A, in m.

    See Also
    --------
    compose_transforms : Multiply poses.
    invert_transform : Invert a pose.

    Examples
    --------
    >>> import flexure as fx
    >>> import numpy as np
    >>> X_AB = fx.rotations.RigidTransform(np.eye(3), np.array([1.0, 0.0, 0.0]))
    >>> X_AB.p
    array([1., 0., 0.])
    """

    R: Array
    p: Array


def compose_transforms(X_AB: tuple[Array, Array], X_BC: tuple[Array, Array]) -> RigidTransform:
    """Return the pose X_AC: R_AC = R_AB R_BC and p_AC_A = p_AB_A + R_AB p_BC_B.

    Parameters
    ----------
    X_AB, X_BC : tuple of array_like, shapes (3, 3) and (3,)
        Two poses (R, p).

    Returns
    -------
    RigidTransform

    See Also
    --------
    invert_transform : Compute the pose X_BA.

    Examples
    --------
    >>> quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> X = compose_transforms((quarter, [1.0, 0.0, 0.0]), (quarter, [0.0, 0.0, 2.0]))
    >>> X.p
    array([1., 0., 2.])
    """
    R_AB, p_AB = X_AB
    R_BC, p_BC = X_BC
    return RigidTransform(np.matmul(R_AB, R_BC), np.add(p_AB, np.matmul(R_AB, p_BC)))


def invert_transform(X_AB: tuple[Array, Array]) -> RigidTransform:
    """Return the pose X_BA: R_BA = R_ABᵀ and p_BA_B = -R_BA p_AB_A.

    Parameters
    ----------
    X_AB : tuple of array_like, shapes (3, 3) and (3,)
        A pose (R, p).

    Returns
    -------
    RigidTransform

    See Also
    --------
    compose_transforms : Compute the pose X_AC.

    Examples
    --------
    >>> quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> invert_transform((quarter, [1.0, 2.0, 3.0])).p
    array([-2.,  1., -3.])
    """
    R_AB, p_AB = X_AB
    R_BA = np.transpose(R_AB)
    return RigidTransform(R_BA, -np.matmul(R_BA, p_AB))


def relative_pose(X_WA: tuple[Array, Array], X_WB: tuple[Array, Array]) -> RigidTransform:
    """Return the pose X_AB of two frames that are known in W.

    R_AB = R_WAᵀ R_WB and p_AB_A = R_WAᵀ (p_WB - p_WA). The two positions are subtracted first, so
    that nothing is lost far from the origin of W.

    >>> quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> relative_pose((quarter, [1.0, 2.0, 3.0]), (quarter, [2.0, 2.0, 3.0])).p
    array([ 0., -1.,  0.])
    """
    R_WA, p_WA = X_WA
    R_WB, p_WB = X_WB
    R_AW = np.transpose(R_WA)
    return RigidTransform(np.matmul(R_AW, R_WB), np.matmul(R_AW, np.subtract(p_WB, p_WA)))


def transform_point(X_AB: tuple[Array, Array], p_BQ: Array) -> Array:
    """Return the position p_AQ_A = p_AB_A + R_AB p_BQ_B of a point Q, from that expressed in B.

    >>> quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> transform_point((quarter, [1.0, 2.0, 3.0]), [1.0, 0.0, 0.0])
    array([1., 3., 3.])
    """
    R_AB, p_AB = X_AB
    return np.add(p_AB, np.matmul(R_AB, p_BQ))
