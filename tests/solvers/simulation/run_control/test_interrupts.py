"""Interruptions from the keyboard: heard within a moment, and what was finished is kept."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.solvers.native.runs import run_memory as strides
from flexure.solvers.native.runs.run_memory import CallLength
from tests.support.native.native import needs_llvmlite

pytestmark = pytest.mark.usefixtures("interruptible")


class Swing(fx.LeafSystem):
    """An oscillator whose log may press the interrupt key."""

    def __init__(self, press: Callable[[float], None] | None = None) -> None:
        super().__init__("swing")
        self.w = self.declare_numeric_parameter("w", 1.0)
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        if press is not None:
            self.press = press
            self.declare_publish(self.log, fx.diagrams.Periodic(0.5))

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        return [v, -(self.w(context) ** 2) * q]

    def log(self, context: Any) -> None:
        self.press(float(self.w(context)))


# Strides ---------------------------------------------------------------------------------------


def test_light_steps_are_taken_in_long_strides_from_the_beginning() -> None:
    stride = CallLength(4000, work=100.0)
    assert stride.length == 4000
    stride.measured(4000, 0.004)
    assert stride.length == 4000


def test_heavy_steps_are_taken_one_by_one_until_they_prove_light() -> None:
    stride = CallLength(4000, work=1e12)
    lengths = []
    for _ in range(8):
        stride.measured(stride.length, stride.length * 1e-5)
        lengths.append(stride.length)
    assert lengths == [8, 64, 512, 4000, 4000, 4000, 4000, 4000]


@pytest.mark.parametrize("seconds", [0.01, 1.0, 60.0])
def test_steps_that_prove_heavy_are_few_in_the_next_stride(seconds: float) -> None:
    stride = CallLength(4000, work=1.0)
    stride.measured(4000, 4000 * seconds)
    assert stride.length == max(1, math.floor(0.1 / seconds))


def simulated() -> Any:
    result = fx.simulate(Swing(), 20.0, rtol=1e-9, method="DOP853", compiled="native")
    return np.vstack([result.time, result["x"].T])


def swept() -> Any:
    return fx.sweep(Swing(), {"w": np.linspace(1.0, 5.0, 20)}, 20.0, signals="x")["x"]


def solved() -> Any:
    equations = fx.compiled_equations(Swing())
    options: Any = {"method": equations.method("DOP853"), "rtol": 1e-9}
    solution = solve_ivp(equations, (0.0, 20.0), equations.x0, **options)
    return np.vstack([solution.t, solution.y])


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("run", [simulated, swept, solved])
def test_the_length_of_strides_has_no_influence_on_numbers(
    run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run()
    monkeypatch.setattr(strides, "_MOMENT", 1e-9)
    np.testing.assert_array_equal(run(), expected)


# Sweeps ----------------------------------------------------------------------------------------


def interrupted(system: fx.System, **options: Any) -> fx.results.Sweep:
    """Return what an interrupted sweep of 40 runs has kept."""
    with pytest.raises(KeyboardInterrupt) as caught:
        fx.sweep(system, {"w": WS}, 20.0, signals="x", times=TIMES, metrics=(), **options)
    found: Any = getattr(caught.value, "result")  # noqa: B009, it has no such attribute for mypy
    assert isinstance(found, fx.results.Sweep)
    return found


WS = np.linspace(1.0, 5.0, 40)
TIMES = np.linspace(0.0, 20.0, 5)


def check(found: fx.results.Sweep) -> None:
    """Compare what was finished with the closed form, and look at the rest."""
    done = found.outcomes == "completed"
    assert set(found.outcomes) == {"completed", "interrupted"}
    assert found.failures == {}
    w, t = WS[done][:, None], TIMES[None, :]
    expected = np.stack([np.cos(w * t), -w * np.sin(w * t)], axis=2)
    np.testing.assert_allclose(found["x"][done], expected, atol=2e-3)
    np.testing.assert_allclose(found.final_states[done], expected[:, -1], atol=2e-3)
    assert np.isnan(found["x"][~done]).all()
    assert np.isnan(found.final_states[~done]).all()
    assert f"{sum(~done)} interrupted" in repr(found)
    assert found.context(39).get("w") == WS[39]


def press_once(at: float) -> Callable[[float], None]:
    """Return what presses the key in the run with a parameter, whichever thread that is in."""
    left = [at]

    def press(w: float) -> None:
        if left and w == left[0]:
            left.clear()
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)

    return press


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_a_sweep_in_lanes_keeps_the_runs_that_were_finished(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, calls = CallLength.measured, []

    def measure_and_press(self: CallLength, pieces: int, seconds: float) -> None:
        calls.append(pieces)
        measured(self, pieces, seconds)
        if len(calls) == 200:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(strides, "_MOMENT", 1e-9)
    monkeypatch.setattr(CallLength, "measured", measure_and_press)
    found = interrupted(Swing(), threads=1, method=method)
    monkeypatch.undo()
    assert "lanes" in found.how
    check(found)


@pytest.mark.full
@needs_llvmlite
def test_a_sweep_of_native_runs_on_threads_keeps_the_runs_that_were_finished() -> None:
    found = interrupted(Swing(press_once(WS[9])), threads=2)
    assert "on 2 threads" in found.how
    check(found)


def test_a_sweep_of_interpreted_runs_keeps_the_runs_that_were_finished() -> None:
    found = interrupted(Swing(press_once(WS[4])), compiled=False)
    assert found.outcomes.tolist() == ["completed"] * 4 + ["interrupted"] * 36
    check(found)
