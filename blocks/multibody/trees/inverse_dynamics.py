"""The forces that a motion needs, by the recursion of Newton and Euler, and reactions of joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from flexure.blocks.math import MassProperties, cross, rotate_spatial, shift_spatial_force
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.trees.kinematics import calc_accelerations
from flexure.blocks.multibody.trees.topology import Mobilizer, Topology
from flexure.diagrams.values.arrays import Array


def inverse_dynamics(
    topology: Topology,
    placements: Sequence[Placement],
    motions: Sequence[BodyMotion],
    inertias_W: Sequence[MassProperties],
    forces_W: Sequence[Array],
    vdot: Array,
) -> Array:
    """Return the generalized forces under which the joints accelerate as given.

    τ = M v̇ + C v - Σ Jᵀ F, with the spatial forces F on all bodies about Bo, expressed in the
    world.

    Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, section 5.3.
    """
    accelerations = calc_accelerations(topology, placements, motions, vdot)
    missing = missing_forces(motions, inertias_W, forces_W, accelerations)
    return generalized_forces(topology, placements, dict(enumerate(missing)))


def missing_forces(
    motions: Sequence[BodyMotion],
    inertias_W: Sequence[MassProperties],
    forces_W: Sequence[Array],
    accelerations: Sequence[Array],
) -> list[Array]:
    """Return what each body needs beside the forces that act, to accelerate as given.

    Spatial forces are about Bo, expressed in the world, as accelerations are, the world first.
    """
    missing: list[Array] = [np.zeros(6)]
    bodies = zip(motions, inertias_W, forces_W, accelerations, strict=True)
    for motion, M, F, A in islice(bodies, 1, None):
        missing.append(needed_force(M, motion.V_WB[:3], A) - F)
    return missing


def needed_force(M: MassProperties, w: Array, A: Array) -> Array:
    """Return the force (t, f) about Bo that a body needs to accelerate.

    With c = p_BoBcm and the acceleration A = (α, a) of Bo::

        t = I α + w × I w + m c × a
        f = m (a + α × c + w × (w × c))

    All vectors are expressed in one frame.
    """
    mass, com, inertia = M
    alpha, a = A[:3], A[3:]
    moment = mass * com
    t = inertia @ alpha + cross(w, inertia @ w) + cross(moment, a)
    f = mass * a + cross(alpha, moment) + cross(w, cross(w, moment))
    return np.concatenate([t, f])


def generalized_forces(
    topology: Topology, placements: Sequence[Placement], forces_W: Mapping[int, Array]
) -> Array:
    """Return spatial forces on the bodies as generalized forces Σ Jᵀ F.

    Forces are about Bo, expressed in the world, by the numbers of the bodies that have any.
    """
    carried = dict(forces_W)
    parts = [np.zeros(0)]
    for mobilizer in reversed(topology.mobilizers):
        inboard, outboard, rows = mobilizer.inboard, mobilizer.outboard, mobilizer.rows
        if outboard not in carried:
            parts.append(np.zeros(mobilizer.joint.num_velocities))
            continue
        B, F = placements[outboard], carried[outboard]
        parts.append(B.H_PB_W[rows].T @ F[rows])
        if inboard:
            shifted = shift_spatial_force(F, -B.p_PB_W)
            carried[inboard] = carried[inboard] + shifted if inboard in carried else shifted
    return np.concatenate(parts[::-1])


def transmitted_forces(
    topology: Topology, placements: Sequence[Placement], missing_W: Sequence[Array]
) -> list[Array]:
    """Return the spatial forces that joints exert on the bodies outboard of them.

    The inboard joint of a body transmits the difference between its inertial force and the applied
    forces, plus everything that its own joints transmit to outboard bodies. ``missing_W`` is what
    `missing_forces` gives. The results are about Bo, expressed in the world, the world first.

    Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, section 5.3.
    """
    carried = list(missing_W)
    for mobilizer in reversed(topology.mobilizers):
        inboard, outboard = mobilizer.inboard, mobilizer.outboard
        if inboard:
            p_PB_W = placements[outboard].p_PB_W
            passed = shift_spatial_force(carried[outboard], -p_PB_W)
            carried[inboard] = carried[inboard] + passed
    return carried


def reaction(
    mobilizer: Mobilizer, placements: Sequence[Placement], transmitted_W: Sequence[Array]
) -> Array:
    """Return what a joint exerts on its child body C about its frame M there, expressed in M.

    The parent gets the opposite force there. ``transmitted_W`` is what `transmitted_forces` gives.
    """
    is_reversed = mobilizer.is_reversed
    B = placements[mobilizer.outboard]
    C = placements[mobilizer.inboard] if is_reversed else B
    X_CM = mobilizer.joint.frame_on_child.X_BF
    F = transmitted_W[mobilizer.outboard]
    F_Mo = shift_spatial_force(F, C.p_WB + C.R_WB @ X_CM.p - B.p_WB)
    return rotate_spatial(np.transpose(C.R_WB @ X_CM.R), -F_Mo if is_reversed else F_Mo)
