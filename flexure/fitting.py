"""Fits to measurements: constants by least squares, and tables of measured forces."""

from flexure.blocks.forces.fits.dynamic_stiffness import DynamicStiffness, bushing_options
from flexure.blocks.forces.fits.dynamic_stiffness_fits import fit_dynamic_stiffness, fit_relaxation
from flexure.blocks.forces.fits.fit_report import FitReport
from flexure.blocks.forces.fits.fitting import fit_bushing, fit_hinge
from flexure.blocks.forces.fits.law_fits import fit_constants
from flexure.blocks.forces.on_joints.force_table import ForceTable

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
