"""Compliant force elements: their laws as functions, and the blocks that carry them."""

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
from flexure.blocks.forces.door_hinge import DoorHinge, DoorHingeConfig, HingeLaw
from flexure.blocks.forces.fitting import fit_bushing, fit_hinge
from flexure.blocks.forces.least_squares import FitReport, fit_constants
from flexure.blocks.forces.mounts import BushingConstants
from flexure.blocks.forces.spring_damper_law import SpringDamperLaw

__all__ = [
    "BushingConstants",
    "DoorHinge",
    "DoorHingeConfig",
    "FitReport",
    "HingeLaw",
    "SpringDamperLaw",
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
