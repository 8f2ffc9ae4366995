"""A block on a bench: alone, with inputs that can be chosen, and what is drawn of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import DeclarationError, FlexureError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.systems.copying import detached
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.kinds import TIME_KIND

_MOST_AXES = 24
_MOST_CURVES = 8
_TIME_SPAN = 10.0


@dataclass
class Axis:
    """The abscissa of curves: a component of an input, or time."""

    # name, unit: as people read them.
    name: str
    unit: str
    path: str | None  # the input of the model; None for time
    component: int  # which of its components
    value: float  # where one looks first
    span: list[float]  # from where to where, at first


@dataclass
class Reading:
    """A component of a signal, which may be read with other inputs than those that are set."""

    signal: str  # path in the model
    component: int = 0  # which of its components
    factor: float = 1.0  # by which it is multiplied
    # ``[axis, constant, factor]``: inputs that have ``constant + factor * value`` instead.
    instead: list[tuple[int, float, float]] = field(default_factory=list)


@dataclass
class Curve:
    """A curve: the sum of its readings."""

    name: str  # what it is called
    reads: list[Reading]  # what it shows
    look: str = "term"  # "total", "term" or "other"


@dataclass
class Chart:
    """Curves over one axis."""

    # title, unit: what is shown.
    title: str
    unit: str
    axis: int  # over which axis
    curves: list[Curve]
    kind: str = "signal"  # "force", "energy", "power" or "signal"


@dataclass
class View:
    """Charts that are seen together, and the axes that belong to them."""

    name: str  # what is swept
    axes: list[int]  # which axes
    charts: list[Chart]


@dataclass
class Bench:
    """A system without states, in a context of its own."""

    system: System  # what is traced
    context: Context  # its values; every input has one
    axes: list[Axis]  # what can be swept
    views: list[View]  # what is shown
    prefix: str = ""  # what paths of its parameters have before those of the block itself

    @property
    def signals(self) -> list[str]:
        """The signals that its charts read."""
        curves = (c for view in self.views for chart in view.charts for c in chart.curves)
        return list(dict.fromkeys(each.signal for curve in curves for each in curve.reads))

    def plain(self) -> dict[str, Any]:
        """Return axes and views as plain data."""
        views = [asdict(each) for each in self.views]
        return {"axes": [asdict(each) for each in self.axes], "views": views}


def with_values(root: System, twin: LeafSystem, leaf: LeafSystem, values: Context) -> Context:
    """Return a context of a root in which a block has the parameters of another one."""
    context = root.create_default_context()
    for number, known in zip(twin.numeric_parameters, leaf.numeric_parameters, strict=True):
        number.set(context, known.get(values))
    for thing, same in zip(twin.abstract_parameters, leaf.abstract_parameters, strict=True):
        thing.set(context, same.get(values))
    return context


def input_values(leaf: LeafSystem, context: Context) -> dict[str, Any]:
    """Return what the inputs of a block are in a context; zero where they have no value."""
    return {port.name: _value(port, context) for port in leaf.input_ports if port.size is not None}


def _value(port: Any, context: Context) -> Any:
    value = np.asarray(port.eval(context), dtype=float) if _has_value(port, context) else 0.0
    return np.where(np.isfinite(value), value, 0.0) + np.zeros(port.size)


def _has_value(port: Any, context: Context) -> bool:
    try:
        port.eval(context)
    except FlexureError:
        return False
    return True


def require_static(system: System, attempt: str) -> None:
    """Refuse a system with states."""
    for leaf in each_system(system):
        if not isinstance(leaf, LeafSystem):
            continue
        if leaf.continuous_state or leaf.discrete_states or leaf.abstract_states:
            raise DeclarationError(
                attempt,
                expected="a block without states, such as a force element or a lookup table",
                found=f"states in '{leaf.label}'",
                remedy="Show it in motion with fx.page",
            )


def static_bench(system: System, values: Context, attempt: str) -> Bench:
    """Return the bench of a system without states: its outputs over each of its inputs."""
    require_static(system, attempt)
    if isinstance(system, LeafSystem):
        root: System = detached(system)
        context = with_values(root, root, system, values)  # type: ignore[arg-type]
        for name, value in input_values(system, values).items():
            root.find(name).fix(context, value)
        reach = _reach(system)
    elif system.parent is None:
        root, context = system, values.clone()
        for port in root.input_ports:
            if port.size is not None:
                port.fix(context, _value(port, values))
        reach = _reach(*(each for each in each_system(system) if isinstance(each, LeafSystem)))
    else:
        raise DeclarationError(
            attempt,
            expected="a block, or a whole diagram",
            found=f"a part of '{system.parent.label}'",
            remedy="Inspect its blocks, or build it as a diagram of its own",
        )
    outputs = [port for port in root.output_ports if port.size]
    if not outputs:
        raise DeclarationError(attempt, expected="an output that is a vector", found="none")
    axes = [axis for port in root.input_ports for axis in _axes_of(port, context, reach)]
    tables = tables_of(system) if isinstance(system, LeafSystem) else []
    if len(tables) == len(root.input_ports) == 1:
        (port,) = root.input_ports
        if not _has_value(system.input_ports[0], values):
            port.fix(context, np.full(port.size, np.mean(tables[0])))
            axes = list(_axes_of(port, context, reach))
        for axis in axes:
            axis.span = table_span(tables, axis.value)
    owners = [axis.path for axis in axes]
    layout = root.layout
    timed = [port for port in outputs if layout.masks[layout.slot_of(port)] & TIME_KIND]
    if timed or not axes:
        start = float(context.time)
        axes.append(Axis("time", "s", None, 0, start, [start, start + _TIME_SPAN]))
    pairs = root.feedthrough
    views = []
    for k, axis in enumerate(axes[:_MOST_AXES]):
        moved = timed if axis.path is None else [p for p in outputs if (owners[k], p.name) in pairs]
        charts = [
            Chart(f"{port.name} over {axis.name}", port.unit, k, _components(port))
            for port in moved or outputs
        ]
        views.append(View(axis.name, [k], charts))
    return Bench(root, context, axes[:_MOST_AXES], views)


def _axes_of(port: Any, context: Context, reach: float) -> Iterator[Axis]:
    if not port.size:
        return
    values = np.ravel(port.eval(context))
    for k, (name, value) in enumerate(zip(_names(port), values.tolist(), strict=True)):
        yield Axis(name, port.unit, port.name, k, value, [value - reach, value + reach])


def _names(port: Any) -> list[str]:
    """Return a name for each component of a port of a root."""
    return [port.name] if port.size == 1 else list(Place.of(port).names)


def _components(port: Any) -> list[Curve]:
    """Return a curve for each component of an output."""
    names = _names(port)
    look = "total" if port.size == 1 else "term"
    return [
        Curve(name, [Reading(port.name, k)], look) for k, name in enumerate(names[:_MOST_CURVES])
    ]


def _reach(*leaves: LeafSystem) -> float:
    """Return how far from where it is an input is swept: beyond what the constants speak of."""
    numbers = [np.ravel(each.default) for leaf in leaves for each in leaf.numeric_parameters]
    numbers += [table for leaf in leaves for table in tables_of(leaf)]
    sizes = np.abs(np.concatenate([*numbers, [0.8]]))
    return round_up(1.25 * float(np.max(sizes[np.isfinite(sizes) & (sizes <= 100.0)])))


def table_span(tables: Sequence[Any], value: float, offset: float = 0.0) -> list[float]:
    """Return the range of ascending rows, with a tenth beyond both ends, and of a value."""
    low, high = (float(end([end(row) for row in tables])) + offset for end in (np.min, np.max))
    beyond = 0.1 * (high - low)
    return [min(low - beyond, value), max(high + beyond, value)]


def tables_of(leaf: LeafSystem) -> list[Any]:
    """Return the ascending rows of numbers that belong to the structure of a block."""
    arrays = [each for each in vars(leaf).values() if isinstance(each, np.ndarray)]
    return [
        each
        for each in arrays
        if each.ndim == 1 and each.size > 1 and each.dtype == float and np.all(np.diff(each) > 0)
    ]


def round_up(size: float) -> float:
    """Return a round number that is not smaller."""
    if not size > 0.0:
        return 1.0
    decade = 10.0 ** np.floor(np.log10(size))
    steps: Sequence[float] = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    return float(next(step for step in steps if step * decade >= size * (1 - 1e-12)) * decade)
