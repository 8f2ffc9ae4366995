"""Values as JSON with every bit of a number, and back without executing untrusted code.

What is read may come from anywhere: no more is made of it than its own size, and what `encode`
cannot have written is refused by a ``ValueError``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import ContextFileError, quoted

_DEPTH = 100  # nested lists, tuples and dictionaries
# What arrays may be made of, and as what their entries are written.
_DTYPES: dict[str, tuple[type, ...]] = (
    {"bool": (bool,)}
    | {f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {f"float{bits}": (int, float) for bits in (16, 32, 64)}
)


class MismatchError(ValueError):
    """Names that do not fit, as what was expected and what was found."""


def match_names(
    found: Any,
    known: Collection[str],
    required: Collection[str],
    what: str,
    where: str = "",
    kind: str = "",
) -> None:
    """Refuse what is no object with known names, of which none that is required is missing."""
    if not isinstance(found, Mapping):
        raise ValueError(f"a {type(found).__name__} in place of {what}{where}")
    strange = [f"{kind}{quoted_name(name)}" for name in found if name not in known]
    missing = [f"no {kind}{quoted_name(name)}" for name in required if name not in found]
    if strange or missing:
        raise MismatchError(f"{what} {quoted(known)}{where}", (strange or missing)[0])


def quoted_name(name: object) -> str:
    """Quote a name for a message; not all of it when it is long."""
    return f"'{name:.80}'" if isinstance(name, str) else f"{name!r:.80}"


def encode(value: Any, path: str, depth: int = 0) -> Any:
    """Turn a value into JSON-ready objects; floats keep every bit."""
    if depth > _DEPTH:
        raise ContextFileError(
            f"Cannot save '{path}'",
            expected=f"at most {_DEPTH} nested lists, tuples and dictionaries",
            found="more",
        )
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, np.ndarray) and value.dtype.name in _DTYPES:
        flat = [encode(entry, path) for entry in value.ravel().tolist()]
        return {"array": flat, "shape": list(value.shape), "dtype": value.dtype.name}
    if isinstance(value, list):
        return [encode(entry, path, depth + 1) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(entry, path, depth + 1) for entry in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(entry, path, depth + 1) for key, entry in value.items()}}
    raise ContextFileError(
        f"Cannot save '{path}'",
        expected="None, a boolean, number, string or array, or lists, tuples and string-keyed "
        "dictionaries of these",
        found=type(value).__name__,
    )


def _decode_float(body: Mapping[str, Any], depth: int) -> float:
    if body["float"] not in ("nan", "inf", "-inf"):
        raise ValueError(f"the float {body['float']!r:.40}")
    return float(body["float"])


def _decode_array(body: Mapping[str, Any], depth: int) -> Any:
    """Make an array, no larger than the list of its entries."""
    entries, shape, name = body["array"], body["shape"], body["dtype"]
    kinds = _DTYPES.get(name) if isinstance(name, str) else None
    if kinds is None:
        raise ValueError(f"arrays of {name!r:.40}")
    if not isinstance(entries, list) or not isinstance(shape, list):
        raise ValueError("an array without lists of its entries and sizes")
    if not all(type(size) is int and 0 <= size <= sys.maxsize for size in shape):
        raise ValueError(f"the shape {shape!r:.40}")
    flat = [decode(entry) for entry in entries]
    if not all(type(entry) in kinds for entry in flat):
        raise ValueError(f"entries that are no {name}")
    with np.errstate(over="raise"):
        return np.array(flat, dtype=name).reshape(shape)


def _decode_tuple(body: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(body["tuple"], list):
        raise ValueError("a tuple without a list of its entries")
    return tuple(decode(entry, depth) for entry in body["tuple"])


def _decode_dict(body: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(body["dict"], dict):
        raise ValueError("a dictionary without its entries")
    return {key: decode(entry, depth) for key, entry in body["dict"].items()}


_DECODERS: dict[str, tuple[tuple[str, ...], Callable[[Any, int], Any]]] = {
    "float": (("float",), _decode_float),
    "array": (("array", "shape", "dtype"), _decode_array),
    "tuple": (("tuple",), _decode_tuple),
    "dict": (("dict",), _decode_dict),
}


def decode(value: Any, depth: int = 0) -> Any:
    """Undo `encode`."""
    if depth > _DEPTH:
        raise ValueError(f"more than {_DEPTH} nested values")
    if isinstance(value, list):
        return [decode(entry, depth + 1) for entry in value]
    if isinstance(value, dict):
        for tag, (keys, undo) in _DECODERS.items():
            if tag in value:
                match_names(value, keys, keys, f"the names of a saved {tag}")
                return undo(value, depth + 1)
        raise ValueError(f"unknown object [{quoted(value)}]")
    return value


def decode_numbers(value: Any) -> Any:
    """Undo `encode` for what is to be numbers; an array of texts would take any memory."""
    decoded = decode(value)
    stack = [decoded]
    while stack:
        top = stack.pop()
        if isinstance(top, list):
            stack.extend(top)
        elif top is not decoded and isinstance(top, str):
            raise ValueError(f"the text {top!r:.40} among numbers")
    return decoded
