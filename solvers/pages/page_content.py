"""Content of a page of a system: its signals, charts, responses, and adjustable values."""

from __future__ import annotations

import base64
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from flexure.blocks.controllers.controllers import PIDController
from flexure.blocks.multibody.bodies.plant_base import TreeBase
from flexure.blocks.multibody.plants.energy_ledger import EnergyLedger
from flexure.blocks.multibody.plants.plant import Plant
from flexure.diagrams.building.known_units import known_units
from flexure.diagrams.checks.errors import FlexureError, UnknownNameError, ValueRefusedError, quoted
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import Paths, each_parameter
from flexure.diagrams.contexts.value_places import find_place, path_of, several, tied_at
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.kinds import DISCRETE, PARAMETER
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import DiscreteState
from flexure.solvers.analysis.equations.equations import refuse_sampled
from flexure.solvers.results.measures.step_sources import StepFinder
from flexure.solvers.results.pictures.panels import (
    ENERGIES,
    Scales,
    component_units,
    coordinate_ports,
)
from flexure.solvers.tracing.signals import Reader, Signal, resolve

_PANELS = 6  # of signals that nobody has named
_IN_ONE_PANEL = 6  # lines that can be told apart
_FROM_ONE_BLOCK = 4  # parameters at hand that nobody has named
_AT_HAND = 12
_MOST_LOOP_STATES = 60
_SAMPLES = 3  # states at which a page compares itself with Python
_SHIFT = 1e-3  # by which they are apart, relative
#: Step metrics that goals can bound, and their units, where U is that of the signal.
FIGURES = {
    "rise_time": "s",
    "settling_time": "s",
    "overshoot": "%",
    "peak": "U",
    "steady_state_error": "U",
    "iae": "U s",
}
#: Metrics of any signal.
OF_SIGNALS = ("least", "greatest", "last")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GOAL = re.compile(rf"\s*(\w+)(?:\s+of\s+(.+?))?\s*([<>])\s*({_NUMBER})\s*")


class PageSignals:
    """The signals of a root system under the names and, with ``scales``, in units of the page."""

    def __init__(self, system: System, scales: Scales | None = None) -> None:
        self.system = system
        self._scales = scales or Scales(None, "")
        self._layout: Layout = system.layout
        path_of = Paths(system)
        self._paths: dict[Any, str] = {}  # by the port of the leaf; the outermost name comes first
        for each in each_system(system):
            for port in each.output_ports:
                self._paths.setdefault(port.origin, path_of(port))
        self._path_of = path_of
        #: What should stay as it is: of these, only changes mean anything.
        self.balances = [
            each.balance for each in each_system(system) if isinstance(each, EnergyLedger)
        ]

    def name(self, signal: Signal) -> str:
        """Return the name of a signal with one component, of what feeds it if it is an input."""
        reader = resolve(self.system, signal)
        path = self.path(reader)
        if reader.handle.size == 1:
            return path
        if reader.part is None or len(reader.part) > 1:
            raise ValueRefusedError(
                f"Cannot show '{path}' on a page",
                expected="a signal with one component",
                found=f"{reader.size} components",
                remedy=f"Name one, as in '{path}[{reader.labels[0]}]'",
            )
        return f"{path}[{reader.labels[0]}]"

    def path(self, reader: Reader) -> str:
        """Return the path of the whole signal that a reader reads; of what feeds an input."""
        handle = reader.handle
        if isinstance(handle, InputPort):
            return self.outermost(self._layout.slot_port[self._layout.slot_feeding(handle)])
        return self._path_of(handle)

    def outermost(self, handle: Any) -> str:
        """Return the path by which people know a port or state: that of the outermost export."""
        origin = handle.origin if isinstance(handle, OutputPort) else handle
        return self._paths.get(origin) or self._path_of(handle)

    def of_slot(self, slot: int, component: int = 0) -> str | None:
        """Return the name of a component of what a slot holds; None for what is no output."""
        port = self._layout.slot_port[slot]
        return self.components(port)[component] if isinstance(port, OutputPort) else None

    def components(self, handle: Any) -> list[str]:
        """Return a name for each component of a port or state."""
        reader, path = Reader(handle, None), self.outermost(handle)
        if reader.size == 1:
            return [path]
        return [f"{path}[{label}]" for label in reader.labels]

    def about(self, reader: Reader) -> dict[str, Any]:
        """Return what the page has to know of a signal."""
        unit, scale = self._scales(reader.unit)
        return {
            "path": self.path(reader),
            "labels": [str(label) for label in reader.labels],
            "unit": unit,
            "scale": scale,
            "relative": reader.handle in self.balances,
            "size": reader.size,
            "doc": reader.doc,
            "held": self.is_held(reader.handle),
        }

    def is_held(self, handle: Any) -> bool:
        """Return whether a signal keeps its value between samples."""
        if isinstance(handle, DiscreteState):
            return True
        if not isinstance(handle, OutputPort):
            return False
        mask = self._layout.masks[self._layout.slot_of(handle)]
        return bool(mask & DISCRETE) and not mask & ~(DISCRETE | PARAMETER)


