"""The comparison with Drake and C stands on truths of its own, and says what it leaves out."""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import flexure as fx
from benchmarks import versus_drake
from benchmarks.versus import drake_side, ours, reference
from benchmarks.versus.drake_models import models
from benchmarks.versus.in_c import c_side
from benchmarks.versus.sides import Contender, fastest, in_rounds, loosest, ratio
from benchmarks.versus.table import Row, formatted, write
from benchmarks.versus.workloads import (
    BodyChain,
    BouncingBall,
    ControlledMass,
    Ensemble,
    HingedDoor,
    LinkChain,
    MassChain,
    Mechanism,
    MountedBody,
    PlanarLinks,
    SampledPendulum,
    SpatialLinks,
    StifflyMountedBody,
    StiffOscillator,
    Workload,
    all_workloads,
)
from tests.support.native.native import needs_llvmlite

MECHANISMS: list[Mechanism] = [
    PlanarLinks(horizon=0.3),
    SpatialLinks(horizon=0.3),
    MountedBody(horizon=0.1),
    StifflyMountedBody(horizon=0.01),
    BodyChain(count=3, horizon=0.1),
    HingedDoor(horizon=0.5),
]
SMOOTH = [
    ControlledMass(horizon=1.0),
    MassChain(count=5, horizon=2.0),
    StiffOscillator(horizon=0.2),
    *MECHANISMS,
]
SHORT = [*SMOOTH, SampledPendulum(horizon=0.05), BouncingBall()]


def name(workload: Workload) -> str:
    return workload.name


