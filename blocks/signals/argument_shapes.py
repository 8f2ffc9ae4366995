"""How big the arguments of a block's constructor may be: per component, or a matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import is_one_of
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError, quoted
from flexure.diagrams.systems.leaf import LeafSystem, LinearizeAs
from flexure.diagrams.values.arrays import FloatArray, as_numbers, check_size
from flexure.diagrams.values.handles import Handle
from flexure.diagrams.values.parameters import NumericParameter


def numbers(block: LeafSystem, argument: str, value: npt.ArrayLike) -> FloatArray:
    """Return a copy of an argument as a float array of whatever shape, or refuse it."""
    try:
        return as_numbers(value, argument)
    except ValueRefusedError as error:
        wanted = f"real numbers for {argument}"
        raise refusal(block, wanted, str(error.found), error.remedy) from None


def single(block: LeafSystem, argument: str, value: npt.ArrayLike) -> float:
    """Return an argument that is one number."""
    return float(per_component(block, argument, value, 1).reshape(-1)[0])


def per_component(block: LeafSystem, argument: str, value: npt.ArrayLike, size: int) -> FloatArray:
    """Return an argument that is one number, or one number for each of ``size`` components."""
    array = numbers(block, argument, value)
    if array.shape not in ((), (size,)):
        vector = f" or {size} numbers" if size > 1 else ""
        sized = hasattr(block, "size") and array.ndim == 1 and array.size > 1
        remedy = f"For {array.size} components, pass size={array.size}" if sized else None
        raise refusal(block, f"one number{vector} for {argument}", f"shape {array.shape}", remedy)
    return array


def full(block: LeafSystem, argument: str, value: npt.ArrayLike, size: int) -> FloatArray:
    """Return a vector of ``size``; one number is used for all components."""
    size = check_size(size, f"'{block.name}'")
    return np.broadcast_to(per_component(block, argument, value, size), (size,))


def common_size(block: LeafSystem, size: int | None = None, **arguments: npt.ArrayLike) -> int:
    """Return the size that arguments agree on, which is ``size`` where that is given.

    A number, or a vector of one, holds for every component.
    """
    shapes = {name: numbers(block, name, value).shape for name, value in arguments.items()}
    if size is not None:
        shapes["size"] = (check_size(size, f"'{block.name}'"),)
    try:
        shape = np.broadcast_shapes((1,), *shapes.values())
    except ValueError:
        shape = ()
    if len(shape) == 1 and shapes.get("size") in (None, shape):
        return int(shape[0])
    found = ", ".join(f"{name} of shape {each}" for name, each in shapes.items() if each)
    raise refusal(block, "numbers, or vectors of one size", found)


def matrix(
    block: LeafSystem, argument: str, value: npt.ArrayLike, rows: int | None, columns: int | None
) -> FloatArray:
    """Return a matrix of the given shape, in which None means any number.

    A single number is a matrix of one entry. A vector is one column where it has as many entries
    as there are rows to be, and otherwise one row.
    """
    array = numbers(block, argument, value)
    if array.ndim == 0:
        array = array.reshape(1, 1)
    elif array.ndim == 1:
        array = array[:, np.newaxis] if array.size == rows else array[np.newaxis, :]
    fits = array.ndim == 2 and rows in (None, array.shape[0]) and columns in (None, array.shape[1])
    if not fits:
        wanted = " x ".join("any" if k is None else str(k) for k in (rows, columns))
        raise refusal(block, f"a {wanted} matrix for {argument}", f"shape {np.shape(value)}")
    return array


def one_of(block: LeafSystem, argument: str, choice: str, choices: Iterable[str]) -> str:
    """Return the choice when it is one of the choices."""
    choices = tuple(choices)
    if not is_one_of(choice, choices):
        raise refusal(block, f"{argument} to be one of {quoted(choices)}", f"{choice!r:.200}")
    return choice


def linearization(block: LeafSystem, choice: LinearizeAs) -> LinearizeAs:
    """Return how linear models see a block, as an argument says."""
    return cast("LinearizeAs", one_of(block, "linearize_as", choice, ("exact", "gain")))


def flag(block: LeafSystem, argument: str, value: bool) -> bool:
    """Return an argument that is a truth value."""
    if not isinstance(value, (bool, np.bool_)):
        raise refusal(block, f"True or False for {argument}", f"{value!r:.200}")
    return bool(value)


def through_gain(gain: NumericParameter, u: Handle, y: Handle) -> list[tuple[Any, ...]]:
    """Return how the unit of an output follows from that of an input, as far as that is known.

    A gain of 1 without a unit is that of a filter, which keeps the unit.
    """
    unit = gain.unit or ("1" if np.all(gain.default == 1.0) else "")
    return [(u, y, unit)] if unit else []


def refusal(
    block: LeafSystem, expected: str, found: str, remedy: str | None = None
) -> DeclarationError:
    """Return the error for an argument that a block cannot be made with."""
    return DeclarationError(
        f"Cannot make the {type(block).__name__} '{block.name}'",
        expected=expected,
        found=found,
        remedy=remedy,
    )


#: Name of an axis.
Axis: TypeAlias = Literal["x", "y", "z"]


def is_axis(name: str, attempt: str, remedy: str | None = None) -> npt.NDArray[np.bool_]:
    """Return for each axis whether it is the named one."""
    if not is_one_of(name, ("x", "y", "z")):
        raise DeclarationError(
            attempt, expected=f"one of the axes {quoted('xyz')}", found=repr(name), remedy=remedy
        )
    return np.array([name == each for each in "xyz"])
