"""How the velocities of the joints move the points of a body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexure.blocks.math import shift_spatial_velocity
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement, motion_at, seen_from
from flexure.blocks.multibody.trees.kinematics import calc_accelerations
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.values.arrays import Array


def spatial_jacobian(
    topology: Topology,
    placements: Sequence[Placement],
    body: int,
    p_BQ: Array,
    measured_in: int = 0,
) -> Array:
    """Return J with V_MQ = J v: the spatial velocity of a body B at its point Q, seen from M.

    p_BQ is in m, expressed in B. The rows are the angular velocity of B, then the velocity of Q,
    both expressed in the world. Columns of joints that are not between M, by default the world, and
    B are zero.
    """
    J = _in_world(topology, placements, body, placements[body].R_WB @ p_BQ)
    if not measured_in:
        return J
    B, M = placements[body], placements[measured_in]
    p_MQ_W = B.p_WB + B.R_WB @ p_BQ - M.p_WB
    return J - _in_world(topology, placements, measured_in, p_MQ_W)


def _in_world(
    topology: Topology, placements: Sequence[Placement], body: int, p_BQ_W: Array
) -> Array:
    """Return the Jacobian of a body at a point, measured in the world."""
    columns = {m.outboard: np.zeros((6, m.joint.num_velocities)) for m in topology.mobilizers}
    p_CQ = p_BQ_W
    for mobilizer in topology.path_to(body):
        C = placements[mobilizer.outboard]
        if not mobilizer.is_weld:
            columns[mobilizer.outboard] = shift_spatial_velocity(C.H_PB_W, p_CQ)
        p_CQ = C.p_PB_W + p_CQ
    return np.concatenate([np.zeros((6, 0)), *columns.values()], axis=1)


def translational_jacobian(
    topology: Topology, placements: Sequence[Placement], body: int, p_BQ: Array
) -> Array:
    """Return J with v_WQ = J v: the lower half of `spatial_jacobian`."""
    return spatial_jacobian(topology, placements, body, p_BQ)[3:]


def jacobian_bias(
    topology: Topology,
    placements: Sequence[Placement],
    motions: Sequence[BodyMotion],
    body: int,
    p_BQ: Array,
    measured_in: int = 0,
) -> Array:
    """Return J̇ v: the spatial acceleration of a body B at its point Q when v does not change.

    A_MQ = J v̇ + J̇ v, with the Jacobian J of `spatial_jacobian`, expressed in the world.
    """
    A = calc_accelerations(topology, placements, motions)
    Q = motion_at(placements[body], motions[body], A[body], p_BQ)
    if not measured_in:
        return Q.A
    M = motion_at(placements[measured_in], motions[measured_in], A[measured_in], np.zeros(3))
    return seen_from(M, Q).A
