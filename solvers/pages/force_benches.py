"""Force elements on a bench: force, energy and power over each coordinate and its rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flexure.blocks.multibody.force_elements.force_element import BodyForceElement, ForceElement
from flexure.blocks.multibody.force_elements.joint_force_element import JointForceElement
from flexure.blocks.multibody.force_elements.presentation import Probe
from flexure.diagrams.building.builder import DiagramBuilder
from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.copying import detached
from flexure.solvers.pages.block_benches import (
    Axis,
    Bench,
    Chart,
    Curve,
    Reading,
    View,
    input_values,
    require_static,
    round_up,
    table_span,
    tables_of,
    with_values,
)
from flexure.solvers.pages.motions import Motion, Projection, coordinates_of

#: By the unit of a coordinate: what it is called, the unit of its rate, its force and that unit.
_KINDS = {"rad": ("angle", "rad/s", "torque", "N m"), "m": ("displacement", "m/s", "force", "N")}
_USUAL = {"rad": np.pi / 2, "m": 0.1, "rad/s": 1.0, "m/s": 1.0}
_POSITION, _VELOCITY = "position", "velocity"


def force_bench(element: ForceElement, values: Context, attempt: str) -> Bench:
    """Return the bench of a force element."""
    require_static(element, attempt)
    if isinstance(element, JointForceElement):
        return _joint_bench(element, values)
    assert isinstance(element, BodyForceElement)
    return _body_bench(element, values)


def _joint_bench(element: JointForceElement, values: Context) -> Bench:
    """Return the bench of an element on a joint; its inputs are those of the element."""
    joint, twin = element.joint, detached(element)
    now = input_values(element, values)
    count = joint.num_velocities
    terms = _Terms(twin, element, values, now)
    context = with_values(twin, twin, element, values)
    for name, value in now.items():
        twin.find(name).fix(context, value)
    pairs = twin.feedthrough
    places = (_POSITION, "generalized_force") in pairs and joint.velocities_are_rates
    units = ["rad" if each.startswith("w") else "m" for each in joint.VELOCITY_SUFFIXES]
    suffixes = joint.POSITION_SUFFIXES if places else joint.VELOCITY_SUFFIXES
    spans = [list(each) for each in zip(*joint.position_limits, strict=True)] if places else []
    return _bench(
        twin,
        context,
        names=list(suffixes) if count > 1 else [""],
        units=units,
        place=now[_POSITION] if places else None,
        rates=now[_VELOCITY],
        element=element,
        values=values,
        limits=spans,
        force=lambda k: Reading("generalized_force", k),
        terms=terms.readings,
        stores=(_POSITION, "stored_energy") in pairs,
    )


class _Terms:
    """Parts of the force of a twin, as a further output of it."""

    def __init__(
        self, twin: Any, element: JointForceElement, values: Context, now: dict[str, Any]
    ) -> None:
        probe = terms_at(element, values, now)
        self.names = list(probe)
        self._count = element.joint.num_velocities
        self._port = "terms"
        while twin.named_port(self._port) is not None:
            self._port += "_"
        if self.names:
            twin.declare_vector_output(
                self._port, len(self.names) * self._count, self._calculation(twin)
            )

    def _calculation(self, twin: Any) -> Callable[[Any], Any]:
        def calc(context: Any) -> Any:
            parts = twin.calc_terms(context)
            return np.concatenate([parts[name] + np.zeros(self._count) for name in self.names])

        return calc

    def readings(self, k: int) -> dict[str, list[Reading]]:
        """Return how the parts along a coordinate are read."""
        return {
            name: [Reading(self._port, i * self._count + k)] for i, name in enumerate(self.names)
        }


def terms_at(element: JointForceElement, values: Context, now: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the force of an element where its inputs have values."""
    twin = detached(element)
    context = with_values(twin, twin, element, values)
    for name, value in now.items():
        twin.find(name).fix(context, value)
    found: dict[str, Any] = twin.calc_terms(context.find(twin))
    return found


