"""Models in C with fixed steps: bits of the trace, instances, events, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import TraceError, UnknownNameError, ValueRefusedError
from tests.solvers.export.c.systems import Ball, Pendulum, controller
from tests.support.native.c_models import Running, compile_all
from tests.support.native.trace_runs import TraceRun, use_our_functions


def noise(count: int, columns: int) -> Any:
    return np.random.default_rng(7).normal(size=(count, columns))


def test_double_precision_has_the_bits_of_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_our_functions(monkeypatch)
    for system, period in ((controller(), 0.01), (Pendulum(), 0.02)):
        context = system.create_default_context()
        model = fx.to_c(system, context, step=period)
        paths = [row["path"] for row in model.info["inputs"]]
        running = Running(model, compile_all([model], tmp_path / system.name))
        reference = TraceRun(model, context, period, "rk4")
        for row in noise(200, len(paths)):
            expected = reference.step(dict(zip(paths, row.tolist(), strict=True)))
            np.testing.assert_array_equal(running.step(row), expected, err_msg=system.name)


def test_instances_side_by_side_know_nothing_of_each_other(tmp_path: Path) -> None:
    model = fx.to_c(controller())
    library = compile_all([model], tmp_path)
    rows = noise(50, 2)
    alone = [Running(model, library) for _ in range(2)]
    alone[1].call("set", model.places["pid.kp"]["at"], 3.0)
    expected = [[each.step(row) for row in rows] for each in alone]
    together = [Running(model, library) for _ in range(2)]
    together[1].call("set", model.places["pid.kp"]["at"], 3.0)
    for k, row in enumerate(rows):
        for each, wanted in zip(together, expected, strict=True):
            np.testing.assert_array_equal(each.step(row), wanted[k])
    assert np.any(np.not_equal(np.array(expected[0]), np.array(expected[1])))
    together[0].call("reset")
    np.testing.assert_array_equal(together[0].step(rows[0]), expected[0][0])


def test_the_runs_are_those_of_the_simulation(tmp_path: Path) -> None:
    """A sampled controller with limits, in a loop with its plant, against `fx.simulate`."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.PIDController("pid", period=0.1, kp=4.0, ki=2.0, lower=-1.0, upper=1.0),
        fx.Step("target", at=0.5, to=2.0),
        fx.FirstOrderLag("plant", time_constant=0.7),
        fx.Relay("relay", 1.0, 0.5),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("plant.y", "pid.measurement")
    builder.connect("pid.u", "plant.u")
    builder.connect("plant.y", "relay.u")
    loop = builder.build()
    signals = ["pid.u", "plant.y", "relay.y"]
    model = fx.to_c(loop, signals=signals, inputs=[], step=0.001)
    running = Running(model, compile_all([model], tmp_path, compiler="clang"))
    found = np.array([running.step() for _ in range(4001)])
    expected = fx.simulate(loop, 4.0, rtol=1e-10, atol=1e-12)
    times = 0.001 * np.arange(4001) + 1e-6
    for k, path in enumerate(signals[:2]):
        values = np.ravel(expected.sample(path, times[:-1]))
        assert np.max(np.abs(found[:-1, k] - values)) < 2e-3, path
    assert np.all(np.abs(found[:, 0]) <= 1.0)
    relay = np.ravel(expected.sample("relay.y", times[:-1]))
    assert np.sum(found[:-1, 2] != relay) <= 2 * (1 + np.sum(np.diff(relay) != 0))


def test_a_ball_bounces_at_the_steps_behind_its_impacts(tmp_path: Path) -> None:
    model = fx.to_c(Ball(), step=1e-4)
    running = Running(model, compile_all([model], tmp_path))
    heights = np.array([running.step()[0] for _ in range(15000)])
    peaks = [k for k in range(1, 14999) if heights[k - 1] < heights[k] >= heights[k + 1]]
    np.testing.assert_allclose(heights[peaks[:2]], [0.64, 0.4096], rtol=2e-3)
    assert heights.min() > -1e-3


