"""Shared objects of threads: locks that are free again after a fork, and objects made once.

Values live in contexts, of which every thread has its own. Objects that contexts of one system
share (its layout, traces, native code) are made when they are first needed, by the first thread
that needs them.
"""

from __future__ import annotations

import _thread
import functools
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

_T = TypeVar("_T")


class Lock(_thread.RLock):  # type: ignore[misc]
    """A lock that one thread may take several times.

    A process that is forked has none of the threads that may hold it then, so that it is open there
    unless the forking thread itself holds it. Copies of what has a lock have a new one.
    """

    def __init__(self) -> None:
        super().__init__()
        _locks.add(self)

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()

    def open_in_child(self) -> None:
        """Open it, unless the only thread that a fork has left holds it."""
        if not self._is_owned():  # type: ignore[attr-defined]
            self._at_fork_reinit()  # type: ignore[attr-defined]


_locks: WeakSet[Lock] = WeakSet()


def in_child(function: Callable[[], object]) -> None:
    """Call a function in every process that is forked from this one, as its first deed."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


@in_child
def _open_locks() -> None:
    for lock in list(_locks):
        lock.open_in_child()


class Once(Generic[_T]):
    """A function that makes its result once for each choice of arguments, whichever thread asks."""

    def __init__(self, make: Callable[..., _T]) -> None:
        self._make = make
        self._lock = Lock()
        self._known: dict[tuple[Any, ...], _T] = {}
        functools.update_wrapper(self, make)

    def __call__(self, *arguments: Any) -> _T:
        """Return what was made, or make it."""
        if arguments not in self._known:
            with self._lock:
                if arguments not in self._known:
                    self._known[arguments] = self._make(*arguments)
        return self._known[arguments]

    def cache_clear(self) -> None:
        """Forget what was made."""
        self._known.clear()


def once(make: Callable[..., _T]) -> Once[_T]:
    """Let a function make its result once for each choice of arguments."""
    return Once(make)


class Kept:
    """A cache of results with a limited size, from which newer results displace older ones.

    The caller states the size of a result, in any unit. The least recently used result is removed
    first, and a result larger than the cache is not stored. A copy is empty. ``room`` limits the
    sum of all sizes.
    """

    def __init__(self, room: int) -> None:
        self.lock = Lock()  # to be taken by who looks for something and makes it if it is not there
        self._room = room
        self._left = room
        self._things: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def find(self, key: Hashable) -> Any:
        """Return what is kept under a key, or None."""
        with self.lock:
            if key not in self._things:
                return None
            self._things.move_to_end(key)
            return self._things[key][0]

    def put(self, key: Hashable, thing: Any, size: int) -> None:
        """Keep something, in place of what was under its key."""
        with self.lock:
            self._left += self._things.pop(key, (None, 0))[1]
            if size > self._room:
                return
            while self._left < size and self._things:
                self._left += self._things.popitem(last=False)[1][1]
            self._left -= size
            self._things[key] = thing, size

    def __reduce__(self) -> tuple[type[Kept], tuple[int]]:
        return Kept, (self._room,)


class cached_property(functools.cached_property[_T]):  # noqa: N801 - it is read as a decorator
    """A property that is computed when it is first asked for, also in a process that is forked.

    Before Python 3.12 that of functools is computed under a lock, which a fork amid the work of
    another thread would leave closed.
    """

    def __init__(self, func: Callable[[Any], _T]) -> None:
        super().__init__(func)
        self.lock = Lock()
