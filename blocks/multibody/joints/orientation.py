"""The base classes of joints with which a frame can take any orientation."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from flexure.blocks.math import (
    cos_pitch,
    quaternion_from_rotation,
    quaternion_rate_from_w_A,
    rotation_from_quaternion,
    rotation_from_rpy,
    rpy_from_rotation,
    rpy_rate_matrix,
    rpy_velocity_matrix,
    w_A_from_quaternion_rate,
)
from flexure.blocks.multibody.joints.base.checks import as_rotation, quaternion_problem
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.base.joint_quantities import (
    Default,
    JointValue,
    Position,
    Velocity,
)
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import Array, Distribution, FloatArray

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context

_ANGLES, _QUATERNION, _ANGULAR_VELOCITY = slice(0, 3), slice(0, 4), slice(0, 3)
#: Rates of roll, pitch and yaw are refused where |cos pitch| is less; Drake's ball joint does so.
_LEAST_COS_PITCH = 1e-3


class OrientationJoint(Joint):
    """A joint whose first positions tell the orientation of M in F, by any kind of coordinates.

    Its first three velocities are the angular velocity w_FM, expressed in F.
    """

    #: Where the coordinates of the orientation are among the positions.
    ORIENTATION: ClassVar[slice]

    @abstractmethod
    def calc_rotation(self, orientation: Array) -> Array:
        """Return R_FM."""

    @abstractmethod
    def calc_orientation_rates(self, orientation: Array, w_FM: Array) -> Array:
        """Return the rates of the coordinates that belong to the angular velocity w_FM in F."""

    @abstractmethod
    def calc_angular_velocity(self, orientation: Array, rates: Array) -> Array:
        """Return the angular velocity w_FM in F that belongs to rates of the coordinates."""

    @abstractmethod
    def nearest_orientation(self, R_FM: FloatArray) -> FloatArray:
        """Return the coordinates of a rotation matrix."""

    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v = 0, as the velocities are w_FM, and v_FMo if Mo can move, themselves."""
        return np.zeros(6)

    @property
    def orientation(self) -> JointValue[FloatArray]:
        """The rotation matrix R_FM in a context."""
        return JointValue(self, "orientation", self._read_rotation, self._write_rotation)

    def _read_rotation(self, context: Context) -> FloatArray:
        R: FloatArray = self._read_pose(context).R
        return R

    def _write_rotation(self, context: Context, R_FM: Any) -> None:
        R = as_rotation(R_FM, f"Cannot set 'orientation' of joint '{self.name}'")
        q = self._read_q(context).copy()
        q[self.ORIENTATION] = self.nearest_orientation(R)
        self._write_q(context, q)

    angular_velocity = Velocity[FloatArray](
        _ANGULAR_VELOCITY, "The angular velocity w_FM in a context, expressed in F, in rad/s."
    )


