"""Stiffness and damping from loads, frequencies, damping ratios and settling times.

All rest on the oscillator ``I ẍ + d ẋ + k x = 0`` with ``ωn² = k/I`` and ``ζ = d/(2 √(I k))``. They
take a moment of inertia with torsion, or a mass with displacement.
"""

from flexure.blocks.forces.coefficients.compliance import (
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

__all__ = [
    "approximate_natural_frequency",
    "damping_from_ratio",
    "damping_from_settling_time",
    "damping_ratio",
    "damping_ratio_from_decay_ratio",
    "decay_ratio",
    "logarithmic_decrement",
    "natural_frequency",
    "natural_frequency_from_settling_time",
    "settling_time",
    "stiffness_from_frequency",
    "stiffness_from_load",
]
