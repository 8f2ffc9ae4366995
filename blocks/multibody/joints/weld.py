"""The weld joint: no motion at all."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.bodies.body_motion import PoseLike, checked_pose
from flexure.blocks.multibody.joints.base.closure import ClosureEquation, held_together, unturned
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.values.arrays import Array, FloatArray, freeze


class WeldJoint(Joint):
    """A joint that holds M in F in a constant pose.

    It has no positions and no velocities; X_FM is constant and V_FM = 0.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    pose : tuple of array_like, shapes (3, 3) and (3,), or array_like, shape (3,), optional
        The pose X_FM as a rotation matrix and a position in m, or a position alone; the identity
        when omitted.

    Raises
    ------
    DeclarationError
        When a frame is missing, both are on one body, or the pose is not finite or its matrix is
        no rotation.

    See Also
    --------
    RevoluteJoint : A joint with rotation about an axis λ through Fo and Mo.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> foot = WeldJoint("foot", Body("ground"), Body("post"), (np.eye(3), [0.0, 0.0, 0.5]))
    >>> foot.calc_pose(np.zeros(0)).p
    array([0. , 0. , 0.5])
    """

    TYPE_NAME = "weld"
    POSITION_SUFFIXES = ()
    VELOCITY_SUFFIXES = ()
    can_rotate = False
    can_translate = False

    def __init__(
        self,
        name: str,
        frame_on_parent: FrameLike,
        frame_on_child: FrameLike,
        pose: PoseLike | None = None,
    ) -> None:
        super().__init__(name, frame_on_parent, frame_on_child)
        R, p = checked_pose(pose, f"Cannot make joint '{name}'")
        self.X_FM = RigidTransform(freeze(R), freeze(p))

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM, which is constant."""
        return self.X_FM

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H, which has no columns."""
        return np.zeros((6, 0))

    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v = 0."""
        return np.zeros(6)

    def closure(self) -> list[ClosureEquation]:
        """Return the equations of a loop: the pose X_FM."""
        return [*held_together(self.X_FM.p), *unturned(self.X_FM.R)]

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return no positions, as there are none."""
        return np.zeros(0)

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return no velocities, as there are none."""
        return np.zeros(0)
