"""Joints that allow all motions: the floating joints."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.joints.base.joint import Limits
from flexure.blocks.multibody.joints.base.joint_quantities import Default, Position, Velocity
from flexure.blocks.multibody.joints.orientation import (
    OrientationJoint,
    QuaternionJoint,
    RollPitchYawJoint,
)
from flexure.diagrams.values.arrays import Array, Distribution, FloatArray, as_finite

_ANGULAR, _TRANSLATIONAL = slice(0, 3), slice(3, 6)
#: The position of Mo follows the coordinates of the orientation, however many there are.
_TRANSLATION = slice(-3, None)


class FloatingJoint(OrientationJoint):
    """A joint that lets M move in F in any way.

    The positions are the coordinates of the orientation and p_FM in F, the velocities w_FM and
    v_FMo, both expressed in F.
    """

    VELOCITY_SUFFIXES = ("wx", "wy", "wz", "vx", "vy", "vz")
    can_rotate = True
    can_translate = True

    def __init__(
        self,
        name: str,
        frame_on_parent: FrameLike,
        frame_on_child: FrameLike,
        *,
        angular_damping: float = 0.0,
        translational_damping: float = 0.0,
        position_limits: Limits | None = None,
        velocity_limits: Limits | None = None,
        acceleration_limits: Limits | None = None,
    ) -> None:
        attempt = f"Cannot make joint '{name}'"
        damping = [
            as_finite(value, (), attempt) for value in (angular_damping, translational_damping)
        ]
        super().__init__(
            name,
            frame_on_parent,
            frame_on_child,
            damping=np.repeat(damping, 3),
            position_limits=position_limits,
            velocity_limits=velocity_limits,
            acceleration_limits=acceleration_limits,
        )

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the positions q."""
        return RigidTransform(self.calc_rotation(q[self.ORIENTATION]), q[_TRANSLATION])

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H = 1, of shape (6, 6)."""
        return np.eye(6)

    def calc_motion_factors(self, q: Array) -> tuple[Array, Array]:
        """Return S = 1 and Q = diag(R_FM, R_FM)."""
        R, zero = self.calc_rotation(q[self.ORIENTATION]), np.zeros((3, 3))
        return np.eye(6), np.block([[R, zero], [zero, R]])

    def calc_position_rates(self, q: Array, v: Array) -> Array:
        """Return q̇ = N(q) v; the rate of p_FM is v_FMo."""
        rates = self.calc_orientation_rates(q[self.ORIENTATION], v[_ANGULAR])
        return np.concatenate([rates, v[_TRANSLATIONAL]])

    def calc_velocities(self, q: Array, q_rate: Array) -> Array:
        """Return v = N⁺(q) q̇."""
        w_FM = self.calc_angular_velocity(q[self.ORIENTATION], q_rate[self.ORIENTATION])
        return np.concatenate([w_FM, q_rate[_TRANSLATION]])

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the positions of the pose."""
        return np.concatenate([self.nearest_orientation(X_FM.R), X_FM.p])

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the spatial velocity itself."""
        return V_FM

    translation = Position[FloatArray](
        _TRANSLATION, "The position p_FM in a context, expressed in F, in m."
    )
    translational_velocity = Velocity[FloatArray](
        _TRANSLATIONAL, "The velocity v_FMo in a context, expressed in F, in m/s."
    )

    @property
    def default_angular_damping(self) -> float:
        """The first value of viscous damping in new contexts; setting it sets the first three."""
        return float(self.default_damping_vector[0])

    @default_angular_damping.setter
    def default_angular_damping(self, damping: float) -> None:
        self._replace_damping(_ANGULAR, damping)

    @property
    def default_translational_damping(self) -> float:
        """The last value of viscous damping in new contexts; setting it sets the last three."""
        return float(self.default_damping_vector[5])

    @default_translational_damping.setter
    def default_translational_damping(self, damping: float) -> None:
        self._replace_damping(_TRANSLATIONAL, damping)

    def _replace_damping(self, part: slice, damping: float) -> None:
        values = self.default_damping_vector.copy()
        values[part] = as_finite(damping, (), f"Cannot set the damping of joint '{self.name}'")
        self.default_damping_vector = values

    default_translation = Default[FloatArray](_TRANSLATION, "The position p_FM")

    def set_random_translation_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw the position from ``sampler(rng)``; velocities stay zero."""
        self._set_random_part(_TRANSLATION, sampler)


