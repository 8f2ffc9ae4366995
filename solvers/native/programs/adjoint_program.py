"""Products of weights with the derivatives of rates and outputs, by reverse accumulation.

For weights w and equations f(t, x, p), reverse accumulation of the one number wᵀ f gives
``wᵀ ∂f/∂x`` and ``wᵀ ∂f/∂p`` for all numbers p at a few times the cost of f. The functions read the
weights behind the states, as further states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.differentiation import gradient
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import may_jump
from flexure.diagrams.scalars.expressions.solutions import is_zero
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, Key
from flexure.solvers.native.llvm.library import address_of
from flexure.solvers.native.programs.program import native_function
from flexure.solvers.native.programs.sensitivity_program import OwnFunctions
from flexure.solvers.tracing.straight_line import StraightLine
from flexure.solvers.tracing.trace import SymbolicStore, trace

#: Returns products at a time, for states and weights.
Product = Callable[[float, FloatArray], FloatArray]


class AdjointEquations:
    """Expressions of the products, for all contexts of a system.

    ``read(store)`` returns rates, and behind them outputs; ``keys`` are those of the numbers p,
    discrete values among them. ``pulled`` are products with the derivatives of rates, by states and
    then by the numbers, and behind them the number that was differentiated; ``shown`` the same of
    the outputs, as far as the products are not always zero. ``places`` says which these are, and
    ``reads`` which states they read. ``may_jump`` is whether an operation in rates or outputs can
    jump. Raises `TraceError` when a block cannot be traced.
    """

    def __init__(
        self, layout: Layout, read: Callable[[Any], list[Any]], keys: Sequence[Key]
    ) -> None:
        n = layout.num_states
        states: list[Key] = [((STATE, 0, 0), k) for k in range(n)]

        def products(store: SymbolicStore) -> list[list[Any]]:
            found = simplify(read(store), checked=True)
            self.num_outputs = len(found) - n
            count = n + max(n, self.num_outputs)
            weights = scalars.symbols(store.graph, (STATE, 0, 0), count)[n:]
            self.may_jump = may_jump(found)
            parts = []
            for equations in (found[:n], found[n:]):
                total = sum(w * each for w, each in zip(weights, equations, strict=False))
                parts.append(simplify([*gradient(total, [*states, *keys]), total]))
            return parts

        self.pulled, (*whole, total) = trace(layout, products)
        self.places = [k for k, each in enumerate(whole) if not is_zero(each)]
        self.shown = [*(whole[k] for k in self.places), total]
        sources: Any = scalars.sources(self.shown)
        self.reads = sorted(k for (what, _, _), k in sources if what == STATE and k < n)
        self.num_states, self.num_keys = n, len(keys)

    @property
    def width(self) -> int:
        """The number of states and of weights behind them."""
        return self.num_states + max(self.num_states, self.num_outputs)

    def products(self, store: Store, native: AdjointProgram | None) -> list[Product]:
        """Return both as functions of time and of states with weights, in code or in Python.

        They have the values that the context has now.
        """
        if native is None:
            codes = (StraightLine(each, self.width) for each in (self.pulled, self.shown))
            return [code.bind(store) for code in codes]
        env = native.fill(store)
        made: list[Product] = []
        for address, count in ((native.pulled, len(self.pulled)), (native.shown, len(self.shown))):
            assert address is not None
            made.append(partial(_called, native_function(address), env, count))
        return made


def _called(
    function: Callable[..., None], env: FloatArray, count: int, time: float, x: FloatArray
) -> FloatArray:
    """Call a native function."""
    out = np.empty(count)
    function(time, address_of(x), address_of(env), address_of(out))
    return out


class AdjointProgram(OwnFunctions):
    """Native functions of the products; raises `TraceError` where compiling takes too long."""

    def __init__(self, layout: Layout, equations: AdjointEquations) -> None:
        super().__init__(layout)
        # pulled, shown: of the functions.
        self.pulled = self._made(equations.pulled, "products with derivatives of rates")
        self.shown = self._made(equations.shown, "products with derivatives of outputs")
