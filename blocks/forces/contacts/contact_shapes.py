"""Shapes that touch, and the points at which two of them are closest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.math import RigidTransform, dot, invert_transform, transform_point
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, FloatArray, as_numbers, check_bounds

_AXES = np.eye(3)
_SLACK = 1.0 + 1e-6  # of balls around shapes, so that rounding changes no force
_EXPECTED = "a BodyShape of one sphere, capsule, box, point or rod, 'half_space' or points (n, 2)"


class Touch(NamedTuple):
    """A place where two shapes A and B are close, expressed in one frame."""

    gap: Array  # distance of the surfaces, negative where they overlap
    normal: Array  # unit vector from B to A: the gradient of the gap for motions of A, shape (3,)
    point: Array  # the middle between the closest points of both surfaces, shape (3,)

    def seen_through(self, X: RigidTransform, sign: float = 1.0) -> Touch:
        """Return it in another frame; with the sign -1, A and B change places."""
        return Touch(self.gap, sign * np.matmul(X.R, self.normal), transform_point(X, self.point))


class ContactShape(NamedTuple):
    """A shape of contacts with its place in a frame."""

    # ``"sphere"`` with its radius as size, ``"capsule"`` along z with radius and length, ``"box"``
    # with its extents, ``"polyline"`` with the points of a profile in the plane x-y and the solid
    # on its left, or ``"half_space"`` with the solid at z <= 0.
    kind: str
    size: Array  # lengths in m; zero for a half-space, which has none
    pose: RigidTransform  # pose of the shape in the frame
    # Whether a line leads from the last point of a profile to the first one.
    is_closed: bool = False

    @property
    def is_round(self) -> bool:
        """Whether it is a line or a point with a radius."""
        return self.kind in ("sphere", "capsule")

    def depth(self) -> Array:
        """Return half of the least thickness."""
        if self.kind == "half_space":
            return 0.0
        if self.kind == "polyline":
            return 0.5 * np.min(np.ptp(self.size, axis=0))
        return self.size[0] if self.is_round else 0.5 * np.min(self.size)

    def reach(self) -> Array | None:
        """Return the radius of a ball around the shape, or None for those that have no end."""
        if self.kind in ("half_space", "polyline"):
            return None
        if self.kind == "box":
            return 0.5 * np.sqrt(dot(self.size, self.size))
        return self.size[0] + 0.5 * self.size[1] if self.kind == "capsule" else self.size[0]

    def points(self) -> list[Array]:
        """Return what is tested against solids: centers of round ends, corners, or vertices."""
        if self.kind == "sphere":
            return [np.zeros(3)]
        if self.kind == "capsule":
            return [side * _AXES[2] * self.size[1] for side in (-0.5, 0.5)]
        if self.kind == "box":
            return [np.array(signs) * self.size for signs in product((-0.5, 0.5), repeat=3)]
        return [np.array([*p, 0.0]) for p in self.size] if self.kind == "polyline" else []

    def distance(self, x: Array) -> tuple[Array, Array]:
        """Return the signed distance of a point from a solid, and its gradient."""
        if self.kind == "half_space":
            return x[2], _AXES[2]
        return _from_box(self.size, x) if self.kind == "box" else self._from_polyline(x)

    def _from_polyline(self, x: Array) -> tuple[Array, Array]:
        normals, corners = self._normals()
        found = []
        for k, normal in enumerate(normals):
            start, end = self.size[k], self.size[(k + 1) % len(self.size)]
            along = end - start
            t = dot(x[:2] - start, along) / dot(along, along)
            at_end = t >= 0.5
            w = x[:2] - np.where(at_end, end, start)
            square = dot(w, w)
            away = np.sqrt(np.where(square > 0.0, square, 1.0))
            out = np.where(at_end, corners[k + 1], corners[k])
            side = np.where(dot(w, out) >= 0.0, 1.0, -1.0)
            is_vertex = np.logical_and(np.logical_or(t <= 0.0, t >= 1.0), square > 0.0)
            signed = np.where(is_vertex, side * away, dot(x[:2] - start, normal))
            found.append((signed, np.where(is_vertex, side * w / away, normal)))
        best, n = found[0]
        for signed, direction in found[1:]:
            closer = np.abs(signed) < np.abs(best)
            best, n = np.where(closer, signed, best), np.where(closer, direction, n)
        return best, scalars.array([n[0], n[1], 0.0])

    def _normals(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return the outward normals of all lines of a profile, and directions at its vertices."""
        ends = [*self.size, self.size[0]] if self.is_closed else self.size
        along = np.diff(ends, axis=0)
        normals = [np.array([y, -x]) / np.sqrt(x * x + y * y) for x, y in along]
        first, last = (normals[-1], normals[0]) if self.is_closed else (normals[0], normals[-1])
        return normals, [a + b for a, b in pairwise([first, *normals, last])]

    def ridges(self) -> list[tuple[Array, Array, Array]]:
        """Return edges or vertices as center, half of the edge, and an outward direction."""
        if self.kind == "polyline":
            flat = [np.array([*corner, 0.0]) for corner in self._normals()[1]]
            return [(p, np.zeros(3), n) for p, n in zip(self.points(), flat, strict=False)]
        found = []
        for k, (s, t) in product(range(3), product((-1.0, 1.0), repeat=2)):
            out = s * _AXES[k - 2] + t * _AXES[k - 1]
            found.append((0.5 * out * self.size, 0.5 * _AXES[k] * self.size, out))
        return found if self.kind == "box" else []


