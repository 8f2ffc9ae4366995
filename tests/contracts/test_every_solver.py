"""What every integration method promises, checked on all of them by way of `fx.simulate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.integration.methods.methods import METHOD_NAMES, is_fixed_step
from tests.support.systems.blocks import Oscillator
from tests.support.tiers import thinned

#: Methods of one order, which halving the step shows.
ORDERS = {
    "RK45": 5,
    "RK23": 3,
    "DOP853": 8,
    "DormandPrince": 5,
    "Rodas5P": 5,
    "ESDIRK4": 4,
    "Radau": 5,
    "euler": 1,
    "semi_explicit_euler": 1,
    "rk2": 2,
    "rk4": 4,
    "implicit_euler": 1,
    "generalized_alpha": 2,
}
#: Methods that change their order as they go.
VARIABLE_ORDER = {"BDF", "LSODA"}
ADAPTIVE = [name for name in METHOD_NAMES if not is_fixed_step(name)]
FIXED = [name for name in METHOD_NAMES if is_fixed_step(name)]

every_method = pytest.mark.parametrize("method", METHOD_NAMES)


def test_every_method_is_in_the_battery() -> None:
    assert ORDERS.keys() | VARIABLE_ORDER == set(METHOD_NAMES)
    assert not ORDERS.keys() & VARIABLE_ORDER


def settings(method: str, step: float, rtol: float) -> dict[str, Any]:
    """Return how to run a method: with a step if it is fixed, else with a tolerance."""
    given = {"step": step} if is_fixed_step(method) else {"rtol": rtol}
    return {"method": method, **given}


# A linear oscillator: q″ = −4 q from q = 1, q′ = 2, and z = 3 + ∫ q′² dt -------------------------


def exact(times: Any) -> Any:
    t = np.asarray(times)
    q = np.cos(2.0 * t) + np.sin(2.0 * t)
    v = 2.0 * np.cos(2.0 * t) - 2.0 * np.sin(2.0 * t)
    return np.stack([q, v, 2.0 + 4.0 * t + np.cos(4.0 * t)], axis=-1)


def error_of_steps(method: str, step: float) -> float:
    """Return the error at t = 2 after steps of one length."""
    given: dict[str, Any] = {"step": step}
    if not is_fixed_step(method):
        given = {"max_step": step, "rtol": 0.09, "atol": 1e6}  # no error is too large
    result = fx.simulate(Oscillator(), 2.0, method=method, **given)
    return float(np.max(np.abs(result["x"][-1] - exact(2.0))))


@pytest.mark.parametrize("method", thinned(ORDERS, fast=5))
def test_halving_the_step_shows_the_order(method: str) -> None:
    step = 0.25 if method == "DOP853" else 0.025
    observed = np.log2(error_of_steps(method, step) / error_of_steps(method, step / 2.0))
    assert observed == pytest.approx(ORDERS[method], abs=0.2)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_the_tolerance_bounds_the_error_at_all_times(method: str) -> None:
    times = np.linspace(0.0, 2.0, 301)
    errors = []
    for rtol in (1e-4, 1e-6, 1e-8):
        result = fx.simulate(Oscillator(), 2.0, method=method, rtol=rtol)
        errors.append(np.max(np.abs(result.sample("x", times) - exact(times))))
        assert errors[-1] < 300.0 * rtol
    assert errors[0] > 5.0 * errors[1] > 25.0 * errors[2]


@pytest.mark.parametrize("method", FIXED)
def test_between_fixed_steps_the_error_is_that_of_the_steps(method: str) -> None:
    result = fx.simulate(Oscillator(), 2.0, method=method, step=0.05)
    times = np.linspace(0.0, 2.0, 301)
    at_steps = np.max(np.abs(result["x"] - exact(result.time)))
    assert np.max(np.abs(result.sample("x", times) - exact(times))) < 1.25 * at_steps


# A pendulum that a controller holds --------------------------------------------------------------


FILTER = 0.05


class Pendulum(fx.LeafSystem):
    """q″ = τ − 9.81 sin q − 0.2 q′ |q′|"""

    def __init__(self) -> None:
        super().__init__("pendulum")
        self.x = self.declare_continuous_state(q=1, v=1, default=[2.0, 0.0])
        self.torque = self.declare_vector_input("torque", 1)
        self.angle = self.declare_vector_output("angle", 1, self.x.q, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        angle, rate = self.x(context)
        return [rate, self.torque(context) - 9.81 * np.sin(angle) - 0.2 * rate * np.abs(rate)]


def held_pendulum() -> fx.Diagram:
    builder = fx.DiagramBuilder("held")
    builder.add_all(
        Pendulum(),
        fx.Constant("target", 1.0),
        fx.PIDController("pid", kp=20.0, ki=5.0, kd=4.0, derivative_filter=FILTER),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("pendulum.angle", "pid.measurement")
    builder.connect("pid.u", "pendulum.torque")
    return builder.build()


def final_state(**given: Any) -> Any:
    return fx.simulate(held_pendulum(), 1.0, **given).context.continuous_state


@pytest.fixture(scope="module")
def reference() -> Any:
    return final_state(method="DOP853", rtol=1e-12)


@every_method
def test_every_method_brings_a_controlled_pendulum_to_the_same_state(
    method: str, reference: Any
) -> None:
    found = final_state(**settings(method, step=0.002, rtol=1e-8))
    # A step is a small part of the shortest time constant, that of the filter.
    tolerance = (0.002 / FILTER) ** ORDERS[method] if is_fixed_step(method) else 1e-6
    np.testing.assert_allclose(found, reference, rtol=0.0, atol=tolerance)


# Ticks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", thinned(METHOD_NAMES, fast=4))
def test_every_method_lands_on_the_ticks_of_a_sampled_block(method: str) -> None:
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        fx.Sine("wave", frequency=3.0),
        fx.ZeroOrderHold("hold", period=0.1),
        fx.FirstOrderLag("lag", time_constant=0.2),
    )
    builder.connect_chain("wave", "hold", "lag")
    result = fx.simulate(builder.build(), 1.0, **settings(method, step=0.03, rtol=1e-6))
    ticks = [k * 0.1 for k in range(1, 10)]
    assert set(ticks) <= set(result.time.tolist())
    np.testing.assert_array_equal(
        result.sample("hold.y", np.nextafter(ticks, 1.0)), np.sin(3.0 * np.array(ticks))
    )
    if is_fixed_step(method):
        assert np.max(np.diff(result.time)) <= 0.03 * (1.0 + 1e-9)
