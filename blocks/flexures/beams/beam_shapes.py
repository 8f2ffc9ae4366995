"""Where the points of unstressed beams are, straight and curved ones."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math import RigidTransform, rotation_from_rotation_vector
from flexure.diagrams import scalars
from flexure.diagrams.values.values import Array


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