def contact_shape(shape: object, attempt: str) -> ContactShape:
    """Return what a user gives as a shape, else raise."""
    at_origin = RigidTransform(np.eye(3), np.zeros(3))
    if isinstance(shape, str) and shape == "half_space":
        return ContactShape(shape, np.zeros(1), at_origin)
    if isinstance(shape, BodyShape) and len(shape.primitives) == 1:
        kind, size, R, p, *_ = shape.primitives[0]
        pose = RigidTransform(R, p)
        if kind in ("point", "ellipsoid") and len(set(size)) < 2:
            return ContactShape("sphere", np.array(size[:1] or (0.0,)), pose)
        if kind in ("rod", "capsule"):
            return ContactShape("capsule", np.array([0.0, *size][-2:]), pose)
        if kind == "box":
            return ContactShape("box", np.array(size), pose)
    is_profile = isinstance(shape, (list, tuple, np.ndarray))
    points = as_numbers(shape, attempt) if is_profile else np.zeros(0)
    check_bounds(points, attempt)
    is_profile = points.ndim == 2 and points.shape[1] == 2 and len(points) > 1
    remedy = "Use one contact for each part of a body"
    require(is_profile, shape, attempt, _EXPECTED, error=DeclarationError, remedy=remedy)
    differ = np.all(np.any(points[1:] != points[:-1], axis=1))
    expected = "points that differ from their neighbors"
    require(differ, shape, attempt, expected, error=DeclarationError)
    closed = bool(np.all(points[0] == points[-1]))
    return ContactShape("polyline", points[: len(points) - closed], at_origin, closed)


def touches(A: ContactShape, B: ContactShape, X_BA: RigidTransform) -> list[Touch]:
    """Return all places where two shapes may touch, with the pose of A in B, expressed in B.

    Their number depends on the kinds only.
    """
    if B.is_round and not A.is_round:
        return [each.seen_through(X_BA, -1.0) for each in touches(B, A, invert_transform(X_BA))]
    if A.is_round and B.is_round:
        return [_round_pair(A, B, X_BA)]
    found = _points_on_solid(A, B, X_BA)
    if A.kind == "capsule" and B.kind != "half_space":
        return _with_ridges(A, B, X_BA, found)
    if not A.is_round:
        back = _points_on_solid(B, A, invert_transform(X_BA))
        found += [each.seen_through(X_BA, -1.0) for each in back]
    return found


def are_apart(A: ContactShape, B: ContactShape, poses: Sequence[RigidTransform]) -> Array:
    """Return whether balls around two shapes at poses in the world do not touch.

    It is False where that cannot be told, and for positions that are not finite.
    """
    X_WA, X_WB = poses
    a, b, w = A.reach(), B.reach(), X_WA.p - X_WB.p
    if a is not None and b is not None:
        return dot(w, w) > (_SLACK * (a + b)) ** 2
    if a is not None and B.kind == "half_space":
        return dot(w, X_WB.R[:, 2]) > _SLACK * a
    if b is not None and A.kind == "half_space":
        return -dot(w, X_WA.R[:, 2]) > _SLACK * b
    return np.False_


def _points_on_solid(A: ContactShape, B: ContactShape, X_BA: RigidTransform) -> list[Touch]:
    """Return the touches of the round ends, corners or vertices of A with a solid B."""
    radius, found = A.size[0] if A.is_round else 0.0, []
    for point in A.points():
        x = transform_point(X_BA, point)
        distance, normal = B.distance(x)
        found.append(Touch(distance - radius, normal, x - 0.5 * (distance + radius) * normal))
    return found


def _from_box(size: Array, x: Array) -> tuple[Array, Array]:
    """Return the signed distance of a point from a box, and its gradient."""
    beyond = np.abs(x) - 0.5 * size
    side = np.where(x < 0.0, -1.0, 1.0)
    v = np.maximum(beyond, 0.0)
    square = dot(v, v)
    away = np.sqrt(np.where(square > 0.0, square, 1.0))
    deepest = np.max(beyond)
    first = np.logical_and(beyond[0] >= beyond[1], beyond[0] >= beyond[2])
    second = np.logical_and(np.logical_not(first), beyond[1] >= beyond[2])
    face = np.where(first, _AXES[0], np.where(second, _AXES[1], _AXES[2]))
    is_outside = square > 0.0
    return np.where(is_outside, away, deepest), side * np.where(is_outside, v / away, face)


