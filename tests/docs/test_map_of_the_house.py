"""The map of the code is true: it lists every room, and its walks lead through real files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.native.native import needs_llvmlite

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "docs" / "internals" / "map.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILE = re.compile(r"`((?:blocks|diagrams|solvers)/[\w/]+\.py)`")
#: Prints the files of ours in the order in which a first native run comes to them.
WALK = """
import json, os, sys
import flexure as fx
from tests.support.mechanics.mechanics import servo

system, seen = servo(), {}

def is_importing(frame):
    while frame.f_back is not None:
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False

def note(frame, event, _):
    file = frame.f_code.co_filename
    if event == "call" and file not in seen and not is_importing(frame):
        seen[file] = os.path.relpath(os.path.realpath(file))

sys.setprofile(note)
result = fx.simulate(system, 0.5)
result["pendulum.angle"]
sys.setprofile(None)
assert result.statistics.native_steps
print(json.dumps(list(seen.values())))
"""


def section(title: str) -> str:
    return MAP.partition(f"## {title}\n")[2].partition("\n## ")[0]


def walks() -> list[list[str]]:
    """List the files that each of the two walks names, in order."""
    simulate, parameter = section("Two walks").split("\nA parameter, such as")
    return [FILE.findall(simulate), FILE.findall(parameter)]


def test_every_room_is_on_the_map_with_a_place_to_begin() -> None:
    rows = re.findall(r"^\| `([\w/]+)/` +\|(.*)\|(.*)\|$", section("The rooms"), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["setuptools"]["packages"]
    folders = (ROOT.joinpath(*name.split(".")).resolve() for name in packages)
    rooms = {folder.relative_to(ROOT).as_posix() for folder in folders} - {"solvers"}
    assert {room for room, _, _ in rows} == rooms
    for room, about, files in rows:
        assert about.strip()
        begin = re.findall(r"`([\w/]+\.py)`", files)
        assert begin
        assert all((ROOT / room / file).is_file() for file in begin), room


def test_files_that_are_named_exist() -> None:
    named = FILE.findall(MAP + CONTRIBUTING)
    assert len(named) > 40
    assert [file for file in named if not (ROOT / file).is_file()] == []
    for walk in walks():
        assert 8 < len(walk) < 20


@needs_llvmlite
def test_a_first_native_run_comes_to_the_stations_in_the_order_of_the_walk(tmp_path: Path) -> None:
    environment = os.environ | {"FLEXURE_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", WALK]
    outcome = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    crossed = json.loads(outcome.stdout)
    aside = {file for file in walks()[0] if file not in crossed}
    slow = {"advance.py", "step_phases.py"}
    assert {Path(file).name for file in aside} == slow
    stations = re.findall(r"^\d\. `([\w/]+\.py)`", section("Two walks"), re.MULTILINE)
    first = stations[: stations.index("blocks/linear_systems/continuous.py")]
    assert len(first) > 6
    assert first == sorted(first, key=crossed.index)


def test_contributing_stays_short() -> None:
    assert len(CONTRIBUTING.splitlines()) <= 200
