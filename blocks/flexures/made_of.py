"""What flexures are made of, as parameters of their blocks."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Generic, TypeVar

from flexure.blocks.flexures.materials import Material
from flexure.diagrams import LeafSystem
from flexure.diagrams.errors import DeclarationError
from flexure.diagrams.parameters import NumericParameter
from flexure.diagrams.values import Array

Shape = TypeVar("Shape")


class Dimensions(Generic[Shape]):
    """The dimensions of a shape as parameters of a block, by the names of its fields.

    Parameters
    ----------
    block : LeafSystem
        The block; the parameters become attributes of it.
    shape : Shape
        A dataclass with a ``dimension`` for each field.
    kind : type
        The class it has to be of, named in messages.

    Raises
    ------
    DeclarationError
        When it is something else.
    """

    def __init__(self, block: LeafSystem, shape: Shape, kind: type) -> None:
        require(block, shape, kind)
        self._shape: Any = shape
        self._parameters = []
        for each in fields(self._shape):
            value = getattr(shape, each.name)
            parameter = declare_positive(block, each.name, value, **each.metadata)
            setattr(block, each.name, parameter)
            self._parameters.append(parameter)

    def __call__(self, context: Any) -> Shape:
        """Return the shape with the dimensions of a context."""
        values = {each.name: each(context) for each in self._parameters}
        shape: Shape = replace(self._shape, **values)
        return shape


class Strength:
    """The stress that a flexure may have, from the strengths of its material that are known.

    The block gets the parameters ``yield_strength`` and ``fatigue_limit`` of what is known; else
    these attributes are None.

    Parameters
    ----------
    block : LeafSystem
        The block.
    material : Material
        The material.
    """

    def __init__(self, block: Any, material: Material) -> None:
        self._parameters: dict[str, NumericParameter] = {}
        for name, doc in (
            ("yield_strength", "stress at which it yields"),
            ("fatigue_limit", "amplitude of stress that it stands for good"),
        ):
            value = getattr(material, name)
            setattr(block, name, None)
            if value is not None:
                parameter = declare_positive(block, name, value, unit="Pa", doc=doc)
                setattr(block, name, parameter)
                self._parameters[name] = parameter


def declare_positive(
    block: LeafSystem, name: str, value: Array, *, unit: str, doc: str, lower: float = 0.0
) -> NumericParameter:
    """Declare a parameter that is greater than zero."""
    return block.declare_numeric_parameter(
        name, value, unit=unit, lower=lower, exclusive=True, doc=doc
    )


def require(block: LeafSystem, value: object, kind: type) -> None:
    """Refuse what is not of a class."""
    if not isinstance(value, kind):
        raise DeclarationError(
            f"Cannot make {type(block).__name__} '{block.name}'",
            expected=f"a {kind.__name__}",
            found=repr(value),
        )