def _body_bench(element: BodyForceElement, values: Context) -> Bench:
    """Return the bench of an element between bodies, which a motion moves against each other."""
    # A beam with bodies inside of it is replaced by one without bodies.
    twin: Any = detached(element.undivided())
    probe = twin.declare_probe()
    own = with_values(twin, twin, element, values)
    coordinates = coordinates_of(twin, own)
    motion = Motion(f"{element.name}_motion", twin, coordinates)
    force = Projection(f"{element.name}_force", len(coordinates.names))
    builder = DiagramBuilder("bench")
    builder.add_all(motion, twin, force)
    for port in (port for each in twin.attachments for port in (each.pose, each.velocity)):
        if port is not None:
            builder.connect(motion.find_output(port.name), port)
    acting = twin.force_ports[twin.attachments.index(motion.moving)]
    builder.connect(acting, force.force)
    builder.connect(motion.find_output("directions"), force.directions)
    builder.export_input(motion.position, name=_POSITION)
    builder.export_input(motion.velocity, name=_VELOCITY)
    if probe is not None:
        builder.export_input(twin.find(probe.input), name=probe.input)
    root = builder.build()
    context = with_values(root, twin, element, values)
    try:
        place = coordinates.of(element, values)
    except FlexureError:  # nothing tells where its bodies are
        place = coordinates.unstressed(element, values)
    if "yaw" in coordinates.names and not np.any(place):
        place[coordinates.names.index("yaw")] = element.inspected_angle(values)
    rates = np.zeros(len(coordinates.names))
    root.find(_POSITION).fix(context, place)
    root.find(_VELOCITY).fix(context, rates)
    first = len(coordinates.names)

    def terms(k: int) -> dict[str, list[Reading]]:
        """Return the conservative part, whose power at a rate of one it is, and the rest."""
        alone = [(first + i, float(i == k), 0.0) for i in range(first)]
        power = Reading(f"{twin.name}.conservative_power", 0, 1.0, alone)
        less = Reading(power.signal, 0, -1.0, alone)
        return {"conservative": [power], "dissipative": [Reading(f"{force.name}.along", k), less]}

    bench = _bench(
        root,
        context,
        names=list(coordinates.names),
        units=list(coordinates.units),
        place=place,
        rates=rates,
        element=element,
        values=values,
        limits=[],
        force=lambda k: Reading(f"{force.name}.along", k),
        terms=terms,
        stores=True,
        prefix=f"{twin.name}.",
    )
    _keep_limits(bench, twin)
    if probe is not None:
        _show_probe(bench, probe)
    return bench


def _keep_limits(bench: Bench, twin: BodyForceElement) -> None:
    """Narrow the ranges of coordinates to those in which an element keeps its limits."""
    if not twin.limits:
        return
    position: Any = bench.system.find(_POSITION)
    start = np.array(position.eval(bench.context))

    def utilization(k: int, value: float) -> Any:
        place = start.copy()
        place[k] = value
        position.fix(bench.context, place)
        try:
            return twin.utilization.eval(bench.context)
        except FlexureError:  # the law ends before the limit
            return np.full(len(twin.limits), np.inf)

    kept = utilization(0, start[0]) <= 1.0  # others are exceeded everywhere, such as slenderness
    for axis in (each for each in bench.axes if each.path == _POSITION):
        k, middle = axis.component, 0.5 * (axis.span[0] + axis.span[1])
        reach = first = axis.span[1] - middle
        while reach > 1e-6 * first and not all(
            np.all(utilization(k, middle + end)[kept] <= 1.0) for end in (-reach, reach)
        ):
            reach *= 0.8
        if 1e-6 * first < reach < first:
            reach = max(round_up(reach / 1.5), abs(start[k] - middle))  # round, within the limits
            axis.span = [middle - reach, middle + reach]
    position.fix(bench.context, start)


def _show_probe(bench: Bench, probe: Probe) -> None:
    """Add a view in which curves are over the place along an element."""
    root: Any = bench.system
    root.find(probe.input).fix(bench.context, 0.0)
    turns = [k for k, axis in enumerate(bench.axes) if axis.path == _POSITION]
    reach = probe.reach(bench.context)
    bench.axes.append(Axis(probe.place, probe.place_unit, probe.input, 0, 0.0, [-reach, reach]))
    curve = Curve(probe.quantity, [Reading(f"{bench.prefix}{probe.output}")], "total")
    number = len(bench.axes) - 1
    chart = Chart(probe.title, probe.unit, number, [curve])
    bench.views.append(View(probe.place, [*turns, number], [chart]))


