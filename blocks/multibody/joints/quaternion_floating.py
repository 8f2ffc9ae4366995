"""The floating joint with a quaternion, that of bodies without another joint."""

from __future__ import annotations

from flexure.blocks.multibody.joints.floating import FloatingJoint
from flexure.blocks.multibody.joints.orientation import QuaternionJoint


class QuaternionFloatingJoint(QuaternionJoint, FloatingJoint):
    """A joint with six degrees of freedom; its orientation is a quaternion.

    With q = (q_FM, p_FM), the quaternion (w, x, y, z) and the position, and v = (w_FM, v_FMo), all
    expressed in F::

        R_FM = R(q_FM / |q_FM|)
        q̇ = (½ (0, w_FM) ⊗ q_FM, v_FMo)

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
        Lower and upper limits of the quaternion, in m and of the rates, infinite when omitted.
        They are only stored.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When damping is negative, limits are not in order, or a quaternion is set to zero.

    See Also
    --------
    RpyFloatingJoint : A joint with six degrees of freedom.

    Notes
    -----
    The equations keep the length of the quaternion but do not restore it: it drifts by the errors
    of integration, which does not matter to R_FM.

    Examples
    --------
    >>> import numpy as np
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> free = QuaternionFloatingJoint("free", Body("ground"), Body("boat"))
    >>> free.calc_pose(np.array([2.0, 0.0, 0.0, 2.0, 5.0, 0.0, 1.0])).R @ [2.0, 0.0, 0.0]
    array([0., 2., 0.])
    """

    TYPE_NAME = "quaternion_floating"
    POSITION_SUFFIXES = ("qw", "qx", "qy", "qz", "x", "y", "z")
