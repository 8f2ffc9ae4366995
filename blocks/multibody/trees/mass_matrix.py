"""The mass matrix of a tree, by the composite-rigid-body algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from flexure.blocks.math import (
    MassProperties,
    mirrored,
    shift_inertia_matrix,
    shift_spatial_force,
    spatial_inertia_matrix,
)
from flexure.blocks.multibody.bodies.body_motion import Placement
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.values.arrays import Array


def mass_matrix(
    topology: Topology, placements: Sequence[Placement], inertias_W: Sequence[MassProperties]
) -> Array:
    """Return the mass matrix M, with which the kinetic energy is ½ vᵀ M v.

    A velocity of a joint moves all bodies outboard of it as if they were one body. The forces that
    this takes are projected on the joint itself and on the joints inboard of it. M is exactly
    symmetric, and positive definite if every joint has an inertia to move.

    Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, section 6.2.
    """
    composites = [spatial_inertia_matrix(M) for M in inertias_W]
    blocks: dict[tuple[int, int], Array] = {}
    for mobilizer in reversed(topology.mobilizers):
        inboard, outboard, rows = mobilizer.inboard, mobilizer.outboard, mobilizer.rows
        composite, H = composites[outboard], placements[outboard].H_PB_W
        if inboard:
            shifted = shift_inertia_matrix(composite, -placements[outboard].p_PB_W)
            composites[inboard] = composites[inboard] + shifted
        if mobilizer.is_weld:
            continue
        F = composite[:, rows] @ H[rows]
        blocks[outboard, outboard] = mirrored(H[rows].T @ F[rows])
        for crossed, passed in pairwise(topology.path_to(outboard)):
            F = shift_spatial_force(F, -placements[crossed.outboard].p_PB_W)
            if not passed.is_weld:
                H = placements[passed.outboard].H_PB_W
                block = H[passed.rows].T @ F[passed.rows]
                blocks[passed.outboard, outboard] = block
                blocks[outboard, passed.outboard] = block.T
    return _assembled(topology, blocks)


def _assembled(topology: Topology, blocks: dict[tuple[int, int], Array]) -> Array:
    """Return the matrix of the blocks, which is zero between branches."""
    moving = [mobilizer for mobilizer in topology.mobilizers if not mobilizer.is_weld]
    if not moving:
        return np.zeros((0, 0))
    sizes = {mobilizer.outboard: mobilizer.joint.num_velocities for mobilizer in moving}
    return np.block(
        [[blocks.get((i, j), np.zeros((sizes[i], sizes[j]))) for j in sizes] for i in sizes]
    )
