"""What a model is: the same in every process, and another one when anything that counts differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.results.records.provenance import differences, of_model
from tests.contracts.catalog import CATALOG


def printed_models() -> str:
    """Print what every block of the library is."""
    found = {}
    for name, recipe in CATALOG.items():
        table = of_model(recipe().create_default_context())
        found[name] = [[*entry, text] for entry, text in table.items()]
    return json.dumps(found)


@pytest.mark.full
def test_models_are_the_same_in_every_process_and_different_from_each_other() -> None:
    program = f"import {__name__} as test; print(test.printed_models())"
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
        env=os.environ | {"PYTHONHASHSEED": seed},
    )
    assert json.loads(done.stdout) == json.loads(printed_models())
    models = [json.dumps(table) for table in json.loads(done.stdout).values()]
    assert len(set(models)) == len(models)


LAW = '''
import math
import numpy as np
import flexure as fx

SLOPE = 2.0
TABLE = {"a", "b", "c", "d"}


def helper(u):
    return SLOPE * np.tanh(u)  # odd


def law(gain):
    """Return a law."""

    def calc(u):
        return [gain * helper(u[0])]

    return calc


class Own(fx.LeafSystem):
    LIMIT = 1.0

    def __init__(self, offset):
        super().__init__("own")
        self.offset = offset
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.calc)

    def calc(self, context):
        return [self.LIMIT * self.u(context)[0] + self.offset]


def build():
    builder = fx.DiagramBuilder("own")
    builder.add_all(fx.FunctionBlock("f", law(3.0)), Own(0.5))
    builder.connect("f.y", "own.u")
    builder.export_input("f.u")
    return builder.build()
'''


@pytest.mark.parametrize(
    ("old", "new", "block"),
    [
        ("SLOPE = 2.0", "SLOPE = 2.5", "f"),
        ("np.tanh(u)", "np.arctan(u)", "f"),
        ("gain * helper", "helper", "f"),
        ("law(3.0)", "law(3.5)", "f"),
        ("LIMIT = 1.0", "LIMIT = 1.5", "own"),
        ("+ self.offset", "- self.offset", "own"),
        ("Own(0.5)", "Own(0.25)", "own"),
        ("# odd", "# an odd function", None),
        ("Return a law.", "Return a law of the gain.", None),
    ],
)
def test_a_change_of_what_users_wrote_shows_and_comments_do_not(
    old: str, new: str, block: str | None
) -> None:
    def model(text: str) -> Any:
        scope: dict[str, Any] = {"__name__": "own_model"}
        exec(text, scope)
        return of_model(scope["build"]().create_default_context())

    assert old in LAW
    said = differences(model(LAW), model(LAW.replace(old, new)))
    assert said == (f"the block '{block}' has other code or arguments" if block else "")


def test_what_moves_to_another_module_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(module: str) -> Any:
        scope: dict[str, Any] = {"__name__": module}
        exec(LAW, scope)
        return of_model(scope["build"]().create_default_context())

    assert not differences(model("own_model"), model("folder.other_model"))
    before = of_model(fx.PIDController("pid").create_default_context())
    monkeypatch.setattr(fx.PIDController, "__module__", "flexure.blocks.elsewhere")
    assert not differences(before, of_model(fx.PIDController("pid").create_default_context()))


def test_another_geometry_of_a_mechanism_shows() -> None:
    def model(height: float) -> Any:
        plant = fx.PlantBuilder("door", gravity=(0, 0, -9.81))
        inertia = fx.SpatialInertia.solid_box(mass=9.0, size=(0.02, 0.6, 0.7))
        panel = plant.add_body("panel", inertia, com=(0, 0.3, height))
        plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(1, 0, 0)))
        return of_model(plant.build().create_default_context())

    assert not differences(model(0.1), model(0.1))
    assert differences(model(0.1), model(0.2))


class Tabulated(fx.LeafSystem):
    """A block with a table that is made when it is needed."""

    @cached_property
    def table(self) -> Any:
        return np.array([2.0, 3.0])


def stopped() -> fx.Plant:
    builder = fx.PlantBuilder("dropped")
    stone = builder.add_body("stone", fx.SpatialInertia.point_mass(1.0))
    fall = builder.add_joint(fx.PrismaticJoint("fall", builder.world, stone, axis=(0, 0, 1)))
    builder.add_constraint(fx.RigidStop("ground", fall, lower=-0.1, restitution=0.5))
    return builder.build()


@pytest.mark.parametrize("make", [lambda: Tabulated("block"), stopped])
def test_a_model_that_was_used_stays_what_it_is(make: Callable[[], fx.System]) -> None:
    system = make()
    before = of_model(system.create_default_context())
    fx.simulate(system, 0.01)
    getattr(system, "table", None)
    assert of_model(system.create_default_context()) == before
