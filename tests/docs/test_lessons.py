"""The notebooks of the lessons hold the code of their pages, and run in a kernel."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from docs.lesson_notebooks import LESSONS, lessons, write_notebooks
from docs.samples import samples_of
from tests.support.pages.notebooks import executed


def code_of(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_a_notebook_holds_the_samples_of_its_page_in_their_order(tmp_path: Path) -> None:
    write_notebooks(tmp_path)
    assert len(lessons()) == 8
    for page in lessons():
        code = code_of(tmp_path / f"{page.stem}.ipynb")
        assert code == [sample.code.strip() for sample in samples_of(page)]


def test_text_of_notebooks_has_no_links_into_the_site(tmp_path: Path) -> None:
    write_notebooks(tmp_path)
    for notebook in tmp_path.iterdir():
        text = notebook.read_text(encoding="utf-8")
        assert ".md" not in text
        assert "_generated" not in text
        assert "```" not in text


def test_each_lesson_leads_to_the_next_one_and_the_overview_to_all() -> None:
    overview = (LESSONS / "index.md").read_text(encoding="utf-8")
    pages = lessons()
    for page in pages:
        assert f"({page.name})" in overview
        assert f"../notebooks/{page.stem}.ipynb" in overview
    for page, following in pairwise(pages):
        assert f"({following.name})" in page.read_text(encoding="utf-8")


@pytest.mark.full
def test_a_notebook_runs_in_a_kernel_and_shows_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them, since kernels start slowly; the test of samples runs the code of all."""
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    write_notebooks(tmp_path)
    home = tmp_path / "ipython"
    home.mkdir()
    outputs = executed(code_of(tmp_path / "first_plant.ipynb"), tmp_path, home)
    kinds = [each["output_type"] for found in outputs for each in found]
    assert "error" not in kinds
    assert "display_data" in kinds
