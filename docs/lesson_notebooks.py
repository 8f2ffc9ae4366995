"""Make a notebook from each lesson: the same text, the same code, no outputs.

    python docs/lesson_notebooks.py FOLDER

The site offers these files for download. They are generated, so they cannot differ from the pages.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

LESSONS = Path(__file__).parent / "lessons"
_FENCE = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"^!\[[^]]*\]\([^)]*\)\n", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\((?!https?:)[^)]*\)")


def lessons() -> list[Path]:
    """List the pages of the lessons in the order of their numbers."""
    pages = (page for page in LESSONS.glob("*.md") if page.stem != "index")
    return sorted(pages, key=lambda page: page.read_text(encoding="utf-8").split(":")[0])


def notebook_of(page: Path) -> dict[str, Any]:
    """Return the notebook of a page.

    Samples become cells of code, without their output and pictures, which a kernel shows. Links
    into the site become plain text.
    """
    cells: list[dict[str, Any]] = []

    def add(kind: str, text: str) -> None:
        lines = text.strip().splitlines(keepends=True)
        if lines:
            name = f"{page.stem.replace('_', '-')}-{len(cells)}"
            cells.append({"cell_type": kind, "id": name, "metadata": {}, "source": lines})
            if kind == "code":
                cells[-1] |= {"execution_count": None, "outputs": []}

    text, end = page.read_text(encoding="utf-8"), 0
    for fence in _FENCE.finditer(text):
        add("markdown", _plain(text[end : fence.start()]))
        if fence["kind"] == "python":
            add("code", fence["text"])
        end = fence.end()
    add("markdown", _plain(text[end:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def write_notebooks(folder: Path) -> None:
    """Write the notebooks of all lessons into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in lessons():
        text = json.dumps(notebook_of(page), indent=1, ensure_ascii=False) + "\n"
        (folder / f"{page.stem}.ipynb").write_text(text, encoding="utf-8")


def _plain(text: str) -> str:
    """Return text without pictures and without links that only the site can follow."""
    return _LINK.sub(r"\1", _PICTURE.sub("", text))


if __name__ == "__main__":
    write_notebooks(Path(sys.argv[1]))
