"""Units of ports and states: those declared, and those that follow from wires."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.handles import Handle, root_of
from flexure.diagrams.values.units import product

#: A component of a port or state.
Component = tuple[Handle, int]


class _Link(NamedTuple):
    """Components whose units are those of others, times a unit to some power."""

    own: Sequence[int]
    other: Handle
    others: Sequence[int]
    times: str
    power: int


class KnownUnits:
    """Units of the ports and states in all that a system is part of.

    A wire has one unit, and so have an exported port and the port inside; what a block declares in
    `LeafSystem.unit_relations` joins its ports and its state. Components that are joined form a
    class. Where one of them has a declared unit, those of the others follow. Where declared units
    contradict each other, or relations do, as in the loop of an integrator that feeds itself,
    nothing follows.
    """

    def __init__(self, system: System) -> None:
        self._links: dict[Handle, list[_Link]] = {}
        self._found: dict[Component, tuple[str, Any]] = {}
        self._lock = Lock()
        for each in each_system(root_of(system)):
            for joined in _joined(each):
                self._join(joined)

    @property
    def size(self) -> int:
        """How many ends relations have."""
        return 1 + sum(map(len, self._links.values()))

    def unit(self, handle: Any, part: Sequence[int] | None = None) -> str:
        """Return the unit that all components of a port or state have, or some of them.

        It is empty where they differ or one is unknown.
        """
        units = set(self.units(handle, part))
        return units.pop() if len(units) == 1 else ""

    def units(self, handle: Any, part: Sequence[int] | None = None) -> list[str]:
        """Return the unit of each component; empty where it is unknown."""
        return [self._find((handle, k))[0] for k in _all(handle, part)]

    def kinds(self, handle: Any, part: Sequence[int] | None = None) -> list[Any]:
        """Return something for each component that is equal where the unit is the same.

        That can be known though the unit is not.
        """
        found = [self._find((handle, k)) for k in _all(handle, part)]
        return [unit or kind for unit, kind in found]

    def _join(self, relation: Sequence[Any]) -> None:
        """Enter a relation; see `LeafSystem.unit_relations`."""
        times = relation[-1] if isinstance(relation[-1], str) else ""
        first, *rest = [_part(each) for each in relation if not isinstance(each, str)]
        for part in rest:
            for (one, own), (other, others), power in ((first, part, 1), (part, first, -1)):
                link = _Link(own, other, others, times, power)
                self._links.setdefault(one, []).append(link)

    def _find(self, start: Component) -> tuple[str, Any]:
        """Return the unit of a component, and what tells its class."""
        if start not in self._found:
            with self._lock:
                if start not in self._found:
                    self._explore(start)
        return self._found[start]

    def _explore(self, start: Component) -> None:
        """Find the units of all components of a class."""
        factors = {start: "1"}  # of the unit of each component, relative to the first one
        queue, consistent = deque([start]), True
        while queue:
            handle, k = top = queue.popleft()
            for link in self._links.get(handle, ()):
                if k in link.own:
                    near = link.other, link.others[link.own.index(k)]
                    factor = factors[top]
                    if link.times:
                        factor = product(factor, link.times, link.power)
                    if near not in factors:
                        factors[near] = factor
                        queue.append(near)
                    consistent = consistent and _same(factors[near], factor)
        known = [
            _scaled(unit, factor, -1)
            for (handle, _), factor in factors.items()
            if (unit := getattr(handle, "unit", ""))
        ]
        agree = consistent and known and all(_same(known[0], other) for other in known)
        for component, factor in factors.items():
            unit = _scaled(known[0], factor, 1) if agree else ""
            unit = getattr(component[0], "unit", "") or unit
            self._found[component] = unit, (start, factor) if consistent else component


def known_units(system: System) -> KnownUnits:
    """Return `KnownUnits` of a system that has contexts, found once for all questions."""
    kept = root_of(system).layout.kept
    with kept.lock:
        found: KnownUnits | None = kept.find("units")
        if found is None:
            found = KnownUnits(system)
            kept.put("units", found, found.size)
    return found


def _joined(system: System) -> Iterator[Sequence[Any]]:
    """Yield the relations of one system, with the wires inside of it."""
    if isinstance(system, Diagram):
        yield from ((feed, port) for port, feed in system.wires.items() if feed.size is not None)
        for entry in system.input_ports:
            yield from ((entry, port) for port in entry.targets if port.size is not None)
        yield from ((port, port.source) for port in system.output_ports if port.size is not None)
    elif isinstance(system, LeafSystem):
        state = system.continuous_state
        for port in system.output_ports:
            if port.shows is not None and state is not None:
                yield port, (state, range(state.size)[port.shows])
        yield from system.unit_relations()


def _part(part: Any) -> tuple[Handle, Sequence[int]]:
    """Return a handle, and which of its components are meant."""
    if isinstance(part, tuple):
        handle, chosen = part
        whole = range(handle.size)
        return handle, whole[chosen] if isinstance(chosen, slice) else list(chosen)
    return part, range(part.size)


def _all(handle: Any, part: Sequence[int] | None) -> Iterable[int]:
    return range(handle.size) if part is None else part


def _scaled(unit: str, factor: str, power: int) -> str:
    return unit if factor == "1" else product(unit, factor, power)


def _same(one: str, other: str) -> bool:
    """Return whether two units are the same, in whichever order their words are."""
    return one == other or product(one, other, -1) == "1"
