"""Replicas of everything that a function can change, so that a trial run has no side effects.

A replica of a function has replicas of its global variables, of the variables of functions around
it, of its defaults; a bound method has one of its object; an object has replicas of its attributes,
and of its class where that is a user's own. So nothing that a replica keeps comes to where another
thread, or a later run, would find it.
"""

from __future__ import annotations

import builtins
import random
import sys
from abc import ABCMeta
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dis import get_instructions, hasname
from enum import Enum, EnumMeta
from functools import cache, partial
from itertools import pairwise
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.handles import Handle

#: What is neither changed by handlers nor leads to anything that is.
_SEALED = (ModuleType, Handle, Context, Layout, scalars.Symbol, scalars.Graph, Enum, EnumMeta)
_PLAIN = (int, float, complex, str, bytes, type(None), np.generic, np.ufunc, np.dtype)
_ONE_WAY = (Iterator, random.Random, np.random.Generator, np.random.RandomState)
_SPEAKING = (builtins.print, builtins.input, builtins.open)
#: Whose functions and classes keep nothing that matters.
_TRUSTED = frozenset({"builtins", "flexure", "numpy", "scipy"}) | sys.stdlib_module_names
_MOST = 5000  # objects
_LARGEST = 10_000  # entries of an array, beyond which it is no place for notes
_OF_EVERY_CLASS = frozenset(
    (
        *("__dict__", "__weakref__", "__doc__", "__module__", "__slots__", "__annotations__"),
        *("__abstractmethods__", "_abc_impl", "__orig_bases__", "__parameters__"),
    )
)


class ImpureError(TypeError):
    """A handler does more than to return values."""


class Scope(dict[str, Any]):
    """The global variables of replicas of functions."""


