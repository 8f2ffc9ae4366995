"""Tracing one block by itself, in place of all that are alike; the walk asks for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.systems.feedthrough import input_closure
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import freeze
from flexure.diagrams.values.kinds import ALL_KINDS
from flexure.solvers.native.sharing.families.requested_derivatives import Reading
from flexure.solvers.tracing.trace import Key, symbolic_store


class Prototype:
    """A block whose calculations run on symbols of its own.

    The keys of the symbols are those of `flexure.solvers.tracing.trace` for a root system that
    consists of the block alone. All traces share one graph: what two calculations compute is there
    once.

    The diagram around the block is not read. Components of its parameters in ``zeros`` are zero.
    ``reading`` is what is asked of it, if it has a state: as a rule, the derivatives. ``as_gain``
    is whether it has the slopes of a gain, if it is to pass as one in linear models.

    ``derivatives`` is the number of the calculation of that; before it come the output ports.
    ``inputs`` are the input ports that each calculation may read; ``discrete_starts`` is where each
    group of discrete state begins among all discrete values of the block.
    """

    def __init__(
        self, block: LeafSystem, zeros: Collection[Key], reading: Reading, *, as_gain: bool
    ) -> None:
        self._zeros, self._reading = zeros, reading
        layout = Layout(block)
        self._store = symbolic_store(layout, as_gain=as_gain)
        reading.begin(self._store)
        self._first_input = layout.input_base
        self._symbols = [self._store.cache[slot] for slot in layout.sources[0]]
        self._held: dict[int, list[float | None]] = {}  # what is known of inputs at present
        self.derivatives = len(block.output_ports)
        self.inputs = [tuple(sorted(input_closure(port))) for port in block.output_ports]
        self.inputs.append(tuple(range(len(self._symbols))))
        sizes = [group.size for group in block.discrete_states]
        self.discrete_starts = np.cumsum([0, *sizes]).tolist()

    def port_of(self, where: int) -> int:
        """Return the input port that the key of a symbol names."""
        return where - self._first_input

    def trace(self, calculation: int, known: Mapping[int, Sequence[float | None]]) -> list[Any]:
        """Run a calculation, and simplify what it gives, an expression or number per component.

        ``known`` holds, for input ports, the components whose values are known, and None for the
        others.
        """
        store = self._store
        self._hold(known)
        if calculation == self.derivatives:
            return simplify(self._reading(store), self._zeros, checked=True)
        return simplify(store.value(calculation), self._zeros, checked=True)

    def _hold(self, known: Mapping[int, Sequence[float | None]]) -> None:
        """Put known components into the inputs; what was computed stays valid if none changes."""
        numbers = {port: list(each) for port, each in known.items() if set(each) != {None}}
        if repr(numbers) == repr(self._held):  # which tells 0.0 from -0.0
            return
        for port in numbers.keys() | self._held.keys():
            symbols = self._symbols[port]
            values = numbers.get(port, [None] * len(symbols))
            mixed = [s if n is None else n for s, n in zip(symbols, values, strict=True)]
            self._store.hold(self._first_input + port, freeze(scalars.array(mixed)))
        self._store.changed(ALL_KINDS)
        self._held = numbers
