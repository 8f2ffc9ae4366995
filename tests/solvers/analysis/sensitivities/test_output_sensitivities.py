"""Derivatives of signals by parameters and initial states are those of closed forms and runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx
from tests.support.mechanics.mechanics import servo

TIMES = np.array([0.0, 0.3, 0.9])


def test_outputs_have_the_differences_of_simulations_as_derivatives() -> None:
    loop = servo()
    paths = ["pid.kp", "pendulum.length", "target.value"]
    signals = ["pendulum.position", "pid.u", "pendulum.angle"]
    found = fx.parameter_sensitivity(loop, paths, 0.9, outputs=signals, times=TIMES)
    assert list(found.outputs) == list(found.output_derivatives) == signals
    for path in paths:
        runs = []
        for sign in (1.0, -1.0):
            context = loop.create_default_context()
            context.set(path, np.asarray(context.get(path)) + sign * 1e-4)
            runs.append(
                fx.simulate(loop, 0.9, context=context, method="DOP853", rtol=1e-11, atol=1e-13)
            )
        for signal in signals:
            ahead, behind = (run.sample(signal, TIMES) for run in runs)
            expected = (ahead - behind).reshape(-1) / 2e-4
            derivative = found.output_derivatives[signal][path].reshape(-1)
            np.testing.assert_allclose(derivative, expected, rtol=1e-4, atol=1e-5, err_msg=path)


def test_an_output_that_needs_the_parameter_directly_has_both_terms() -> None:
    lag = fx.StateSpace("lag", [[-2.0]], [[1.0]], [[3.0]], [[0.5]], initial=[1.0])
    context = lag.create_default_context()
    context.set("u", 4.0)
    found = fx.parameter_sensitivity(
        lag, ["C", "D", "u"], 0.9, context=context, outputs=["y"], times=TIMES
    )
    x = 2.0 - np.exp(-2.0 * TIMES)
    np.testing.assert_allclose(found.outputs["y"][:, 0], 3.0 * x + 2.0, rtol=1e-7)
    by = found.output_derivatives["y"]
    assert by["C"].shape == (3, 1, 1, 1)
    np.testing.assert_allclose(by["C"].reshape(-1), x, rtol=1e-7)
    np.testing.assert_allclose(by["D"].reshape(-1), 4.0, rtol=1e-12)
    expected = 1.5 * (1.0 - np.exp(-2.0 * TIMES)) + 0.5
    np.testing.assert_allclose(by["u"].reshape(-1), expected, rtol=1e-7)


def test_an_initial_state_is_a_parameter() -> None:
    spring = fx.StateSpace(
        "spring", [[0.0, 1.0], [-4.0, 0.0]], [[], []], [1.0, 0.0], initial=[1.0, 0.0]
    )
    found = fx.parameter_sensitivity(
        spring, ["A[1,0]", "x", "C[0,0]"], 0.9, outputs=["y"], times=TIMES
    )
    cos, sin = np.cos(2.0 * TIMES), np.sin(2.0 * TIMES)
    expected = np.moveaxis(np.array([[cos, 0.5 * sin], [-2.0 * sin, cos]]), 2, 0)
    np.testing.assert_allclose(found.derivatives["x"], expected, atol=1e-7)
    np.testing.assert_allclose(
        found.output_derivatives["y"]["x"][:, 0], np.transpose([cos, 0.5 * sin]), atol=1e-7
    )
    np.testing.assert_allclose(found.derivatives["A[1, 0]"][:, 0], TIMES * sin / 4.0, atol=1e-7)


def test_the_angle_of_a_joint_stands_for_its_initial_state() -> None:
    builder = fx.PlantBuilder("door")
    leaf = builder.add_body("leaf", fx.SpatialInertia.thin_rod(3.0, length=1.0, axis="x"))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, leaf, axis=(0, 0, 1)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=1.0))
    door = builder.build()
    found = fx.parameter_sensitivity(door, [axis.angle], 2.0, outputs=[axis.rate])
    # A pendulum with an inertia of 1/4 kg m² in a spring of 1 N m/rad swings at 2 rad/s.
    np.testing.assert_allclose(found[axis.angle].reshape(-1), [np.cos(4.0), -2.0 * np.sin(4.0)])
    (derivative,) = found.output_derivatives["axis.rate"].values()
    np.testing.assert_allclose(derivative.reshape(-1), -2.0 * np.sin(4.0), rtol=1e-7)


def test_a_state_that_is_set_at_the_beginning_does_not_depend_on_what_it_was() -> None:
    class Starter(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("starter")
            self.k = self.declare_numeric_parameter("k", 2.0)
            self.x = self.declare_continuous_state(z=1)
            self.declare_unrestricted_update(self.start, fx.diagrams.Initialization())

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.x(context)

        def start(self, context: Any) -> dict[Any, Any]:
            return {self.x: 3.0 * self.k(context) * np.ones(1)}

    found = fx.parameter_sensitivity(Starter(), ["k", "x"], 1.0)
    np.testing.assert_allclose(found["k"], [3.0 * np.e], rtol=1e-7)
    assert found["x"].tolist() == [[0.0]]


def test_a_signal_without_states_is_differentiated_at_every_time() -> None:
    builder = fx.DiagramBuilder("made")
    builder.add_all(fx.Ramp("ramp", slope=2.0), fx.Gain("gain", 3.0))
    builder.connect_chain("ramp", "gain")
    found = fx.parameter_sensitivity(
        builder.build(), "gain.gain", 0.9, outputs="gain.y", times=TIMES
    )
    np.testing.assert_allclose(found.outputs["gain.y"][:, 0], 6.0 * TIMES)
    np.testing.assert_allclose(found.output_derivatives["gain.y"]["gain.gain"][:, 0], 2.0 * TIMES)
