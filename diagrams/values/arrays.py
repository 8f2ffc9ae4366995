"""Checking and freezing of the numbers that enter a context.

Every number that a context holds is either a ``numpy.float64`` scalar or a read-only float64 array,
so that nothing handed out can be used to change a context behind its back. While a diagram is
traced, symbols take the place of numbers and pass through unchecked.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import is_one_of, is_whole, items_of, require, shown
from flexure.diagrams.checks.errors import (
    DeclarationError,
    EvaluationError,
    FlexureError,
    ValueRefusedError,
)

#: A float64 array.
FloatArray: TypeAlias = npt.NDArray[np.float64]
#: What an equation computes with: numbers, symbols or lanes.
Array: TypeAlias = Any
#: A random value drawn with a NumPy generator.
Distribution: TypeAlias = "Callable[[np.random.Generator], npt.ArrayLike]"
#: Says what is wrong with a value, or None.
Problem: TypeAlias = Callable[[Array], "str | None"]

FLOAT = np.dtype(np.float64)
_UNBOUNDED = (-np.inf, np.inf)
_LARGEST_SIZE = 2**31 - 1
_NAME = re.compile(r"[^\W\d][\w\[\]\-]*")


def check_name(name: object, subject: str, error: type[FlexureError] = DeclarationError) -> str:
    """Return ``name`` when it can be part of a path, else raise ``error``."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise error(
        f"Cannot name {subject} {name!r}",
        expected="a letter or underscore followed by letters, digits, '_', '-', '[' or ']'",
        found="an empty name" if is_one_of(name, [""]) else f"{name!r:.200}",
        remedy="Choose another name; dots separate the parts of a path and cannot be inside a name",
    )


def check_size(size: Any, subject: str, *, minimum: int = 0) -> int:
    """Return ``size`` as an int when it is an integer of at least ``minimum``."""
    whole = is_whole(size)
    if whole and minimum <= size <= _LARGEST_SIZE:
        return int(size)
    raise DeclarationError(
        f"Cannot declare {subject}",
        expected=f"an integer size >= {minimum}"
        + (f", and at most {_LARGEST_SIZE}" if whole and size > minimum else ""),
        found=f"{size!r:.200}",
    )


def check_problem(problem: Any, attempt: str) -> Problem | None:
    """Return a rule for values when it is a function, or None."""
    fits = problem is None or (callable(problem) and not hasattr(problem, "system"))
    expected = "problem to be a function of the value that returns a text or None"
    require(fits, problem, attempt, expected, error=DeclarationError)
    rule: Problem | None = problem
    return rule


def copied(value: Any, attempt: str) -> Any:
    """Return a copy of a value that is no number, so that no other code can change it."""
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise ValueRefusedError(
            attempt,
            expected="a value that can be copied",
            found=f"{shown(value)}, whose copy.deepcopy raises {type(error).__name__}: {error}",
            remedy="Define __deepcopy__ in its class, or make the value inside of the block",
        ) from error


def check_labels(labels: Sequence[str] | None, size: int, subject: str) -> tuple[str, ...] | None:
    """Return one label per component, or None when none are given."""
    if labels is None:
        return None
    attempt, expected = f"Cannot declare {subject}", f"{size} different non-empty element names"
    chosen = items_of(labels, expected, attempt, error=DeclarationError)
    texts = all(isinstance(label, str) for label in chosen) and "" not in chosen
    fits = texts and len(chosen) == len(set(chosen)) == size
    require(fits, labels, attempt, expected, error=DeclarationError)
    return chosen


def freeze(array: Array) -> Array:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array


def protect(array: Array) -> Array:
    """Make a computed array read-only; a view is copied, its base may be written to elsewhere."""
    if array.flags.writeable:
        if array.base is not None:
            array = array.copy()
        array.setflags(write=False)
    return array


def as_number(value: object, shape: tuple[int, ...], attempt: str) -> Array:
    """Copy ``value`` into a read-only float64 array of ``shape`` (a scalar for shape ``()``)."""
    if scalars.is_symbolic(value):
        return scalars.array(value).reshape(shape)
    number = as_numbers(value, attempt, _wanted(shape))
    if number.shape != shape:
        if number.size != 1 or math.prod(shape) != 1:
            raise ValueRefusedError(attempt, expected=_wanted(shape), found=_wanted(number.shape))
        number = number.reshape(shape)
    return number[()] if shape == () else freeze(number)


def as_numbers(value: object, attempt: str, wanted: str = "real numbers") -> FloatArray:
    """Copy real numbers of any shape into a float64 array; refuse texts, None, complex numbers."""
    if isinstance(value, (np.ma.MaskedArray, list, tuple)):
        refuse_masked(value, attempt, wanted)
    try:
        array = np.array(value)
        kind = array.dtype.kind
        if kind in "biuf" or (kind == "O" and all(isinstance(x, Real) for x in array.flat)):
            return array.astype(float)
    except (OverflowError, TypeError, ValueError):
        pass
    raise ValueRefusedError(attempt, expected=wanted, found=shown(value))


