"""Every name of ours in the table for people who come from Simulink leads somewhere."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path
from typing import Any

import flexure as fx

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-simulink.md"


def sample() -> dict[str, Any]:
    """Return what the names of the page stand for."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Gain("back", -1.0), fx.TransferFunction("plant", [1.0], [1.0, 1.0]))
    builder.connect_chain("back", "plant", "back")
    system = builder.build()
    loop = fx.loop_gain(system, "plant.y")
    return {
        "fx": fx,
        "system": system,
        "context": system.create_default_context(),
        "model": loop,
        "result": fx.simulate(system, 0.1),
        "found": fx.margins(loop),
    }


def test_every_name_of_ours_exists() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert len(rows) > 35
    names = sample()
    for theirs, ours, _ in rows:
        assert theirs
        expressions = re.findall(r"`([^`]+)`", ours)
        assert expressions, theirs
        for expression in expressions:
            first, *rest = expression.split(".")
            assert reduce(getattr, rest, names[first]) is not ...
