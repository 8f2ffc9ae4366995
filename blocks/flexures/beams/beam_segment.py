"""Beams that are divided: their segments, the bodies between these, and their mass.

The law of a tapered beam takes mean values for the coupling of twist and bending. In an arc, a
force across its plane twists most at the clamped end, so it matters where the torsion stiffness is,
while one segment is as stiff there as its mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from flexure.blocks.flexures.beams.beam_law import BeamLaw, num_constants
from flexure.blocks.flexures.beams.beam_presentation import PresentedBeam, Shape
from flexure.blocks.flexures.beams.range_checks import BENDING_LIMITS, bending_measures
from flexure.blocks.flexures.beams.tapered_beam_law import STATIONS, WEIGHTS, TaperedBeamLaw
from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants, blend
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.flexures.sections.strength import PLACES, section_force_names
from flexure.blocks.forces.bushings.halfway_element import HalfwayElement
from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    invert_transform,
    relative_pose,
    rotation_from_rotation_vector,
    rotation_vector_from_rotation,
)
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike
from flexure.blocks.multibody.force_elements.division import Division
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.planar import PlanarJoint
from flexure.blocks.multibody.trees.topology import EXACT, InPlane
from flexure.blocks.multibody.trees.tree_inputs import INERTIA_SIZE, inertia_on_body
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, warn
from flexure.diagrams.values.arrays import Array

#: Gauss' points on 0 to 1, and their weights: exact for the inertia of what is straight.
_POINTS = 0.5 + np.sqrt(0.15) * np.array([-1.0, 0.0, 1.0])
_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
_FLAT = 1e-6  # in rad, and of the length: what is farther from the plane of a beam is not in it


class BeamSegment(HalfwayElement):
    """A part of a `Beam` that is divided, which gets everything from the block of the whole.

    So all segments of all beams of one kind have the same code. Inputs are ``constants``, those of
    a `BeamLaw`, and ``lumps``, ten numbers for the inertia at each end. Outputs are those of a
    bushing, ``section_forces``, ``winding`` by twist, and ``utilization`` of the limits up to which
    it may bend. Where planar, both ends move in the plane x-y of A alone. ``ends`` are how far
    along x of A and of C the ends are, in lengths of the segment.
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        damped: bool,
        num_constants: int,
        planar: bool = False,
        ends: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.planar = planar
        given = {"constants": num_constants}
        offsets = end_offsets(self._calc_offset, ends)
        super().__init__(name, frame_a, frame_c, dissipates=damped, given=given, offsets=offsets)
        (self.constants,) = self.given_ports
        self.lumps = self.declare_vector_input("lumps", 2 * INERTIA_SIZE)
        reads = [self.lumps, *([self.constants] if offsets else [])]
        self.declare_inertias(self._calc_carried, prerequisites=reads)
        self._declare_outputs()
        self.section_forces = self.declare_vector_output(
            "section_forces",
            6 * len(PLACES),
            self._calc_section_forces,
            prerequisites=[self._frame_forces, self._deformation, self.constants],
            element_names=section_force_names(PLACES),
        )
        self.winding = self.declare_vector_output(
            "winding",
            2,
            self._calc_winding,
            prerequisites=[self._deformation, self.constants],
            element_names=("wound", "torque"),
            doc="half the square of the twist per length in 1/m², and the torque of fibers in N m",
        )
        self.declare_limits(
            BENDING_LIMITS, self._calc_bent, prerequisites=[self._deformation, self.constants]
        )

    def law(self, context: Any) -> BeamLaw:
        """Return the law of the segment."""
        law = BeamLaw.from_constants(self.constants(context), self.label)
        return replace(law, planar=self.planar)

    def _calc_offset(self, part: float, context: Any) -> Array:
        return part * self.constants(context)[0]  # the length comes first

    def _calc_carried(self, context: Any) -> Sequence[Array]:
        both = self.lumps(context)
        return [both[:INERTIA_SIZE], both[INERTIA_SIZE:]]

    def _calc_bent(self, context: Any) -> list[Array]:
        return bending_measures(self.law(context), self._deformation(context))

    def _calc_winding(self, context: Any) -> Array:
        return self.law(context).winding(self._deformation(context))

    def _calc_section_forces(self, context: Any) -> Array:
        law, (F_A_A, F_C_A) = self.law(context), self._frame_forces(context)
        return law.section_forces(self._deformation(context), F_A_A, F_C_A).reshape(-1)


def divide(
    name: str,
    frame_a: FrameLike,
    frame_c: FrameLike,
    count: int,
    planar: bool,
    ends: tuple[float, float],
    segment: Callable[..., Any],
) -> Division:
    """Return nodes and segments of a beam; those between nodes know that these are in a plane."""
    nodes = [Body(f"{name}_node{k}") for k in range(1, count)]
    begin, end = (count * part for part in ends)
    segments = [
        segment(
            f"{name}_{k}",
            A,
            C,
            planar=planar and 1 < k < count,
            ends=(begin * (k == 1), end * (k == count)),
        )
        for k, (A, C) in enumerate(pairwise([frame_a, *nodes, frame_c]), 1)
    ]
    return Division(nodes, segments)


