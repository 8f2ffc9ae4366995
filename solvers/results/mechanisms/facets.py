"""The faces of shapes: convex pieces with flat faces, and meshes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np

from flexure.blocks.multibody.bodies.body_shape import BodyShape, Primitive
from flexure.diagrams.values.arrays import FloatArray

Faces: TypeAlias = list[tuple[int, ...]]

_AROUND = 28  # faces around an axis
_ALONG = 14  # faces from pole to pole
_SECTORS = 24  # of a tube, each of which is convex
_THINNEST = 0.02  # wall of a tube that has none, as a part of its radius
_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_DIRECTIONS = np.array(list(product((-1.0, 0.0, 1.0), repeat=3)))
_SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


@dataclass(frozen=True)
class Piece:
    """A convex solid that is fixed on a body, or a surface of triangles."""

    body: int  # number of the body
    vertices: FloatArray  # corners in the frame of the body, shape (n, 3)
    faces: Faces  # numbers of the corners of each face, counter-clockwise seen from outside
    outlined: int  # how many faces, from the first one on, have edges of their own
    color: str  # as ``"#rrggbb"``
    # Outward normals n and distances d with n x <= d for each point x of the piece, shape (k, 4).
    planes: FloatArray
    hull: FloatArray  # points whose hull contains the piece, shape (m, 3)
    two_sided: bool = False  # whether the back of a face can be seen
    line: float = 0.4  # width of the lines around faces without edges of their own, in points
    is_shaded: bool = True  # whether faces are darker where less light falls

    @property
    def reach(self) -> FloatArray:
        """The vertices that are farthest in some direction, which a camera has to show."""
        rows = np.unique(np.argmax(self.vertices @ _DIRECTIONS.T, axis=0))
        return np.asarray(self.vertices[rows])

    def contains(self, point: FloatArray, tolerance: float) -> bool:
        """Return whether a point of the body is in the piece, or on it."""
        return bool(np.all(self.planes[:, :3] @ point <= self.planes[:, 3] + tolerance))


def pieces_of(shape: BodyShape, body: int, color: str) -> list[Piece]:
    """Return the pieces of a shape; rods and points have none."""
    return [
        piece for each in shape.primitives for piece in _pieces(each, body, each.color or color)
    ]


def _pieces(each: Primitive, body: int, color: str) -> Iterator[Piece]:
    match each.kind, each.size:
        case "box", size:
            yield _box(np.array(size), each, body, color)
        case "ellipsoid", size:
            angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, _ALONG + 1)
            rings = [(float(np.cos(a)), float(np.sin(a))) for a in angles]
            yield _convex(*_revolved(rings, np.array(size)), each, body, color)
        case "capsule", (radius, length):
            angles = np.linspace(0.0, 0.5 * np.pi, _ALONG // 2 + 1)
            half = [
                (radius * float(np.cos(a)), 0.5 * length + radius * float(np.sin(a)))
                for a in angles
            ]
            rings = [(r, -z) for r, z in reversed(half)] + half
            yield _convex(*_revolved(rings), each, body, color)
        case "tube", (inner, outer, length):
            if inner == 0.0:
                rings = [(outer, -0.5 * length), (outer, 0.5 * length)]
                yield _convex(*_revolved(rings), each, body, color)
            else:
                yield from _sectors(inner, outer, length, each, body, color)
        case "mesh", _ if each.mesh is not None:
            vertices = each.mesh.vertices @ each.R.T + each.p
            low, high = vertices.min(axis=0), vertices.max(axis=0)
            around = _CORNERS * (high - low) + 0.5 * (low + high)
            faces = [tuple(row) for row in each.mesh.triangles.tolist()]
            planes = _planes(around, _axes())
            yield Piece(body, vertices, faces, 0, color, planes, around, two_sided=True)


def _box(size: FloatArray, each: Primitive, body: int, color: str) -> Piece:
    vertices = (_CORNERS * size) @ each.R.T + each.p
    flat = [k for k in range(3) if size[k] == 0.0]
    shown = [0, 1, 2, 3, 4, 5] if not flat else [2 * flat[0], 2 * flat[0] + 1]
    faces: Faces = [_SIDES[k] for k in shown]
    planes = _planes(vertices, _axes() @ each.R.T)
    return Piece(body, vertices, faces, len(faces), color, planes, vertices)


def _axes() -> FloatArray:
    return np.vstack([np.eye(3), -np.eye(3)])


def _revolved(
    rings: Sequence[tuple[float, float]], scale: FloatArray | None = None
) -> tuple[FloatArray, Faces, int]:
    """Return a body of revolution about z through circles of radius r at z, upwards."""
    # It ends in a point where the radius is zero, and in a flat face elsewhere.
    angles = 2.0 * np.pi * np.arange(_AROUND) / _AROUND
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    points: list[FloatArray] = []
    numbers: list[list[int]] = []
    count = 0
    for r, z in rings:
        is_pole = r < 1e-12 * max(radius for radius, _ in rings)
        ring = np.array([[0.0, 0.0, z]]) if is_pole else np.insert(r * circle, 2, z, axis=1)
        points.append(ring)
        numbers.append(list(range(count, count + len(ring))))
        count += len(ring)
    first, last = numbers[0], numbers[-1]
    caps = [tuple(reversed(first)), tuple(last)]
    faces: Faces = [cap for cap in caps if len(cap) > 1]
    outlined = len(faces)
    for low, high in pairwise(numbers):
        for k in range(_AROUND):
            a, b = (ring[k % len(ring)] for ring in (low, high))
            c, d = (ring[(k + 1) % len(ring)] for ring in (low, high))
            corners = (a, c, d, b)
            faces.append(tuple(dict.fromkeys(corners)))
    vertices = np.concatenate(points)
    return (vertices if scale is None else vertices * scale), faces, outlined


def _convex(
    vertices: FloatArray, faces: Faces, outlined: int, each: Primitive, body: int, color: str
) -> Piece:
    placed = vertices @ each.R.T + each.p
    planes = _planes(placed, face_normals(placed, faces))
    return Piece(body, placed, faces, outlined, color, planes, placed)


def _sectors(
    inner: float, outer: float, length: float, each: Primitive, body: int, color: str
) -> Iterator[Piece]:
    """Return a tube as convex sectors, between which no faces are drawn."""
    inner = min(inner, (1.0 - _THINNEST) * outer)
    angles = 2.0 * np.pi * np.arange(_SECTORS + 1) / _SECTORS
    for pair in pairwise(angles):
        corners = [
            [r * np.cos(a), r * np.sin(a), z]
            for r in (inner, outer)
            for a in pair
            for z in (-0.5 * length, 0.5 * length)
        ]
        vertices = np.array(corners) @ each.R.T + each.p
        center = vertices.mean(axis=0)
        sides: Faces = [_outward(vertices, side, center) for side in _SIDES]
        normals = face_normals(vertices, sides)
        drawn = [sides[k] for k in (0, 1, 4, 5)]  # inside, outside, and both ends
        yield Piece(body, vertices, drawn, 0, color, _planes(vertices, normals), vertices)


def _outward(vertices: FloatArray, face: tuple[int, ...], center: FloatArray) -> tuple[int, ...]:
    is_outward = face_normals(vertices, [face])[0] @ (vertices[face[0]] - center) >= 0.0
    return face if is_outward else tuple(reversed(face))


def face_normals(points: FloatArray, faces: Faces) -> FloatArray:
    """Return the unit normals of flat faces, to where their corners are counter-clockwise."""
    first, second, third = (points[[face[k] for face in faces]] for k in range(3))
    normals = np.cross(second - first, third - first)
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.asarray(normals / np.where(lengths > 0.0, lengths, 1.0))


def _planes(vertices: FloatArray, normals: FloatArray) -> FloatArray:
    """Return normals with the distance up to which the vertices reach along each."""
    return np.column_stack([normals, np.max(vertices @ normals.T, axis=0)])
