"""Checks of arguments, with uniform error messages, and optional packages."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import (
    FlexureError,
    MissingExtraError,
    UnknownNameError,
    ValueRefusedError,
    quoted,
    suggestion,
)

_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # others stand for bytes of file names


def shown(value: object) -> str:
    """Show a value that is not accepted, cut to a length that can be read, and its type.

    >>> shown("1.0")
    "'1.0' (str)"
    """
    return f"{value!r:.200} ({type(value).__name__})"


def require(
    fits: object,
    value: object,
    attempt: str,
    expected: str,
    *,
    error: type[FlexureError] = ValueRefusedError,
    remedy: str | None = None,
) -> None:
    """Refuse a value unless it fits."""
    if not fits:
        raise error(attempt, expected=expected, found=shown(value), remedy=remedy)


def require_that(
    fits: object,
    attempt: str,
    expected: str,
    found: str,
    remedy: str | None = None,
    *,
    error: type[FlexureError] = ValueRefusedError,
) -> None:
    """Refuse what does not fit, with words of its own for what was found."""
    if not fits:
        raise error(attempt, expected=expected, found=found, remedy=remedy)


def flag(
    value: object, argument: str, attempt: str, *, error: type[FlexureError] = ValueRefusedError
) -> bool:
    """Return a truth value."""
    fits = isinstance(value, (bool, np.bool_))
    require(fits, value, attempt, f"True or False for {argument}", error=error)
    return bool(value)


def is_whole(value: object) -> bool:
    """Return whether a value is an integer, and no truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def count_of(value: Any, argument: str, attempt: str, *, minimum: int) -> int:
    """Return how many of something are wanted, from a minimum on."""
    expected, whole = f"{argument} to be an integer >= {minimum}", is_whole(value)
    require(whole and value >= minimum, value, attempt, expected)
    require(value < 2**31, value, attempt, f"{expected}, and below 2**31")
    return int(value)


def is_one_of(value: object, choices: Container[str]) -> bool:
    """Return whether a value is one of some texts; it may be of a kind that cannot be compared."""
    return isinstance(value, str) and value in choices


def require_known(
    name: object, known: Collection[str], attempt: str, expected: str | None = None
) -> None:
    """Refuse a name that is not among the known ones, and suggest one of these."""
    if not is_one_of(name, known):
        found = None if expected is None else f"{name!r:.200}"
        remedy = suggestion(name, known)
        raise UnknownNameError(attempt, expected=expected, found=found, remedy=remedy)


def one_of(
    value: Any,
    choices: Iterable[str],
    argument: str,
    attempt: str,
    *,
    error: type[FlexureError] = ValueRefusedError,
) -> Any:
    """Return a value that is one of some texts."""
    choices = tuple(choices)
    fits = is_one_of(value, choices)
    require(fits, value, attempt, f"{argument} to be one of {quoted(choices)}", error=error)
    return value


def items_of(
    values: Any,
    expected: str,
    attempt: str,
    *,
    kind: type | tuple[type, ...] = object,
    error: type[FlexureError] = ValueRefusedError,
) -> tuple[Any, ...]:
    """Return the items of a collection, all of one kind; a text is no collection."""
    try:
        listed = isinstance(values, Iterable) and not isinstance(values, (str, bytes))
        items = tuple(values) if listed else None
    except TypeError:  # as of an array without dimensions
        items = None
    fits = items is not None and all(isinstance(item, kind) for item in items)
    require(fits, values, attempt, expected, error=error)
    return items or ()


def mapping(
    values: Any, expected: str, attempt: str, *, keys: tuple[type, ...] = (str,)
) -> dict[Any, Any]:
    """Return a copy of a mapping from texts, or from other keys."""
    fits = isinstance(values, Mapping) and all(isinstance(key, keys) for key in values)
    require(fits, values, attempt, expected)
    return dict(values)


def can_be_written(text: str) -> bool:
    """Return whether a text has no halves of characters, which nothing can write or draw."""
    return not _SURROGATE.search(text)


def file_path(value: Any, attempt: str) -> str:
    """Return the name of a file."""
    name = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    fits = isinstance(name, str) and name and can_be_written(name) and "\0" not in name
    require(fits, value, attempt, "the name of a file as str or Path")
    return str(name)


def generator(seed: Any, attempt: str) -> np.random.Generator:
    """Return a generator of random numbers: the one that is passed, or one of this seed."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        expected = "a seed, as an integer >= 0, or a numpy.random.Generator"
        raise ValueRefusedError(attempt, expected=expected, found=shown(seed)) from error


def are_axes(ax: Any) -> bool:
    """Return whether something is Axes of Matplotlib, of which a figure was not cleared."""
    return hasattr(ax, "add_line") and getattr(ax, "figure", None) is not None


def check_axes(ax: Any, attempt: str) -> None:
    """Refuse what cannot be drawn into; None asks for axes of its own."""
    fits = ax is None or are_axes(ax)
    require(fits, ax, attempt, "ax to be Axes of Matplotlib that are in a figure, or None")


def import_extra(name: str, extra: str = "data", attempt: str = "Cannot convert the result") -> Any:
    """Import an optional package of an extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"{attempt} with {name}",
            expected=f"the package {name}",
            found="none installed",
            remedy=f"Install it with: pip install 'flexure[{extra}]'",
        ) from error
