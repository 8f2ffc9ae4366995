"""The linter for words finds what it is for, in pages and docstrings, and nothing in code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def report(file: Path, text: str) -> tuple[int, str]:
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, str(ROOT / ".ci" / "words.py"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_page_with_a_riddle_fails_and_names_the_line(tmp_path: Path) -> None:
    status, text = report(tmp_path / "page.md", "# Title\n\nGood.\n\nWhoever opens\nit lets go.\n")
    assert status == 1
    assert "page.md:5: Whoever opens it" in text
    assert "page.md:6: Whoever opens it lets go" in text


def test_code_on_pages_is_not_read(tmp_path: Path) -> None:
    page = "Text.\n\n```python\nnobody = 1\n```\n\nSee `nobody`.\n"
    assert report(tmp_path / "page.md", page)[0] == 0


def test_docstrings_and_messages_are_read_and_comments_are_not(tmp_path: Path) -> None:
    code = '"""Let go."""\n# Nobody.\nraise ValueError("somebody")\nname = "whoever"\n'
    _, text = report(tmp_path / "module.py", code)
    found = [line.split(":")[:2] for line in text.splitlines() if ".py:" in line]
    assert found == [["  module.py", "1"], ["  module.py", "3"]]
