"""Completion: the scripts say what the parser knows, and run in the shells that are here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from flexure.commands.completion import bash, commands, fish, zsh
from flexure.commands.parser import SHELLS, make_parser
from tests.commands.conftest import Command

ALL = list(commands(make_parser()))
ASK = """
source ./flexure.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_flexure
printf '%s\\n' "${COMPREPLY[@]}" | sort
"""


@pytest.mark.parametrize("write", [bash, zsh, fish])
def test_every_command_and_option_is_in_every_script(write: object) -> None:
    script = write(ALL)  # type: ignore[operator]
    for name, _, words in ALL:
        assert name in script
        for word in words:
            for spelling in word.spellings:
                assert (f"-l {spelling[2:]}" if write is fish else spelling) in script or (
                    write is fish and f"-s {spelling[1:]}" in script
                )


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_accepted_by_its_shell(shell: str, flexure: Command) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = Path("script")
    script.write_text(flexure("completion", shell).out, encoding="utf-8")
    outcome = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ([""], "completion doctor draw export inspect linearize modes page report run sweep"),
        (["dr"], "draw"),
        (["run", ""], "charge.py models"),
        (["run", "charge.py", "--met"], "--method --metrics"),
        (["run", "charge.py", "--method", "Rod"], "Rodas5P"),
        (["run", "charge.py", "--out", ""], "models"),
        (["run", "charge.py", "--params", "v"], "values.toml"),
        (["run", "charge.py", "--set", ""], ""),
        (["draw", "--format", "p"], "pdf png"),
        (["inspect", "charge.py", "--measured", "v"], "values.toml"),
        (["report", "--q"], "--question"),
        (["completion", ""], "bash fish zsh"),
        (["--ver"], "--version"),
    ],
)
def test_bash_completes(line: list[str], completed: str, flexure: Command) -> None:
    script = flexure("completion", "bash").out
    Path("flexure.bash").write_text(script, encoding="utf-8")
    Path("models").mkdir()
    Path("values.toml").touch()
    outcome = subprocess.run(
        ["bash", "-c", ASK, "-", "flexure", *line], capture_output=True, text=True, check=False
    )
    assert (outcome.stderr, outcome.stdout.split()) == ("", completed.split())
