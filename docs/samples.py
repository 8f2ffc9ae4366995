"""The samples of a page, code and commands: found, run in order, and compared with their output."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
_SAMPLE = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\s*^```text\n(?P<output>.*?)^```$)?"
    r"|^```console\n(?P<commands>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_COMMAND = re.compile(r"^\$ flexure (?P<words>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
_ANY_PYTHON = re.compile(r"^[ \t>]*```+[^\n`]*python", re.IGNORECASE | re.MULTILINE)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pages() -> list[Path]:
    """List the pages of the site, also those in folders; generated files are no pages."""
    return sorted(page for page in DOCS.rglob("*.md") if name_of(page)[0] != "_")


def name_of(page: Path) -> str:
    """Return the path of a page below the folder of the site, without its suffix."""
    inside = page.relative_to(DOCS) if page.is_relative_to(DOCS) else Path(page.name)
    return inside.with_suffix("").as_posix()


def pictures_of(page: Path) -> set[str]:
    """Return the names of the files that a page includes from its own generated folder."""
    text = page.read_text(encoding="utf-8")
    return set(re.findall(rf"_generated/{re.escape(name_of(page))}/([\w.-]+)", text))


@dataclass(frozen=True)
class Sample:
    """One block of code, or one command, and the output that the page shows for it.

    Attributes
    ----------
    line : int
        Where it stands on the page.
    code : str
        Its lines, or the words of the command.
    output : str
        What it should print; empty when the page shows nothing.
    is_command : bool
        Whether it is a command.
    """

    line: int
    code: str
    output: str
    is_command: bool = False


def samples_of(page: Path) -> Iterator[Sample]:
    """Go through the samples of a page."""
    text = page.read_text(encoding="utf-8")
    found = list(_SAMPLE.finditer(text))
    for place in _ANY_PYTHON.finditer(text):
        if not any(match.start() == place.start() for match in found):
            line = text.count("\n", 0, place.start()) + 1
            raise ValueError(f"{page.name}:{line}: write code as ```python at the margin")
    for match in found:
        line = text.count("\n", 0, match.start()) + 2
        if match["code"] is not None:
            yield Sample(line, match["code"], match["output"] or "")
            continue
        commands = list(_COMMAND.finditer(match["commands"]))
        if "".join(each[0] for each in commands) != match["commands"]:
            raise ValueError(f"{page.name}:{line}: write '$ flexure ...', and what it prints")
        for each in commands:
            before = match["commands"].count("\n", 0, each.start())
            yield Sample(line + before, each["words"], each["output"], is_command=True)


def run(page: Path, folder: Path) -> None:
    """Run the samples of a page in a folder, in order and in one namespace.

    The model of a command is what stands above it on the page.

    Raises
    ------
    AssertionError
        When a sample prints something else than the page shows.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    checker = doctest.OutputChecker()
    script = ""
    for sample in samples_of(page):
        printed = io.StringIO()
        try:
            with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
                if sample.is_command:
                    _carry_out(shlex.split(sample.code), script)
                else:
                    above = "\n" * script.count("\n")
                    exec(compile(above + sample.code, "script.py", "exec"), namespace)
                    script += sample.code
        except BaseException as error:
            error.add_note(f"in the sample at {page.name}:{sample.line}")
            raise
        finally:
            _close_figures()
        if not checker.check_output(sample.output, printed.getvalue(), _FLAGS):
            place = f"{page.name}:{sample.line}"
            raise AssertionError(
                f"{place} shows\n{sample.output}\nand prints\n{printed.getvalue()}"
            )


def _carry_out(words: list[str], script: str) -> None:
    """Carry out a command with all that it prints; its model is this script."""
    from flexure.commands.main import main

    for word in words:
        if word.endswith(".py"):
            Path(word).write_text(script, encoding="utf-8")
    places = list(sys.path)
    try:
        with contextlib.redirect_stderr(sys.stdout):
            main(words)
    finally:
        sys.path[:] = places


def _close_figures() -> None:
    """Forget what was plotted, when anything was."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
