"""Flexures from geometry and material: what they are made of, and how they bend.

Materials and sections are plain values. A section takes symbols as well as numbers, so that its
dimensions can be parameters of a context.
"""

from flexure.blocks.flexures.beams.beam import Beam
from flexure.blocks.flexures.beams.flexure_assemblies import CrossPivot, FoldedGuide, ParallelGuide
from flexure.blocks.flexures.beams.leaf_spring import LeafSpring, WireFlexure
from flexure.blocks.flexures.hinges.lumped_hinge import LumpedHinge
from flexure.blocks.flexures.hinges.notch_hinge import NotchHinge
from flexure.blocks.flexures.hinges.notches import (
    CircularNotch,
    EllipticNotch,
    FilletedNotch,
    Notch,
)
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.blocks.flexures.sections.sections import (
    CircleSection,
    GeneralSection,
    Section,
    TubeSection,
)

__all__ = [
    "Beam",
    "CircleSection",
    "CircularNotch",
    "CrossPivot",
    "EllipticNotch",
    "FilletedNotch",
    "FoldedGuide",
    "GeneralSection",
    "LeafSpring",
    "LumpedHinge",
    "Material",
    "Notch",
    "NotchHinge",
    "ParallelGuide",
    "RectangleSection",
    "Section",
    "TubeSection",
    "WireFlexure",
]
