"""Joints: how one body can move relative to another.

A joint is between a frame F on a parent body and a frame M on a child body. Each kind is a set of
pure functions of positions q and velocities v (the pose of M in F, the matrix H of V_FM = H v, its
rate, q̇ = N v and the inverse), which run on numbers and on symbols, together with the handles that
read and write the quantities of a joint in contexts.
"""

from flexure.blocks.multibody.joints.ball_quaternion import BallQuaternionJoint
from flexure.blocks.multibody.joints.ball_rpy import BallRpyJoint
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.base.joint_quantities import JointComponents, JointValue
from flexure.blocks.multibody.joints.planar import PlanarJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.quaternion_floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.rpy_floating import RpyFloatingJoint
from flexure.blocks.multibody.joints.screw import ScrewJoint
from flexure.blocks.multibody.joints.universal import UniversalJoint
from flexure.blocks.multibody.joints.weld import WeldJoint

__all__ = [
    "BallQuaternionJoint",
    "BallRpyJoint",
    "Joint",
    "JointComponents",
    "JointValue",
    "PlanarJoint",
    "PrismaticJoint",
    "QuaternionFloatingJoint",
    "RevoluteJoint",
    "RpyFloatingJoint",
    "ScrewJoint",
    "UniversalJoint",
    "WeldJoint",
]
