"""`flexure doctor`: the installation, and models."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from flexure.commands.doctor import EXTRAS
from flexure.solvers.native.llvm.library import available
from tests.commands.conftest import Command

ROOT = Path(__file__).parents[2]
HEAVY = """\
import flexure as fx


def build():
    builder = fx.PlantBuilder("door")
    size = (0.02, 0.6, 0.7)
    panel = builder.add_body("panel", fx.SpatialInertia.solid_box(9000.0, size=size))
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    return builder.build()
"""


def test_the_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    found = {
        name: tuple(re.split(r"[<>=\[]", each)[0] for each in packages)
        for name, packages in extras.items()
        if name not in ("test", "docs", "dev")
    }
    assert {name: packages for name, (packages, _) in EXTRAS.items()} == found


def test_the_installation_is_told_and_tests_itself(
    flexure: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLEXURE_CACHE", str(tmp_path / "here"))
    found = json.loads(flexure("doctor", "--json").out)
    assert found["cache"].startswith(str(tmp_path / "here"))
    versions = {row["package"]: row["version"] for row in found["packages"]}
    assert versions["numpy"] == np.__version__
    assert found["self_test"]["as Python"].startswith("passed, error ")
    native = "passed, error " if available() else "skipped"
    assert found["self_test"]["as native code"].startswith(native)
    assert found["native code"].startswith("LLVM" if available() else "not available")


def test_a_self_test_that_fails_ends_with_1(
    flexure: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexure.commands.doctor._CLOSE", 1e-30)
    code, out, _ = flexure("doctor")
    assert code == 1
    assert "self test as Python: failed, error" in out


def test_a_cache_that_is_off_is_told(flexure: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEXURE_CACHE", "off")
    assert re.search(r"^cache +off$", flexure("doctor").out, re.MULTILINE)


def test_what_is_odd_in_a_model_is_told_and_ends_with_3(flexure: Command, folder: Path) -> None:
    (folder / "heavy.py").write_text(HEAVY, encoding="utf-8")
    code, out, _ = flexure("doctor", "heavy.py")
    assert code == 3
    assert "'door': 1 implausible value" in out
    assert flexure("doctor", "heavy.py", "--set", "panel.mass=9").out != out
    assert flexure("doctor", "charge.py").code == 0