@pytest.fixture(scope="module", autouse=True)
def quickly_compiled() -> Iterator[None]:
    """Leave out what the compiler of C would do for speed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_side, "COMPILER", ["-O0" if c == "-O3" else c for c in c_side.COMPILER])
        yield
    c_side.compiled.cache_clear()


def solved(workload: Workload, horizon: float, start: Any, **options: Any) -> Any:
    return solve_ivp(
        reference.equations(workload), (0.0, horizon), start, rtol=1e-9, atol=1e-12, **options
    )


# The reference ------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("workload", SMOOTH, ids=name)
def test_exact_motion_is_what_scipy_integrates(workload: Workload) -> None:
    solution = solved(workload, workload.horizon, workload.initial, method="Radau")
    assert reference.error(workload, solution.t, solution.y.T) < 1e-6


@pytest.mark.full
@pytest.mark.parametrize("chain", [PlanarLinks(d=0.0), SpatialLinks(d=0.0)], ids=name)
def test_links_without_damping_keep_their_energy(chain: LinkChain) -> None:
    n = len(chain.axes)
    axes = {"x": np.array([1.0, 0.0, 0.0]), "y": np.array([0.0, 1.0, 0.0])}

    def energy(x: NDArray[np.float64]) -> float:
        R, end, speed, spin = Rotation.identity(), np.zeros(3), np.zeros(3), np.zeros(3)
        total = 0.5 * chain.k * float(x[:n] @ x[:n])
        for angle, rate, axis in zip(x[:n], x[n:], chain.axes, strict=True):
            R = R * Rotation.from_rotvec(angle * axes[axis])
            spin = spin + rate * R.apply(axes[axis])
            half = R.apply([0.0, 0.0, -0.5 * chain.length])
            center, v = end + half, speed + np.cross(spin, half)
            w = R.inv().apply(spin)
            total += 0.5 * chain.m * float(v @ v) + 0.5 * float(w @ (chain.moments * w))
            total += chain.m * chain.g * float(center[2])
            end, speed = end + 2.0 * half, speed + 2.0 * np.cross(spin, half)
        return total

    states = reference.motion(replace(chain, horizon=1.0))(np.linspace(0.0, 1.0, 5))
    energies = [energy(x) for x in states]
    assert abs(states[-1, 0] - states[0, 0]) > 0.1
    np.testing.assert_allclose(energies, energies[0], rtol=1e-9)


def test_mounted_body_comes_to_rest_where_the_bushing_carries_its_weight() -> None:
    w = MountedBody()
    position = reference.motion(replace(w, horizon=2.0))(np.array([2.0]))[0, 4:7]
    np.testing.assert_allclose(position, [0.0, 0.0, -w.m * w.g / w.k], atol=1e-9)


def test_door_creeps_where_friction_is_stronger_than_the_spring() -> None:
    w = HingedDoor()
    early, late = reference.motion(w)(np.array([1.0, w.horizon]))
    assert early[1] < -100.0 * w.threshold
    assert -w.threshold < late[1] < 0.0 < late[0]


def test_log_of_the_pendulum_is_what_scipy_integrates_from_sample_to_sample() -> None:
    w = SampledPendulum(horizon=0.02)
    x, torque = w.initial, 0.0
    rows = []
    for _ in w.ticks:
        rows.append([x[0], torque])
        torque = -w.kp * x[0] - w.kd * x[1]

        def pushed(t: float, x: NDArray[np.float64], torque: float = torque) -> Any:
            free = reference.equations(w)(t, x)
            return free + np.array([0.0, torque / (w.m * w.length**2)])

        x = solve_ivp(pushed, (0.0, w.period), x, rtol=1e-9, atol=1e-12).y[:, -1]
    assert reference.error(w, w.ticks, rows) < 1e-8


def test_ball_bounces_where_scipy_finds_the_floor() -> None:
    w = BouncingBall()

    def floor(_: float, x: NDArray[np.float64]) -> float:
        return float(x[0])

    floor.terminal, floor.direction = True, -1.0  # type: ignore[attr-defined]
    time, x = 0.0, w.initial
    for impact in reference.impact_times(w)[:3]:
        solution = solved(w, w.horizon, x, events=floor)
        time += solution.t[-1]
        assert time == pytest.approx(impact, abs=1e-8)
        x = np.array([0.0, -w.restitution * solution.y[1, -1]])
    top = time + x[1] / w.g
    assert reference.error(w, [top], [[x[1] ** 2 / (2.0 * w.g)]]) < 1e-8


def test_horizon_of_the_ball_lies_between_the_last_impact_and_the_next() -> None:
    w = BouncingBall()
    assert np.sum(reference.impact_times(w) < w.horizon) == w.impacts == 15
    assert len(reference.impact_times(w)) == 16


def test_error_is_relative_to_the_largest_number() -> None:
    w = BouncingBall()
    times = np.array([0.0, 0.2])
    exact = reference.motion(w)(times)
    assert reference.error(w, times, exact) == 0.0
    assert reference.error(w, times, exact + np.array([[0.0], [0.25]])) == pytest.approx(0.25)


def test_error_refuses_other_signals_than_those_that_are_compared() -> None:
    with pytest.raises(ValueError, match=r"ball: expected shape \(2, 1\), found \(2, 2\)"):
        reference.error(BouncingBall(), [0.0, 0.1], np.zeros((2, 2)))


# Our side -----------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("workload", SHORT, ids=name)
def test_our_diagram_moves_as_the_reference(workload: Workload) -> None:
    diagram = ours.build(workload)
    start = ours.start(workload, diagram)
    result = fx.simulate(diagram, workload.horizon, context=start, rtol=1e-8, atol=1e-10)
    assert ours.run_error(workload, result) < 1e-6


@pytest.mark.full
@needs_llvmlite
def test_mechanisms_of_ours_move_natively_by_the_fastest_method() -> None:
    side = ours.simulator(PlanarLinks(horizon=0.2))
    assert side.name == "native loop"
    assert side.setting.split(",")[0] in ("RK45", "DormandPrince", "DOP853")
    assert side.evaluations > 0
    assert 0.0 < side.right_hand_side < side.run()
    assert ours.simulator(HingedDoor(horizon=0.1)).setting.startswith("Rodas5P")


def test_ball_of_ours_bounces_fifteen_times() -> None:
    workload = BouncingBall()
    result = fx.simulate(ours.build(workload), workload.horizon)
    assert result.statistics.unrestricted_updates == workload.impacts


def test_members_of_the_ensemble_share_a_diagram_and_have_their_own_gains() -> None:
    ensemble = Ensemble(horizon=0.5, count=4, sample=2)
    diagram = ours.build(ensemble)
    for member in ensemble.members:
        start = ours.start(member, diagram)
        result = fx.simulate(diagram, member.horizon, context=start, rtol=1e-8, atol=1e-10)
        assert ours.run_error(member, result) < 1e-6
    first, second = ensemble.members
    assert first != second
    assert ensemble.weight == 2.0


@pytest.mark.parametrize("workload", [ControlledMass(horizon=0.5), BouncingBall()], ids=name)
def test_our_way_meets_the_target(workload: Workload) -> None:
    side = ours.simulator(workload)
    assert side.name in ("native loop", "python loop")
    assert 0.0 <= side.error <= workload.target
    assert side.run() > 0.0


@pytest.mark.full
@needs_llvmlite
def test_solve_ivp_and_lanes_meet_the_target_too() -> None:
    short = ControlledMass(horizon=0.5)
    ways = [ours.through_solve_ivp(short), ours.lanes(Ensemble(count=5, sample=2, base=short))]
    for side, name in zip(ways, ["solve_ivp", "lanes"], strict=True):
        assert side is not None
        assert side.name == name
        assert 0.0 <= side.error <= short.target
        assert side.run() > 0.0
    assert ours.through_solve_ivp(BouncingBall()) is None
    assert ours.lanes(short) is None


def test_straight_line_code_is_measured_for_all_blocks() -> None:
    side = ours.straight_line(MassChain(count=3))
    assert side.blocks == 6
    assert side.preparation > 0.0
    assert side.cost > 0.0


# Sides and rounds ---------------------------------------------------------------------------------


def test_loosest_tolerance_is_found_to_a_quarter_of_a_decade() -> None:
    tolerance, error = loosest(lambda tolerance: 3.0 * tolerance, 1e-4) or (0.0, 0.0)
    assert tolerance == pytest.approx(10.0**-4.5)
    assert error == 3.0 * tolerance


def test_no_tolerance_is_found_where_none_is_good_enough() -> None:
    assert loosest(lambda _: 1.0, 1e-4) is None


def test_fastest_of_some_sides_is_the_one_with_the_shortest_runs() -> None:
    slow = Contender("slow", lambda: 2.0, 0.0, "a setting")
    quick = Contender("quick", lambda: 1.0, 0.0, "a setting")
    assert fastest([slow, quick]) is quick
    assert fastest([slow]) is slow


def test_sides_take_turns_and_ratios_are_medians_over_rounds() -> None:
    turns: list[str] = []

    def run(side: str, cost: float) -> float:
        if turns[-1:] != [side]:
            turns.append(side)
        return cost

    ours, theirs = in_rounds([lambda: run("ours", 2.0), lambda: run("theirs", 6.0)], 3)
    assert turns == ["ours", "theirs"] * 4  # once to warm up
    assert (ours, theirs) == ([2.0] * 3, [6.0] * 3)
    assert ratio([1.0, 6.0, 9.0], [1.0, 2.0, 1.0]) == 3.0


# Other sides --------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no compiler")
@pytest.mark.parametrize(
    "workload",
    [ControlledMass(), MassChain(count=7), PlanarLinks(k=3.0), SpatialLinks(radius=0.1)],
    ids=name,
)
def test_hand_written_code_has_the_equations_of_the_reference(workload: Workload) -> None:
    c_side.compiled(workload).check()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no compiler")
@pytest.mark.full
@pytest.mark.parametrize(("method", "of_ours"), [("dormand_prince", "RK45"), ("dop853", "DOP853")])
def test_hand_written_loops_take_the_steps_of_ours(method: str, of_ours: str) -> None:
    workload = SpatialLinks(horizon=1.0)
    program, diagram = c_side.compiled(workload), ours.build(workload)
    start = ours.start(workload, diagram)
    result = fx.simulate(
        diagram, workload.horizon, context=start, method=of_ours, rtol=1e-7, atol=1e-7
    )
    assert abs(program.steps(method, 1e-7) - result.statistics.steps) <= 1
    assert program.error(method, 1e-7) == pytest.approx(ours.run_error(workload, result), rel=1e-2)


@pytest.mark.parametrize("workload", MECHANISMS, ids=name)
def test_plants_of_drake_have_the_equations_of_the_reference(workload: Mechanism) -> None:
    pytest.importorskip("pydrake")
    for model in models(workload):
        drake_side.check(workload, model)


# Missing peers ------------------------------------------------------------------------------------


@pytest.fixture
def no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    load = importlib.import_module

    def without_drake(module: str, package: str | None = None) -> Any:
        if module.startswith("pydrake"):
            raise ImportError(module)
        return load(module, package)

    monkeypatch.setattr(importlib, "import_module", without_drake)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    c_side.compiled.cache_clear()


@pytest.mark.usefixtures("no_peers")
def test_missing_peers_are_named_and_the_rest_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workloads = [ControlledMass(horizon=0.2)]
    monkeypatch.setattr(versus_drake, "all_workloads", lambda **_: workloads)
    file = tmp_path / "rows.json"
    monkeypatch.setattr("sys.argv", ["versus_drake.py", "--quick", "--json", str(file), "pid"])
    versus_drake.main()
    printed = capsys.readouterr().out
    assert "pydrake is not installed (pip install drake): no comparison with Drake" in printed
    assert "gcc is not installed: no comparison with C" in printed
    metrics = [row["metric"] for row in json.loads(file.read_text(encoding="utf-8"))]
    assert any(metric.endswith("loop [ms]") for metric in metrics)
    assert not any("Drake" in metric or metric.endswith("/ C") for metric in metrics)


@pytest.mark.usefixtures("no_peers")
def test_new_processes_are_not_compared_without_drake() -> None:
    missing: list[str] = []
    assert list(versus_drake.measure(["cold"], missing, quick=True)) == []
    assert missing == ["pydrake is not installed (pip install drake): no comparison with Drake"]


def test_unknown_workload_is_refused_with_the_names_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["versus_drake.py", "pendulums"])
    with pytest.raises(SystemExit):
        versus_drake.main()
    assert "unknown: pendulums; there are pid, chain, pendulum," in capsys.readouterr().err


def test_every_bar_belongs_to_a_workload() -> None:
    names = {workload.name for workload in all_workloads()}
    assert {key[0] for key in versus_drake.BARS} <= names
    assert {workload.name for workload in all_workloads(quick=True)} == names


def test_ways_are_compared_with_every_other_side_and_with_their_bars() -> None:
    mine = Contender("native loop", lambda: 2e-3, 0.0, "RK45")
    drake = Contender("Drake", lambda: 0.5, 0.0, "radau3")
    by_hand = Contender("Drake by hand", lambda: 0.1, 0.0, "radau3")
    c = Contender("C", lambda: 1e-3, 0.0, "rk")
    rows = versus_drake.workload_rows(ControlledMass(), [mine], [drake, by_hand, c], 1)
    ratios = {row.metric: row for row in rows if " / " in row.metric}
    assert {metric: (row.value, row.bar, row.verdict) for metric, row in ratios.items()} == {
        "Drake / native loop": (250.0, 150.0, "pass"),
        "Drake by hand / native loop": (50.0, None, ""),
        "native loop / C": (2.0, 1.2, "FAIL"),
    }


def test_one_right_hand_side_is_compared_with_an_evaluation_in_a_run_of_drake() -> None:
    mine = Contender("native loop", lambda: 1e-3, 0.0, "RK45", "", 500, 1e-6)
    drake = Contender("Drake", lambda: 0.1, 0.0, "radau3", "", 1000)
    rows = {row.metric: row for row in versus_drake.workload_rows(BodyChain(), [mine], [drake], 1)}
    row = rows["Drake / native loop, one right-hand side"]
    assert row.value == pytest.approx(100.0)
    assert row.bar == 100.0
    assert rows["Drake / native loop"].bar is None
    note = "RK45; error 0.0e+00; 500 evaluations; one right-hand side 1000 ns"
    assert rows["native loop [ms]"].note == note


def test_drake_settings_say_what_is_set() -> None:
    assert str(drake_side.Setting("radau3", 1e-4)) == "radau3, accuracy 1.0e-04"
    assert str(drake_side.Setting("runge_kutta3", step=1e-3)) == "runge_kutta3, fixed step 0.001 s"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Drake has no version for such systems")
def test_a_trial_that_fails_or_hangs_gives_nothing() -> None:
    def hang() -> None:
        while True:
            pass

    def fail() -> None:
        raise RuntimeError("the step is too small")

    assert drake_side.within(10.0, lambda: (1.0, 2.0)) == (1.0, 2.0)
    assert drake_side.within(0.1, hang) is None
    assert drake_side.within(10.0, fail) is None


# The table ----------------------------------------------------------------------------------------


def test_table_is_aligned_and_says_whether_bars_are_met() -> None:
    rows = [
        Row("pid", "Drake [ms]", 60.123456, note="runge_kutta5"),
        Row("chain", "Drake / native loop", 199.0, 200.0, "higher"),
        Row("chain", "native loop / C", 1.8, 1.8, "lower"),
    ]
    assert formatted(rows).splitlines() == [
        "workload  metric               value  bar           note",
        "pid       Drake [ms]           60.12                runge_kutta5",
        "chain     Drake / native loop    199  >= 200  FAIL",
        "chain     native loop / C        1.8  <= 1.8  pass",
    ]


def test_rows_are_written_with_their_verdicts(tmp_path: Path) -> None:
    write([Row("pid", "ratio", 3.0, 2.0, "higher", "a note")], tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text(encoding="utf-8")) == [
        {
            "workload": "pid",
            "metric": "ratio",
            "value": 3.0,
            "bar": 2.0,
            "better": "higher",
            "note": "a note",
            "verdict": "pass",
        }
    ]
