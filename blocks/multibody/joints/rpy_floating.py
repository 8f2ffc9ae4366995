"""The floating joint with roll, pitch and yaw."""

from __future__ import annotations

from flexure.blocks.multibody.joints.floating import FloatingJoint
from flexure.blocks.multibody.joints.orientation import RollPitchYawJoint


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
