"""Families of blocks that are alike, and their calculations, each traced once.

A calculation is traced again for every *pattern* of its inputs: which components are known while
tracing, and in what array the others are. Such a trace, with the blocks to which it applies, is a
`Variant`. The walk fills them, and `code_levels` reads them when they are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.systems.feedthrough import input_closure
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import freeze
from flexure.diagrams.values.kinds import ALL_KINDS
from flexure.diagrams.values.symbolic_values import DISCRETE, INPUT, PARAMETER, STATE, TIME, Key
from flexure.solvers.native.emission.emission import Node, key_of
from flexure.solvers.native.sharing.families.requested_derivatives import Reading
from flexure.solvers.native.sharing.families.value_columns import (
    CLOCK,
    FIXED,
    MOTION,
    MOVING,
    SHIFT,
    Columns,
    IntArray,
)
from flexure.solvers.tracing.trace import symbolic_store

#: What a port offers: for each component the sort of its column or, as text, a known value.
#: None stands for a port without numbers.
Pattern: TypeAlias = "tuple[int | str, ...] | None"

#: From where the code of a result is counted.
FROM_TIME, FROM_STATE, FROM_DISCRETE, FROM_VARIED, FROM_ROW, FROM_INPUTS, KNOWN = range(7)

_SORTS = {TIME: CLOCK, STATE: MOTION, DISCRETE: MOVING, PARAMETER: FIXED}


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


class Family:
    """Blocks that are alike.

    ``positions`` are those of the blocks in the layout; the position in this list is the *row* of a
    block. ``bases`` are for each block from where codes are counted: those of time, of its states,
    of its discrete values, of its varied parameters, and its row. ``varied`` are the components of
    parameters that change as states do, in their order, as indices of the parameter and of the
    component.
    """

    def __init__(
        self,
        prototype: Prototype,
        positions: list[int],
        bases: list[tuple[int, ...]],
        columns: Columns,
        varied: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.prototype = prototype
        self._varied = {each: place for place, each in enumerate(varied)}
        self.positions = positions
        self.bases = np.array(bases, dtype=np.int64)
        # For each calculation its variants, each with the number of the pattern that it offers, by
        # the numbers of the patterns of its inputs.
        self.variants: list[dict[tuple[int, ...], tuple[Variant, int]]] = [
            {} for _ in prototype.inputs
        ]
        self._columns = columns
        self._parameters: dict[tuple[int, int], int] = {}
        self._results: dict[tuple[int, int], int] = {}

    def origin(self, key: Key) -> tuple[int, int]:
        """Return from where the code of a time, state or parameter is counted, and how far."""
        (what, _, index), component = key
        if what == PARAMETER and (index, component) in self._varied:
            return FROM_VARIED, self._varied[index, component]
        if what == PARAMETER:
            return FROM_ROW, self._column(self._parameters, (index, component), FIXED) << SHIFT
        if what == DISCRETE:
            return FROM_DISCRETE, self.prototype.discrete_starts[index] + component
        return (FROM_STATE, component) if what == STATE else (FROM_TIME, 0)

    def sort_of(self, key: Key) -> int:
        """Return the sort of the column of a time, state or parameter."""
        (what, _, index), component = key
        is_varied = what == PARAMETER and (index, component) in self._varied
        return MOTION if is_varied else _SORTS[what]

    def result_column(self, node: Node, sort: int) -> int:
        """Return the column of a result, made when it is first asked for."""
        return self._column(self._results, (node.index, sort), sort)

    def _column(self, known: dict[tuple[int, int], int], key: tuple[int, int], sort: int) -> int:
        if key not in known:
            known[key] = self._columns.add(sort, len(self.positions))
        return known[key]

    def parameters_in_use(self) -> dict[int, list[tuple[int, int]]]:
        """Return components of parameters and where their columns begin, by parameter."""
        found: dict[int, list[tuple[int, int]]] = {}
        for (index, component), column in self._parameters.items():
            place = self._columns.places[column]
            if place is not None:
                found.setdefault(index, []).append((component, place))
        return found


class Variant:
    """A calculation of a family for one pattern of inputs, and the blocks to which it applies.

    ``calculation`` is counted as by the prototype; ``patterns`` is what the inputs offer that it
    may read, ``pattern`` what the output offers to others. ``targets`` is what of ``expressions``
    is work: all derivatives, but only those components of an output that are neither known nor
    handed on. Behind the targets, ``moving`` are the nodes that change during a run, and ``inputs``
    says for each node that represents an input its column in ``codes``. ``results`` says for each
    component of an output what to add to what to have its code for a block.

    After `complete`, there are ``rows``, ``codes`` and ``levels``: the blocks, the codes of their
    inputs, and their levels. A block reads only results of lower levels than its own.
    """

    def __init__(self, family: Family, calculation: int, patterns: Sequence[Pattern]) -> None:
        self.family = family
        self.calculation = calculation
        self.is_derivative = calculation == family.prototype.derivatives
        self._ports = family.prototype.inputs[calculation]
        starts = accumulate((len(pattern or ()) for pattern in patterns), initial=0)
        self._start_of = dict(zip(self._ports, starts, strict=False))
        self._sorts = [sort for pattern in patterns for sort in pattern or ()]
        known = _known_values(self._ports, patterns)
        self.expressions = family.prototype.trace(calculation, known)
        self.targets = [e for e in self.expressions if self.is_derivative or _is_computed(e)]
        self._read_nodes()
        self.results: list[tuple[int, Any]] = []
        self.pattern: Pattern = None
        if not self.is_derivative:
            self.results = [self._result(expression) for expression in self.expressions]
            self.pattern = tuple([self._offer(expression) for expression in self.expressions])
        self._added: list[tuple[int, int]] = []
        self._picked: list[Any] = []

    def _read_nodes(self) -> None:
        """Find what is moving, and what the targets read of the inputs."""
        self.moving: set[int] = set()
        self.inputs: dict[int, int] = {}
        places: list[int] = []
        for node in reachable(self.targets):
            if node.op == "input":
                key = key_of(node)
                if key[0][0] == INPUT:
                    self.inputs[node.index] = len(places)
                    places.append(self._place(key))
                if self._sort(key) != FIXED:
                    self.moving.add(node.index)
            elif any(arg.index in self.moving for arg in node.args):
                self.moving.add(node.index)
        self._pick: Callable[[Any], Any] = itemgetter(*places) if places else _nothing

    def _place(self, key: Key) -> int:
        """Return where an input is among the components of all ports, end to end."""
        port = self.family.prototype.port_of(key[0][1])
        return self._start_of[port] + key[1]

    def _sort(self, key: Key) -> int | str:
        what = key[0][0]
        return self._sorts[self._place(key)] if what == INPUT else self.family.sort_of(key)

    def _result(self, expression: Any) -> tuple[int, Any]:
        """Return how the code of a component of the output follows for a block."""
        if not isinstance(expression, scalars.Symbol):
            return KNOWN, float(expression)
        if expression.op == "constant":
            return KNOWN, expression.value
        if expression.op != "input":
            return FROM_ROW, self.column_of(expression) << SHIFT
        key = key_of(expression)
        if key[0][0] == INPUT:
            return FROM_INPUTS, self._place(key)
        return self.family.origin(key)

    def _offer(self, expression: Any) -> int | str:
        """Return what readers of a component of the output see."""
        base, offset = self._result(expression)
        if base == KNOWN:
            return float(offset).hex()  # tells 0.0 from -0.0
        if expression.op == "input":
            return self._sort(key_of(expression))
        return MOVING if expression.index in self.moving else FIXED

    def column_of(self, node: Node) -> int:
        """Return the column of a result."""
        return self.family.result_column(node, MOVING if node.index in self.moving else FIXED)

    def add(self, row: int, level: int, values: Sequence[Any]) -> None:
        """Add a block, with the codes or numbers of its inputs, end to end."""
        self._added.append((row, level))
        self._picked.append(self._pick(values))

    def complete(self) -> None:
        """Turn what was added into arrays."""
        count = len(self._added)
        self.rows, self.levels = np.array(self._added, dtype=np.int64).reshape(count, 2).T
        self.codes: IntArray = np.array(self._picked, dtype=np.int64).reshape(
            count, len(self.inputs)
        )


def _known_values(
    ports: Iterable[int], patterns: Iterable[Pattern]
) -> dict[int, list[float | None]]:
    """Return the known components of input ports, and None for the others."""
    return {
        port: [float.fromhex(sort) if isinstance(sort, str) else None for sort in pattern]
        for port, pattern in zip(ports, patterns, strict=True)
        if pattern is not None
    }


def _is_computed(expression: Any) -> bool:
    """Return whether an expression is neither a number nor an input of the trace."""
    return isinstance(expression, scalars.Symbol) and bool(expression.args)


def _nothing(values: Any) -> tuple[()]:
    return ()
