"""Which signals share axes, by unit or as the caller wants it, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.blocks import Multiplexer, Plant
from flexure.blocks.multibody.trees.component_names import POSITION, mixed_unit
from flexure.diagrams.building.known_units import KnownUnits, known_units
from flexure.diagrams.checks.arguments import mapping, require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.inventory import each_state
from flexure.diagrams.contexts.value_places import path_of, several
from flexure.diagrams.drawing.formats.style import labelled
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.handles import Handle, Located
from flexure.diagrams.values.units import conversion
from flexure.solvers.tracing.signals import Reader, Signal, resolve

#: Outputs of plants, which are shown together.
ENERGIES = ("kinetic_energy", "potential_energy", "mechanical_energy")
_LARGEST = 1e300  # number, with which Matplotlib can still compute


def coordinate_ports(system: System) -> list[OutputPort]:
    """Return the outputs of plants in a system that are coordinates of their joints."""
    handles = dict.fromkeys(place.handle for place, _ in each_state(system))
    ports = [each for each in handles if isinstance(each, OutputPort)]
    return [port for port in ports if isinstance(port.system, Plant)]


@dataclass(frozen=True)
class Curve:
    """One component of a signal."""

    signal: Signal
    column: int  # which of its components, of those that are read
    name: str  # the path of the component
    short: str  # the name of the component alone; empty for a signal with one component
    unit: str  # the unit in which it is shown; empty when it is unknown
    factor: float  # from the numbers of the signal to numbers in that unit
    kind: Any  # equal for curves of the same unit, also where that is unknown

    def drawn(self, values: FloatArray) -> FloatArray:
        """Return the numbers to draw, of the values of the signal at some times."""
        column = values if values.ndim == 1 else values[:, self.column]
        with np.errstate(over="ignore"):
            return drawable(self.factor * column)


def drawable(values: FloatArray) -> FloatArray:
    """Return values with NaN, which leaves a gap, where they are too large for a picture."""
    return np.where(np.abs(values) < _LARGEST, values, np.nan)


@dataclass(frozen=True)
class Panel:
    """The curves that share axes."""

    curves: list[Curve]

    @property
    def is_single(self) -> bool:
        """Whether they are those of one signal."""
        return len({path_of(curve.signal) for curve in self.curves}) == 1

    @property
    def unit(self) -> str:
        """The unit of all curves; empty where they differ or it is unknown."""
        units = {curve.unit for curve in self.curves}
        return units.pop() if len(units) == 1 else ""

    @property
    def name(self) -> str:
        """What is written at the axis; nothing where the legend has all the names."""
        if len(self.curves) == 1:
            return self.curves[0].name
        return path_of(self.curves[0].signal) if self.is_single else ""

    @property
    def labels(self) -> list[str]:
        """Names of the curves in the legend, with their units if these differ."""
        names = [curve.short if self.is_single else curve.name for curve in self.curves]
        names = [name or curve.name for name, curve in zip(names, self.curves, strict=True)]
        if self.unit:
            return names
        return [labelled(name, c.unit) for name, c in zip(names, self.curves, strict=True)]


class Scales:
    """The units in which people want to see numbers.

    Units replace those in their place, as in ``{"rad": "deg"}``.
    """

    def __init__(self, units: Any, attempt: str) -> None:
        given = {} if units is None else mapping(units, "units by units", attempt)
        for pair in given.items():
            texts = all(isinstance(each, str) for each in pair)
            require(texts, units, attempt, "units= to be texts by texts, such as {'rad': 'deg'}")
        self._scales = {
            unit: (wanted, conversion(unit, wanted, f"{attempt} with '{unit}' as '{wanted}'"))
            for unit, wanted in given.items()
        }

    def __call__(self, unit: str) -> tuple[str, float]:
        """Return the unit to show, and the factor to numbers in it."""
        return self._scales.get(unit, (unit, 1.0))


def arrange(
    system: System, signals: Sequence[Any], scales: Scales, attempt: str, together: bool = False
) -> list[Panel]:
    """Return panels with the components of some signals.

    Signals are grouped by the caller where there is a list among them, each of which is a panel, as
    is each signal beside them. A single list of signals only names them. Otherwise signals of the
    same unit share a panel; one whose components have different units is divided, and one without
    a unit has a panel of its own, but for signals that must have the same unit, whatever it is.

    ``together`` asks for one panel for all.
    """
    known = known_units(system)
    items = list(signals)
    if len(items) == 1 and not _is_single(items[0]):
        items = several(items[0])
    if together:
        items = [[signal for item in items for signal in several(item)]]
    if not all(map(_is_single, items)):
        chosen = [_curves(system, several(item), known, scales) for item in items]
        panels = [Panel(curves) for curves in chosen if curves]
    else:
        by_kind: dict[Any, list[Curve]] = {}
        for curve in _curves(system, items, known, scales):
            by_kind.setdefault(curve.kind, []).append(curve)
        panels = [Panel(curves) for curves in by_kind.values()]
    if not panels:
        raise ValueRefusedError(attempt, expected="at least one signal", found="none")
    return panels


def _is_single(item: Any) -> bool:
    """Return whether something can be a signal; whatever is no collection is left to `path_of`."""
    return isinstance(item, (str, Handle, Located)) or not isinstance(item, Iterable)


def _curves(
    system: System, signals: Iterable[Signal], known: KnownUnits, scales: Scales
) -> list[Curve]:
    """Return the components of some signals."""
    found = []
    for signal in signals:
        reader, path = resolve(system, signal), path_of(signal)
        units = component_units(known, reader)
        kinds: list[Any] = known.kinds(reader.handle, reader.part)
        if len(units) > 1:  # components without units stay together
            kinds = [unit or path for unit in units]
        for column, (name, unit) in enumerate(zip(component_names(reader), units, strict=True)):
            wanted, factor = scales(unit)
            short = "" if reader.size == 1 else name
            full = f"{path}[{name}]" if short else path
            found.append(Curve(signal, column, full, short, wanted, factor, kinds[column]))
    return found


def component_units(known: KnownUnits, reader: Reader) -> list[str]:
    """Return the unit of each component; of coordinates that turn and slide, by their names."""
    units = known.units(reader.handle, reader.part)
    if any(units) or len(units) < 2:
        return units
    names = [str(label) for label in reader.labels]
    suffixes = [name.rpartition("_")[2] for name in names]
    if "qw" in suffixes:  # beside the quaternion there is a position
        return ["m" if suffix in POSITION else "" for suffix in suffixes]
    return [mixed_unit(names, name) for name in names]


def component_names(reader: Reader) -> list[str]:
    """Return the names of the components that are read.

    Components without names that a multiplexer has joined are called by where they come from, and
    others by their number.
    """
    port = source_of(reader.handle)
    if reader.handle.element_names is None and isinstance(port, OutputPort):
        joined = port.origin.system
        if isinstance(joined, Multiplexer):
            names = []
            for entry in joined.inputs:
                source = source_of(entry)
                own = source.element_names or range(source.size or 0)
                single = source.size == 1
                names += [source.path] if single else [f"{source.path}[{name}]" for name in own]
            return names if reader.part is None else [names[k] for k in reader.part]
    return [str(label) for label in reader.labels]


def source_of(handle: Any) -> Any:
    """Return the output port that feeds an input port, or what was given."""
    while isinstance(handle, InputPort) and handle.system.parent is not None:
        source = handle.system.parent.feed_of(handle)
        if source is None:
            break
        handle = source
    return handle
