"""Flexures from geometry and material: what they are made of, and how they bend.

Materials and sections are plain values. A section takes symbols as well as numbers, so that its
dimensions can be parameters of a context.
"""

from flexure.blocks.flexures.assemblies import CrossPivot, FoldedGuide, ParallelGuide
from flexure.blocks.flexures.beam import Beam
from flexure.blocks.flexures.leaf_spring import LeafSpring, WireFlexure
from flexure.blocks.flexures.materials import Material
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
    "CrossPivot",
    "FoldedGuide",
    "GeneralSection",
    "LeafSpring",
    "Material",
    "ParallelGuide",
    "RectangleSection",
    "Section",
    "TubeSection",
    "WireFlexure",
]
