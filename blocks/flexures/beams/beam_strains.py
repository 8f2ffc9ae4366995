"""How a beam is deformed: the quadratic forms of its bending, and its strains, also in a plane.

In the plane x-y of its frame A, twist, bending the other way and motion across the plane are zero,
which leaves a third of the equations. The rest is computed from the same pose by

    w = cos(θ/2) = √((1 + cos θ)/2),  z = sin(θ/2) = sin θ/(2 w),  σ_z = tan(θ/4) = z/(1 + w)
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from flexure.blocks.forces.bushings.halfway_law import Deformation
from flexure.blocks.math import RigidTransform, dot
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


class Form(NamedTuple):
    """A quadratic form of how a beam bends in one plane, in an arc (by q) and like an S (by u*)."""

    # arc, curl: its entries on the diagonal.
    arc: Array
    curl: Array

    def value(self, arc: Array, curl: Array) -> Array:
        """Return the value of the form."""
        return self.arc * arc * arc + self.curl * curl * curl

    def slopes(self, arc: Array, curl: Array) -> tuple[Array, Array]:
        """Return half of its derivatives by the two angles."""
        return self.arc * arc, self.curl * curl


class MixedForm(NamedTuple):
    """A quadratic form in which arcs and S mix, as in a beam that is tapered."""

    # arc, curl, mixed: its entries on the diagonal, and the one beside it.
    arc: Array
    curl: Array
    mixed: Array

    def value(self, arc: Array, curl: Array) -> Array:
        """Return the value of the form."""
        return self.arc * arc * arc + self.curl * curl * curl + 2.0 * self.mixed * arc * curl

    def slopes(self, arc: Array, curl: Array) -> tuple[Array, Array]:
        """Return half of its derivatives by the two angles."""
        return self.arc * arc + self.mixed * curl, self.curl * curl + self.mixed * arc


AnyForm: TypeAlias = Form | MixedForm


class Bending(NamedTuple):
    """How a beam bends in one of its planes."""

    stiffness: AnyForm  # twice the energy, in N m
    shortening: AnyForm  # twice the shortening of the chord, in m
    softness: AnyForm  # axial compliance, in m/N


#: Of a beam that does not bend in one of its planes.
STRAIGHT = Bending(Form(0.0, 0.0), Form(0.0, 0.0), Form(0.0, 0.0))


class BeamStrains(NamedTuple):
    """How a beam is bent, twisted and stretched."""

    length: Array  # distance l of the ends in m
    direction: Array  # unit vector n from the one to the other, expressed in B, shape (3,)
    # Mean curvature times length, q: the twist, and the bending about y and z, in rad, shape (3,).
    turns: Array
    # Angles u and w of the chord along y and z, beyond those of a helix, in rad, shape (2,).
    chord: Array
    # The parts u* and w* of them by which the sections are turned; the rest is shear, shape (2,).
    tilt: Array
    compliance: Array  # axial compliance D in m/N
    force: Array  # axial force N, positive in tension, in N
    bending: tuple[Bending, Bending]  # how the beam bends about y, and about z


def chord_of(angles: Array, position: Array) -> tuple[Array, Array, Array]:
    """Return l, n, and u and w, of the rotation vector θ and the position p."""
    tx, ty, tz = angles
    length = np.sqrt(dot(position, position))
    nx, ny, nz = direction = position / length
    u = 2.0 * ny / (1.0 + nx) - tx * ty / 24.0
    w = 2.0 * nz / (1.0 + nx) - tx * tz / 24.0
    return length, direction, scalars.array([u, w])


def elongation(position: Array, length: Array, before: Array) -> Array:
    """Return the length of a position less the one before, from the difference of their squares.

    Along x of A, this difference is exact. The difference of the lengths themselves has their
    rounding error, which times the axial stiffness is a force that shakes the nodes of a beam.
    """
    x, y, z = position
    return ((x - before) * (x + before) + y * y + z * z) / (length + before)


def turns_of(angles: Array, tilt: Array) -> Array:
    """Return q, of the rotation vector θ and the mean turns u* and w* of the sections."""
    (tx, ty, tz), (u, w) = angles, tilt
    return scalars.array([tx + ty * u + tz * w, ty - tx * u, tz - tx * w])


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
