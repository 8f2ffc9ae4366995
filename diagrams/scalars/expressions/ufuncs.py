"""NumPy's ufuncs on scalars that may be symbols, and the loops that carry them over arrays.

The arrays here are plain ``ndarray`` of dtype object whose entries are Symbols, floats or bools;
`SymbolArray` is put around them elsewhere. Sums and products run from left to right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.scalars.expressions.expression import (
    Symbol,
    as_condition,
    as_number,
    binary,
    choose,
    is_boolean,
    logical,
    negation,
    unary,
)
from flexure.diagrams.scalars.expressions.refusal import refusal
from flexure.diagrams.scalars.expressions.vocabulary import BINARY, UNARY

#: A plain ndarray of dtype object.
Objects: TypeAlias = np.ndarray[Any, Any]


def _heaviside(x: Any, at_zero: Any) -> Any:
    at_zero_or_nan = choose(binary("equal", x, 0.0), at_zero, x)
    positive = binary("less", 0.0, x)
    return choose(binary("less", x, 0.0), 0.0, choose(positive, 1.0, at_zero_or_nan))


def _bitwise(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Restrict a logical function to truth values, as ``& | ^ ~`` are restricted for floats."""

    def restricted(*operands: Any) -> Any:
        if all(map(is_boolean, operands)):
            return function(*operands)
        raise refusal(
            f"Cannot take np.{name} of numbers",
            expected="truth values such as x > 0",
            found=", ".join(map(repr, operands)),
            remedy="Put comparisons in parentheses: (x > 0) & (y > 0)",
        )

    return restricted


SCALAR: dict[np.ufunc, Callable[..., Any]] = {
    **{getattr(np, name): partial(unary, name) for name in UNARY},
    **{getattr(np, name): partial(binary, name) for name in BINARY},
    np.positive: as_number,
    np.conjugate: as_number,
    np.fabs: partial(unary, "absolute"),
    np.square: lambda x: binary("multiply", x, x),
    np.reciprocal: lambda x: binary("divide", 1.0, x),
    np.float_power: partial(binary, "power"),
    np.degrees: lambda x: binary("multiply", x, 180.0 / np.pi),
    np.rad2deg: lambda x: binary("multiply", x, 180.0 / np.pi),
    np.radians: lambda x: binary("multiply", x, np.pi / 180.0),
    np.deg2rad: lambda x: binary("multiply", x, np.pi / 180.0),
    np.greater: lambda a, b: binary("less", b, a),
    np.greater_equal: lambda a, b: binary("less_equal", b, a),
    np.heaviside: _heaviside,
    np.logical_and: partial(logical, "logical_and"),
    np.logical_or: partial(logical, "logical_or"),
    np.logical_xor: partial(logical, "logical_xor"),
    np.logical_not: negation,
    np.bitwise_and: _bitwise("bitwise_and", partial(logical, "logical_and")),
    np.bitwise_or: _bitwise("bitwise_or", partial(logical, "logical_or")),
    np.bitwise_xor: _bitwise("bitwise_xor", partial(logical, "logical_xor")),
    np.invert: _bitwise("invert", negation),
}