class RollPitchYawJoint(OrientationJoint):
    """A joint whose first positions are the angles roll, pitch and yaw.

    The rates of the angles are not defined in gimbal lock, at a pitch of ±90 degrees.
    """

    ORIENTATION = _ANGLES
    #: The joint without gimbal lock that is recommended in its place.
    ALTERNATIVE: ClassVar[str]

    def calc_rotation(self, orientation: Array) -> Array:
        """Return R_FM = Rz(yaw) Ry(pitch) Rx(roll)."""
        return rotation_from_rpy(orientation)

    def calc_orientation_rates(self, orientation: Array, w_FM: Array) -> Array:
        """Return the rates of the angles, refused in gimbal lock."""
        rates = np.matmul(rpy_rate_matrix(orientation), w_FM)
        locked = np.abs(cos_pitch(orientation)) < _LEAST_COS_PITCH
        return scalars.refuse_where(locked, rates, lambda: self._gimbal_lock(orientation))

    def calc_angular_velocity(self, orientation: Array, rates: Array) -> Array:
        """Return the angular velocity w_FM in F, which is defined everywhere."""
        return np.matmul(rpy_velocity_matrix(orientation), rates)

    def nearest_orientation(self, R_FM: FloatArray) -> FloatArray:
        """Return the angles of a rotation matrix, also in gimbal lock."""
        return np.asarray(rpy_from_rotation(R_FM))

    def _gimbal_lock(self, angles: FloatArray) -> EvaluationError:
        pitch, tolerance = np.rad2deg([angles[1], np.arcsin(_LEAST_COS_PITCH)])
        return EvaluationError(
            f"Cannot calculate the rates of the angles of joint '{self.name}'",
            expected=f"a pitch more than {tolerance:.4f} degrees away from gimbal lock at ±90",
            found=f"a pitch of {pitch:.6g} degrees",
            remedy=(
                "Choose the frames of the joint so that the motion stays away from this pitch, or "
                f"use a {self.ALTERNATIVE}"
            ),
        )

    angles = Position[FloatArray](
        _ANGLES, "Roll, pitch and yaw in a context, in rad; they are kept as they are set."
    )
    default_angles = Default[FloatArray](_ANGLES, "The angles")

    def set_random_angles_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw the angles from ``sampler(rng)``; velocities stay zero."""
        self._set_random_part(_ANGLES, sampler)


class QuaternionJoint(OrientationJoint):
    """A joint whose first positions are a quaternion (w, x, y, z), which has no singularity.

    Its length does not matter to the orientation and is not changed by the equations; only
    rounding and integration errors change it.
    """

    ORIENTATION = _QUATERNION

    def calc_rotation(self, orientation: Array) -> Array:
        """Return R_FM of the quaternion, normalized."""
        return rotation_from_quaternion(orientation)

    def calc_orientation_rates(self, orientation: Array, w_FM: Array) -> Array:
        """Return the rate of the quaternion, ½ (0, w_FM) ⊗ q."""
        return quaternion_rate_from_w_A(orientation, w_FM)

    def calc_angular_velocity(self, orientation: Array, rates: Array) -> Array:
        """Return the angular velocity w_FM in F; a change of length has no effect."""
        return w_A_from_quaternion_rate(orientation, rates)

    def nearest_orientation(self, R_FM: FloatArray) -> FloatArray:
        """Return the canonical unit quaternion of a rotation matrix."""
        return np.asarray(quaternion_from_rotation(R_FM))

    def zero_positions(self) -> FloatArray:
        """Return the positions with which M lies on F."""
        q = np.zeros(self.num_positions)
        q[0] = 1.0
        return q

    def positions_problem(self, q: FloatArray) -> str | None:
        """Say what is wrong with a quaternion that has no direction; it need not be normalized."""
        return quaternion_problem(q[_QUATERNION])

    def normalized_positions(self, q: FloatArray) -> FloatArray:
        """Return the positions with a quaternion of length 1; one that has it stays as it is."""
        length = np.linalg.norm(q[_QUATERNION], axis=0)
        normal = q.copy()
        normal[_QUATERNION] /= np.where(np.abs(length - 1.0) < 1e-15, 1.0, length)
        return normal

    quaternion = Position[FloatArray](
        _QUATERNION,
        "The quaternion q_FM in a context, of any length but zero; it is kept as it is set.",
    )
    default_quaternion = Default[FloatArray](_QUATERNION, "The quaternion")

    def set_random_quaternion_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw the quaternion from ``sampler(rng)``; velocities stay zero."""
        self._set_random_part(_QUATERNION, sampler)

    def set_random_quaternion_distribution_to_uniform(self) -> None:
        """Let random contexts draw all orientations with equal probability."""
        self.set_random_quaternion_distribution(uniform_quaternion)


def uniform_quaternion(rng: np.random.Generator) -> FloatArray:
    """Draw a unit quaternion; all orientations are equally probable.

    >>> q = uniform_quaternion(np.random.default_rng(1))
    >>> float(q @ q)
    1.0
    """
    q = rng.normal(size=4)
    return np.asarray(q / np.linalg.norm(q))
