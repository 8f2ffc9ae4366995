"""Fits to measurements: constants by least squares, and tables of measured forces."""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.forces.fits.dynamic_stiffness import (
        DynamicStiffness as DynamicStiffness,
        bushing_options as bushing_options,
    )
    from flexure.blocks.forces.fits.dynamic_stiffness_fits import (
        fit_dynamic_stiffness as fit_dynamic_stiffness,
        fit_relaxation as fit_relaxation,
    )
    from flexure.blocks.forces.fits.fit_report import FitReport as FitReport
    from flexure.blocks.forces.fits.fitting import (
        fit_bushing as fit_bushing,
        fit_hinge as fit_hinge,
    )
    from flexure.blocks.forces.fits.law_fits import fit_constants as fit_constants
    from flexure.blocks.forces.on_joints.force_table import ForceTable as ForceTable
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
