"""Telling update handlers that only return values from those that also keep something.

A traced handler runs once, on symbols, and never again. One that appends to a list or counts its
calls would lose that, and its list would hold symbols. `without_trace` runs a handler, looks at the
containers, attributes and variables within its reach, and puts them back as they were when they
changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache, partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np

from flexure.diagrams.context import Context
from flexure.diagrams.handles import Handle
from flexure.diagrams.layout import Layout
from flexure.diagrams.leaf import LeafSystem
from flexure.diagrams.system import System

_T = TypeVar("_T")

_CONTAINERS = (list, dict, set, deque)
_SEALED = (
    type,
    ModuleType,
    np.ndarray,
    Handle,
    Context,
    Layout,
    System,
)  # what handlers do not change
_MOST = 2000  # objects to look at


class ImpureError(TypeError):
    """A handler changed something beside the states."""


def without_trace(handler: Callable[..., _T], *arguments: Any) -> _T:
    """Return what a handler returns, unless it changes something within its reach.

    Raises
    ------
    ImpureError
        When it does; everything is as before then.
    """
    copies = [(container, _content(container)) for container in _within_reach(handler)]
    try:
        result = handler(*arguments)
    finally:
        changed = set()
        for container, content in copies:
            if not _same(_content(container), content):
                changed.add(_KINDS.get(type(container), type(container).__name__))
                _restore(container, content)
    if changed:
        kinds = ", ".join(sorted(changed))
        raise ImpureError(f"it keeps something beside the states, in: {kinds}")
    return result


def _within_reach(handler: Any) -> list[Any]:
    """Find the containers that a handler can change, the attributes of its block among them."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = [handler]
    while waiting and len(seen) < _MOST:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, (MethodType, partial)):
            function = thing.__func__ if isinstance(thing, MethodType) else thing.func
            owner = thing.__self__ if isinstance(thing, MethodType) else thing.args
            waiting += [function, owner]
        elif isinstance(thing, FunctionType):
            waiting += _named_in(thing)
        elif isinstance(thing, _CONTAINERS):
            found.append(thing)
            waiting += thing.values() if isinstance(thing, dict) else thing
        elif isinstance(thing, tuple):
            waiting += thing
        elif hasattr(thing, "__dict__") and not _is_sealed(thing):
            own = _Attributes(thing)
            found.append(own)
            waiting += [value for _, value in own.read()]
    return found


def _is_sealed(thing: Any) -> bool:
    """Tell whether an object is none that a handler would keep something in."""
    return isinstance(thing, _SEALED) and not isinstance(thing, LeafSystem)


def _named_in(function: FunctionType) -> list[Any]:
    """List what a function gets from its closure and from the globals that it names."""
    named = [_Cell(cell) for cell in function.__closure__ or ()]
    code, scope = function.__code__, function.__globals__
    return [*named, *(scope[name] for name in code.co_names if name in scope)]


class _Cell(list[Any]):
    """A variable of an enclosing function as a container of one value."""

    def __init__(self, cell: CellType) -> None:
        self.cell = cell
        super().__init__(self.read())

    def read(self) -> list[Any]:
        """Return the value, if there is one."""
        try:
            return [self.cell.cell_contents]
        except ValueError:
            return []

    def restore(self, content: list[Any]) -> None:
        """Put the value back."""
        self.cell.cell_contents = content[0]


class _Attributes:
    """The attributes of an object as a container of names and values.

    Those that every block has are left out: they lead to the whole diagram.
    """

    def __init__(self, owner: Any) -> None:
        self.attributes: dict[str, Any] = owner.__dict__
        self.passed_over = _of_every_block() if isinstance(owner, LeafSystem) else frozenset()

    def read(self) -> list[Any]:
        """Return names and values."""
        return [item for item in self.attributes.items() if item[0] not in self.passed_over]

    def restore(self, content: list[Any]) -> None:
        """Put the values back."""
        for name, _ in self.read():
            del self.attributes[name]
        self.attributes.update(content)


@cache
def _of_every_block() -> frozenset[str]:
    return frozenset(vars(LeafSystem("block")))


def _content(container: Any) -> list[Any]:
    """Copy what is in a container."""
    if isinstance(container, (_Cell, _Attributes)):
        return container.read()
    return list(container.items()) if isinstance(container, dict) else list(container)


def _same(now: list[Any], before: list[Any]) -> bool:
    """Tell whether two contents are the same objects in the same order."""
    if len(now) != len(before):
        return False
    return all(
        a is b or (isinstance(a, tuple) and isinstance(b, tuple) and _same(list(a), list(b)))
        for a, b in zip(now, before, strict=True)
    )


def _restore(container: Any, content: list[Any]) -> None:
    """Put back what was in a container."""
    if isinstance(container, (_Cell, _Attributes)):
        container.restore(content)
        return
    container.clear()
    if isinstance(container, (dict, set)):
        container.update(content)
    else:
        container.extend(content)


_KINDS: dict[type, str] = {_Cell: "a variable", _Attributes: "an attribute"}
