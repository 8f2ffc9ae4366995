"""Where a body is and how it moves, as the algorithms on trees hand it on."""

from __future__ import annotations

from typing import NamedTuple

from flexure.blocks.math import RigidTransform
from flexure.diagrams.values.arrays import Array


class Placement(NamedTuple):
    """Where a body B is, and how it can move in the body P that is next to it inboard."""

    # R_WB, p_WB: pose of B in the world, shapes (3, 3) and (3,).
    R_WB: Array
    p_WB: Array
    p_PB_W: Array  # position of Bo from Po, expressed in the world, shape (3,)
    # Spatial velocity of B in P at Bo per velocity of the joint: V_PB_W = H_PB_W v, shape (6, nv).
    H_PB_W: Array
    X_PB: RigidTransform  # pose of B in P


class BodyMotion(NamedTuple):
    """How a body B moves."""

    V_WB: Array  # spatial velocity of B in the world at Bo, expressed in the world, shape (6,)
    # What is left of the spatial acceleration of B when neither the body P inboard of it nor the
    # velocities of the joint change: Coriolis and centripetal terms, and those of Ḣ v, shape (6,).
    A_bias: Array
