"""Inventories: tables of the paths of all parameters, ports, states etc. of a system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.building.known_units import KnownUnits
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.contexts.value_places import Place, is_signal, shows_state
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.layout import leaves_of
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.arrays import equal
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.tables import Bounds, Table

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context

_KINDS = {
    "input port": "input",
    "output port": "output",
    "continuous state": "state",
    "discrete state": "discrete",
    "abstract state": "abstract",
    "abstract parameter": "parameter",
}


def parameters_of(system: System, pattern: str | None = None) -> Table:
    """Return the parameters of all blocks below a system; see `System.parameters`."""
    path_of = Paths(system)
    rows = [
        (path_of(handle), handle.default, _unit(handle), _bounds(handle), handle.doc)
        for _, handle in each_parameter(system)
    ]
    return _chosen(system, pattern, ("path", "default", "unit", "bounds", "doc"), rows)


def signals_of(system: System, pattern: str | None = None) -> Table:
    """Return the vector ports and numeric states below a system; see `System.signals`."""
    path_of, known = Paths(system), KnownUnits(system)
    rows: dict[str, tuple[Any, ...]] = {}
    for each in each_system(system):
        for handle in (*each.output_ports, *_states(each), *each.input_ports):
            if is_signal(handle):  # a path leads to the outer one of two that have the same
                path = path_of(handle)
                row = (path, _kind(handle), handle.size, known.unit(handle), handle.doc)
                rows.setdefault(path, row)
    return _chosen(system, pattern, ("path", "kind", "size", "unit", "doc"), [*rows.values()])


def values_of(context: Context, pattern: str | None = None) -> Table:
    """Return what a context holds; see `Context.describe`."""
    system = context.system
    usual = context.root.system.create_default_context().find(system)
    path_of, known = Paths(system), KnownUnits(system)
    places = [place for kind in (each_state, each_parameter) for place in kind(system)]
    rows: list[tuple[Any, ...]] = [
        ("time", "time", context.time, "s", context.time != usual.time, None, "")
    ]
    for place, handle in places:
        value = place.read(context)
        changed = not equal(value, place.read(usual))
        path, unit = path_of.place(place), _unit(place.handle)
        if is_signal(place.handle):
            part = None if place.part is None else place.part.tolist()
            unit = known.unit(place.handle, part)
        rows.append((path, _kind(handle), value, unit, changed, _bounds(handle), handle.doc))
    for port, slot in each_free_input(context):
        value, default = (_held(each, slot) for each in (context, usual))
        changed = not equal(value, default)
        unit = known.unit(port) if is_signal(port) else port.unit
        rows.append((path_of(port), "input", value, unit, changed, None, port.doc))
    columns = ("path", "kind", "value", "unit", "changed", "bounds", "doc")
    return _chosen(system, pattern, columns, rows)


class Paths:
    """The paths by which people call what is below a system, counted from there."""

    def __init__(self, system: System) -> None:
        self._start = len(f"{system.path}.") if system.path else 0
        self._short = {
            handle: f"{each.path}.{path}"[self._start :] if each is not system else path
            for each in each_system(system)
            if isinstance(each, Diagram)
            for handle, path in each.short_paths().items()
        }

    def __call__(self, handle: Any) -> str:
        """Return the path of what a handle stands for."""
        short = self._short.get(handle)
        return str(handle.path[self._start :]) if short is None else short

    def place(self, place: Place) -> str:
        """Return the path of a value, or of a single component of it."""
        return self(place.handle) if place.part is None else self.components(place)[0]

    def components(self, place: Place) -> list[str]:
        """Return one path for each component of a value."""
        if place.part is None and place.components.size == 1:
            return [self(place.handle)]
        return [self(place.handle) + n.removeprefix(place.handle.path) for n in place.names]


def each_parameter(system: System) -> Iterator[tuple[Place, Any]]:
    """Yield the places of all parameters, with their handles."""
    for leaf in leaves_of(system):
        for handle in (*leaf.numeric_parameters, *leaf.abstract_parameters):
            yield Place.of(handle), handle


def each_state(system: System) -> Iterator[tuple[Place, Any]]:
    """Yield the places of all states, with their handles: by component where those have names.

    Components that an output shows, as the angle of a joint does, are called by that.
    """
    shown: dict[Any, OutputPort] = {}  # the outermost port by that of the leaf
    for each in each_system(system):
        for port in each.output_ports:
            if shows_state(port):
                shown.setdefault(port.origin, port)
    for leaf in leaves_of(system):
        for handle in _states(leaf):
            ports = [shown[port] for port in leaf.output_ports if port in shown]
            taken = ports if handle is leaf.continuous_state else []
            yield from ((place, handle) for place in _parts(handle, taken))
        for state in leaf.abstract_states:
            yield Place.of(state), state


def _states(system: System) -> list[Any]:
    """Return the handles of the numeric states of a block; a diagram has none itself."""
    if not isinstance(system, LeafSystem):
        return []
    own = system.continuous_state
    return [*([] if own is None else [own]), *system.discrete_states]


def _parts(state: Any, ports: Sequence[OutputPort]) -> list[Place]:
    """Return places that hold each component of a state once, in their order."""
    if not ports and state.element_names is None:
        return [Place.of(state)]
    found: dict[int, Place] = {}
    left = set(range(state.size))
    for port in sorted(ports, key=lambda each: (each.size, each.element_names is None)):
        components = range(state.size)[port.origin.shows]  # type: ignore[index]
        if components and left.issuperset(components):
            left.difference_update(components)
            found[components[0]] = Place.of(port)
    for k in left:
        found[k] = Place(state, np.array([k]), ())
    return [found[k] for k in sorted(found)]


def each_free_input(context: Context) -> Iterator[tuple[InputPort, int]]:
    """Yield the outermost port of each input that no block feeds, and the slot behind it."""
    seen: set[int] = set()
    for system in each_system(context.system):
        window = context.find(system)
        for port in system.input_ports:
            slot = window._input_slot(port.index)
            if slot not in seen and window.input_is_free(port.index):
                seen.add(slot)
                yield port, slot


def _held(context: Context, slot: int) -> Any:
    """Return the value of an input that no block feeds; None while there is none."""
    return context.store.cache[slot] if context.store.holds(slot) else None


def _kind(handle: Any) -> str:
    return str(_KINDS.get(handle.what, handle.what))


def _unit(handle: Any) -> str:
    return str(getattr(handle, "unit", ""))


def _bounds(handle: Any) -> Bounds | None:
    if not isinstance(handle, NumericParameter):
        return None
    return Bounds(handle.lower, handle.upper, handle.exclusive)


def _chosen(
    system: System, pattern: str | None, columns: Sequence[str], rows: list[tuple[Any, ...]]
) -> Table:
    """Return a table of the rows whose paths a pattern fits."""
    if pattern is None:
        return Table(columns, rows)
    attempt = f"Cannot select from '{system.label}'"
    wanted = "a path, or a pattern such as 'door.*'"
    require(isinstance(pattern, str), pattern, attempt, wanted, error=UnknownNameError)
    glob = pattern.replace("[", "[[]")  # brackets belong to paths
    found = [
        row
        for row in rows
        if row[0].startswith((f"{pattern}.", f"{pattern}[")) or fnmatchcase(row[0], glob)
    ]
    if not found and not {"*", "?"} & set(pattern):
        system.get_system(pattern)  # which says what there is when there is no such block
    return Table(columns, found)
