"""Dimensions and materials as parameters of a block, and back again as what equations take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from flexure.blocks.flexures.sections.materials import Material
from flexure.diagrams import LeafSystem
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, as_number, bounded
from flexure.diagrams.values.parameters import NumericParameter

_S = TypeVar("_S")

_SAME = 1e-9  # of the shear modulus: what differs less follows from E and ν


class MaterialConstants(NamedTuple):
    """The constants of a `Material` in a context, which may be symbols."""

    # youngs_modulus, poissons_ratio, shear_modulus, density: as those of `Material`.
    youngs_modulus: Array
    poissons_ratio: Array
    shear_modulus: Array
    density: Array


class ShapeParameters(Generic[_S]):
    """The dimensions of a shape, such as a section, as parameters of the names of its fields.

    The block gets them as attributes, too. Names begin with the prefix.
    """

    def __init__(self, block: LeafSystem, shape: _S, prefix: str = "") -> None:
        self.default = shape
        self.kind: Any = type(shape)
        self.handles: dict[str, NumericParameter] = {}
        given: Any = shape
        for each in fields(given):
            handle = block.declare_numeric_parameter(
                f"{prefix}{each.name}", getattr(shape, each.name), exclusive=True, **each.metadata
            )
            self.handles[each.name] = handle
            setattr(block, f"{prefix}{each.name}", handle)

    def __call__(self, context: Any) -> _S:
        """Return the shape in a context."""
        shape: _S = self.kind(*(handle(context) for handle in self.handles.values()))
        return shape

    def towards(self, other: ShapeParameters[_S], part: float, context: Any) -> _S:
        """Return a shape between this one and another of its kind, with dimensions in between."""
        first, last = (
            [handle(context) for handle in shape.handles.values()] for shape in (self, other)
        )
        shape: _S = blend(self.kind, first, last, part)
        return shape


def blend(
    kind: Callable[..., _S], first: Iterable[Array], last: Iterable[Array], part: float
) -> _S:
    """Return the shape between two of a kind, with dimensions in between."""
    return kind(*((1.0 - part) * a + part * b for a, b in zip(first, last, strict=True)))


class MaterialParameters:
    """The constants of a material as parameters of a block, by the names of their fields.

    The shear modulus is one only of a material in which it does not follow from the others, and the
    yield strength only where it is known. The block gets them as attributes, too. Unused
    constants have no meaning for it, and are numbers.
    """

    def __init__(
        self, block: LeafSystem, material: Material, *, unused: Collection[str] = ()
    ) -> None:
        def declare(name: str, doc: str, **options: Any) -> NumericParameter | None:
            value = getattr(material, name)
            if value is None or name in unused:
                return None
            handle = block.declare_numeric_parameter(name, value, doc=doc, **options)
            setattr(block, name, handle)
            return handle

        self.default = material
        stress: dict[str, Any] = {"unit": "Pa", "lower": 0.0, "exclusive": True}
        E, nu, G = material.youngs_modulus, material.poissons_ratio, material.shear_modulus
        self.youngs_modulus = declare("youngs_modulus", "Young's modulus", **stress)
        lower = float(np.nextafter(-1.0, 0.0))
        self.poissons_ratio = declare("poissons_ratio", "Poisson's ratio", lower=lower, upper=0.5)
        self.shear_modulus: NumericParameter | None = None
        self._is_isotropic = abs(0.5 * E / (1.0 + nu) - G) <= _SAME * G
        if not self._is_isotropic:
            self.shear_modulus = declare("shear_modulus", "shear modulus", **stress)
        self.density = declare("density", "density", **{**stress, "unit": "kg/m^3"})
        self.yield_strength = declare("yield_strength", "stress at which it yields", **stress)

    def __call__(self, context: Any) -> MaterialConstants:
        """Return the material in a context."""

        def read(name: str) -> Array:
            handle = getattr(self, name)
            return getattr(self.default, name) if handle is None else handle(context)

        E, nu = read("youngs_modulus"), read("poissons_ratio")
        G = 0.5 * E / (1.0 + nu) if self._is_isotropic else read("shear_modulus")
        return MaterialConstants(E, nu, G, read("density"))


def time_of_damping(
    time: float | None, loss_factor: float | None, frequency: float | None, attempt: str
) -> float | None:
    """Return the time of damping, which a loss factor at a frequency gives as well."""
    if loss_factor is None and frequency is None:
        return None if time is None else float(as_number(time, (), f"{attempt} with damping_time"))
    if time is not None or loss_factor is None or frequency is None:
        given = {"damping_time": time, "loss_factor": loss_factor, "at_frequency": frequency}
        raise DeclarationError(
            attempt,
            expected="damping_time alone, or loss_factor with at_frequency",
            found=", ".join(name for name, value in given.items() if value is not None),
        )
    factor = bounded(loss_factor, f"{attempt} with loss_factor", lower=0.0)
    hertz = bounded(frequency, f"{attempt} with at_frequency", lower=0.0, exclusive=True, unit="Hz")
    return factor / (2.0 * np.pi * hertz)
