"""The joint whose coordinates are amplitudes of modes."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.values.arrays import Array, FloatArray


class ModalJoint(Joint):
    """A joint whose coordinates move no body: amplitudes of the internal modes of a flexible body.

    It is between the first interface of the flexible body and a body without inertia.
    """

    TYPE_NAME = "modal"
    can_rotate = False
    can_translate = False

    def __init__(
        self, name: str, frame_on_parent: FrameLike, frame_on_child: FrameLike, count: int
    ) -> None:
        self.POSITION_SUFFIXES = tuple(f"x{k}" for k in range(1, count + 1))  # type: ignore[misc]
        self.VELOCITY_SUFFIXES = tuple(f"v{k}" for k in range(1, count + 1))  # type: ignore[misc]
        super().__init__(name, frame_on_parent, frame_on_child)

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the identity."""
        return RigidTransform(np.eye(3), np.zeros(3))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H = 0."""
        return np.zeros((6, self.num_velocities))

    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v = 0."""
        return np.zeros(6)

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return zeros, since no pose depends on the positions."""
        return np.zeros(self.num_positions)

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return zeros, since no velocity depends on them."""
        return np.zeros(self.num_velocities)
