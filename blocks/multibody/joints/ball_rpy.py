"""The ball joint with roll, pitch and yaw."""

from __future__ import annotations

from flexure.blocks.multibody.joints.ball import BallJoint
from flexure.blocks.multibody.joints.orientation import RollPitchYawJoint


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
