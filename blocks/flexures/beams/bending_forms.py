"""Quadratic forms of how a beam bends in a plane: its energy, its shortening, its softness."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

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
