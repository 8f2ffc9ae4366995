"""NumPy functions that compute with entries: summing, choosing, interpolating, making arrays.

Each function runs the same elementary operations as NumPy, in the same order where NumPy has a
fixed one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flexure.diagrams.scalars.expressions import ufuncs
from flexure.diagrams.scalars.expressions.array import check_dtype, filled, implements, wrap
from flexure.diagrams.scalars.expressions.expression import Symbol
from flexure.diagrams.scalars.expressions.refusal import refusal
from flexure.diagrams.scalars.expressions.ufuncs import objects


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    """Make a NumPy function that reduces with a ufunc."""

    def replacement(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        return filled(out, ufuncs.reduce(ufunc, a, axis, keepdims, initial, where))

    return replacement


def _reduction_without_dtype(ufunc: np.ufunc) -> Callable[..., Any]:
    """Make a NumPy function that reduces with a ufunc and knows no dtype."""
    reduction = _reduction(ufunc)

    def replacement(a: Any, axis: Any = None, out: Any = None, **options: Any) -> Any:
        return reduction(a, axis, None, out, **options)

    return replacement


implements(np.sum)(_reduction(np.add))
implements(np.prod)(_reduction(np.multiply))
implements(np.max, np.amax)(_reduction_without_dtype(np.maximum))
implements(np.min, np.amin)(_reduction_without_dtype(np.minimum))
implements(np.all)(_reduction_without_dtype(np.logical_and))
implements(np.any)(_reduction_without_dtype(np.logical_or))


@implements(np.mean)
def _mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    total = ufuncs.reduce(np.add, a, axis, keepdims)
    count = np.size(objects(a)) // max(np.size(objects(total)), 1)
    return filled(out, ufuncs.call(np.divide, total, float(count)))


@implements(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    largest = ufuncs.reduce(np.maximum, a, axis, keepdims)
    smallest = ufuncs.reduce(np.minimum, a, axis, keepdims)
    return filled(out, ufuncs.call(np.subtract, largest, smallest))


@implements(np.cumsum)
def _cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    values = objects(a).ravel() if axis is None else objects(a)
    return filled(out, ufuncs.accumulate(np.add, values, axis or 0))


@implements(np.cumprod)
def _cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    values = objects(a).ravel() if axis is None else objects(a)
    return filled(out, ufuncs.accumulate(np.multiply, values, axis or 0))


@implements(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    values = np.moveaxis(objects(a), axis, 0)
    for _ in range(n):
        values = ufuncs.call(np.subtract, values[1:], values[:-1])
    return wrap(np.moveaxis(values, 0, axis))


@implements(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    heights = np.moveaxis(wrap(objects(y)), axis, -1)
    widths = dx if x is None else np.diff(wrap(objects(x)))
    return np.sum(widths * (heights[..., 1:] + heights[..., :-1]) / 2.0, axis=-1)


implements(np.where)(lambda condition, x, y: wrap(ufuncs.merge(condition, x, y)))


@implements(np.clip)
def _clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Any:
    lower, upper = a_min if min is None else min, a_max if max is None else max
    result = a if lower is None else ufuncs.call(np.maximum, a, lower)
    return filled(out, result if upper is None else ufuncs.call(np.minimum, result, upper))


@implements(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0.0) -> Any:
    result = default
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        result = ufuncs.merge(condition, choice, result)
    return wrap(result)


@implements(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **options: Any) -> Any:
    """Call every function with the whole of ``x``, not only where its condition holds."""
    single = isinstance(condlist, Symbol) or np.ndim(condlist[0]) < np.ndim(x)
    conditions = [condlist] if single else list(condlist)
    values = [f(x, *args, **options) if callable(f) else f for f in funclist]
    otherwise = values.pop() if len(values) == len(conditions) + 1 else 0.0
    result = np.broadcast_to(objects(otherwise), np.shape(x))
    for condition, value in zip(conditions, values, strict=True):
        result = ufuncs.merge(condition, value, result)
    return wrap(result)


@implements(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    x, xp, fp = wrap(objects(x)), wrap(objects(xp)), wrap(objects(fp))
    slopes = np.diff(fp) / np.diff(xp)
    result = np.where(x < xp[0], fp[0] if left is None else left, x)  # NaN stays NaN
    for k in range(len(xp) - 1):
        result = np.where(x >= xp[k], slopes[k] * (x - xp[k]) + fp[k], result)
    result = np.where(x >= xp[-1], fp[-1], result)
    return result if right is None else np.where(x > xp[-1], right, result)


@implements(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    x = wrap(objects(x))
    result = np.zeros_like(x)
    for coefficient in wrap(objects(p)):
        result = result * x + coefficient
    return result


@implements(np.cross)
def _cross(a: Any, b: Any, axis: int = -1) -> Any:
    a, b = (np.moveaxis(wrap(objects(side)), axis, 0) for side in (a, b))
    if len(a) != 3 or len(b) != 3:
        raise refusal(
            "Cannot take np.cross",
            expected="two vectors of length 3",
            found=f"lengths {len(a)} and {len(b)}",
            remedy="Append a zero, or write the third component out",
        )
    product = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.moveaxis(wrap(objects(product)), 0, axis)


@implements(np.einsum)
def _einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Any:
    """Multiply with all axes spread out, then sum from left to right; ellipses are not covered."""
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if "." in subscripts or len(terms) != len(operands):
        raise refusal(
            f"Cannot take np.einsum({subscripts!r})",
            expected="one term of letters per operand",
            found=f"{len(operands)} operands",
            remedy="Name every axis by a letter",
        )
    letters = sorted(set(left) - {","})
    if not arrow:
        output = "".join(letter for letter in letters if left.count(letter) == 1)
    order = output + "".join(letter for letter in letters if letter not in output)
    product: Any = 1.0
    for term, operand in zip(terms, operands, strict=True):
        present = "".join(letter for letter in order if letter in term)
        view = np.einsum(f"{term}->{present}", objects(operand))
        spread = view[tuple(slice(None) if letter in term else np.newaxis for letter in order)]
        product = ufuncs.call(np.multiply, product, spread)
    if len(order) > len(output):
        product = ufuncs.reduce(np.add, product, tuple(range(len(output), len(order))))
    return wrap(product)


@implements(np.sinc)
def _sinc(x: Any) -> Any:
    angle = np.pi * wrap(objects(x))
    angle = np.where(angle == 0.0, np.finfo(float).eps, angle)
    return np.sin(angle) / angle


@implements(np.nan_to_num)
def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    largest = np.finfo(float).max
    finite = np.where(x == np.inf, largest if posinf is None else posinf, x)
    finite = np.where(x == -np.inf, -largest if neginf is None else neginf, finite)
    return np.where(np.isnan(x), nan, finite)


@implements(np.copyto)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    filled(dst, src if where is True else ufuncs.merge(where, src, dst))


def _full(shape: Any, value: Any, dtype: Any) -> Any:
    """Make an array with room for symbols, or an ordinary one when whole numbers are asked for."""
    if dtype is not None and np.dtype(dtype).kind not in "fO":
        return np.full(shape, value, dtype)
    entries = np.empty(shape, dtype=object)
    entries[...] = objects(value)
    return wrap(entries)


@implements(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None) -> Any:
    return _full(np.shape(a) if shape is None else shape, fill_value, dtype)


implements(np.zeros_like, np.empty_like)(
    lambda a, dtype=None, *, shape=None: _full_like(a, 0.0, dtype, shape=shape)
)
implements(np.ones_like)(
    lambda a, dtype=None, *, shape=None: _full_like(a, 1.0, dtype, shape=shape)
)
# NumPy calls those below when an array of symbols is passed as ``like=``.
implements(np.zeros, np.empty)(lambda shape, dtype=None: _full(shape, 0.0, dtype))
implements(np.ones)(lambda shape, dtype=None: _full(shape, 1.0, dtype))
implements(np.full)(lambda shape, fill_value, dtype=None, **layout: _full(shape, fill_value, dtype))


@implements(np.eye, np.identity)
def _eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, **layout: Any) -> Any:
    check_dtype(dtype)
    return wrap(objects(np.eye(N, M, k)))


@implements(np.array, np.asarray, np.asanyarray)
def _array(object: Any, dtype: Any = None) -> Any:
    check_dtype(dtype)
    return wrap(objects(object).copy())
