"""Every name in the table of MuJoCo leads somewhere, on both sides."""

from __future__ import annotations

import operator
import re
from pathlib import Path

import pytest

import flexure as fx
from tests.support.mechanics.mechanics import servo

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-mujoco.md"


def rows() -> list[list[str]]:
    """Return the cells of the rows of the table."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_name_of_ours_exists() -> None:
    names = {"fx": fx, "plant": fx.Plant, "context": servo().create_default_context()}
    assert len(rows()) > 10
    for _, ours, _ in rows():
        for expression in re.findall(r"`([^`]+)`", ours):
            first, _, rest = expression.partition(".")
            operator.attrgetter(rest)(names[first])


def test_every_name_of_theirs_exists() -> None:
    mujoco = pytest.importorskip("mujoco")
    pytest.importorskip("mujoco.rollout")
    for theirs, _, _ in rows():
        for name in re.findall(r"`([^`]+)`", theirs):
            first, *rest = name.split(".")
            assert hasattr(mujoco, first), name
            one = mujoco.MjModel.from_xml_string("<mujoco/>")
            held = {"MjModel": one, "MjData": mujoco.MjData(one)}
            assert all(hasattr(held[first], each) for each in rest), name
