"""Names of python-control lead somewhere, and its code prints what ours prints beside it."""

from __future__ import annotations

import contextlib
import io
import re
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import flexure as fx

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-python-control.md"


def rows() -> list[list[str]]:
    """Return the cells of the rows of the table."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def sample() -> dict[str, Any]:
    """Return what the names of the page stand for."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Gain("back", -1.0), fx.TransferFunction("plant", [1.0], [1.0, 1.0]))
    builder.connect_chain("back", "plant", "back")
    loop = fx.loop_gain(builder.build(), "plant.y")
    return {"fx": fx, "model": loop, "loop": loop, "found": fx.margins(loop)}


def test_every_name_of_ours_exists() -> None:
    names = sample()
    assert len(rows()) > 20
    for _, ours, _ in rows():
        expressions = re.findall(r"`([^`]+)`", ours)
        assert expressions
        for expression in expressions:
            first, *rest = expression.split(".")
            assert reduce(getattr, rest, names[first]) is not ...


def test_every_name_of_theirs_exists() -> None:
    control = pytest.importorskip("control")
    system = control.ss(-1.0, 1.0, 1.0, 0.0)
    for theirs, _, _ in rows():
        for name in re.findall(r"`([^`]+)`", theirs):
            known = hasattr(control, name) or hasattr(system, name.split(".")[-1])
            assert known, name


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:connect:FutureWarning")  # of python-control itself
def test_their_code_prints_the_same_as_ours() -> None:
    pytest.importorskip("control")
    plt = pytest.importorskip("matplotlib.pyplot")
    pairs = PAGE.read_text(encoding="utf-8").split("::::{grid}")[1:]
    compared, names = 0, dict[str, Any]()
    for pair in pairs:
        (theirs,), shown = (
            re.findall(rf"^```{kind}\n(.*?)^```$", pair, re.DOTALL | re.MULTILINE)
            for kind in ("py", "text")
        )
        if "needs slycot" in theirs and find_spec("slycot") is None:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(theirs, names)
        assert printed.getvalue().split() == "".join(shown).split()
        compared += bool(shown)
    plt.close("all")
    assert compared > 4
