"""Flexures from geometry and material: what they are made of, and how they bend.

Materials and sections are plain values. A section takes symbols as well as numbers, so that its
dimensions can be parameters of a context.
"""

from flexure.blocks.flexures.assemblies import CrossPivot, FoldedGuide, ParallelGuide
from flexure.blocks.flexures.beam import Beam
from flexure.blocks.flexures.leaf_spring import LeafSpring, WireFlexure
from flexure.blocks.flexures.lumped_hinge import LumpedHinge
from flexure.blocks.flexures.materials import Material
from flexure.blocks.flexures.notch_hinge import NotchHinge
from flexure.blocks.flexures.notches import CircularNotch, EllipticNotch, FilletedNotch, Notch
from flexure.blocks.flexures.rectangle_section import RectangleSection
from flexure.blocks.flexures.sections import (
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
