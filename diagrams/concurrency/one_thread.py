"""Linear algebra in one thread while an analysis runs.

An analysis solves hundreds of small systems of equations, one after the other. OpenBLAS shares each
of them among threads, which wait for each other more than they compute: a load path of a hundred
segments takes five times as long on two cores, and more beside other processes. So the library is
told to take one thread, and gets back its number when the last analysis of the process has ended.
Where another library computes, or none can be told, nothing is done.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from flexure.diagrams.concurrency.threads import Lock

#: Modules that are linked to a library, each perhaps to one of its own.
_LINKED = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
#: What its functions may be called around their names.
_SPELLINGS = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))

_P = ParamSpec("_P")
_T = TypeVar("_T")


@cache
def _functions_behind(path: str) -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return what asks for the number of threads, and what sets it, in a library behind a file."""
    try:
        linked = ctypes.CDLL(path)
    except OSError:
        return None
    for before, behind in _SPELLINGS:
        get = getattr(linked, f"{before}openblas_get_num_threads{behind}", None)
        put = getattr(linked, f"{before}openblas_set_num_threads{behind}", None)
        if get is not None and put is not None:
            get.restype, put.argtypes, put.restype = ctypes.c_int, [ctypes.c_int], None
            return get, put
    return None


def _libraries() -> Iterator[tuple[Callable[[], int], Callable[[int], None]]]:
    """Yield these functions of all libraries that are in use."""
    for name in _LINKED:
        module = sys.modules.get(name)
        found = _functions_behind(str(module.__file__)) if module is not None else None
        if found is not None:
            yield found


class _Running:
    """How many analyses run in the process, and what the libraries get back in the end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._before: list[tuple[Callable[[int], None], int]] = []

    def begin(self) -> None:
        """Take one thread with the first of them."""
        with self._lock:
            if self._count == 0:
                self._before = [(put, get()) for get, put in _libraries()]
                for put, _ in self._before:
                    put(1)
            self._count += 1

    def end(self) -> None:
        """Give back what was there before the first, with the last."""
        with self._lock:
            self._count -= 1
            if self._count == 0:
                for put, number in self._before:
                    put(number)


_running = _Running()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread inside of this, in all threads of Python."""
    _running.begin()
    try:
        yield
    finally:
        _running.end()


def in_one_thread(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function compute in one thread."""

    @wraps(function)
    def run(*args: _P.args, **options: _P.kwargs) -> _T:
        with one_thread():
            return function(*args, **options)

    return run
