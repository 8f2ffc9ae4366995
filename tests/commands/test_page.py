"""`flexure page`, `inspect` and `report`: files with pages of what was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Command

SPRING = """\
import flexure as fx

def build():
    plant = fx.PlantBuilder("bench")
    door = plant.add_body("door", fx.SpatialInertia.solid_box(mass=1.0, size=(0.1, 0.6, 0.7)))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, door, axis=(0, 0, 1)))
    plant.add_force_element(fx.JointSpring("spring", axis, stiffness=4.0))
    return plant.build()
"""


def read(file: Path) -> tuple[str, Any]:
    """Return the text of a page, and the data in it."""
    text = file.read_text(encoding="utf-8")
    return text, json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def test_a_page_is_saved_with_the_values_that_were_set(flexure: Command) -> None:
    words = ["--to", "3", "--set", "lag.time_constant=0.125", "--signals", "lag.y"]
    words += ["--goals", "last of lag.y < 2, greatest of lag.y < 3"]
    code, out, err = flexure("page", "charge.py", *words, "--title", "A charge", "--out", "pages")
    file = Path("pages", "charge.html")
    assert (code, out, err) == (0, f"saved {file}\n", "")
    text, data = read(file)
    assert "<h1>A charge</h1>" in text
    assert [goal["limit"] for goal in data["goals"]] == [2.0, 3.0]
    assert data["charts"] == [["lag.y"]]
    assert data["changed"] == ["lag.time_constant"]
    assert data["tFinal"] == 3.0


def test_what_cannot_be_shown_is_refused(flexure: Command) -> None:
    code, _, err = flexure("page", "charge.py", "--to", "3", "--parameters", "lag.nothing")
    assert code == 1
    assert "Cannot find 'nothing' in 'lag'" in err
    assert not Path("charge.html").exists()


def test_a_block_is_inspected_with_values_ranges_and_measured_points(flexure: Command) -> None:
    Path("bench.py").write_text(SPRING, encoding="utf-8")
    Path("points.csv").write_text("force,position\n-1,0.25\n-2,0.5\n", encoding="utf-8")
    words = ("--block", "spring", "--set", "spring.stiffness=7", "--range", "angle=-0.125:1.5")
    outcome = flexure("inspect", "bench.py", *words, "--measured", "points.csv", "--out", "pages")
    file = Path("pages", "spring.html")
    assert outcome == (0, f"saved {file}\n", "")
    text, data = read(file)
    assert "<h1>spring</h1>" in text
    assert data["measured"] == {"force": [-1.0, -2.0], "position": [0.25, 0.5]}
    assert [axis["span"] for axis in data["axes"] if axis["name"] == "angle"] == [[-0.125, 1.5]]
    assert len(data["code"]["changed"]) == 1


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        ((), 1, "Cannot inspect 'charge'"),
        (("--block", "lagg"), 1, "Did you mean 'lag'"),
        (("--range", "angle=1"), 2, "expected LOW:HIGH"),
        (("--block", "source", "--measured", "points.csv"), 1, "a CSV file that can be read"),
    ],
)
def test_what_cannot_be_inspected_is_refused(
    words: tuple[str, ...], code: int, complaint: str, flexure: Command
) -> None:
    outcome = flexure("inspect", "charge.py", *words)
    assert (outcome.code, outcome.out) == (code, "")
    assert complaint in outcome.err


def test_a_report_tells_of_the_model_or_of_a_run(flexure: Command) -> None:
    told = {}
    for name, words in {"model": (), "run": ("--to", "3", "--signals", "lag.y")}.items():
        asked = ("--question", "Is it <full>?", "--set", "lag.time_constant=0.125", "--out", name)
        code, out, err = flexure("report", "charge.py", *words, *asked)
        file = Path(name, "charge_report.html")
        assert (code, out, err) == (0, f"saved {file}\n", "")
        told[name] = file.read_text(encoding="utf-8")
        assert "Is it &lt;full&gt;?" in told[name]
        assert "0.125" in told[name]
    assert "<h2>Signals</h2>" in told["run"]
    assert "<h2>Signals</h2>" not in told["model"]
    assert flexure("report", "charge.py", "--to", "3", "--signals", "lag.z").code == 1
