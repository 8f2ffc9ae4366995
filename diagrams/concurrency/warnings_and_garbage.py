"""Suppresses warnings and garbage collection, as a whole or of what is old, while work goes on.

``warnings.catch_warnings`` exchanges the filters of the whole process: of threads that use it at
once, one puts back what another has put there for a while, and it stays.
"""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from flexure.diagrams.concurrency.threads import Lock, in_child


class Silence:
    """Ignores the warnings of one thread inside of ``with`` blocks.

    The filter that it adds stays. It is for a category of warnings to which every warning belongs
    that is given inside of a block, and no other. ``message`` is a regular expression for the
    beginnings of the warnings that are meant; all when empty.
    """

    def __init__(self, message: str = "") -> None:
        here = self._here = threading.local()

        class Kind(type):
            def __subclasscheck__(cls, category: type) -> bool:
                return getattr(here, "depth", 0) > 0

        class Silenced(Warning, metaclass=Kind):
            pass

        self._message, self._category = message, Silenced

    def __enter__(self) -> None:
        if not warnings.filters or warnings.filters[0][2] is not self._category:
            warnings.filterwarnings("ignore", self._message, self._category)
        self._here.depth = getattr(self._here, "depth", 0) + 1

    def __exit__(self, *_: object) -> None:
        self._here.depth -= 1


class _Litter:
    """Lets garbage lie inside of ``with`` blocks, whichever threads are in them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._depth = 0
        self._collecting = False
        in_child(self._collect_again)

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                self._collecting = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth and self._collecting:
                gc.enable()

    def _collect_again(self) -> None:
        """Leave the blocks of threads that a forked process does not have."""
        if self._depth and self._collecting:
            gc.enable()
        self._depth = 0


class Elders:
    """Lets collections skip what is older than the first of several ``with`` blocks, until all end.

    Where others have told them to skip something, this does nothing: that would be forgotten.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._depth = 0
        self._is_free = True

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1 and self._is_free:
                self._is_free = not gc.get_freeze_count()  # which takes long where there are many
                if self._is_free:
                    gc.freeze()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth and self._is_free:
                gc.unfreeze()


_silence, _litter = Silence(), _Litter()


@contextmanager
def quietly() -> Iterator[None]:
    """Trace without warnings, and without collecting garbage among the many small objects."""
    with _silence, _litter, np.errstate(all="ignore"):
        yield
