"""Forks amid the work of other threads: they wait until none is inside of LLVM.

A forked process has the memory of its parent as it is at that moment, and one thread only. What
another thread was about to change stays half changed, and the locks that it holds stay closed. Our
own locks are opened by `flexure.diagrams.threads`, since what they guard is put into its place when
it is complete. LLVM has more of both, and no way to begin anew.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from typing import Any

from flexure.diagrams.threads import Lock, in_child
from flexure.solvers.native.patience import Patience

#: Held by the thread that is inside of LLVM, which works for one at a time.
LLVM = Lock()


class _Fork:
    """What is held while a process forks."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._patience = Patience()  # an interruption would let the fork go on without the locks

    def begin(self) -> None:
        """Wait until nothing is half changed, and keep it so."""
        with self._patience, ExitStack() as held:
            held.enter_context(LLVM)
            lock: Any = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
            with suppress(AttributeError):  # for those who use LLVM on their own
                held.enter_context(lock._lock)
            self._held = held.pop_all()

    def end(self) -> None:
        """Go on, in the parent and in the child."""
        self._held.pop_all().close()

    def deliver(self) -> None:
        """Interrupt the parent, if somebody wanted to."""
        self.end()
        self._patience.deliver()


_fork = _Fork()
in_child(_fork.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_fork.begin, after_in_parent=_fork.deliver)

__all__ = ["LLVM"]
