"""Exact Jacobians of traced equations as functions of time and state.

The derivatives of the expressions are compiled to straight-line Python, a few operations per
statement, which fills the nonzero entries of the matrix; the first few matrices, for which that
does not pay, are evaluated by NumPy, with the same bits. Terms with a factor that is constantly
zero are left out before and after; in mechanisms these are most terms.

The code, a `JacobianCode`, holds no values: it serves all contexts of a system. An `ExactJacobian`
is that code with the values of one context.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, TIME, Key
from flexure.solvers.tracing.straight_line import ARITHMETIC_ERRORS, StraightLine, following
from flexure.solvers.tracing.trace import FOREIGN, number_behind

if TYPE_CHECKING:
    from scipy.sparse import csc_array

#: Matrices that NumPy evaluates, entry by entry, before code is written, which takes as long.
_FEW = 4
_LARGE = 30  # states, and
_FULL = 0.2  # share of entries; measured with Radau and BDF on chains of masses


def state_keys(store: Store) -> list[Key]:
    """Return the keys of all continuous states of a root context in a trace."""
    return [((STATE, 0, 0), k) for k in range(store.layout.num_states)]


def numbers_behind(
    store: Store, expressions: Sequence[Any], time: float, x: FloatArray
) -> dict[Key, float]:
    """Return the numbers that the inputs of expressions stand for, at a time and state."""
    return numbers_of(store, cast("set[Key]", scalars.sources(expressions)), time, x)


def numbers_of(store: Store, keys: Iterable[Key], time: float, x: FloatArray) -> dict[Key, float]:
    """Return the numbers that inputs of a trace stand for, at a time and state."""
    numbers: dict[Key, float] = {}
    for key in keys:
        (what, _, _), component = key
        if what == TIME:
            numbers[key] = float(time)
        elif what != FOREIGN:  # which is no value of a context
            numbers[key] = float(x[component]) if what == STATE else number_behind(store, key)
    return numbers


def compressed(matrix: FloatArray) -> csc_array:
    """Return a matrix in the form that `ExactJacobian.sparse` has."""
    from scipy.sparse import csc_array

    return csc_array(matrix)


class JacobianCode:
    """Partial derivatives of expressions by inputs of a trace, for all contexts of their system.

    ``often`` is whether they will be evaluated so often that code pays from the first time on.
    """

    def __init__(
        self,
        expressions: Sequence[Any],
        keys: Sequence[Key],
        num_states: int,
        *,
        often: bool = False,
    ) -> None:
        found = scalars.jacobian(simplify(expressions), keys)
        self.shape = found.shape  # numbers of expressions and of keys
        # Rows and columns of what is not always zero.
        self.place = np.array(found.rows, dtype=np.intp), np.array(found.columns, dtype=np.intp)
        self.entries = simplify(found.entries)  # expressions of that, or numbers
        self.asked = _FEW if often else 0  # how often they were evaluated
        self._num_states = num_states

    @cached_property
    def code(self) -> StraightLine:
        """Code of the entries, which is made when they are asked for often enough."""
        with quietly():
            return StraightLine(self.entries, self._num_states)

    @cached_property
    def operations(self) -> int:
        """Number of operations of the entries."""
        return sum(len(node.args) > 0 for node in reachable(self.entries))

    @cached_property
    def sources(self) -> frozenset[Key]:
        """The values that the entries read."""
        return frozenset(cast("set[Key]", scalars.sources(self.entries)))

    @cached_property
    def depends_on_time(self) -> bool:
        """Whether the entries do."""
        return any(key[0][0] == TIME for key in self.sources)


class ExactJacobian:
    """Partial derivatives of expressions, as a function of time and state.

    Parameters and inputs of the store are read whenever they change; its time and state are neither
    read nor changed.
    """

    def __init__(self, store: Store, code: JacobianCode) -> None:
        self.shape = code.shape  # numbers of expressions and of keys
        self._code = code
        self._store = store
        self._by_code = following(lambda: code.code, store)

    @property
    def operations(self) -> int:
        """Number of operations of the entries."""
        return self._code.operations

    def __call__(self, time: float, x: FloatArray) -> FloatArray:
        """Return the matrix, a new one."""
        return self.dense(self.entries(time, x))

    def entries(self, time: float, x: FloatArray) -> FloatArray:
        """Return what is not always zero; NaN or infinite where the derivatives are."""
        self._code.asked += 1
        if self._code.asked <= _FEW:
            return self._evaluated(time, x)
        with np.errstate(all="ignore"):
            try:
                return self._by_code(time, x)
            except ARITHMETIC_ERRORS:
                return self._evaluated(time, x)

    def dense(self, entries: FloatArray) -> FloatArray:
        """Return the matrix with these entries."""
        matrix = np.zeros(self.shape)
        matrix[self._code.place] = entries
        return matrix

    def sparse(self, entries: FloatArray) -> csc_array:
        """Return the matrix with these entries, in SciPy's compressed form."""
        from scipy.sparse import csc_array

        return csc_array((entries, self._code.place), shape=self.shape)

    @property
    def depends_on_time(self) -> bool:
        """Whether the entries do, while states and all other values stay what they are."""
        return self._code.depends_on_time

    @property
    def is_sparse(self) -> bool:
        """Whether the matrix is so large and so empty that sparse factorizations are faster."""
        return min(self.shape) >= _LARGE and len(self._code.entries) < _FULL * math.prod(self.shape)

    def _evaluated(self, time: float, x: FloatArray) -> FloatArray:
        """Evaluate the entries by NumPy: the first times, and where Python would raise."""
        numbers = numbers_of(self._store, self._code.sources, time, x)
        entries: FloatArray = scalars.evaluate(self._code.entries, numbers)
        return entries