def charts(
    signals: PageSignals, wanted: Sequence[Signal | Sequence[Signal]] | None
) -> list[list[str]]:
    """Return the names of signals in groups, each for a panel.

    Without a wish these are setpoint and measurement of each controller, then what it gives; else
    the outputs of the system, what its wires carry, or its states. Then come coordinates of plants
    that are not shown yet, unless there are controllers, and energies.
    """
    if wanted is not None:
        items = [i if isinstance(i, (list, tuple)) else [i] for i in _items(wanted)]
        groups = [[signals.name(each) for each in item] for item in items]
        return [list(dict.fromkeys(group)) for group in groups if group]
    plants = [each for each in each_system(signals.system) if isinstance(each, Plant)]
    found = [*_loops(signals)]
    if not found:
        ours = [] if signals.system in plants else _foremost(signals)
        found = [*ours[:_PANELS], *_coordinates(signals, ours)]
    return [*found[:_PANELS], *energies(signals)]


def _items(wanted: Any) -> Iterable[Any]:
    return [wanted] if isinstance(wanted, str) else several(wanted)


def _loops(signals: PageSignals) -> Iterator[list[str]]:
    layout = signals.system.layout
    for leaf, slots in zip(layout.leaves, layout.sources, strict=True):
        fed = {port.name: slot for port, slot in zip(leaf.input_ports, slots, strict=True)}
        pair = [signals.of_slot(fed[name]) for name in ("setpoint", "measurement") if name in fed]
        if len(pair) == 2:
            yield [name for name in pair if name is not None]
            yield [name for port in leaf.output_ports for name in signals.components(port)]


def _foremost(signals: PageSignals) -> list[list[str]]:
    """Return a panel for each port to look at first."""
    system = signals.system
    wired = [*system.wires.values()] if isinstance(system, Diagram) else []
    blocks = [each for each in system.children or () if isinstance(each, LeafSystem)]
    between = [port for port in wired if port.system in blocks]
    between += [port for block in blocks for port in block.output_ports]  # also at loose ends
    between += wired
    states = [
        state
        for leaf in each_system(system)
        if isinstance(leaf, LeafSystem)
        for state in (leaf.continuous_state, *leaf.discrete_states)
        if state is not None
    ]
    for ports in (system.output_ports, dict.fromkeys(between), states):
        found = [signals.components(port) for port in ports if port.size]
        if found:
            return found
    return []


