"""Which sections, materials and shapes a beam may have together."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.blocks.flexures.sections.sections import RoundSection, Section
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import as_number, check_bounds, check_size

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


def require_one_shape(curvature: Any, pose: Any, segments: int, attempt: str) -> None:
    """Refuse an unstressed shape that is given twice, or does not tell where nodes are."""
    if curvature is not None and pose is not None:
        raise DeclarationError(
            attempt, expected="curvature or unstressed_pose", found="both of them"
        )
    if pose is not None and segments > 1:
        raise DeclarationError(
            attempt,
            expected="curvature, which determines where the nodes are",
            found=f"unstressed_pose of a beam of {segments} segments",
            remedy="Pass curvature, or join several beams, each with its own pose",
        )
