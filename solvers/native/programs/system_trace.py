"""A system as expressions: the first of three steps to its native code.

Derivatives, witness functions, updates and logged signals come from one run of the equations on
symbols. The derivatives of many blocks are not traced as a whole, but for one block of each kind
(`flexure.solvers.native.sharing`); then events alone are. What is traced here is planned in `plan`
and compiled in `program`; nothing here depends on how.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import FlexureError, TraceError
from flexure.diagrams.contexts.context import LeafContext
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.branches import explore
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values import kinds
from flexure.diagrams.values.arrays import FloatArray, conform, freeze
from flexure.diagrams.values.events import Event, Periodic, Settling, Trigger, Witness
from flexure.diagrams.values.state import ContinuousState
from flexure.diagrams.values.symbolic_values import DISCRETE, TIME, Key
from flexure.solvers.native.emission.emission import depth_first, key_of
from flexure.solvers.tracing.side_effects import without_trace
from flexure.solvers.tracing.trace import SymbolicStore

#: An event of a block: position of the block and of the event in it.
EventKey = tuple[int, int]


@dataclass
class Update:
    """A traced update."""

    expressions: list[Any]  # what it computes
    # Where each of them goes, in a vector of all states and then all discrete values.
    targets: list[int]
    line: Line | None = None  # discrete values that it passes on as a whole
    passed: range = range(0)  # the targets that need not be computed for that reason

    @property
    def computed(self) -> Update:
        """What is left when the line is passed on."""
        if self.line is None:
            return self
        pairs = zip(self.expressions, self.targets, strict=True)
        left = [pair for pair in pairs if pair[1] not in self.passed]
        return Update([each for each, _ in left], [target for _, target in left], self.line)


class DiscretePlaces:
    """Where discrete values are: those of all blocks end to end, in the order of the blocks.

    Every environment begins with them.
    """

    def __init__(self, layout: Layout) -> None:
        self.count = 0  # their number
        self.starts: list[list[int]] = []  # where the groups of each block begin
        self._spans: dict[int, list[slice]] = {}  # of the blocks that have any
        for position, leaf in enumerate(layout.leaves):
            spans = []
            for group in leaf.discrete_states:
                spans.append(slice(self.count, self.count + group.size))
                self.count += group.size
            self.starts.append([span.start for span in spans])
            if spans:
                self._spans[position] = spans

    def read(self, store: Store, env: FloatArray) -> None:
        """Put the values of a context into an environment."""
        for position, spans in self._spans.items():
            for value, span in zip(store.leaves[position].discrete, spans, strict=True):
                env[span] = value

    def write(self, store: Store, values: FloatArray) -> None:
        """Put values, with which a vector begins, into a context."""
        if not self.count:
            return
        values = freeze(values[: self.count].copy())
        for position, spans in self._spans.items():
            store.leaves[position].discrete = [values[span] for span in spans]
        store.changed(kinds.DISCRETE)

    def groups(self, values: FloatArray) -> list[list[FloatArray]]:
        """Cut a vector of all values into those of the blocks."""
        groups: list[list[FloatArray]] = [[]] * len(self.starts)  # most blocks have none
        for position, spans in self._spans.items():
            groups[position] = [values[span] for span in spans]
        return groups


@dataclass
class SystemTrace:
    """The equations of a root system as expressions, with what was refused and why."""

    zeros: frozenset[Key]  # components of parameters that count as zero
    discrete: DiscretePlaces  # with what an environment begins
    # Of all states, from one trace of all blocks; None when there was none.
    derivatives: list[Any] | None = None
    operations: int = 0  # of the derivatives
    timed: bool = False  # whether the derivatives depend on time
    # Witness events whose functions were traced.
    witnesses: list[EventKey] = field(default_factory=list)
    witness_values: list[Any] = field(default_factory=list)  # what these compute
    updates: dict[EventKey, Update] = field(default_factory=dict)  # traced updates
    # Where the signal that a publish records is among the logged signals, by event.
    signals: dict[EventKey, slice] = field(default_factory=dict)
    signal_values: list[Any] = field(default_factory=list)  # the logged signals
    refusals: dict[EventKey, str] = field(default_factory=dict)  # why an event was not traced
    # How far states are from where blocks declare that they belong.
    deviations: list[Any] = field(default_factory=list)
    no_deviations: str = ""  # why these were not traced, if so
    # The next break time, where updates may move it; otherwise it is asked for in Python.
    breaks: list[Any] = field(default_factory=list)
    no_breaks: str = ""  # why it was not traced, if so
    # Triggers of the updates that are traced.
    triggers: tuple[type[Trigger], ...] = (Periodic, Witness, Settling)

    def functions(self) -> dict[str, list[Any]]:
        """Return what is to be compiled, by name, but for the derivatives."""
        updates = [each.computed.expressions for each in self.updates.values()]
        functions = {
            "witness": self.witness_values,
            "signals": self.signal_values,
            "deviations": self.deviations,
            "breaks": self.breaks,
        }
        return {
            **{name: values for name, values in functions.items() if values},
            **{update_name(k): each for k, each in enumerate(updates)},
        }

    def read_derivatives(self, store: SymbolicStore) -> list[Any]:
        """Trace the derivatives; return them as they were before they are simplified."""
        rates = list(store.time_derivatives())
        self.derivatives = simplify(rates, self.zeros, checked=True)
        self.operations = sum(node.op != "input" for node in depth_first(self.derivatives, {}))
        sources: Any = scalars.sources(self.derivatives)
        self.timed = any(key[0][0] == TIME for key in sources)
        return rates

    def read_conditions(self, store: SymbolicStore) -> None:
        """Trace what loops look at beside the derivatives: deviations, and events that can be."""
        try:
            self.deviations = store.deviations()
        except (FlexureError, ArithmeticError, TypeError, ValueError) as error:
            self.no_deviations = _reason(error)
        self._read_breaks(store)
        self._read_events(store)

    def _read_breaks(self, store: SymbolicStore) -> None:
        """Trace the next break time, if updates may move it."""
        try:
            self.breaks = read_breaks(store)
        except (FlexureError, ArithmeticError, TypeError, ValueError) as error:
            what = f"the break times of '{moving_breaks(store.layout)[0].label}' may change"
            self.no_breaks = f"{what}, and cannot be traced ({_reason(error)})"

    def _read_events(self, store: SymbolicStore) -> None:
        """Trace every event that can be traced."""
        for position, leaf in enumerate(store.leaves):
            for index, event in enumerate(leaf.system.events):
                key = position, index
                try:
                    self._read_event(store, key, event)
                except (FlexureError, ArithmeticError, TypeError, ValueError) as error:
                    self.refusals[key] = _reason(error)
        self._find_lines(store)

    def _find_lines(self, store: SymbolicStore) -> None:
        """Find the lines that periodic updates pass on, and no other update writes."""
        n, starts, lines = store.layout.num_states, self.discrete.starts, 0

        def place(value: Any) -> int | None:
            if not isinstance(value, scalars.Symbol) or value.op != "input":
                return None
            (what, where, index), component = key_of(value)
            return starts[where][index] + component if what == DISCRETE else None

        written = Counter(target - n for each in self.updates.values() for target in each.targets)
        for (position, index), update in self.updates.items():
            trigger = store.leaves[position].system.events[index].trigger
            if not isinstance(trigger, Periodic) or lines == MOST_LINES:
                continue
            line = find_line(update.expressions, [t - n for t in update.targets], place)
            if line is not None and all(written[k] == 1 for k in range(line.start, line.end)):
                update.line = line
                update.passed = range(n + line.start + line.apart, n + line.end)
                lines += 1

    def _read_event(self, store: SymbolicStore, key: EventKey, event: Event) -> None:
        """Trace the functions of one event."""
        leaf = store.leaves[key[0]]
        if isinstance(event.trigger, Witness):
            value = read_witness(store, leaf, event)
            self.witnesses.append(key)
            self.witness_values.extend(value)
        if event.kind == "publish":
            if event.signal is not None:
                start = len(self.signal_values)
                self.signal_values.extend(event.signal(leaf))
                self.signals[key] = slice(start, len(self.signal_values))
            return
        if not isinstance(event.trigger, self.triggers):
            return
        self.updates[key] = read_update(store, leaf, event, self.discrete.starts)


def read_witness(store: SymbolicStore, leaf: LeafContext, event: Event) -> Any:
    """Trace the function of a witness event, as an array of one component."""
    assert isinstance(event.trigger, Witness)
    found = explore(store.graph, partial(without_trace, event.trigger.calc, leaf))
    return conform(found, 1, lambda: event.label)


def read_update(
    store: SymbolicStore, leaf: LeafContext, event: Event, starts: Sequence[Sequence[int]]
) -> Update:
    """Trace an update; ``starts`` are those of `DiscretePlaces`."""
    expressions: list[Any] = []
    targets: list[int] = []
    for state, value in updated_states(store, leaf, event).items():
        if isinstance(state, ContinuousState):
            start = store.layout.x_slices[leaf.position].start
        else:
            start = store.layout.num_states + starts[leaf.position][state.index]
        expressions.extend(value)
        targets.extend(range(start, start + state.size))
    return Update(expressions, targets)


def updated_states(store: SymbolicStore, leaf: LeafContext, event: Event) -> dict[Any, Any]:
    """Trace an update handler along all of its branches; return the states that it writes.

    A branch that leaves a state out leaves it as it is. That means something else where another
    update of the block writes the state at the same instant, which is why that is refused.
    """
    system = leaf.system
    states: list[Any] = [*system.discrete_states]
    if system.continuous_state is not None:
        states.append(system.continuous_state)
    written: list[set[Any]] = []

    def values() -> list[Any]:
        returned = without_trace(event.handler, leaf) or {}
        written.append(set(returned))
        return [
            conform(returned[state], state.size, lambda: event.label)
            if state in returned
            else state(leaf)
            for state in states
        ]

    merged = explore(store.graph, values)
    everywhere, somewhere = set.intersection(*written), set.union(*written)
    updates = [each for each in system.events if each.kind != "publish"]
    if somewhere - everywhere and len(updates) > 1:
        raise TraceError(
            f"Cannot trace the update '{event.label}'",
            expected="the same states on all of its branches, or no other update in the block",
            found="states that only some of the branches write",
        )
    pairs = zip(states, merged, strict=True)
    return {state: value for state, value in pairs if state in somewhere}


def moving_breaks(layout: Layout) -> list[LeafSystem]:
    """Return the blocks whose break times updates may move."""
    return [leaf for leaf in layout.leaves if leaf.has_break_times and leaf.discrete_states]


def read_breaks(store: SymbolicStore) -> list[Any]:
    """Trace the next break time of all blocks; empty where updates move none."""
    if not moving_breaks(store.layout):
        return []
    times = [break_time(store, leaf) for leaf in store.leaves if leaf.system.has_break_times]
    later = [scalars.where(each > store.time, each, math.inf) for each in times]
    return [reduce(np.minimum, later)]


def break_time(store: SymbolicStore, leaf: LeafContext) -> Any:
    """Trace the next break time of a block along all branches."""
    calculation = partial(without_trace, leaf.system.calc_next_break_time, leaf)
    return conform(explore(store.graph, calculation), 1, lambda: leaf.system.label)[0]


def update_name(number: int) -> str:
    """Return the name of the function of an update, by its place among the traced ones."""
    return f"update_{number}"


def _reason(error: Exception) -> str:
    """Say why something cannot be traced."""
    first = error.attempt if isinstance(error, FlexureError) else f"{type(error).__name__}: {error}"
    return "; ".join([first, *getattr(error, "__notes__", ())])


#: Values from which on a line is moved as a whole; short ones are values like any other.
_LONG = 100
#: Lines of one system, which a mask has room for.
MOST_LINES = 60


@dataclass(frozen=True)
class Line:
    """Discrete values in a row, of which an update gives each the value some places before.

    Most of what the update of a long delay does is that. Loops move such a line as a whole, and
    rows of a run do not repeat it.
    """

    # start, end: where it begins, with the values that the update computes, and ends.
    start: int
    end: int
    apart: int  # how far values are moved, which is also the number of those that are computed


def find_line(
    expressions: Sequence[Any], targets: Sequence[int], source: Callable[[Any], int | None]
) -> Line | None:
    """Return the longest line that an update passes on, if there is a long one.

    The ``expressions`` of the update go to ``targets``, places of discrete values, negative for
    states. ``source`` gives the place of the discrete value that an expression is, or None.
    """
    longest: tuple[int, int, int] | None = None
    begin, last = 0, (0, 0)
    for target, expression in zip(targets, expressions, strict=True):
        place = source(expression)
        if place is None or not 0 <= place < target:
            last = 0, 0
            continue
        if last != (target - 1, place - 1):
            begin = target
        last = target, place
        if longest is None or target - begin > longest[1] - longest[0]:
            longest = begin, target, target - place
    if longest is None or longest[1] - longest[0] + 1 < _LONG:
        return None
    first, end, apart = longest
    if not set(range(first - apart, first)) <= set(targets):
        return None
    return Line(first - apart, end + 1, apart)