class Replicas:
    """Replicas of objects and of what they lead to."""

    def __init__(self) -> None:
        # Replicas of what can change: containers, arrays, cells, scopes, and everything with
        # attributes.
        self.made: list[Any] = []
        self._known: dict[int, Any] = {}
        self._kept: list[Any] = []  # so that no object takes the identity of another

    def of(self, thing: Any) -> Any:
        """Return the replica of an object, or the object itself where it cannot change."""
        if isinstance(thing, _PLAIN) or _is_sealed(thing):
            return thing
        if id(thing) in self._known:
            return self._known[id(thing)]
        if isinstance(thing, _ONE_WAY) or any(thing is each for each in _SPEAKING):
            name = getattr(thing, "__name__", type(thing).__name__)
            raise ImpureError(f"it can reach what changes by its use: {name}")
        self._kept.append(thing)
        if len(self._kept) > _MOST:
            raise ImpureError(f"it can reach more than {_MOST} objects")
        for kind, make in self._ways:
            if isinstance(thing, kind):
                return make(self, thing)
        return self._object(thing)

    def _note(self, thing: Any, replica: Any) -> Any:
        """Remember a replica, before what is in it leads back to it."""
        self._known[id(thing)] = replica
        if replica is not thing:
            self.made.append(replica)
        return replica

    # Containers ----------------------------------------------------------------------------

    def _list(self, thing: Any) -> Any:
        replica = self._note(thing, self._empty(thing))
        replica.extend(map(self.of, list(thing)))
        return self._with_attributes(thing, replica)

    def _set(self, thing: Any) -> Any:
        replica = self._note(thing, self._empty(thing))
        replica.update(map(self.of, list(thing)))
        return self._with_attributes(thing, replica)

    def _dict(self, thing: Any) -> Any:
        replica = self._note(thing, self._empty(thing))
        put = (type(thing) if is_trusted(type(thing)) else dict).__setitem__
        for key, value in list(thing.items()):
            put(replica, self.of(key), self.of(value))
        if isinstance(thing, defaultdict):
            replica.default_factory = self.of(thing.default_factory)
        return self._with_attributes(thing, replica)

    def _empty(self, thing: Any) -> Any:
        kind = self.of(type(thing))
        replica = kind.__new__(kind)
        if isinstance(thing, deque):
            deque.__init__(replica, maxlen=thing.maxlen)
        return replica

    def _tuple(self, thing: Any) -> Any:
        entries = [self.of(entry) for entry in thing]
        if all(a is b for a, b in zip(entries, thing, strict=True)):
            return thing
        base = tuple if isinstance(thing, tuple) else frozenset
        return base.__new__(self.of(type(thing)), entries)

    def _array(self, thing: Any) -> Any:
        if thing.dtype == object:
            replica = self._note(thing, thing.copy())
            replica.ravel()[:] = [self.of(entry) for entry in thing.ravel().tolist()]
            return replica
        changes = thing.flags.writeable and thing.size <= _LARGEST
        return self._note(thing, thing.copy() if changes else thing)

    # Functions -----------------------------------------------------------------------------

    def _function(self, thing: FunctionType) -> Any:
        if is_trusted(thing):
            return thing
        code = thing.__code__
        names = names_in(code)
        if "random" in names:  # of a module, whose generator is out of reach
            raise ImpureError("it names random numbers")
        if "system" in names:  # of a context, which leads to the block itself
            raise ImpureError("it names the block of a context")
        scope = self._scope(thing.__globals__)
        cells = tuple(map(self._cell, thing.__closure__ or ()))
        replica = FunctionType(code, scope, thing.__name__, None, cells)
        self._note(thing, replica)
        spoken = {each.__name__: each for each in _SPEAKING} | thing.__globals__
        for name in names:
            if name in thing.__globals__ or (name in spoken and not is_only_of_self(code, name)):
                value = self.of(spoken[name])
                if name in thing.__globals__:
                    scope[name] = value
        replica.__defaults__ = self.of(thing.__defaults__)
        replica.__kwdefaults__ = self.of(thing.__kwdefaults__)
        replica.__dict__.update(self._entries(thing.__dict__))
        replica.__module__, replica.__qualname__ = thing.__module__, thing.__qualname__
        return replica

    def _scope(self, scope: dict[str, Any]) -> dict[str, Any]:
        """Return the replica of global variables, in which those are replaced that are named."""
        if id(scope) not in self._known:
            self._kept.append(scope)
            self._note(scope, Scope(scope))
        return self._known[id(scope)]  # type: ignore[no-any-return]

    def _cell(self, thing: CellType) -> CellType:
        if id(thing) not in self._known:
            self._kept.append(thing)
            replica = self._note(thing, CellType())
            try:
                content = thing.cell_contents
            except ValueError:  # it has no value yet
                return replica  # type: ignore[no-any-return]
            replica.cell_contents = self.of(content)
        return self._known[id(thing)]  # type: ignore[no-any-return]

    def _method(self, thing: MethodType) -> Any:
        return MethodType(self.of(thing.__func__), self.of(thing.__self__))

    def _builtin(self, thing: BuiltinFunctionType) -> Any:
        owner = self.of(thing.__self__)
        return thing if owner is thing.__self__ else getattr(owner, thing.__name__)

    def _partial(self, thing: Any) -> Any:
        arguments = map(self.of, thing.args)
        return partial(self.of(thing.func), *arguments, **self._entries(thing.keywords))

    def _wrapper(self, thing: Any) -> Any:
        return type(thing)(self.of(thing.__func__))

    def _property(self, thing: property) -> Any:
        return property(*map(self.of, (thing.fget, thing.fset, thing.fdel)))

    def _cached(self, thing: Any) -> Any:
        return self.of(thing.__wrapped__)  # keeps nothing but what it would compute again

    # Classes and objects -------------------------------------------------------------------

    def _class(self, thing: Any) -> Any:
        if is_trusted(thing):
            return thing
        hook = getattr(thing.__init_subclass__, "__func__", None)
        if not is_trusted(type(thing)) or (hook is not None and not is_trusted(hook)):
            raise ImpureError(f"it can reach a class that cannot be replicated: {thing.__name__}")
        slots = vars(thing).get("__slots__")
        space: dict[str, Any] = {} if slots is None else {"__slots__": slots}
        space["__module__"] = thing.__module__
        replica = type(thing)(thing.__name__, tuple(map(self.of, thing.__bases__)), space)
        self._note(thing, replica)
        for name, value in list(vars(thing).items()):
            if name not in _OF_EVERY_CLASS and name not in slots_of(thing):
                type.__setattr__(replica, name, self.of(value))
        if isinstance(thing, ABCMeta):
            replica.__abstractmethods__ = thing.__abstractmethods__
        return replica

    def _object(self, thing: Any) -> Any:
        """Replicate an object with attributes; without any, it keeps nothing."""
        has_slots = any(map(slots_of, type(thing).__mro__))
        if not (hasattr(thing, "__dict__") or has_slots):
            return thing
        kind = self.of(type(thing))
        attempt = f"it can reach what cannot be replicated: {type(thing).__name__}"
        if hasattr(kind, "__del__"):  # which may give away what the object holds
            raise ImpureError(attempt)
        try:
            replica = object.__new__(kind)
        except TypeError:
            raise ImpureError(attempt) from None
        return self._with_attributes(thing, self._note(thing, replica))

    def _with_attributes(self, thing: Any, replica: Any) -> Any:
        attributes = getattr(thing, "__dict__", None)
        if attributes is not None:
            passed_over = passed_over_in(thing)
            for name, value in list(attributes.items()):
                replica.__dict__[name] = value if name in passed_over else self.of(value)
        for kind in type(thing).__mro__:
            for name in slots_of(kind):
                if not name.startswith("__") and hasattr(thing, name):
                    object.__setattr__(replica, name, self.of(getattr(thing, name)))
        return replica

    def _entries(self, thing: dict[str, Any]) -> dict[str, Any]:
        return {name: self.of(value) for name, value in list(thing.items())}

    _ways: tuple[tuple[Any, Callable[..., Any]], ...] = (
        (FunctionType, _function),
        (MethodType, _method),
        (BuiltinFunctionType, _builtin),
        (partial, _partial),
        ((staticmethod, classmethod), _wrapper),
        (property, _property),
        (type(cache(len)), _cached),
        (type, _class),
        (np.ndarray, _array),
        ((list, deque), _list),
        (set, _set),
        (dict, _dict),
        ((tuple, frozenset), _tuple),
    )


