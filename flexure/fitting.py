"""From measurements: constants by least squares, and forces between measured points."""

from flexure.blocks.forces.dynamic_stiffness import DynamicStiffness, bushing_options
from flexure.blocks.forces.dynamic_stiffness_fits import fit_dynamic_stiffness, fit_relaxation
from flexure.blocks.forces.fit_report import FitReport
from flexure.blocks.forces.fitting import fit_bushing, fit_hinge
from flexure.blocks.forces.force_table import ForceTable
from flexure.blocks.forces.law_fits import fit_constants

__all__ = [
    "DynamicStiffness",
    "FitReport",
    "ForceTable",
    "bushing_options",
    "fit_bushing",
    "fit_constants",
    "fit_dynamic_stiffness",
    "fit_hinge",
    "fit_relaxation",
]
