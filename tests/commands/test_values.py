"""Values as words, and files of them."""

from __future__ import annotations

import contextlib
import math
from argparse import ArgumentTypeError
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from flexure.commands.arguments.call_texts import assignment, names, parsed, tolerance
from tests.commands.conftest import Command
from tests.support.tiers import by_tier

NUMBERS = st.floats(allow_nan=False)
PATHS = st.from_regex(r"[a-z]+(\.[a-z]+)*(\[[a-z0-9]+(,[0-9]+)?\])?", fullmatch=True)


@given(NUMBERS)
def test_numbers_come_back_to_the_last_bit(number: float) -> None:
    assert math.copysign(1.0, parsed(repr(number))) == math.copysign(1.0, number)
    assert parsed(repr(number)) == number


@given(st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=4))
def test_arrays_come_back(rows: list[list[float]]) -> None:
    word = ";".join(",".join(map(repr, row)) for row in rows)
    assert parsed(word) == (rows if len(rows) > 1 else rows[0])


@pytest.mark.full
@given(st.text())
def test_any_text_is_a_value_or_refused_as_words_are(text: str) -> None:
    parsed(text)
    for read in (assignment, names, tolerance):
        with contextlib.suppress(ArgumentTypeError):
            read(text)


@settings(max_examples=by_tier(fast=10, full=40))
@given(PATHS, st.text(alphabet="=abc", min_size=1))
def test_the_first_sign_of_equality_ends_the_path(path: str, word: str) -> None:
    assert assignment(f"{path}={word}") == (path, word)


@settings(max_examples=by_tier(fast=10, full=40))
@given(st.lists(PATHS, min_size=1))
def test_commas_in_brackets_separate_nothing(paths: list[str]) -> None:
    assert names(", ".join(paths)) == paths


def test_tolerances_may_differ_by_path() -> None:
    assert tolerance("1e-8") == 1e-8
    assert tolerance("plant=1e-9,=1e-6") == {"plant": 1e-9, "": 1e-6}


@pytest.mark.parametrize(
    "text",
    [
        '"lag.time_constant" = 2.0\n"source.to" = 5\n',
        "lag.time_constant = 2.0\nsource.to = 5\n",
        "[lag]\ntime_constant = 2.0\n[source]\nto = 5.0\n",
    ],
)
def test_a_file_of_parameters_is_flat_or_in_tables(
    text: str, flexure: Command, folder: Path
) -> None:
    (folder / "values.toml").write_text(text, encoding="utf-8")
    words = ("--to", "2.5", "--params", "values.toml", "--rtol", "1e-9", "--signals", "lag.y")
    _, out, _ = flexure("run", "charge.py", *words)
    final = float(out.split()[-1])
    assert final == pytest.approx(5.0 * (1.0 - math.exp(-1.0)), rel=1e-5)


def test_what_is_set_comes_after_files(flexure: Command, folder: Path) -> None:
    (folder / "values.toml").write_text("source.to = 5\n", encoding="utf-8")
    words = ("--params", "values.toml", "--set", "source.to=7", "--signals", "source.y")
    _, out, _ = flexure("run", "charge.py", "--to", "1", *words)
    assert out.split()[-1] == "7"


def test_arrays_and_components_are_set(flexure: Command) -> None:
    words = ("--set", "A[1,0]=-9", "--set", "x=1,2", "--set", "u=0", "--set", "B=0;2")
    _, out, _ = flexure("run", "charge.py:vector", "--to", "0", "--signals", "x", *words)
    assert [line.split()[-1] for line in out.splitlines()[-2:]] == ["1", "2"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("lag.time_constant=nan", "expected finite numbers; found nan"),
        ("lag.time_constant=1e999", "expected finite numbers; found inf"),
        ("lag.time_constant=-1", "expected values in (0, inf) s; found -1."),
        ("lag.time_constant=1,2", "found a vector of size 2"),
        ("lag.time_constant=2O", "expected a real number; found '2O' (str)"),
        ("lag.time_constant=a=b", "found 'a=b' (str)"),
        ("lag..x=1", "Cannot find"),
        ("[0]=1", "Cannot find"),
    ],
)
def test_a_value_that_is_refused_is_told(setting: str, said: str, flexure: Command) -> None:
    code, out, err = flexure("run", "charge.py", "--to", "1", "--set", setting)
    assert (code, out) == (1, "")
    assert said in err


@pytest.mark.parametrize("content", [b"pid.kp 80", b"\xff", b"[a]\n[a]\n", None])
def test_a_file_that_is_no_toml_is_told(
    content: bytes | None, flexure: Command, folder: Path
) -> None:
    if content is not None:
        (folder / "values.toml").write_bytes(content)
    code, _, err = flexure("run", "charge.py", "--to", "1", "--params", "values.toml")
    assert code == 1
    assert "Cannot read parameters from 'values.toml': expected a TOML file" in err
