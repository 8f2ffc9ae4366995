"""The commands of docs/command_line.md print what the page shows."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

from docs.samples import samples_of
from tests.commands.conftest import Command

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands() -> list[tuple[str, str]]:
    """List the commands, each with what it prints."""
    pairs = []
    for block in CONSOLE.findall(PAGE.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            pairs.append((line, output))
    return pairs


def test_every_command_of_the_page_prints_what_it_shows(flexure: Command, folder: Path) -> None:
    (folder / "servo.py").write_text(next(samples_of(PAGE)).code, encoding="utf-8")
    found = commands()
    assert len(found) > 10
    for line, shown in found:
        program, *words = shlex.split(line)
        assert program == "flexure"
        outcome = flexure(*words)
        printed = outcome.out + outcome.err
        assert doctest.OutputChecker().check_output(shown, printed, FLAGS), f"{line}\n{printed}"


def test_files_of_parameters_are_as_the_page_shows(flexure: Command, folder: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (folder / "servo.py").write_text(next(samples_of(PAGE)).code, encoding="utf-8")
    (folder / "values.toml").write_text(example, encoding="utf-8")
    words = ("--to", "0", "--signals", "arm.x", "--params", "values.toml")
    assert flexure("run", "servo.py", *words).out.split()[-1] == "0.1"
