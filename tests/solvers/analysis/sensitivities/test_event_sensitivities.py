"""Sensitivities through state events: closed forms, gradients, and what has no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError
from tests.solvers.analysis.sensitivities.test_gradients import (
    Ball,
    Hybrid,
    Ramp,
    complex_steps,
    drawn,
)
from tests.solvers.analysis.sensitivities.test_gradients_at_instants import sampled, stepped
from tests.support.systems.simulation import relay_charger

METHODS = pytest.mark.parametrize("method", ["auto", "ESDIRK4", scipy.integrate.DOP853])


@METHODS
def test_a_ball_before_between_and_after_bounces(method: Any) -> None:
    def height(time: float, g: Any, e: Any, q: Any, v: Any) -> Any:
        speed = np.sqrt(v * v + 2.0 * g * q)
        begin, rise = (v + speed) / g, e * speed  # of the flight after the first bounce
        if time < begin.real:
            return q + v * time - 0.5 * g * time**2
        while time > (begin + 2.0 * rise / g).real:
            begin, rise = begin + 2.0 * rise / g, e * rise
        return rise * (time - begin) - 0.5 * g * (time - begin) ** 2

    numbers, times = {"g": 9.81, "e": 0.8, "q": 1.0, "v": 0.0}, np.linspace(0.1, 2.5, 13)
    found = fx.parameter_sensitivity(
        Ball(), ["g", "e", "x"], 2.5, outputs="y", times=times, method=method
    )
    slopes = found.output_derivatives["y"]
    for k, time in enumerate(times):
        expected = complex_steps(lambda time=time, **n: height(time, **n), numbers)
        assert found.outputs["y"][k, 0] == pytest.approx(height(time, **numbers), abs=1e-7)
        mine = [slopes["g"][k, 0], slopes["e"][k, 0], *slopes["x"][k, 0]]
        np.testing.assert_allclose(mine, list(expected.values()), atol=2e-6)


@METHODS
def test_a_relay_that_charges_a_capacitor(method: Any) -> None:
    charger = relay_charger()

    def voltage(tau: Any, on: Any, off: Any, top: Any, start: Any) -> Any:
        # It charges from the start to -off, discharges to -on, and charges again.
        turned = tau * np.log((top - start) / (top + off)) + tau * np.log(off / on)
        return top - (top + on) * np.exp((turned - 1.2) / tau)

    numbers = {"tau": 0.5, "on": -0.3, "off": -0.7, "top": 1.0, "start": 0.1}
    paths = ["lag.time_constant", "relay.on_threshold", "relay.off_threshold", "relay.on_value"]
    paths.append("lag.x")
    found = fx.parameter_sensitivity(charger, paths, 1.2, method=method)
    assert found.states[-1, 0] == pytest.approx(voltage(**numbers), abs=1e-7)
    for path, expected in zip(paths, complex_steps(voltage, numbers).values(), strict=True):
        assert np.ravel(found[path])[0] == pytest.approx(expected, rel=1e-6, abs=1e-7), path
    ended = fx.simulate(charger, 1.2, method="DOP853", rtol=1e-10).context
    assert found.context.get("relay.y") == ended.get("relay.y")
    np.testing.assert_allclose(found.context.continuous_state, ended.continuous_state, atol=1e-8)


def test_events_that_change_no_number_and_ticks_among_events() -> None:
    """With p = 0 updates leave all values as they are, but not what they depend on."""
    for update, state in (("hold", 0), ("push", 1)):
        for when in ("tick", "crossing"):
            ramp = Ramp([(when, update), ("crossing", "hold")])
            found = fx.parameter_sensitivity(ramp, ["p", "top", "rate"], 1.0, times=[0.2, 0.9])
            gradient = fx.gradient(ramp, fx.metrics.final(f"x[{state}]"), ["p", "rate"], 0.9)
            for way in ("p", "rate"):
                assert found[way][state] == pytest.approx(gradient[way], abs=1e-8), (update, when)


def test_samples_of_all_states_and_outputs_are_those_of_gradients() -> None:
    system = Hybrid(["relay", "reset", "ticks", "jump"])
    context, ways, times = drawn(system, 4), ["A", "w", "band", "at", "k", "x"], [0.4, 1.3, 2.2]
    options: dict[str, Any] = {"context": context, "rtol": 1e-9, "method": "RK45"}
    found = fx.parameter_sensitivity(system, ways, 2.2, outputs="y", times=times, **options)
    for k, time in enumerate(times):
        other = fx.gradient(system, fx.metrics.final("y"), ways, time, **options)
        for way in ways:
            slope = found.output_derivatives["y"][way][k, 0]
            np.testing.assert_allclose(slope, other[way], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("time", [0.5, np.nextafter(0.5, 1.0)])
def test_a_sample_at_a_crossing_is_refused(time: float) -> None:
    ramp = Ramp([("crossing", "hold")])
    context = ramp.create_default_context()
    context.set("p", 0.3)
    with pytest.raises(EvaluationError, match=r"t = 0\.5 s: expected events apart .*instants"):
        fx.parameter_sensitivity(ramp, "rate", 0.8, times=[0.2, time], context=context)


def test_a_jump_that_moves_at_the_first_tick_is_refused() -> None:
    """A little later, the hold would not see the step before the second tick."""
    system = sampled(fx.Step("step", at=0.0))
    for ask in (
        lambda way: fx.parameter_sensitivity(system, way, 1.0)[way][0],
        lambda way: fx.gradient(system, fx.metrics.final("sum.y"), way, 1.0)[way],
    ):
        with pytest.raises(EvaluationError, match=r"t = 0 s"):
            ask("step.at")
        assert ask("step.to") == pytest.approx(1.0)
    assert fx.parameter_sensitivity(stepped(fx.Step("step", at=0.5)), "step.to", 1.0)["step.to"] > 0


@pytest.mark.parametrize("constraint", ["stop", "friction"])
def test_mechanisms_that_strike_and_stick(constraint: str) -> None:
    builder = fx.PlantBuilder("arm")
    rod = fx.SpatialInertia.thin_rod(1.0, length=0.5)
    body = builder.add_body("rod", rod, com=(0, 0, -0.25))
    joint = builder.add_joint(fx.RevoluteJoint("axis", builder.world, body, axis=(0, 1, 0)))
    joint.default_angle = 0.6
    kinds = {
        "stop": fx.RigidStop("stop", joint, restitution=0.4, lower=-0.2),
        "friction": fx.StickSlipFriction("seal", joint, coulomb_friction=0.3),
    }
    builder.add_constraint(kinds[constraint])
    plant = builder.build()
    ways = ["tree.rod_mass", {"stop": "tree.stop_restitution"}.get(constraint, "axis.angle")]
    found = fx.parameter_sensitivity(plant, ways, 1.5, outputs="axis.angle", rtol=1e-9)
    gradient = fx.gradient(plant, fx.metrics.final("axis.angle"), ways, 1.5, rtol=1e-9)
    for way in ways:
        slope = np.ravel(found.output_derivatives["axis.angle"][way])
        np.testing.assert_allclose(slope, np.ravel(gradient[way]), rtol=1e-5, atol=1e-7)
