"""Where a body is and how it moves, as the algorithms on trees hand it on."""

from __future__ import annotations

from typing import NamedTuple

from flexure.blocks.math import RigidTransform
from flexure.diagrams.values.arrays import Array


class Placement(NamedTuple):
    """Where a body B is, and how it can move in the body P that is next to it inboard.

    Attributes
    ----------
    R_WB, p_WB : array, shapes (3, 3) and (3,)
        Pose of B in the world.
    p_PB_W : array, shape (3,)
        Position of Bo from Po, expressed in the world.
    H_PB_W : array, shape (6, nv)
        Spatial velocity of B in P at Bo per velocity of the joint: V_PB_W = H_PB_W v.
    X_PB : RigidTransform
        Pose of B in P.
    """

    R_WB: Array
    p_WB: Array
    p_PB_W: Array
    H_PB_W: Array
    X_PB: RigidTransform


class BodyMotion(NamedTuple):
    """How a body B moves."""

    V_WB: Array  # spatial velocity of B in the world at Bo, expressed in the world, shape (6,)
    # What is left of the spatial acceleration of B when neither the body P inboard of it nor the
    # velocities of the joint change: Coriolis and centripetal terms, and those of Ḣ v, shape (6,).
    A_bias: Array
