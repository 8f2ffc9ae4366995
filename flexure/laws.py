"""Laws of force elements: their equations as functions of positions, velocities and constants.

They are used alone, for plots, fits and tests; they take symbols as well as numbers, and check
nothing. ``element.law(context)`` is the law of an element with the constants of a context.
"""

from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.blocks.flexures.hinges.notch_law import (
    NotchCompliance,
    NotchLaw,
    ParosWeisbord,
    paros_weisbord,
)
from flexure.blocks.flexures.hinges.pseudo_rigid import PseudoRigidBody
from flexure.blocks.forces.between_points.one_sided_spring import OneSidedSpringLaw
from flexure.blocks.forces.between_points.spring_damper_law import SpringDamperLaw
from flexure.blocks.forces.bushings.bushing_law import BushingLaw, RollPitchYawBushingLaw
from flexure.blocks.forces.bushings.general_bushing_law import GeneralBushingLaw
from flexure.blocks.forces.bushings.gimbal_free_bushing_law import RotationVectorBushingLaw
from flexure.blocks.forces.bushings.halfway_law import HalfwayLaw
from flexure.blocks.forces.bushings.mount_branches import FrictionBranch, MaxwellBranch
from flexure.blocks.forces.on_joints.compliant_coupling import CompliantCouplingLaw
from flexure.blocks.forces.on_joints.coordinate_law import CoordinateLaw, hunt_crossley_damping
from flexure.blocks.forces.on_joints.hinge_law import HingeLaw
from flexure.blocks.forces.on_joints.joint_friction import FrictionLaw, SlidingLaw
from flexure.blocks.forces.on_joints.joint_spring import SpringLaw
from flexure.blocks.forces.on_joints.joint_stop import StopLaw
from flexure.blocks.forces.on_joints.tabulated_spring import TabulatedSpringLaw

__all__ = [
    "BeamLaw",
    "BushingLaw",
    "CompliantCouplingLaw",
    "CoordinateLaw",
    "FrictionBranch",
    "FrictionLaw",
    "GeneralBushingLaw",
    "HalfwayLaw",
    "HingeLaw",
    "MaxwellBranch",
    "NotchCompliance",
    "NotchLaw",
    "OneSidedSpringLaw",
    "ParosWeisbord",
    "PseudoRigidBody",
    "RollPitchYawBushingLaw",
    "RotationVectorBushingLaw",
    "SlidingLaw",
    "SpringDamperLaw",
    "SpringLaw",
    "StopLaw",
    "TabulatedSpringLaw",
    "hunt_crossley_damping",
    "paros_weisbord",
]
