"""Times at which equations break, as where a source jumps, and by how much they move with numbers.

Where the rates of the states are f⁻ before a time t of a break and f⁺ behind it, the states behind
it, compared at one time, move by ``(f⁻ - f⁺) δt``. Where several blocks break at once and their
times move differently, each of them has a part of the gap. It shows where the break of that block
is moved a little beyond the others, and has to be the same whether it comes first or last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.symbolic_values import DISCRETE, PARAMETER
from flexure.solvers.analysis.equations.equations import Variable
from flexure.solvers.analysis.equations.kept_equations import kept_jacobian
from flexure.solvers.native.programs.system_trace import break_time
from flexure.solvers.tracing.exact_jacobian import ExactJacobian
from flexure.solvers.tracing.trace import SymbolicStore

_ALIKE = 1e-9  # relative difference of rates that is rounding,
_SPACINGS = 4.0  # and that of times
_APART = 1e-9  # by how much breaks are moved apart, as a part of the time, or in seconds,
_PART = 1e-6  # and the relative difference that this may make

#: The derivatives of the states at a time, with the values of the context.
Rates = Callable[[float, FloatArray], FloatArray]


class BreakSlopes:
    """The break times of a context.

    Numbers are parameters, fixed inputs and discrete values.
    """

    def __init__(self, context: Context, variables: Sequence[Variable], attempt: str) -> None:
        self._context, self._variables, self._attempt = context, variables, attempt
        self._keys = [key for variable in variables for key in variable.keys]
        self._leaves = [leaf for leaf in context.leaves() if leaf.system.has_break_times]

    def next(self) -> float:
        """Return the next break time in seconds, or infinity."""
        return min(self._times(), default=math.inf)

    def _times(self) -> list[float]:
        return [float(leaf.system.calc_next_break_time(leaf)) for leaf in self._leaves]

    def ways(self, begin: float, time: float) -> list[FloatArray]:
        """Return the derivatives of a break time by all numbers, for each way in which it moves.

        There is no other break between ``begin`` and the break time.
        """
        found: list[FloatArray] = []
        if self._keys:
            store, close = self._context.store, _SPACINGS * math.ulp(time)
            now = store.time
            store.set_motion(begin, store.x)
            rows = [k for k, each in enumerate(self._times()) if abs(each - time) <= close]
            for row in self._exact(begin, store.x)[rows]:
                if not any(np.allclose(row, other, rtol=_ALIKE, atol=0.0) for other in found):
                    found.append(row)
            store.set_motion(now, store.x)
        return found or [np.zeros(len(self._keys))]

    def changes(self, rates: Rates, begin: float, time: float, x: FloatArray) -> FloatArray | None:
        """Return the derivatives of states behind a break by all numbers, as far as it moves.

        They have the shape (n, m); None if all are zero. The context is at that time then. Raises
        EvaluationError when several blocks break there, and their order matters.
        """
        gap = gap_of(rates, time, x)
        ways = [] if gap is None else self.ways(begin, time)
        if gap is None or not np.any(ways):
            return None
        gaps = [gap] if len(ways) == 1 else [self._part(way, ways, rates, time, x) for way in ways]
        self._context.store.set_motion(time, freeze(x.copy()))
        return np.asarray(np.transpose(gaps) @ np.array(ways))

    def _part(
        self, way: FloatArray, ways: list[FloatArray], rates: Rates, time: float, x: FloatArray
    ) -> FloatArray:
        """Return the gap of rates at those breaks that move in one of several ways."""
        if not np.any(way):
            return np.zeros(len(x))
        own = np.where(np.count_nonzero(ways, axis=0) == 1, way, 0.0)
        j = int(np.argmax(np.abs(own)))
        before = math.nextafter(time, -math.inf)
        if own[j] != 0.0:
            step = _APART * max(1.0, abs(time)) / own[j]
            last = self._moved(j, step, rates, time, x) - rates(time, x)
            first = rates(before, x) - self._moved(j, -step, rates, before, x)
            if np.allclose(first, last, _PART, _PART * np.max(np.abs([first, last]))):
                return last
        raise EvaluationError(
            f"{self._attempt} at t = {time:.9g} s",
            expected="jumps of the equations one after the other",
            found="several at once, whose order matters",
            remedy="Take differences of two simulations instead",
        )

    def _moved(
        self, number: int, step: float, rates: Rates, time: float, x: FloatArray
    ) -> FloatArray:
        """Return rates with another value of one of the numbers."""
        store = self._context.store
        for variable in self._variables:
            if number < len(variable.keys):
                break
            number -= len(variable.keys)
        numbers = variable.read(store)
        moved = numbers.copy()
        moved[number] += step
        variable.write(store, moved)
        found = rates(time, x)
        variable.write(store, numbers)
        return found

    @cached_property
    def _exact(self) -> ExactJacobian:
        """The derivatives of the next break time of each block."""

        def read(store: SymbolicStore) -> list[object]:
            return [self._read(store, store.leaves[leaf.position]) for leaf in self._leaves]

        return kept_jacobian(self._context.store, "break times", read, self._keys)

    def _read(self, store: SymbolicStore, leaf: LeafContext) -> object:
        """Trace the break time of a block, unless it depends on none of the numbers."""
        try:
            return break_time(store, leaf)
        except Exception:
            own = (PARAMETER, leaf.position), (DISCRETE, leaf.position)
            if any(key[0][:2] in own for key in self._keys):
                raise
            return math.inf


def gap_of(rates: Rates, time: float, x: FloatArray) -> FloatArray | None:
    """Return rates just before a time less those at it; None where they differ by rounding only."""
    before, after = rates(math.nextafter(time, -math.inf), x), rates(time, x)
    size = np.maximum(np.abs(before), np.abs(after))
    gap = before - after
    if np.all(np.abs(gap) <= _ALIKE * size + 1e-3 * _ALIKE * np.max(size, initial=0.0)):
        return None
    return gap
