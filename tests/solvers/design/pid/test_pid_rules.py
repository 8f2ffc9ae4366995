"""Rules and goals of PID tuning: by hand, by brute force, sampled loops and components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import flexure as fx
from flexure.diagrams.checks.errors import ValueRefusedError
from tests.support.mechanics.mechanics import Pendulum
from tests.support.tiers import for_each


def loop(pid: fx.System, *plant: fx.System) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Constant("target", 0.0), pid, *plant)
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", *(block.name for block in plant))
    builder.connect(plant[-1].output_ports[0], "pid.measurement")
    return builder.build()


def lags(*times: float, num: Any = (1.0,), kd: float | None = None) -> fx.Diagram:
    """A plant of time constants; zero stands for an integrator."""
    den = [1.0]
    for time in times:
        den = np.polymul(den, [time, 1.0] if time else [1.0, 0.0]).tolist()
    return loop(fx.PIDController("pid", kd=kd), fx.TransferFunction("plant", num, den))


def series(found: fx.results.PIDTuning) -> tuple[float, float, float]:
    """Return gain, integral time and derivative time of the series form."""
    integral, derivative = found.kp / found.ki, found.kd / found.kp
    share = 0.5 + np.sqrt(max(0.25 - derivative / integral, 0.0))
    return found.kp * share, integral * share, derivative / share


def simc(gain: float, lag: float, delay: float, second: float = 0.0) -> tuple[float, ...]:
    """Return the series form for a process, with the dead time for the closed-loop time."""
    return lag / (gain * 2.0 * delay), min(lag, 8.0 * delay), second


@pytest.mark.parametrize(
    ("plant", "pi", "pid"),
    [  # reduced by hand: gain, lag and dead time, and the second lag for PID
        ({"times": (1.0, 0.2)}, (1.0, 1.0 + 0.1, 0.1), None),
        (  # the zero at -1/0.08 leaves 0.12 s of the lag of 0.2 s
            {
                "times": (2.0, 1.0, 0.4, 0.2, 0.05, 0.05, 0.05),
                "num": np.polymul([-0.3, 1.0], [0.08, 1.0]),
            },
            (1.0, 2.0 + 0.5, 0.5 + 0.4 + 0.12 + 3 * 0.05 + 0.3),
            (1.0, 2.0, 0.2 + 0.12 + 3 * 0.05 + 0.3, 1.0 + 0.2),
        ),
        (  # the slow zero is a factor 15/20
            {"times": (20.0, 1.0, 0.1, 0.1), "num": [30.0, 2.0]},
            (1.5, 1.0 + 0.05, 0.05 + 0.1),
            (1.5, 1.0, 0.05, 0.1 + 0.05),
        ),
        (
            {"times": (1.0, 1.0, 1.0, 1.0)},
            (1.0, 1.0 + 0.5, 0.5 + 2.0),
            (1.0, 1.0 + 0.5, 0.5 + 1.0, 1.0),
        ),
    ],
)
def test_simc_gives_the_gains_of_the_process_that_the_half_rule_leaves(
    plant: dict[str, Any], pi: tuple[float, ...], pid: tuple[float, ...] | None
) -> None:
    times = plant.pop("times")
    found = fx.tune_pid(lags(*times, **plant), "pid", rule="simc")
    np.testing.assert_allclose([found.kp, found.kp / found.ki], simc(*pi)[:2], rtol=1e-3)
    if pid is not None:
        found = fx.tune_pid(lags(*times, kd=0.0, **plant), "pid", rule="simc")
        np.testing.assert_allclose(series(found), simc(*pid), rtol=1e-3)


def test_simc_takes_an_integrator_and_dead_time() -> None:
    plant = (fx.Integrator("plant"), fx.PadeDelay("delay", 1.0, order=4))
    found = fx.tune_pid(loop(fx.PIDController("pid"), *plant), "pid", rule="simc")
    np.testing.assert_allclose([found.kp, found.kp / found.ki], [0.5, 8.0], rtol=1e-6)
    s = 1j * np.geomspace(0.01, 20.0, 20000)
    distance = np.abs(1.0 + 0.5 * (1.0 + 1.0 / (8.0 * s)) * np.exp(-s) / s)  # with dead time
    np.testing.assert_allclose(found.max_sensitivity, 1.0 / distance.min(), rtol=1e-3)


def test_simc_takes_two_integrators_and_dead_time() -> None:
    """The series form has two equal times, each four times those of loop and delay."""

    def diagram(kd: float | None) -> fx.Diagram:
        double = fx.TransferFunction("plant", [3.0], [1.0, 0.0, 0.0])
        return loop(fx.PIDController("pid", kd=kd), double, fx.PadeDelay("delay", 0.2, order=4))

    found = fx.tune_pid(diagram(0.0), "pid", rule="simc", closed_loop_time=0.3)
    gain = 1.0 / (3.0 * 4.0 * 0.5**2)
    expected = gain * np.polymul([2.0, 1.0], [2.0, 1.0]) / 2.0
    np.testing.assert_allclose([found.kd, found.kp, found.ki], expected, rtol=1e-6)
    s = 1j * np.geomspace(0.01, 20.0, 20000)
    controller = found.kp + found.ki / s + found.kd * s / (found.kd / found.kp / 10.0 * s + 1.0)
    distance = np.abs(1.0 + controller * 3.0 * np.exp(-0.2 * s) / s**2)
    np.testing.assert_allclose(found.max_sensitivity, 1.0 / distance.min(), rtol=1e-3)
    with pytest.raises(ValueRefusedError, match="2 integrators"):
        fx.tune_pid(diagram(None), "pid", rule="simc")


def lag_and_delay(*times: float) -> tuple[float, float]:
    """Return lag and dead time of the tangent and of 63 %, from a finely sampled step."""
    den = [1.0]
    for time in times:
        den = np.polymul(den, [time, 1.0]).tolist()
    t, y = scipy.signal.step(([1.0], den), T=np.linspace(0.0, 12.0 * max(times), 40001))
    slope = np.gradient(y, t)
    k = int(np.argmax(slope))
    delay = t[k] - y[k] / slope[k]
    return float(np.interp(1.0 - np.exp(-1.0), y, t)) - delay, delay


BALANCED, LAG_DOMINANT = (1.0, 1.0, 1.0, 1.0), (1.0, 0.1, 0.01, 0.001)


@pytest.mark.parametrize("times", [BALANCED, LAG_DOMINANT])
def test_amigo_gives_the_gains_of_the_lag_and_dead_time_of_a_step(times: tuple[float, ...]) -> None:
    T, L = lag_and_delay(*times)
    found = fx.tune_pid(lags(*times), "pid", rule="amigo")
    gain = 0.15 + (0.35 - L * T / (L + T) ** 2) * T / L
    integral = 0.35 * L + 13.0 * L * T**2 / (T**2 + 12.0 * L * T + 7.0 * L**2)
    np.testing.assert_allclose([found.kp, found.ki], [gain, gain / integral], rtol=2e-3)
    found = fx.tune_pid(lags(*times, kd=0.0), "pid", rule="amigo")
    gain, integral = 0.2 + 0.45 * T / L, L * (0.4 * L + 0.8 * T) / (L + 0.1 * T)
    expected = [gain, gain / integral, gain * 0.5 * L * T / (0.3 * L + T)]
    np.testing.assert_allclose([found.kp, found.ki, found.kd], expected, rtol=2e-3)


@pytest.mark.parametrize("times", [BALANCED, LAG_DOMINANT])
@pytest.mark.parametrize("closed", [None, 2.5])
def test_lambda_cancels_the_lag_and_leaves_the_closed_loop_its_time(
    times: tuple[float, ...], closed: float | None
) -> None:
    """With the dead time as 1 - L s, or (1 - L s/2) / (1 + L s/2), what is left is a lag."""
    T, L = lag_and_delay(*times)
    left = T if closed is None else closed
    found = fx.tune_pid(lags(*times), "pid", rule="lambda", closed_loop_time=closed)
    expected: Any = np.array([T, 1.0]) / (left + L)
    np.testing.assert_allclose([found.kp, found.ki], expected, rtol=2e-3)
    found = fx.tune_pid(lags(*times, kd=0.0), "pid", rule="lambda", closed_loop_time=closed)
    expected = np.polymul([0.5 * L, 1.0], [T, 1.0]) / (left + 0.5 * L)
    np.testing.assert_allclose([found.kd, found.kp, found.ki], expected, rtol=2e-3)


def test_a_goal_begins_with_the_gains_of_a_rule_and_is_not_worse() -> None:
    diagram = lags(1.0, 1.0, 1.0)
    alone, rule = fx.tune_pid(diagram, "pid"), fx.tune_pid(diagram, "pid", rule="simc")
    found = fx.tune_pid(diagram, "pid", goal="disturbance", rule="simc")
    np.testing.assert_allclose(found.ki, alone.ki, rtol=1e-3)
    bound = rule.max_sensitivity
    better = fx.tune_pid(diagram, "pid", goal="disturbance", rule="simc", max_sensitivity=bound)
    assert better.ki >= rule.ki
    assert better.max_sensitivity <= bound * (1.0 + 1e-6)


@pytest.mark.parametrize("bound", [1.4, 2.0])
def test_no_pi_gains_on_a_grid_integrate_more(bound: float) -> None:
    s = 1j * np.geomspace(0.05, 10.0, 300)
    plant = 1.0 / (s + 1.0) ** 3
    kp, ki = np.linspace(0.3, 1.8, 31), np.linspace(0.2, 0.8, 241)
    gains = kp[:, np.newaxis, np.newaxis] + ki[:, np.newaxis] / s
    fits = np.abs(1.0 + gains * plant).min(axis=-1) >= 1.0 / bound
    best = max(ki[np.flatnonzero(row)[-1]] for row in fits if row.any())
    found = fx.tune_pid(lags(1.0, 1.0, 1.0), "pid", max_sensitivity=bound)
    np.testing.assert_allclose(found.ki, best, rtol=0.01)


def test_no_pid_gains_on_a_grid_integrate_more() -> None:
    """With the derivative time and its filter in the shape that is searched for."""
    s = 1j * np.geomspace(0.03, 300.0, 400)
    plant, best = 1.0 / (s + 1.0) ** 3, 0.0
    for time in np.linspace(1.5, 4.0, 26):
        for part in np.linspace(0.05, 0.25, 11):
            derivative = part * time
            shape = 1.0 + 1.0 / (time * s) + derivative * s / (derivative / 10.0 * s + 1.0)
            gains = np.linspace(0.5, 4.0, 141)
            distance = np.abs(1.0 + np.multiply.outer(gains, shape * plant)).min(axis=1)
            fits = gains[1.0 / distance <= 1.4]
            best = max(best, float(fits.max(initial=0.0)) / time)
    found = fx.tune_pid(lags(1.0, 1.0, 1.0, kd=0.0), "pid", max_sensitivity=1.4)
    assert best <= found.ki * 1.001
    np.testing.assert_allclose(found.ki, best, rtol=0.03)


@pytest.mark.full
def test_no_pi_gains_on_a_grid_follow_a_setpoint_with_less_error() -> None:
    control = pytest.importorskip("control")
    diagram = lags(1.0, 1.0, 1.0)
    found = fx.tune_pid(diagram, "pid", goal="setpoint", max_sensitivity=1.6, max_overshoot=5.0)
    plant, t = control.tf([1.0], [1.0, 3.0, 3.0, 1.0]), np.linspace(0.0, 30.0, 600)
    omega = np.geomspace(0.02, 50.0, 400)
    response = plant(1j * omega)

    def error(kp: float, ki: float) -> float:
        peak = 1.0 / np.abs(1.0 + (kp + ki / (1j * omega)) * response).min()
        if peak > 1.601:
            return np.inf
        closed = control.feedback(control.tf([kp, ki], [1.0, 0.0]) * plant, 1)
        y = control.step_response(closed, t).outputs
        return float(np.trapezoid(np.abs(1.0 - y), t)) if y.max() <= 1.0515 else np.inf

    best = min(error(kp, ki) for kp in np.linspace(0.5, 1.0, 6) for ki in np.linspace(0.25, 0.4, 6))
    own = error(found.kp, found.ki)
    assert own <= best * 1.005


def test_a_sampled_controller_goes_to_the_continuous_one_with_its_period() -> None:
    plant = (fx.FirstOrderLag("lag", time_constant=2.0), fx.PadeDelay("delay", 0.5))
    limit = fx.tune_pid(loop(fx.PIDController("pid"), *plant), "pid")
    for period, near in ((0.2, 0.3), (0.01, 0.04)):
        plant = (fx.FirstOrderLag("lag", time_constant=2.0), fx.PadeDelay("delay", 0.5))
        diagram = loop(fx.PIDController("pid", kp=0.5, period=period), *plant)
        found = fx.tune_pid(diagram, "pid")
        np.testing.assert_allclose([found.kp, found.ki], [limit.kp, limit.ki], rtol=near)
        assert found.ki < limit.ki
        context = diagram.create_default_context()
        found.apply(context)
        way = ["pid.measurement"]
        closed = fx.linearize(diagram, context, way, way, period=period)
        omega = np.geomspace(1e-2, np.pi / period, 4000)
        peak = np.abs(closed.frequency_response(omega)).max()
        np.testing.assert_allclose([peak, found.max_sensitivity], 1.6, rtol=1e-4)


def test_one_component_of_two_is_tuned_and_the_other_stays() -> None:
    builder = fx.DiagramBuilder("loops")
    A = np.diag([-1.0, -1.0, -1.0, -0.5]) + np.diag([1.0, 1.0, 0.0], -1)
    builder.add_all(
        fx.Constant("target", [0.0, 0.0]),
        fx.PIDController("pid", kp=[1.0, 2.0], ki=[0.1, 0.2], size=2),
        fx.StateSpace("plant", A, np.eye(4)[:, [0, 3]], np.eye(4)[[2, 3]]),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    diagram = builder.build()
    with pytest.raises(ValueRefusedError, match="component=0"):
        fx.tune_pid(diagram, "pid")
    found = fx.tune_pid(diagram, "pid", component=0)
    alone = fx.tune_pid(lags(1.0, 1.0, 1.0), "pid")
    np.testing.assert_allclose([found.kp, found.ki], [alone.kp, alone.ki], rtol=0.06)
    np.testing.assert_allclose(found.ki, alone.ki, rtol=1e-3)
    context = diagram.create_default_context()
    found.apply(context)
    np.testing.assert_allclose(context.get("pid.kp"), [found.kp, 2.0])


def test_parts_that_are_left_out_have_no_gain() -> None:
    found = fx.tune_pid(lags(0.0, 0.5, 0.1, kd=0.0), "pid", parts="PD")
    assert found.ki == 0.0
    assert found.kd > 0.0
    np.testing.assert_allclose(found.max_sensitivity, 1.6, rtol=1e-4)


@for_each(
    ("diagram", "options", "expected"),
    [
        (loop(fx.PIDController("pid"), Pendulum()), {"rule": "simc"}, "found the pole"),
        (loop(fx.PIDController("pid"), Pendulum()), {"rule": "amigo"}, "without oscillation"),
        (lags(0.0, 1.0, 0.1), {"rule": "lambda"}, "found one that integrates"),
        (lags(1.0, 0.1), {"rule": "ziegler"}, "rule to be one of"),
        (lags(1.0, 0.1), {"goal": "speed"}, "goal to be one of"),
        (lags(1.0, 0.1), {"parts": "PID"}, "made without kd"),
        (lags(1.0, 0.1), {"rule": "simc", "max_sensitivity": 1.1}, "sensitivity of 1.1"),
        (lags(1.0), {"rule": "simc"}, "closed_loop_time"),
        (lags(1.0, 0.1), {"rule": "amigo", "closed_loop_time": 1.0}, "found 'amigo'"),
        (lags(1.0, 0.1), {"closed_loop_time": 1.0}, "rule='lambda' where .* found None"),
        (lags(1.0, 0.1), {"t_final": 1.0}, "no t_final without step"),
    ],
)
def test_what_does_not_fit_is_refused(
    diagram: fx.Diagram, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueRefusedError, match=expected):
        fx.tune_pid(diagram, "pid", **options)


@pytest.mark.parametrize("period", [None, 0.02])
def test_a_rate_from_outside_is_taken_for_what_it_is(period: float | None) -> None:
    """A position, and its rate by a sensor of its own."""
    options: Any = {"kd": 0.0, "rate_inputs": True}
    pid: Any = (
        fx.PIDController("pid", **options)
        if period is None
        else fx.PIDController("pid", period=period, **options)
    )
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.Constant("target_rate", 0.0),
        pid,
        fx.TransferFunction("position", [1.0], [0.1, 1.02, 0.2, 0.0]),
        fx.TransferFunction("rate", [1.0], [0.1, 1.02, 0.2]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("target_rate.y", "pid.setpoint_rate")
    builder.connect_chain("pid.u", "position", "pid.measurement")
    builder.connect_chain("pid.u", "rate", "pid.measurement_rate")
    diagram = builder.build()
    found = fx.tune_pid(diagram, "pid")
    context = diagram.create_default_context()
    found.apply(context)
    if period is None:
        closed = fx.sensitivity_function(diagram, "pid.u", context=context)
    else:
        closed = fx.linearize(diagram, context, ["pid.feedforward"], ["pid.u"], period=period)
    omega = np.geomspace(1e-2, np.pi / (period or 0.003), 10000)
    peak = np.abs(closed.frequency_response(omega)).max()
    np.testing.assert_allclose([peak, found.max_sensitivity], 1.6, rtol=1e-4)
    assert found.derivative_filter is None
