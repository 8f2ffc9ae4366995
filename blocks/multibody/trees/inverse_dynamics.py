"""The forces that a motion needs, by the recursion of Newton and Euler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from flexure.blocks.math import MassProperties, cross, shift_spatial_force
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.trees.kinematics import calc_accelerations
from flexure.blocks.multibody.trees.topology import Topology
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

    τ = M v̇ + C v - Σ Jᵀ F

    Parameters
    ----------
    topology : Topology
        The tree.
    placements, motions, inertias_W : sequence
        Of all bodies, as `calc_placements`, `calc_motions` and `world_inertias` give them.
    forces_W : sequence of array, shape (6,)
        Spatial force F that acts on each body about Bo, expressed in the world, the world first.
    vdot : array, shape (num_velocities,)
        Rates of all velocities.

    Returns
    -------
    array, shape (num_velocities,)

    Notes
    -----
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

    Parameters
    ----------
    motions, inertias_W : sequence
        Of all bodies, as `calc_motions` and `world_inertias` give them.
    forces_W, accelerations : sequence of array, shape (6,)
        Spatial forces on all bodies, and their accelerations, expressed in the world.

    Returns
    -------
    list of array, shape (6,)
        Spatial forces about Bo, expressed in the world, the world first.
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

    Parameters
    ----------
    M : MassProperties
        Spatial inertia about Bo.
    w : array, shape (3,)
        Angular velocity, expressed in the same frame.
    A : array, shape (6,)
        Angular acceleration and acceleration of Bo, expressed in the same frame.

    Returns
    -------
    array, shape (6,)
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

    Parameters
    ----------
    topology : Topology
        The tree.
    placements : sequence of Placement
        As `calc_placements` gives them.
    forces_W : mapping from int to array, shape (6,)
        Spatial forces about Bo, expressed in the world, by the numbers of the bodies that have any.

    Returns
    -------
    array, shape (num_velocities,)
        Along the velocities of the joints, in N or N m.
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
