"""Preconditions of native code, and their messages.

A reason is the end of a sentence, after "no native code, because".
"""

from __future__ import annotations

from typing import Any

from flexure.diagrams.checks.errors import FlexureError, TraceError
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.systems.layout import Layout
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.native.llvm.library import available
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.programs.programs import program_of


class UnsuitableError(Exception):
    """Why native code cannot do something."""

    @classmethod
    def because(cls, error: FlexureError) -> UnsuitableError:
        """Make a reason of an attempt that failed."""
        return cls(error.attempt[0].lower() + error.attempt[1:])


def require_native(layout: Layout) -> None:
    """Raise `UnsuitableError` unless a root system may have native code, could it be traced."""
    if not available():
        raise UnsuitableError("the extra flexure[fast] is not installed")
    if layout.num_states == 0:
        raise UnsuitableError("there is no continuous state")


def native_program(store: Store, driven: frozenset[int] = frozenset()) -> Program:
    """Return the native code that serves a context, some inputs of which may change with time."""
    require_native(store.layout)
    try:
        return program_of(store, driven)
    except TraceError as error:
        raise UnsuitableError.because(error) from error


def has_loop(method: Any) -> bool:
    """Return whether a method, which may be a class of another package, has a native loop."""
    return isinstance(method, str) and method_name(method) in METHODS
