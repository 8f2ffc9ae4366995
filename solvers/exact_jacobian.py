"""Exact Jacobians of traced equations as functions of time and state.

The derivatives of the expressions are compiled to straight-line Python, one statement per
operation, which fills the nonzero entries of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.store import Store
from flexure.diagrams.values import FloatArray
from flexure.solvers.straight_line import ARITHMETIC_ERRORS, Function, StraightLine
from flexure.solvers.trace import STATE, TIME, Key, number_behind


def state_keys(store: Store) -> list[Key]:
    """Return the keys of all continuous states of a root context in a trace."""
    return [((STATE, 0, 0), k) for k in range(store.layout.num_states)]


class ExactJacobian:
    """Partial derivatives of expressions, as a function of time and state.

    Parameters
    ----------
    store : Store
        The values of the root context; parameters and inputs are read whenever they change, time
        and state are neither read nor changed.
    expressions : sequence
        Expressions of a trace of its system, or numbers.
    keys : sequence
        The inputs of the trace by which they are differentiated.

    Attributes
    ----------
    shape : tuple of int
        Numbers of expressions and of keys.
    """

    def __init__(self, store: Store, expressions: Sequence[Any], keys: Sequence[Key]) -> None:
        found = scalars.jacobian(expressions, keys)
        self.shape = found.shape
        self._place = np.array(found.rows, dtype=np.intp), np.array(found.columns, dtype=np.intp)
        self._entries = found.entries
        self._code = StraightLine(found.entries, store.layout.num_states)
        self._store = store
        self._function: Function | None = None
        self._revision: int | None = None

    def __call__(self, time: float, x: FloatArray) -> FloatArray:
        """Return a new matrix; entries are NaN or infinite where the derivatives are."""
        matrix = np.zeros(self.shape)
        with np.errstate(all="ignore"):
            try:
                matrix[self._place] = self._bound()(time, x)
            except ARITHMETIC_ERRORS:
                matrix[self._place] = self._evaluated(time, x)
        return matrix

    def _bound(self) -> Function:
        """Bind the code to the present parameters, discrete states and inputs."""
        if self._function is None or self._revision != self._store.revision:
            self._function = self._code.bind(self._store)
            self._revision = self._store.revision
        return self._function

    def _evaluated(self, time: float, x: FloatArray) -> FloatArray:
        """Evaluate the entries by NumPy, where Python would raise."""
        values = {
            key: self._number(key, time, x) for key in map(_as_key, scalars.sources(self._entries))
        }
        entries: FloatArray = scalars.evaluate(self._entries, values)
        return entries

    def _number(self, key: Key, time: float, x: FloatArray) -> float:
        (what, _, _), component = key
        if what == TIME:
            return float(time)
        return float(x[component]) if what == STATE else number_behind(self._store, key)


def _as_key(key: Any) -> Key:
    """Tell the type checker what the keys of a trace are."""
    found: Key = key
    return found
