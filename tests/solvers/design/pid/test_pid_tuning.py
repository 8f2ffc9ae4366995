"""Tuned PID controllers: the bound is kept in the diagram, and no other gains are stronger."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError
from tests.support.mechanics.mechanics import Pendulum
from tests.support.tiers import for_each

OMEGA = np.geomspace(1e-3, 1e3, 50000)


def loop(*plant: fx.System, pid: fx.System | None = None, **options: Any) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    pid = fx.PIDController("pid", **options) if pid is None else pid
    builder.add_all(fx.Constant("target", 0.0), pid, *plant)
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", *(block.name for block in plant))
    builder.connect(plant[-1].output_ports[0], "pid.measurement")
    return builder.build()


def lag_with_delay(**options: Any) -> fx.Diagram:
    return loop(fx.FirstOrderLag("lag", time_constant=2.0), fx.PadeDelay("delay", 0.5), **options)


def integrator_with_lag(**options: Any) -> fx.Diagram:
    lags = fx.FirstOrderLag("lag", time_constant=0.5), fx.FirstOrderLag("motor", time_constant=0.1)
    return loop(fx.Integrator("integrator"), *lags, **options)


def swing(**options: Any) -> fx.Diagram:
    """A pendulum with a motor that is not at once; its gravity is not linear."""
    return loop(fx.FirstOrderLag("motor", time_constant=0.05), Pendulum(), **options)


@pytest.mark.parametrize(
    ("diagram", "bound"),
    [
        (lag_with_delay(kd=0.0), 1.4),
        (integrator_with_lag(kd=0.0), 1.6),
        (swing(kd=0.0), 2.0),
        (loop(fx.TransferFunction("ringing", [25.0], [0.1, 1.102, 3.522, 27.52, 25.0])), 1.6),
        (loop(fx.Gain("turned", -2.0), fx.TransferFunction("lags", [1.0], [1, 3, 3, 1])), 1.6),
    ],
)
def test_the_tuned_diagram_has_the_peak_and_the_poles_that_are_told(
    diagram: fx.Diagram, bound: float
) -> None:
    context = diagram.create_default_context()
    before = context.to_dict()
    tuning = fx.tune_pid(diagram, "pid", context=context, max_sensitivity=bound)
    assert context.to_dict() == before
    tuning.apply(context)
    sensitivity = fx.sensitivity_function(diagram, "pid.u", context=context)
    peak = np.abs(sensitivity.frequency_response(OMEGA)).max()
    np.testing.assert_allclose([peak, tuning.max_sensitivity], bound, rtol=1e-4)
    found = fx.linearize(diagram, context, inputs=[], outputs=[])
    assert found.is_stable
    np.testing.assert_allclose(
        np.sort_complex(found.poles), np.sort_complex(tuning.poles), rtol=1e-6
    )


@pytest.mark.full
def test_no_pi_controller_within_the_bound_integrates_more() -> None:
    """All proportional gains on a grid, each with the largest integral gain of a fine grid."""
    s = 1j * np.geomspace(0.01, 50.0, 500)
    delay = (1.0 - 0.25 * s + (0.25 * s) ** 2 / 3.0) / (1.0 + 0.25 * s + (0.25 * s) ** 2 / 3.0)
    plant = delay / (2.0 * s + 1.0)
    kp, ki = np.linspace(0.5, 2.5, 41), np.linspace(0.5, 2.0, 301)
    gains = kp[:, np.newaxis, np.newaxis] + ki[:, np.newaxis] / s
    peaks = 1.0 / np.abs(1.0 + gains * plant).min(axis=-1)
    best = max(ki[np.flatnonzero(row <= 1.6)[-1]] for row in peaks if np.any(row <= 1.6))
    diagram = loop(fx.FirstOrderLag("lag", time_constant=2.0), fx.PadeDelay("delay", 0.5, order=2))
    tuning = fx.tune_pid(diagram, "pid", max_sensitivity=1.6)
    assert (tuning.kd, tuning.derivative_filter) == (0.0, None)
    np.testing.assert_allclose(tuning.ki, best, rtol=0.01)


def test_new_gains_leave_the_output_and_an_equilibrium_alone() -> None:
    diagram = swing(kp=20.0, ki=10.0, kd=2.0)
    context = diagram.create_default_context()
    context.set("target.value", 0.4)
    rest = fx.equilibrium(diagram, context).context
    torque = rest.get("pid.u")
    assert abs(torque[0]) > 1.0
    fx.tune_pid(diagram, "pid", context=rest).apply(rest)
    np.testing.assert_allclose(rest.get("pid.u"), torque, rtol=1e-9)
    result = fx.simulate(diagram, 1.0, context=rest)
    np.testing.assert_allclose(result["pendulum.angle"], 0.4, atol=1e-6)


@cache
def tuned_without_limits() -> fx.results.PIDTuning:
    return fx.tune_pid(lag_with_delay(kd=0.0), "pid", step_to={"target.value": 1.0})


def test_the_step_of_a_linear_diagram_is_that_of_its_model() -> None:
    tuning = tuned_without_limits()
    linear, simulated = tuning.linear, tuning.simulated
    assert linear is not None
    assert simulated is not None
    np.testing.assert_allclose(linear.overshoot, simulated.overshoot, rtol=1e-2)
    np.testing.assert_allclose(linear.rise_time, simulated.rise_time, rtol=1e-2)


def test_limits_of_the_output_show_in_the_simulated_step_alone() -> None:
    free = tuned_without_limits()
    limits = {"lower": -1.5, "upper": 1.5}
    with pytest.warns(UserWarning, match="a rise time of .* at a limit for"):
        limited = fx.tune_pid(
            lag_with_delay(kd=0.0, **limits), "pid", step_to={"target.value": 1.0}
        )
    assert free.linear is not None
    assert limited.linear is not None
    assert limited.simulated is not None
    np.testing.assert_allclose(limited.linear.rise_time, free.linear.rise_time, rtol=1e-6)
    assert limited.simulated.rise_time > 2.0 * limited.linear.rise_time


@pytest.mark.parametrize("period", [None, 0.1])
def test_the_figures_of_a_step_tell_what_the_controller_does(period: float | None) -> None:
    """Its output jumps by the gain, and with samples by the first part of the integral, too."""
    pid: Any = (
        fx.PIDController("pid", upper=5.0)
        if period is None
        else fx.PIDController("pid", upper=5.0, period=period)
    )
    plant = fx.FirstOrderLag("lag", time_constant=2.0), fx.PadeDelay("delay", 0.5)
    tuning = fx.tune_pid(loop(*plant, pid=pid), "pid", step_to={"target.value": 0.8})
    linear, simulated = tuning.linear, tuning.simulated
    assert linear is not None
    assert simulated is not None
    jump = 0.8 * (tuning.kp + tuning.ki * (period or 0.0))
    for info in (linear, simulated):
        assert jump * (1.0 - 1e-6) <= info.control_peak < 2.0 * jump
        assert info.control_variation >= info.control_peak + abs(info.control_peak - 0.8) - 1e-2
        np.testing.assert_allclose(info.final, 0.8, rtol=2e-3)
    for name in ("rise_time", "overshoot", "control_peak", "control_variation"):
        np.testing.assert_allclose(getattr(linear, name), getattr(simulated, name), rtol=2e-2)
    assert tuning.at_limits == 0.0


@pytest.mark.full
def test_no_setpoint_is_overshot_by_more_than_is_allowed() -> None:
    options: Any = {"goal": "setpoint", "max_sensitivity": 2.0, "step_to": {"target.value": 1.0}}
    tight, loose = (
        fx.tune_pid(lag_with_delay(), "pid", max_overshoot=most, **options).simulated
        for most in (1.0, 10.0)
    )
    assert tight is not None
    assert loose is not None
    assert tight.overshoot <= 1.2 < loose.overshoot <= 10.2
    assert loose.rise_time < tight.rise_time


def test_an_overshoot_that_no_gains_avoid_is_refused() -> None:
    """With two integrators in the loop, the integral of the error after a step is zero."""
    with pytest.raises(ValueRefusedError, match=r"overshoot of at most 0 %; found .* %"):
        fx.tune_pid(integrator_with_lag(), "pid", goal="setpoint", max_overshoot=0.0)


@pytest.mark.full
def test_an_orientation_is_tuned_as_the_double_integrator_that_it_is() -> None:
    """A quaternion joint about one axis: half the angle is a component of the quaternion."""
    inertia = fx.SpatialInertia.solid_box(2.0, size=(1.0, 0.6, 0.4))
    plant = fx.PlantBuilder("satellite", gravity=(0.0, 0.0, 0.0))
    hull = plant.add_body("hull", inertia)
    plant.add_joint(fx.QuaternionFloatingJoint("free", plant.world, hull))
    plant.add_external_force("thrust", hull)
    builder = fx.DiagramBuilder("attitude")
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.PIDController("pid", kd=0.0),
        fx.FirstOrderLag("wheel", time_constant=0.05),
        fx.MatrixGain("torque", np.eye(6)[:, :1]),
        plant.build(),
        fx.Selector("half_angle", 7, [1]),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "wheel", "torque", "satellite.thrust")
    builder.connect_chain("satellite.positions", "half_angle", "pid.measurement")
    diagram = builder.build()
    lag = fx.FirstOrderLag("wheel", time_constant=0.05)
    slope = 0.5 / (2.0 * (0.6**2 + 0.4**2) / 12.0)
    alone = loop(lag, fx.TransferFunction("angle", [slope], [1.0, 0.0, 0.0]), kd=0.0)
    found, expected = fx.tune_pid(diagram, "pid"), fx.tune_pid(alone, "pid")
    for name in ("kp", "ki", "kd", "max_sensitivity"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-4)
    context = diagram.create_default_context()
    found.apply(context)
    context.set("target.value", np.sin(np.deg2rad(10.0) / 2.0))
    result = fx.simulate(diagram, 8.0, context=context)
    turned = 2.0 * np.arcsin(result["half_angle.y"][-1])
    np.testing.assert_allclose(np.rad2deg(turned), 10.0, rtol=1e-3)


def test_gains_from_outside_are_not_tuned() -> None:
    with pytest.raises(ValueRefusedError, match=r"gains of 'pid' that are .* without gain_ports"):
        fx.tune_pid(lag_with_delay(gain_ports=True), "pid")


def test_a_plant_that_nothing_limits_is_refused() -> None:
    with pytest.raises(ValueRefusedError, match="dynamics limit the gains; found a bound"):
        fx.tune_pid(loop(fx.FirstOrderLag("lag", time_constant=2.0)), "pid")


def test_a_plant_that_no_gains_stabilize_is_refused() -> None:
    plant = fx.TransferFunction("plant", [1.0], [1.0, -3.0, 3.0, -1.0])
    with pytest.raises(ValueRefusedError, match=r"gains stabilize with a peak .* found none for"):
        fx.tune_pid(loop(plant), "pid")


@for_each(
    ("options", "expected"),
    [
        ({"controller": "lag"}, "a PIDController, or its path"),
        ({"max_sensitivity": 1.0}, "max_sensitivity"),
        ({"filter_ratio": -1.0}, "filter_ratio"),
        ({"step_to": {}}, "one step, as a path"),
        ({"step_to": {"target.value": 1.0}, "t_final": 0.0}, "t_final"),
    ],
)
def test_odd_requests_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueRefusedError, match=expected):
        fx.tune_pid(lag_with_delay(), **{"controller": "pid", **options})


def test_a_controller_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="pdi"):
        fx.tune_pid(lag_with_delay(), "pdi")


@pytest.mark.parametrize("bound", [1.3, 1.6])
def test_two_integrators_are_held_within_strict_bounds(bound: float) -> None:
    lag = fx.FirstOrderLag("lag", time_constant=0.01)
    diagram = loop(lag, fx.Integrator("rate"), fx.Integrator("angle"), kd=1.0)
    context = diagram.create_default_context()
    tuning = fx.tune_pid(diagram, "pid", max_sensitivity=bound)
    tuning.apply(context)
    margins = fx.margins(fx.loop_gain(diagram, "pid.u", context=context))
    assert margins.is_stable
    np.testing.assert_allclose(1.0 / margins.modulus_margin, bound, rtol=1e-4)


def cascade(feedback: float) -> fx.Diagram:
    """A rate that the inner controller holds, and an angle whose controller is around it."""
    builder = fx.DiagramBuilder("cascade")
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.PIDController("outer", kp=0.5, ki=0.1),
        fx.PIDController("inner", kp=1.0, ki=0.0),
        fx.FirstOrderLag("motor", time_constant=0.02),
        fx.FirstOrderLag("rate", time_constant=0.5),
        fx.StateSpace("angle", [[feedback]], [[1.0]], [[1.0]]),
    )
    builder.connect_chain("target", "outer.setpoint")
    builder.connect_chain("outer", "inner.setpoint")
    builder.connect_chain("inner", "motor", "rate", "inner.measurement")
    builder.connect_chain("rate", "angle", "outer.measurement")
    return builder.build()


def test_an_inner_loop_is_tuned_beside_integrals_that_its_measurement_does_not_show() -> None:
    diagram = cascade(feedback=0.0)
    context = diagram.create_default_context()
    tuning = fx.tune_pid(diagram, "inner", context=context, max_sensitivity=1.5)
    alone = loop(
        fx.FirstOrderLag("motor", time_constant=0.02), fx.FirstOrderLag("rate", time_constant=0.5)
    )
    expected = fx.tune_pid(alone, "pid", max_sensitivity=1.5)
    np.testing.assert_allclose([tuning.kp, tuning.ki], [expected.kp, expected.ki], rtol=1e-6)
    tuning.apply(context)
    assert (
        fx.tune_pid(diagram, "outer", context=context, max_sensitivity=1.5).max_sensitivity < 1.5001
    )


def test_a_plant_whose_growing_mode_is_not_measured_is_refused() -> None:
    with pytest.raises(ValueRefusedError, match="growing modes the controller moves and measures"):
        fx.tune_pid(cascade(feedback=1.0), "inner")


def door_with_amplifier() -> fx.Diagram:
    """The door of the examples as a plant, with hand-chosen gains and an amplifier that lags."""
    plant = fx.PlantBuilder("door")
    inertia = fx.SpatialInertia.solid_box(mass=9.0, size=(0.02, 0.6, 0.7))
    panel = plant.add_body("panel", inertia, com=(0, 0.3, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_force_element(fx.DoorHinge("hinge", axis, spring_constant=3.0))
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        plant.build(),
        fx.Step("target", at=0.5, to=np.pi / 3.0),
        fx.PIDController("pid", kp=60.0, ki=20.0, kd=12.0, derivative_filter=0.02),
        fx.FirstOrderLag("amplifier", time_constant=0.02),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect_chain("pid", "amplifier", "door.motor")
    return builder.build()


@pytest.mark.full
def test_a_tuned_door_is_better_than_with_gains_by_hand_of_the_same_robustness() -> None:
    servo = door_with_amplifier()
    by_hand = servo.create_default_context()
    moving = by_hand.clone()  # open, and beyond the friction of rest
    moving.set("door.axis.angle", np.pi / 3.0)
    moving.set("door.hinge.static_friction_torque", 0.0)
    moving.set("door.hinge.dynamic_friction_torque", 0.0)
    bound = 1.0 / fx.margins(fx.loop_gain(servo, "pid.u", context=moving)).modulus_margin
    for_loads = fx.tune_pid(servo, "pid", context=moving, max_sensitivity=bound)
    assert for_loads.ki > 5.0 * 20.0
    follows = fx.tune_pid(servo, "pid", context=moving, goal="setpoint", max_sensitivity=bound)
    errors = []
    for tuning in (None, for_loads, follows):
        context = by_hand.clone()
        if tuning is not None:
            assert tuning.max_sensitivity <= bound * (1.0 + 1e-6)
            tuning.apply(context)
        result = fx.simulate(servo, 5.0, context=context)  # with catch and friction
        errors.append(fx.metrics.iae("door.axis.angle", target="target.y")(result))
    assert max(errors[1:]) < errors[0]
