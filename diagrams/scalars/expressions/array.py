"""Arrays of symbols: an ``ndarray`` subclass that keeps ordinary NumPy code working.

Every NumPy call that meets a `Symbol` or a `SymbolArray` arrives at `call_ufunc` or
`call_function`. What is covered records its operations; everything else raises `TraceError`.
Nothing is ever converted silently. Results without axes are bare Symbols, or ``np.float64`` and
``np.bool_`` where no symbol is involved, just as NumPy's are bare scalars.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NoReturn

import numpy as np

from flexure.diagrams.scalars.expressions import ufuncs
from flexure.diagrams.scalars.expressions.expression import Symbol
from flexure.diagrams.scalars.expressions.refusal import needs_number, only_of_numbers, refusal
from flexure.diagrams.scalars.expressions.ufuncs import objects

#: What stands in for each NumPy function that is covered.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}

_ADVICE = {
    "allclose": "Write np.abs(a - b) <= tolerance, and np.where to act on it",
    "argmax": "Write np.where(a > b, ..., ...) or np.maximum",
    "argmin": "Write np.where(a < b, ..., ...) or np.minimum",
    "array_equal": "Write np.all(a == b), and np.where to act on it",
    "digitize": "Write np.interp, np.select or nested np.where",
    "isclose": "Write np.abs(a - b) <= tolerance",
    "nonzero": "Write np.where(condition, a, b) with all three arguments",
    "round": "Write np.rint",
    "searchsorted": "Write np.interp, np.select or nested np.where",
    "sort": "Write np.minimum and np.maximum",
    "std": "Write np.sqrt(np.mean((x - np.mean(x))**2))",
    "where": "Give np.where all three arguments",
    "var": "Write np.mean((x - np.mean(x))**2)",
}


class SymbolArray(np.ndarray[Any, np.dtype[np.object_]]):
    """An array whose entries are Symbols, or floats and bools where the value is known.

    Made by `symbols`, by `array`, and by computing with either; not by calling the class.
    Slices are views, and entries can be assigned. One entry, taken by an index or by unpacking, is
    a bare Symbol, or an ``np.float64`` or ``np.bool_`` where its value is known.
    """

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: Any
    ) -> Any:
        return call_function(function, types, args, options)

    def __getitem__(self, key: Any) -> Any:
        entry = super().__getitem__(_plain_index(key))
        return entry if isinstance(entry, Symbol) else wrap(entry)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = _plain_index(key)
        key = key if isinstance(key, tuple) else (key,)
        # The ellipsis makes even a single entry a view, into which an array cannot be put whole.
        whole = key if any(part is Ellipsis for part in key) else (*key, ...)
        self.view(np.ndarray)[whole] = objects(value)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    def item(self, *index: Any) -> Any:
        """Return one entry."""
        return wrap(super().item(*index))

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Return a copy; ``float`` turns truth values into numbers, ``bool`` does the reverse."""
        kind = np.dtype(dtype).kind
        if kind not in "fbO":
            raise needs_number("integer", f"astype({np.dtype(dtype)})")
        if kind == "O":
            return self.copy()
        return wrap((ufuncs.truths if kind == "b" else ufuncs.numbers)(objects(self)))

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the entries in another shape."""
        return wrap(super().reshape(*shape, **options))

    def squeeze(self, axis: Any = None) -> Any:
        """Return the entries without axes of length one."""
        return wrap(super().squeeze(axis))

    def mean(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """Return the mean along the given axes."""
        return np.mean(self, axis=axis, **options)

    def dot(self, other: Any) -> Any:  # type: ignore[override]
        """Return the dot product."""
        return np.dot(self, other)

    def trace(self, *args: Any, **options: Any) -> Any:
        """Return the sum along a diagonal."""
        return np.trace(self, *args, **options)

    def clip(self, *args: Any, **options: Any) -> Any:
        """Return the entries limited to an interval."""
        return np.clip(self, *args, **options)

    def __repr__(self) -> str:
        return f"SymbolArray({self.tolist()})"

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(self.item())
        if _holds_symbols(self):
            raise needs_number("decision", self)
        return bool(np.asarray(self).astype(float))

    __float__ = __complex__ = only_of_numbers("float")
    __int__ = __index__ = only_of_numbers("integer")


def _refused_method(name: str) -> Callable[..., NoReturn]:
    """Make a method that names itself as not covered."""

    def method(self: SymbolArray, *args: Any, **options: Any) -> NoReturn:
        raise _not_covered(name, f"the method .{name}()")

    return method


for _name in ("argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "std", "var"):
    setattr(SymbolArray, _name, _refused_method(_name))


def _array_method(name: str) -> Callable[..., Any]:
    """Make the method of a Symbol that an array without axes has."""

    def method(self: Symbol, *args: Any, **options: Any) -> Any:
        box = ufuncs.boxed(self).view(SymbolArray)
        return wrap(getattr(box, name)(*args, **options))

    return method


for _name in ("all", "any", "max", "mean", "min", "prod", "sum"):
    setattr(Symbol, _name, _array_method(_name))
for _name in ("astype", "clip", "flatten", "ravel", "reshape", "squeeze"):
    setattr(Symbol, _name, _array_method(_name))


def wrap(result: Any) -> Any:
    """Put `SymbolArray` around a plain object array; give a bare scalar NumPy's type."""
    if isinstance(result, np.ndarray):
        if result.dtype != object:
            return result
        if result.ndim:
            return result.view(SymbolArray)
        result = result[()]
    if isinstance(result, Symbol):
        return result
    return np.bool_(result) if isinstance(result, (bool, np.bool_)) else np.float64(result)


