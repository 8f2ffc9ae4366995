"""Forks while other threads work: they wait for operations that the child could not finish.

A forked process has the memory of its parent as it is at that moment, and one thread only. Changes
by another thread stay incomplete, and the locks that it holds stay locked. Our own locks are opened
by `flexure.diagrams.concurrency.threads`, since what they guard is put into its place when it is
complete. Imports, and libraries such as LLVM, have no way to begin anew: so a fork waits until no
thread is inside of them, and none enters until the fork is done.
"""

from __future__ import annotations

import _imp
import _thread
import importlib
import logging  # noqa: F401, it must not be imported for the first time while a process forks
import os
import sys
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import Any

from flexure.diagrams.concurrency.deferred_interrupt import DeferredInterrupt
from flexure.diagrams.concurrency.threads import Lock, in_child

#: Held by the thread that is inside of a library whose state must not be copied half changed.
no_fork = Lock()

#: What Flexure imports on demand; none of these packages waits for a user's code.
_PACKAGES = frozenset({"flexure", "llvmlite", "matplotlib", "networkx", "numpy", "scipy"})


class _Fork:
    """The locks held while a process forks, and whether an interrupt is pending.

    A handler of a signal may fork amid a fork, so there may be several, the last one on top.
    """

    def __init__(self) -> None:
        self._held: list[tuple[ExitStack, DeferredInterrupt]] = []

    def begin(self) -> None:
        """Wait until nothing is half changed, and keep it so."""
        # An interruption would let the fork go on without the locks. Every thread that waits for
        # them has a handler of its own to put back; only who holds them writes the list.
        patience = DeferredInterrupt()
        with patience, ExitStack() as held:
            held.enter_context(no_fork)
            lock: Any = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
            with suppress(AttributeError):  # for those who use LLVM on their own
                held.enter_context(lock._lock)
            _stop_imports()
            held.callback(_imp.release_lock)
            self._held.append((held.pop_all(), patience))

    def end(self) -> None:
        """Go on, in the parent and in the child."""
        if self._held:
            held, _ = self._held.pop()
            held.close()

    def deliver(self) -> None:
        """Go on in the parent, and interrupt it if an interrupt is pending."""
        interrupted = bool(self._held) and self._held[-1][1].interrupted
        self.end()
        if interrupted:  # by another thread: an exception in here would only be printed
            _thread.start_new_thread(_thread.interrupt_main, ())


def _stop_imports() -> None:
    """Wait for other threads that import something, and let none begin until a lock is released."""
    own: set[str] = set()
    while True:
        _imp.acquire_lock()
        waiting = _being_imported() - own
        if not waiting:
            return
        _imp.release_lock()
        for name in waiting:
            with suppress(Exception):  # the other thread is told
                import_module(name)  # returns when it is there; at once, if this thread imports it
        own |= waiting & _being_imported()


def _being_imported() -> set[str]:
    """Return the names of the modules that are being found or imported."""
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    return {name for name in list(locks) if name.partition(".")[0] in _PACKAGES}


_fork = _Fork()
in_child(_fork.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_fork.begin, after_in_parent=_fork.deliver)