def _entrywise(function: Callable[..., Any], operands: int) -> Callable[..., Any]:
    """Lift a function of scalars to arrays; a NaN among the entries is no reason to warn."""
    vectorized = np.frompyfunc(function, operands, 1)

    def lifted(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return vectorized(*arrays)

    return lifted


_LIFTED = {ufunc: _entrywise(function, ufunc.nin) for ufunc, function in SCALAR.items()}
_CHOOSE = _entrywise(choose, 3)
_NUMBER = _entrywise(as_number, 1)
_TRUTH = _entrywise(as_condition, 1)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of Symbol, which is what NumPy calls on the entries of plain object arrays."""

    def method(self: Symbol, *others: Any) -> Any:
        return function(self, *others)

    return method


for _ufunc, _function in SCALAR.items():
    if not hasattr(Symbol, _ufunc.__name__):
        setattr(Symbol, _ufunc.__name__, _method(_function))


def boxed(value: Any) -> Objects:
    """Put a scalar into a plain array without axes."""
    box = np.empty((), dtype=object)
    box[()] = value
    return box


def objects(value: Any) -> Objects:
    """Turn a scalar, an array or nested sequences into a plain object array with tidy entries."""
    if isinstance(value, Symbol):
        return boxed(value)
    if isinstance(value, (list, tuple)):
        if any(isinstance(part, (list, tuple, np.ndarray)) for part in value):
            return tidy(np.stack([objects(part) for part in value]))
        array = np.empty(len(value), dtype=object)
        for k, part in enumerate(value):
            array[k] = part
        return tidy(array)
    array = np.asarray(value)
    if array.dtype.kind in "iuf":
        array = array.astype(float)
    return tidy(array.astype(object, copy=False))


def tidy(array: Objects) -> Objects:
    """Make all entries Symbols and floats, or else all of them truth values."""
    kinds = {entry.__class__ for entry in array.flat}
    if kinds <= {Symbol, float} or all(map(is_boolean, array.flat)):
        return array
    return numbers(array)


def numbers(array: Objects) -> Objects:
    """Turn truth values and integers into numbers."""
    return _NUMBER(array) if array.ndim else boxed(as_number(array[()]))


def truths(array: Objects) -> Objects:
    """Turn numbers into truth values."""
    return _TRUTH(array) if array.ndim else boxed(as_condition(array[()]))


def _operand(value: Any) -> Any:
    """Prepare an operand for the loops, which check the entries themselves."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    return value if isinstance(value, (bool, int, float)) else objects(value)


def call(ufunc: np.ufunc, *operands: Any) -> Any:
    """Apply a ufunc entry by entry, with broadcasting; without axes the result is a bare scalar."""
    if any(isinstance(operand, (np.ndarray, list, tuple)) for operand in operands):
        return _LIFTED[ufunc](*map(_operand, operands))
    return SCALAR[ufunc](*operands)


def merge(condition: Any, a: Any, b: Any) -> Any:
    """Choose between two values entry by entry, with broadcasting."""
    return _CHOOSE(_operand(condition), _operand(a), _operand(b))


def outer(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """Apply a ufunc to all pairs."""
    a, b = objects(a), objects(b)
    return call(ufunc, a.reshape(a.shape + (1,) * b.ndim), b)


def reduce(
    ufunc: np.ufunc,
    operand: Any,
    axis: Any = 0,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Reduce along one axis, several or all (None), from left to right.

    Entries that ``where`` excludes count as the identity of the ufunc, or else as ``initial``.
    """
    values = _reducible(ufunc, objects(operand))
    if where is not True:
        neutral = initial if ufunc.identity is None else None
        values = objects(merge(where, values, _start(ufunc, neutral)))
    if axis is None or values.ndim == 0:
        axis = range(values.ndim)
    axes = sorted(range(values.ndim)[k] for k in np.atleast_1d(axis).astype(int))
    queue = np.moveaxis(values, axes, range(len(axes)))
    shape = queue.shape[len(axes) :]
    queue = queue.reshape((math.prod(queue.shape[: len(axes)]), *shape))
    if initial is None and len(queue):
        result, queue = queue[0], queue[1:]
    else:
        result = _start(ufunc, initial)
        if shape:
            result = np.broadcast_to(boxed(result), shape)
    step = _LIFTED[ufunc] if shape else SCALAR[ufunc]
    for entry in queue:
        result = step(result, entry)
    return np.expand_dims(objects(result), tuple(axes)) if keepdims else result


def _start(ufunc: np.ufunc, initial: Any) -> Any:
    """Return the value that a reduction of nothing gives."""
    start = ufunc.identity if initial is None else initial
    if start is None:
        raise refusal(
            f"Cannot reduce with np.{ufunc.__name__}",
            expected="at least one entry",
            found="none, and no identity",
            remedy="Pass initial=..., or treat the empty case apart",
        )
    return start if isinstance(start, (bool, Symbol)) else float(start)


def _reducible(ufunc: np.ufunc, values: Objects) -> Objects:
    """Turn entries into what a reduction works on: truth values are counted, not or-ed."""
    if ufunc in (np.add, np.multiply):
        return numbers(values)
    return truths(values) if ufunc in (np.logical_and, np.logical_or, np.logical_xor) else values


def accumulate(ufunc: np.ufunc, operand: Any, axis: int = 0) -> Objects:
    """Return all partial results along an axis."""
    values = np.moveaxis(_reducible(ufunc, objects(operand)), axis, 0).copy()
    step = _LIFTED[ufunc] if values.ndim > 1 else SCALAR[ufunc]
    for k in range(1, len(values)):
        values[k] = step(values[k - 1], values[k])
    return np.moveaxis(values, 0, axis)


def matmul(a: Any, b: Any) -> Any:
    """Multiply vectors, matrices or stacks of matrices."""
    product = np.matmul(objects(a), objects(b))
    return tidy(product) if isinstance(product, np.ndarray) else objects(product)[()]


def vecdot(a: Any, b: Any) -> Any:
    """Multiply vectors along the last axis."""
    return reduce(np.add, call(np.multiply, objects(a), objects(b)), axis=-1)


def matvec(a: Any, x: Any) -> Any:
    """Multiply matrices with vectors along the last axis."""
    return matmul(a, objects(x)[..., np.newaxis])[..., 0]


def vecmat(x: Any, a: Any) -> Any:
    """Multiply vectors along the last axis with matrices."""
    return matmul(objects(x)[..., np.newaxis, :], a)[..., 0, :]


CONTRACTIONS: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    getattr(np, function.__name__): function
    for function in (matmul, vecdot, matvec, vecmat)
    if hasattr(np, function.__name__)  # matvec and vecmat came with NumPy 2.2
}
