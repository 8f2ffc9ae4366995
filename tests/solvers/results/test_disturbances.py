"""Figures of responses to disturbances, and of errors and controls, against closed forms."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import flexure as fx
from flexure import metrics
from flexure.errors import UnknownNameError, ValueRefusedError

T = np.linspace(0.0, 30.0, 30_001)


def disturbed_loop() -> fx.Diagram:
    """A lag 1/(s + 1) under PI control (s + 1)/s, so that the loop gain is 1/s; pushed at 20 s."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=0.5, to=2.0),
        fx.Step("push", at=20.0),
        fx.PIDController("pid", kp=1.0, ki=1.0, kd=0.0),
        fx.Sum("force", "++"),
        fx.FirstOrderLag("lag", 1.0),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "force.u1")
    builder.connect("push.y", "force.u2")
    builder.connect_chain("force", "lag", "pid.measurement")
    return builder.build()


def test_integrals_of_the_error_of_a_lag_are_those_of_its_exponential() -> None:
    """With e = exp(-t): IAE 1, ISE 1/2, ITAE 1, from the step at 2 s on."""
    t = np.concatenate([[0.0, 2.0], 2.0 + T])
    y = np.concatenate([[0.0, 0.0], 1.0 - np.exp(-T)])
    info = fx.step_info(t, y, at=2.0, control=np.concatenate([[3.0, 3.0], 1.0 + np.exp(-T)]))
    np.testing.assert_allclose([info.iae, info.ise, info.itae], [1.0, 0.5, 1.0], rtol=1e-6)
    assert info.control_variation == pytest.approx(1.0 + 1.0)  # from 3 to 2, and on to 1
    assert info.control_peak == 2.0
    assert np.isnan(fx.step_info(t, y).control_peak)
    assert fx.step_info(t, y) == fx.step_info(t, y)


@pytest.mark.parametrize("zeta", [0.2, 0.7])
def test_integrals_of_the_error_of_an_oscillator(zeta: float) -> None:
    root = np.sqrt(1.0 - zeta**2)

    def error(t: Any) -> Any:
        return np.exp(-zeta * t) * (np.cos(root * t) + zeta / root * np.sin(root * t))

    t = np.linspace(0.0, 60.0, 60_001)
    info = fx.step_info(t, 2.0 - 2.0 * error(t), target=2.0)
    zeros = [(np.pi / 2.0 + np.arctan(zeta / root) + k * np.pi) / root for k in range(18)]
    pairs = list(pairwise([0.0, *zeros, 60.0]))
    iae = sum(abs(quad(error, *each)[0]) for each in pairs)
    itae = sum(abs(quad(lambda s: s * error(s), *each)[0]) for each in pairs)
    assert info.iae == pytest.approx(2.0 * iae, rel=1e-5)
    assert info.itae == pytest.approx(2.0 * itae, rel=1e-5)
    assert info.ise == pytest.approx(4.0 * (zeta + 1.0 / (4.0 * zeta)), rel=1e-5)


def test_a_push_that_dies_away_is_measured_from_its_instant_on() -> None:
    """After t exp(-t): peak 1/e at 1 s, IAE 1, ISE 1/4, ITAE 2."""
    t = np.concatenate([[0.0, 3.0], 3.0 + T])
    y = 5.0 - np.concatenate([[0.0, 0.0], T * np.exp(-T)])
    info = fx.disturbance_info(t, y, at=3.0, tolerance=0.01)
    recovered = brentq(lambda s: s * np.exp(-s) - 0.01, 1.0, 20.0)
    found = [info.peak_deviation, info.peak_time, info.peak, info.recovery_time, info.target]
    np.testing.assert_allclose(found, [np.exp(-1), 1.0, 5.0 - np.exp(-1), recovered, 5.0], 1e-5)
    np.testing.assert_allclose([info.iae, info.ise, info.itae], [1.0, 0.25, 2.0], rtol=1e-5)
    share = fx.disturbance_info(t, y, at=3.0, band=0.1)
    assert share.tolerance == pytest.approx(0.1 * np.exp(-1))


def test_nothing_happens() -> None:
    info = fx.disturbance_info(T, np.ones_like(T))
    assert (info.peak_deviation, info.recovery_time, info.iae) == (0.0, 0.0, 0.0)


def test_what_does_not_come_back_has_no_recovery_time() -> None:
    with pytest.warns(UserWarning, match="has not recovered at t = 30 s.* 1 from its target"):
        info = fx.disturbance_info(T, 1.0 - np.exp(-T))
    assert np.isnan(info.recovery_time)
    assert info.steady_state_error == pytest.approx(-1.0)


