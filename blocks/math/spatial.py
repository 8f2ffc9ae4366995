"""Spatial vectors, the rotational part first: velocity (w, v), force (t, f), momentum (h, l).

A spatial vector belongs to a point: the velocity v is that of the point, the moments t and h are
taken about it. Both parts are expressed in one frame.
"""

from __future__ import annotations

import numpy as np

from flexure.blocks.math.vectors import cross
from flexure.diagrams.values.arrays import Array


def shift_spatial_velocity(V_P: Array, p_PQ: Array) -> Array:
    """Return the velocity of a body at its point Q, from that at its point P.

    V_Q = (w, v + w × p_PQ)

    >>> shift_spatial_velocity([0.0, 0.0, 2.0, 1.0, 0.0, 0.0], [3.0, 0.0, 0.0])
    array([0., 0., 2., 1., 6., 0.])
    """
    w, v = V_P[:3], V_P[3:]
    return np.concatenate([w, v + cross(w, p_PQ)])


def shift_spatial_force(F_P: Array, p_PQ: Array) -> Array:
    """Return the force on a body about the point Q, from that about the point P.

    F_Q = (t - p_PQ × f, f). The power F · V of a force on a rigid body is the same at all points.

    >>> shift_spatial_force([0.0, 0.0, 2.0, 0.0, 1.0, 0.0], [3.0, 0.0, 0.0])
    array([ 0.,  0., -1.,  0.,  1.,  0.])
    """
    t, f = F_P[:3], F_P[3:]
    return np.concatenate([t - cross(p_PQ, f), f])


def shift_spatial_momentum(L_P: Array, p_PQ: Array) -> Array:
    """Return the momentum of a body about the point Q, from that about the point P.

    L_Q = (h - p_PQ × l, l)

    >>> shift_spatial_momentum([0.0, 0.0, 0.0, 0.0, 5.0, 0.0], [-2.0, 0.0, 0.0])
    array([ 0.,  0., 10.,  0.,  5.,  0.])
    """
    return shift_spatial_force(L_P, p_PQ)


def rotate_spatial(R_AB: Array, V_B: Array) -> Array:
    """Return a spatial vector expressed in A, from its components in B: (R_AB w, R_AB v).

    >>> quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> rotate_spatial(quarter, [1.0, 0.0, 0.0, 0.0, 2.0, 0.0])
    array([ 0.,  1.,  0., -2.,  0.,  0.])
    """
    return np.concatenate([np.matmul(R_AB, V_B[:3]), np.matmul(R_AB, V_B[3:])])


def relative_velocity(
    X_WA: tuple[Array, Array], V_WA: Array, X_WB: tuple[Array, Array], V_WB: Array
) -> Array:
    """Return the velocity of a frame B in a frame A, both of which move in W.

    The velocity of A at the place of Bo is subtracted from that of B::

        w_AB = w_WB - w_WA
        v_ABo = v_WBo - v_WAo - w_WA × p_AB

    The second is the rate of the position p_AB as it is seen in A. Poses (R, p) and velocities are
    given in W; the result (w, v) of B in A at Bo is expressed in A.

    Seen from a turntable, a point at rest goes round backwards:

    >>> turntable, point = (np.eye(3), [0.0, 0.0, 0.0]), (np.eye(3), [3.0, 0.0, 0.0])
    >>> relative_velocity(turntable, [0.0, 0.0, 2.0, 0.0, 0.0, 0.0], point, np.zeros(6))
    array([ 0.,  0., -2.,  0., -6.,  0.])
    """
    R_WA, p_WA = X_WA
    seen_at_B = shift_spatial_velocity(V_WA, np.subtract(X_WB[1], p_WA))
    return rotate_spatial(np.transpose(R_WA), np.subtract(V_WB, seen_at_B))


def motion_cross_motion(V: Array, M: Array) -> Array:
    """Return V × M: the rate of a motion M that is fixed in a body with the velocity V.

    (w, v) × (m, n) = (w × m, w × n + v × m), at one point and expressed in one frame.

    The operators are those of R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008,
    section 2.9.

    >>> motion_cross_motion([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0, 0.0, 0.0])
    array([0., 0., 0., 0., 2., 0.])
    """
    w, v = V[:3], V[3:]
    m, n = M[:3], M[3:]
    return np.concatenate([cross(w, m), cross(w, n) + cross(v, m)])


def motion_cross_force(V: Array, F: Array) -> Array:
    """Return V ×* F: the rate of a force F that is fixed in a body with the velocity V.

    (w, v) ×* (t, f) = (w × t + v × f, w × f), so that (V × M) · F = -M · (V ×* F). F, a force or
    momentum, is about the same point and expressed in the same frame.

    The source is that of `motion_cross_motion`.

    >>> motion_cross_force([0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 2.0, 0.0])
    array([0., 0., 2., 0., 0., 0.])
    """
    w, v = V[:3], V[3:]
    t, f = F[:3], F[3:]
    return np.concatenate([cross(w, t) + cross(v, f), cross(w, f)])
