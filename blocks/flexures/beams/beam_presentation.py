"""Beams as they are drawn, and as they are inspected: alone, of one segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.beams.beam_shapes import Shape, along_line, unstressed_shape
from flexure.blocks.flexures.sections.fatigue import Fatigue
from flexure.blocks.flexures.sections.flexure_parameters import MaterialParameters, ShapeParameters
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.forces.bushings.halfway_element import HalfwayElement
from flexure.blocks.math import RigidTransform, compose_transforms
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.force_elements.presentation import Ribbon
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.systems.ports import LeafOutputPort
from flexure.diagrams.values.arrays import Array, FloatArray
from flexure.diagrams.values.parameters import NumericParameter

_BENT = 0.1  # parts of its length by which the end of a beam is moved


class PresentedBeam(HalfwayElement):
    """The interface of a `Beam` for pictures and pages."""

    drawn_as = "ribbon"
    length: NumericParameter
    material: MaterialParameters
    section: ShapeParameters[Section]
    end_section: ShapeParameters[Section] | None
    num_segments: int
    ends: tuple[float, float]
    curvature: NumericParameter | None
    unstressed_pose: RigidTransform | None
    fatigue: ShapeParameters[Fatigue] | None
    stress: LeafOutputPort

    def section_at(self, part: float, context: Any) -> Section:
        """Return the section at a part of the length, from 0 at A to 1 at C, in a context."""
        if self.end_section is None:
            return self.section(context)
        return self.section.towards(self.end_section, part, context)

    def capsules(self, radius: float | None = None) -> list[tuple[Body, BodyShape]]:
        """Return a capsule around each node, for a `ContactGroup` along the beam.

        Capsules are as long as segments and turn with the nodes, so that the beam is covered but
        for half a segment at each end. Between nodes they are off the bent beam by up to ℓ²/(8 R),
        with the length ℓ of a segment and the radius R of the bent beam.

        Parameters
        ----------
        radius : float, optional
            Their radius in m; by default half of the extent of the section along y, which is that
            of the thickness of a leaf.

        Returns
        -------
        list of (Body, BodyShape)
            The nodes with their shapes, from the default dimensions of the beam.

        Raises
        ------
        DeclarationError
            When the beam has one segment, and therefore no nodes.
        ValueRefusedError
            When the radius is not positive.

        Examples
        --------
        >>> import flexure as fx
        >>> builder = fx.PlantBuilder("leaf")
        >>> steel = fx.Material.common("structural steel S235")
        >>> tip = builder.add_body("tip", fx.SpatialInertia.point_mass(0.1))
        >>> size = dict(length=0.06, width=0.01, thickness=0.0005)
        >>> leaf = fx.LeafSpring("leaf", builder.world, tip, **size, material=steel, segments=3)
        >>> leaf.capsules()
        [(<Body 'leaf_node1'>, <BodyShape: capsule>), (<Body 'leaf_node2'>, <BodyShape: capsule>)]
        """
        attempt = f"Cannot place capsules along '{self.name}'"
        if not self.inside:
            raise DeclarationError(
                attempt,
                expected="a beam of several segments, with nodes between them",
                found="one segment",
                remedy="Pass segments=, or add contacts at its ends",
            )
        if radius is None:
            radius = float(np.max(np.abs(self.section.default.outline()[:, 0])))
        length = float(self.length.default) / self.num_segments
        shape = BodyShape.capsule(radius=radius, length=length, axis="x")
        return [(node, shape) for node in self.inside.nodes]

    def _calc_offset(self, part: float, context: Any) -> Array:
        return part * self.length(context)

    def default_shape(self) -> Shape:
        """Return the shape of the unstressed beam in new contexts."""
        curvature = None if self.curvature is None else self.curvature.default
        return unstressed_shape(self.length.default, curvature, self.unstressed_pose)

    def default_end(self, number: int, frame: RigidTransform) -> RigidTransform:
        """Return the default pose of end A (0) or C (1) from that of its frame."""
        return compose_transforms(frame, along_line(self.ends[number] * self.length.default))

    def ribbon(self, context: Any) -> Ribbon:
        """Return the beam with its sections, bent between its ends and nodes."""
        along = np.vstack([np.zeros(3), np.eye(3)[[0, 2]]])
        start, end = along.copy(), along.copy()
        rest = self.unstressed_pose
        if rest is not None:  # which is what it is along
            chord = np.linalg.norm(rest.p)
            start[1] = rest.p / (chord if chord > 0.0 else 1.0)
            end[1] = rest.R.T @ start[1]
        first, length = start.copy(), float(self.length.get(context))
        first[0, 0], end[0, 0] = (part * length for part in self.ends)
        frames: list[tuple[Frame, FloatArray]] = [
            (self.attachments[0].frame, first),
            *((node.frame, start) for node in self.inside.nodes),
            (self.attachments[1].frame, end),
        ]

        def outlines(parts: FloatArray) -> FloatArray:
            apart = parts[:1] if self.end_section is None else parts
            return np.array([self.section_at(float(each), context).outline() for each in apart])

        length /= self.num_segments
        return Ribbon(frames, length, outlines, self.stress, self.material.yield_strength)

    def undivided(self: Any) -> Any:
        """Return a beam like this one in new contexts, of a single segment and in no plant."""
        if not self.inside:
            return self
        from flexure.blocks.flexures.beams.beam import Beam

        end, curvature, damping = self.end_section, self.curvature, self.damping_time
        return Beam(
            self.name,
            self.frame_a,
            self.frame_c,
            section=self.section.default,
            material=self.material.default,
            end_section=None if end is None else end.default,
            length=self.length.default,
            shear=self.shear,
            curvature=None if curvature is None else curvature.default,
            damping_time=None if damping is None else damping.default,
            plate=self.plate,
            clamped_warping=self.clamped_warping,
            prestressed=self.prestressed,
            ends=self.ends,
            fatigue=None if self.fatigue is None else self.fatigue.default,
        )

    def unstressed_frames(self) -> RigidTransform:
        """Return the default pose of C in A without load."""
        return self.default_shape()(float(self.length.default))

    def inspected_range(self, unit: str, place: float, context: Any) -> tuple[float, float] | None:
        """Return displacements of a tenth of its length; angles are as for other elements."""
        return (place, _BENT * float(self.length.get(context))) if unit == "m" else None
