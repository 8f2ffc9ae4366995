"""Contexts as JSON: plain values keyed by block path, without pickling."""

from __future__ import annotations

import json
import math
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexure.diagrams.checks.errors import ContextFileError, FlexureError, ValueRefusedError
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.files.encoding import (
    MismatchError,
    decode,
    decode_numbers,
    encode,
    match_names,
    quoted_name,
)
from flexure.diagrams.files.versions import versions

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context, LeafContext
    from flexure.diagrams.systems.leaf import LeafSystem
    from flexure.diagrams.systems.ports import InputPort
    from flexure.diagrams.systems.system import System

FORMAT = 1
_PARTS = ("format", "system", "time", "accuracy", "blocks", "inputs")
_NOTES = ("versions",)  # for people; what is loaded does not depend on them


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
            section: {handle.name: encode(handle(leaf), handle.full_name) for handle in handles}
            for section, handles in _handles(leaf.system).items()
            if handles
        }
        if entry:
            blocks[path] = entry
    store = context.store
    inputs = {
        path: encode(store.cache[store.layout.held[port]], port.full_name)
        for path, port in _free_inputs(context).items()
        if store.holds(store.layout.held[port])
    }
    return {
        "format": FORMAT,
        "system": context.system.name,
        "time": encode(context.time, "time"),
        "accuracy": context.accuracy,
        "blocks": blocks,
        "inputs": inputs,
    }


def from_dict(system: System, data: Any) -> Context:
    """Return a new root context with saved values; every name must be there and every value fit."""
    attempt = f"Cannot load a context of '{system.label}'"
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise ContextFileError(attempt, expected=f"format {FORMAT}", found=f"{found!r:.80}")
    context = system.create_default_context()
    with _Blame(attempt):
        match_names(data, _PARTS + _NOTES, _PARTS, "the parts")
        if data["system"] != system.name:
            raise ContextFileError(
                attempt,
                expected=f"values of a system with the name '{system.name}'",
                found=f"those of {data['system']!r:.80}",
                remedy="Load the file with the system from which it was saved",
            )
        context.time = decode(data["time"])
        context.accuracy = data["accuracy"]
        leaves = _leaves_by_path(context)
        handles = {path: _handles(leaf.system) for path, leaf in leaves.items()}
        valued = [path for path, sections in handles.items() if any(sections.values())]
        match_names(data["blocks"], leaves, valued, "blocks", kind="block ")
        for path, entry in data["blocks"].items():
            _fill(leaves[path], handles[path], entry, path)
        inputs = _free_inputs(context)
        match_names(data["inputs"], inputs, (), "free inputs")
        for path, value in data["inputs"].items():
            port = inputs[path]
            port.fix(context, decode(value) if port.is_abstract else decode_numbers(value))
        context.store.require_relations()
    return context


def _fill(leaf: LeafContext, handles: dict[str, list[Any]], entry: Any, path: str) -> None:
    """Set everything of one leaf."""
    match_names(entry, handles, [name for name, found in handles.items() if found], "sections")
    for section, values in entry.items():
        named = {handle.name: handle for handle in handles[section]}
        match_names(values, named, named, section, f" of '{path}'")
        undo = decode if section == "abstract" else decode_numbers
        for name, value in values.items():
            named[name].set(leaf, undo(value))


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
    """Write a root context to a JSON file, in place of an older one or not at all."""
    attempt = f"Cannot save the context of '{context.system.label}' to '{path}'"
    data = to_dict(context) | {"versions": versions()}
    try:
        text = json.dumps(data, indent=1, allow_nan=False)
        with replacing(path) as file:
            file.write(text + "\n")
    except (OSError, TypeError, ValueError) as error:
        raise ContextFileError(
            attempt,
            expected="the name of a file that can be written",
            found=error.found if isinstance(error, ValueRefusedError) else str(error),
            remedy="A file of this name is unchanged",
        ) from error


def load(system: System, path: str | Path) -> Context:
    """Read a context that `save` wrote."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise OSError("something other than a file")
        data = json.loads(
            Path(path).read_text(encoding="utf-8"),
            parse_float=_finite,
            parse_constant=_finite,
            object_pairs_hook=_without_duplicates,
        )
    except (OSError, RecursionError, TypeError, ValueError) as error:
        raise ContextFileError(
            f"Cannot load a context of '{system.label}' from '{path}'",
            expected="a readable JSON file",
            found=str(error),
        ) from error
    return from_dict(system, data)


def _finite(text: str) -> float:
    """Read a number of a file, in which those that are not finite are written as objects."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text:.40}, which is not finite")
    return number


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dictionary; refuse names that occur twice, of which only one would count."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{quoted_name(name)} more than once")
    return found


class _Blame:
    """Turn whatever goes wrong with the values of a file into a ContextFileError."""

    def __init__(self, attempt: str) -> None:
        self.attempt = attempt

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ContextFileError) or not isinstance(error, Exception):
            return
        expected, found = "the values that save() wrote", str(error).rstrip(".")
        if isinstance(error, MismatchError):
            expected, found = error.args
        elif isinstance(error, KeyError):
            found = f"no {error}"
        elif not isinstance(error, (FlexureError, TypeError, ValueError)):
            found = f"{type(error).__name__}: {found}"
        raise ContextFileError(self.attempt, expected=expected, found=found) from error
