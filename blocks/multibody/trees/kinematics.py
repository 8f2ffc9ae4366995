"""Where the bodies of a tree are, how they move and accelerate, and the Jacobians of this."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexure.blocks.math import (
    MassProperties,
    RigidTransform,
    cross,
    rotate_mass_properties,
    rotate_spatial,
    shift_spatial_velocity,
)
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement, motion_at, seen_from
from flexure.blocks.multibody.trees.topology import Mobilizer, Topology
from flexure.diagrams.values.arrays import Array


def calc_placements(topology: Topology, q: Array) -> list[Placement]:
    """Return the placements of all bodies."""
    still = RigidTransform(np.eye(3), np.zeros(3))
    world = Placement(*still, np.zeros(3), np.zeros((6, 0)), still)
    placements = [world] * len(topology.bodies)
    for mobilizer in topology.mobilizers:
        placements[mobilizer.outboard] = _place(
            mobilizer, placements[mobilizer.inboard], q[mobilizer.q]
        )
    return placements


def _place(mobilizer: Mobilizer, P: Placement, q: Array) -> Placement:
    """Return the placement of the outboard body from that of the inboard body."""
    X_PB, H_PB = _relative_placement(mobilizer, q)
    R_PB, p_PB = X_PB
    if mobilizer.inboard == 0:
        return Placement(R_PB, p_PB, p_PB, H_PB, X_PB)
    p_PB_W = P.R_WB @ p_PB
    # Halves of H that are always zero are not turned.
    w, v = H_PB[:3], H_PB[3:]
    H_PB_W = np.concatenate(
        [
            P.R_WB @ w if mobilizer.joint.can_rotate else w,
            P.R_WB @ v if mobilizer.moves_origin else v,
        ]
    )
    R_WB = P.R_WB @ R_PB if mobilizer.turns else P.R_WB
    return Placement(R_WB, P.p_WB + p_PB_W, p_PB_W, H_PB_W, X_PB)


def _relative_placement(mobilizer: Mobilizer, q: Array) -> tuple[RigidTransform, Array]:
    """Return the pose of B in P, and V_PB at Bo per velocity, both expressed in P."""
    R, p = mobilizer.calc_pose(q)
    H = mobilizer.calc_motion_matrix(q)
    if mobilizer.has_lever:
        p_MB_F = R @ mobilizer.X_MB.p
        p = p + p_MB_F
        H = shift_spatial_velocity(H, p_MB_F)
    if mobilizer.turns_B:
        R = R @ mobilizer.X_MB.R
    if mobilizer.turns_F:
        R_PF = mobilizer.X_PF.R
        R, p, H = R_PF @ R, R_PF @ p, rotate_spatial(R_PF, H)
    return RigidTransform(R, mobilizer.X_PF.p + p), H


def calc_motions(
    topology: Topology, placements: Sequence[Placement], v: Array, q: Array
) -> list[BodyMotion]:
    """Return the motions of all bodies.

    With the inboard body P, the position r = p_PB and V_PB = H v = (w, u)::

        w_WB = w_WP + w
        v_WB = v_WP + w_WP × r + u
        A_bias = (w_WP × w, w_WP × (w_WP × r + 2 u)) + bias of the joint
    """
    motions = [BodyMotion(np.zeros(6), np.zeros(6))] * len(topology.bodies)
    for mobilizer in topology.mobilizers:
        inboard, outboard = mobilizer.inboard, mobilizer.outboard
        B = placements[outboard]
        if mobilizer.is_weld:
            own = motions[0]
        else:
            own = _motion_in_inboard(mobilizer, B, v[mobilizer.v], q[mobilizer.q])
        motions[outboard] = own if inboard == 0 else _composed(motions[inboard], B.p_PB_W, own)
    return motions


def _composed(P: BodyMotion, p_PB: Array, own: BodyMotion) -> BodyMotion:
    """Return the motion of B in the world, from that of P and that of B in P."""
    w_WP = P.V_WB[:3]
    w_PB, v_PB = own.V_WB[:3], own.V_WB[3:]
    carried = shift_spatial_velocity(P.V_WB, p_PB)
    spin = cross(w_WP, p_PB)
    coriolis = np.concatenate([cross(w_WP, w_PB), cross(w_WP, spin + 2.0 * v_PB)])
    return BodyMotion(carried + own.V_WB, coriolis + own.A_bias)


def _motion_in_inboard(mobilizer: Mobilizer, B: Placement, v: Array, q: Array) -> BodyMotion:
    """Return V_PB and its bias at Bo as they are seen in P, expressed in the world."""
    V_PB = B.H_PB_W @ v
    if not mobilizer.has_bias:
        return BodyMotion(V_PB, np.zeros(6))
    w_PB_B = np.transpose(B.R_WB) @ V_PB[:3]
    return BodyMotion(V_PB, rotate_spatial(B.R_WB, mobilizer.calc_bias(q, v, w_PB_B)))


def calc_accelerations(
    topology: Topology,
    placements: Sequence[Placement],
    motions: Sequence[BodyMotion],
    vdot: Array | None = None,
) -> list[Array]:
    """Return the spatial accelerations of all bodies, expressed in the world, the world first.

    A_WB = shift(A_WP, p_PB) + H v̇ + A_bias, with v̇ = 0 when it is omitted.
    """
    accelerations: list[Array] = [np.zeros(6)] * len(topology.bodies)
    for mobilizer in topology.mobilizers:
        inboard, outboard = mobilizer.inboard, mobilizer.outboard
        B, A = placements[outboard], motions[outboard].A_bias
        if inboard:
            A = shift_spatial_velocity(accelerations[inboard], B.p_PB_W) + A
        if vdot is not None and not mobilizer.is_weld:
            A = A + B.H_PB_W @ vdot[mobilizer.v]
        accelerations[outboard] = A
    return accelerations


def world_inertias(
    placements: Sequence[Placement], mass_properties: Sequence[MassProperties]
) -> list[MassProperties]:
    """Return the spatial inertias of all bodies about Bo, expressed in the world.

    Given are those of all bodies but the world, each expressed in the body itself. The world comes
    first in the result; its numbers are zero.
    """
    world = MassProperties(np.float64(0.0), np.zeros(3), np.zeros((3, 3)))
    turned = [
        rotate_mass_properties(placement.R_WB, own)
        for placement, own in zip(placements[1:], mass_properties, strict=True)
    ]
    return [world, *turned]


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
