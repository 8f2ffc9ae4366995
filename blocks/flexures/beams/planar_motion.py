"""The deformation of what moves in the plane x-y of its frame A, and in nothing else.

Twist, bending the other way and motion across the plane are known to be zero there, which leaves a
third of the equations. What is left is computed from the same pose by

    w = cos(θ/2) = √((1 + cos θ)/2),  z = sin(θ/2) = sin θ/(2 w),  σ_z = tan(θ/4) = z/(1 + w)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.forces.bushings.halfway_law import Deformation
from flexure.blocks.math import RigidTransform
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


def planar_deformation(X_AC: RigidTransform) -> Deformation:
    """Return the deformation that belongs to a pose of C in A in its plane."""
    c, s = X_AC.R[0, 0], X_AC.R[1, 0]
    w = np.sqrt(0.5 + 0.5 * c)
    z = 0.5 * s / w
    x, y = X_AC.p[0], X_AC.p[1]
    return Deformation(
        RigidTransform(_rotation(c, s), within(x, y)),
        _rotation(w, z),
        across(z / (1.0 + w)),
        across(np.arctan2(s, c)),
        within(w * x + z * y, w * y - z * x),
    )


def in_plane(deformation: Deformation) -> Deformation:
    """Return a deformation of which the parts that are zero are known to be so."""
    (*_, turn), (x, y, _) = deformation.angles, deformation.position
    return deformation._replace(angles=across(turn), position=within(x, y))


def planar_velocity(V: Array) -> Array:
    """Return what of a spatial velocity is in the plane."""
    return np.concatenate([across(V[2]), within(V[3], V[4])])


def across(number: Any) -> Array:
    """Return a vector across the plane, as of a rotation."""
    return scalars.array([0.0, 0.0, number])


def within(x: Any, y: Any) -> Array:
    """Return a vector in the plane."""
    return scalars.array([x, y, 0.0])


def _rotation(c: Any, s: Any) -> Array:
    return scalars.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
