"""Joints with which a frame turns about a point: the ball joints."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.joints.base.closure import ClosureEquation, held_together
from flexure.blocks.multibody.joints.orientation import (
    OrientationJoint,
    QuaternionJoint,
    RollPitchYawJoint,
)
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


class BallRpyJoint(RollPitchYawJoint, BallJoint):
    """A ball joint with Mo at Fo; its orientation is roll, pitch and yaw.

    With the angles q = (r, p, y), roll, pitch and yaw, and the angular velocity v = w_FM expressed
    in F::

        R_FM = Rz(y) Ry(p) Rx(r),  p_FM = 0
        w_FM = v,  v_FMo = 0
        q̇ = N(q) v

            ⎡ cos y / cos p   sin y / cos p   0 ⎤
        N = ⎢    -sin y           cos y       0 ⎥
            ⎣ cos y tan p     sin y tan p     1 ⎦

    The velocities are not the rates of the angles.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    damping : float or array_like, shape (3,)
        Viscous damping d >= 0 in N m s/rad: the moment -d v on the child, expressed in F.
    position_limits, velocity_limits, acceleration_limits : tuple of array_like, optional
        Lower and upper limits in rad, rad/s and rad/s², infinite when omitted. They are only
        stored; `JointStop` makes position limits act.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When damping is negative, or limits are not in order.
    EvaluationError
        From the equations of motion, in gimbal lock.

    See Also
    --------
    BallQuaternionJoint : A ball joint with Mo at Fo.

    Notes
    -----
    N exists where cos p is not zero. Where ``|cos p| < 0.001``, which is within 0.0573 degrees of
    a pitch of ±90 degrees, the rates of the angles are refused; poses and accelerations are
    defined everywhere. `BallQuaternionJoint` has no such limit.

    Coordinates and tolerance are those of Drake 1.51. Unlike there, all three values of damping
    act, they add to other forces, and poses can be set.

    Examples
    --------
    >>> import numpy as np
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> hip = BallRpyJoint("hip", Body("pelvis"), Body("thigh"))
    >>> hip.calc_position_rates(np.array([0.0, 0.0, np.pi / 2]), np.array([1.0, 0.0, 0.0]))
    array([ 0., -1.,  0.])
    """

    TYPE_NAME = "ball_rpy"
    POSITION_SUFFIXES = ("qx", "qy", "qz")
    PORT_NAMES = ("angles", "angular_velocity")
    ALTERNATIVE = "BallQuaternionJoint"


class BallQuaternionJoint(QuaternionJoint, BallJoint):
    """A ball joint with Mo at Fo; its orientation is a quaternion.

    With the quaternion q = (w, x, y, z) and the angular velocity v = w_FM expressed in F::

        R_FM = R(q / |q|),  p_FM = 0
        w_FM = v,  v_FMo = 0
        q̇ = ½ (0, v) ⊗ q

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    damping : float or array_like, shape (3,)
        Viscous damping d >= 0 in N m s/rad: the moment -d v on the child, expressed in F.
    position_limits, velocity_limits, acceleration_limits : tuple of array_like, optional
        Lower and upper limits of the quaternion, in rad/s and in rad/s², infinite when omitted.
        They are only stored.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When damping is negative, limits are not in order, or a quaternion is set to zero.

    See Also
    --------
    BallRpyJoint : A ball joint with Mo at Fo.

    Notes
    -----
    There is no singularity, at the price of a fourth position. The equations keep the length of q
    but do not restore it: it drifts by the errors of integration, which does not matter to R_FM.

    Examples
    --------
    >>> import numpy as np
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> hip = BallQuaternionJoint("hip", Body("pelvis"), Body("thigh"))
    >>> hip.calc_position_rates(np.array([0.0, 1.0, 0.0, 0.0]), np.array([2.0, 0.0, 2.0]))
    array([-1.,  0.,  1.,  0.])
    """

    TYPE_NAME = "ball_quaternion"
    POSITION_SUFFIXES = ("qw", "qx", "qy", "qz")
    PORT_NAMES = ("quaternion", "angular_velocity")
