"""`flexure draw`: pictures in files, and texts where they are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Command

BEGINNINGS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_pictures_are_files(kind: str, flexure: Command) -> None:
    code, out, err = flexure("draw", "charge.py", "--format", kind)
    assert (code, out, err) == (0, f"saved charge.{kind}\n", "")
    assert Path(f"charge.{kind}").read_bytes().startswith(BEGINNINGS[kind])


def test_texts_are_printed_or_kept(flexure: Command) -> None:
    printed = flexure("draw", "charge.py", "--format", "mermaid").out
    assert printed.startswith("flowchart LR")
    told = json.loads(flexure("draw", "charge.py", "--format", "mermaid", "--json").out)
    assert told["text"] == printed
    assert flexure("draw", "charge.py", "--format", "mermaid", "--out", "kept").code == 0
    assert Path("kept", "charge.mmd").read_text(encoding="utf-8").strip() == printed.strip()
    assert flexure("draw", "charge.py", "--format", "dot").out.startswith("digraph")


WIDE = """
import flexure as fx


def build():
    builder = fx.DiagramBuilder("wide")
    builder.add(fx.Demultiplexer("parts", [1, 1, 1]))
    builder.export_input("parts.u", name="u")
    builder.export_output("parts.y2", "middle")
    return builder.build()
"""


def test_ports_that_nothing_uses_are_shown_on_demand(flexure: Command, folder: Path) -> None:
    (folder / "wide.py").write_text(WIDE, encoding="utf-8")
    printed = [
        flexure("draw", "wide.py", "--format", "dot", *more).out
        for more in ((), ("--ports", "used"), ("--ports", "all"))
    ]
    assert ["… 2 more outputs" in text for text in printed] == [True, True, False]
    assert ["y3" in text for text in printed] == [False, False, True]


def test_a_single_block_is_no_diagram(flexure: Command) -> None:
    code, _, err = flexure("draw", "charge.py:single")
    assert code == 1
    assert "Cannot draw 'charge.py:single': expected a diagram; found the single block" in err
