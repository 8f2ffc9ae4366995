"""Provenance: what the numbers of runs depend on, as a table of short texts.

A study may only go on when all of it is as it was. Entries are named so that a difference can be
said: which block is another one, which value, which option, which version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.files.versions import versions
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.solvers.results.records.fingerprints import Fingerprints
from flexure.solvers.tracing.replicas import passed_over_in

_SHORT = 200  # letters of a value that is written in full
_SAID = 4  # differences
#: Kinds of entries: of what a model is made, and all.
STRUCTURE = ("block", "wire")
KINDS = (*STRUCTURE, "value", "option", "version")


class Entry(NamedTuple):
    """One thing that numbers depend on."""

    kind: str  # "block", "wire", "value", "option" or "version"
    name: str  # which


#: What the numbers depend on, by what it is.
Provenance = dict[Entry, str]


def of_model(context: Context) -> Provenance:
    """Return what a model is: its blocks, its wires, and the values of a root context."""
    store, prints = context.store, Fingerprints()
    layout: Layout = store.layout
    found = {
        Entry("block", leaf.path or leaf.name): f"{type(leaf).__name__} {_print(prints, leaf)}"
        for leaf in layout.leaves
    }
    found[Entry("block", "order")] = prints.of([entry.name for entry in found])
    for leaf, slots in zip(layout.leaves, layout.sources, strict=True):
        for port, slot in zip(leaf.input_ports, slots, strict=True):
            found[Entry("wire", port.full_name)] = layout.slot_port[slot].full_name
    for output in layout.root.output_ports:
        found[Entry("wire", output.name)] = output.origin.full_name
    for handle, value in _values(context):
        found[Entry("value", handle.full_name)] = written(value, prints)
    found[Entry("value", "time")] = repr(float(context.time))
    found[Entry("value", "accuracy")] = repr(context.accuracy)
    return found


def _print(prints: Fingerprints, leaf: LeafSystem) -> str:
    """Return the fingerprint of a block, without the values of its parameters and states."""
    state, passed_over = leaf.continuous_state, passed_over_in(leaf)
    return prints.of(
        type(leaf),
        state and (state.num_q, state.num_v, state.num_z),
        [(p.name, p.shape, p.lower, p.upper, p.unit) for p in leaf.numeric_parameters],
        [(group.name, group.size) for group in leaf.discrete_states],
        [(port.name, port.size) for port in leaf.input_ports],
        [(each.name, each.size, each.calc) for each in (*leaf.output_ports, *leaf.cache_entries)],
        list(leaf.events),
        {name: value for name, value in vars(leaf).items() if name not in passed_over},
    )


def _values(context: Context) -> Iterable[tuple[Any, Any]]:
    """Go through all that a context holds, by its handles."""
    for leaf in context.leaves():
        block: LeafSystem = leaf.system
        state = block.continuous_state
        numbers = [*block.numeric_parameters, *([] if state is None else [state])]
        others = [*block.discrete_states, *block.abstract_parameters, *block.abstract_states]
        for handle in (*numbers, *others):
            yield handle, handle(leaf)
    store = context.store
    for port, slot in store.layout.held.items():
        yield port, store.cache[slot] if store.holds(slot) else None


def written(value: Any, prints: Fingerprints) -> str:
    """Write a value, in full where it is short."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f":
        text = json.dumps(value.tolist())
    elif value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
    else:
        text = prints.of(value)
    return text if len(text) <= _SHORT else prints.of(value)


def of_versions() -> Provenance:
    """Return the versions on which numbers may depend."""
    return {Entry("version", name): text for name, text in versions().items()}


def differences(then: Provenance, now: Provenance, kinds: Iterable[str] = KINDS) -> str:
    """Describe what differs in entries of some kinds; nothing when all is as it was."""
    then, now = ({e: text for e, text in table.items() if e.kind in kinds} for table in (then, now))
    texts = []
    for entry in [*then, *(each for each in now if each not in then)]:
        old, new = then.get(entry), now.get(entry)
        if old != new:
            texts.append(_said(entry, old, new))
    more = len(texts) - _SAID
    return "; ".join(texts[:_SAID]) + (f"; and {more} more" if more > 0 else "")


def _said(entry: Entry, old: str | None, new: str | None) -> str:
    """Describe what differs in one thing."""
    kind, name = entry
    name = {"wire": f"source of '{name}'"}.get(kind, f"{kind} '{name}'")
    if old is None or new is None:
        return f"the {name} is {'not in the file' if old is None else 'in the file alone'}"
    if kind == "block" and old.partition(" ")[0] == new.partition(" ")[0]:
        return f"the {name} has other code or arguments"
    readable = not any(len(text.rpartition(" ")[2]) == 32 for text in (old, new))
    return f"the {name} is {new}, and {old} in the file" if readable else f"the {name} is another"
