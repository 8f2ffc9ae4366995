"""The prismatic joint: translation along one axis, as that of a drawer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.joints.axial import AxialJoint
from flexure.blocks.multibody.joints.base.closure import (
    Along,
    ClosureEquation,
    two_normals,
    unturned,
)
from flexure.blocks.multibody.joints.base.joint_quantities import Default, Position, Velocity
from flexure.diagrams.values.arrays import Array, Distribution, FloatArray

if TYPE_CHECKING:
    from flexure.blocks.multibody.bodies.multibody_forces import MultibodyForces


class PrismaticJoint(AxialJoint):
    """A joint with translation of Mo along an axis λ through Fo, without rotation.

    With the distance q and its rate v = q̇::

        R_FM = 1,  p_FM = λ q
        w_FM = 0,  v_FMo = λ v

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    axis : array_like, shape (3,)
        Direction of λ, of any length; its components in F, which are those in M.
    damping : float
        Viscous damping d >= 0 in N s/m: the force -d v.
    position_limits, velocity_limits, acceleration_limits : tuple of float, optional
        Lower and upper limits in m, m/s and m/s², infinite when omitted. They are only stored;
        `JointStop` makes position limits act.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When the axis is zero, damping is negative, or limits are not in order.

    See Also
    --------
    RevoluteJoint : A joint with rotation about an axis λ through Fo and Mo.
    CylindricalJoint : A joint with rotation about an axis λ and translation along it.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> rail = PrismaticJoint("rail", Body("cabinet"), Body("drawer"), axis=(0, -3, 4))
    >>> rail.calc_pose(np.array([0.5])).p
    array([ 0. , -0.3,  0.4])
    """

    TYPE_NAME = "prismatic"
    POSITION_SUFFIXES = ("x",)
    VELOCITY_SUFFIXES = ("v",)
    PORT_NAMES = ("translation", "rate")
    can_rotate = False
    can_translate = True

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the distance q."""
        return RigidTransform(np.eye(3), self._translation(q[0]))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H = (0, λ), of shape (6, 1)."""
        return np.concatenate([np.zeros(3), self._axis]).reshape(6, 1)

    def closure(self) -> list[ClosureEquation]:
        """Return the equations of a loop: Mo on the axis, and no turn."""
        return [*(Along(e) for e in two_normals(self._axis)), *unturned()]

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the part of the position along the axis."""
        return np.array([self._axis @ X_FM.p])

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the part of the velocity along the axis."""
        return np.array([self._axis @ V_FM[3:]])

    @property
    def translation_axis(self) -> FloatArray:
        """Unit vector λ along the axis, with the same components in F and in M."""
        return self._axis

    translation = Position[float](
        0, "The distance of Mo from Fo along the axis in a context, in m."
    )
    translation_rate = Velocity[float](0, "The rate of the distance in a context, in m/s.")
    default_translation = Default[float](0, "The distance")

    def set_random_translation_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw the distance from ``sampler(rng)``; its rate stays zero."""
        self.set_random_positions_distribution(sampler)

    def add_in_force(self, force: float, forces: MultibodyForces) -> None:
        """Add a force along the axis, in N, on the child body."""
        self.add_in_one_force(0, force, forces)
