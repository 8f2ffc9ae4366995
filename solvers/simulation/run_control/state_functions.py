"""Deviations from constraints, corrections and witness functions, as functions of time and state.

They are interpreted at first, and straight-line code when that pays, as the derivatives are.
Functions that cannot be traced stay interpreted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.tracing.compile_limits import STATEMENTS, refuse_beyond
from flexure.solvers.tracing.straight_line import (
    ARITHMETIC_ERRORS,
    Function,
    StraightLine,
    following,
)
from flexure.solvers.tracing.trace import trace
from flexure.solvers.tracing.trace_check import agree

_WORTHWHILE = 50  # evaluations after which a trace pays


class Reading:
    """What is read from a root context, as a function of time and state.

    Evaluation by interpretation moves the values of the store. ``read`` reads a vector from a
    store, of numbers or symbols. Where it is ``compiled``, it may be traced: at any evaluation if
    ``by_itself``, which changes later values by rounding errors, or by `compile_if_due`.
    """

    def __init__(
        self, store: Store, read: Callable[[Store], Any], *, compiled: bool, by_itself: bool = True
    ) -> None:
        self._store = store
        self._read = read
        self._left: float = _WORTHWHILE if compiled else math.inf
        self._by_itself = by_itself
        self._function: Function | None = None

    def __call__(self, time: float, x: FloatArray) -> FloatArray:
        """Return the vector, a fresh one."""
        if self._function is not None:
            try:
                return self._function(time, x)
            except ARITHMETIC_ERRORS:
                return self._interpreted(time, x)
        value = self._interpreted(time, x)
        self._left -= 1
        if self._left == 0 and self._by_itself:
            self._compile(time, x, value)
        return value

    def compile_if_due(self) -> bool:
        """Compile after enough evaluations, once; tell whether that was tried."""
        if self._left > 0 or self._function is not None:
            return False
        self._left = math.inf
        time, x = self._store.time, self._store.x
        self._compile(time, x, self._interpreted(time, x))
        return True

    def prepare(self) -> None:
        """Compile at the next evaluation, for who cannot wait later."""
        self._left = min(self._left, 1)

    def _interpreted(self, time: float, x: FloatArray) -> FloatArray:
        if time != self._store.time or x is not self._store.x:
            self._store.set_motion(float(time), freeze(np.array(x)))
        return np.array(self._read(self._store), dtype=float)

    def _compile(self, time: float, x: FloatArray, expected: FloatArray) -> None:
        """Compile, and keep the code if it gives the same numbers here."""
        try:
            expressions = trace(self._store.layout, lambda store: list(self._read(store)))
            code = StraightLine(expressions, self._store.layout.num_states)
            refuse_beyond(STATEMENTS, code.operations, "equations")
            function = following(lambda: code, self._store)
            if agree(function(time, x), expected):
                self._function = function
        except (TraceError, *ARITHMETIC_ERRORS):
            pass  # interpretation goes on, and says what is wrong where something is
