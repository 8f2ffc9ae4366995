"""How commands end: exit codes, errors as paragraphs, interruptions, and output that is cut off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import flexure as fx
from tests.commands.conftest import Command

ROOT = Path(__file__).parents[2]
INTERRUPTED = """\
import os, signal
import flexure as fx


class Impatient(fx.LeafSystem):
    def __init__(self):
        super().__init__("impatient")
        self.x = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context):
        if float(context.time) > 0.5:
            os.kill(os.getpid(), signal.SIGINT)
        return [1.0]


def build():
    return Impatient()
"""


def in_a_shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'flexure() {{ "$PYTHON" -m flexure "$@"; }}; {line}'],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "PYTHON": sys.executable} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )


def test_version_is_the_one_of_the_package(flexure: Command) -> None:
    assert flexure("--version") == (0, f"flexure {fx.__version__}\n", "")


def test_no_words_print_the_help(flexure: Command) -> None:
    code, out, _ = flexure()
    assert code == 0
    assert out.startswith("usage: flexure")
    assert "exit codes: 0 done" in out


@pytest.mark.parametrize(
    "words",
    [
        ("--unknown",),
        ("frobnicate",),
        ("run", "charge.py"),
        ("run", "charge.py", "--to", "soon"),
        ("run", "charge.py", "--to", "1", "--set", "lag.time_constant"),
        ("run", "charge.py", "--to", "1", "--set", "=3"),
        ("run", "charge.py", "--to", "1", "--signals", "a,,b"),
        ("sweep", "charge.py", "--to", "1", "--grid", "lag.time_constant=1:2"),
        ("draw", "charge.py", "--format", "gif"),
        ("completion", "tcsh"),
    ],
)
def test_words_that_are_not_understood_end_with_2_and_one_line(
    words: tuple[str, ...], flexure: Command
) -> None:
    code, out, err = flexure(*words)
    assert (code, out) == (2, "")
    assert err.startswith("flexure")
    assert "error: " in err
    assert err.count("\n") == 1
    assert "--help)" in err


def test_an_error_is_a_paragraph_without_a_traceback(flexure: Command) -> None:
    code, out, err = flexure("run", "charge.py", "--to", "1", "--set", "lag.time_konstant=2")
    assert (code, out) == (1, "")
    assert err.startswith("flexure: error: Cannot find 'time_konstant' in 'lag'. Did you mean")
    assert err.count("\n") == 1


def test_debug_shows_the_traceback(flexure: Command) -> None:
    words = ("run", "charge.py", "--to", "1", "--set", "lag.time_konstant=2", "--debug")
    code, _, err = flexure(*words)
    assert code == 1
    assert err.startswith("Traceback")


def test_an_interruption_tells_what_was_done_and_ends_with_130(
    flexure: Command, folder: Path, interruptible: None
) -> None:
    (folder / "impatient.py").write_text(INTERRUPTED, encoding="utf-8")
    words = ("--to", "1", "--method", "euler", "--step", "0.01", "--out", "kept")
    code, out, err = flexure("run", "impatient.py", *words)
    assert code == 130
    assert "'impatient': interrupted at t = 0.5" in out
    assert "saved kept/context.json" in out
    assert err == "flexure: interrupted\n"


def test_warnings_are_lines(flexure: Command, folder: Path) -> None:
    text = "import warnings\nwarnings.warn('take care')\nfrom charge import build\n"
    (folder / "warns.py").write_text(text, encoding="utf-8")
    code, _, err = flexure("run", "warns.py", "--to", "1")
    assert (code, err) == (0, "flexure: warning: take care\n")


def test_help_and_completion_load_no_mathematics(folder: Path) -> None:
    code = (
        "import sys; from flexure.commands.main import main; main(['run', '--help']); "
        "main(['completion', 'bash']); main([]); "
        "print({'numpy', 'scipy', 'matplotlib', 'networkx'} & set(sys.modules))"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert outcome.stdout.endswith("set()\n")


def test_output_that_nobody_reads_ends_quietly(folder: Path) -> None:
    outcome = in_a_shell(
        "flexure draw charge.py --format dot | true; echo ${PIPESTATUS[0]}", folder
    )
    assert outcome.stdout in ("141\n", "0\n")  # it may have written all before
    assert outcome.stderr == ""


def test_units_are_printed_where_the_terminal_knows_no_unicode(folder: Path) -> None:
    (folder / "tür.py").write_text("from charge import build\n", encoding="utf-8")
    outcome = in_a_shell("flexure run tür.py --to 1 --json", folder, PYTHONIOENCODING="ascii")
    assert outcome.returncode == 0, outcome.stderr
    assert '"model": "t\\xfcr.py"' in outcome.stdout


def test_a_file_name_that_is_no_text_is_told(folder: Path) -> None:
    outcome = in_a_shell("flexure run $'d\\xff.py' --to 1", folder)
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("flexure: error: Cannot load the model 'd\\udcff.py'")
