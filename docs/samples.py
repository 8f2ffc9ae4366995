"""The code samples of a page: found, run as one script, and compared with the output it shows."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
_SAMPLE = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\s*^```text\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
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
    """One block of code and the output that the page shows for it.

    Attributes
    ----------
    line : int
        Where it stands on the page.
    code : str
        Its lines.
    output : str
        What it should print; empty when the page shows nothing.
    """

    line: int
    code: str
    output: str


def samples_of(page: Path) -> Iterator[Sample]:
    """Go through the samples of a page."""
    text = page.read_text(encoding="utf-8")
    found = list(_SAMPLE.finditer(text))
    for place in _ANY_PYTHON.finditer(text):
        if not any(match.start() == place.start() for match in found):
            line = text.count("\n", 0, place.start()) + 1
            raise ValueError(f"{page.name}:{line}: write code as ```python at the margin")
    for match in found:
        line = text.count("\n", 0, match.start("code")) + 1
        yield Sample(line, match["code"], match["output"] or "")


def run(page: Path, folder: Path) -> None:
    """Run the samples of a page in a folder, in order and in one namespace.

    Raises
    ------
    AssertionError
        When a sample prints something else than the page shows.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    checker = doctest.OutputChecker()
    lines = 0
    for sample in samples_of(page):
        printed = io.StringIO()
        try:
            code = compile("\n" * lines + sample.code, "script.py", "exec")
            with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
                exec(code, namespace)
        except BaseException as error:
            error.add_note(f"in the sample at {page.name}:{sample.line}")
            raise
        finally:
            _close_figures()
        lines += sample.code.count("\n")
        if not checker.check_output(sample.output, printed.getvalue(), _FLAGS):
            place = f"{page.name}:{sample.line}"
            raise AssertionError(
                f"{place} shows\n{sample.output}\nand prints\n{printed.getvalue()}"
            )


def _close_figures() -> None:
    """Forget what was plotted, when anything was."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