def _bench(
    root: Any,
    context: Context,
    *,
    names: list[str],
    units: list[str],
    place: Any,
    rates: Any,
    element: ForceElement,
    values: Context,
    limits: Sequence[Sequence[float]],
    force: Callable[[int], Reading],
    terms: Callable[[int], dict[str, list[Reading]]],
    stores: bool,
    prefix: str = "",
) -> Bench:
    """Put axes and charts together."""
    count = len(names)
    axes, views = [], []
    if place is not None:
        for k, (name, unit) in enumerate(zip(names, units, strict=True)):
            bound = limits[k] if len(limits) else [-np.inf, np.inf]
            span = _place_span(element, values, unit, float(place[k]), name, bound)
            label = name or _KINDS[unit][0]
            axes.append(Axis(label, unit, _POSITION, k, float(place[k]), span))
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        rate_unit = _KINDS[unit][1]
        reach = _reach(element, values, rate_unit)
        value = float(rates[k]) or (0.5 * reach if count == 1 else 0.0)
        reach = max(reach, round_up(1.25 * abs(value)))
        axes.append(Axis(f"{name} rate".strip(), rate_unit, _VELOCITY, k, value, [-reach, reach]))
    first = count if place is not None else 0
    root.find(_VELOCITY).fix(context, [axis.value for axis in axes[first:]])
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        label, _, what, force_unit = _KINDS[unit]
        rate = first + k
        parts = [Curve(part, reads) for part, reads in terms(k).items()]
        total = force(k)
        back = Reading(total.signal, total.component, 1.0, [(rate, 0.0, -1.0)])
        over_rate = [Curve(what, [total], "total"), *parts]
        energy = Reading(f"{prefix}stored_energy")
        powers = [
            Curve("conservative", [Reading(f"{prefix}conservative_power")]),
            Curve("non-conservative", [Reading(f"{prefix}non_conservative_power")]),
        ]
        charts, title = [], f"{what.capitalize()} over "
        if place is not None:
            curves = [*over_rate, Curve("at the opposite rate", [back], "other")]
            charts.append(Chart(title + (name or label), force_unit, k, curves, "force"))
        charts.append(Chart(title + axes[rate].name, force_unit, rate, over_rate, "force"))
        if stores and place is not None:
            well = [Curve("stored energy", [energy], "total")]
            charts.append(Chart(f"Stored energy over {name or label}", "J", k, well, "energy"))
        charts.append(Chart(f"Power over {axes[rate].name}", "W", rate, powers, "power"))
        views.append(View(name or label, ([k] if place is not None else []) + [rate], charts))
    return Bench(root, context, axes, views, prefix)


def _constants(element: ForceElement, values: Context, unit: str) -> Any:
    """Return all finite constants of an element in a unit."""
    found = [
        np.ravel(handle.get(values))
        for handle in element.numeric_parameters
        if unit in handle.unit.split(", ")
    ]
    numbers = np.concatenate([*found, np.empty(0)])
    return numbers[np.isfinite(numbers)]


def _place_span(
    element: ForceElement,
    values: Context,
    unit: str,
    place: float,
    name: str,
    limits: Sequence[float],
) -> list[float]:
    """Return from where to where a coordinate is swept at first."""
    # These are the limits of the joint or the ends of a table with a tenth beyond, or follow from
    # the constants of the element, and are at least a usual range.
    low, high = limits
    if np.isfinite(low) and np.isfinite(high) and low < high:
        beyond = 0.1 * (high - low)
        return [float(low - beyond), float(high + beyond)]
    if name == "length":
        free = float(element.find("free_length").get(values))
        return [0.25 * free, max(1.75 * free, 1.25 * place)]
    own = element.inspected_range(unit, place, values)
    if own is not None:
        reach = round_up(own[1])
        return [own[0] - reach, own[0] + reach]
    if tables := tables_of(element):
        nominal = {each.name: each for each in element.numeric_parameters}.get("nominal_position")
        return table_span(tables, place, 0.0 if nominal is None else float(nominal.get(values)))
    named = [_constants(element, values, unit), np.array([place])]
    reach = float(np.max(np.abs(np.concatenate(named)), initial=0.0))
    usual = float(_USUAL[unit])
    if 0.0 < reach < 0.1 * usual and unit == "m":
        usual = 0.0  # what the constants speak of is far smaller than that
    reach = max(usual, round_up(1.5 * reach))
    return [-reach, reach]


def _reach(element: ForceElement, values: Context, unit: str) -> float:
    """Return how far a rate is swept at first: ten times the greatest one of the constants."""
    greatest = float(np.max(np.abs(_constants(element, values, unit)), initial=0.0))
    return round_up(10.0 * greatest) if greatest > 0.0 else _USUAL[unit]
