"""The layout of a root system: nested diagrams flattened to leaves, slots and an order.

A *slot* is one value that can be read in a context: an output of a leaf, a cache entry, an input
of the root system, or the default of an input that nothing feeds. The layout knows which slots
each slot needs and which kinds of values (time, states, parameters, ...) it depends on, directly
or through other slots. It is made once per root system, holds no values, and contexts share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.errors import AlgebraicLoopError, call_site
from flexure.diagrams.concurrency.threads import Kept
from flexure.diagrams.systems.feedthrough import needs_of
from flexure.diagrams.systems.ports import ExportedOutputPort, InputPort, OutputPort
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.kinds import INPUT, STARTABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexure.diagrams.systems.leaf import LeafSystem

_ROOM = 200_000  # slots and nodes of traces, which take less than 100 MB


class Layout:
    """Where everything is in a context of one root system.

    Wires are cut beyond the ports in ``cuts``: blocks that read such a wire read a slot that only
    holds a value. An input port is cut off from what feeds it, an output port from all that read
    it. ``kept`` is that of the layout without cuts.
    """

    def __init__(
        self, root: System, cuts: Sequence[InputPort | OutputPort] = (), kept: Kept | None = None
    ) -> None:
        self.root = root
        # What was made of this layout and of those of the same root with cuts: these themselves,
        # and what solvers know of them.
        self.kept = Kept(_ROOM) if kept is None else kept
        self.cuts: dict[InputPort | OutputPort, int] = {}  # the slot that is read beyond each cut
        self.leaves = leaves_of(root)  # in the order in which they were added, depth first
        self.position: dict[System, int] = {leaf: k for k, leaf in enumerate(self.leaves)}
        self._place_states()
        self._place_slots()
        self._cut(cuts)
        self._find_needs()
        self._dependents: list[list[int]] | None = None
        self._order()
        self._masks_of: dict[int, tuple[int, ...]] = {}
        self._plan: list[int] | None = None

    def _place_states(self) -> None:
        """Lay the continuous states of the leaves end to end."""
        self.x_slices: list[slice] = []  # of each leaf in the state vector of the root
        # Positions of the leaves with continuous state, of those that project theirs, and of those
        # that add up what projections change.
        self.dynamic: list[int] = []
        self.projecting: list[int] = []
        self.tallying: list[int] = []
        parts: tuple[list[int], list[int], list[int]] = ([], [], [])
        start = 0
        for k, leaf in enumerate(self.leaves):
            state = leaf.continuous_state
            size = state.size if state is not None else 0
            self.x_slices.append(slice(start, start + size))
            if state is not None:
                self.dynamic.append(k)
                if leaf.projection is not None:
                    self.projecting.append(k)
                if leaf.tally is not None:
                    self.tallying.append(k)
                ends = np.cumsum([start, state.num_q, state.num_v, state.num_z]).tolist()
                for part, first, last in zip(parts, ends, ends[1:], strict=False):
                    part.extend(range(first, last))
            start += size
        self.num_states = start
        self.q_indices, self.v_indices, self.z_indices = (
            np.array(part, dtype=np.intp) for part in parts
        )

    def _place_slots(self) -> None:
        """Give every slot its number and find the slot behind every input of every leaf."""
        self.slot_port: list[Any] = []  # the port or cache entry behind each slot
        self.slot_leaf: list[int] = []  # the leaf that computes it; -1 for slots that hold a value
        self.output_base: list[int] = []
        self.entry_base: list[int] = []
        for k, leaf in enumerate(self.leaves):
            self.output_base.append(len(self.slot_port))
            self.slot_port.extend(leaf.output_ports)
            self.entry_base.append(len(self.slot_port))
            self.slot_port.extend(leaf.cache_entries)
            self.slot_leaf.extend([k] * (len(self.slot_port) - len(self.slot_leaf)))
        self.input_base = len(self.slot_port)
        self.held: dict[InputPort, int] = {}
        for port in self.root.input_ports:
            self._hold(port)
        self.sources = [
            [self._source_slot(port) for port in leaf.input_ports] for leaf in self.leaves
        ]

    def _hold(self, port: InputPort) -> int:
        """Add a slot that only holds the value of an input port."""
        self.held[port] = len(self.slot_port)
        self.slot_port.append(port)
        self.slot_leaf.append(-1)
        return self.held[port]

    def _cut(self, cuts: Sequence[InputPort | OutputPort]) -> None:
        """Let what reads the wires beyond some ports read slots that only hold values."""
        for port in cuts:
            self.cuts[port] = len(self.slot_port)
            self.slot_port.append(Cut(port))
            self.slot_leaf.append(-1)
        if cuts:
            ports = [leaf.input_ports for leaf in self.leaves]
            self.sources = [[self._slot_behind(port) for port in each] for each in ports]

    def with_cuts(self, ports: Sequence[InputPort | OutputPort]) -> Layout:
        """Return the layout of the same root with cuts there: the same one again, if it is kept."""
        key = ("cut", *ports)
        with self.kept.lock:
            found: Layout | None = self.kept.find(key)
            if found is None:
                found = Layout(self.root, ports, self.kept)
                self.kept.put(key, found, len(found.slot_port))
            return found

    def slot_before(self, cut: InputPort | OutputPort) -> int:
        """Return the slot whose value would go on beyond a cut, if it were not there."""
        feed = self._feed_of(cut)
        return self._uncut_slot(cut) if feed is None else self._slot_behind(feed)

    def _slot_behind(self, port: InputPort | OutputPort) -> int:
        """Follow the wires from a port to the first cut, or to the slot where its value begins."""
        feed: InputPort | OutputPort | None = port
        while feed is not None and feed not in self.cuts:
            port, feed = feed, self._feed_of(feed)
        return self._uncut_slot(port) if feed is None else self.cuts[feed]

    def _uncut_slot(self, port: InputPort | OutputPort) -> int:
        """Return the slot of an output port, or of an input port that nothing feeds."""
        return self.slot_of(port) if isinstance(port, OutputPort) else self.held[port]

    def _source_slot(self, port: InputPort) -> int:
        """Follow the wires from an input port of a leaf to the slot that feeds it."""
        end = self.trace_back(port)
        if isinstance(end, OutputPort):
            return self.slot_of(end)
        return self.held[end] if end in self.held else self._hold(end)

    def trace_back(self, port: InputPort) -> InputPort | OutputPort:
        """Return the output port that feeds ``port``, or the outermost input port before it."""
        end: InputPort | OutputPort = port
        while isinstance(end, InputPort) and (feed := self._feed_of(end)) is not None:
            end = feed
        return end

    def _feed_of(self, port: InputPort | OutputPort) -> InputPort | OutputPort | None:
        """Return the next port against the direction of the wires."""
        if isinstance(port, OutputPort):
            return port.source if isinstance(port, ExportedOutputPort) else None
        diagram = None if port.system is self.root else port.system.parent
        return None if diagram is None else diagram.feed_of(port)

    def slot_of(self, port: OutputPort) -> int:
        """Return the slot of an output port of any system below the root."""
        origin = port.origin
        return self.output_base[self.position[origin.system]] + origin.index

    def _find_needs(self) -> None:
        """Find what each slot reads of its own leaf, and so which slots it needs."""
        self.needs: list[list[int]] = []  # slots that each slot reads
        self.own_masks: list[int] = []
        for slot, port in enumerate(self.slot_port):
            k = self.slot_leaf[slot]
            if k < 0:
                self.needs.append([])
                self.own_masks.append(INPUT)
                continue
            found = needs_of(port)
            sources, entries = self.sources[k], self.entry_base[k]
            self.needs.append(
                [sources[i] for i in found.inputs] + [entries + i for i in found.entries]
            )
            self.own_masks.append(found.mask | (STARTABLE if port.needs_start else 0))

    def _order(self) -> None:
        """Order the slots topologically; refuse algebraic loops."""
        waiting = [len(needs) for needs in self.needs]
        order = [slot for slot, count in enumerate(waiting) if not count]
        readers = self.dependents
        for slot in order:  # which grows by the slots that have all they need
            for reader in readers[slot]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    order.append(reader)
        if len(order) < len(waiting):
            raise self._loop_error()
        self.rank = [0] * len(order)  # position of each slot in a topological order
        self.masks = list(self.own_masks)  # kinds of values that each slot depends on, as bits
        for rank, slot in enumerate(order):
            self.rank[slot] = rank
            for need in self.needs[slot]:
                self.masks[slot] |= self.masks[need]

    def _loop_error(self) -> AlgebraicLoopError:
        """Describe one algebraic loop, port by port."""
        import networkx as nx  # here, as it is slow to import

        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(self.needs)))
        for slot, needs in enumerate(self.needs):
            graph.add_edges_from((need, slot) for need in needs)
        slots = [need for need, _ in nx.find_cycle(graph)]
        ports: list[str] = []
        guessed: list[str] = []
        for before, slot in zip([slots[-1], *slots[:-1]], slots, strict=True):
            port = self.slot_port[slot]
            found, sources = needs_of(port), self.sources[self.slot_leaf[slot]]
            entry = next((i for i in found.inputs if sources[i] == before), None)
            if entry is not None:
                ports.append(port.system.input_ports[entry].full_name)
            ports.append(port.full_name)
            if found.assumed:
                guessed.append(port.full_name)
        remedy = (
            "Break the loop with a block whose output does not depend on its input at the same "
            "instant, such as an Integrator, a FirstOrderLag or a ZeroOrderHold"
        )
        if guessed:
            remedy += (
                f"; or, if {', '.join(repr(name) for name in guessed)} does not really depend on "
                "that input, declare its prerequisites (they could not be traced and every input "
                "was assumed)"
            )
        error = AlgebraicLoopError(
            f"Cannot order the computations of '{self.root.name}' (at {call_site()})",
            expected="no output that depends on itself at the same instant",
            found="the algebraic loop " + " -> ".join([*ports, ports[0]]),
            remedy=remedy,
        )
        error.loop = tuple(ports)
        return error

    def end_of(self, position: int) -> int:
        """Return the slot behind the last one of a leaf."""
        k = position + 1
        return self.output_base[k] if k < len(self.leaves) else self.input_base

    def masks_of(self, kinds: int) -> tuple[int, ...]:
        """Return the masks in use that contain one of the kinds."""
        if kinds not in self._masks_of:
            self._masks_of[kinds] = tuple(mask for mask in set(self.masks) if mask & kinds)
        return self._masks_of[kinds]

    def slot_feeding(self, port: InputPort) -> int:
        """Return the slot that feeds an input port of a diagram below the root."""
        if self.cuts:
            return self._slot_behind(port)
        end = self.trace_back(port)
        return self.slot_of(end) if isinstance(end, OutputPort) else self.held[end]

    @property
    def plan(self) -> list[int]:
        """Slots that the time derivatives need, in topological order."""
        if self._plan is None:
            self._plan = self.order_for(())
        return self._plan

    def order_for(self, slots: Iterable[int]) -> list[int]:
        """Return what the time derivatives and some slots need, in topological order."""
        moving = {slot for k in self.dynamic for slot in self.sources[k]}
        wanted = self.with_needs(moving.union(slots))
        return sorted(
            (slot for slot in wanted if self.slot_leaf[slot] >= 0), key=self.rank.__getitem__
        )

    def with_needs(self, slots: Iterable[int]) -> set[int]:
        """Return slots, and all that they need, directly or through others."""
        reached = set(slots)
        stack = list(reached)
        while stack:
            fresh = {*self.needs[stack.pop()]} - reached
            reached |= fresh
            stack.extend(fresh)
        return reached

    @property
    def dependents(self) -> list[list[int]]:
        """For each slot, the slots that read it."""
        if self._dependents is None:
            dependents: list[list[int]] = [[] for _ in self.slot_port]
            for slot, needs in enumerate(self.needs):
                for need in needs:
                    dependents[need].append(slot)
            self._dependents = dependents  # complete, since other threads may be waiting for it
        return self._dependents

    def state_name(self, index: int) -> str:
        """Path of one component of the state vector, such as ``"plant.x[1]"``."""
        for k in self.dynamic:
            span = self.x_slices[k]
            if span.start <= index < span.stop:
                state = self.leaves[k].continuous_state
                assert state is not None
                offset = index - span.start
                label = state.element_names[offset] if state.element_names else offset
                return f"{state.full_name}[{label}]"
        raise IndexError(index)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_dependents": None, "_plan": None}


class Cut:
    """What is behind the slot that is read beyond a cut, in place of a port."""

    what = "cut wire"
    default = None

    def __init__(self, port: InputPort | OutputPort) -> None:
        self.full_name = port.full_name
        self.path = port.path
        self.size = port.size


def leaves_of(system: System) -> list[LeafSystem]:
    """Return the leaves below a system, depth first, in the order in which they were added."""
    everything: Iterable[Any] = each_system(system)
    return [each for each in everything if each.children is None]
