"""Out-of-plane stiffness of tapered, curved leaves, and the number of segments it needs.

The law of a tapered beam takes mean values for what twist and bending have to do with each other.
In an arc, a force across its plane twists most where it is clamped, so that it matters where the
torsion stiffness is. One segment is as stiff there as its mean.
"""

from __future__ import annotations

import math

from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.sections import Section
from flexure.diagrams.checks.errors import warn

_ENOUGH = 0.01
#: Error of the stiffness across, times the square of the number of segments, over the logarithm of
#: the ratio of both torsion stiffnesses, of an arc that gives way by twist alone. Found by
#: integrals along arcs of 0.2 to 1.6 rad, with tapers to half and to 0.8 of the thickness.
_BY_TAPER = 0.35


def error_across(
    first: Section,
    last: Section,
    material: Material,
    turn: tuple[float, float],
    segments: int,
) -> float:
    """Return about how wrong the stiffness across the plane of a curved and tapered leaf is.

    Its angles in rad about y and z, while it is unstressed, are ``turn``.
    """
    part = _part(first, last, material, turn) / segments**2
    return part / (1.0 + part)


def segments_across(
    first: Section, last: Section, material: Material, turn: tuple[float, float]
) -> int:
    """Return how many segments make the error of the stiffness across about 1 %."""
    return max(1, math.ceil(math.sqrt(_part(first, last, material, turn) / _ENOUGH)))


def _part(first: Section, last: Section, material: Material, turn: tuple[float, float]) -> float:
    """Return the error, times the square of many segments."""
    ratio = float(first.torsion_constant / last.torsion_constant)
    twist = material.shear_modulus * math.sqrt(first.torsion_constant * last.torsion_constant)
    greatest = 0.0
    for angle, name in zip(turn, ("second_moment_z", "second_moment_y"), strict=True):
        bend = math.sqrt(getattr(first, name) * getattr(last, name)) * material.youngs_modulus
        by_twist = 0.15 * angle**2 * bend / twist  # over what bending gives way, at the end
        greatest = max(greatest, by_twist / (1.0 + by_twist))
    return _BY_TAPER * abs(math.log(ratio)) * greatest


def warn_of_curved_taper(
    name: str,
    sections: tuple[Section, Section],
    material: Material,
    turn: tuple[float, float],
    segments: int,
) -> None:
    """Warn of a beam that takes more segments for what it does across its plane."""
    needed = segments_across(*sections, material, turn)
    if needed <= segments:
        return
    error = error_across(*sections, material, turn, segments)
    count = "one segment" if segments == 1 else f"{segments} segments"
    warn(
        f"Beam '{name}' is tapered and curved: with {count}, its out-of-plane stiffness errs by "
        f"about {100.0 * error:.2g} %, since twist uses mean values of the sections. Pass"
        f" segments={needed} for 1 %, or planar=True if it moves in its plane only"
    )
