"""Cache of traced equations: which equations are stored, where, and for how long.

A trace has symbols for time, states, parameters, discrete values and inputs, so that it is valid
for all their values, and so are its derivatives. Results that depend on the trace alone are stored;
results that depend on values are made for each call:

=====================================  ============================  =============================
What                                   Kept by                       As long as
=====================================  ============================  =============================
layout with cut wires                  layout of the system, `kept`  the system lives, and there is
expressions, and their derivatives as  layout of the system, `kept`  room: the latest are kept
code: `TracedEquations`, `SharedCode`
numbers that are bound to that code    the call                      the call, or until one changes
=====================================  ============================  =============================

A question is what is read (rates, outputs, cuts, updates), and by what it is differentiated. Its
trace is made under a lock that all threads share, is never changed, and holds no values.

Equations ought to be pure, and attributes of blocks to stay what they are. Not all do, so that a
trace is used again only if

- no attribute of a block has become another one, nor has what is in lists, arrays, functions and
  objects there (how far that is read is in `structural_key`), and
- it gives the numbers of the equations at the values at hand, see
  `flexure.solvers.tracing.trace_check`.

Otherwise the equations are traced anew. A change that no attribute shows, such as that of a global
variable, is noticed by the numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.native.sharing.families.structural_key import is_plain, structural_key
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, JacobianCode, numbers_behind
from flexure.solvers.tracing.straight_line import (
    ARITHMETIC_ERRORS,
    Function,
    StraightLine,
    following,
)
from flexure.solvers.tracing.trace import SymbolicStore, trace


class Seen:
    """The attributes of a block that equations can read, beside the values of a context."""

    __slots__ = ("_attributes", "_block", "_is_plain", "_key")

    def __init__(self, block: LeafSystem) -> None:
        self._block = block
        self._attributes = list(vars(block).values())  # which live on, so that no other is taken
        self._is_plain = is_plain(block)
        self._key = structural_key(block)

    def is_same(self) -> bool:
        """Return whether that is still the same."""
        if self._is_plain:
            now = vars(self._block).values()
            if len(now) == len(self._attributes) and all(map(is_, now, self._attributes)):
                return True
        return self._key == structural_key(self._block)


class TracedNumbers:
    """Expressions of a trace with code that computes them, for all contexts of a system."""

    def __init__(self, expressions: list[Any], num_states: int) -> None:
        self.expressions = expressions
        self._num_states = num_states

    @cached_property
    def sources(self) -> frozenset[Key]:
        """The values that the expressions read."""
        return frozenset(cast("set[Key]", scalars.sources(self.expressions)))

    def evaluated(
        self, store: Store, time: float | None = None, x: FloatArray | None = None
    ) -> FloatArray:
        """Return the numbers at the values of a context, or at other times and states, by NumPy."""
        time, x = store.time if time is None else time, store.x if x is None else x
        numbers = numbers_behind(store, self.expressions, time, x)
        with np.errstate(all="ignore"):
            return np.array(scalars.evaluate(self.expressions, numbers), dtype=float)

    def computed(self, store: Store, time: float | None = None) -> FloatArray:
        """Return these numbers by code, which is made the first time."""
        return self.bound(store)(store.time if time is None else time, store.x)

    def bound(self, store: Store) -> Function:
        """Return them as a function of time and states, by code with the present other values."""
        by_code = following(lambda: self._code, store)

        def run(time: float, x: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                try:
                    return by_code(time, x)
                except ARITHMETIC_ERRORS:
                    return self.evaluated(store, time, x)

        return run

    @cached_property
    def _code(self) -> StraightLine:
        with quietly():
            return StraightLine(self.expressions, self._num_states)


class TracedEquations(TracedNumbers):
    """Expressions of a trace with the code of their derivatives, for all contexts of a system.

    The layout is not kept. The expressions, and those ``beyond``, which are not computed, are
    differentiated by ``keys``, inputs of the trace; ``more`` is kept with them, and ``often`` is
    that of `JacobianCode`.
    """

    def __init__(
        self,
        layout: Layout,
        expressions: list[Any],
        keys: Sequence[Key],
        *,
        beyond: Sequence[Any] = (),
        more: Any = None,
        often: bool = False,
    ) -> None:
        super().__init__(expressions, layout.num_states)
        self.more = more
        # The derivatives.
        parts = [*expressions, *beyond]
        self.slopes = JacobianCode(parts, keys, self._num_states, often=often)
        symbols = [each for each in parts if isinstance(each, scalars.Symbol)]
        # Of the trace, in nodes; what is known of a block counts as ten.
        self.size = (len(symbols[0].graph.nodes) if symbols else 0) + 10 * len(layout.leaves)
        self._seen = [Seen(leaf) for leaf in layout.leaves]

    def fits(self) -> bool:
        """Return whether the blocks are what they were when they were traced."""
        return all(seen.is_same() for seen in self._seen)


class Keepable(Protocol):
    """Equations that can be kept: how large they are, and whether they are still those."""

    size: int

    def fits(self) -> bool:
        """Return whether the blocks are what they were when they were traced."""


_Kept = TypeVar("_Kept", bound=Keepable)
_T = TypeVar("_T")


def kept_equations(
    layout: Layout,
    question: Hashable,
    make: Callable[[], _Kept],
    agrees: Callable[[_Kept], bool] = lambda _: True,
) -> tuple[_Kept, bool]:
    """Return traced equations that are kept, or make them.

    The question states what is read and by what it is differentiated. ``agrees(equations)`` tells
    whether kept ones give the numbers of the equations; the second result, whether they were kept
    and agree. Raises TraceError if they cannot be traced, which is tried again the next time.
    """
    kept, key = layout.kept, (question, *layout.cuts)

    def remade() -> tuple[_Kept, bool]:
        with quietly():
            made = make()
        kept.put(key, made, made.size)
        return made, False

    with kept.lock:
        found: _Kept | None = kept.find(key)
        if found is None:
            return remade()
    return (found, True) if found.fits() and agrees(found) else remade()


def kept_code(layout: Layout, question: Hashable, make: Callable[[], _T]) -> _T:
    """Return what is made of a trace, which is kept as `kept_equations` says."""
    found, _ = kept_equations(
        layout, question, lambda: TracedEquations(layout, [], [], more=make())
    )
    made: _T = found.more
    return made


def kept_jacobian(
    store: Store,
    question: Hashable,
    read: Callable[[SymbolicStore], list[Any]],
    keys: Sequence[Key],
) -> ExactJacobian:
    """Return the derivatives by ``keys`` of what is read in a trace, which is kept as well."""
    layout = store.layout
    found, _ = kept_equations(
        layout, (question, *keys), lambda: TracedEquations(layout, trace(layout, read), keys)
    )
    return ExactJacobian(store, found.slopes)
