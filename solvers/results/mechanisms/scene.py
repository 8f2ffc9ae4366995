"""All that a picture of a mechanism shows, with sizes that suit the motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.multibody import BodyForceElement
from flexure.blocks.multibody.bodies.bodies import Frame
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.facets import Piece, pieces_of
from flexure.solvers.results.mechanisms.flexure_shapes import Ribbon, ribbons
from flexure.solvers.results.mechanisms.mechanism_lines import (
    DIRECTIONS,
    Stroke,
    carried,
    placed,
    strokes,
)

#: Colors of bodies without one of their own, in turn, so that neighbors differ.
_BODIES = ("#8fb8e3", "#f0b27d", "#93c9a6", "#c0a8da", "#dccb7f", "#b4bac1")
_METAL = "#a9b0b7"
_WORLD = "#d9dcdf"
_OVERHANG = 0.04  # of an axis beyond what turns about it, as a part of the size
_SHORTEST = 0.05  # half of an axis, as a part of the size
_KNUCKLE = (0.02, 0.12)  # radius as a part of the size, length as one of the axis
_KNUCKLES = (0.16, 0.84)  # where they are along the axis


@dataclass(frozen=True)
class ForceArrow:
    """The force of an element at a place on a body."""

    element: BodyForceElement
    attachment: int  # which of its attachments it is
    body: int  # number of the body
    point: FloatArray  # the place in the frame of the body, shape (3,)


@dataclass(frozen=True)
class Scene:
    """What is shown of a plant."""

    pieces: list[Piece]  # solids and surfaces
    strokes: list[Stroke]  # lines
    ribbons: list[Ribbon]  # beams
    arrows: list[ForceArrow]  # forces that can be shown
    size: float  # the largest extent of the mechanism in m, over all poses
    poses: FloatArray  # the poses for which the sizes were chosen, shape (count, bodies, 12)

    def points(self, poses: FloatArray) -> FloatArray:
        """Return all points in the world for poses of shape (count, bodies, 12), as (n, 3)."""
        return _points(self.pieces, self.strokes, self.ribbons, poses)

    def numbers(self) -> list[int]:
        """Return the numbers of the bodies that are shown."""
        found = {piece.body for piece in self.pieces}
        found.update(*(stroke.bodies for stroke in self.strokes))
        found.update(*(ribbon.bodies for ribbon in self.ribbons))
        return sorted(found)


def make_scene(plant: Plant, context: Context, poses: FloatArray) -> Scene:
    """Return what is shown of a plant.

    The context gives the places on the bodies. Poses, shape (count, bodies, 12), have for each
    moment and body the rotation matrix row by row, then the position.
    """
    pieces = _body_pieces(plant)
    lines, beams = strokes(plant, context), ribbons(plant, context)
    reach = _points(pieces, lines, beams, poses)
    size = float(np.max(np.ptp(reach, axis=0))) or 1.0
    for stroke, knuckles in _axes(plant, pieces, size, poses):
        lines.append(stroke)
        pieces += knuckles
        if knuckles:  # they show where the body is held
            lines = [each for each in lines if not _is_support(each, stroke)]
    return Scene(pieces, lines, beams, force_arrows(plant, context), size, poses)


def _is_support(each: Stroke, axis: Stroke) -> bool:
    """Return whether a line is the mark of the ground on an axis."""
    if each.kind != "ground" or axis.bodies[0] != 0:
        return False
    start, end = axis.points
    along = (end - start) / np.linalg.norm(end - start)
    off = each.points[0] - start
    return bool(np.linalg.norm(off - (off @ along) * along) < 1e-6 * np.linalg.norm(end - start))


def _body_pieces(plant: Plant) -> list[Piece]:
    """Return the shapes of all bodies; each body has a color of its own."""
    found: list[Piece] = []
    shown = 0
    for number, body in enumerate(plant.bodies):
        color = _BODIES[shown % len(_BODIES)] if number else _WORLD
        pieces = pieces_of(body.shape, number, color)
        shown += bool(pieces and number)
        found += pieces
    return found


def _points(
    pieces: Sequence[Piece], lines: Sequence[Stroke], beams: Sequence[Ribbon], poses: FloatArray
) -> FloatArray:
    found = [placed(each, poses) for each in lines if each.kind not in DIRECTIONS]
    found += [carried(each.body, each.reach, poses) for each in pieces]
    found += [each.corners(poses) for each in beams]
    found.append(poses[:, 1:, 9:])
    return np.concatenate([points.reshape(-1, 3) for points in found])


def _axes(
    plant: Plant, pieces: Sequence[Piece], size: float, poses: FloatArray
) -> list[tuple[Stroke, list[Piece]]]:
    """Return the axes about which joints turn and along which they slide, and hinges on them."""
    hinged = [
        end.joint
        for each in plant.force_elements
        if each.drawn_as == "knuckles"
        for end in each.joint_ends
    ]
    found = []
    for mobilizer in plant.tree.topology.mobilizers:
        joint = mobilizer.joint
        if joint.axis is None:
            continue
        frames = [joint.frame_on_parent, joint.frame_on_child]
        near, far = reversed(frames) if mobilizer.is_reversed else frames
        reach = np.zeros(2)
        if "v" in joint.VELOCITY_SUFFIXES:
            reach += _travel(near, far, joint.axis, poses)
        if joint.can_rotate:
            hulls = [each.hull for each in pieces if each.body == mobilizer.outboard]
            reach += _span(far, joint.axis, hulls)
        middle = 0.5 * np.sum(reach)
        half = max(0.5 * float(np.ptp(reach)) + _OVERHANG * size, _SHORTEST * size)
        ends = middle + half * np.array([-1.0, 1.0])
        axis = near.X_BF.R @ joint.axis
        line = near.X_BF.p + np.outer(ends, axis)
        stroke = Stroke((mobilizer.inboard,) * 2, line, "axis")
        knuckles = _knuckles(line, mobilizer.inboard, size) if joint in hinged else []
        found.append((stroke, knuckles))
    return found + [(pin, []) for pin in _pins(plant, size)]


def _pins(plant: Plant, size: float) -> list[Stroke]:
    """Return the axes of joints that close loops."""
    found = []
    for each in plant.constraints:
        joint = each.loop_joint
        if joint is not None and joint.axis is not None:
            near = joint.frame_on_parent
            half = max(_SHORTEST, _OVERHANG) * size * (near.X_BF.R @ joint.axis)
            ends = np.array([near.X_BF.p - half, near.X_BF.p + half])
            found.append(Stroke((near.body.number or 0,) * 2, ends, "axis"))
    return found


def _span(frame: Frame, axis: FloatArray, hulls: Sequence[FloatArray]) -> tuple[float, float]:
    """Return from where to where shapes reach along an axis through a frame on their body."""
    if not hulls:
        return 0.0, 0.0
    along = (np.concatenate(hulls) - frame.X_BF.p) @ (frame.X_BF.R @ axis)
    return float(along.min()), float(along.max())


def _travel(near: Frame, far: Frame, axis: FloatArray, poses: FloatArray) -> tuple[float, float]:
    """Return from where to where a joint slides."""
    places = [carried(each.body.number or 0, each.X_BF.p, poses) for each in (near, far)]
    R = poses[:, near.body.number or 0, :9].reshape(-1, 3, 3)
    along = np.einsum("kij,j->ki", R, near.X_BF.R @ axis)
    moved = np.sum((places[1] - places[0]) * along, axis=1)
    return float(moved.min()), float(moved.max())


def _knuckles(line: FloatArray, body: int, size: float) -> list[Piece]:
    """Return two short cylinders on the axis of a door."""
    # They go into the door, and are painted over it, as lines are: they have no planes.
    along = line[1] - line[0]
    length = float(np.linalg.norm(along))
    z = along / length
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(z, x), z])
    knuckle = BodyShape.cylinder(radius=_KNUCKLE[0] * size, length=_KNUCKLE[1] * length)
    return [
        replace(piece, planes=np.empty((0, 4)))
        for share in _KNUCKLES
        for piece in pieces_of(knuckle.moved((R, line[0] + share * along)), body, _METAL)
    ]


def force_arrows(plant: Plant, context: Context) -> list[ForceArrow]:
    """Return the places where elements act on bodies that can move."""
    found = []
    for element in plant.force_elements:
        if isinstance(element, BodyForceElement):
            points = element.attachment_points(context)
            for k, (each, point) in enumerate(zip(element.attachments, points, strict=True)):
                if not each.body.is_world:
                    found.append(ForceArrow(element, k, each.body.number or 0, point))
    return found
