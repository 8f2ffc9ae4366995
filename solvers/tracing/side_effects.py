"""Detects update handlers with side effects: those that also store something in an attribute.

A traced handler runs on symbols when it is traced, and never again. One that appends to a list or
counts its calls would lose that, and its list would hold symbols. So `without_trace` runs a replica
of a handler, with replicas of the containers, arrays, attributes and variables within its reach,
and looks whether they have changed. Nothing that the handler itself can reach is touched, since
other threads may be using it. A handler that uses something without a replica (an iterator that
would be advanced, a random generator, a function that prints) is not run at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from types import CellType
from typing import Any, TypeVar

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.contexts.context import LeafContext
from flexure.diagrams.contexts.updates import only_looking
from flexure.solvers.tracing.replicas import ImpureError, Replicas, Scope, passed_over_in, slots_of

_T = TypeVar("_T")


def without_trace(handler: Callable[[LeafContext], _T], leaf: LeafContext) -> _T:
    """Return what a handler returns, unless it changes something within its reach."""
    replicas = Replicas()
    try:
        replica: Callable[[LeafContext], _T] = replicas.of(handler)
    except ImpureError:
        raise
    except Exception as error:  # such as that of nesting without end
        raise ImpureError(f"it can reach what cannot be replicated: {error}") from None
    before = [(thing, _content(thing)) for thing in replicas.made]
    with only_looking(leaf, "an event", is_pure=True):
        result, again = replica(leaf), replica(leaf)
    if kinds := {_what(thing) for thing, old in before if not _same(_content(thing), old)}:
        raise ImpureError(f"it stores values outside of the states, in: {', '.join(sorted(kinds))}")
    if not _equal(result, again):
        raise ImpureError("it returns another result when it is called again")
    return result


def _equal(a: Any, b: Any) -> bool:
    """Return whether two results are the same expressions and numbers."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and all(map(_equal, a.ravel(), b.ravel()))
    if a is b or isinstance(a, scalars.Symbol):
        return a is b
    return bool(a == b or (a != a and b != b))


# What may change -------------------------------------------------------------------------------


def _content(thing: Any) -> list[Any]:
    """List what is in a container, an array or a variable, and the attributes of an object."""
    content: list[Any] = []
    if isinstance(thing, dict):
        content += thing.items()
    elif isinstance(thing, list | set | deque):
        content += thing
    elif isinstance(thing, np.ndarray):
        # An array of symbols wraps its numbers whenever it is asked.
        entries = thing.view(np.ndarray)
        return [*entries.ravel()] if thing.dtype == object else [thing.tobytes()]
    elif isinstance(thing, CellType):
        try:
            return [thing.cell_contents]
        except ValueError:  # it has no value yet
            return []
    if isinstance(thing, type):
        return [item for item in vars(thing).items() if not item[0].startswith("__")]
    if hasattr(thing, "__dict__"):
        passed_over = passed_over_in(thing)
        content += [item for item in vars(thing).items() if item[0] not in passed_over]
    names = [name for kind in type(thing).__mro__ for name in slots_of(kind)]
    return content + [(name, getattr(thing, name, None)) for name in names if name[:2] != "__"]


def _what(thing: Any) -> str:
    """Say in what something was kept."""
    if isinstance(thing, Scope | CellType):
        return "a variable"
    if isinstance(thing, list | dict | set | deque):
        return type(thing).__name__
    if isinstance(thing, np.ndarray):
        return "an array"
    return "an attribute of a class" if isinstance(thing, type) else "an attribute"


def _same(now: list[Any], before: list[Any]) -> bool:
    """Return whether two lists hold the same objects, or pairs of them, in the same order."""
    if len(now) != len(before):
        return False
    return all(
        a is b
        or (isinstance(a, bytes) and a == b)
        or (isinstance(a, tuple) and isinstance(b, tuple) and _same([*a], [*b]))
        for a, b in zip(now, before, strict=True)
    )
