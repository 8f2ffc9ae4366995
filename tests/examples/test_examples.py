"""Every script in examples/ runs by itself, in an empty folder, and confirms its own result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FILMS = ["ball_chain", "dishwasher_door", "four_bar_linkage"]
#: Of what takes long by itself.
ARGUMENTS = {"door_tolerances": ["--samples", "500"]} | {film: ["--fps", "1"] for film in FILMS}
SECONDS = 100  # below the limit of pytest, so that the output of a slow script is shown


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_confirms_its_own_result(script: Path, tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    outcome = subprocess.run(
        [sys.executable, script, *ARGUMENTS.get(script.stem, [])],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout
