"""Gradients of runs whose record keeps few states, from which the others are computed again."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.analysis.sensitivities import gradients
from tests.solvers.analysis.sensitivities.test_gradients import Ball, Hybrid, drawn, servo
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
    whole = fx.gradient(metric, system, 1.7, ways, **options)
    monkeypatch.setattr(gradients, "_MOST_STATES", 0.0)
    found = fx.gradient(metric, system, 1.7, ways, **options)
    assert found.result._history.size < whole.result._history.size
    assert found.value == whole.value
    for way in ways:
        np.testing.assert_array_equal(found[way], whole[way])
    np.testing.assert_array_equal(found.result[signal], whole.result[signal])


_MEASURED = """
import math
import resource
import sys
import flexure as fx
from flexure.solvers.analysis.sensitivities import gradients
from tests.solvers.analysis.sensitivities.test_gradients import Chain

def most():
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def gradient(t_final, most_states):
    gradients._MOST_STATES = most_states
    return fx.gradient(metric, chain, t_final, ["k"], method="RK45")

chain, metric, bound = Chain(200), fx.metrics.ise("x[199]"), 2.0**21
gradient(10.0, 0.0)
before = most()
found = gradient(600.0, bound)
whole, between = 8 * 400 * found.result.statistics.steps, most()
same = (gradient(600.0, math.inf)["k"] == found["k"]).all()
print(whole / bound, (between - before) / whole, (most() - between) / whole, float(same))
"""


@pytest.mark.full
@needs_llvmlite
@pytest.mark.skipif(sys.platform == "win32", reason="the peak of memory is read as Unix has it")
def test_the_memory_of_a_long_run_is_bounded() -> None:
    """What is added is a small part of all states, which are far more than the bound."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED], capture_output=True, text=True, check=True
    )
    excess, share, without, same = map(float, done.stdout.split())
    assert excess > 15.0
    assert share < 0.4
    assert without > 0.8
    assert same