@pytest.mark.full
def test_a_loop_is_pushed_away_from_its_setpoint() -> None:
    """From the push on, y = 2 + t exp(-t) with the time t since then, and u = 1 + exp(-t)."""
    result = fx.simulate(disturbed_loop(), 50.0, rtol=1e-9)
    info = result.disturbance_info("lag.y", tolerance=0.01, control="pid.u")
    recovered = brentq(lambda s: s * np.exp(-s) - 0.01, 1.0, 20.0)
    assert (info.at, info.target) == (20.0, 2.0)
    found = [info.peak_deviation, info.recovery_time, info.iae, info.ise, info.itae]
    np.testing.assert_allclose(found, [np.exp(-1), recovered, 1.0, 0.25, 2.0], rtol=1e-3)
    assert info.peak_time == pytest.approx(1.0, abs=0.03)  # a flat top between two points
    assert info.control_peak == pytest.approx(2.0, rel=1e-4)
    assert info.control_variation == pytest.approx(1.0, rel=1e-3)
    step = result.step_info("lag.y", at=0.5, control="pid.u")
    assert step.control_peak == pytest.approx(2.0, rel=1e-2)


@pytest.mark.full
def test_sweeps_and_metrics_measure_disturbances_likewise() -> None:
    loop = disturbed_loop()
    wanted = {
        name: metrics.disturbance(name, "lag.y", tolerance=0.01)
        for name in ("at", "target", "peak_deviation", "recovery_time", "iae", "ise", "itae")
    }
    wanted["effort"] = metrics.disturbance("control_variation", "lag.y", control="pid.u")
    values = {"push.to": [1.0, -2.0], "push.at": [20.0, 25.0]}
    found = fx.sweep(loop, values, 50.0, metrics=wanted, times=np.linspace(0.0, 50.0, 5001))
    for k in range(2):
        result = fx.simulate(loop, 50.0, context=found.context(k))
        info = result.disturbance_info("lag.y", tolerance=0.01, control="pid.u")
        for name in list(wanted)[:-1]:
            assert found.metrics[name][k] == pytest.approx(getattr(info, name), rel=2e-3)
            assert wanted[name](result) == getattr(info, name)
        assert found.metrics["effort"][k] == pytest.approx(info.control_variation, rel=2e-3)


@pytest.mark.full
def test_step_metrics_of_errors_and_controls_are_those_of_single_runs() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    found = fx.sweep(
        lag,
        {"u": [1.0, 3.0]},
        20.0,
        signals=["y", "u"],
        metrics=["iae", "ise", "itae"],
        times=np.linspace(0.0, 20.0, 2001),
    )
    for name, expected in (("iae", [1.0, 3.0]), ("ise", [0.5, 4.5]), ("itae", [1.0, 3.0])):
        np.testing.assert_allclose(found.metrics[f"{name} of y"], expected, rtol=1e-4)
        np.testing.assert_array_equal(found.metrics[f"{name} of y"], found.metric(name, "y"))
    peaks = found.metric("control_peak", "y", control="u")
    assert peaks.tolist() == [1.0, 3.0]
    with pytest.raises(ValueRefusedError, match=r"Name it, as in control='pid\.u'"):
        found.metric("control_peak", "y")


def test_figures_as_text_and_picture(tmp_path: Path) -> None:
    info = fx.disturbance_info(T, T * np.exp(-T), control=-np.exp(-T))
    assert str(info).splitlines() == [
        "peak deviation      0.3679 at 1 s",
        "recovery time       5.744 s (within 0.0184)",
        "target              0",
        "steady-state error  -2.81e-12",
        "IAE, ISE, ITAE      1, 0.25, 2",
        "control             peak 1, total variation 1",
    ]
    response = fx.simulate(disturbed_loop(), 40.0).disturbance_response("lag.y")
    ax = response.plot(path=tmp_path / "pushed.svg")
    assert (tmp_path / "pushed.svg").stat().st_size > 0
    texts = [text.get_text() for text in ax.texts]
    assert [text.split()[0] for text in texts if text] == ["target", "deviation", "recovered"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"at": 31.0}, "a disturbance within the record, from 0 to 30 s"),
        ({"band": 0.0}, "expected a positive number"),
        ({"tolerance": -1.0}, "expected a positive number"),
        ({"target": np.nan}, "expected a finite number"),
        ({"control": [1.0]}, "as many finite values"),
    ],
)
def test_what_is_no_disturbance_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueRefusedError, match=told):
        fx.disturbance_info(T, T * np.exp(-T), **options)
    with pytest.raises(UnknownNameError, match="Did you mean 'recovery_time'"):
        metrics.disturbance("recovery", "y")
