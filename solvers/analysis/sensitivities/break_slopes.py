"""Times at which equations break, as where a source jumps, and by how much they move with numbers.

Where the rates of the states are f⁻ before a time t of a break and f⁺ behind it, the states behind
it, compared at one time, move by ``(f⁻ - f⁺) δt``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, quoted
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.kept_equations import TracedEquations, kept_equations
from flexure.solvers.native.programs.system_trace import break_time
from flexure.solvers.tracing.exact_jacobian import ExactJacobian
from flexure.solvers.tracing.trace import DISCRETE, PARAMETER, Key, SymbolicStore, trace

_ALIKE = 1e-9  # relative difference of rates that is rounding,
_SPACINGS = 4.0  # and that of times

#: The derivatives of the states at a time, with the values of the context.
Rates = Callable[[float, FloatArray], FloatArray]


class BreakSlopes:
    """The break times of a context.

    Parameters
    ----------
    context : Context
        A root context; `slopes` changes its time.
    keys : sequence of Key
        Parameters, fixed inputs and discrete values.
    attempt : str
        Beginning of messages.
    """

    def __init__(self, context: Context, keys: Sequence[Key], attempt: str) -> None:
        self._context, self._keys, self._attempt = context, keys, attempt
        self._leaves = [leaf for leaf in context.leaves() if leaf.system.has_break_times]

    def next(self) -> float:
        """Return the next break time in seconds, or infinity."""
        return min(self._times(), default=math.inf)

    def _times(self) -> list[float]:
        return [float(leaf.system.calc_next_break_time(leaf)) for leaf in self._leaves]

    def slopes(self, begin: float, time: float) -> FloatArray:
        """Return the derivatives of a break time by all numbers.

        Parameters
        ----------
        begin : float
            An earlier time, from which on there is no other break, in seconds.
        time : float
            The break time.

        Raises
        ------
        EvaluationError
            When several blocks break there, and their times move differently.
        """
        if not self._keys:
            return np.zeros(0)
        store = self._context.store
        store.set_motion(begin, store.x)
        close = _SPACINGS * math.ulp(time)
        rows = [k for k, each in enumerate(self._times()) if abs(each - time) <= close]
        found = self._exact(begin, store.x)[rows]
        if any(not np.allclose(found[0], row, rtol=_ALIKE, atol=0.0) for row in found):
            raise EvaluationError(
                f"{self._attempt} at t = {time:.9g} s",
                expected="jumps of the equations one after the other",
                found=f"{quoted(self._leaves[k].system.path for k in rows)}, at once",
                remedy="Take differences of two simulations instead",
            )
        return found[0] if rows else np.zeros(len(self._keys))

    def moving_gap(
        self, rates: Rates, begin: float, time: float, x: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the gap of the rates at a time, and its `slopes`; None without one that moves."""
        gap = gap_of(rates, time, x)
        if gap is None:
            return None
        slopes = self.slopes(begin, time)
        return (gap, slopes) if np.any(slopes) else None

    @cached_property
    def _exact(self) -> ExactJacobian:
        """The derivatives of the next break time of each block."""
        layout = self._context.store.layout

        def read(store: SymbolicStore) -> list[object]:
            return [self._read(store, store.leaves[leaf.position]) for leaf in self._leaves]

        def made() -> TracedEquations:
            return TracedEquations(layout, trace(layout, read), self._keys)

        found, _ = kept_equations(layout, ("break times", *self._keys), made)
        return ExactJacobian(self._context.store, found.slopes)

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
