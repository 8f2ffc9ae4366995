"""The screw joint: rotation about one axis with an advance along it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.joints.axial import AxialJoint
from flexure.blocks.multibody.joints.base.closure import (
    Advance,
    Along,
    ClosureEquation,
    parallel,
    two_normals,
)
from flexure.blocks.multibody.joints.base.joint import Limits
from flexure.blocks.multibody.joints.base.joint_quantities import (
    Default,
    JointValue,
    Position,
    Velocity,
)
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import Array, Distribution, FloatArray, as_finite

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context


class ScrewJoint(AxialJoint):
    """A joint with rotation about an axis λ and proportional translation along it.

    With the angle q, its rate v = q̇ and the pitch h, the advance per turn::

        R_FM = R(λ, q),  p_FM = λ q h / 2π
        w_FM = λ v,  v_FMo = λ v h / 2π

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    axis : array_like, shape (3,)
        Direction of λ, of any length; its components in F, which are those in M.
    screw_pitch : float
        Advance h along λ per right-handed turn in m, of either sign; with zero the joint is
        revolute.
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
        When the axis is zero, the pitch is not finite, damping is negative, or limits are not in
        order.

    See Also
    --------
    CylindricalJoint : A joint with rotation about an axis λ and translation along it.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> spindle = ScrewJoint("spindle", Body("nut"), Body("rod"), screw_pitch=0.005)
    >>> spindle.calc_pose(np.array([20 * np.pi])).p
    array([0.  , 0.  , 0.05])
    """

    TYPE_NAME = "screw"
    POSITION_SUFFIXES = ("q",)
    VELOCITY_SUFFIXES = ("w",)
    PORT_NAMES = ("rotation", "rate")
    can_rotate = True
    can_translate = True

    def __init__(
        self,
        name: str,
        frame_on_parent: FrameLike,
        frame_on_child: FrameLike,
        axis: npt.ArrayLike = (0.0, 0.0, 1.0),
        *,
        screw_pitch: float,
        damping: npt.ArrayLike = 0.0,
        position_limits: Limits | None = None,
        velocity_limits: Limits | None = None,
        acceleration_limits: Limits | None = None,
    ) -> None:
        super().__init__(
            name,
            frame_on_parent,
            frame_on_child,
            axis,
            damping=damping,
            position_limits=position_limits,
            velocity_limits=velocity_limits,
            acceleration_limits=acceleration_limits,
        )
        self.screw_pitch = float(as_finite(screw_pitch, (), f"Cannot make joint '{name}'"))
        self._advance = self.screw_pitch / (2.0 * np.pi)

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the angle q."""
        return RigidTransform(self._rotation(q[0]), self._translation(self._advance * q[0]))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H = (λ, λ h / 2π), of shape (6, 1)."""
        return np.concatenate([self._axis, self._advance * self._axis]).reshape(6, 1)

    def closure(self) -> list[ClosureEquation]:
        """Return the equations of a loop: Mo on the axis, as far as M has turned about it."""
        normals = two_normals(self._axis)
        if self._advance:
            along: ClosureEquation = Advance(self._axis, normals[0], self._advance)
        else:
            along = Along(self._axis)
        return [*(Along(e) for e in normals), along, *parallel(self._axis)]

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the angle whose rotation is nearest; the position tells the number of turns."""
        angle = self._nearest_angle(X_FM.R)
        if self.screw_pitch == 0.0:
            return np.array([angle])
        distance = self._axis @ X_FM.p
        turns = np.round(distance / self.screw_pitch - angle / (2.0 * np.pi))
        return np.array([angle + 2.0 * np.pi * turns])

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the part of the angular velocity along the axis."""
        return np.array([self._axis @ V_FM[:3]])

    @property
    def screw_axis(self) -> FloatArray:
        """Unit vector λ along the axis, with the same components in F and in M."""
        return self._axis

    rotation = Position[float](0, "The angle in a context, in rad, right-handed about the axis.")
    angular_velocity = Velocity[float](0, "The rate of the angle in a context, in rad/s.")

    @property
    def translation(self) -> JointValue[float]:
        """The distance of Mo from Fo along the axis in a context, in m."""
        return self._advancing(self.rotation, "translation")

    @property
    def translational_velocity(self) -> JointValue[float]:
        """The velocity of Mo along the axis in a context, in m/s."""
        return self._advancing(self.angular_velocity, "translational_velocity")

    def _advancing(self, turning: JointValue[float], name: str) -> JointValue[float]:
        """Return the handle of what goes along the axis as something else turns."""

        def read(context: Context) -> float:
            return self._advance * turning.get(context)

        def write(context: Context, value: Any) -> None:
            turning.set(context, self._turned(value, name))

        return JointValue(self, name, read, write)

    def _turned(self, advanced: npt.ArrayLike, name: str) -> float:
        """Return the angle or rate of something that goes along the axis."""
        attempt = f"Cannot set '{name}' of joint '{self.name}'"
        number = as_finite(advanced, (), attempt)
        if self.screw_pitch == 0.0:
            raise ValueRefusedError(
                attempt,
                expected="a screw with a pitch",
                found="a pitch of zero, with which nothing moves along the axis",
            )
        return float(number / self._advance)

    default_rotation = Default[float](0, "The angle")

    @property
    def default_translation(self) -> float:
        """The distance in new contexts; it can be set until the plant is built."""
        return self._advance * self.default_rotation

    @default_translation.setter
    def default_translation(self, translation: float) -> None:
        self.default_rotation = self._turned(translation, "default_translation")

    def set_random_pose_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw the angle from ``sampler(rng)``; its rate stays zero."""
        self.set_random_positions_distribution(sampler)
