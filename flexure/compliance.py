"""Stiffness and damping from loads, frequencies, damping ratios and settling times.

All rest on the oscillator ``I ẍ + d ẋ + k x = 0`` with ``ωn² = k/I`` and ``ζ = d/(2 √(I k))``. They
take a moment of inertia with torsion, or a mass with displacement.
"""

from typing import TYPE_CHECKING

from flexure.diagrams.interface.lazy_names import imported_names, on_demand

if TYPE_CHECKING:
    from flexure.blocks.forces.coefficients.compliance import (
        approximate_natural_frequency as approximate_natural_frequency,
        damping_from_ratio as damping_from_ratio,
        damping_from_settling_time as damping_from_settling_time,
        damping_ratio as damping_ratio,
        damping_ratio_from_decay_ratio as damping_ratio_from_decay_ratio,
        decay_ratio as decay_ratio,
        logarithmic_decrement as logarithmic_decrement,
        natural_frequency as natural_frequency,
        natural_frequency_from_settling_time as natural_frequency_from_settling_time,
        settling_time as settling_time,
        stiffness_from_frequency as stiffness_from_frequency,
        stiffness_from_load as stiffness_from_load,
    )
else:
    __getattr__, __dir__ = on_demand(__name__, imported_names(__file__, "flexure"), root="flexure")