class QuaternionFloatingJoint(QuaternionJoint, FloatingJoint):
    """A joint with six degrees of freedom; its orientation is a quaternion.

    With q = (q_FM, p_FM), the quaternion (w, x, y, z) and the position, and v = (w_FM, v_FMo), all
    expressed in F::

        R_FM = R(q_FM / |q_FM|)
        q̇ = (½ (0, w_FM) ⊗ q_FM, v_FMo)

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    angular_damping : float
        Viscous damping >= 0 in N m s/rad: the moment -d w_FM on the child about Mo.
    translational_damping : float
        Viscous damping >= 0 in N s/m: the force -d v_FMo on the child at Mo.
    position_limits, velocity_limits, acceleration_limits : tuple of array_like, optional
        Lower and upper limits of the quaternion, in m and of the rates, infinite when omitted.
        They are only stored.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When damping is negative, limits are not in order, or a quaternion is set to zero.

    See Also
    --------
    RpyFloatingJoint : A joint with six degrees of freedom.

    Notes
    -----
    The equations keep the length of the quaternion but do not restore it: it drifts by the errors
    of integration, which does not matter to R_FM.

    Examples
    --------
    >>> import numpy as np
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> free = QuaternionFloatingJoint("free", Body("ground"), Body("boat"))
    >>> free.calc_pose(np.array([2.0, 0.0, 0.0, 2.0, 5.0, 0.0, 1.0])).R @ [2.0, 0.0, 0.0]
    array([0., 2., 0.])
    """

    TYPE_NAME = "quaternion_floating"
    POSITION_SUFFIXES = ("qw", "qx", "qy", "qz", "x", "y", "z")


class RpyFloatingJoint(RollPitchYawJoint, FloatingJoint):
    """A joint with six degrees of freedom; its orientation is roll, pitch and yaw.

    With q = (r, p, y, p_FM), the angles roll, pitch and yaw and the position, and v = (w_FM,
    v_FMo), all expressed in F::

        R_FM = Rz(y) Ry(p) Rx(r)
        q̇ = (N(q) w_FM, v_FMo)

    where N is that of `BallRpyJoint`.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    angular_damping : float
        Viscous damping >= 0 in N m s/rad: the moment -d w_FM on the child about Mo.
    translational_damping : float
        Viscous damping >= 0 in N s/m: the force -d v_FMo on the child at Mo.
    position_limits, velocity_limits, acceleration_limits : tuple of array_like, optional
        Lower and upper limits in rad and m and their rates, infinite when omitted. They are only
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
    QuaternionFloatingJoint : A joint with six degrees of freedom.

    Notes
    -----
    Where ``|cos p| < 0.001``, which is within 0.0573 degrees of a pitch of ±90 degrees, the rates
    of the angles are refused; poses and accelerations are defined everywhere.
    `QuaternionFloatingJoint` has no such limit.

    Examples
    --------
    >>> import numpy as np
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> free = RpyFloatingJoint("free", Body("ground"), Body("boat"))
    >>> free.calc_pose(np.array([0.0, 0.0, np.pi / 6, 5.0, 0.0, 1.0])).R @ [2.0, 0.0, 0.0]
    array([1.73205081, 1.        , 0.        ])
    """

    TYPE_NAME = "rpy_floating"
    POSITION_SUFFIXES = ("qx", "qy", "qz", "x", "y", "z")
    ALTERNATIVE = "QuaternionFloatingJoint"
