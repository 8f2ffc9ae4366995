"""Boxes and balls in space that do not meet, and which of them a viewer sees along a line."""

from __future__ import annotations

import numpy as np

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.diagrams.values.arrays import FloatArray

#: Center, rotation matrix, and three extents of a box, or three times the diameter of a ball.
Thing = tuple[FloatArray, FloatArray, FloatArray, bool]


def things(seed: int, count: int = 12) -> list[Thing]:
    """Return boxes and balls that do not meet: each is in a ball of its own."""
    rng = np.random.default_rng(seed)
    found: list[Thing] = []
    while len(found) < count:
        center, extents = rng.uniform(-1.0, 1.0, 3), rng.uniform(0.05, 0.6, 3)
        is_ball = len(found) % 3 == 2
        if is_ball:
            extents = np.full(3, extents.mean())
        reach = 0.5 * np.linalg.norm(extents)
        others = [
            np.linalg.norm(center - p) < reach + 0.5 * np.linalg.norm(e) for p, _, e, _ in found
        ]
        if not any(others):
            R = np.asarray(rotation_from_rpy(rng.uniform(-3.0, 3.0, 3)))
            found.append((center, R, extents, is_ball))
    return found


def plant_of(things: list[Thing]) -> fx.Plant:
    """Return a plant whose bodies are these things, welded to the world."""
    builder = fx.PlantBuilder("things")
    for k, (center, R, extents, is_ball) in enumerate(things):
        inertia = fx.SpatialInertia.solid_box(1.0, size=extents)
        if is_ball:
            inertia = fx.SpatialInertia.solid_sphere(1.0, radius=0.5 * extents[0])
        body = builder.add_body(f"thing{k}", inertia)
        place = builder.add_frame(f"place{k}", builder.world, (R, center))
        builder.add_joint(fx.WeldJoint(f"weld{k}", place, body))
    return builder.build()


def seen_first(things: list[Thing], start: FloatArray, toward: FloatArray) -> tuple[int, float]:
    """Return which thing is nearest to the viewer on a line, -1 for none, and by how much.

    The second number is how far the line is from an edge of what it meets, roughly, in m.
    """
    best, chosen, clear = -np.inf, -1, np.inf
    for k, (center, R, extents, is_ball) in enumerate(things):
        p, d = R.T @ (start - center), R.T @ toward
        if is_ball:
            off = np.linalg.norm(p - (p @ d) * d)
            clear = min(clear, abs(off - 0.5 * extents[0]))
            at = -(p @ d) + np.sqrt(max(0.25 * extents[0] ** 2 - off**2, 0.0))
            hit = off < 0.5 * extents[0]
        else:
            near, far = np.sort([(-0.5 * extents - p) / d, (0.5 * extents - p) / d], axis=0)
            at, hit = far.min(), near.max() < far.min()
            clear = min(clear, abs(far.min() - near.max()))
        if hit and at > best:
            best, chosen = at, k
    return chosen, float(clear)


def contains(polygon: FloatArray, point: FloatArray) -> bool:
    """Return whether a convex polygon of the plane contains a point, whichever way it turns."""
    step = np.roll(polygon, -1, axis=0) - polygon
    to = point - polygon
    side = step[:, 0] * to[:, 1] - step[:, 1] * to[:, 0]
    return bool(np.all(side >= 0.0) or np.all(side <= 0.0))
