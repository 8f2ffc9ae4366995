"""Contacts between all pairs of many shapes, as one part of a plant."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import numpy.typing as npt

from flexure.blocks.forces.contacts.contact import Contact
from flexure.blocks.multibody.bodies.bodies import Frame, FrameLike, as_frame
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.plants.part_group import PartGroup
from flexure.diagrams.checks.arguments import items_of, require_that
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import check_name
from flexure.diagrams.values.tied_parameters import TiedParameter

_PAIR = "pairs of a body or frame and its shape, such as (ball, fx.BodyShape.sphere(radius=0.1))"


class ContactGroup(PartGroup):
    """Contacts between all pairs of many shapes, for `PlantBuilder.add_assembly`.

    Each pair of shapes on different bodies is a `Contact` of its own, ``<name>_1_2`` for the first
    and the second shape. All have one stiffness, damping and friction, which contexts change by the
    path of the group. Shapes of one body, and two half-spaces, do not touch.

    Native code has one loop for all contacts of like shapes. It first compares the distance of two
    shapes with balls around them (a broad phase), and skips pairs that are apart.

    Parameters
    ----------
    name : str
        Name of the group, the beginning of all names in it.
    shapes : sequence of (Body or Frame, shape)
        Bodies, or frames on them, with their shapes as for `Contact`. A body of several parts has
        one entry for each.
    others : sequence of (Body or Frame, shape), optional
        Further shapes, which touch those of ``shapes``, but not each other. Then those of
        ``shapes`` do not touch each other either.
    watched : bool
        Whether the beginning of each contact is an event; see `Contact`. By default none is, since
        native code has room for 60 in a diagram.
    **options
        ``stiffness``, ``exponent``, ``damping`` and the constants of friction of all contacts.

    Attributes
    ----------
    contacts : tuple of Contact
        The contacts.
    stiffness, damping, friction, transition_velocity : TiedParameter
        Constants of all contacts in contexts; those of friction only where there is any, also
        ``tangential_stiffness`` and the others of `Contact`.

    Raises
    ------
    DeclarationError
        When an entry is no pair, no two shapes are on different bodies, or a contact is refused.
    ValueRefusedError
        When a number is negative, out of range or not finite.

    See Also
    --------
    Contact : The force between two shapes.
    Beam : Has ``capsules`` along it as shapes.

    Examples
    --------
    Ten balls and a floor are 55 pairs:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("box")
    >>> ball = fx.SpatialInertia.solid_sphere(0.1, radius=0.05)
    >>> balls = [builder.add_body(f"ball{k}", ball) for k in range(10)]
    >>> shapes = [(each, fx.BodyShape.sphere(radius=0.05)) for each in balls]
    >>> shapes.append((builder.world, "half_space"))
    >>> touch = builder.add_assembly(fx.ContactGroup("touch", shapes, stiffness=1e4))
    >>> len(touch.contacts)
    55
    """

    contacts: tuple[Contact, ...]
    stiffness: TiedParameter
    damping: TiedParameter
    friction: TiedParameter
    transition_velocity: TiedParameter
    tangential_stiffness: TiedParameter
    relaxation_time: TiedParameter
    static_friction: TiedParameter
    stribeck_velocity: TiedParameter

    def __init__(
        self,
        name: str,
        shapes: Iterable[tuple[FrameLike, BodyShape | str | npt.ArrayLike]],
        others: Iterable[tuple[FrameLike, BodyShape | str | npt.ArrayLike]] | None = None,
        *,
        watched: bool = False,
        **options: Any,
    ) -> None:
        self.name = check_name(name, "a group of contacts")
        attempt = f"Cannot make group of contacts '{name}'"
        ours = list(enumerate(_places(shapes, attempt), start=1))
        rest = _places(() if others is None else others, attempt)
        theirs = list(enumerate(rest, start=len(ours) + 1))
        pairs = combinations(ours, 2) if others is None else product(ours, theirs)
        self.contacts = tuple(
            Contact(f"{name}_{i}_{k}", a, shape_a, b, shape_b, watched=watched, **options)
            for (i, (a, shape_a)), (k, (b, shape_b)) in pairs
            if a.body is not b.body and not _are_flat(shape_a, shape_b)
        )
        found = f"{len(ours) + len(theirs)} shapes"
        wanted = "shapes on different bodies"
        require_that(self.contacts, attempt, wanted, found, error=DeclarationError)
        self.force_elements = self.contacts
        for each in self.contacts[0].numeric_parameters:
            if not each.name.startswith("size_"):
                tied = TiedParameter(name, (getattr(c, each.name) for c in self.contacts))
                self.tied += (tied,)
                setattr(self, each.name, tied)


def _places(shapes: object, attempt: str) -> list[tuple[Frame, Any]]:
    """Return frames and shapes, or raise."""
    found = []
    for each in items_of(shapes, _PAIR, attempt):
        if not (isinstance(each, (tuple, list)) and len(each) == 2):
            raise DeclarationError(attempt, expected=_PAIR, found=repr(each))
        found.append((as_frame(each[0], attempt), each[1]))
    return found


def _are_flat(*shapes: object) -> bool:
    return all(isinstance(each, str) and each == "half_space" for each in shapes)
