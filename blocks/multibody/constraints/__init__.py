"""Constraints between bodies of a tree: what they demand, and the multipliers that uphold it.

A constraint is a set of equations between positions, φ = 0, or between velocities alone, w = 0. It
gives the values of φ, of their rates and of w, and the forces per multiplier, which are the rows of
the Jacobian; `constrained_motion` makes one system of equations of them all.
"""

from flexure.blocks.multibody.constraints.cam_follower import CamFollower
from flexure.blocks.multibody.constraints.constraint import Condition, Constraint
from flexure.blocks.multibody.constraints.coordinate_constraints import (
    CoordinateConstraint,
    HolonomicConstraint,
    PrescribedMotion,
)
from flexure.blocks.multibody.constraints.couplings import Coupling, GearPair
from flexure.blocks.multibody.constraints.frame_constraints import (
    DistanceConstraint,
    FrameConstraint,
    LoopJoint,
    PointOnLine,
    PointOnPlane,
)
from flexure.blocks.multibody.constraints.rigid_stop import RigidStop
from flexure.blocks.multibody.constraints.rolling import (
    RollingContact,
    RollingDisk,
    RollingSphere,
)
from flexure.blocks.multibody.constraints.sticking_constraint import StickingConstraint
from flexure.blocks.multibody.constraints.switched_constraint import SwitchedConstraint
from flexure.blocks.multibody.constraints.velocity_constraints import (
    KnifeEdge,
    VelocityConstraint,
)

__all__ = [
    "CamFollower",
    "Condition",
    "Constraint",
    "CoordinateConstraint",
    "Coupling",
    "DistanceConstraint",
    "FrameConstraint",
    "GearPair",
    "HolonomicConstraint",
    "KnifeEdge",
    "LoopJoint",
    "PointOnLine",
    "PointOnPlane",
    "PrescribedMotion",
    "RigidStop",
    "RollingContact",
    "RollingDisk",
    "RollingSphere",
    "StickingConstraint",
    "SwitchedConstraint",
    "VelocityConstraint",
]
