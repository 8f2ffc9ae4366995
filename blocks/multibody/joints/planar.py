"""The planar joint: translation in a plane, and rotation about its normal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, z_rotation
from flexure.blocks.multibody.joints.base.closure import Along, ClosureEquation, parallel
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.base.joint_quantities import Default, Position, Velocity
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array, Distribution, FloatArray

_TRANSLATION, _ROTATION = slice(0, 2), 2


class PlanarJoint(Joint):
    """A joint with motion of Mo in the x-y plane of F and rotation about its z axis.

    With q = (x, y, θ) and v = q̇::

        R_FM = Rz(θ),  p_FM = (x, y, 0)
        w_FM = (0, 0, v₃),  v_FMo = (v₁, v₂, 0)

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    damping : float or array_like, shape (3,)
        Viscous damping d >= 0 of x and y in N s/m and of θ in N m s/rad: the forces and the
        torque -d v.
    position_limits, velocity_limits, acceleration_limits : tuple of array_like, optional
        Lower and upper limits in m and rad and their rates, infinite when omitted. They are only
        stored; `JointStop` makes position limits act.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When damping is negative, or limits are not in order.

    See Also
    --------
    RpyFloatingJoint : A joint with six degrees of freedom.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> ice = PlanarJoint("ice", Body("rink"), Body("puck"))
    >>> ice.calc_pose(np.array([3.0, 4.0, 0.5])).p
    array([3., 4., 0.])
    """

    TYPE_NAME = "planar"
    POSITION_SUFFIXES = ("x", "y", "qz")
    VELOCITY_SUFFIXES = ("vx", "vy", "wz")
    can_rotate = True
    can_translate = True

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the positions q = (x, y, θ)."""
        x, y, angle = q
        return RigidTransform(z_rotation(angle), scalars.array([x, y, 0.0]))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H of shape (6, 3), which is constant."""
        H = np.zeros((6, 3))
        H[[3, 4, 2], [0, 1, 2]] = 1.0
        return H

    def calc_motion_factors(self, q: Array) -> tuple[Array, Array]:
        """Return S = H and Q = Rz(θ), which turns v = (ẋ, ẏ, θ̇) like a vector."""
        return self.calc_motion_matrix(q), z_rotation(q[2])

    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v = 0."""
        return np.zeros(6)

    def closure(self) -> list[ClosureEquation]:
        """Return the equations of a loop: Mo in the plane, and z the same in F and M."""
        z = np.array([0.0, 0.0, 1.0])
        return [Along(z), *parallel(z)]

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the place in the plane, and the angle whose rotation is nearest."""
        R, p = X_FM
        angle = np.arctan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])
        return np.array([p[0], p[1], angle])

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the velocity in the plane, and the angular velocity about its normal."""
        return V_FM[[3, 4, 2]]

    @property
    def default_damping(self) -> FloatArray:
        """Viscous damping in new contexts, of x, y and θ."""
        return self.default_damping_vector

    @default_damping.setter
    def default_damping(self, damping: npt.ArrayLike) -> None:
        self.default_damping_vector = damping

    translation = Position[FloatArray](_TRANSLATION, "The place (x, y) of Mo in a context, in m.")
    rotation = Position[float](_ROTATION, "The angle θ in a context, in rad.")
    translational_velocity = Velocity[FloatArray](
        _TRANSLATION, "The velocity of Mo in the plane in a context, in m/s."
    )
    angular_velocity = Velocity[float](_ROTATION, "The rate of θ in a context, in rad/s.")
    default_translation = Default[FloatArray](_TRANSLATION, "The place (x, y)")
    default_rotation = Default[float](_ROTATION, "The angle θ")

    def set_random_pose_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw (x, y, θ) from ``sampler(rng)``; velocities stay zero."""
        self.set_random_positions_distribution(sampler)
