"""Units: what texts like "N m/rad" mean, conversions, products, and units along wires."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams.building.known_units import KnownUnits, _part
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.units import conversion, measure_of, product
from tests.contracts.catalog import CATALOG
from tests.support.tiers import for_each


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("N m", "J"), ("N m/rad", "N m"), ("N*m", "m N"), ("m/s^2", "m/s²")),
        *(("kg m^2", "kg m²"), ("1/s", "Hz"), ("rad/s", "1/s"), ("W", "N m/s")),
        *(("kN", "1000 N"), ("widgets", "widgets")),
    ],
)
def test_units_are_compared_by_what_they_mean(one: str, other: str) -> None:
    (first, kind, _), (second, same, _) = measure_of(one), measure_of(other)
    if "1000" in other:
        assert (first, kind) == (1e3, measure_of("N").kind)
    else:
        assert (first, kind) == (second, same)


def test_units_that_differ_are_told_apart() -> None:
    for one, other in [("rad", "deg"), ("m", "mm"), ("N", "N m"), ("a", "b")]:
        assert measure_of(one)[:2] != measure_of(other)[:2]


@pytest.mark.parametrize(
    ("unit", "wanted", "factor"),
    [
        *(("rad", "deg", 180.0 / math.pi), ("rad/s", "rpm", 30.0 / math.pi), ("m", "mm", 1e3)),
        *(("N m/rad", "N m/deg", math.pi / 180.0), ("J", "N m", 1.0), ("m/s", "km/h", 3.6)),
        *(("1/s", "Hz", 1.0), ("kN", "N", 1e3), ("widgets", "widgets", 1.0)),
    ],
)
def test_numbers_are_converted_between_units(unit: str, wanted: str, factor: float) -> None:
    assert conversion(unit, wanted, "") == pytest.approx(factor, rel=1e-14)
    assert conversion(wanted, unit, "") == pytest.approx(1.0 / factor, rel=1e-14)


@for_each(
    ("unit", "wanted", "text"),
    [
        ("rad", "mm", "of the same quantity as 'rad'; found 'mm'"),
        ("rad/s", "Hz", "of the same quantity as 'rad/s'; found 'Hz'"),
        ("N m/rad", "N m", "found 'N m'"),
        ("rad", "grad", "found 'grad'"),
        ("widgets", "m", "found 'widgets'"),
    ],
)
def test_other_conversions_are_refused_by_name(unit: str, wanted: str, text: str) -> None:
    with pytest.raises(ValueRefusedError, match=text):
        conversion(unit, wanted, "Cannot convert")


def test_units_are_multiplied() -> None:
    for unit, factor, power, result in [
        *(("rad/s", "s", 1, "rad"), ("m", "s", -1, "m/s"), ("m/s", "s", -1, "m/s^2")),
        *(("N m/rad", "rad", 1, "N m"), ("rad", "s/rad", 1, "s"), ("s", "s", -1, "1")),
        *(("N", "m s", -1, "N/(m s)"), ("1/s", "1", 1, "1/s"), ("m²·⁵", "s", 1, "")),
        *(("", "s", 1, ""), ("m", "", 1, "")),
    ]:
        assert product(unit, factor, power) == result


# Along wires -------------------------------------------------------------------------------------


class Angle(fx.LeafSystem):
    """A double integrator: its state is shown by two ports, one of which has a unit."""

    def __init__(self, name: str = "axis", unit: str = "rad") -> None:
        super().__init__(name)
        self.torque = self.declare_vector_input("torque", 1, default=0.0, unit="N m")
        self.x = self.declare_continuous_state(q=1, v=1)
        self.angle = self.declare_vector_output("angle", 1, self.x.q, shows=slice(0, 1), unit=unit)
        self.declare_vector_output("both", 2, self.x, shows=slice(0, 2))

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.x.v(context), self.torque(context)]


def wired(*blocks: fx.System, wires: dict[str, str], outputs: Sequence[str] = ()) -> fx.Diagram:
    builder = fx.DiagramBuilder("wired")
    builder.add_all(*blocks)
    for source, target in wires.items():
        for each in target.split():
            builder.connect(source, each)
    for output in outputs:
        builder.export_output(output)
    return builder.build()


def units_in(diagram: fx.Diagram, *paths: str) -> list[Any]:
    known = KnownUnits(diagram)
    found = [known.units(diagram.find(path)) for path in paths]
    return [each[0] if len(each) == 1 else each for each in found]


def test_a_loop_of_library_blocks_has_the_units_of_its_plant() -> None:
    loop = wired(
        fx.Step("target"),
        fx.PIDController("pid", kp=1.0, ki=1.0, kd=1.0),
        fx.Saturation("limits", -1.0, 1.0),
        Angle(),
        wires={
            "target.y": "pid.setpoint",
            "axis.angle": "pid.measurement",
            "pid.u": "limits.u",
            "limits.y": "axis.torque",
        },
    )
    paths = ("target.y", "pid.setpoint", "pid.u", "limits.y", "axis.x", "axis.both")
    assert units_in(loop, *paths) == ["rad", "rad", "N m", "N m", ["rad", ""], ["rad", ""]]


def test_units_are_multiplied_on_the_way() -> None:
    path = wired(
        Angle(),
        fx.FilteredDerivative("rate", 0.0, period=0.1),
        fx.Gain("damper", 2.0, unit="N m s/rad"),
        fx.Gain("unknown", 2.0),
        fx.Gain("half", 0.5, unit="1"),
        fx.Integrator("sum"),
        wires={
            "axis.angle": "rate.u unknown.u half.u",
            "rate.y": "damper.u",
            "half.y": "sum.u",
        },
    )
    found = units_in(path, "rate.y", "damper.y", "unknown.y", "half.y", "sum.x", "rate.last")
    assert found == ["rad/s", "N m", "", "rad", "rad s", "rad"]


def test_units_pass_lags_and_transfer_functions_by_the_unit_of_their_gain() -> None:
    path = wired(
        Angle(),
        fx.FirstOrderLag("sensor", 0.1),
        fx.FirstOrderLag("spring", 0.1, gain=3.0, unit="N m/rad"),
        fx.FirstOrderLag("unknown", 0.1, gain=3.0),
        fx.LeadLag("lead", 1.0, 2.0),
        fx.TransferFunction("beam", [1.0], [1.0, 1.0], unit="m/rad"),
        fx.TransferFunction("wheel", [1.0], [1.0, 0.5], period=0.1, unit="m/rad"),
        fx.TransferFunction("nothing", [1.0], [1.0, 1.0]),
        fx.Integrator("sum", reset=True),
        fx.Constant("zero", 0.0),
        fx.Constant("never", 0.0),
        wires={
            "axis.angle": "sensor.u spring.u unknown.u lead.u beam.u wheel.u nothing.u sum.u",
            "zero.y": "sum.reset_value",
            "never.y": "sum.reset",
        },
    )
    keeping = units_in(path, "sensor.y", "sensor.x", "lead.y", "lead.x")
    assert keeping == ["rad", "rad", "rad", "rad"]
    assert units_in(path, "spring.y", "spring.x", "beam.y", "wheel.y") == ["N m", "N m", "m", "m"]
    assert units_in(path, "unknown.y", "nothing.y", "zero.y") == ["", "", "rad s"]


def test_units_pass_the_rates_and_the_feedforward_of_a_controller() -> None:
    loop = wired(
        Angle(),
        fx.PIDController("pid", kp=1.0, kd=1.0, rate_inputs=True),
        fx.FirstOrderLag("amplifier", 0.01),
        *(fx.Constant(name, 0.0) for name in ("target", "slow", "fast")),
        wires={
            "axis.angle": "pid.measurement",
            "pid.u": "amplifier.u",
            "amplifier.y": "axis.torque",
            "target.y": "pid.setpoint",
            "slow.y": "pid.setpoint_rate",
            "fast.y": "pid.measurement_rate",
        },
    )
    paths = ("pid.u", "pid.feedforward", "target.y", "slow.y", "fast.y")
    assert units_in(loop, *paths) == ["N m", "N m", "rad", "rad/s", "rad/s"]


def test_components_keep_their_units_through_routing() -> None:
    routed = wired(
        Angle(),
        Angle("slide", "m"),
        fx.Multiplexer("join", [1, 1, 1]),
        fx.Constant("one", 1.0),
        fx.Selector("swap", 3, [1, 0]),
        fx.Demultiplexer("split", [1, 1]),
        wires={
            "axis.angle": "join.u1",
            "slide.angle": "join.u2",
            "one.y": "join.u3",
            "join.y": "swap.u",
            "swap.y": "split.u",
        },
    )
    found = units_in(routed, "join.y", "swap.y", "split.y1", "split.y2", "one.y")
    assert found == [["rad", "m", ""], ["m", "rad"], "m", "rad", ""]
    known = KnownUnits(routed)
    assert known.unit(routed.find("join.y")) == ""
    assert known.unit(routed.find("join.y"), [1]) == "m"
    one, join = routed.find("one.y"), routed.find("join.y")
    assert known.kinds(one) == known.kinds(join, [2]) != known.kinds(join, [0])


def test_where_units_contradict_each_other_nothing_follows() -> None:
    """Angle and way are added, and so what is added to them has no unit."""
    mixed = wired(
        Angle(),
        Angle("slide", "m"),
        fx.Constant("one", 1.0),
        fx.Sum("sum", "+++"),
        wires={"axis.angle": "sum.u1", "slide.angle": "sum.u2", "one.y": "sum.u3"},
    )
    found = units_in(mixed, "sum.y", "one.y", "sum.u1", "axis.angle", "slide.angle")
    assert found == ["", "", "", "rad", "m"]
    fed_back = wired(
        Angle(),
        fx.Integrator("lag"),
        fx.Sum("error", "+-"),
        wires={"axis.angle": "error.u1", "lag.y": "error.u2", "error.y": "lag.u"},
    )
    assert units_in(fed_back, "error.y", "lag.y") == ["", ""]


def test_units_pass_the_ports_of_nested_diagrams() -> None:
    inner = fx.DiagramBuilder("inner")
    inner.add_all(Angle(), fx.PassThrough("same"))
    inner.connect("axis.angle", "same.u")
    inner.export_output("same.y", name="angle")
    inner.export_input("axis.torque", name="torque")
    outer = wired(
        inner.build(),
        fx.Step("push"),
        fx.PassThrough("shown"),
        wires={"push.y": "inner.torque", "inner.angle": "shown.u"},
        outputs=("shown.y",),
    )
    assert units_in(outer, "push.y", "inner.angle", "shown.y") == ["N m", "rad", "rad"]


def test_every_block_of_the_library_relates_parts_of_equal_size() -> None:
    for name, recipe in CATALOG.items():
        block = recipe()
        for relation in block.unit_relations():
            sizes = {len(_part(each)[1]) for each in relation if not isinstance(each, str)}
            assert len(sizes) == 1, name
