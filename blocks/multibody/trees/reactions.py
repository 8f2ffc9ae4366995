"""Reactions of joints and welds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexure.blocks.math import rotate_spatial, shift_spatial_force
from flexure.blocks.multibody.bodies.body_motion import Placement
from flexure.blocks.multibody.trees.topology import Mobilizer, Topology
from flexure.diagrams.values.arrays import Array


def transmitted_forces(
    topology: Topology, placements: Sequence[Placement], missing_W: Sequence[Array]
) -> list[Array]:
    """Return the spatial forces that joints exert on the bodies outboard of them.

    The inboard joint of a body transmits the difference between its inertial force and the applied
    forces, plus everything that its own joints transmit to outboard bodies.

    Parameters
    ----------
    topology : Topology
        The tree.
    placements : sequence of Placement
        As `calc_placements` gives them.
    missing_W : sequence of array, shape (6,)
        What each body needs to accelerate as it does, as `missing_forces` gives it.

    Returns
    -------
    list of array, shape (6,)
        Spatial force on each body by its joint, about Bo, expressed in the world, the world first.

    Notes
    -----
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
    """Return what a joint exerts on its child body C, at its frame M there.

    Parameters
    ----------
    mobilizer : Mobilizer
        The joint in the tree.
    placements : sequence of Placement
        As `calc_placements` gives them.
    transmitted_W : sequence of array, shape (6,)
        As `transmitted_forces` gives them.

    Returns
    -------
    array, shape (6,)
        Spatial force on C about Mo, expressed in M. The parent gets the opposite force there.
    """
    is_reversed = mobilizer.is_reversed
    B = placements[mobilizer.outboard]
    C = placements[mobilizer.inboard] if is_reversed else B
    X_CM = mobilizer.joint.frame_on_child.X_BF
    F = transmitted_W[mobilizer.outboard]
    F_Mo = shift_spatial_force(F, C.p_WB + C.R_WB @ X_CM.p - B.p_WB)
    return rotate_spatial(np.transpose(C.R_WB @ X_CM.R), -F_Mo if is_reversed else F_Mo)
