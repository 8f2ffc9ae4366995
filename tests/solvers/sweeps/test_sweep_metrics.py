"""Metrics of the runs of a sweep: what can be asked for, and that chunks do not show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure import metrics
from flexure.errors import UnknownNameError, ValueRefusedError
from tests.support.native.native import needs_llvmlite

GAINS = np.linspace(2.0, 8.0, 30)


def loop(controller: Callable[..., Any] = fx.PIDController) -> fx.Diagram:
    """A loop whose setpoint steps from 0 to 1 at 0.5 s."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=0.5),
        controller("pid", kp=4.0, ki=4.0, kd=0.8),
        fx.TransferFunction("arm", [9.0], [1.0, 1.5, 9.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    return builder.build()


WANTED = [
    metrics.iae("arm.y", target="target.y") + 0.01 * metrics.total_variation("pid.u"),
    metrics.step("settling_time", "arm.y"),
    metrics.first_crossing("arm.y", 0.9, "rising"),
]


def swept(**options: Any) -> fx.results.Sweep:
    return fx.sweep(loop(), {"pid.kp": GAINS}, 8.0, **options)


def test_metrics_rest_on_the_runs_and_not_on_what_is_kept() -> None:
    found = swept(metrics=WANTED)
    kept = swept(signals=["arm.y", "pid.u", "target.y"], times=np.linspace(0.0, 8.0, 5))
    assert found.signals == ()
    assert list(found.metrics) == [metric.label for metric in WANTED]
    single = fx.simulate(found.system, 8.0, context=found.context(7))
    fine = single.fine_time(200_000)
    samples = {name: single.sample(name, fine)[np.newaxis] for name in kept.signals}
    steps = {"arm.y": {"at": np.full(1, 0.5), "target": np.ones(1)}}
    for metric in WANTED:
        column = found.metrics[metric.label]
        np.testing.assert_array_equal(column, kept.metric(metric))
        assert column[7] == pytest.approx(metric(single), rel=1e-9)
        sampled = metric.evaluate(fine, samples, steps=steps)
        assert column[7] == pytest.approx(sampled[0], rel=1e-7)
        assert np.isfinite(column).all()
    with pytest.raises(UnknownNameError, match="The attribute metrics has the metric 'step"):
        found[WANTED[1].label]
    with pytest.raises(UnknownNameError, match="Name it in signals="):
        found["arm.y"]


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("compiled", [True, False])
def test_figures_do_not_depend_on_the_length_of_the_runs_nor_on_samples(compiled: bool) -> None:
    wanted = [metrics.step(name, "arm.y") for name in ("overshoot", "rise_time", "peak_time")]
    wanted += [metrics.peak("arm.y"), metrics.peak("pid.u")]
    options: dict[str, Any] = {"compiled": compiled, "rtol": 1e-9, "atol": 1e-12}
    options |= {"metrics": wanted, "signals": "arm.y"}
    short, long = (
        fx.sweep(loop(), {"pid.kp": [3.0, 6.0]}, end, times=[0.0, end / 2.0, end], **options)
        for end in (8.0, 600.0)
    )
    for name, column in short.metrics.items():
        np.testing.assert_allclose(column, long.metrics[name], rtol=1e-7)
    omega, zeta = 5.0, 0.2
    plant = fx.TransferFunction("arm", [omega**2], [1.0, 2.0 * zeta * omega, omega**2])
    context = plant.create_default_context()
    context.set("u", 1.0)
    options |= {"metrics": metrics.step("overshoot", "y", final=1.0), "signals": ()}
    free = fx.sweep(plant, {"u": [1.0]}, 300.0, context=context, **options)
    expected = 100.0 * np.exp(-np.pi * zeta / np.sqrt(1.0 - zeta**2))
    np.testing.assert_allclose(list(free.metrics.values()), expected, rtol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("compiled", [True, False])
def test_chunks_and_threads_do_not_show(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"metrics": [*WANTED, "overshoot"], "signals": "arm.y"}
    options |= {"compiled": compiled, "times": np.linspace(0.0, 8.0, 101)}
    count = 30 if compiled else 5
    values = {"pid.kp": GAINS[:count]}
    whole = fx.sweep(loop(), values, 8.0, **options)
    monkeypatch.setattr("flexure.solvers.sweeps.running.chunks._MEMORY", 1)
    monkeypatch.setattr("flexure.solvers.sweeps.running.chunks._FEWEST", 4)
    monkeypatch.setattr("flexure.solvers.sweeps.running.metric_columns._PIECES", 150)
    pieces = fx.sweep(loop(), values, 8.0, threads=1, **options)
    assert pieces.outcomes.tolist() == whole.outcomes.tolist()
    np.testing.assert_array_equal(pieces.steps, whole.steps)
    np.testing.assert_array_equal(pieces.final_states, whole.final_states)
    np.testing.assert_array_equal(pieces["arm.y"], whole["arm.y"])
    assert pieces.metrics.keys() == whole.metrics.keys()
    for name, column in whole.metrics.items():
        np.testing.assert_array_equal(pieces.metrics[name], column)


def test_a_mapping_names_metrics_of_all_sorts() -> None:
    found = swept(
        signals="arm.y",
        metrics={
            "effort": metrics.peak("pid.u"),
            "over": "overshoot",
            "middle": metrics.of(lambda t, y: np.median(y), "arm.y"),
        },
    )
    assert list(found.metrics) == ["effort", "over", "middle"]
    np.testing.assert_allclose(found.metrics["over"], found.metric("overshoot"), rtol=1e-7)
    assert ((found.metrics["middle"] > 0.5) & (found.metrics["middle"] < 1.5)).all()


def test_a_function_of_whole_results_is_called_for_single_simulations() -> None:
    def tail(result: fx.results.SimulationResult) -> float:
        return float(np.ptp(result["arm.y"][result.time > 6.0]))

    found = fx.sweep(loop(), {"pid.kp": GAINS[:3]}, 8.0, metrics=[tail, metrics.final("arm.y")])
    assert "because a metric is a function of whole results" in found.how
    for k in range(3):
        result = fx.simulate(found.system, 8.0, context=found.context(k))
        assert found.metrics["of(tail)"][k] == tail(result)
        assert found.metrics["final(arm.y)"][k] == result["arm.y"][-1]


def test_runs_of_which_a_function_makes_nothing_have_failed() -> None:
    def picky(t: Any, y: Any) -> float:
        if y[-1] > 1.0:
            raise ArithmeticError("too far")
        return float(y[-1])

    values = {"x": [0.5, 3.0, 0.7]}
    lag = fx.FirstOrderLag("lag", 1.0)
    context = lag.create_default_context()
    context.set("u", 0.0)
    found = fx.sweep(lag, values, 0.5, context=context, metrics=metrics.of(picky, "y"))
    assert found.outcomes.tolist() == ["completed", "failed", "completed"]
    assert found.failures == {1: "Cannot measure picky: ArithmeticError('too far')"}
    expected = np.array([0.5, np.nan, 0.7]) * np.exp(-0.5)
    np.testing.assert_allclose(found.metrics["of(picky, y)"], expected, rtol=1e-5)
    whole = metrics.of(lambda result: picky(None, result["y"]))
    single = fx.sweep(lag, values, 0.5, context=context, metrics={"end": whole})
    assert single.outcomes.tolist() == ["completed", "failed", "completed"]
    assert "too far" in single.failures[1]


def test_runs_that_still_move_are_counted_in_one_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = fx.sweep(loop(), {"pid.kp": GAINS}, 1.2, signals="arm.y")
    with pytest.warns(UserWarning, match="still moves at the end of") as told:
        kept.metric("settling_time")
    monkeypatch.setattr("flexure.solvers.sweeps.running.metric_columns._PIECES", 350)
    with pytest.warns(UserWarning, match="still moves at the end of") as told_of_metrics:
        fx.sweep(loop(), {"pid.kp": GAINS}, 1.2, metrics=WANTED[1])
    assert [str(each.message) for each in told_of_metrics] == [str(each.message) for each in told]


def test_runs_from_contexts_are_measured_likewise() -> None:
    whole = swept(metrics=WANTED)
    contexts = [whole.context(k) for k in (0, 7)]
    found = fx.simulate_many(whole.system, contexts, 8.0, metrics=WANTED)
    for name, column in found.metrics.items():
        np.testing.assert_allclose(column, whole.metrics[name][[0, 7]], rtol=1e-9)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (3.0, "expected names of step metrics"),
        (dict, "expected names of step metrics"),
        ({1: "overshoot"}, "expected names of step metrics"),
        ([metrics.final("arm.y")] * 2, "two of the name 'final\\(arm.y\\)'"),
        (metrics.at("arm.y", 9.0), "within the runs, from 0 to 8 s"),
        (metrics.final("arm.z"), "Cannot find"),
        (metrics.final("arm.x"), "found 2 components"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_runs(
    wanted: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "flexure.solvers.sweeps.sweeps.run_all", lambda *_, **__: pytest.fail("it ran")
    )
    with pytest.raises((UnknownNameError, ValueRefusedError), match=told):
        swept(metrics=wanted)


def test_metrics_of_no_runs_are_empty() -> None:
    found = fx.simulate_many(loop(), [], 8.0, metrics=WANTED)
    assert [len(column) for column in found.metrics.values()] == [0, 0, 0]


@needs_llvmlite
def test_an_interrupted_sweep_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexure.solvers.sweeps.running.chunks._MEMORY", 1)
    monkeypatch.setattr("flexure.solvers.sweeps.running.chunks._LEAST", 8)
    pressed = []

    def press(t: Any, y: Any) -> float:
        pressed.append(y)
        if len(pressed) == 13:
            raise KeyboardInterrupt
        return float(y[-1])

    wanted = {"end": metrics.final("arm.y"), "seen": metrics.of(press, "arm.y")}
    with pytest.raises(KeyboardInterrupt) as caught:
        swept(metrics=wanted)
    found: Any = getattr(caught.value, "result")  # noqa: B009
    assert found.outcomes.tolist() == ["completed"] * 8 + ["interrupted"] * 22
    whole = swept(metrics=wanted["end"])
    for name in wanted:
        assert np.isnan(found.metrics[name][8:]).all()
        np.testing.assert_array_equal(found.metrics[name][:8], whole.metrics["final(arm.y)"][:8])


_PEAK = """
import resource
import numpy as np
import flexure as fx
from flexure.solvers.sweeps.running import chunks

chunks._MEMORY = 4_000_000
lag = fx.FirstOrderLag("lag", 1.0)
context = lag.create_default_context()
context.set("u", 1.0)

def peak(count):
    values = {"time_constant": np.linspace(0.5, 2.0, count)}
    times = np.linspace(0.0, 3.0, 5001)
    found = fx.sweep(lag, values, 3.0, context=context, metrics=fx.metrics.rms("y"), times=times)
    assert "lanes" in found.how and np.isfinite(found.metrics["rms(y)"]).all()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before = peak(300)
print(1024 * (peak(4000) - before))
"""


@pytest.mark.full
@needs_llvmlite
def test_memory_does_not_grow_with_the_samples_of_all_runs() -> None:
    """These would take 160 MB."""
    command = [sys.executable, "-c", _PEAK]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout
    assert int(shown) < 30_000_000


def shaken(frequency: float, *, stepped: bool = False) -> fx.Diagram:
    """A sensor that sees a sine, beside a lag whose steps are long."""
    builder = fx.DiagramBuilder("shaken")
    builder.add_all(
        fx.Sine("shaker", amplitude=2.1, frequency=frequency),
        fx.Quantizer("sensor", 0.3) if stepped else fx.Gain("sensor", 1.0),
        fx.Constant("one", 1.0),
        fx.FirstOrderLag("slow", time_constant=1.0),
    )
    builder.connect_chain("shaker", "sensor")
    builder.connect_chain("one", "slow")
    return builder.build()


@pytest.mark.parametrize("compiled", [True, False])
def test_signals_that_jump_or_swing_within_steps_are_measured(compiled: bool) -> None:
    wanted = {
        "top": metrics.maximum("sensor.y"),
        "way": metrics.total_variation("sensor.y"),
        "rms": metrics.rms("sensor.y"),
    }
    for frequency, stepped, rtol in ((1.0, True, 1e-12), (20.0, False, 1e-3)):
        values = {"slow.time_constant": [1.0, 2.0]}
        options: dict[str, Any] = {"metrics": wanted, "compiled": compiled}
        found = fx.sweep(shaken(frequency, stepped=stepped), values, 2.0 * np.pi, **options).metrics
        np.testing.assert_allclose(found["top"], 2.1, rtol=rtol)
        np.testing.assert_allclose(found["way"], 8.4 * frequency, rtol=rtol)
    np.testing.assert_allclose(found["rms"], 2.1 * np.sqrt(0.5), rtol=1e-4)


@pytest.mark.parametrize("compiled", [True, False])
def test_signals_that_are_too_fast_for_the_steps_are_named(compiled: bool) -> None:
    options: dict[str, Any] = {"metrics": [metrics.rms("sensor.y")], "compiled": compiled}
    with pytest.warns(UserWarning, match="'sensor.y' changes so often within the steps"):
        fx.sweep(shaken(1e6), {"slow.time_constant": [1.0]}, 6.0, **options)
