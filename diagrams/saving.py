"""Contexts as JSON: plain values keyed by block path, without pickling."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.errors import ContextFileError, FlexureError, quoted

if TYPE_CHECKING:
    from flexure.diagrams.context import Context, LeafContext
    from flexure.diagrams.leaf import LeafSystem
    from flexure.diagrams.ports import InputPort
    from flexure.diagrams.system import System

FORMAT = 1


def _handles(leaf: LeafSystem) -> dict[str, list[Any]]:
    """Everything of a leaf that a saved context holds, by section."""
    state = leaf.continuous_state
    return {
        "parameters": list(leaf.numeric_parameters),
        "continuous_state": [] if state is None else [state],
        "discrete_state": list(leaf.discrete_states),
        "abstract": [*leaf.abstract_parameters, *leaf.abstract_states],
    }


def to_dict(context: Context) -> dict[str, Any]:
    """Return all values of a root context as JSON-ready objects keyed by block path."""
    context._require_root("save")
    blocks: dict[str, Any] = {}
    for path, leaf in _leaves_by_path(context).items():
        entry = {
            section: {handle.name: _encode(handle(leaf), handle.full_name) for handle in handles}
            for section, handles in _handles(leaf.system).items()
            if handles
        }
        if entry:
            blocks[path] = entry
    store = context.store
    inputs = {
        path: _encode(store.cache[store.layout.held[port]], port.full_name)
        for path, port in _free_inputs(context).items()
        if store.holds(store.layout.held[port])
    }
    return {
        "format": FORMAT,
        "system": context.system.name,
        "time": _encode(context.time, "time"),
        "accuracy": context.accuracy,
        "blocks": blocks,
        "inputs": inputs,
    }


def from_dict(system: System, data: Any) -> Context:
    """Return a new root context with saved values; every name must exist and every value fit."""
    attempt = f"Cannot load a context of '{system.label}'"
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise ContextFileError(attempt, expected=f"format {FORMAT}", found=repr(found))
    context = system.create_default_context()
    leaves, inputs = _leaves_by_path(context), _free_inputs(context)
    with _Blame(attempt):
        context.time = _decode(data["time"])
        context.accuracy = data["accuracy"]
        for path, entry in data["blocks"].items():
            if path not in leaves:
                raise ContextFileError(
                    attempt, expected=f"blocks {quoted(leaves)}", found=f"block '{path}'"
                )
            sections = _handles(leaves[path].system)
            for section, values in entry.items():
                if section not in sections:
                    raise ContextFileError(
                        attempt, expected=f"sections {quoted(sections)}", found=f"'{section}'"
                    )
                handles = {handle.name: handle for handle in sections[section]}
                for name, value in values.items():
                    if name not in handles:
                        raise ContextFileError(
                            attempt,
                            expected=f"{section} {quoted(handles)} of '{path}'",
                            found=f"'{name}'",
                        )
                    handles[name].set(leaves[path], _decode(value))
        for path, value in data["inputs"].items():
            if path not in inputs:
                raise ContextFileError(
                    attempt, expected=f"free inputs {quoted(inputs)}", found=f"'{path}'"
                )
            inputs[path].fix(context, _decode(value))
    return context


def _leaves_by_path(context: Context) -> dict[str, LeafContext]:
    """Return the contexts of all leaves by their path from the system of a root context."""
    skip = _length_of_prefix(context.system)
    return {leaf.system.path[skip:] or leaf.system.name: leaf for leaf in context.leaves()}


def _free_inputs(context: Context) -> dict[str, InputPort]:
    """Return the inputs that no block feeds by their path from the system of a root context."""
    skip = _length_of_prefix(context.system)
    return {port.path[skip:]: port for port in context.store.layout.held}


def _length_of_prefix(system: System) -> int:
    """Count what the paths below a system have in common; diagrams around it are not saved."""
    return len(system.path) + 1 if system.path else 0


def save(context: Context, path: str | Path) -> None:
    """Write a root context to a JSON file."""
    text = json.dumps(to_dict(context), indent=1, allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


def load(system: System, path: str | Path) -> Context:
    """Read a context that `save` wrote."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContextFileError(
            f"Cannot load a context of '{system.label}' from '{path}'",
            expected="a readable JSON file",
            found=str(error),
        ) from error
    return from_dict(system, data)


class _Blame:
    """Turn whatever goes wrong with the values of a file into a ContextFileError."""

    def __init__(self, attempt: str) -> None:
        self.attempt = attempt

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ContextFileError) or error is None:
            return
        if isinstance(error, (FlexureError, KeyError, TypeError, ValueError, AttributeError)):
            found = f"no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise ContextFileError(
                self.attempt, expected="the values that save() wrote", found=found
            ) from error


def _encode(value: Any, path: str) -> Any:
    """Turn a value into JSON-ready objects; floats keep every bit."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        flat = [_encode(entry, path) for entry in value.ravel().tolist()]
        return {"array": flat, "shape": list(value.shape), "dtype": value.dtype.name}
    if isinstance(value, list):
        return [_encode(entry, path) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(entry, path) for entry in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(entry, path) for key, entry in value.items()}}
    raise ContextFileError(
        f"Cannot save '{path}'",
        expected="None, a boolean, number, string or array, or lists, tuples and string-keyed "
        "dictionaries of these",
        found=type(value).__name__,
    )


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": lambda body: float(body["float"]),
    "array": lambda body: np.array(
        [_decode(entry) for entry in body["array"]], dtype=body["dtype"]
    ).reshape(body["shape"]),
    "tuple": lambda body: tuple(_decode(entry) for entry in body["tuple"]),
    "dict": lambda body: {key: _decode(entry) for key, entry in body["dict"].items()},
}


def _decode(value: Any) -> Any:
    """Undo `_encode`."""
    if isinstance(value, list):
        return [_decode(entry) for entry in value]
    if isinstance(value, dict):
        for tag, decode in _DECODERS.items():
            if tag in value:
                return decode(value)
        raise ValueError(f"unknown object {sorted(value)}")
    return value


__all__ = ["from_dict", "load", "save", "to_dict"]
