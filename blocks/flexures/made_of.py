"""What flexures are made of, as parameters of their blocks, and the stress that they stand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Generic, TypeVar

import numpy as np

from flexure.blocks.flexures.materials import Material
from flexure.blocks.multibody.force_element import ForceElement
from flexure.blocks.multibody.limits import Limit
from flexure.diagrams.errors import DeclarationError
from flexure.diagrams.parameters import NumericParameter
from flexure.diagrams.ports import LeafOutputPort, Prerequisite
from flexure.diagrams.values import Array

Shape = TypeVar("Shape")

#: The greatest safety that is told, for flexures with next to no stress.
MOST_SAFETY = 1e6

_STRENGTHS = {
    "yield_strength": (
        "stress at which it yields",
        "It yields there",
        "Make it thinner where it bends, longer, or move it less",
    ),
    "fatigue_limit": (
        "amplitude of an alternating stress that it stands for good",
        "It breaks after many such motions",
        "Make it thinner where it bends, longer, or move it less, unless that is seldom",
    ),
}


class Dimensions(Generic[Shape]):
    """The dimensions of a shape as parameters of a block, by the names of its fields.

    Parameters
    ----------
    block : ForceElement
        The block; the parameters become attributes of it.
    shape : Shape
        A dataclass with a ``dimension`` for each field.
    kind : type
        The class that it has to be of.

    Raises
    ------
    DeclarationError
        When it is something else.
    """

    def __init__(self, block: ForceElement, shape: Shape, kind: type) -> None:
        require(block, shape, kind)
        self._shape: Any = shape
        self._parameters = []
        for each in fields(self._shape):
            value = getattr(shape, each.name)
            self._parameters.append(declare_positive(block, each.name, value, **each.metadata))

    def __call__(self, context: Any) -> Shape:
        """Return the shape with the dimensions of a context."""
        values = {each.name: each(context) for each in self._parameters}
        shape: Shape = replace(self._shape, **values)
        return shape


def declare_positive(
    block: ForceElement, name: str, value: Array, *, unit: str, doc: str, lower: float = 0.0
) -> NumericParameter:
    """Declare a parameter that is greater than zero, as an attribute."""
    parameter = block.declare_numeric_parameter(
        name, value, unit=unit, lower=lower, exclusive=True, doc=doc
    )
    setattr(block, name, parameter)
    return parameter


class Stressed(ForceElement):
    """What flexures tell of their stress: ``greatest_stress``, and ``safety`` where yield is known.

    The strengths that the material has are parameters, ``yield_strength`` and ``fatigue_limit``;
    the others are None. A subclass calls `_declare_stress` and implements `calc_greatest_stress`.
    """

    yield_strength: NumericParameter | None
    fatigue_limit: NumericParameter | None
    safety: LeafOutputPort | None

    def _declare_stress(self, material: Material, prerequisites: Sequence[Prerequisite]) -> None:
        for name, (doc, _, _) in _STRENGTHS.items():
            value = getattr(material, name)
            setattr(self, name, None)
            if value is not None:
                declare_positive(self, name, value, unit="Pa", doc=doc)
        self.greatest_stress = self.declare_vector_output(
            "greatest_stress",
            1,
            self.calc_greatest_stress,
            prerequisites=prerequisites,
            unit="Pa",
            doc="greatest equivalent stress of von Mises",
        )
        self.safety = None
        if self.yield_strength is not None:
            self.safety = self.declare_vector_output(
                "safety",
                1,
                self._calc_safety,
                prerequisites=prerequisites,
                doc=f"yield strength over greatest stress, at most {MOST_SAFETY:.0e}",
            )

    @abstractmethod
    def calc_greatest_stress(self, context: Any) -> Array:
        """Return the greatest equivalent stress in Pa."""

    def _calc_safety(self, context: Any) -> Array:
        assert self.yield_strength is not None
        limit = self.yield_strength(context)
        return limit / np.maximum(self.calc_greatest_stress(context), limit / MOST_SAFETY)

    def _stress_limits(self) -> list[Limit]:
        """Return a limit of the stress for each strength that is known."""
        return [
            Limit(f"stress over {name.replace('_', ' ')}", getattr(self, name), "Pa", why, look)
            for name, (_, why, look) in _STRENGTHS.items()
            if getattr(self, name) is not None
        ]

    def _stresses(self, context: Any) -> list[Array]:
        """Return the stress for each of these limits."""
        known = [each for each in (self.yield_strength, self.fatigue_limit) if each is not None]
        return [self.calc_greatest_stress(context)] * len(known)


def require(block: ForceElement, value: object, kind: type) -> None:
    """Refuse what is not of a class."""
    if not isinstance(value, kind):
        raise DeclarationError(
            f"Cannot make {type(block).__name__} '{block.name}'",
            expected=f"a {kind.__name__}",
            found=repr(value),
        )