def _is_sealed(thing: Any) -> bool:
    """Return whether an object is none that a handler would keep something in."""
    if isinstance(thing, System):
        return not isinstance(thing, LeafSystem)
    return isinstance(thing, _SEALED)


def is_trusted(thing: Any) -> bool:
    """Return whether a function, class or module is of a package without relevant state."""
    home = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    return str(home).partition(".")[0] in _TRUSTED


def names_in(code: CodeType) -> list[str]:
    """List the names that are no local ones, in a function and in those that it makes."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [*dict.fromkeys([*code.co_names, *(name for each in inner for name in names_in(each))])]


def is_only_of_self(code: CodeType, name: str) -> bool:
    """Return whether a name is that of an attribute of ``self``, such as ``self.open``, only."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    owners = {
        owner.argval if use.opname.endswith(("_ATTR", "_METHOD")) else None
        for owner, use in pairwise(get_instructions(code))
        if use.opcode in hasname and use.argval == name
    }
    return owners <= {"self"} and all(is_only_of_self(each, name) for each in inner)


def slots_of(kind: type) -> tuple[str, ...]:
    """Return the names of the slots that a class declares."""
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return () if is_trusted(kind) else names


def passed_over_in(owner: Any) -> frozenset[str]:
    """Return the names of attributes that are not looked at: those that every block has."""
    return _of_every_block() if isinstance(owner, LeafSystem) else frozenset()


@cache
def _of_every_block() -> frozenset[str]:
    return frozenset(vars(LeafSystem("block")))
