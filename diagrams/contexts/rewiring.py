"""Contexts of a finished diagram whose wires are cut, or in whose copy blocks are inserted."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from flexure.diagrams.contexts.context import Context, make_context
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import ExportedOutputPort, InputPort, OutputPort
from flexure.diagrams.values.arrays import freeze


def cut_wires(context: Context, ports: Sequence[InputPort | OutputPort]) -> Context:
    """Return a copy of a root context in which the wires beyond some ports are cut.

    Blocks that read them read constant values: those of the wires in the given context. Everything
    else is as it was. An input port is cut off from what feeds it, which concerns the blocks behind
    it alone; an output port is cut off from all that read it. The ports are connected and carry
    vectors. The ``store.layout.cuts`` of the result gives the slots of the held values.
    """
    given = context.store
    twin = make_context(given.layout.with_cuts(ports))
    store = twin.store
    store.time, store.accuracy, store.x = given.time, given.accuracy, given.x
    for leaf, source in zip(store.leaves, given.leaves, strict=True):
        leaf.take(source)
    for slot in range(given.layout.input_base, len(given.layout.slot_port)):
        if given.holds(slot):
            store.hold(slot, given.cache[slot])
    for port, slot in store.layout.cuts.items():
        store.hold(slot, port(context))
    return twin


def insert_blocks(
    context: Context,
    blocks: Mapping[InputPort | OutputPort, Sequence[LeafSystem]],
    handles: Sequence[Any],
) -> tuple[Context, list[Any]]:
    """Return a context of a copy of a system with blocks inserted behind ports, and handles.

    ``blocks`` has for each port a block that is in no diagram, and sources of its further inputs.
    The port feeds the first input of the block, and the first output of the block replaces the
    port: for all blocks that read an output port, and for its own block if it is an input port.

    The given root context and its system are not changed. The new one has its values and the same
    paths; the copy of a block is in a diagram with the same ports. The returned handles are those
    of the copy for the ports and states in ``handles``.
    """
    layout = context.store.layout
    system, leaves, ports, held, found = copy.deepcopy(
        (context.system, [*layout.leaves], [*blocks], [*layout.held], [*handles])
    )
    if not isinstance(system, Diagram):
        system = _wrapped(system)
    entries = {}
    for port, (block, *sources) in zip(ports, blocks.values(), strict=True):
        entries[port] = block.input_ports[0]
        _insert(system, port, block, sources)
    twin = system.create_default_context()
    store, given = twin.store, context.store
    x = store.x.copy()
    for leaf, source, span in zip(leaves, given.leaves, layout.x_slices, strict=True):
        target = store.leaves[store.layout.position[leaf]]
        target.take(source)
        x[target.x_slice] = given.x[span]
    store.time, store.accuracy, store.x = given.time, given.accuracy, freeze(x)
    for port, slot in zip(held, layout.held.values(), strict=True):
        origin: Any = store.layout.trace_back(entries.get(port, port))
        place = store.layout.held.get(origin)
        if given.holds(slot) and place is not None:
            store.hold(place, given.cache[slot])
    return twin, found


def _wrapped(block: Any) -> Diagram:
    """Return a diagram around a block, with the same ports."""
    inputs = {port.name: [port] for port in block.input_ports}
    outputs = {port.name: port for port in block.output_ports}
    diagram = Diagram(block.name, [block], {}, inputs, outputs)
    block.parent = diagram
    return diagram


def _insert(
    root: Diagram, port: InputPort | OutputPort, block: LeafSystem, sources: Sequence[LeafSystem]
) -> None:
    """Insert a block behind a port of a new diagram, which has no contexts yet."""
    diagram: Any = port.system if port.system is root else port.system.parent
    feeds, entry, output = diagram._feeds, block.input_ports[0], block.output_ports[0]
    if isinstance(port, InputPort) and port.system is not root:
        before = feeds.pop(port, None)
        readers = [port]
    else:
        before, readers = port, [reader for reader, feed in feeds.items() if feed is port]
        for shown in diagram.output_ports if diagram is not root else ():
            if isinstance(shown, ExportedOutputPort) and shown.source is port:
                shown.source = output
    feeds.update(dict.fromkeys(readers, output))
    if before is not None:
        feeds[entry] = before
    for exported in diagram.input_ports:
        targets = (t for t in exported.targets if t not in readers)
        if feeds.get(entry) is exported:
            exported.targets = (*targets, entry)
    for place, source in zip(block.input_ports[1:], sources, strict=False):
        feeds[place] = source.output_ports[0]
    for child in (block, *sources):
        while child.name in diagram._by_name:
            child.name += "_"
        child._freeze()
        child.parent = diagram
        diagram._by_name[child.name] = child
        diagram.children += (child,)
    for name in ("_layout", "_feedthrough"):
        above: Any = diagram
        while above is not None:
            setattr(above, name, None)
            above = above.parent
    root.__dict__.pop("_household", None)
