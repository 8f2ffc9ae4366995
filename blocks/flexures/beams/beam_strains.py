"""How a beam is deformed: the quadratic forms of its bending, and its strains."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from flexure.blocks.math import dot
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
