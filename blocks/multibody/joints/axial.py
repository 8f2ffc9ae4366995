"""The base classes of joints that turn about one axis or move along it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import rotation_about, x_rotation, y_rotation, z_rotation
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.joints.base.checks import unit_axis
from flexure.blocks.multibody.joints.base.joint import Joint, Limits
from flexure.blocks.multibody.joints.base.joint_quantities import Velocity
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array, FloatArray

_ELEMENTARY: tuple[Callable[[Array], Array], ...] = (x_rotation, y_rotation, z_rotation)


class AxisJoint(Joint):
    """A joint that moves about or along one axis, which is the same in F and in M.

    Its velocities are the rates of its positions, and its motion matrix is constant; a subclass
    returns the matrix and the pose.

    The axis has any length, and the same components in F and M. Other arguments are those of
    `Joint`.
    """

    def __init__(
        self,
        name: str,
        frame_on_parent: FrameLike,
        frame_on_child: FrameLike,
        axis: npt.ArrayLike,
        *,
        damping: npt.ArrayLike = 0.0,
        position_limits: Limits | None = None,
        velocity_limits: Limits | None = None,
        acceleration_limits: Limits | None = None,
    ) -> None:
        super().__init__(
            name,
            frame_on_parent,
            frame_on_child,
            damping=damping,
            position_limits=position_limits,
            velocity_limits=velocity_limits,
            acceleration_limits=acceleration_limits,
        )
        self._axis = unit_axis(axis, f"Cannot make joint '{name}'")

    @property
    def axis(self) -> FloatArray:
        """Unit vector along the axis, with the same components in F and in M."""
        return self._axis

    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v = 0."""
        return np.zeros(6)

    def calc_motion_factors(self, q: Array) -> tuple[Array, Array]:
        """Return S = H and Q = 1, since the axis is the same in F and in M."""
        return self.calc_motion_matrix(q), np.eye(self.num_velocities)

    def _rotation(self, angle: Array) -> Array:
        """Return the rotation about the axis, with exact zeros and ones where they belong."""
        (places,) = np.nonzero(self._axis)
        if len(places) > 1:
            return rotation_about(self._axis, angle)
        k = places[0]
        return _ELEMENTARY[k](angle if self._axis[k] > 0.0 else -angle)

    def _translation(self, distance: Array) -> Array:
        """Return the vector along the axis, with exact zeros where they belong."""
        return scalars.array([a * distance if a else 0.0 for a in self._axis])

    def _nearest_angle(self, R_FM: FloatArray) -> float:
        """Return the angle in (-π, π] whose rotation R(q) maximizes the trace of R(q)ᵀ R_FM."""
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R_FM
        sine = self._axis @ np.array([zy - yz, xz - zx, yx - xy])
        cosine = xx + yy + zz - self._axis @ R_FM @ self._axis
        return float(np.arctan2(sine, cosine))


class AxialJoint(AxisJoint):
    """A joint with an axis and one position q: its vectors with one component are scalars, too."""

    rate = Velocity[float](
        0, "The rate of the position in a context, under the name that it has as an output."
    )

    @property
    def default_damping(self) -> float:
        """Viscous damping in new contexts; it can be set until the plant is built."""
        return float(self.default_damping_vector[0])

    @default_damping.setter
    def default_damping(self, damping: float) -> None:
        self.default_damping_vector = damping

    @property
    def position_lower_limit(self) -> float:
        """Lower limit of the position."""
        return float(self.position_lower_limits[0])

    @property
    def position_upper_limit(self) -> float:
        """Upper limit of the position."""
        return float(self.position_upper_limits[0])

    @property
    def velocity_lower_limit(self) -> float:
        """Lower limit of the velocity."""
        return float(self.velocity_lower_limits[0])

    @property
    def velocity_upper_limit(self) -> float:
        """Upper limit of the velocity."""
        return float(self.velocity_upper_limits[0])

    @property
    def acceleration_lower_limit(self) -> float:
        """Lower limit of the acceleration."""
        return float(self.acceleration_lower_limits[0])

    @property
    def acceleration_upper_limit(self) -> float:
        """Upper limit of the acceleration."""
        return float(self.acceleration_upper_limits[0])