def overlap_of_boxes(A: ContactShape, B: ContactShape, X_BA: RigidTransform) -> Array:
    """Return how far two boxes overlap along the axis that separates them first.

    The axes are the normals of all faces and those on an edge of each; it is negative if apart.
    """
    a, b, R, p = 0.5 * A.size, 0.5 * B.size, X_BA.R, X_BA.p
    span = np.abs(R)
    apart = [
        *(np.abs(p) - b - np.matmul(span, a)),
        *(np.abs(np.matmul(p, R)) - a - np.matmul(b, span)),
    ]
    for i, j in product(range(3), repeat=2):
        k, m, n, o = i - 2, i - 1, j - 2, j - 1
        square = R[k, j] ** 2 + R[m, j] ** 2
        is_axis = square > 1e-16  # edges in parallel span none
        reach = b[k] * span[m, j] + b[m] * span[k, j] + a[n] * span[i, o] + a[o] * span[i, n]
        distance = np.abs(p[m] * R[k, j] - p[k] * R[m, j]) - reach
        apart.append(np.where(is_axis, distance / np.sqrt(np.where(is_axis, square, 1.0)), -np.inf))
    return -np.max(scalars.array(apart))


def _round_pair(A: ContactShape, B: ContactShape, X_BA: RigidTransform) -> Touch:
    """Return the touch of two lines or points with radii."""
    half_a = 0.5 * A.size[1] * X_BA.R[:, 2] if A.kind == "capsule" else None
    half_b = 0.5 * B.size[1] * _AXES[2] if B.kind == "capsule" else None
    a, b = _closest_points(X_BA.p, half_a, np.zeros(3), half_b)
    return _around(a, A.size[0], b, B.size[0])


def _around(a: Array, radius_a: Array, b: Array, radius_b: Array) -> Touch:
    """Return the touch of two balls around points, in a direction z where these meet."""
    w = a - b
    square = dot(w, w)
    away = np.sqrt(np.where(square > 0.0, square, 1.0))
    normal = np.where(square > 0.0, w / away, _AXES[2])
    gap = np.where(square > 0.0, away, 0.0) - radius_a - radius_b
    return Touch(gap, normal, b + (radius_b + 0.5 * gap) * normal)


def _closest_points(
    p: Array, half_a: Array | None, q: Array, half_b: Array | None
) -> tuple[Array, Array]:
    """Return the closest points of the lines p + s half_a and q + t half_b, |s|, |t| <= 1."""
    if half_a is None or half_b is None:
        return _foot(p, half_a, q), _foot(q, half_b, p)
    w = q - p
    aa, bb, ab = dot(half_a, half_a), dot(half_b, half_b), dot(half_a, half_b)
    wa, wb = dot(w, half_a), dot(w, half_b)
    # Parallel lines have no single pair of closest points: the middle of A is as good as any.
    crossing = aa * bb - ab * ab
    apart = crossing > 1e-14 * aa * bb
    s = np.where(apart, (wa * bb - wb * ab) / np.where(apart, crossing, 1.0), 0.0)
    t = np.clip(_ratio(np.clip(s, -1.0, 1.0) * ab - wb, bb), -1.0, 1.0)
    s = np.clip(_ratio(wa + t * ab, aa), -1.0, 1.0)
    return p + s * half_a, q + t * half_b


def _foot(p: Array, half: Array | None, q: Array) -> Array:
    """Return the point of the line p + s half, |s| <= 1, that is closest to q."""
    if half is None:
        return p
    return p + np.clip(_ratio(dot(q - p, half), dot(half, half)), -1.0, 1.0) * half


def _ratio(a: Array, b: Array) -> Array:
    """Return a/b, or 0 where b is 0."""
    return np.where(b > 0.0, a / np.where(b > 0.0, b, 1.0), 0.0)


def _with_ridges(
    A: ContactShape, B: ContactShape, X_BA: RigidTransform, ends: list[Touch]
) -> list[Touch]:
    """Return the closest touch of a capsule A with a solid B, and that of the end further away."""
    # The first is at an end, or at an edge or vertex between the ends. Both depend continuously on
    # the motion, and so does the sum of two functions of their gaps.
    best, half = nearest(ends), 0.5 * A.size[1] * X_BA.R[:, 2]
    for middle, edge, out in B.ridges():
        if B.kind == "polyline":  # the ridge is the line along z through the vertex
            flat = np.array([1.0, 1.0, 0.0])
            w, along = flat * (middle - X_BA.p), flat * half
            a = X_BA.p + np.clip(_ratio(dot(w, along), dot(along, along)), -1.0, 1.0) * half
            b = middle + (1.0 - flat) * a
        else:
            a, b = _closest_points(X_BA.p, half, middle, edge)
        touch = _around(a, A.size[0], b, 0.0)
        is_outside = dot(a - b, out) > 0.0
        best = _choose(np.logical_and(is_outside, touch.gap < best.gap), touch, best)
    further = _choose(ends[0].gap >= ends[1].gap, *ends)
    return [best, further]


def nearest(found: Sequence[Touch]) -> Touch:
    """Return the touch with the smallest gap."""
    best = found[0]
    for each in found[1:]:
        best = _choose(each.gap < best.gap, each, best)
    return best


def _choose(condition: Any, a: Touch, b: Touch) -> Touch:
    return Touch(*(np.where(condition, x, y) for x, y in zip(a, b, strict=True)))
