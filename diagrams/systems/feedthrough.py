"""Feedthrough: the inputs of an output, as declared, found by tracing, or else assumed.

Each output (and cache entry) of a leaf depends on kinds of values of its own block, on some of its
inputs, and on some of its cache entries. The input part is the direct feedthrough of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from flexure.diagrams import scalars
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.systems.ports import TIME, CacheEntry, Computed, InputPort
from flexure.diagrams.values import symbolic_values
from flexure.diagrams.values.handles import Handle
from flexure.diagrams.values.kinds import (
    ABSTRACT,
    ALL_KINDS,
    CONTINUOUS,
    DISCRETE,
    INPUT,
    PARAMETER,
    TIME_KIND,
)
from flexure.diagrams.values.state import AbstractState, ContinuousState, DiscreteState
from flexure.diagrams.values.symbolic_values import OutOfReach, symbols_for, unreadable

_KINDS = {
    symbolic_values.TIME: TIME_KIND,
    symbolic_values.STATE: CONTINUOUS,
    symbolic_values.DISCRETE: DISCRETE,
    symbolic_values.PARAMETER: PARAMETER,
    symbolic_values.INPUT: INPUT,
}


@dataclass(frozen=True)
class Needs:
    """The values that one computed value reads."""

    mask: int  # kinds of values of its own block
    inputs: tuple[int, ...]  # inputs of its block
    entries: tuple[int, ...]  # cache entries of its block
    # Whether this is the cautious assumption "everything", because nothing was declared and the
    # calculation could not be traced.
    assumed: bool = False


def needs_of(computed: Computed) -> Needs:
    """Return what an output or cache entry reads; found once and kept by the block."""
    leaf: Any = computed.system
    known: dict[Computed, Needs] = leaf.known_needs
    if computed not in known:
        known[computed] = _declared(computed) or _traced(computed) or _assumed(computed)
    return known[computed]


def _declared(computed: Computed) -> Needs | None:
    if computed.prerequisites is None:
        return None
    mask = PARAMETER
    inputs, entries = [], []
    for item in computed.prerequisites:
        if item == TIME:
            mask |= TIME_KIND
        elif isinstance(item, InputPort):
            inputs.append(item.index)
        elif isinstance(item, CacheEntry):
            entries.append(item.index)
        elif isinstance(item, ContinuousState):
            mask |= CONTINUOUS
        elif isinstance(item, DiscreteState):
            mask |= DISCRETE
        elif isinstance(item, AbstractState):
            mask |= ABSTRACT
    return Needs(mask, tuple(inputs), tuple(entries))


def _traced(computed: Computed) -> Needs | None:
    """Run the calculation on symbols and see which values it reads."""
    # Everything that is read counts, even when the result does not contain it: the calculation will
    # ask for it again when it runs on numbers.
    leaf: Any = computed.system
    probe = Probe(leaf)
    try:
        with quietly():
            computed.compute(probe)
    except Exception:
        return None
    if probe.opaque:
        return None
    mask = PARAMETER
    for what in probe.reads:
        mask |= _KINDS[what]
    return Needs(mask & ~INPUT, tuple(sorted(probe.read_inputs)), ())


class Probe:
    """A stand-in for the context of a block that has no layout yet; its numbers are symbols.

    It is its own store. `flexure.diagrams.values.symbolic_values` says in what it differs from
    another context of symbols. Values that are no numbers cannot be followed: reading one gives up.
    """

    def __init__(self, leaf: Any) -> None:
        self.system = leaf
        self.store = self
        self.opaque = False  # whether something was read that no symbol stands for
        self.reads: set[str] = set()  # which kinds of symbols were read
        self.read_inputs: set[int] = set()  # the inputs among them
        self.graph = scalars.Graph()
        self.x_slice = slice(None)
        self.entry_base = 0
        self.parameters = _MadeWhenRead(
            self, symbolic_values.PARAMETER, [p.shape for p in leaf.numeric_parameters]
        )
        self.discrete = _MadeWhenRead(
            self, symbolic_values.DISCRETE, [(d.size,) for d in leaf.discrete_states]
        )
        self.abstract_parameters = OutOfReach(leaf.abstract_parameters, self.refuse)
        self.abstract = OutOfReach(leaf.abstract_states, self.refuse)

    def symbols(self, what: str, index: int, shape: tuple[int, ...]) -> Any:
        """Return the symbols of one value, and note that it was read."""
        self.reads.add(what)
        return symbols_for(self.graph, what, 0, index, shape)

    def refuse(self, handle: Handle) -> NoReturn:
        """Refuse to read what no symbol stands for."""
        self.opaque = True  # although the calculation may take no notice of the error
        raise unreadable(handle)

    @property
    def time(self) -> Any:
        """Time, as a symbol."""
        return self.symbols(symbolic_values.TIME, 0, ())

    @property
    def accuracy(self) -> float | None:
        """Accuracy has no symbol."""
        return None

    @property
    def x(self) -> Any:
        """Continuous state, as symbols."""
        state = self.system.continuous_state
        return self.symbols(symbolic_values.STATE, 0, (state.size if state is not None else 0,))

    def read_input(self, index: int) -> Any:
        """Return the value at an input, as symbols."""
        port = self.system.input_ports[index]
        if port.size is None:
            self.refuse(port)
        self.read_inputs.add(index)
        return self.symbols(symbolic_values.INPUT, index, (port.size,))

    def output_slot(self, index: int) -> int:
        """Return the number of an output, counted after the cache entries."""
        return len(self.system.cache_entries) + index

    def value(self, slot: int) -> Any:
        """Compute a cache entry or another output of the same block, on symbols."""
        computed: list[Computed] = [*self.system.cache_entries, *self.system.output_ports]
        return computed[slot].compute(self)

    asked = value


class _MadeWhenRead:
    """Values of one kind, made into symbols when they are read."""

    def __init__(self, probe: Probe, what: str, shapes: list[tuple[int, ...]]) -> None:
        self.probe, self.what, self.shapes = probe, what, shapes

    def __getitem__(self, index: int) -> Any:
        return self.probe.symbols(self.what, index, self.shapes[index])


def _assumed(computed: Computed) -> Needs:
    """Assume everything that the block has, its other outputs and later entries aside."""
    leaf: Any = computed.system
    last = computed.index if isinstance(computed, CacheEntry) else len(leaf.cache_entries)
    return Needs(
        ALL_KINDS & ~INPUT, tuple(range(len(leaf.input_ports))), tuple(range(last)), assumed=True
    )


def input_closure(computed: Computed) -> set[int]:
    """Return the inputs of its block that a value needs, directly or through cache entries."""
    leaf: Any = computed.system
    needs = needs_of(computed)
    inputs = set(needs.inputs)
    seen: set[int] = set()
    stack = list(needs.entries)
    while stack:
        entry = stack.pop()
        if entry not in seen:
            seen.add(entry)
            below = needs_of(leaf.cache_entries[entry])
            inputs.update(below.inputs)
            stack.extend(below.entries)
    return inputs
