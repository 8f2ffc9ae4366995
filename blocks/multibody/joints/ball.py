"""The base class of joints with which a frame turns about a point."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.joints.base.closure import ClosureEquation, held_together
from flexure.blocks.multibody.joints.orientation import OrientationJoint
from flexure.diagrams.values.arrays import Array, FloatArray


class BallJoint(OrientationJoint):
    """A joint that keeps Mo at Fo and lets M turn in any way.

    The velocities are the angular velocity w_FM, expressed in F.
    """

    VELOCITY_SUFFIXES = ("wx", "wy", "wz")
    can_rotate = True
    can_translate = False

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the positions q."""
        return RigidTransform(self.calc_rotation(q), np.zeros(3))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H = (1, 0), of shape (6, 3)."""
        return np.eye(6, 3)

    def closure(self) -> list[ClosureEquation]:
        """Return the equations of a loop: Fo and Mo together."""
        return held_together()

    def calc_motion_factors(self, q: Array) -> tuple[Array, Array]:
        """Return S = H and Q = R_FM."""
        return np.eye(6, 3), self.calc_rotation(q)

    def calc_position_rates(self, q: Array, v: Array) -> Array:
        """Return q̇ = N(q) v."""
        return self.calc_orientation_rates(q, v)

    def calc_velocities(self, q: Array, q_rate: Array) -> Array:
        """Return v = N⁺(q) q̇."""
        return self.calc_angular_velocity(q, q_rate)

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the coordinates of the rotation; the position is ignored."""
        return self.nearest_orientation(X_FM.R)

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the angular velocity; the velocity of Mo is ignored."""
        return V_FM[:3]

    @property
    def default_damping(self) -> float:
        """The first of the values of viscous damping in new contexts; setting it sets all three."""
        return float(self.default_damping_vector[0])

    @default_damping.setter
    def default_damping(self, damping: float) -> None:
        self.default_damping_vector = damping
