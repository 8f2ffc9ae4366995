"""The lines of a mechanism: bones of bodies without shapes, springs, dampers, axes, supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.blocks import Plant
from flexure.blocks.multibody import ForceElement, Frame
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.facets import Piece, pieces_of

_ANY = "#000000"
_NEARBY = 1e-6  # of a length: what is not farther away is the same place


@dataclass(frozen=True)
class Stroke:
    """A line through points that are fixed on bodies."""

    bodies: tuple[int, ...]  # number of the body of each point
    points: FloatArray  # positions of the points in the frames of their bodies, shape (k, 3)
    # ``"bone"``, ``"dot"``, ``"spring"``, ``"damper"``, ``"damped spring"``, ``"cable"``,
    # ``"ground"``, ``"axis"`` of a joint, or ``"x"``, ``"y"``, ``"z"`` for an axis of a frame,
    # whose second point is a direction.
    kind: str


#: Kinds whose second point is a direction.
DIRECTIONS = ("x", "y", "z")
#: Kinds that join two bodies.
ELEMENTS = ("spring", "damper", "damped spring", "cable")


def strokes(plant: Plant, context: Context) -> list[Stroke]:
    """Return the lines of a plant.

    A body is a star of bones from its inboard joint to its other joints, to its center of mass, to
    where elements are attached and to the frames that were added on it. Where its shapes are there
    are no bones; one leads to them if the joint is elsewhere. Bushings are shown by the axes of
    their two frames, other elements between two places as springs, dampers or cables.
    """
    hubs, ends = _landmarks(plant, context)
    world = _Covered(plant, 0)
    different = {tuple(end.tolist()): end for end in ends[0]}.values()
    supports = [end for end in different if not world.covers(end)]
    found = [Stroke((0,), np.array([end]), "ground") for end in supports]
    for number, (joint, is_free) in hubs.items():
        shape = _Covered(plant, number)
        hub = shape.center if is_free and shape.is_seen else joint
        found += _body_strokes(number, hub, ends[number], shape)
    for element in plant.force_elements:
        if element.drawn_as == "frames":
            frames = [each.frame for each in element.attachments]
            found += [stroke for frame in frames for stroke in _triad(frame)]
        elif element.drawn_as in ("line", "cable") and len(element.attachments) == 2:
            bodies = tuple(each.body.number or 0 for each in element.attachments)
            points = np.array(element.attachment_points(context))
            found.append(Stroke(bodies, points, _kind(element, context)))
    return found


def _body_strokes(
    number: int, hub: FloatArray, ends: Sequence[FloatArray], shape: _Covered
) -> list[Stroke]:
    """Return the bones of a body, and the rods and dots of its shape."""
    rods = [rod for rod in shape.rods if not all(map(shape.holds, rod))]
    found = [Stroke((number, number), rod, "bone") for rod in rods]
    dots = [dot for dot in shape.dots if not shape.holds(dot)]
    found += [Stroke((number,), dot[None], "dot") for dot in dots]
    far = [end for end in ends if not shape.covers(end)]
    if shape.is_seen and not shape.covers(hub):
        inside = [end for end in ends if shape.covers(end)] or [shape.center]
        far.append(min(inside, key=lambda end: float(np.linalg.norm(end - hub))))
    for end in far:
        line = shape.outside(hub, end)
        if np.linalg.norm(line[1] - line[0]) > 0.0:
            found.append(Stroke((number, number), line, "bone"))
    return found


class _Covered:
    """Which points of a body are covered by its shapes."""

    def __init__(self, plant: Plant, number: int) -> None:
        shape = plant.bodies[number].shape
        self.pieces: list[Piece] = pieces_of(shape, number, _ANY)
        self.rods = [
            each.p + 0.5 * each.size[0] * np.outer([-1.0, 1.0], each.R[:, 2])
            for each in shape.primitives
            if each.kind == "rod"
        ]
        self.dots = [each.p for each in shape.primitives if each.kind == "point"]
        self.is_seen = bool(self.pieces or self.rods)
        places = [piece.hull for piece in self.pieces] + self.rods
        points = np.concatenate(places) if places else np.zeros((1, 3))
        self.center: FloatArray = 0.5 * (points.min(axis=0) + points.max(axis=0))
        self._nearby = _NEARBY * float(np.max(np.ptp(points, axis=0)))

    def holds(self, point: FloatArray) -> bool:
        """Return whether a point is in a piece, or on it."""
        return any(piece.contains(point, self._nearby) for piece in self.pieces)

    def covers(self, point: FloatArray) -> bool:
        """Return whether a point is in a piece, or on it, or on a rod."""
        on_rod = any(_distance(point, rod) <= self._nearby for rod in self.rods)
        return on_rod or self.holds(point)

    def outside(self, start: FloatArray, end: FloatArray) -> FloatArray:
        """Return the part of a line that is outside of the pieces in which its ends are."""
        first, last = 0.0, 1.0
        for piece in self.pieces:
            normals, distances = piece.planes[:, :3], piece.planes[:, 3]
            speed, ahead = normals @ (end - start), distances - normals @ start
            with np.errstate(divide="ignore", invalid="ignore"):
                at = ahead / speed
            if piece.contains(start, self._nearby):
                first = max(first, float(np.min(at[speed > 0.0], initial=1.0)))
            if piece.contains(end, self._nearby):
                last = min(last, float(np.max(at[speed < 0.0], initial=0.0)))
        if first >= last:
            return np.array([start, start])
        return np.array([start + first * (end - start), start + last * (end - start)])


def _distance(point: FloatArray, rod: FloatArray) -> float:
    along = rod[1] - rod[0]
    share = np.clip((point - rod[0]) @ along / (along @ along), 0.0, 1.0)
    return float(np.linalg.norm(point - rod[0] - share * along))


def _landmarks(
    plant: Plant, context: Context
) -> tuple[dict[int, tuple[FloatArray, bool]], dict[int, list[FloatArray]]]:
    """Return for each body but the world the point at its inboard joint, and the other points."""
    # The first one comes with whether the joint lets the body move freely in the world: then
    # nothing is there.
    hubs: dict[int, tuple[FloatArray, bool]] = {}
    ends: dict[int, list[FloatArray]] = {number: [] for number in range(len(plant.bodies))}
    for mobilizer in plant.tree.topology.mobilizers:
        joint = mobilizer.joint
        frames = [joint.frame_on_parent, joint.frame_on_child]
        near, far = reversed(frames) if mobilizer.is_reversed else frames
        is_free = joint.num_velocities == 6 and mobilizer.inboard == 0
        hubs[mobilizer.outboard] = far.X_BF.p, is_free
        if not is_free:
            ends[mobilizer.inboard].append(near.X_BF.p)
    for number, body in enumerate(plant.bodies[1:], start=1):
        if not body.is_node:
            ends[number].append(plant.tree.find_parameter(f"{body.name}_com").get(context))
    for frame in plant.frames:
        if not frame.body.is_world:
            ends[frame.body.number or 0].append(frame.X_BF.p)
    for element in plant.force_elements:
        points = element.attachment_points(context)
        for each, point in zip(element.attachments, points, strict=True):
            ends[each.body.number or 0].append(point)
    return hubs, ends


def _kind(element: ForceElement, context: Context) -> str:
    """Return what an element between two places looks like."""
    if element.drawn_as == "cable":
        return "cable"
    values: dict[str, Any] = {
        each.name: np.any(each.get(context)) for each in element.numeric_parameters
    }
    if not values.get("damping"):
        return "spring"
    return "damped spring" if values.get("stiffness", True) else "damper"


def _triad(frame: Frame) -> list[Stroke]:
    """Return the three axes of a frame."""
    number = frame.body.number or 0
    R, p = frame.X_BF
    return [Stroke((number, number), np.array([p, R[:, k]]), axis) for k, axis in enumerate("xyz")]


def placed(stroke: Stroke, poses: FloatArray) -> FloatArray:
    """Return points on bodies in the world, for poses of all bodies, of shape (..., bodies, 12)."""
    numbers = list(stroke.bodies)
    R = poses[..., numbers, :9].reshape(*poses.shape[:-2], len(numbers), 3, 3)
    return np.asarray(poses[..., numbers, 9:] + np.einsum("...kij,kj->...ki", R, stroke.points))


def carried(body: int, points: FloatArray, poses: FloatArray) -> FloatArray:
    """Return one point or several of a body in the world, for poses of shape (..., bodies, 12)."""
    R, p = poses[..., body, :9].reshape(*poses.shape[:-2], 3, 3), poses[..., body, 9:]
    turned: FloatArray = points @ np.swapaxes(R, -1, -2)
    return turned + (p if points.ndim == 1 else p[..., None, :])


def points_on(plant: Plant, context: Context, poses: FloatArray) -> FloatArray:
    """Return where the points of the lines and shapes of a plant are, for poses of its bodies."""
    found = [stroke for stroke in strokes(plant, context) if stroke.kind not in DIRECTIONS]
    points = [placed(stroke, poses) for stroke in found]
    shapes = [pieces_of(body.shape, number, _ANY) for number, body in enumerate(plant.bodies)]
    points += [carried(each.body, each.hull, poses) for pieces in shapes for each in pieces]
    return np.concatenate([poses[1:, 9:], *points])
