"""Loops and functions of exported models in C give the runs of `fx.simulate`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.export import model_jacobian
from flexure.solvers.export.c.c_model import CModel
from flexure.solvers.export.c.c_source import Wanted
from tests.solvers.export.c.systems import Ball, strut
from tests.support.native.c_models import Running, compile_all

END = 2.0


def servo(controller: fx.LeafSystem) -> fx.Diagram:
    """Return a door that a controller turns."""
    plant = fx.PlantBuilder("door")
    box = fx.SpatialInertia.solid_box(mass=9.0, size=(0.02, 0.6, 0.7))
    panel = plant.add_body("panel", box, com=(0, 0.3, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_force_element(fx.DoorHinge("hinge", axis, spring_constant=3.0))
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("servo")
    builder.add_all(plant.build(), fx.Step("target", at=0.5, to=1.0), controller)
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect("pid.u", "door.motor")
    return builder.build()


def systems() -> dict[str, tuple[fx.System, list[str]]]:
    found = ["door.axis.angle", "pid.u"]
    sampled = fx.PIDController("pid", period=0.01, kp=60.0, ki=60.0, kd=12.0)
    return {
        "smooth": (servo(fx.PIDController("pid", kp=60.0, ki=60.0, kd=12.0)), found),
        "sampled": (
            servo(sampled),
            found,
        ),
        "ball": (Ball(), ["height"]),
    }


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, CModel], Path]:
    models = {
        name: CModel(system.create_default_context(), Wanted(signals, name=name))
        for name, (system, signals) in systems().items()
    }
    folder = tmp_path_factory.mktemp("c")
    return models, compile_all([*models.values()], folder)


def test_adaptive_loops_give_the_runs(library: tuple[dict[str, CModel], Path]) -> None:
    models, compiled = library
    times = np.arange(1, 80) / 40.0 - 1e-3  # between ticks
    for name, (system, signals) in systems().items():
        running = Running(models[name], compiled)
        assert running.call("initialize") >= 0
        rows = []
        for time in times:
            assert running.call("advance", float(time), 1e-9, 1e-12) == 0
            rows.append(running.signals)
        expected = fx.simulate(system, END, rtol=1e-9, atol=1e-12)
        for column, signal in zip(np.transpose(rows), signals, strict=True):
            values = np.ravel(expected.sample(signal, times))
            np.testing.assert_allclose(column, values, rtol=0, atol=1e-8 * np.max(np.abs(values)))


@pytest.mark.full
def test_jacobians_along_directions_give_the_steps_of_those_by_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, signals = systems()["smooth"]
    found = []
    for name, longest in (("entries", 20_000), ("directions", 0)):
        monkeypatch.setattr(model_jacobian, "_LONG", longest)
        wanted = Wanted(signals, method="Rodas5P", name=name)
        model = CModel(system.create_default_context(), wanted)
        running = Running(model, compile_all([model], tmp_path / name))
        assert running.call("initialize") >= 0
        assert running.call("advance", END, 1e-8, 1e-11) == 0
        found.append(running.signals)
        assert ("jacobian_slopes" in model.source) == (longest == 0)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-13)


@pytest.mark.full
def test_mechanisms_are_assembled_again_when_a_parameter_changes(tmp_path: Path) -> None:
    """As by `Plant.assemble`, at the start and between runs; or the model says that it fails."""
    signals, path = ["guide.translation", "pivot.angle"], "tree.link_distance"
    plant = strut(told=False)
    context = plant.create_default_context()
    context.set("pivot.rate", 0.4)
    plant.assemble(context, fixed="pivot")
    model = CModel(context, Wanted(signals, name="strut"))
    compiled = compile_all([model], tmp_path)
    place = model.places[path]["at"]

    def check(running: Running, end: float) -> fx.Context:
        plant.assemble(context)
        assert running.call("advance", end, 1e-9, 1e-12) == 0
        result = fx.simulate(plant, end, context=context, rtol=1e-9, atol=1e-12)
        expected = [result[each][-1] for each in signals]
        np.testing.assert_allclose(running.signals, expected, rtol=1e-8)
        return result.context

    running = Running(model, compiled)
    context.set(path, 1.9)
    running.call("set", place, 1.9)
    assert running.call("initialize") & 1  # states have changed
    context = check(running, 0.3)
    context.set(path, 2.0)
    running.call("set", place, 2.0)
    context = check(running, 0.6)
    running.call("set", place, 1e6)
    status = running.call("advance", 0.7, 1e-9, 1e-12)
    assert "loops cannot be assembled" in model.problems[status]
    assert running.call("advance", 0.7, 1e-9, 1e-12) == status  # not as if it were assembled
    running.call("set", place, 2.0)
    check(running, 0.7)  # from where it was
