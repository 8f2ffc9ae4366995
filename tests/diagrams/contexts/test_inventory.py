"""Tables of parameters, signals and values name all there is, by paths that lead there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.contexts.value_places import find_place
from flexure.solvers.tracing.signals import resolve
from tests.contracts.catalog import CATALOG, TRIED
from tests.support.mechanics.mechanisms import MECHANISMS, TRIED_MECHANISMS
from tests.support.tiers import for_each

SYSTEMS: dict[str, Callable[[], fx.System]] = {
    **{label: CATALOG[label] for label in TRIED},
    **{name: MECHANISMS[name] for name in TRIED_MECHANISMS},
}


def nested() -> fx.Diagram:
    """A plant and a pair of blocks in a diagram, which exports an input of one of them."""
    builder = fx.PlantBuilder("door")
    panel = builder.add_body("panel", fx.SpatialInertia.solid_box(9.0, size=(0.02, 0.6, 0.7)))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    builder.add_force_element(fx.DoorHinge("hinge", axis))
    builder.add_actuator("motor", axis)
    door = builder.build()
    inner = fx.DiagramBuilder("control")
    inner.add_all(
        fx.PassThrough("error"), fx.PIDController("pid", kp=60.0, ki=20.0, kd=12.0, upper=5.0)
    )
    inner.connect("error.y", "pid.setpoint")
    inner.export_input("error.u", name="target")
    inner.export_input("pid.measurement", name="angle")
    inner.export_output("pid.u", name="torque")
    outer = fx.DiagramBuilder("servo")
    outer.add_all(door, inner.build(), fx.UnitDelay("delay", 0.1))
    outer.connect("control.torque", "door.motor")
    outer.connect("door.axis.angle", "control.angle")
    outer.connect("control.torque", "delay.u")
    outer.export_input("control.target", name="target")
    return outer.build()


@for_each("name", SYSTEMS)
def test_every_path_leads_to_what_its_row_says(name: str) -> None:
    system = SYSTEMS[name]()
    for row in system.parameters():
        place = find_place(system, row["path"])
        assert np.array_equal(place.handle.default, row["default"])
        assert (place.handle.doc, place.settable) == (row["doc"], place)
    for row in system.signals():
        reader = resolve(system, row["path"])
        assert (reader.size, reader.unit) == (row["size"], row["unit"])
    context = system.create_default_context()
    for row in context.describe()[1:]:
        if row["value"] is not None:
            assert context.get(row["path"]) is row["value"] or np.array_equal(
                context.get(row["path"]), row["value"]
            )
            context.set(row["path"], row["value"])
    assert context == system.create_default_context()


@for_each("name", SYSTEMS)
def test_nothing_is_left_out(name: str) -> None:
    system = SYSTEMS[name]()
    context = system.create_default_context()
    leaves = [leaf.system for leaf in context.leaves()]
    parameters = [
        p for leaf in leaves for p in (*leaf.numeric_parameters, *leaf.abstract_parameters)
    ]
    handles = [find_place(system, path).handle for path in system.parameters()["path"]]
    assert handles == parameters
    states = context.describe().where(kind="state")["value"]
    assert sum(map(np.size, states)) == context.continuous_state.size
    signals = system.signals()["path"]
    assert len(set(signals)) == len(signals)
    found = [resolve(system, path).handle for path in signals]
    reached = {getattr(handle, "origin", handle) for handle in found}
    ports = {port for leaf in leaves for port in (*leaf.input_ports, *leaf.output_ports)}
    assert {port for port in ports if port.size is not None} <= reached
    inputs = [row["path"] for row in context.describe().where(kind="input")]
    assert len(inputs) == sum(port.size is not None for port in system.input_ports)


@pytest.mark.full
@pytest.mark.parametrize("make", [nested, CATALOG["PIDController with filter"], CATALOG["Noise"]])
def test_results_and_sweeps_accept_every_path(make: Callable[[], fx.System]) -> None:
    system = make()
    context = system.create_default_context()
    for path in context.describe().where(kind="input")["path"]:
        context.set(path, np.ones(find_place(system, path).shape))
    signals = system.signals()["path"]
    result = fx.simulate(system, 0.01, context=context, compiled=False)
    assert all(len(result[path]) == len(result.time) for path in signals)
    values = {row["path"]: [row["value"], row["value"]] for row in context.describe()[1:]}
    options: dict[str, Any] = {"signals": signals, "times": [0.01], "compiled": False}
    sweep = fx.sweep(system, values, 0.01, context=context, **options)
    assert sweep.signals == tuple(signals)
    assert sweep.outcomes.tolist() == ["completed", "completed"]


def test_paths_are_counted_from_the_system_that_is_asked() -> None:
    servo = nested()
    whole, door = servo.parameters(), servo["door"].parameters()
    assert [f"door.{path}" for path in door["path"]] == servo.parameters("door")["path"]
    assert "door.hinge.spring_constant" in whole["path"]
    assert "mass" in {path.rpartition(".")[2] for path in servo.parameters("door.panel")["path"]}
    context = servo.create_default_context()
    assert context["door"].describe("axis")["path"][0] == "axis.angle"
    context["door"].set("panel.mass", 10.0)
    assert context["door"].describe().where(changed=True)["path"] == ["panel.mass"]


def test_a_pattern_selects_rows() -> None:
    servo = nested()
    assert servo.parameters("control.pid.kp")["default"] == [60.0]
    assert servo.parameters("*.k?")["path"] == [f"control.pid.k{letter}" for letter in "pid"]
    assert servo.signals("door.axis.*")["path"] == [
        f"door.axis.{what}" for what in ("reaction", "angle", "rate")
    ]
    context = servo.create_default_context()
    assert context.describe("control.pid.x[integral]")["value"] == [0.0]
    assert context.describe("control.pid.x")["path"] == [
        f"control.pid.x[{what}]" for what in ("integral", "filtered")
    ]
    assert len(servo.parameters("control.error")) == 0
    assert len(servo.parameters("nobody.*")) == 0
    with pytest.raises(UnknownNameError, match="Did you mean 'control'"):
        servo.parameters("contrl")


def test_a_context_is_described_with_what_differs_from_its_default() -> None:
    servo = nested()
    context = servo.create_default_context()
    table = context.describe()
    assert not any(table["changed"])
    assert table.where(path="door.axis.angle")[0]["unit"] == "rad"
    assert table.where(kind="discrete")["path"] == ["control.pid.started", "delay.x"]
    assert table.where(kind="input")["path"] == [
        *("target", "door.generalized_force", "control.pid.feedforward")
    ]
    assert table.where(path="target")[0]["value"] is None
    changes = {"door.axis.angle": 0.3, "door.hinge.spring_constant": 2.5, "target": 1.0}
    for path, value in changes.items():
        context.set(path, value)
    context.time = 2.0
    changed = context.describe().where(changed=True)
    assert changed["path"] == ["time", *changes]
    assert np.array_equal(np.hstack(changed["value"]), [2.0, *changes.values()])
    assert context.describe() == context.clone().describe()


@pytest.mark.full
def test_units_that_follow_from_wires_are_in_the_tables() -> None:
    servo = nested()
    context = servo.create_default_context()
    signals = {row["path"]: row["unit"] for row in servo.signals()}
    assert signals["control.pid.setpoint"] == signals["target"] == "rad"
    assert signals["delay.y"] == signals["delay.x"] == "N m"
    values = {row["path"]: row["unit"] for row in context.describe()}
    assert (values["target"], values["delay.x"]) == ("rad", "N m")
    assert {row["unit"] for row in servo["control"].signals("pid.setpoint")} == {"rad"}
    context.set("target", 0.0)
    found = fx.sweep(servo, {"control.pid.kp": [50.0]}, 0.1, context=context, signals=["delay.y"])
    assert found.units["delay.y"] == "N m"


def test_bounds_tell_what_a_parameter_may_be() -> None:
    rows = {row["path"]: row for row in nested().parameters()}
    assert str(rows["door.axis.locked"]["bounds"]) == "[0, 1]"
    assert str(rows["control.pid.derivative_filter"]["bounds"]) == "> 0"
    assert (rows["door.hinge.catch_torque"]["unit"], rows["door.panel.mass"]["unit"]) == (
        "N m",
        "kg",
    )
