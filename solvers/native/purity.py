"""Telling update handlers that only return values from those that also keep something.

A traced handler runs on symbols when it is traced, and never again. One that appends to a list or
counts its calls would lose that, and its list would hold symbols. `without_trace` runs a handler,
looks at the containers, arrays, attributes and variables within its reach, and puts them back as
they were when they changed. What it cannot put back (an iterator that was advanced, a random
generator, what was printed) it does not run at all.
"""

from __future__ import annotations

import builtins
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.context import Context
from flexure.diagrams.handles import Handle
from flexure.diagrams.layout import Layout
from flexure.diagrams.leaf import LeafSystem
from flexure.diagrams.system import System

_T = TypeVar("_T")

#: What is neither changed by handlers nor leads to anything that is.
_SEALED = (ModuleType, Handle, Context, Layout, scalars.Symbol, scalars.Graph)
_PLAIN = (int, float, complex, str, bytes, type(None), np.generic)
_ONE_WAY = (Iterator, random.Random, np.random.Generator, np.random.RandomState)
_SPEAKING = (builtins.print, builtins.input, builtins.open)
#: Whose functions and classes keep nothing that matters.
_TRUSTED = frozenset({"builtins", "flexure", "numpy", "scipy"}) | sys.stdlib_module_names
_MOST = 5000  # objects to look at
_LARGEST = 10_000  # entries of an array, beyond which it is no place for notes


class ImpureError(TypeError):
    """A handler does more than to return values."""


def without_trace(handler: Callable[..., _T], *arguments: Any) -> _T:
    """Return what a handler returns, unless it changes something within its reach.

    Raises
    ------
    ImpureError
        When it does, or gives something else when it is called again; everything is as before then.
    """
    copies = [(thing, thing.read()) for thing in _within_reach(handler)]
    try:
        result, again = handler(*arguments), handler(*arguments)
    finally:
        changed = set()
        for thing, content in copies:
            if thing.has_changed(content):
                changed.add(thing.what)
                thing.restore(content)
    if changed:
        kinds = ", ".join(sorted(changed))
        raise ImpureError(f"it keeps something beside the states, in: {kinds}")
    if not _equal(result, again):
        raise ImpureError("it gives something else when it is called again")
    return result


def _equal(a: Any, b: Any) -> bool:
    """Tell whether two results are the same expressions and numbers."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and all(map(_equal, a.ravel(), b.ravel()))
    if a is b or isinstance(a, scalars.Symbol):
        return a is b
    return bool(a == b or (a != a and b != b))


# What is within reach --------------------------------------------------------------------------


def _within_reach(handler: Any) -> list[_Watched]:
    """Find what a handler can change: containers, attributes of its block, variables."""
    found: list[_Watched] = []
    kept: list[Any] = []  # so that no object takes the identity of another
    seen: set[int] = set()
    waiting: list[Any] = [handler]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, _PLAIN) or id(thing) in seen or _is_sealed(thing):
            continue
        if isinstance(thing, _ONE_WAY) or any(thing is each for each in _SPEAKING):
            raise ImpureError(f"it can reach what changes by its use: {type(thing).__name__}")
        seen.add(id(thing))
        kept.append(thing)
        if len(seen) > _MOST:
            raise ImpureError(f"it can reach more than {_MOST} objects")
        watched, more = _look_at(thing)
        found += watched
        waiting += more
    return found


def _is_sealed(thing: Any) -> bool:
    """Tell whether an object is none that a handler would keep something in."""
    if isinstance(thing, System):
        return not isinstance(thing, LeafSystem)
    return isinstance(thing, _SEALED)


def _look_at(thing: Any) -> tuple[list[_Watched], list[Any]]:
    """Return what to watch of an object, and the objects that it leads to."""
    if isinstance(thing, MethodType):
        return [], [thing.__func__, thing.__self__]
    if isinstance(thing, BuiltinFunctionType):
        return [], [thing.__self__]
    if isinstance(thing, partial):
        return [], [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, staticmethod | classmethod):
        return [], [thing.__func__]
    if isinstance(thing, property):
        return [], [thing.fget, thing.fset]
    if isinstance(thing, tuple | frozenset):
        return [], [*thing]
    watched: list[_Watched] = []
    if isinstance(thing, FunctionType):
        if _is_trusted(thing):
            return [], []
        watched = [*map(_Cell, thing.__closure__ or ()), _Globals(thing), _Attributes(thing)]
        defaults = [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        return watched, [*defaults, *(value for each in watched for value in each.values())]
    if isinstance(thing, type):
        watched = [] if _is_trusted(thing) else [_ClassAttributes(thing)]
    elif isinstance(thing, np.ndarray):
        watched = [_Array(thing)] if thing.flags.writeable and thing.size <= _LARGEST else []
    elif isinstance(thing, list | dict | set | deque):
        watched = [_Container(thing)]
    else:
        watched = [_Attributes(thing)] if hasattr(thing, "__dict__") else []
        watched += [_Slots(thing)] if any(map(_slots_of, type(thing).__mro__)) else []
        return watched, [*type(thing).__mro__, *(v for each in watched for v in each.values())]
    return watched, [value for each in watched for value in each.values()]


def _is_trusted(thing: Any) -> bool:
    return str(thing.__module__).partition(".")[0] in _TRUSTED


def _slots_of(kind: type) -> tuple[str, ...]:
    """Return the names of the slots that a class declares."""
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return () if _is_trusted(kind) else names


# What is watched -------------------------------------------------------------------------------


class _Watched:
    """Something that can change: its content can be read and put back."""

    what = "an object"

    def read(self) -> list[Any]:
        """Return the content."""
        raise NotImplementedError

    def restore(self, content: list[Any]) -> None:
        """Put a content back."""
        raise NotImplementedError

    def has_changed(self, content: list[Any]) -> bool:
        """Tell whether there are other objects, or in another order, than before."""
        return not _same(self.read(), content)

    def values(self) -> Iterable[Any]:
        """Return the objects in it."""
        return [value for _, value in self.read()]


def _same(now: list[Any], before: list[Any]) -> bool:
    """Tell whether two lists hold the same objects, or pairs of them, in the same order."""
    if len(now) != len(before):
        return False
    return all(
        a is b or (isinstance(a, tuple) and isinstance(b, tuple) and _same([*a], [*b]))
        for a, b in zip(now, before, strict=True)
    )


class _Container(_Watched):
    """A list, dictionary, set or deque."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self.what = type(container).__name__

    def read(self) -> list[Any]:
        container = self._container
        return [*container.items()] if isinstance(container, dict) else [*container]

    def restore(self, content: list[Any]) -> None:
        self._container.clear()
        if isinstance(self._container, dict | set):
            self._container.update(content)
        else:
            self._container.extend(content)

    def values(self) -> Iterable[Any]:
        container = self._container
        return container.values() if isinstance(container, dict) else container