def _coordinates(signals: PageSignals, shown: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the coordinates of plants that are not shown, as many in a panel as have a color."""
    known = {name for group in shown for name in group}
    panels: dict[tuple[Any, Any], list[str]] = {}
    wired = known_units(signals.system)
    for port in coordinate_ports(signals.system):
        units = component_units(wired, Reader(port, None))
        for name, unit in zip(signals.components(port), units, strict=True):
            panels.setdefault((port.system, unit or port), []).append(name)
    groups = [[name for name in panel if name not in known] for panel in panels.values()]
    return [group[:_IN_ONE_PANEL] for group in groups if group]


def energies(signals: PageSignals) -> list[list[str]]:
    """Return the energies of plants, in a panel for each, and what their ledgers have left over."""
    plants = [each for each in each_system(signals.system) if isinstance(each, Plant)]
    found = [
        [signals.outermost(port) for port in plant.output_ports if port.name in ENERGIES]
        for plant in plants
    ]
    return [*found, *([signals.outermost(port)] for port in signals.balances)]


def responses(
    signals: PageSignals, groups: Sequence[Sequence[str]], context: Context
) -> list[dict[str, Any]]:
    """Return which of the shown signals answer to a step, and where that comes from.

    These are what controllers measure. Where there is none, the last signal that a source upstream
    makes jump; not an energy.
    """
    system, layout = signals.system, signals.system.layout
    followers, others = [], []
    names = [name for group in groups if group not in energies(signals) for name in group]
    for name in dict.fromkeys(names):
        finder = StepFinder(system, resolve(system, name))
        about = {
            "signal": name,
            "setpoint": None,
            "sources": [layout.leaves[k].path for k in finder.sources],
        }
        if len(finder.setpoints) == 1:
            (slot,) = finder.setpoints
            followers.append(about | {"setpoint": signals.of_slot(slot)})
        elif finder.sources:
            others.append(about)
    return followers or [each for each in others if _moves(each, system)][-1:]


def _moves(response: dict[str, Any], system: System) -> bool:
    """Return whether a response is another signal than the source itself."""
    handle = resolve(system, response["signal"]).handle
    return handle.system.path not in response["sources"]


def read_goals(
    goals: Any, signals: PageSignals, responses: Sequence[dict[str, Any]], attempt: str
) -> list[dict[str, Any]]:
    """Return goals as the page knows them, from texts such as "overshoot of plant.y < 5"."""
    return [_goal(text, signals, responses, attempt) for text in _items(goals)]


def _goal(
    text: Any, signals: PageSignals, responses: Sequence[dict[str, Any]], attempt: str
) -> dict[str, Any]:
    found = _GOAL.fullmatch(text) if isinstance(text, str) else None
    answering = [each["signal"] for each in responses]
    figure, signal, comparison, limit = found.groups() if found else ("", None, "", "")
    if signal is not None:
        signal = signals.name(signal)
    elif figure in FIGURES and answering:
        signal = answering[0]
    if signal is None or not (figure in OF_SIGNALS or (figure in FIGURES and signal in answering)):
        raise ValueRefusedError(
            f"{attempt} with the goal {text!r}",
            expected="a metric, a signal, and a bound, such as 'overshoot of plant.y < 5' or "
            "'least of leaf.safety > 1.5'",
            remedy=f"Metrics of the step responses of {quoted(answering)} are {quoted(FIGURES)}, "
            f"and those of any signal are {quoted(OF_SIGNALS)}",
        )
    reader = resolve(signals.system, signal)
    unit = FIGURES.get(figure, "U").replace("U", signals.about(reader)["unit"]).strip()
    return {
        "figure": figure,
        "signal": signal,
        "unit": unit,
        "comparison": comparison,
        "limit": float(limit),
    }


def foremost_parameters(
    system: System, context: Context, wanted: Sequence[Signal] | None, known: Iterable[str]
) -> list[str]:
    """Return the paths of the values that are at hand.

    Without a wish these are numbers that are neither zero nor infinite, a few of each block; those
    of the trees of plants where there are no others. Tied parameters have the path of the
    first one.
    """
    path_of = Paths(system)
    if wanted is None:
        found: dict[System, list[str]] = {}
        for place, handle in each_parameter(system):
            if isinstance(handle, NumericParameter) and handle.shape == ():
                value = place.read(context)
                if np.isfinite(value) and value != 0.0:
                    found.setdefault(handle.system, []).append(path_of(handle))
        blocks = [each for each in found if not isinstance(each, TreeBase)] or list(found)
        chosen = [path for block in blocks for path in found[block][:_FROM_ONE_BLOCK]]
        return chosen[:_AT_HAND]
    names = list(known)
    paths = [_settable(system, way, path_of) for way in _items(wanted)]
    for path in paths:
        if path not in names:
            raise UnknownNameError(
                f"Cannot offer '{path}' on a page",
                expected="a numeric parameter, a state or a free input",
                remedy=f"There are {quoted(names)}",
            )
    return list(dict.fromkeys(paths))


def tied_paths(system: System, wanted: Sequence[Signal] | None) -> dict[str, list[str]]:
    """Return the paths of parameters that one slider moves, by the path that ties them."""
    shorter = Paths(system)
    tied = {path_of(way): tied_at(system, way) for way in _items(wanted or ())}
    return {path: [*map(shorter, each.members)] for path, each in tied.items() if each}


def _settable(system: System, way: Any, path_of: Paths) -> str:
    tied = tied_at(system, way)
    place = find_place(system, way if tied is None else tied.members[0])
    return path_of.place(place) if place.part is not None else path_of(place.handle)


def loops(signals: PageSignals, context: Context) -> list[dict[str, Any]]:
    """Return the continuous PID controllers, by whose gains their loops can be opened."""
    system = signals.system
    try:
        refuse_sampled(context, "Cannot show loop gains on a page")
    except FlexureError:
        return []
    found = []
    if len(context.continuous_state) <= _MOST_LOOP_STATES:
        path_of = Paths(system)
        for leaf in system.layout.leaves:
            if isinstance(leaf, PIDController) and leaf.size == 1 and not leaf.gain_ports:
                gains = [path_of(gain) for gain in (leaf.kp, leaf.ki, leaf.kd) if gain is not None]
                found.append({"name": signals.outermost(leaf.u), "gains": gains})
    return found


def samples(system: System, context: Context, paths: Sequence[str]) -> list[dict[str, Any]]:
    """Return derivatives and signals at a few states near that of a context, as the page has them.

    A page compares its own numbers with these. There are none where the equations need what the
    context does not have, such as the value of a free input.
    """
    readers = {path: resolve(system, path) for path in paths}
    start = np.array(context.continuous_state)
    found = []
    for k in range(_SAMPLES):
        now = context.clone()
        directions = np.sin(1.0 + k * np.arange(1.0, start.size + 1.0))
        now.continuous_state = start + _SHIFT * k * (1.0 + np.abs(start)) * directions
        try:
            with quietly():
                rates = system.eval_time_derivatives(now)
                values = {path: as_text(np.ravel(read(now))) for path, read in readers.items()}
        except (FlexureError, ArithmeticError):
            continue
        state = as_text(now.continuous_state)
        found.append(
            {"time": now.time, "state": state, "derivatives": as_text(rates), "signals": values}
        )
    return found


def as_text(values: Any) -> str:
    """Return numbers as the base64 text of their bytes, as 64-bit floats."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")


def law_of(block: object) -> str:
    """Return the equations in the docstring of the class of a block; empty if there are none.

    Examples
    --------
    >>> import flexure as fx
    >>> print(law_of(fx.PIDController("pid")).splitlines()[0])
    v = kp (b r − y) + ki z + kd d + f        sum of all parts
    """
    head = re.split(r"\n(?:Parameters|Attributes)\n-", inspect.getdoc(type(block)) or "")[0]
    blocks = re.findall(r"::\n\n((?:    .*\n|\n)+)", f"{head}\n")
    return "\n\n".join(textwrap.dedent(each).strip() for each in blocks)
