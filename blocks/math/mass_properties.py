"""Mass, center of mass and rotational inertia of a rigid body: its spatial inertia."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flexure.blocks.math.linear_equations import mirrored
from flexure.blocks.math.vectors import cross, dot, skew
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


class MassProperties(NamedTuple):
    """The spatial inertia M_SP of a body S about a point P, in ten numbers."""

    mass: Array  # in kg
    com: Array  # position p_PScm of the center of mass from P, in m
    # Rotational inertia I_SP about P in kg m², the matrix of the map from w to h. Its off-diagonal
    # entries are the negative products of inertia -∫ x y dm.
    inertia: Array


def shift_mass_properties(M_SP: MassProperties, p_PQ: Array) -> MassProperties:
    """Return the spatial inertia about the point Q, from that about the point P.

    With c = p_PScm, d = c - p_PQ and the parallel axis theorem from P to Scm and on to Q::

        I_SQ = I_SP + m ((d · d - c · c) 1 - d dᵀ + c cᵀ)

    The position p_PQ is in m and expressed in the same frame as M_SP.

    >>> ball = MassProperties(2.0, np.zeros(3), 0.1 * np.eye(3))
    >>> shift_mass_properties(ball, [1.0, 0.0, 0.0]).inertia
    array([[0.1, 0. , 0. ],
           [0. , 2.1, 0. ],
           [0. , 0. , 2.1]])
    """
    mass, c, I_SP = M_SP
    d = np.subtract(c, p_PQ)
    return MassProperties(mass, d, I_SP + mass * (_inertia_of_point(d) - _inertia_of_point(c)))


def rotate_mass_properties(R_AB: Array, M_SP_B: MassProperties) -> MassProperties:
    """Return the spatial inertia expressed in A, from that expressed in B.

    p_A = R_AB p_B and I_A = R_AB I_B R_ABᵀ, about the same point. I_A is exactly symmetric.

    >>> quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> rod = MassProperties(2.0, np.array([1.0, 0.0, 0.0]), np.diag([0.0, 3.0, 3.0]))
    >>> rotate_mass_properties(quarter, rod).inertia
    array([[3., 0., 0.],
           [0., 0., 0.],
           [0., 0., 3.]])
    """
    mass, com, inertia = M_SP_B
    turned = np.matmul(np.matmul(R_AB, inertia), np.transpose(R_AB))
    return MassProperties(mass, np.matmul(R_AB, com), mirrored(turned))


def spatial_inertia_matrix(M_SP: MassProperties) -> Array:
    """Return the symmetric matrix of a spatial inertia.

    With c = p_PScm::

        ⎡   I_SP    m [c]× ⎤
        ⎣ -m [c]×    m 1   ⎦

    It maps the spatial velocity at P to the spatial momentum about P.

    >>> ball = MassProperties(2.0, np.array([1.0, 2.0, 3.0]), 40.0 * np.eye(3))
    >>> spatial_inertia_matrix(ball)
    array([[40.,  0.,  0.,  0., -6.,  4.],
           [ 0., 40.,  0.,  6.,  0., -2.],
           [ 0.,  0., 40., -4.,  2.,  0.],
           [ 0.,  6., -4.,  2.,  0.,  0.],
           [-6.,  0.,  2.,  0.,  2.,  0.],
           [ 4., -2.,  0.,  0.,  0.,  2.]])
    """
    mass, com, inertia = M_SP
    coupling = skew(np.multiply(mass, com))
    inertness = np.diag(scalars.array([mass, mass, mass]))
    return _matrix_of_blocks(np.asanyarray(inertia), coupling, inertness)


def shift_inertia_matrix(M_P: Array, p_PQ: Array) -> Array:
    """Return the matrix of an inertia about the point Q, from that about the point P.

    With the blocks A, B, Bᵀ, C of the matrix and S = [p_PQ]×::

        B_Q = B - S C
        A_Q = A + S C Sᵀ - S Bᵀ - B Sᵀ

    ``M_P`` is symmetric, of shape (6, 6), and maps the spatial velocity (or acceleration) at P to
    the momentum (or force) about P. It need not be that of a rigid body: articulated inertias are
    shifted in the same way. The result is exactly symmetric. p_PQ is in m, expressed in the same
    frame.

    >>> ball = MassProperties(2.0, np.zeros(3), 0.1 * np.eye(3))
    >>> shift_inertia_matrix(spatial_inertia_matrix(ball), [1.0, 0.0, 0.0])[:3, :3]
    array([[0.1, 0. , 0. ],
           [0. , 2.1, 0. ],
           [0. , 0. , 2.1]])
    """
    M_P = np.asanyarray(M_P)
    A, B, C = M_P[:3, :3], M_P[:3, 3:], M_P[3:, 3:]
    SC = cross(p_PQ, C)
    twice, once = mirrored(cross(p_PQ, np.transpose(SC))), cross(p_PQ, np.transpose(B))
    return _matrix_of_blocks((A + twice) - (once + np.transpose(once)), B - SC, C)


def rotate_inertia_matrix(R_AB: Array, M_B: Array) -> Array:
    """Return the matrix of an inertia expressed in A, from that expressed in B.

    Each block of ``M_B``, a symmetric matrix as in `shift_inertia_matrix`, is turned: R_AB X R_ABᵀ.
    The result is about the same point, and exactly symmetric.

    >>> quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> rod = MassProperties(2.0, np.zeros(3), np.diag([0.0, 3.0, 3.0]))
    >>> np.diag(rotate_inertia_matrix(quarter, spatial_inertia_matrix(rod)))
    array([3., 0., 3., 2., 2., 2.])
    """
    M_B, R_BA = np.asanyarray(M_B), np.transpose(R_AB)
    A, B, C = M_B[:3, :3], M_B[:3, 3:], M_B[3:, 3:]
    A, B, C = (np.matmul(np.matmul(R_AB, block), R_BA) for block in (A, B, C))
    return _matrix_of_blocks(mirrored(A), B, mirrored(C))


def spatial_momentum(M_SP: MassProperties, V_P: Array) -> Array:
    """Return the momentum about P of a body with a velocity, without building the matrix.

    With c = p_PScm::

        l = m (v + w × c)
        h = I_SP w + m c × v

    V_P is the spatial velocity (w, v) at P in rad/s and m/s, expressed in the same frame; the
    momentum (h, l) is in kg m²/s and kg m/s.

    >>> ball = MassProperties(2.0, np.array([1.0, 0.0, 0.0]), 3.0 * np.eye(3))
    >>> spatial_momentum(ball, [0.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    array([0., 0., 5., 0., 4., 0.])
    """
    mass, com, inertia = M_SP
    w, v = V_P[:3], V_P[3:]
    h = np.matmul(inertia, w) + mass * cross(com, v)
    return np.concatenate([h, mass * (v + cross(w, com))])


def kinetic_energy(M_SP: MassProperties, V_P: Array) -> Array:
    """Return the kinetic energy ½ V · L of a body, which is the same for all points P.

    In J, from the spatial velocity (w, v) at P in rad/s and m/s, expressed in the same frame.

    >>> ball = MassProperties(2.0, np.zeros(3), 3.0 * np.eye(3))
    >>> float(kinetic_energy(ball, [0.0, 0.0, 1.0, 0.0, 2.0, 0.0]))
    5.5
    """
    return 0.5 * dot(V_P, spatial_momentum(M_SP, V_P))


def _inertia_of_point(p: Array) -> Array:
    """Return p · p 1 - p pᵀ, the rotational inertia of a unit point mass."""
    x, y, z = p
    xx, yy, zz = x * x, y * y, z * z
    xy, yz, zx = -x * y, -y * z, -z * x
    return scalars.array([[yy + zz, xy, zx], [xy, zz + xx, yz], [zx, yz, xx + yy]])


def _matrix_of_blocks(A: Array, B: Array, C: Array) -> Array:
    """Return the symmetric matrix with the blocks A, B in the first rows and Bᵀ, C below."""
    upper, lower = np.concatenate([A, B], axis=1), np.concatenate([np.transpose(B), C], axis=1)
    return np.concatenate([upper, lower])
