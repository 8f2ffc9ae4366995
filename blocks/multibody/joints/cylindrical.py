"""The cylindrical joint: rotation about one axis, and translation along it, each by itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.joints.axial import AxisJoint
from flexure.blocks.multibody.joints.base.closure import (
    Along,
    ClosureEquation,
    parallel,
    two_normals,
)
from flexure.blocks.multibody.joints.base.joint_quantities import Default, Position, Velocity
from flexure.diagrams.values.arrays import Array, Distribution, FloatArray

_ROTATION, _TRANSLATION = 0, 1


class CylindricalJoint(AxisJoint):
    """A joint with rotation about an axis λ and translation along it, as in a bushing.

    With the angle θ and the distance x, q = (θ, x), and the rates v = q̇::

        R_FM = R(λ, θ),  p_FM = λ x
        w_FM = λ v₁,  v_FMo = λ v₂

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    axis : array_like, shape (3,)
        Direction of λ, of any length; its components in F, which are those in M.
    damping : float or array_like, shape (2,)
        Viscous damping d >= 0 of the rotation in N m s/rad and of the translation in N s/m: the
        torque and the force -d v.
    position_limits, velocity_limits, acceleration_limits : tuple of array_like, optional
        Lower and upper limits of the angle and of the distance, in rad and m, and of their rates,
        infinite when omitted. They are only stored; `JointStop` makes position limits act.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When the axis is zero, damping is negative, or limits are not in order.

    See Also
    --------
    ScrewJoint : A joint with rotation about an axis λ and proportional translation along it.

    Notes
    -----
    It moves as a revolute and a prismatic joint on one axis, without a body between them. A
    `ScrewJoint` ties its two coordinates together. As a loop joint it holds Mo on the axis, and the
    axis parallel: four equations.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> rod = CylindricalJoint("rod", Body("bushing"), Body("piston"), axis=(0, 0, 1))
    >>> X_FM = rod.calc_pose(np.array([np.pi / 6, 0.2]))
    >>> X_FM.R @ [2.0, 0.0, 0.0] + X_FM.p
    array([1.73205081, 1.        , 0.2       ])
    """

    TYPE_NAME = "cylindrical"
    POSITION_SUFFIXES = ("q", "x")
    VELOCITY_SUFFIXES = ("w", "v")
    can_rotate = True
    can_translate = True

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the positions q = (θ, x)."""
        return RigidTransform(self._rotation(q[_ROTATION]), self._translation(q[_TRANSLATION]))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H, whose columns are (λ, 0) and (0, λ)."""
        return np.kron(np.eye(2), self._axis[:, None])

    def closure(self) -> list[ClosureEquation]:
        """Return the equations of a loop: Mo on the axis, and λ the same in F and M."""
        return [*(Along(e) for e in two_normals(self._axis)), *parallel(self._axis)]

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the angle whose rotation is nearest, and the part of the position along λ."""
        return np.array([self._nearest_angle(X_FM.R), self._axis @ X_FM.p])

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the parts of the angular velocity and of the velocity along λ."""
        return np.array([self._axis @ V_FM[:3], self._axis @ V_FM[3:]])

    @property
    def default_damping(self) -> FloatArray:
        """Viscous damping in new contexts, of the rotation and of the translation."""
        return self.default_damping_vector

    @default_damping.setter
    def default_damping(self, damping: npt.ArrayLike) -> None:
        self.default_damping_vector = damping

    rotation = Position[float](
        _ROTATION, "The angle in a context, in rad, right-handed about the axis."
    )
    translation = Position[float](
        _TRANSLATION, "The distance of Mo from Fo along the axis in a context, in m."
    )
    angular_velocity = Velocity[float](_ROTATION, "The rate of the angle in a context, in rad/s.")
    translational_velocity = Velocity[float](
        _TRANSLATION, "The rate of the distance in a context, in m/s."
    )
    default_rotation = Default[float](_ROTATION, "The angle")
    default_translation = Default[float](_TRANSLATION, "The distance")

    def set_random_pose_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw (θ, x) from ``sampler(rng)``; velocities stay zero."""
        self.set_random_positions_distribution(sampler)
