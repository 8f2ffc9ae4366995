"""Which sections, materials and shapes a beam may have together."""

from __future__ import annotations

from typing import Any

from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.blocks.flexures.sections.sections import Section
from flexure.diagrams.common.arguments import require
from flexure.diagrams.common.errors import DeclarationError


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
            expected="curvature, from which it follows where the nodes are",
            found=f"unstressed_pose of a beam of {segments} segments",
            remedy="Pass curvature, or join several beams, each with its own pose",
        )
