"""Beams as they are drawn: slabs along a center line that is bent between frames on bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from flexure.blocks import Beam, Plant
from flexure.blocks.flexures.sections import RoundSection, Section
from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody import BodyForceElement
from flexure.diagrams.context import Context
from flexure.diagrams.values import FloatArray
from flexure.solvers.results.mechanisms.facets import Faces, Piece, face_normals

BEAM = "#dc9558"
_SLABS = 16  # of an element that is not divided
_FEWEST = 2  # of a segment: stresses are known at both ends and in the middle
_AROUND = 12  # corners of what is round
_PLACES = 3  # where stresses of a segment are known
_LINE = 1.2  # around faces, in points, so that thin leaves are seen from the side


@dataclass(frozen=True)
class Ribbon:
    """A flexure between frames on bodies.

    Attributes
    ----------
    element : BodyForceElement
        What is drawn.
    bodies : tuple of int
        Numbers of the bodies of its frames, from A to C, at least two.
    frames : array, shape (k, 3, 3)
        For each of them the position on its body, and the directions of the center line and of the
        width there.
    length : float
        Length of the line between two frames in m.
    outlines : array, shape (n, q, 2)
        Corners of the sections along y and z, counter-clockwise seen from C; of each of them, or
        of all when n = 1.
    slabs : int
        How many slabs are between two frames.
    """

    element: BodyForceElement
    bodies: tuple[int, ...]
    frames: FloatArray
    length: float
    outlines: FloatArray
    slabs: int

    @property
    def num_slabs(self) -> int:
        """How many slabs it consists of."""
        return (len(self.bodies) - 1) * self.slabs

    def corners(self, poses: FloatArray) -> FloatArray:
        """Return the corners of all sections in the world, of shape (..., sections, q, 3).

        The center line is a cubic curve from each frame to the next one, and the width turns
        evenly. ``poses`` of all bodies are of shape (..., bodies, 12).
        """
        numbers = list(self.bodies)
        R = poses[..., numbers, :9].reshape(*poses.shape[:-2], len(numbers), 3, 3)
        turned = np.einsum("...kij,kdj->...kdi", R, self.frames)
        p, t, z = np.moveaxis(turned, -2, 0)
        p = (p + poses[..., numbers, 9:])[..., :, None, :]
        t, z = self.length * t[..., :, None, :], z[..., :, None, :]
        s = np.linspace(0.0, 1.0, self.slabs + 1)[:, None]
        first, last = np.s_[..., :-1, :, :], np.s_[..., 1:, :, :]
        step = p[last] - p[first]
        line = p[first] + (3.0 - 2.0 * s) * s * s * step
        line = line + s * (1.0 - s) * ((1.0 - s) * t[first] - s * t[last])
        along = 6.0 * s * (1.0 - s) * step + (1.0 - s) * (1.0 - 3.0 * s) * t[first]
        along = _unit(along - s * (2.0 - 3.0 * s) * t[last])
        across = (1.0 - s) * z[first] + s * z[last]
        across = _unit(across - along * np.sum(along * across, axis=-1, keepdims=True))
        line, along, across = (_joined(each) for each in (line, along, across))
        y, outline = np.cross(across, along), self.outlines[..., None]
        return (
            line[..., :, None, :]
            + outline[:, :, 0] * y[..., :, None, :]
            + outline[:, :, 1] * across[..., :, None, :]
        )

    def pieces(self, poses: FloatArray, colors: Any = BEAM) -> Iterator[Piece]:
        """Yield its slabs as pieces that are fixed on the world, for poses of all bodies.

        ``colors`` is one for all, or a list of one for each.
        """
        sections = self.corners(poses)
        count, around = self.num_slabs, sections.shape[1]
        ring = range(around)
        start: tuple[int, ...] = tuple(reversed(ring))
        end = tuple(around + k for k in ring)
        sides: Faces = [(k, (k + 1) % around, around + (k + 1) % around, around + k) for k in ring]
        for number, (near, far) in enumerate(pairwise(sections)):
            points = np.concatenate([near, far])
            normals = face_normals(points, [*sides, start, end])
            planes = np.column_stack([normals, np.max(points @ normals.T, axis=0)])
            caps = [start] * (number == 0) + [end] * (number == count - 1)
            color = colors if isinstance(colors, str) else colors[number]
            yield Piece(0, points, [*sides, *caps], 0, color, planes, points, line=_LINE)

    def along(self, values: FloatArray) -> FloatArray:
        """Return what is known at the ends and in the middle of each segment for each slab."""
        count = len(self.bodies) - 1
        known = values.reshape(*values.shape[:-1], count, -1)
        places = np.linspace(0.0, _PLACES - 1.0, 2 * self.slabs + 1)[1::2]
        low = np.minimum(places.astype(int), _PLACES - 2)
        share = places - low
        found: FloatArray = (1.0 - share) * known[..., low] + share * known[..., low + 1]
        return found.reshape(*values.shape[:-1], -1)


def _joined(parts: FloatArray) -> FloatArray:
    """Return points of all segments in one row, in which those between two are once."""
    rest = parts[..., 1:, :].reshape(*parts.shape[:-3], -1, 3)
    found: FloatArray = np.concatenate([parts[..., 0, :1, :], rest], axis=-2)
    return found


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found: FloatArray = vectors / np.where(lengths > 0.0, lengths, 1.0)
    return found


def ribbons(plant: Plant, context: Context) -> list[Ribbon]:
    """Return the flexures of a plant, with the dimensions in a context."""
    return [_of_beam(each, context) for each in plant.force_elements if isinstance(each, Beam)]


def _of_beam(beam: Beam, context: Context) -> Ribbon:
    nodes = beam.inside.nodes
    start, end = np.eye(3)[[0, 2]], np.eye(3)[[0, 2]]
    rest = beam.unstressed_pose
    if rest is not None:  # which is what it is along
        start[0] = _unit(rest.p)
        end[0] = rest.R.T @ start[0]
    places = [(beam.frame_a, start), *((node.frame, start) for node in nodes), (beam.frame_c, end)]
    slabs = max(_FEWEST, -(-_SLABS // beam.num_segments))
    return Ribbon(
        beam,
        tuple(frame.body.number or 0 for frame, _ in places),
        np.array([_on_body(frame.X_BF, directions) for frame, directions in places]),
        float(beam.length.get(context)) / beam.num_segments,
        _outline(beam.section(context))[None],
        slabs,
    )


def _on_body(X_BF: RigidTransform, directions: FloatArray) -> FloatArray:
    """Return a position and two directions of a frame on its body."""
    return np.vstack([X_BF.p, directions @ X_BF.R.T])


def _outline(section: Section) -> FloatArray:
    """Return the corners of a section along y and z, or of a rectangle as stiff as it is."""
    if isinstance(section, RoundSection):
        angles = 2.0 * np.pi * np.arange(_AROUND) / _AROUND
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        return 0.5 * float(section.outer_diameter) * circle
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    moments = np.array([section.second_moment_z, section.second_moment_y], dtype=float)
    return square * np.sqrt(3.0 * moments / float(section.area))


__all__ = ["BEAM", "Ribbon", "ribbons"]
