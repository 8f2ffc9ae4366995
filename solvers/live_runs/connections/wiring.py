"""The wiring of a live run: where values of partners go, and where those for partners come from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import require, require_known
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.rewiring import cut_wires
from flexure.diagrams.contexts.value_places import Place, Way, can_be_set, find_place, path_of
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.live_runs.connections.channels import Entry, Indices
from flexure.solvers.live_runs.connections.software import Software
from flexure.solvers.simulation.run_control.state_manifold import Reading
from flexure.solvers.tracing.signals import Reader, Signal, resolve


class SignalReading(Reading):
    """The signals of a live run, read together."""

    names: list[tuple[str, int]]  # their paths and numbers of components
    places: list[Indices]  # for each output, which components it takes
    units: list[str]  # the units of the signals


def together_read(context: Context, readers: Sequence[Callable[[Context], Any]]) -> SignalReading:
    """Return what reads several signals of a context at once, compiled where possible."""
    store = context.store

    def read(of: Any) -> list[Any]:
        source = context if of is store else of.leaves[0].root
        return [number for reader in readers for number in reader(source)]

    found = SignalReading(store, read, compiled=True)
    found.prepare()
    return found


class Wiring:
    """Finds the places of values, and cuts the wires that partners and ``software`` replace."""

    def __init__(
        self, system: System, context: Context, attempt: str, software: Sequence[Software]
    ) -> None:
        self._system, self._context, self._attempt = system, context, attempt
        self._software = software
        self._entries: dict[str, Entry] = {}
        self._cuts: list[InputPort | OutputPort] = [
            port for each in software for port in each.outputs
        ]

    def groups(self, partners: Any, what: str) -> list[tuple[tuple[Way, ...], Any]]:
        """Return each partner with its paths, of which a tuple names several."""
        partners = {} if partners is None else partners
        fits = isinstance(partners, Mapping)
        require(fits, partners, self._attempt, f"{what} to be partners by path")
        found = [
            (key if isinstance(key, tuple) else (key,), each) for key, each in partners.items()
        ]
        for ways, _ in found:
            require(ways, ways, self._attempt, f"{what} with at least one path each")
        return found

    def entries(self, groups: Sequence[Sequence[Way]]) -> list[list[Entry]]:
        """Return the places of the values that partners send."""
        return [[self._entry(way) for way in ways] for ways in groups]

    def _entry(self, way: Way) -> Entry:
        place = find_place(self._system, way, can_be_set)
        entry = Entry(path_of(way), place)
        if self._is_wired(place):
            require(
                place.part is None, entry.path, self._attempt, "a whole port where a wire is cut"
            )
            twice = place.handle in self._cuts
            self._cuts.append(place.handle)
        else:
            entry = Entry(entry.path, place.settable)
            twice = False
        if twice or entry.path in self._entries:
            raise ValueRefusedError(
                self._attempt,
                expected="one partner for each input",
                found=f"two for '{entry.path}'",
            )
        self._entries[entry.path] = entry
        return entry

    def _is_wired(self, place: Place) -> bool:
        """Return whether a port gets its value over a wire, or computes it."""
        handle = place.handle
        if isinstance(handle, InputPort):
            return not self._context.find(handle.system, handle).input_is_free(handle.index)
        return isinstance(handle, OutputPort) and handle.origin.shows is None

    def begin(self, values: Mapping[str, Any]) -> Context:
        """Return a context in which the wires are cut, and inputs have their first values."""
        for path, entry in self._entries.items():
            if entry.place.handle not in self._cuts:
                handle, held = entry.place.handle, values.get(path)
                if held is None and isinstance(handle, InputPort) and not self._has_value(handle):
                    held = np.zeros(entry.size)
                if held is not None:
                    entry.write(self._context, held)
        moving = cut_wires(self._context, self._cuts) if self._cuts else self._context
        for path, entry in self._entries.items():
            entry.slot = moving.store.layout.cuts.get(entry.place.handle)
            if entry.slot is not None and path in values:
                entry.write(moving, values[path])
        for each in self._software:
            each.attach(moving, together_read)
        self._context = moving
        return moving

    def settable(self, way: Way) -> Entry:
        """Return where a value is set."""
        path = path_of(way)
        if path in self._entries:
            return self._entries[path]
        return Entry(path, find_place(self._system, way, can_be_set).settable)

    def reading(
        self, groups: Sequence[Sequence[Signal]], others: Sequence[Signal]
    ) -> SignalReading:
        """Return what reads the signals of all outputs, and other ones."""
        readers: dict[str, Reader] = {}
        for way in [*(way for ways in groups for way in ways), *others]:
            readers.setdefault(path_of(way), resolve(self._system, way))
        ends = dict(zip(readers, np.cumsum([each.size for each in readers.values()]), strict=True))
        found = together_read(self._context, [self._behind(each) for each in readers.values()])
        found.names = [(path, reader.size) for path, reader in readers.items()]
        found.units = [reader.unit for reader in readers.values()]
        found.places = [
            np.concatenate(
                [
                    np.arange(ends[path] - readers[path].size, ends[path])
                    for path in map(path_of, ways)
                ]
            )
            for ways in groups
        ]
        return found

    def _behind(self, reader: Reader) -> Callable[[Context], Any]:
        """Return what reads a signal, beyond a cut where there is one."""
        slot = self._context.store.layout.cuts.get(reader.handle)
        if slot is None or not isinstance(reader.handle, OutputPort):
            return reader.__call__
        part = slice(None) if reader.part is None else list(reader.part)
        return lambda context: context.store.value(slot)[part]

    def _has_value(self, port: InputPort) -> bool:
        """Return whether a free input has a value."""
        own = self._context.find(port.system, port)
        return bool(own.store.holds(own._input_slot(port.index)))


def by_path(values: Any, known: Collection[str], name: str, attempt: str) -> dict[str, Any]:
    """Return values by paths that are known; handles are paths, too."""
    require(isinstance(values, Mapping), values, attempt, f"{name} to be values by path")
    found = {path_of(way): value for way, value in values.items()}
    for path in found:
        about = f"{attempt} and the {name} value of '{path}'"
        require_known(path, sorted(known), about, "an input or output of the run")
    return found


def together(
    names: Sequence[str], values: Mapping[str, Any], size: int, attempt: str
) -> FloatArray | None:
    """Return the safe values of several paths as one array; None unless all have one."""
    if not all(name in values for name in names):
        return None
    given = [values[name] for name in names]
    number: FloatArray = np.zeros(0)
    with suppress(TypeError, ValueError):  # of what is refused below
        number = np.concatenate([np.reshape(np.asarray(each, float), -1) for each in given])
    fits = number.size == size and np.isfinite(number).all()
    about = f"{attempt} with the safe value of {', '.join(names)}"
    require(fits, given, about, "finite numbers that fit")
    return number
