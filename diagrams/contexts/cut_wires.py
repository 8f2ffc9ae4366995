"""Cut wires: a context of a finished diagram in which chosen wires carry values of their own."""

from __future__ import annotations

from collections.abc import Sequence

from flexure.diagrams.contexts.context import Context, make_context
from flexure.diagrams.systems.ports import InputPort, OutputPort


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
