"""Native functions that sensitivities need beside those of a run: what numbers and outputs change.

The states of a motion move by the functions of a `Program`, whose Jacobian also says how changes of
states move. Here is the rest, from one trace of derivatives and outputs: ∂f/∂p, outputs g, and
their derivatives by states and by numbers p. Nothing of it counts as zero because it is so in some
context, since numbers may be what is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams import scalars
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.differentiation import gradient
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import may_jump
from flexure.diagrams.scalars.expressions.solutions import is_zero
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, Key
from flexure.solvers.native.emission.jacobian_emission import emit_jacobian
from flexure.solvers.native.llvm.library import Address, address_of
from flexure.solvers.native.programs.program import OwnFunctions, native_function
from flexure.solvers.tracing.straight_line import StraightLine
from flexure.solvers.tracing.trace import SymbolicStore, trace

Indices = NDArray[np.int64]


class SparseSlopes:
    """A native function that computes the derivatives that are not always zero."""

    def __init__(
        self, address: Address | None, shape: tuple[int, int], rows: list[int], columns: list[int]
    ) -> None:
        self.address = address  # of the function; None where all are zero
        self.shape = shape  # of the matrix of all derivatives
        # rows, columns: where the derivatives are that it computes.
        self.rows: Indices = np.array(rows, dtype=np.int64)
        self.columns: Indices = np.array(columns, dtype=np.int64)
        self._call = None if address is None else native_function(address)

    def __call__(self, time: float, x: FloatArray, env: FloatArray) -> FloatArray:
        """Return the matrix, a new one."""
        matrix = np.zeros(self.shape)
        if self._call is not None:
            entries = np.empty(len(self.rows))
            self._call(time, address_of(x), address_of(env), address_of(entries))
            matrix[self.rows, self.columns] = entries
        return matrix


class SensitivityProgram(OwnFunctions):
    """Native functions of derivatives by numbers, and of outputs.

    ``rates`` and ``outputs`` are expressions of one trace, or numbers; ``keys`` the numbers,
    discrete values among them. Raises `TraceError` when it would take too long to compile.
    """

    def __init__(
        self,
        layout: Layout,
        rates: Sequence[Any],
        outputs: Sequence[Any],
        keys: Sequence[Key],
        driven: frozenset[int],
    ) -> None:
        super().__init__(layout, driven)
        states: list[Key] = [((STATE, 0, 0), k) for k in range(layout.num_states)]
        with quietly():
            rates = simplify(rates, checked=True)
            outputs = simplify(outputs, checked=True)
        # Whether rates or outputs hold an operation that can jump.
        self.may_jump = may_jump((*rates, *outputs))
        self.slopes = self._slopes(rates, keys)  # ∂f/∂p
        # Derivatives of the outputs, by states and then by the numbers.
        self.output_slopes = self._slopes(outputs, [*states, *keys])
        self._count = len(outputs)
        self._outputs = native_function(self.made(outputs, "outputs")) if outputs else None

    def _slopes(self, expressions: Sequence[Any], keys: Sequence[Key]) -> SparseSlopes:
        """Compile the derivatives of expressions."""
        shape = len(expressions), len(keys)
        if not all(shape):
            return SparseSlopes(None, shape, [], [])
        with quietly():
            found = emit_jacobian(expressions, keys, self.environment, ())
        if not found.rows:
            return SparseSlopes(None, shape, [], [])
        return SparseSlopes(
            self._compiled(found.code, found.base, "jacobian"), shape, found.rows, found.columns
        )

    def outputs(self, time: float, x: FloatArray, env: FloatArray) -> FloatArray:
        """Return the outputs at a time and state, with an environment."""
        found = np.zeros(self._count)
        if self._outputs is not None:
            self._outputs(time, address_of(x), address_of(env), address_of(found))
        return found


#: Returns products at a time, for states and weights.
Product = Callable[[float, FloatArray], FloatArray]


class AdjointEquations:
    """Products of weights with derivatives of rates and outputs, for all contexts of a system.

    For weights w and equations f(t, x, p), reverse accumulation of the one number wᵀ f gives
    ``wᵀ ∂f/∂x`` and ``wᵀ ∂f/∂p`` for all numbers p at a few times the cost of f. The functions read
    the weights behind the states, as further states.

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
        self.pulled = self.made(equations.pulled, "products with derivatives of rates")
        self.shown = self.made(equations.shown, "products with derivatives of outputs")