def refuse_masked(value: object, attempt: str, wanted: str = "numbers") -> None:
    """Refuse arrays in which numbers are masked, as there may be anything behind the mask."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            count = int(np.sum(np.ma.getmaskarray(value)))
            raise ValueRefusedError(
                attempt,
                expected=f"{wanted}, none of them masked",
                found=f"a masked array with {count} of {value.size} masked",
                remedy="Pass array.compressed() to leave them out, or array.filled(...) with "
                "numbers for them",
            )
    elif isinstance(value, (list, tuple)):
        for each in value:
            if isinstance(each, (np.ma.MaskedArray, list, tuple)):
                refuse_masked(each, attempt, wanted)


def check_bounds(
    number: Array,
    attempt: str,
    *,
    lower: float | FloatArray = _UNBOUNDED[0],
    upper: float | FloatArray = _UNBOUNDED[1],
    exclusive: bool = False,
    allow_infinite: bool = False,
    unit: str = "",
    remedy: str | None = None,
) -> None:
    """Refuse NaN, infinities (unless allowed) and values outside of the bounds."""
    if scalars.is_symbolic(number):
        return
    if lower is _UNBOUNDED[0] and upper is _UNBOUNDED[1] and np.isfinite(number).all():
        return  # the most frequent case, as every update goes through here
    if not np.all(np.isfinite(number) | (allow_infinite & np.isinf(number))):
        raise ValueRefusedError(
            attempt, expected="no NaN" if allow_infinite else "finite numbers", found=show(number)
        )
    inside = (
        (number > lower) & (number < upper) if exclusive else (number >= lower) & (number <= upper)
    )
    if allow_infinite and exclusive:
        # An infinite bound excludes nothing.
        inside = inside | (np.isinf(number) & ((number == lower) | (number == upper)))
    if not np.all(inside):
        left = "(" if exclusive or _is_next_to_shown(lower, -np.inf) else "["
        right = ")" if exclusive or _is_next_to_shown(upper, np.inf) else "]"
        raise ValueRefusedError(
            attempt,
            expected=f"values in {left}{show(lower)}, {show(upper)}{right}"
            + (f" {unit}" if unit else ""),
            found=show(number),
            remedy=remedy,
        )


def as_finite(
    value: object,
    shape: tuple[int, ...],
    attempt: str,
    *,
    problem: Problem | None = None,
    **bounds: Any,
) -> Array:
    """Return a frozen copy of finite numbers of a shape, within bounds as of `check_bounds`.

    ``problem`` is a further rule, as of `check_problem`; it is asked about numbers alone.
    """
    number = as_number(value, shape, attempt)
    check_bounds(number, attempt, **bounds)
    if problem is not None and not scalars.is_symbolic(number):
        wrong = problem(number)
        if wrong is not None:
            raise ValueRefusedError(attempt, found=wrong)
    return number


def bounded(value: object, attempt: str, **bounds: Any) -> float:
    """Return a single number that is within bounds, as `check_bounds` takes them."""
    return float(as_finite(value, (), attempt, **bounds))


def _is_next_to_shown(bound: float | FloatArray, side: float) -> bool:
    """Return whether a bound is the number next to one that is excluded, as which it is shown."""
    return np.ndim(bound) == 0 and float(show(bound)) == np.nextafter(bound, side) != bound


def conform(value: Any, size: int, subject: Callable[[], str]) -> Array:
    """Turn what a calculation returned into a read-only vector of ``size``.

    Accepts an array of shape ``(size,)``, a scalar for size 1, or a list whose entries are
    scalars and vectors, which are laid end to end.
    """
    if value.__class__ is np.ndarray and value.dtype is FLOAT and value.shape == (size,):
        return protect(value)
    return _conform_slowly(value, size, subject)


def _conform_slowly(value: Any, size: int, subject: Callable[[], str]) -> Array:
    """Handle everything but a float64 vector of the right size."""
    if value.__class__ is np.float64 and size == 1:
        return freeze(np.array([value]))
    if value.__class__ is list:
        try:
            vector = np.array(value)
        except (ValueError, EvaluationError):
            pass  # vectors of different sizes, or symbols
        else:
            if vector.dtype is FLOAT and vector.shape == (size,):
                return freeze(vector)
    if value is None:
        raise ValueRefusedError(
            f"Cannot use the result of {subject()}",
            expected=_wanted((size,)),
            found="None",
            remedy="Return the value from the method",
        )
    if isinstance(value, (list, tuple, np.ma.MaskedArray)):
        refuse_masked(value, f"Cannot use the result of {subject()}", _wanted((size,)))
    try:
        if isinstance(value, (list, tuple)):
            value = np.hstack([scalars.array(entry) for entry in value]) if len(value) else ()
        vector = scalars.array(value)
        # A truth value counts as a number from here on; among symbols that has to be said.
        symbolic = scalars.is_symbolic(vector)
        vector = vector * 1.0 if symbolic else np.asarray(vector, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueRefusedError(
            f"Cannot use the result of {subject()}",
            expected=_wanted((size,)),
            found=f"{value!r:.200}",
        ) from error
    if vector.shape == () and size == 1:
        vector = vector.reshape(1)
    if vector.shape != (size,):
        raise ValueRefusedError(
            f"Cannot use the result of {subject()}",
            expected=_wanted((size,)),
            found=_wanted(vector.shape),
        )
    return freeze(vector)


def equal(a: Any, b: Any) -> bool:
    """Compare values that may contain arrays."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.array_equal(a, b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return (
            type(a) is type(b)
            and len(a) == len(b)
            and all(equal(x, y) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return bool(a == b)


def show(value: Array) -> str:
    """Print a number or array for a message, on one line and not too long.

    >>> show(np.array([1.0, 2.5]))
    '[1, 2.5]'
    """
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array[()]:.6g}"
    return np.array2string(
        array,
        threshold=8,
        max_line_width=10_000,
        formatter={"float_kind": "{:.6g}".format},
        separator=", ",
    )


def _wanted(shape: tuple[int, ...]) -> str:
    """Describe a shape in words."""
    if shape == ():
        return "a real number"
    return f"a vector of size {shape[0]}" if len(shape) == 1 else f"an array of shape {shape}"
