"""Constraints between bodies of a tree: what they demand, and the multipliers that uphold it.

A constraint is a set of equations between positions, φ = 0, or between velocities alone, w = 0. It
gives the values of φ, of their rates and of w, and the forces per multiplier, which are the rows of
the Jacobian; `constrained_motion` makes one system of equations of them all.
"""

from flexure.blocks.multibody.constraints.cam_follower import CamFollower as CamFollower
from flexure.blocks.multibody.constraints.constraint import (
    Condition as Condition,
    Constraint as Constraint,
)
from flexure.blocks.multibody.constraints.coordinate_constraints import (
    CoordinateConstraint as CoordinateConstraint,
    HolonomicConstraint as HolonomicConstraint,
    PrescribedMotion as PrescribedMotion,
)
from flexure.blocks.multibody.constraints.couplings import (
    Coupling as Coupling,
    GearPair as GearPair,
)
from flexure.blocks.multibody.constraints.frame_constraints import (
    DistanceConstraint as DistanceConstraint,
    FrameConstraint as FrameConstraint,
    LoopJoint as LoopJoint,
    PointOnLine as PointOnLine,
    PointOnPlane as PointOnPlane,
)
from flexure.blocks.multibody.constraints.rigid_stop import RigidStop as RigidStop
from flexure.blocks.multibody.constraints.rolling import (
    RollingContact as RollingContact,
    RollingDisk as RollingDisk,
    RollingSphere as RollingSphere,
)
from flexure.blocks.multibody.constraints.sticking_constraint import (
    LoadedFriction as LoadedFriction,
    StickingConstraint as StickingConstraint,
)
from flexure.blocks.multibody.constraints.switched_constraint import (
    SwitchedConstraint as SwitchedConstraint,
    UnilateralConstraint as UnilateralConstraint,
)
from flexure.blocks.multibody.constraints.velocity_constraints import (
    KnifeEdge as KnifeEdge,
    VelocityConstraint as VelocityConstraint,
)
