"""`flexure sweep`: plans as words, the table of the runs, and what fails."""

from __future__ import annotations

import contextlib
import csv
import json
import math
from argparse import ArgumentTypeError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.commands.arguments.call_texts import Call, axis, call, samples
from flexure.commands.arguments.plan_texts import distribution
from tests.commands.conftest import Command
from tests.commands.test_run import FUSE
from tests.support.tiers import by_tier, for_each

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.from_regex(r"[a-z_]+(\.[a-z]+)?(\[[0-9](,[0-9])?\])?", fullmatch=True).filter(
    lambda word: word not in ("inf", "nan", "infinity")
)
KEYS = st.from_regex(r"[a-z]+", fullmatch=True)


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@settings(max_examples=by_tier(fast=10, full=40))
@given(WORDS, st.lists(NUMBERS | WORDS), st.dictionaries(KEYS, NUMBERS))
def test_calls_come_back(name: str, args: list[object], named: dict[str, float]) -> None:
    name = name.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]
    words = [str(each) for each in args] + [f"{key}={value}" for key, value in named.items()]
    text = f"{name}({', '.join(words)})"
    assert call(text) == Call(text, name, tuple(args), named)


@given(st.text())
def test_any_text_is_a_call_a_grid_or_refused(text: str) -> None:
    for read in (call, axis, lambda word: samples(["10", word])):
        with contextlib.suppress(ArgumentTypeError):
            read(text)


@for_each(
    "text",
    [
        "a=1:2",
        "a=1:2:0",
        "a=1:2:-3",
        "a=1:2:3.5",
        "a=1:2:1000000000000",
        "a=nan:1:3",
        "a=0:1:3:log",
        "a=-1:1:3:log",
        "a=1:inf:3",
        "a=1:2:3:cubic",
        "a=1:2:3:log:4",
        "a=",
        "=1:2:3",
        "a=1,,2",
        "a=x",
    ],
)
def test_what_is_no_grid_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="expected"):
        axis(text)


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [
        ("normal(3, 0.2)", 3.0, 0.2),
        ("norm(loc=3, scale=0.2)", 3.0, 0.2),
        ("gamma(4, scale=0.5)", 2.0, 1.0),
        ("triang(0.5, loc=1, scale=2)", 2.0, math.sqrt(1.0 / 6.0)),
    ],
)
def test_distributions_are_those_of_scipy(text: str, mean: float, deviation: float) -> None:
    found = distribution(call(text), "a")
    assert (found.mean(), found.std()) == pytest.approx((mean, deviation))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("normall(3,1)", "Did you mean 'normal'?"),
        ("__import__(os)", "expected finite numbers"),
        ("rv_continuous()", "expected 'uniform(low, high)', or a distribution of scipy.stats"),
        ("normal(3,nan)", "expected finite numbers"),
        ("normal(3,sd=1)", "expected normal(loc=0, scale=1)"),
        ("gamma()", "expected gamma(a, loc=0, scale=1)"),
        ("uniform(1)", "expected uniform(low, high)"),
        ("uniform(2,1)", "expected (low, high)"),
        ("normal(3,-1)", "expected a distribution with finite quantiles"),
        ("5%%", "expected"),
    ],
)
def test_what_is_no_distribution_is_told(text: str, said: str, flexure: Command) -> None:
    words = ("--to", "1", "--random", "4", f"lag.time_constant={text}")
    code, out, err = flexure("sweep", "charge.py", *words)
    assert (code, out) == (1, "")
    assert said in err


def test_grids_multiply(flexure: Command) -> None:
    words = ("--grid", "source.to=1,2,4", "--grid", "lag.time_constant=0.5:2:3:log")
    metrics = ("--metrics", "final(lag.y)", "--rtol", "1e-9", "--out", "kept")
    code, out, err = flexure("sweep", "charge.py", "--to", "1.5", *words, *metrics)
    assert (code, err) == (0, "")
    assert out.startswith("<Plan of 9 samples, 3 x 3; source.to from 1 to 4, lag.time_constant")
    found = rows(Path("kept", "runs.csv"))
    pairs = [(to, tau) for to in (1.0, 2.0, 4.0) for tau in (0.5, 1.0, 2.0)]
    for path, values in zip(
        ("source.to", "lag.time_constant"), zip(*pairs, strict=True), strict=True
    ):
        assert [float(row[path]) for row in found] == pytest.approx(values)
    expected = [to * (1.0 - math.exp(-1.0 / tau)) for to, tau in pairs]
    assert [float(row["final(lag.y)"]) for row in found] == pytest.approx(expected, abs=1e-6)
    assert {row["outcome"] for row in found} == {"completed"}
    assert fx.plans.load_plan(Path("kept", "plan.npz")).shape == (3, 3)


