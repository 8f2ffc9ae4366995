"""Every script in examples/ runs in an empty folder, and confirms its own result.

If the environment variable FLEXURE_PICTURES names the folder _generated of the site, the pictures
and pages of the gallery are left there, so that they are made once for tests and site.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from docs.gallery import EXAMPLES, make_example, renew, run_here

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
ROOT = Path(__file__).parents[2]
FILMS = ["ball_chain", "dishwasher_door", "four_bar_linkage"]
#: Of what takes long by itself.
ARGUMENTS = {"door_tolerances": ["--samples", "500"]} | {film: ["--fps", "1"] for film in FILMS}
SECONDS = 100  # below the limit of pytest, so that the output of a slow script is shown


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_confirms_its_own_result(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, where everything is imported already."""
    monkeypatch.chdir(tmp_path)
    if kept := os.environ.get("FLEXURE_PICTURES"):
        renew(Path(kept, "examples", script.stem), script, partial(make_example, script))
    else:
        run_here([str(script), *ARGUMENTS.get(script.stem, [])])


def test_an_example_is_a_command(tmp_path: Path) -> None:
    """One of them in a process of its own, which imports little; all end alike."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    outcome = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "mechanisms" / "bicycle.py")],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout
    for script in EXAMPLES:
        assert script.read_text().endswith('\n\n\nif __name__ == "__main__":\n    main()\n')