def test_events_end_a_run(tmp_path: Path) -> None:
    builder = fx.DiagramBuilder("guarded")
    level = fx.Integrator("level", initial=[-0.5])
    builder.add_all(fx.Constant("rate", 1.0), level, fx.StopWhen("full", "it is full"))
    builder.connect("rate.y", "level.u")
    builder.connect("level.y", "full.u")
    model = fx.to_c(builder.build(), signals="level.y", inputs=[], step=0.125)
    running = Running(model, compile_all([model], tmp_path))
    assert [running.step()[0] for _ in range(4)] == [-0.5, -0.375, -0.25, -0.125]
    for _ in range(2):  # nothing goes on
        assert running.step(expected=1)[0] == 0.0


def test_adaptive_steps_locate_events(tmp_path: Path) -> None:
    model = fx.to_c(Ball(), method="RK45", step=0.25)
    running = Running(model, compile_all([model], tmp_path))
    found = [running.step()[0] for _ in range(10)]
    expected = fx.simulate(Ball(), 3.0, rtol=1e-10, atol=1e-12)
    values = np.ravel(expected.sample("height", 0.25 * np.arange(10)))
    np.testing.assert_allclose(found, values, atol=1e-5)


def test_parameters_that_are_not_wanted_become_constants(tmp_path: Path) -> None:
    system = controller()
    whole = fx.to_c(system)
    short = fx.to_c(system, parameters=["pid.kp"])
    assert [row["path"] for row in short.info["parameters"]] == ["pid.kp"]
    assert len(short.source) < len(whole.source)
    one, other = (tmp_path / name for name in ("one", "other"))
    runs = [
        Running(model, compile_all([model], folder))
        for model, folder in ((whole, one), (short, other))
    ]
    for each in runs:
        each.call("set", each.model.places["pid.kp"]["at"], 3.0)
    for row in noise(20, 2):
        np.testing.assert_allclose(runs[0].step(row), runs[1].step(row), rtol=1e-13)


def test_every_process_writes_the_same_text() -> None:
    code = (
        "import flexure as fx\n"
        "model = fx.to_c(fx.FirstOrderLag('lag', time_constant=2.0), step=0.1)\n"
        "print(model.header, model.source)"
    )
    ways = [{"PYTHONHASHSEED": seed} for seed in ("1", "2")]
    found = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | way, capture_output=True, check=True
        ).stdout
        for way in ways
    ]
    assert found[0] == found[1]
    assert b" at_0x" not in found[0]


def test_comments_lead_back_to_blocks_and_ports() -> None:
    model = fx.to_c(controller())
    assert "CONTROLLER_P_PID_KP = " in model.header
    assert "/* outputs: u */" in model.header
    assert "/* pid.integral */" in model.source
    assert "malloc" not in model.source


class Foreign(fx.LeafSystem):
    """A block with Python that cannot be traced."""

    def __init__(self) -> None:
        super().__init__("foreign")
        self.u = self.declare_vector_input("u", 1)
        self.declare_vector_output("y", 1, self.calc)

    def calc(self, context: Any) -> Any:
        return [float(self.u(context)[0])]


def sampled() -> fx.System:
    return fx.PIDController("pid", period=0.01, kp=2.0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fx.to_c(Foreign(), step=0.1), TraceError, ["foreign.y", "test_fixed_steps.py:"]),
        (lambda: fx.to_c(fx.Integrator("i")), ValueRefusedError, ["step=1e-3", "1 continuous"]),
        (lambda: fx.to_c(sampled(), step=0.003), ValueRefusedError, ["0.003 s", "divides"]),
        (lambda: fx.to_c(sampled(), method="RK4"), ValueRefusedError, ["rk4", "RK45"]),
        (lambda: fx.to_c(sampled(), method="RK45", step=0.1, precision="single"), None, ["fixed"]),
        (
            lambda: fx.to_c(sampled(), precision=cast("Any", "half")),
            ValueRefusedError,
            ["'single'"],
        ),
        (lambda: fx.to_c(sampled(), parameters="kq"), UnknownNameError, ["'kq'", "'kp', 'ki'"]),
        (lambda: fx.to_c(sampled(), inputs="setpiont"), UnknownNameError, ["'setpoint'"]),
        (lambda: fx.to_c(sampled(), step=-1.0), ValueRefusedError, ["positive step"]),
        (lambda: fx.to_c(sampled()).size("no-such-gcc"), ValueRefusedError, ["no-such-gcc"]),
    ],
)
def test_what_cannot_be_written_is_refused_in_words(
    call: Callable[[], Any], error: Any, words: list[str]
) -> None:
    with pytest.raises(error or ValueRefusedError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
