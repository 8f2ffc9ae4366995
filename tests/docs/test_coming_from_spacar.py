"""The table for people who come from SPACAR, Exudyn or ANSYS leads somewhere, on our side."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path
from typing import Any

import flexure as fx

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-spacar.md"


def test_every_name_of_ours_exists() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert len(rows) > 20
    for *theirs, ours, _ in rows:
        assert len(theirs) == 3
        assert any(theirs)
        expressions = re.findall(r"`([^`]+)`", ours)
        assert expressions, theirs
        for expression in expressions:
            first, *rest = expression.split(".")
            assert first == "fx"
            names: Any = fx
            assert reduce(getattr, rest, names) is not ...


def test_options_that_are_named_are_taken() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)=\w*`", text)) - {"stress", "segments"}
    assert named == {"clamped_warping", "damping_time", "loss_factor"}
    leaf = fx.LeafSpring(
        "leaf",
        fx.Body("a"),
        fx.Body("c"),
        length=0.1,
        width=0.02,
        thickness=5e-4,
        material=fx.Material.common("stainless steel 301"),
        clamped_warping=True,
        loss_factor=0.01,
        at_frequency=10.0,
    )
    assert leaf.damping_time is not None
