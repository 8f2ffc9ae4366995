"""Jacobians of equations in which some blocks cannot be traced, but have derivatives of their own.

Where a calculation does not run on symbols, its results become symbols of the trace, z. The block
gives their derivatives by its states and inputs, `LeafSystem.calc_slopes`, and the chain rule does
the rest::

    f = f(p, z)    u = u(p, z)    dz = Z_x S dp + Z_u du

    dz = (I − Z_u u_z)⁻¹ (Z_x S + Z_u u_p) dp    J = f_p + f_z dz/dp

with f the equations, p states and variables, u the inputs of these blocks, and S the selection of
their states from p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import TraceError, quoted
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import PARAMETER, Key
from flexure.solvers.tracing.exact_jacobian import JacobianCode, numbers_behind
from flexure.solvers.tracing.interpreted_blocks import Call, PartlySymbolicStore
from flexure.solvers.tracing.trace import FOREIGN


class ForeignSlopes:
    """The Jacobian of equations of which some have derivatives of their blocks.

    ``read(store)`` returns the equations as numbers or symbols; ``keys`` are the states, then
    variables. With ``as_gain``, blocks with ``linearize_as="gain"`` have the slopes of gains.
    """

    def __init__(
        self, store: Store, read: Callable[[Any], list[Any]], keys: Sequence[Key], *, as_gain: bool
    ) -> None:
        self._store = store
        layout = store.layout
        symbolic = PartlySymbolicStore(layout, as_gain=as_gain)
        try:
            with quietly():
                expressions = [*read(symbolic)]
                self._size = len(expressions)
                self._calls = [*symbolic.calls]
                for call in self._calls:
                    leaf = symbolic.leaves[call.position]
                    for port in leaf.system.input_ports:
                        expressions += list(port(leaf))
        except Exception as error:  # of whatever equations stumble over on symbols
            raise TraceError("Cannot trace the equations around blocks") from error
        blocks = {call.position: layout.leaves[call.position].label for call in self._calls}
        varied = {where for (what, where, _), _ in keys if what == PARAMETER}
        if len(symbolic.calls) > len(self._calls) or varied & blocks.keys():
            raise TraceError("Cannot differentiate blocks that cannot be traced")
        # How the derivatives are found, in words.
        self.how = f"exact derivatives, own ones of {quoted(blocks[k] for k in sorted(blocks))}"
        self._num_keys = len(keys)
        self._foreign = [
            ((FOREIGN, i, 0), k)
            for i, call in enumerate(self._calls)
            for k in range(len(call.results))
        ]
        self._expressions = expressions
        self._code = JacobianCode(expressions, [*keys, *self._foreign], layout.num_states)
        self.jacobian()

    def values(self) -> FloatArray:
        """Return the equations at the values of the store."""
        expressions = self._expressions[: self._size]
        return np.array(scalars.evaluate(expressions, self._numbers(expressions)), dtype=float)

    def jacobian(self) -> FloatArray:
        """Return the Jacobian at the values of the store."""
        code, n = self._code, self._num_keys
        matrix = np.zeros(code.shape)
        matrix[code.place] = scalars.evaluate(code.entries, self._numbers(code.entries))
        f, u = matrix[: self._size], matrix[self._size :]
        by_states = np.zeros((len(self._foreign), n))
        by_inputs = np.zeros((len(self._foreign), len(u)))
        row = column = 0
        for call in self._calls:
            leaf = self._store.leaves[call.position]
            found = leaf.system.calc_slopes(leaf, self._output(call))
            if found is None:
                raise TraceError(f"Cannot differentiate '{leaf.system.label}'")
            rows = slice(row, row + len(call.results))
            by_states[rows, leaf.x_slice] = found[0]
            by_inputs[rows, column : column + found[1].shape[1]] = found[1]
            row, column = rows.stop, column + found[1].shape[1]
        closed = np.eye(row) - by_inputs @ u[:, n:]
        slopes = np.linalg.solve(closed, by_states + by_inputs @ u[:, :n])
        return np.asarray(f[:, :n] + f[:, n:] @ slopes)

    def _output(self, call: Call) -> Any:
        return None if call.slot is None else self._store.layout.slot_port[call.slot]

    def _numbers(self, expressions: Sequence[Any]) -> dict[Any, float]:
        """Return the numbers that all inputs of expressions stand for, results of blocks too."""
        store = self._store
        known: dict[Any, float] = {}
        for i, call in enumerate(self._calls):
            if call.slot is None:
                leaf = store.leaves[call.position]
                value = store._derivatives_of(leaf, len(call.results))
            else:
                value = store.value(call.slot)
            known |= {((FOREIGN, i, 0), k): float(each) for k, each in enumerate(value)}
        return known | numbers_behind(store, expressions, store.time, store.x)
