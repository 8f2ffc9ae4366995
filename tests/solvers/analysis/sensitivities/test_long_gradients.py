"""Gradients of runs whose record keeps few states, from which the others are computed again."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.analysis.sensitivities import gradients
from flexure.solvers.simulation.native_runs import run_output
from tests.solvers.analysis.sensitivities.test_gradients import Ball, Chain, Hybrid, drawn, servo
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import crossed

m = fx.metrics


def switched() -> fx.Diagram:
    """Return a lag behind a wave that jumps, and a moving input."""
    builder = fx.DiagramBuilder("switched")
    builder.add_all(
        fx.Square("wave", period=0.3), fx.FirstOrderLag("lag", 0.2), fx.Integrator("sum")
    )
    builder.connect_chain("wave", "lag", "sum")
    return builder.build()


CASES: dict[str, Any] = {
    "events and ticks": (Hybrid(["relay", "reset", "ticks"]), ["A", "band", "level", "k", "x"]),
    "a ball": (Ball(), ["g", "e", "x"]),
    "a sampled servo": (servo(), ["pid.kp", "motor.time_constant", "angle.x"]),
    "jumps": (switched(), ["lag.time_constant", "sum.x"]),
}


@needs_llvmlite
@pytest.mark.parametrize(("case", "method"), crossed(CASES, ["RK45", "DOP853", "ESDIRK4"]))
def test_checkpoints_change_no_bit(case: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system, ways = CASES[case]
    context = drawn(system, 3) if isinstance(system, Hybrid) else system.create_default_context()
    signal = {"a sampled servo": "angle.y", "jumps": "sum.y"}.get(case, "y")
    metric = m.rms(signal) + m.final(signal)
    options: dict[str, Any] = {"context": context, "method": method, "rtol": 1e-9}
    whole = fx.gradient(system, metric, ways, 1.7, **options)
    monkeypatch.setattr(gradients, "_MOST_STATES", 0.0)
    found = fx.gradient(system, metric, ways, 1.7, **options)
    assert found.result._history.size < whole.result._history.size
    assert found.value == whole.value
    for way in ways:
        np.testing.assert_array_equal(found[way], whole[way])
    np.testing.assert_array_equal(found.result[signal], whole.result[signal])


@pytest.mark.full
@needs_llvmlite
def test_the_memory_of_a_long_run_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is added is a small part of all states, which are far more than the bound."""
    chain, metric, bound = Chain(300), m.ise("x[299]"), 2.0**21

    def gradient(t_final: float, most_states: float) -> Any:
        monkeypatch.setattr(gradients, "_MOST_STATES", most_states)
        return fx.gradient(chain, metric, ["k"], t_final, method="RK45")

    monkeypatch.setattr(run_output, "_TABLE", 2**15)  # numbers in a block, instead of 2^18
    gradient(10.0, 0.0)
    found, peaks = [], []
    tracemalloc.start()
    for most_states in (bound, np.inf):
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        found.append(gradient(400.0, most_states))
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    whole = 8 * 600 * found[0].result.statistics.steps
    assert whole > 15.0 * bound
    assert peaks[0] < 0.4 * whole < 0.4 * peaks[1]
    np.testing.assert_array_equal(found[0]["k"], found[1]["k"])
