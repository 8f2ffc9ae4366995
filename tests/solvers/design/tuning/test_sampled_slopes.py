"""Derivatives of sampled models by parameters against complex steps of matrices written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import flexure as fx
from flexure.solvers.design.objectives.parametric_models import Request
from flexure.solvers.design.tuning.problem import SampledModel

m = fx.metrics
VALUES = {"gain.gain": 1.5, "first.time_constant": 0.3, "second.time_constant": 0.07}


def held_lags() -> fx.Diagram:
    """Two lags in a row behind a hold at 0.05 s, which a gain feeds every 0.1 s."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 1.0),
        fx.Sum("error", "+-"),
        fx.Gain("gain", VALUES["gain.gain"]),
        fx.ZeroOrderHold("slow", 0.1),
        fx.ZeroOrderHold("fast", 0.05),
        fx.FirstOrderLag("first", VALUES["first.time_constant"]),
        fx.FirstOrderLag("second", VALUES["second.time_constant"]),
    )
    builder.connect("target.y", "error.u1")
    builder.connect_chain("error", "gain", "slow", "fast", "first", "second", "error.u2")
    return builder.build()


def written_out(values: Any, *, is_open: bool) -> Any:
    """[A, B; C, D] from what is added at the input of the second lag to its output.

    States are x1, x2 and what the slow and the fast hold show. A fast hold that updates with the
    slow one reads what that was before.
    """
    k, tau, rho = values
    rates = np.zeros((5, 5), dtype=complex)
    rates[0, [0, 3]] = -1.0 / tau, 1.0 / tau
    rates[1, [0, 1, 4]] = (0.0 if is_open else 1.0) / rho, -1.0 / rho, 1.0 / rho
    flow = expm(0.05 * rates)
    both, fast = np.eye(5, dtype=complex), np.eye(5, dtype=complex)
    both[2], both[3] = [0.0, -k, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]
    fast[3] = [0.0, 0.0, 1.0, 0.0, 0.0]
    moved = flow @ fast @ flow @ both
    return np.vstack([moved[:4], [0.0, 1.0, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize("is_open", [False, True])
def test_slopes_of_sampled_models_are_those_of_complex_steps(is_open: bool) -> None:
    context = held_lags().create_default_context()
    openings = ("second.u",) if is_open else ()
    requests = [Request(("second.u",), ("second.y",), openings)]
    model = SampledModel(context, list(VALUES), requests, "Cannot test", period=0.1)
    point = model.at(context)
    found = model.realization(point, 0)
    values = np.array([*VALUES.values()], dtype=complex)
    expected = written_out(values, is_open=is_open)
    whole = np.block([[found.A, found.B], [found.C, found.D]])
    np.testing.assert_allclose(whole, expected.real, rtol=1e-12, atol=1e-14)
    for k in range(3):
        turned = values.copy()
        turned[k] += 1e-30j
        slopes = written_out(turned, is_open=is_open).imag / 1e-30
        for row, column in np.ndindex(whole.shape):
            weights = np.zeros(whole.shape)
            weights[row, column] = 1.0
            by = model.slopes(point, found, 0, weights)
            assert by[k] == pytest.approx(slopes[row, column], rel=1e-11, abs=1e-13)
    assert model.is_exact


def test_controllers_with_filters_and_delays_have_exact_slopes() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 1.0),
        fx.PIDController("pid", 0.5, 0.2, 0.1, derivative_filter=0.2, period=0.1),
        fx.UnitDelay("delay", 0.1),
        fx.TransferFunction("plant", [1.0], [1.0, 0.7, 0.2]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "delay", "plant", "pid.measurement")
    diagram = builder.build()
    names = ["pid.kp", "pid.ki", "pid.kd", "pid.derivative_filter"]
    context = diagram.create_default_context()
    request = Request(("pid.u",), ("pid.u",), ("pid.u",))
    model = SampledModel(context, names, [request], "Cannot test", period=0.1)
    point = model.at(context)
    found = model.realization(point, 0)
    weights = np.random.default_rng(0).normal(size=(len(found.A) + 1, len(found.A) + 1))
    slopes = model.slopes(point, found, 0, weights)
    for name, slope in zip(names, slopes, strict=True):
        ends = []
        for step in (2e-3, -2e-3, 1e-3, -1e-3):
            beside = context.clone()
            beside.set(name, context.get(name) + step)
            there = fx.linearize(
                diagram, beside, ["pid.u"], ["pid.u"], openings=["pid.u"], period=0.1
            )
            ends.append(np.sum(weights * np.block([[there.A, there.B], [there.C, there.D]])))
        coarse, fine = (ends[0] - ends[1]) / 4e-3, (ends[2] - ends[3]) / 2e-3
        assert slope == pytest.approx((4.0 * fine - coarse) / 3.0, rel=1e-7)
    tuned = fx.tune(diagram, names[:2], [m.stability_margin("pid.u") >= 0.9], period=0.1, starts=1)
    assert "exact derivatives" in tuned.how


def test_models_along_a_run_have_slopes_by_differences() -> None:
    builder = fx.DiagramBuilder("curved")
    builder.add_all(
        fx.Constant("target", 0.5),
        fx.PIDController("pid", kp=0.5, ki=0.2, period=0.1),
        fx.FunctionBlock("square", lambda u: u + 0.3 * u**2),
        fx.FirstOrderLag("lag", 0.5),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "lag", "square", "pid.measurement")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("lag.x", 1.0)
    tuned = fx.tune(
        diagram, ["pid.kp"], [m.decay_rate() >= 0.3], contexts=context, period=0.1, starts=1
    )
    assert "some derivatives by differences" in tuned.how