def end_offsets(
    calc: Callable[[float, Any], Array], ends: tuple[float, float]
) -> dict[str, Callable[[Any], Array]]:
    """Return the offsets of the ends of a beam that are not at its frames, by their labels."""
    return {label: partial(calc, part) for label, part in zip("AC", ends, strict=True) if part}


def end_shares(count: int) -> list[tuple[float, float]]:
    """Return what of the mass of a segment is at its ends A and C, for each of the segments.

    Both parts at a node make up its weight in Gregory's rule for integrals, which has the weights
    3/8, 7/6, 23/24, 1, 1 … from either end. The rule is exact for cubic polynomials. So are mass,
    center and inertia of a straight beam, no weight is negative, and the kinetic energy of bending
    has an error of fourth order in the length of a segment. With two segments it is Simpson's.
    """
    weights = np.ones(count + 1)
    ends = np.array([-5.0 / 8.0, 1.0 / 6.0, -1.0 / 24.0])
    weights[:3] += ends
    weights[-3:] += ends[::-1]
    halves = np.concatenate([weights[:1], 0.5 * weights[1:-1], weights[-1:]]).tolist()
    return list(pairwise(halves))


def rigid_halves(
    length: Array, line: Callable[[float], Array], shape: Shape, *, tapered: bool
) -> list[Array]:
    """Return the inertia of both halves of a beam, about its ends and expressed in their frames.

    ``line`` gives what the section at a part of the length has per length: mass in kg/m, and
    moments of inertia about x, y, z in kg m; ``shape`` gives the pose in A of the section at a
    distance in m. A tapered beam takes more sections. Results are mass, first moment and inertia,
    ten numbers, that belong to A, and those that belong to C.
    """
    points, weights = (STATIONS, WEIGHTS) if tapered else (_POINTS, _WEIGHTS)
    to_end = invert_transform(shape(length))
    halves: list[Array] = [np.zeros(INERTIA_SIZE), np.zeros(INERTIA_SIZE)]
    for point, weight in zip(points, weights, strict=True):
        size = 0.5 * weight * length
        near, far = 0.5 * point, 1.0 - 0.5 * point
        at_A, at_C = shape(near * length), compose_transforms(to_end, shape(far * length))
        halves[0] = halves[0] + inertia_on_body(section_inertia(size * line(near)), at_A)
        halves[1] = halves[1] + inertia_on_body(section_inertia(size * line(far)), at_C)
    return halves


def section_inertia(line: Array) -> Array:
    """Return mass, first moment and inertia of a section, from mass and moments of inertia."""
    mass, *moments = line
    return scalars.array([mass, 0.0, 0.0, 0.0, *moments, 0.0, 0.0, 0.0])


def node_joints(
    beam: PresentedBeam,
    shape: Shape,
    length: float,
    world: Body,
    at: Sequence[Any],
    in_plane: InPlane | None,
) -> list[Joint]:
    """Return the joints of the nodes of a beam, which are at rest by default.

    Where the ends, whose poses in the world are ``at``, stand otherwise than those of the
    unstressed beam, nodes are moved in proportion. ``shape`` gives the pose in A of the section at
    a distance in m.

    ``in_plane`` returns the bodies that move, relative to a body, in planes across a direction
    alone. With it nodes move in the plane x-y of A alone, also where A moves. The last segment
    learns whether C stays in that plane, too.
    """
    X_WA, X_WC = (RigidTransform(*each) for each in at)
    X_AC, unstressed = relative_pose(X_WA, X_WC), shape(length)
    turn = rotation_vector_from_rotation(unstressed.R.T @ X_AC.R)
    offset = X_AC.p - unstressed.p
    joints: list[Joint] = []
    nodes = beam.inside.nodes
    if in_plane is not None and beam.inside:
        plane = _plane_of_nodes(beam, world, X_WA, X_AC, length, in_plane)
    for k, node in enumerate(nodes, start=1):
        part = k / (len(nodes) + 1)
        R, p = shape(part * length)
        X_AN = RigidTransform(R @ rotation_from_rotation_vector(part * turn), p + part * offset)
        if in_plane is not None:
            _require_flat(beam, X_AN, length)
            joint: Joint = PlanarJoint(node.name, plane, node)
            joint.default_pose = X_AN
        else:
            joint = QuaternionFloatingJoint(node.name, world, node)
            joint.default_pose = compose_transforms(X_WA, X_AN)
        joints.append(joint)
    return joints


