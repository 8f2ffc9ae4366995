"""Notebooks in a real kernel, and pages of what their cells show."""

from __future__ import annotations

import importlib
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[3]
_SECONDS = 100  # for a cell
#: What notebooks look like, and how they color tables of their own, which ours have to bear.
_THEMES = {
    "light": "--text:#212121;--paper:#ffffff;--even:#f5f5f5",
    "dark": "--text:#e0e0e0;--paper:#111111;--even:#1d1d1d",
}
_PAGE = """<!doctype html><meta charset="utf-8"><title>Notebook</title><style>
body{%s;background:var(--paper);color:var(--text);font:14px/1.5 system-ui,sans-serif;margin:12px}
.out{margin:10px 0}
.out table{font-size:12px;border:none;border-collapse:collapse;margin:0 auto}
.out td,.out th{text-align:right;vertical-align:middle;padding:.5em;line-height:normal}
.out tbody tr:nth-child(odd){background:var(--even)}
.out code{background:#eeeeee;color:#000000;padding:1px 5px}
</style>%s"""


def executed(cells: Iterable[str], folder: Path, home: Path) -> list[list[Any]]:
    """Run cells in one kernel, which imports this checkout, and return their outputs.

    Parameters
    ----------
    cells : iterable of str
        Code.
    folder : Path
        Where the kernel works.
    home : Path
        An empty folder in the place of that with the settings of IPython.
    """
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of packages around kernels
        v4: Any = importlib.import_module("nbformat.v4")
        notebook = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        client = nbclient.NotebookClient(
            notebook,
            timeout=_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute(env=os.environ | {"PYTHONPATH": path, "IPYTHONDIR": str(home)})
    return [cell.outputs for cell in notebook.cells]


def html_of(outputs: Iterable[Any]) -> str:
    """Return the HTML of the outputs of a cell."""
    return "".join(each["data"]["text/html"] for each in outputs if "text/html" in _data(each))


def streams_of(outputs: Iterable[Any], name: str = "stderr") -> str:
    """Return what a cell has written."""
    return "".join(each["text"] for each in outputs if each.get("name") == name)


def _data(output: Any) -> Any:
    return output.get("data", {})


def write_page(path: Path, pieces: Iterable[str], theme: str = "light") -> Path:
    """Write a page with pieces of HTML, in the style of a notebook."""
    inside = "".join(f'<div class="out">{piece}</div>' for piece in pieces)
    path.write_text(_PAGE % (_THEMES[theme], inside), encoding="utf-8")
    return path
