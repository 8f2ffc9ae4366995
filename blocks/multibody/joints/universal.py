"""The universal joint: two rotations about the axes of a cross."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.joints.base.closure import ClosureEquation, Normal, held_together
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.base.joint_quantities import Default, Position, Velocity
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array, Distribution, FloatArray


class UniversalJoint(Joint):
    """A joint with rotations about the x axis of F and about the y axis of M.

    The two axes belong to a cross, whose mass is neglected. With the angles q = (q₁, q₂) and
    their rates v = q̇::

        R_FM = Rx(q₁) Ry(q₂),  p_FM = 0
        w_FM = x v₁ + y(q₁) v₂,  v_FMo = 0
        x = (1, 0, 0),  y(q₁) = (0, cos q₁, sin q₁)

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    damping : float or array_like, shape (2,)
        Viscous damping d >= 0 about each axis of the cross in N m s/rad: the torques -d v.
    position_limits, velocity_limits, acceleration_limits : tuple of array_like, optional
        Lower and upper limits in rad, rad/s and rad/s², infinite when omitted. They are only
        stored; `JointStop` makes position limits act.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When damping is negative, or limits are not in order.

    See Also
    --------
    BallRpyJoint : A ball joint with Mo at Fo.

    Notes
    -----
    The two axes are always at right angles, so that nothing is singular. With q₂ = ±π/2 the axis
    of the driven shaft, z of M, lies along x of F.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> cross = UniversalJoint("cross", Body("engine"), Body("shaft"))
    >>> cross.calc_pose(np.array([0.0, np.pi / 6])).R @ [0.0, 0.0, 2.0]
    array([1.        , 0.        , 1.73205081])
    """

    TYPE_NAME = "universal"
    POSITION_SUFFIXES = ("qx", "qy")
    VELOCITY_SUFFIXES = ("wx", "wy")
    PORT_NAMES = ("angles", "rates")
    can_rotate = True
    can_translate = False

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the angles q."""
        (c1, c2), (s1, s2) = np.cos(q), np.sin(q)
        R = scalars.array([[c2, 0.0, s2], [s1 * s2, c1, -s1 * c2], [-c1 * s2, s1, c1 * c2]])
        return RigidTransform(R, np.zeros(3))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H, whose columns are (x, 0) and (y(q₁), 0)."""
        c1, s1 = np.cos(q[0]), np.sin(q[0])
        zeros = [[0.0, 0.0]] * 3
        return scalars.array([[1.0, 0.0], [0.0, c1], [0.0, s1], *zeros])

    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v: the second axis turns about the first."""
        c1, s1 = np.cos(q[0]), np.sin(q[0])
        product = v[0] * v[1]
        return scalars.array([0.0, -s1 * product, c1 * product, 0.0, 0.0, 0.0])

    def closure(self) -> list[ClosureEquation]:
        """Return the equations of a loop: Fo and Mo together, x of F at right angles to y of M."""
        x, y, _ = np.eye(3)
        return [*held_together(), Normal(x, y)]

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the angles that bring y of M as near as can be, and then the other two axes."""
        R = X_FM.R
        roll = np.arctan2(R[2, 1], R[1, 1])
        c1, s1 = np.cos(roll), np.sin(roll)
        rest = np.array([[1.0, 0.0, 0.0], [0.0, c1, s1], [0.0, -s1, c1]]) @ R
        return np.array([roll, np.arctan2(rest[0, 2] - rest[2, 0], rest[0, 0] + rest[2, 2])])

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the parts of the angular velocity along the two axes."""
        H = self.calc_motion_matrix(q)
        return np.asarray(H.T @ V_FM)

    @property
    def default_damping(self) -> float:
        """The first of the values of viscous damping in new contexts; setting it sets both."""
        return float(self.default_damping_vector[0])

    @default_damping.setter
    def default_damping(self, damping: float) -> None:
        self.default_damping_vector = damping

    angles = Position[FloatArray](slice(None), "The two angles in a context, in rad.")
    angular_rates = Velocity[FloatArray](
        slice(None), "The rates of the angles in a context, in rad/s."
    )
    rates = Velocity[FloatArray](
        slice(None),
        "The rates of the angles in a context, under the name that they have as an output.",
    )

    default_angles = Default[FloatArray](slice(None), "The angles")

    def set_random_angles_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw the angles from ``sampler(rng)``; their rates stay zero."""
        self.set_random_positions_distribution(sampler)
