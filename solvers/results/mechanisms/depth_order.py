"""What is in front of what: the order in which convex things are painted, from behind.

Two convex things have a plane between them, and the one on the viewer's side of it hides the other.
For solids it is a face of one of them, which is looked for; where they go into each other, it is
the face that comes closest. Lines have no faces; they are in front of solids that they enter, so
that ends can be seen. Where nothing is between two things, or where each hides another one in a
circle, the one whose center is farther away comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flexure.diagrams.values.arrays import FloatArray


class Seen(NamedTuple):
    """A convex thing as the camera sees it."""

    hull: FloatArray  # points to the right, upwards and to the viewer, shape (n, 3)
    # Outward normals n and distances d, n x <= d, along the same axes; k = 0 for a line,
    # shape (k, 4).
    planes: FloatArray


_EDGE_ON = 1e-9  # of a normal
_TOUCHING = 1e-4  # of the size of the picture


def painting_order(things: Sequence[Seen]) -> list[int]:
    """Return the numbers of things, those behind first."""
    count = len(things)
    if count < 2:
        return list(range(count))
    low = np.array([each.hull.min(axis=0) for each in things])
    high = np.array([each.hull.max(axis=0) for each in things])
    touching = _TOUCHING * float(np.max(high - low))
    depth = np.array([each.hull[:, 2].mean() for each in things])
    apart, sign = _separations(things)
    flat = np.array([not len(each.planes) for each in things])
    best = np.where(apart >= apart.T, apart, apart.T)
    # Whether j is in front of i (1), behind (-1), or neither (0).
    front = np.where(apart >= apart.T, sign, -sign.T)
    entered = (best < -touching) & (flat != flat[:, None])
    front = np.where(entered, np.where(flat[None, :], 1, -1), front)
    overlap = np.all(
        (low[:, None, :2] < high[None, :, :2]) & (low[None, :, :2] < high[:, None, :2]), axis=2
    )
    front = np.where(overlap & ~(flat & flat[:, None]), front, 0)
    np.fill_diagonal(front, 0)
    hidden_by = front == 1  # [i, j]: i is painted before j
    waiting = hidden_by.sum(axis=0)
    left = np.ones(count, dtype=bool)
    order: list[int] = []
    while len(order) < count:
        ready = left & (waiting == 0)
        candidates = np.flatnonzero(ready if ready.any() else left)
        chosen = int(candidates[np.argmin(depth[candidates])])
        left[chosen] = False
        waiting -= hidden_by[chosen]
        order.append(chosen)
    return order


def _separations(things: Sequence[Seen]) -> tuple[FloatArray, FloatArray]:
    """Return how far each thing lies beyond the best face of each other, and where that looks."""
    # The second array is 1 where that face looks at the viewer, -1 where it looks away, 0 if
    # neither.
    points = np.concatenate([each.hull for each in things])
    starts = np.cumsum([0, *(len(each.hull) for each in things[:-1])])
    apart = np.full((len(things), len(things)), -np.inf)
    sign = np.zeros_like(apart)
    for k, each in enumerate(things):
        if len(each.planes):
            beyond = each.planes[:, :3] @ points.T - each.planes[:, 3:]
            nearest = np.minimum.reduceat(beyond, starts, axis=1)
            best = np.argmax(nearest, axis=0)
            apart[k] = np.take_along_axis(nearest, best[None], axis=0)[0]
            toward = each.planes[best, 2]
            sign[k] = np.where(np.abs(toward) > _EDGE_ON, np.sign(toward), 0.0)
    return apart, sign
