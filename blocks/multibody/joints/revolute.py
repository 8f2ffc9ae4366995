"""The revolute joint: rotation about one axis, as that of a door."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.joints.axial import AxialJoint
from flexure.blocks.multibody.joints.base.closure import ClosureEquation, held_together, parallel
from flexure.blocks.multibody.joints.base.joint_quantities import Default, Position, Velocity
from flexure.diagrams.values.arrays import Array, Distribution, FloatArray

if TYPE_CHECKING:
    from flexure.blocks.multibody.bodies.multibody_forces import MultibodyForces


class RevoluteJoint(AxialJoint):
    """A joint with rotation about an axis λ through Fo and Mo, which coincide.

    With the angle q and its rate v = q̇::

        R_FM = R(λ, q),  p_FM = 0
        w_FM = λ v,  v_FMo = 0

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    axis : array_like, shape (3,)
        Direction of λ, of any length; its components in F, which are those in M.
    damping : float
        Viscous damping d >= 0 in N m s/rad: the torque -d v.
    position_limits, velocity_limits, acceleration_limits : tuple of float, optional
        Lower and upper limits in rad, rad/s and rad/s², infinite when omitted. They are only
        stored; `JointStop` makes position limits act.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When the axis is zero, damping is negative, or limits are not in order.

    See Also
    --------
    PrismaticJoint : A joint with translation of Mo along an axis λ through Fo.
    UniversalJoint : A joint with rotations about the x axis of F and about the y axis of M.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> axis = RevoluteJoint("axis", Body("wall"), Body("panel"), axis=(0, 0, 2))
    >>> axis.calc_pose(np.array([np.pi / 6])).R @ [2.0, 0.0, 0.0]
    array([1.73205081, 1.        , 0.        ])
    """

    TYPE_NAME = "revolute"
    POSITION_SUFFIXES = ("q",)
    VELOCITY_SUFFIXES = ("w",)
    PORT_NAMES = ("angle", "rate")
    can_rotate = True
    can_translate = False

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the angle q."""
        return RigidTransform(self._rotation(q[0]), np.zeros(3))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H = (λ, 0), of shape (6, 1)."""
        return np.concatenate([self._axis, np.zeros(3)]).reshape(6, 1)

    def closure(self) -> list[ClosureEquation]:
        """Return the equations of a loop: Fo and Mo together, and λ the same in F and M."""
        return [*held_together(), *parallel(self._axis)]

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the angle whose rotation is nearest to that of X_FM."""
        return np.array([self._nearest_angle(X_FM.R)])

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the part of the angular velocity along the axis."""
        return np.array([self._axis @ V_FM[:3]])

    @property
    def revolute_axis(self) -> FloatArray:
        """Unit vector λ along the axis, with the same components in F and in M."""
        return self._axis

    angle = Position[float](0, "The angle in a context, in rad, right-handed about the axis.")
    angular_rate = Velocity[float](0, "The rate of the angle in a context, in rad/s.")
    default_angle = Default[float](0, "The angle")

    def set_random_angle_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw the angle from ``sampler(rng)``; the rate stays zero."""
        self.set_random_positions_distribution(sampler)

    def add_in_torque(self, torque: float, forces: MultibodyForces) -> None:
        """Add a torque about the axis, in N m, on the child body."""
        self.add_in_one_force(0, torque, forces)