@pytest.mark.parametrize("way", ["random", "latin", "sobol"])
def test_samples_are_those_of_the_library(way: str, flexure: Command) -> None:
    words = (f"--{way}", "8", "lag.time_constant=5%", "source.to=normal(2,0.1)", "--seed", "3")
    setting = ("--set", "lag.time_constant=2")
    found = json.loads(flexure("sweep", "charge.py", "--to", "1", *words, *setting, "--json").out)
    from scipy.stats import norm

    draw = {"random": fx.plans.random, "latin": fx.plans.latin_hypercube, "sobol": fx.plans.sobol}[
        way
    ]
    values = {"lag.time_constant": (1.9, 2.1), "source.to": norm(2, 0.1)}
    plan = draw(values, 8, seed=3)
    for path in plan.paths:
        np.testing.assert_allclose(found["values"][path], plan[path], rtol=1e-14)


def test_a_saved_plan_is_run_again(flexure: Command) -> None:
    fx.plans.zipped({"source.to": [1.0, 3.0]}).save("plan.csv")
    words = ("--plan", "plan.csv", "--grid", "lag.time_constant=1,2", "--json")
    found = json.loads(flexure("sweep", "charge.py", "--to", "1", *words).out)
    assert found["values"]["source.to"] == [1.0, 1.0, 3.0, 3.0]
    assert found["dims"] == ["sample", "lag.time_constant"]


def test_many_runs_are_summed_up_and_signals_are_kept(flexure: Command) -> None:
    words = ("--to", "1", "--latin", "200", "source.to=uniform(1,3)")
    kept = ("--signals", "lag.y", "--out", "kept", "--metrics", "final(source.y)")
    code, out, _ = flexure("sweep", "charge.py", *words, *kept)
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("final(source.y)"))
    assert [float(each) for each in line.split()[1:]] == pytest.approx(
        [1.0, 1.1, 2.0, 2.9, 3.0, 0.0], abs=0.02
    )
    with np.load(Path("kept", "signals.npz")) as signals:
        assert signals["lag.y"].shape == (200, 1001)


def test_runs_that_fail_are_told_and_end_with_3(flexure: Command, folder: Path) -> None:
    (folder / "fuse.py").write_text(FUSE, encoding="utf-8")
    words = ("--to", "1.5", "--grid", "rate=0.5,1,2,3,4,5,6", "--out", "kept")
    code, out, err = flexure("sweep", "fuse.py", *words)
    assert (code, err) == (3, "")
    assert "run 2 failed: " in out
    assert "2 more runs failed" in out
    assert [row["outcome"] for row in rows(Path("kept", "runs.csv"))][:3] == [
        *["completed"] * 2,
        "failed",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name one, as in --grid"),
        (("--grid", "lag.tau=1,2"), "Cannot find"),
        (("--grid", "lag.time_constant=1,-2"), "found -2."),
        (("--grid", "source.to=1,2", "--grid", "source.to=3,4"), "found 'source.to' in both"),
        (("--grid", "source.to=0:1:60000", "--grid", "source.at=0:1:60000"), "Cannot"),
        (("--plan", "charge.py"), "Cannot load a plan from 'charge.py'"),
        (("--plan", "nowhere.csv"), "no file of this name"),
        (("--random", "3", "lag.tau=5%"), "Cannot find"),
        (("--random", "3", "lag.x=5%"), "expected a nominal value without zeros"),
    ],
)
def test_what_cannot_be_swept_is_told(words: tuple[str, ...], said: str, flexure: Command) -> None:
    code, _, err = flexure("sweep", "charge.py", "--to", "1", *words)
    assert code == 1
    assert said in err


@pytest.mark.parametrize(
    "words",
    [("many", "a=5%"), ("0", "a=5%"), ("3",), ("3", "a"), ("3", "a=5%", "a=6%"), ("3", "a=(")],
)
def test_samples_that_are_not_understood_end_with_2(
    words: tuple[str, ...], flexure: Command
) -> None:
    code, _, err = flexure("sweep", "charge.py", "--to", "1", "--random", *words)
    assert code == 2
    assert "argument --random: expected" in err


def test_a_stored_sweep_goes_on_in_other_processes(folder: Path, flexure: Command) -> None:
    words = ("--to", "2", "--metrics", "final(lag.y)", "--store", "charge.study")
    first = flexure("sweep", "charge.py", "--grid", "lag.time_constant=1,2", *words)
    assert first.code == 0
    grid = ("--grid", "lag.time_constant=1,2,3")
    whole = flexure("sweep", "charge.py", *grid, *words, "--workers", "1", "--json")
    assert whole.code == 0
    told = json.loads(whole.out)["metrics"]["final(lag.y)"]
    np.testing.assert_allclose(told, 1.0 - np.exp(-1.5 / np.arange(1.0, 4.0)), rtol=1e-5)
    kept = fx.load_study(folder / "charge.study")
    np.testing.assert_array_equal(kept.metrics["final(lag.y)"], told)
    other = flexure("sweep", "charge.py", *grid, "--to", "3", *words[2:])
    assert other.code == 1
    assert "the option 't_final' is 3.0, and 2.0 in the file" in other.err
    assert flexure("sweep", "charge.py", *grid, "--to", "3", *words[2:], "--force").code == 0


def test_a_number_of_workers_has_to_be_positive(folder: Path, flexure: Command) -> None:
    grid = ("--grid", "lag.time_constant=1,2")
    code, _, err = flexure("sweep", "charge.py", *grid, "--to", "1", "--workers", "0")
    assert code == 1
    assert "expected a positive integer" in err
