"""`flexure linearize` and `flexure modes`: the numbers of closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.commands.conftest import Command

ARM = """\
import flexure as fx


def build():
    builder = fx.PlantBuilder("arm", gravity=(0.0, -9.81, 0.0))
    bar = builder.add_body("bar", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, bar, axis=(0, 0, 1)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5))
    builder.add_actuator("motor", axis)
    return builder.build()
"""


def test_matrices_and_poles_are_told_and_kept(flexure: Command) -> None:
    words = ("--inputs", "u", "--outputs", "y", "--out", "kept")
    code, out, _ = flexure("linearize", "charge.py:single", *words, "--set", "u=0")
    assert code == 0
    assert "n=1, m=1, p=1, stable>; exact derivatives" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["dx1/dt", "x", "-1", "1"] in lines
    assert ["y1", "y", "1", "0"] in lines
    assert ["u1", "is", "u"] in lines
    with np.load(Path("kept", "linear_model.npz")) as model:
        assert (model["A"], model["B"], model["C"], model["D"]) == (-1.0, 1.0, 1.0, 0.0)
        assert model["input_names"].tolist() == ["u"]


def test_a_model_of_wires_from_sample_to_sample(flexure: Command) -> None:
    words = ("--inputs", "source.y", "--outputs", "lag.y", "--period", "0.5", "--json")
    found = json.loads(flexure("linearize", "charge.py", *words).out)
    assert found["poles"] == [[pytest.approx(np.exp(-0.5)), 0.0]]
    assert found["period"] == 0.5
    assert found["stable"] is True


def test_modes_are_those_of_the_equilibrium(flexure: Command, folder: Path) -> None:
    (folder / "arm.py").write_text(ARM, encoding="utf-8")
    code, out, err = flexure("modes", "arm.py")
    assert code == 0
    assert "it is not at rest" in err
    code, out, err = flexure("modes", "arm.py", "--equilibrium", "--energies", "--json")
    found = json.loads(out)
    (mode,) = found["modes"]
    # 50 q = -9.81 cos q, around which the stiffness is 50 - 9.81 sin q, and the inertia 0.5
    angle = 0.0
    for _ in range(100):
        angle = -9.81 * np.cos(angle) / 50.0
    expected = np.sqrt((50.0 - 9.81 * np.sin(angle)) / 0.5) / (2.0 * np.pi)
    assert (code, err) == (0, "")
    assert mode["frequency"] == pytest.approx(expected, rel=1e-6)
    assert {row["path"] for row in found["energies"]} >= {"bar", "spring"}


def test_modes_are_plotted(flexure: Command, folder: Path) -> None:
    (folder / "arm.py").write_text(ARM, encoding="utf-8")
    assert flexure("modes", "arm.py", "--equilibrium", "--plot", "--out", "kept").code == 0
    assert Path("kept", "arm_modes.png").read_bytes().startswith(b"\x89PNG")
