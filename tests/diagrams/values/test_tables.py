"""Tables are easy to read, on a screen and in a program."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.values.tables import WIDTH, Bounds
from tests.support.tiers import for_each


def inventory(count: int = 2, doc: str = "a line") -> fx.results.Table:
    rows = [(f"block{k}.gain", float(k), np.full(3, float(k)), doc) for k in range(count)]
    return fx.results.Table(["path", "value", "array", "doc"], rows)


def test_a_table_gives_rows_columns_and_parts() -> None:
    table = inventory(5)
    assert len(table) == 5
    assert table["path"] == [row["path"] for row in table]
    assert table[1]["value"] == table[-4]["value"] == 1.0
    assert table[1:3]["value"] == [1.0, 2.0]
    assert table.where(value=3.0)["path"] == ["block3.gain"]
    assert len(table.where(path="nobody", value=3.0)) == 0


def test_tables_are_equal_when_all_values_are() -> None:
    assert inventory() == inventory()
    assert inventory() == pickle.loads(pickle.dumps(inventory()))
    assert inventory() != inventory(3)
    assert inventory() != inventory(doc="another line")
    assert inventory() != fx.results.Table(["a", "b", "c", "d"], [])
    assert inventory() != [*inventory()]


@for_each("column", ["pth", "", 1.5, None])
def test_a_column_that_is_not_there_is_refused(column: Any) -> None:
    with pytest.raises(UnknownNameError, match="Cannot find a column"):
        inventory()[column]


def test_a_row_that_is_not_there_ends_a_loop() -> None:
    with pytest.raises(IndexError):
        inventory()[2]


def test_the_text_shows_what_is_in_the_table() -> None:
    header, _, first, _ = str(inventory()).splitlines()
    assert header.split() == ["path", "value", "array", "doc"]
    assert first == "block0.gain  0      [0, 0, 0]  a line"


@pytest.mark.parametrize("path", ["short", "long" * 40])
def test_the_text_fits_the_screen_whatever_is_in_the_table(path: str) -> None:
    row = (path, np.arange(1000.0), "m" * 300, "many words\n" * 30)
    table = fx.results.Table(["path", "value", "unit", "doc"], [row, ("short", True, None, "")])
    lines = str(table).splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) == WIDTH
    assert table[0]["doc"] == "many words\n" * 30  # which stays whole


def test_remarks_give_way_before_paths() -> None:
    path = ".".join(["subsystem"] * 7)
    text = str(fx.results.Table(["path", "unit", "doc"], [(path, "N m s/rad", "words " * 20)]))
    assert f"{path}  N m s/rad  words" in text


def test_a_long_table_is_shown_in_part_and_printed_as_a_whole() -> None:
    table = inventory(1000)
    assert len(str(table).splitlines()) == 1002
    assert len(repr(table).splitlines()) == 63
    assert "940 more rows" in repr(table)
    assert repr(inventory(60)) == str(inventory(60))
    assert str(inventory(0)) == "(no rows of path, value, array, doc)"


def test_bounds_are_written_as_people_do() -> None:
    for bounds, text in [
        (Bounds(0.0, np.inf, False), ">= 0"),
        (Bounds(0.0, np.inf, True), "> 0"),
        (Bounds(-np.inf, 2.5, False), "<= 2.5"),
        (Bounds(0.0, 1.0, False), "[0, 1]"),
        (Bounds(0.0, 1.0, True), "(0, 1)"),
        (Bounds(-np.inf, np.inf, False), ""),
        (Bounds(np.array([0.0, -np.inf]), np.inf, False), ">= [0, -inf]"),
    ]:
        assert str(bounds) == text


def test_a_table_becomes_a_data_frame() -> None:
    pytest.importorskip("pandas")
    frame = inventory(3).to_pandas()
    assert list(frame.columns) == ["path", "value", "array", "doc"]
    assert frame["value"].tolist() == [0.0, 1.0, 2.0]
    assert list(inventory(0).to_pandas().columns) == ["path", "value", "array", "doc"]
