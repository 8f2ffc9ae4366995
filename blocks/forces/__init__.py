"""Compliant force elements: their laws as functions, and the blocks that carry them."""

from flexure.blocks.forces.bushing import LinearBushingRollPitchYaw
from flexure.blocks.forces.bushing_law import RollPitchYawBushingLaw
from flexure.blocks.forces.compliance import (
    approximate_natural_frequency,
    damping_from_ratio,
    damping_from_settling_time,
    damping_ratio,
    damping_ratio_from_decay_ratio,
    decay_ratio,
    logarithmic_decrement,
    natural_frequency,
    natural_frequency_from_settling_time,
    settling_time,
    stiffness_from_frequency,
    stiffness_from_load,
)
from flexure.blocks.forces.door_hinge import DoorHinge
from flexure.blocks.forces.fitting import fit_bushing, fit_hinge
from flexure.blocks.forces.force_table import ForceTable
from flexure.blocks.forces.gimbal_free_bushing import LinearBushing
from flexure.blocks.forces.gimbal_free_bushing_law import RotationVectorBushingLaw
from flexure.blocks.forces.hinge_law import DoorHingeConfig, HingeLaw
from flexure.blocks.forces.joint_friction import FrictionLaw, JointFriction
from flexure.blocks.forces.joint_spring import JointSpring, SpringLaw
from flexure.blocks.forces.joint_stop import JointStop, StopLaw
from flexure.blocks.forces.least_squares import FitReport, fit_constants
from flexure.blocks.forces.mounts import BushingConstants
from flexure.blocks.forces.one_sided_spring import Bumper, Cable, OneSidedSpringLaw
from flexure.blocks.forces.spring_damper import LinearSpringDamper
from flexure.blocks.forces.spring_damper_law import SpringDamperLaw
from flexure.blocks.forces.tabulated_spring import TabulatedSpring, TabulatedSpringLaw

__all__ = [
    "Bumper",
    "BushingConstants",
    "Cable",
    "DoorHinge",
    "DoorHingeConfig",
    "FitReport",
    "ForceTable",
    "FrictionLaw",
    "HingeLaw",
    "JointFriction",
    "JointSpring",
    "JointStop",
    "LinearBushing",
    "LinearBushingRollPitchYaw",
    "LinearSpringDamper",
    "OneSidedSpringLaw",
    "RollPitchYawBushingLaw",
    "RotationVectorBushingLaw",
    "SpringDamperLaw",
    "SpringLaw",
    "StopLaw",
    "TabulatedSpring",
    "TabulatedSpringLaw",
    "approximate_natural_frequency",
    "damping_from_ratio",
    "damping_from_settling_time",
    "damping_ratio",
    "damping_ratio_from_decay_ratio",
    "decay_ratio",
    "fit_bushing",
    "fit_constants",
    "fit_hinge",
    "logarithmic_decrement",
    "natural_frequency",
    "natural_frequency_from_settling_time",
    "settling_time",
    "stiffness_from_frequency",
    "stiffness_from_load",
]