class _Array(_Watched):
    """An array that can be written to."""

    what = "an array"

    def __init__(self, array: Any) -> None:
        self._array = array

    def read(self) -> list[Any]:
        return [self._array.copy()]

    def restore(self, content: list[Any]) -> None:
        self._array[...] = content[0]

    def has_changed(self, content: list[Any]) -> bool:
        return bool(self._array.tobytes() != content[0].tobytes())

    def values(self) -> Iterable[Any]:
        return self._array.ravel().tolist() if self._array.dtype == object else ()


class _Cell(_Watched):
    """A variable of an enclosing function."""

    what = "a variable"

    def __init__(self, cell: CellType) -> None:
        self._cell = cell

    def read(self) -> list[Any]:
        try:
            return [("", self._cell.cell_contents)]
        except ValueError:  # it has no value yet
            return []

    def restore(self, content: list[Any]) -> None:
        for _, value in content:
            self._cell.cell_contents = value


class _Globals(_Watched):
    """The global variables, and built-in functions, that a function names."""

    what = "a variable"

    def __init__(self, function: FunctionType) -> None:
        self._scope = function.__globals__
        self._names = _names_in(function.__code__)
        if "random" in self._names:  # of a module, whose generator is out of reach
            raise ImpureError("it names random numbers")

    def read(self) -> list[Any]:
        return [(name, self._scope[name]) for name in self._names if name in self._scope]

    def restore(self, content: list[Any]) -> None:
        for name in self._names:
            self._scope.pop(name, None)
        self._scope.update(content)

    def values(self) -> Iterable[Any]:
        spoken = {each.__name__: each for each in _SPEAKING} | self._scope
        return [spoken[name] for name in self._names if name in spoken]


def _names_in(code: CodeType) -> list[str]:
    """List the names that are no local ones, in a function and in those that it makes."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [*dict.fromkeys([*code.co_names, *(name for each in inner for name in _names_in(each))])]


class _Attributes(_Watched):
    """The attributes of an object; those that every block has are left out."""

    what = "an attribute"

    def __init__(self, owner: Any) -> None:
        self._attributes: dict[str, Any] = owner.__dict__
        self._passed_over = _of_every_block() if isinstance(owner, LeafSystem) else frozenset()

    def read(self) -> list[Any]:
        return [item for item in self._attributes.items() if item[0] not in self._passed_over]

    def restore(self, content: list[Any]) -> None:
        for name, _ in self.read():
            del self._attributes[name]
        self._attributes.update(content)


class _Slots(_Watched):
    """The attributes of an object without a dictionary."""

    what = "an attribute"

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        names = [name for kind in type(owner).__mro__ for name in _slots_of(kind)]
        self._names = [name for name in names if not name.startswith("__")]

    def read(self) -> list[Any]:
        owner = self._owner
        return [(name, getattr(owner, name)) for name in self._names if hasattr(owner, name)]

    def restore(self, content: list[Any]) -> None:
        for name, _ in self.read():
            object.__delattr__(self._owner, name)
        for name, value in content:
            object.__setattr__(self._owner, name, value)


class _ClassAttributes(_Watched):
    """The attributes of a class, its methods among them."""

    what = "an attribute of a class"

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def read(self) -> list[Any]:
        return [item for item in vars(self._kind).items() if not item[0].startswith("__")]

    def restore(self, content: list[Any]) -> None:
        for name, _ in self.read():
            delattr(self._kind, name)
        for name, value in content:
            setattr(self._kind, name, value)


@cache
def _of_every_block() -> frozenset[str]:
    return frozenset(vars(LeafSystem("block")))
