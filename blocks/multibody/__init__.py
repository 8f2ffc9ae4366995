"""Bodies, joints, the tree they make, and the builder that makes plants of them."""

from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.bodies.multibody_forces import MultibodyForces
from flexure.blocks.multibody.constrained_dynamics.tree import MultibodyTree
from flexure.blocks.multibody.constraints import (
    CamFollower,
    Coupling,
    DistanceConstraint,
    GearPair,
    HolonomicConstraint,
    KnifeEdge,
    LoopJoint,
    PointOnLine,
    PointOnPlane,
    PrescribedMotion,
    RigidStop,
    RollingDisk,
    RollingSphere,
    VelocityConstraint,
)
from flexure.blocks.multibody.force_elements.force_element import (
    BodyForceElement,
    ForceElement,
    JointForceElement,
)
from flexure.blocks.multibody.force_elements.limits import Limit
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.plants.computed_torque import GravityCompensation, InverseDynamics
from flexure.blocks.multibody.plants.energy_ledger import EnergyLedger, EnergyTotals
from flexure.blocks.multibody.plants.passivity import PassivityReport, check_passivity
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.blocks.multibody.trees.actuator import Actuator

__all__ = [
    "Actuator",
    "Body",
    "BodyForceElement",
    "BodyShape",
    "CamFollower",
    "Coupling",
    "DistanceConstraint",
    "EnergyLedger",
    "EnergyTotals",
    "ForceElement",
    "Frame",
    "GearPair",
    "GravityCompensation",
    "HolonomicConstraint",
    "InverseDynamics",
    "Joint",
    "JointForceElement",
    "KnifeEdge",
    "Limit",
    "LoopJoint",
    "MultibodyForces",
    "MultibodyTree",
    "PassivityReport",
    "Plant",
    "PlantBuilder",
    "PointOnLine",
    "PointOnPlane",
    "PrescribedMotion",
    "RigidStop",
    "RollingDisk",
    "RollingSphere",
    "SpatialInertia",
    "VelocityConstraint",
    "check_passivity",
]