def _plane_of_nodes(
    beam: PresentedBeam,
    world: Body,
    X_WA: RigidTransform,
    X_AC: RigidTransform,
    length: float,
    in_plane: InPlane,
) -> Frame:
    """Return the frame on whose plane x-y the nodes are, and let both outer segments know it."""
    # It is on the world if A keeps to that plane, so that the plane rests and trees are flat, and
    # otherwise on the body of A.
    A, normal, name = beam.frame_a, X_WA.R[:, 2], f"{beam.name}_plane"
    base, bodies = world, in_plane(world, normal)
    if A.body not in bodies:
        base, bodies = A.body, in_plane(A.body, normal)
    first, last = beam.inside.segments[0], beam.inside.segments[-1]
    is_flat = max(abs(X_AC.p[2]) / length, float(np.linalg.norm(X_AC.R[:2, 2]))) < EXACT
    first.planar = True
    last.planar = is_flat and last.link1 in bodies
    return Frame(name, base, X_WA if base is world else beam.default_end(0, A.X_BF))


def _require_flat(beam: HalfwayElement, X_AN: RigidTransform, length: float) -> None:
    """Refuse nodes that are not in the plane x-y of A."""
    off = max(abs(X_AN.p[2]) / length, float(np.linalg.norm(X_AN.R[:2, 2])))
    if off > _FLAT:
        raise DeclarationError(
            f"Cannot place the nodes of beam '{beam.label}', which is planar",
            expected=f"a beam in the plane x-y of '{beam.frame_a.name}'",
            found=f"a node that is off by {abs(X_AN.p[2]):.3g} m, or turned out of it",
            remedy="Omit planar, or turn the frames so that the motion is about their z axes",
        )


_GIVEN = 5  # numbers that all have: length, E, ν, G, and the factor of plates


@dataclass(frozen=True)
class Taper:
    """Common data of all segments of a tapered beam."""

    section: type[Section]  # what kind of section they have
    shear: bool  # whether shear forces deflect them
    # damped, curved, strained: whether there are dampers, whether they are curved while they are
    # unstressed, and whether free strain changes that.
    damped: bool
    curved: bool
    strained: bool = False

    @property
    def num_numbers(self) -> int:
        """How many numbers make a law."""
        return self._first_dimension + 2 * len(fields(self.section))

    @property
    def _first_dimension(self) -> int:
        others = num_constants(damped=self.damped, curved=self.curved, strained=self.strained)
        return _GIVEN + others - num_constants(damped=False, curved=False)

    def law(self, numbers: Array, label: str) -> BeamLaw:
        """Return the law of a segment.

        The numbers are length, E, ν, G and the factor of plates; the time of damping and the state
        at rest, if any; the dimensions of the section at A, and those at C.
        """
        (h, E, nu, G, factor), rest = numbers[:_GIVEN], numbers[_GIVEN : self._first_dimension]
        first, last = numbers[self._first_dimension :].reshape(2, -1)
        sections = [blend(self.section, first, last, part) for part in STATIONS]
        law = TaperedBeamLaw.between(
            h, sections, MaterialConstants(E, nu, G, 0.0), shear=self.shear, plate_factor=factor
        )
        if self.damped:
            law = replace(law, damping_time=rest[0])
        return replace(law.with_rest(rest[int(self.damped) :]), label=label)


class TaperedSegment(BeamSegment):
    """A part of a `Beam` that is tapered and divided.

    It makes its law of the sections at its ends, which is long, and so the same code for all parts.
    Its ``constants`` are the numbers of `Taper.law`; ``taper`` is what all segments have in common.
    """

    def __init__(
        self, name: str, frame_a: FrameLike, frame_c: FrameLike, *, taper: Taper, **options: Any
    ) -> None:
        self._taper = taper
        super().__init__(
            name,
            frame_a,
            frame_c,
            damped=taper.damped or taper.strained,
            num_constants=taper.num_numbers,
            **options,
        )
        self._law = self.declare_cache_entry("law", self._calc_law, prerequisites=[self.constants])

    def law(self, context: Any) -> BeamLaw:
        """Return the law of the segment."""
        law: BeamLaw = self._law(context)
        return law

    def _calc_law(self, context: Any) -> BeamLaw:
        law = self._taper.law(self.constants(context), self.label)
        return replace(law, planar=self.planar)


_ENOUGH = 0.01
#: Error of the stiffness across, times the square of the number of segments, over the logarithm of
#: the ratio of both torsion stiffnesses, of an arc that gives way by twist alone. Found by
#: integrals along arcs of 0.2 to 1.6 rad, with tapers to half and to 0.8 of the thickness.
_BY_TAPER = 0.35


def error_across(
    first: Section, last: Section, material: Material, turn: tuple[float, float], segments: int
) -> float:
    """Return about how wrong the stiffness across the plane of a curved and tapered leaf is.

    It turns by the angles ``turn`` in rad about y and z along its length, while it is unstressed.
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
