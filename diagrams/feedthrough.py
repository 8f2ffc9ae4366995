"""What an output needs: declared by the block, else found by tracing, else assumed.

Each output (and cache entry) of a leaf depends on kinds of values of its own block, on some of its
inputs, and on some of its cache entries. The input part is the direct feedthrough of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexure.diagrams import scalars
from flexure.diagrams.errors import TraceError
from flexure.diagrams.ports import TIME, CacheEntry, Computed, InputPort
from flexure.diagrams.quiet import quietly
from flexure.diagrams.state import AbstractState, ContinuousState, DiscreteState

if TYPE_CHECKING:
    from flexure.diagrams.leaf import LeafSystem

# Kinds of values, as bits.
TIME_KIND, CONTINUOUS, DISCRETE, ABSTRACT, PARAMETER, INPUT = (1 << k for k in range(6))
ALL_KINDS = (1 << 6) - 1


@dataclass(frozen=True)
class Needs:
    """What one computed value reads.

    Attributes
    ----------
    mask : int
        Kinds of values of its own block.
    inputs : tuple of int
        Inputs of its block.
    entries : tuple of int
        Cache entries of its block.
    assumed : bool
        Whether this is the cautious assumption "everything", because nothing was declared and
        the calculation could not be traced.
    """

    mask: int
    inputs: tuple[int, ...]
    entries: tuple[int, ...]
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
    """Run the calculation on symbols and see which values it reads.

    Everything that is read counts, even when the result does not contain it: the calculation will
    ask for it again when it runs on numbers.
    """
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
    for kind, _ in probe.reads:
        mask |= kind
    inputs = sorted(index for kind, index in probe.reads if kind == INPUT)
    return Needs(mask & ~INPUT, tuple(inputs), ())


class Probe:
    """A stand-in for the context of a leaf whose numbers are symbols.

    Values that are no numbers cannot be followed: reading one gives up the trace.
    """

    def __init__(self, leaf: LeafSystem) -> None:
        self.system = leaf
        self.store = self
        self.opaque = False
        self.reads: set[tuple[int, int]] = set()
        self.graph = scalars.Graph()
        self.x_slice = slice(None)
        self.entry_base = 0
        self.parameters = _Symbolic(self, PARAMETER, [p.shape for p in leaf.numeric_parameters])
        self.discrete = _Symbolic(self, DISCRETE, [(d.size,) for d in leaf.discrete_states])
        self.abstract = self.abstract_parameters = _Opaque(self)

    def _symbols(self, kind: int, index: int, shape: tuple[int, ...]) -> Any:
        self.reads.add((kind, index))
        return scalars.symbols(self.graph, (kind, index), shape)

    @property
    def time(self) -> Any:
        """Time, as a symbol."""
        return self._symbols(TIME_KIND, 0, ())

    @property
    def accuracy(self) -> float | None:
        """Accuracy has no symbol."""
        return None

    @property
    def x(self) -> Any:
        """Continuous state, as symbols."""
        state = self.system.continuous_state
        return self._symbols(CONTINUOUS, 0, (state.size,) if state is not None else (0,))

    def read_input(self, index: int) -> Any:
        """Return the value at an input, as symbols."""
        size = self.system.input_ports[index].size
        return self.abstract[index] if size is None else self._symbols(INPUT, index, (size,))

    def output_slot(self, index: int) -> int:
        """Return the number of an output, counted after the cache entries."""
        return len(self.system.cache_entries) + index

    def value(self, slot: int) -> Any:
        """Compute a cache entry or another output of the same block, on symbols."""
        computed: list[Computed] = [*self.system.cache_entries, *self.system.output_ports]
        return computed[slot].compute(self)


class _Symbolic:
    """Values of one kind, made into symbols when they are read."""

    def __init__(self, probe: Probe, kind: int, shapes: list[tuple[int, ...]]) -> None:
        self.probe, self.kind, self.shapes = probe, kind, shapes

    def __getitem__(self, index: int) -> Any:
        return self.probe._symbols(self.kind, index, self.shapes[index])


class _Opaque:
    """Values that are no numbers."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def __getitem__(self, index: int) -> Any:
        self.probe.opaque = True
        raise TraceError("Cannot follow an abstract value", found=f"abstract value {index}")


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
