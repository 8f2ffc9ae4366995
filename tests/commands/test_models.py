"""Model files: what they may hold, and what is said of files that are none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.commands.conftest import Command

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
ODD = """\
import flexure as fx


def build(gain):
    return gain


def nothing():
    return None


def forgotten():
    return fx.DiagramBuilder("loop")


def fails():
    return undefined_name


def wired():
    builder = fx.DiagramBuilder("loop")
    builder.add(fx.Gain("gain", 2.0))
    builder.connect("gain.y", "lag.u")


class Broken(fx.LeafSystem):
    def __init__(self):
        super().__init__("broken")
        self.x = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context):
        return [1.0 / nowhere]


def broken():
    return Broken()


ready = fx.FirstOrderLag("lag", 1.0)
number = 3
"""


@pytest.fixture
def odd(folder: Path) -> None:
    (folder / "odd.py").write_text(ODD, encoding="utf-8")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_is_a_model(example: Path, flexure: Command) -> None:
    words = ("--to", "0.001", "--method", "euler", "--step", "0.001", "--compiled", "python")
    code, out, err = flexure("run", str(example), *words)
    said = [line for line in err.splitlines() if "where an impact lasts" not in line]
    assert (code, said) == (0, [])
    assert "reached t = 0.001 s" in out


def test_a_context_that_is_returned_besides_is_where_it_begins(flexure: Command) -> None:
    _, out, _ = flexure("run", "charge.py:started", "--to", "0", "--signals", "lag.x")
    assert out.splitlines()[-1].split() == ["lag.x", "3", "3", "3"]


def test_a_system_may_stand_for_its_function(flexure: Command, odd: None) -> None:
    assert flexure("run", "odd.py:ready", "--to", "1", "--set", "u=1").code == 0


def test_files_beside_a_model_can_be_imported(flexure: Command, folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "parts.py").write_text("from charge import build\n", encoding="utf-8")
    (folder / "charge.py").rename(folder / "deep" / "charge.py")
    assert flexure("run", "deep/parts.py", "--to", "0").code == 0
    assert [each.name for each in (folder / "deep").glob("__pycache__/parts*")] == []


@pytest.mark.parametrize("name", ["json.py", "numpy.py", "my model.py", "2nd.py", "no_ending"])
def test_a_model_takes_the_name_of_no_other_module(
    name: str, flexure: Command, folder: Path
) -> None:
    before = dict(sys.modules)
    (folder / "charge.py").rename(folder / name)
    assert flexure("run", name, "--to", "0").code == 0
    assert {key: sys.modules[key] for key in before} == before


@pytest.mark.parametrize(
    ("model", "said", "line"),
    [
        ("odd.py", "found build(gain). Give its arguments defaults", None),
        ("odd.py:nothing", "expected a block or a diagram; found None", None),
        ("odd.py:number", "expected a block or a diagram; found 3", None),
        ("odd.py:forgotten", "Call build() first", None),
        ("odd.py:servo", "found the functions 'build', 'nothing', 'forgotten'", None),
        ("odd.py:fails", "NameError: name 'undefined_name'", "17, in fails: return undefined_name"),
        ("odd.py:wired", "Cannot find input port 'lag.u'", "23, in wired: builder.connect("),
        ("odd.py:broken", "NameError: name 'nowhere'", "32, in calc_time_derivatives: return ["),
        ("missing.py", "Python files in '.': 'charge.py', 'odd.py'", None),
        ("", "found a folder", None),
        (".", "found a folder", None),
        ("missing/charge.py", "found no file of this name.", None),
    ],
)
def test_what_is_no_model_is_told_with_the_line_of_the_user(
    model: str, said: str, line: str | None, flexure: Command, odd: None
) -> None:
    code, out, err = flexure("run", model, "--to", "1")
    assert (code, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1 + (line is not None)
    if line is not None:
        assert err.splitlines()[1].startswith(f"    odd.py:{line}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"def build(:\n", "invalid syntax.\n    odd.py:1: def build(:\n"),
        (b'x = "\xff\xfe"\n', "can't decode byte 0xff"),
        (b"x = 1\0\n", "null bytes"),
        (
            b"raise SystemExit(3)\n",
            "ends the program, with the code 3. Put the statements of a script",
        ),
        (
            b"def build():\n    raise SystemExit(0)\n",
            "found one that ends the program, with the code 0",
        ),
        (b"import nowhere_at_all\n", "No module named 'nowhere_at_all'\n    odd.py:1, in <module>"),
        (b"", "found the functions none"),
    ],
)
def test_a_file_that_is_no_program_is_told(
    content: bytes, said: str, flexure: Command, folder: Path
) -> None:
    (folder / "odd.py").write_bytes(content)
    code, out, err = flexure("run", "odd.py", "--to", "1")
    assert (code, out) == (1, "")
    assert said in err


def test_the_line_is_that_of_the_user_and_not_of_a_package_below(
    flexure: Command, folder: Path
) -> None:
    package = folder / "venv" / "site-packages"
    package.mkdir(parents=True)
    (package / "deep.py").write_text("def fail():\n    raise OSError('no such door')\n", "utf-8")
    text = f"import sys\nsys.path.append({str(package)!r})\nimport deep\ndeep.fail()\n"
    (folder / "odd.py").write_text(text, encoding="utf-8")
    _, _, err = flexure("run", "odd.py", "--to", "1")
    assert err == "flexure: error: OSError: no such door\n    odd.py:4, in <module>: deep.fail()\n"


def test_a_model_that_is_refused_leaves_no_folder(flexure: Command, folder: Path) -> None:
    assert flexure("run", "missing.py", "--to", "1", "--out", "kept").code == 1
    assert [each.name for each in folder.iterdir()] == ["charge.py"]
