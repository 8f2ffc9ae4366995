"""Sections, materials and segments of beams, and their range of validity as declared limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.blocks.flexures.sections.sections import RoundSection, Section
from flexure.blocks.flexures.sections.strength import stress_limits
from flexure.blocks.forces.bushings.halfway_law import Deformation
from flexure.blocks.multibody.force_elements.limits import Limit
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, as_number, check_bounds, check_size
from flexure.diagrams.values.parameters import NumericParameter

MOST_SEGMENTS = 1000  # errors fall with the fourth power, and are rounding long before


def checked_segments(segments: Any, name: str) -> int:
    """Return the number of segments; refuse what is no such number, and more than can be built."""
    count = check_size(segments, f"the segments of beam '{name}'", minimum=1)
    if count > MOST_SEGMENTS:
        raise DeclarationError(
            f"Cannot divide beam '{name}'",
            expected=f"at most {MOST_SEGMENTS} segments, each of which is a block with a body",
            found=f"{count}",
            remedy="Use 8 to 32, which are accurate to 1e-5 and better in most uses; errors fall"
            " with the fourth power of the number",
        )
    return count


def checked_ends(ends: Any, attempt: str) -> tuple[float, float]:
    """Return where both ends of a beam are in its frames, in parts of its length."""
    begin, end = as_number(ends, (2,), f"{attempt} with ends").tolist()
    check_bounds(np.array([begin, end]), f"{attempt} with ends")
    return begin, end


def require_plate(section: Section, attempt: str) -> None:
    """Refuse the bending of plates for round sections, which are as stiff in all directions."""
    if isinstance(section, RoundSection):
        raise DeclarationError(
            attempt,
            expected="a RectangleSection, or a GeneralSection of a wide plate, with plate",
            found=repr(section),
            remedy="Omit plate; round sections are free to deform across",
        )


def require_parts(section: Any, end_section: Any, material: Any, attempt: str) -> None:
    """Refuse what is no section or material, and tapers from one kind of section to another."""
    require(isinstance(section, Section), section, attempt, "a Section", error=DeclarationError)
    require(isinstance(material, Material), material, attempt, "a Material", error=DeclarationError)
    if end_section is not None and type(end_section) is not type(section):
        raise DeclarationError(
            attempt,
            expected=f"an end_section of the kind of its section, {type(section).__name__}",
            found=repr(end_section),
        )


def require_warping(section: Section, end_section: Section | None, attempt: str) -> None:
    """Refuse clamped warping of what is tapered, or does not warp as a leaf does."""
    if end_section is not None:
        raise DeclarationError(
            attempt, expected="clamped_warping or end_section", found="both of them"
        )
    if not isinstance(section, RectangleSection):
        raise DeclarationError(
            attempt,
            expected="a RectangleSection with clamped_warping",
            found=repr(section),
            remedy="Omit clamped_warping; round sections do not warp",
        )


def require_one_shape(
    curvature: Any, pose: Any, segments: int, attempt: str, strained: bool
) -> None:
    """Refuse an unstressed shape that is given twice, or says too little of what is between."""
    if curvature is not None and pose is not None:
        raise DeclarationError(
            attempt, expected="curvature or unstressed_pose", found="both of them"
        )
    if pose is not None and strained:
        raise DeclarationError(
            attempt,
            expected="curvature, which free strain changes",
            found="unstressed_pose of a beam with reference_temperature or free_strain",
            remedy="Pass curvature, or join several beams, each with its own curvature",
        )
    if pose is not None and segments > 1:
        raise DeclarationError(
            attempt,
            expected="curvature, which determines where the nodes are",
            found=f"unstressed_pose of a beam of {segments} segments",
            remedy="Pass curvature, or join several beams, each with its own pose",
        )


_DIVIDE = "Divide it into more segments, by segments=, or move it less"
_MISLEADS = 3.0  # times the limits; at five times, other branches were followed without a word
_BUCKLED = 1.6  # times the limit, at which a wide leaf does not stay as straight as it is

#: How far one beam, or one segment of it, may bend.
BENDING_LIMITS = (
    Limit(
        "angle between its ends",
        0.3,
        "rad",
        "Its forces are wrong by more than about 0.1 %",
        _DIVIDE,
        _MISLEADS,
    ),
    Limit(
        "angle of its chord",
        0.3,
        "rad",
        "Its forces are wrong by more than about 0.1 %",
        _DIVIDE,
        _MISLEADS,
    ),
    Limit(
        "axial force times length squared, over bending stiffness",
        10.0,
        "",
        "Its stiffness in bending is wrong by more than about 2 %",
        "Divide it into more segments, by segments=, or pull or push it less",
        _MISLEADS,
    ),
    Limit(
        "twist per length times width squared, over thickness",
        5.0,
        "",
        "Its middle is compressed by so much that its stiffness in bending is wrong by more than"
        " about 5 %, and at about 8 it buckles",
        "Make it narrower, thicker or longer, or twist it less",
        _BUCKLED,
    ),
    Limit(
        "twist by bending, over the energy of bending",
        0.1,
        "",
        "Bent the stiff way, it twists inside by more than its equations follow",
        _DIVIDE,
    ),
)

_SLENDERNESS = Limit(
    "thickness over length",
    0.2,
    "",
    "It is too thick for a beam",
    "Make it thinner or longer, or use a NotchHinge",
)


def beam_limits(strength: NumericParameter | None, material: Material, heated: bool) -> list[Limit]:
    """Return the limits of a whole beam: of its temperature, its stress, and its thickness.

    ``strength`` is the yield strength as a parameter; ``heated`` states whether E follows an input.
    """
    low, high = material.temperature_range
    temperature = Limit(
        "temperature from the middle of the range of its material",
        0.5 * (high - low),
        "K",
        f"How its modulus follows the temperature is known from {low:g} to {high:g} K",
        "Pass a material with a thermoelastic_coefficient that holds there",
    )
    known = [temperature] if heated and np.isfinite(high) else []
    return [*known, *stress_limits(strength, material), _SLENDERNESS]


def bending_measures(law: BeamLaw, deformation: Deformation) -> list[Array]:
    """Return what `BENDING_LIMITS` bound."""
    strains, (about_y, about_z) = law.strains(deformation), law.bending()
    (_, qy, qz), (u, w) = strains.turns, strains.chord
    x, y, z = deformation.angles
    bending = about_y.stiffness.arc * qy * qy + about_z.stiffness.arc * qz * qz
    twisting = law.relaxed_energy(strains)
    is_straight = bending == 0.0
    share = 2.0 * twisting / np.where(is_straight, 1.0, bending)
    softest, slimness = law.bending_stiffness_z, 0.0
    if not law.planar:
        softest = np.minimum(law.bending_stiffness_y, softest)
        width = np.sqrt(np.sqrt(180.0 * law.wagner_stiffness / law.axial_stiffness))
        ratio = law.bending_stiffness_y / law.bending_stiffness_z
        flatness = np.sqrt(np.maximum(ratio, 1.0 / ratio))
        slimness = np.abs(law.twist(strains)[0]) * width * flatness
    return [
        np.hypot(np.hypot(x, y), z),
        np.hypot(u, w),
        np.abs(strains.force) * law.length**2 / softest,
        slimness,
        np.where(is_straight, 0.0, share),
    ]


def slenderness(section: Section, length: Array) -> Array:
    """Return the thickness of a beam over its length, that of a rectangle alike in bending."""
    least = np.minimum(section.second_moment_y, section.second_moment_z)
    return np.sqrt(12.0 * least / section.area) / length