def _holds_symbols(array: SymbolArray) -> bool:
    """Return whether any value is unknown."""
    return any(isinstance(entry, Symbol) for entry in array.flat)


def _plain_index(key: Any) -> Any:
    """Refuse an index that depends on a value; a known mask of objects becomes one of bools."""
    if isinstance(key, tuple):
        return tuple(map(_plain_index, key))
    if isinstance(key, Symbol):
        raise needs_number("mask", key)
    if isinstance(key, SymbolArray):
        if _holds_symbols(key):
            raise needs_number("mask", key)
        return np.asarray(key, dtype=bool)
    return key


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    """Apply a ufunc to operands of which at least one, or an output, is symbolic."""
    for operand in inputs:
        foreign = getattr(type(operand), "__array_ufunc__", None)
        if foreign is not None and not isinstance(operand, (Symbol, np.ndarray, np.generic)):
            return NotImplemented
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    out = options.pop("out", (None,))[0]
    _check_out(out)
    check_dtype(options.pop("dtype", None))
    for irrelevant in ("casting", "order", "subok"):
        options.pop(irrelevant, None)
    if ufunc is np.divmod and method == "__call__" and out is None and not options:
        return call_ufunc(np.floor_divide, method, inputs, {}), np.remainder(*inputs)
    mask = True
    if method == "__call__":
        mask = options.pop("where", True)
        if mask is not True and out is None:
            raise _not_covered(name, f"{name} with where= and without out=")
    if method == "__call__" and ufunc in ufuncs.CONTRACTIONS and not options and mask is True:
        result = ufuncs.CONTRACTIONS[ufunc](*inputs)
    elif method == "__call__" and ufunc in ufuncs.SCALAR and not options:
        result = ufuncs.call(ufunc, *inputs)
    elif method == "outer" and ufunc in ufuncs.SCALAR and not options:
        result = ufuncs.outer(ufunc, *inputs)
    elif method in ("reduce", "accumulate") and ufunc in ufuncs.SCALAR and ufunc.nin == 2:
        result = getattr(ufuncs, method)(ufunc, *inputs, **options)
    else:
        keywords = f" with {', '.join(f'{key}=' for key in options)}" if options else ""
        raise _not_covered(ufunc.__name__, name + keywords)
    return wrap(result) if out is None else _assign(out, result, mask)


def call_function(
    function: Callable[..., Any], types: Any, args: Any, options: dict[str, Any]
) -> Any:
    """Apply a NumPy function to arguments of which at least one is symbolic."""
    if not all(issubclass(kind, (Symbol, np.ndarray)) for kind in types):
        return NotImplemented
    replacement = FUNCTIONS.get(function)
    if replacement is None:
        raise _not_covered(function.__name__, _full_name(function))
    try:
        _signature(replacement).bind(*args, **options)
    except TypeError as error:
        attempt = f"{_full_name(function)} with these arguments ({error})"
        raise _not_covered(function.__name__, attempt) from None
    return replacement(*args, **options)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Read a signature once."""
    return inspect.signature(function)


def implements(
    *functions: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let the decorated function stand in for NumPy functions."""

    def register(replacement: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.update(dict.fromkeys(functions, replacement))
        return replacement

    return register


def filled(out: Any, result: Any) -> Any:
    """Return a result, written to ``out`` where that is given."""
    if out is None:
        return wrap(result)
    _check_out(out)
    return _assign(out, result, True)


def _assign(out: Any, result: Any, mask: Any) -> Any:
    """Write a result into an array of objects, where the mask holds."""
    target = out.view(np.ndarray)
    target[...] = objects(result) if mask is True else ufuncs.merge(mask, result, target)
    return out


def _check_out(out: Any) -> None:
    """Refuse to write symbols into an array that can only hold numbers."""
    if out is not None and out.dtype != object:
        raise refusal(
            "Cannot write symbols into an array of numbers",
            expected="an array made by fx.array([...]), np.stack([...]) or np.zeros_like(x)",
            found=f"an array of {out.dtype}",
            remedy="Write y = y + x instead of y += x, or start from np.zeros_like(x)",
        )


def check_dtype(dtype: Any) -> None:
    """Refuse data types that would round or reinterpret symbols."""
    if dtype is not None and np.dtype(dtype).kind not in "fbO":
        raise needs_number("integer", f"dtype={np.dtype(dtype)}")


def _full_name(function: Callable[..., Any]) -> str:
    """Return ``np.linalg.norm`` and the like."""
    return f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)


def _not_covered(name: str, attempt: str) -> Exception:
    """Make the error for a part of NumPy that symbols do not go through."""
    return refusal(
        f"Cannot apply {attempt} to symbols",
        remedy=_ADVICE.get(
            name, "Write it with elementary NumPy functions, np.where, np.sum and np.linalg.solve"
        ),
    )
