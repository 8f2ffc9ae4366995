"""Equations between the two frames of a joint, by which joints close loops.

The frame F is on the one body and M on the other, with the pose X_FM = (R, p) and the velocity
V_FM = (w, v), as it is seen in F and expressed there. Each kind of equation here is one function φ
of the pose with

    φ̇ = row · V_FM,  φ̈ = row · A_FM + bias

and so the row is the spatial force on M about Mo that upholds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from flexure.blocks.math import RigidTransform, cross, dot
from flexure.diagrams.values.arrays import Array, FloatArray


class Demand(NamedTuple):
    """The value of an equation and of its rates, with the row of V_FM."""

    # φ in m or, of directions, the cosine of the angle between them; of no meaning for an equation
    # between velocities, w = row · V_FM.
    error: Array
    row: Array  # the derivative of φ̇ by V_FM, shape (6,)
    bias: Array  # what is left of φ̈ where A_FM is zero
    slides: Sequence[Array] = ()  # the rows of the velocities of sliding along two tangents

    def times(self, length: float) -> Demand:
        """Return the same equation multiplied by a length."""
        return Demand(length * self.error, length * self.row, length * self.bias)


class ClosureEquation(Protocol):
    """One equation between two frames."""

    is_length: ClassVar[bool]  # whether its values are lengths

    def demand(self, X_FM: RigidTransform, V_FM: Array) -> Demand:
        """Return its value, row and bias."""


@dataclass(frozen=True, eq=False)
class Along:
    """Mo is where it should be along a direction of F: φ = e · p - c."""

    is_length: ClassVar[bool] = True
    direction: FloatArray  # unit vector e, expressed in F, shape (3,)
    offset: float = 0.0  # the value c in m

    def demand(self, X_FM: RigidTransform, V_FM: Array) -> Demand:
        """Return φ, the row (0, e) and no bias."""
        row = np.concatenate([np.zeros(3), self.direction])
        return Demand(dot(self.direction, X_FM.p) - self.offset, row, 0.0)


@dataclass(frozen=True, eq=False)
class Normal:
    """A direction of F and one of M are at right angles: φ = a · R b."""

    is_length: ClassVar[bool] = False
    # in_F, in_M: unit vectors a, expressed in F, and b, expressed in M, shape (3,).
    in_F: FloatArray
    in_M: FloatArray

    def demand(self, X_FM: RigidTransform, V_FM: Array) -> Demand:
        """Return φ, the row (R b × a, 0) and the bias a · (w × (w × R b))."""
        b, w = X_FM.R @ self.in_M, V_FM[:3]
        row = np.concatenate([cross(b, self.in_F), np.zeros(3)])
        return Demand(dot(self.in_F, b), row, dot(self.in_F, cross(w, cross(w, b))))


@dataclass(frozen=True, eq=False)
class Advance:
    """Mo goes along an axis as M turns about it: φ = e · p - h θ, where both frames have the axis.

    Among the angles θ that differ by turns, the nearest one counts.
    """

    is_length: ClassVar[bool] = True
    # axis, normal: unit vector e of the axis in F and M, and one at right angles, shape (3,).
    axis: FloatArray
    normal: FloatArray
    advance: float  # the length h in m/rad, not zero

    def demand(self, X_FM: RigidTransform, V_FM: Array) -> Demand:
        """Return φ, the row (-h e, e) and no bias."""
        turned = X_FM.R @ self.normal
        angle = np.arctan2(dot(cross(self.normal, turned), self.axis), dot(self.normal, turned))
        pitch = 2.0 * np.pi * self.advance
        error = dot(self.axis, X_FM.p) - self.advance * angle
        row = np.concatenate([-self.advance * self.axis, self.axis])
        return Demand(error - pitch * np.rint(error / pitch), row, 0.0)


def two_normals(axis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return two unit vectors at right angles to a unit vector and to each other."""
    least = np.eye(3)[np.argmin(np.abs(axis))]
    first = np.cross(axis, least)
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def held_together(offset: FloatArray | None = None) -> list[ClosureEquation]:
    """Return the equations by which Mo stays at a point of F, the origin when omitted."""
    numbers = np.zeros(3) if offset is None else offset
    return [Along(e, float(c)) for e, c in zip(np.eye(3), numbers, strict=True)]


def parallel(axis: FloatArray) -> list[ClosureEquation]:
    """Return the equations by which an axis with the same components in F and M stays one."""
    return [Normal(normal, axis) for normal in two_normals(axis)]


def unturned(R_FM: FloatArray | None = None) -> list[ClosureEquation]:
    """Return the equations by which M keeps its orientation in F."""
    R_MF = np.eye(3) if R_FM is None else R_FM.T
    x, y, z = np.eye(3)
    return [Normal(a, R_MF @ b) for a, b in ((y, z), (z, x), (x, y))]
