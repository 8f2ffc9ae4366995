"""Constraints between bodies of a tree: what they demand, and the multipliers that uphold it.

A constraint is a set of equations φ = 0. Each gives the value of its equations and of their rates,
and the forces per multiplier, which are the rows of the Jacobian; `constrained_motion` makes one
system of equations of them all.
"""

from flexure.blocks.multibody.constraints.constraint import Condition, Constraint
from flexure.blocks.multibody.constraints.coordinate_constraints import (
    CoordinateConstraint,
    Coupling,
    GearPair,
    HolonomicConstraint,
    PrescribedMotion,
)
from flexure.blocks.multibody.constraints.frame_constraints import (
    DistanceConstraint,
    FrameConstraint,
    LoopJoint,
    PointOnLine,
    PointOnPlane,
)
from flexure.blocks.multibody.constraints.rigid_stop import RigidStop
from flexure.blocks.multibody.constraints.sticking_constraint import StickingConstraint
from flexure.blocks.multibody.constraints.switched_constraint import SwitchedConstraint

__all__ = [
    "Condition",
    "Constraint",
    "CoordinateConstraint",
    "Coupling",
    "DistanceConstraint",
    "FrameConstraint",
    "GearPair",
    "HolonomicConstraint",
    "LoopJoint",
    "PointOnLine",
    "PointOnPlane",
    "PrescribedMotion",
    "RigidStop",
    "StickingConstraint",
    "SwitchedConstraint",
]
