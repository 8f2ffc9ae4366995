"""The ball joint with a quaternion."""

from __future__ import annotations

from flexure.blocks.multibody.joints.ball import BallJoint
from flexure.blocks.multibody.joints.orientation import QuaternionJoint


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
