"""Beams as they are drawn and inspected: alone, of one segment, between frames at their ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from flexure.blocks.flexures.sections.fatigue import Fatigue
from flexure.blocks.flexures.sections.flexure_parameters import MaterialParameters, ShapeParameters
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.flexures.sections.strength import SECTION_FORCES
from flexure.blocks.forces.bushings.halfway_element import HalfwayElement
from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    relative_pose,
    rotation_from_rotation_vector,
    rotation_vector_from_rotation,
)
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.force_elements.presentation import Ribbon
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from flexure.diagrams.systems.ports import LeafOutputPort
from flexure.diagrams.values.arrays import Array, FloatArray, as_number
from flexure.diagrams.values.parameters import NumericParameter

if TYPE_CHECKING:
    from flexure.blocks.flexures.beams.beam import Beam


_FIT = 1e-6  # of the length, and in rad: frames that are farther from where a beam ends do not fit

_STRAIN = 5e-3  # where spring steel yields; heat of 100 K makes a quarter of that

#: The pose in A of the section at a distance from A along an unstressed beam.
Shape: TypeAlias = Callable[[Array], RigidTransform]


def unstressed_shape(length: Array, curvature: Array | None, pose: RigidTransform | None) -> Shape:
    """Return the shape of an unstressed beam; between the ends of a given pose, its chord."""
    if pose is not None:
        return partial(along_chord, rotation_vector_from_rotation(pose.R) / length, pose.p / length)
    return along_line if curvature is None else partial(along_arc, curvature)


def along_line(s: Array) -> RigidTransform:
    """Return the pose at a distance along a straight beam."""
    return RigidTransform(np.eye(3), scalars.array([s, 0.0, 0.0]))


def along_arc(curvature: Array, s: Array) -> RigidTransform:
    """Return the pose at a distance along an arc."""
    y, z = curvature
    half = rotation_from_rotation_vector(0.5 * s * scalars.array([0.0, y, z]))
    chord = s * scalars.sinc(0.5 * s * np.hypot(y, z))
    return RigidTransform(half @ half, half @ scalars.array([chord, 0.0, 0.0]))


def along_chord(turn: Array, step: Array, s: Array) -> RigidTransform:
    """Return the pose at a distance along a line, turned in proportion."""
    return RigidTransform(rotation_from_rotation_vector(s * turn), s * step)


def require_fit(beam: Beam, X_WA: RigidTransform, X_WC: RigidTransform) -> None:
    """Refuse frames, by their default poses in the world, between which a beam does not fit."""
    length, (begin, end) = float(beam.length.default), beam.ends
    wanted = compose_transforms(along_line(begin * length), beam.default_shape()(length))
    wanted = compose_transforms(wanted, along_line(-end * length))
    found = relative_pose(X_WA, X_WC)
    offset = float(np.linalg.norm(found.p - wanted.p))
    turn = float(np.linalg.norm(rotation_vector_from_rotation(wanted.R.T @ found.R)))
    if offset > _FIT * length or turn > _FIT:
        raise DeclarationError(
            f"Cannot fit beam '{beam.label}' of length {length:.6g} m between its frames",
            expected=f"'{beam.frame_c.name}' at {_numbers(wanted.p)} m in"
            f" '{beam.frame_a.name}' to {_FIT * length:.1e} m, where the unstressed beam ends,"
            f" and turned as it is to {_FIT:.0e} rad",
            found=f"{_numbers(found.p)} m, which is {offset:.3g} m from there, turned by"
            f" {np.rad2deg(turn):.3g} degrees against it",
            remedy="Move or turn one of the frames, or the bodies by default_pose of joints,"
            " correct the length, or pass prestressed=True",
        )


def require_length(beam: Beam, context: Any) -> None:
    """Refuse a length of a context that stretches or squeezes a beam between frames that stay."""
    length, built = float(beam.length(context)), float(beam.length.default)
    if abs(length - built) <= _STRAIN * built:
        return
    stiffness = beam.youngs_modulus(context) * beam.section_at(0.5, context).area
    tensions = beam.section_forces(context)[SECTION_FORCES.index("N") :: len(SECTION_FORCES)]
    strain = float(tensions[np.argmax(np.abs(tensions))] / stiffness)
    if abs(strain) > _STRAIN:
        raise EvaluationError(
            f"Cannot begin with '{beam.label}.length' = {length:.6g} m",
            expected=f"a length that fits between '{beam.frame_a.name}' and"
            f" '{beam.frame_c.name}', to a strain of {_STRAIN:.1%}",
            found=f"{'stretched' if strain > 0.0 else 'squeezed'} by {abs(strain):.2%}, since a"
            f" length in a context moves no body, and the plant was built for {built:.6g} m",
            remedy="Build a plant for each length, set positions of joints that fit, such as those"
            " of equilibrium(...).context, or pass prestressed=True",
        )


def default_length(
    length: float | None, frame_a: Frame, frame_c: Frame, is_straight: bool, attempt: str
) -> float:
    """Return the length that is given, or the distance of frames on one body."""
    if length is None and is_straight and frame_a.body is frame_c.body:
        return _distance_of(frame_a, frame_c, attempt)
    if length is None:
        raise DeclarationError(
            attempt,
            expected="length, since the frames are on two bodies"
            if is_straight
            else "length, since that of a curved beam does not follow from its frames",
            found="None",
            remedy="Pass the length of the unstressed beam in m",
        )
    return float(as_number(length, (), f"{attempt} with length"))


def _distance_of(frame_a: Frame, frame_c: Frame, attempt: str) -> float:
    """Return how far two frames on one body are from each other; refuse those at one place."""
    distance = float(np.linalg.norm(frame_c.X_BF.p - frame_a.X_BF.p))
    if distance == 0.0:
        raise DeclarationError(
            attempt,
            expected="frames at two places, whose distance is the length",
            found=f"'{frame_a.name}' and '{frame_c.name}', which are at one place of"
            f" '{frame_a.body.name}'",
            remedy="Add a frame where the beam ends by add_frame, or pass the length",
        )
    return distance


def _numbers(vector: Array) -> str:
    """Return a vector as people write it."""
    return "(" + ", ".join(f"{x:.9g}" for x in vector) + ")"


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
