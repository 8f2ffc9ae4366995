"""Systems for tests of sweeps, and the comparison of sweeps with single simulations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flexure as fx


class Pendulum(fx.LeafSystem):
    """q″ = torque − stiffness sin q − damping q′."""

    def __init__(self, name: str = "pendulum") -> None:
        super().__init__(name)
        self.stiffness = self.declare_numeric_parameter("stiffness", 4.0, lower=0.0, upper=50.0)
        self.damping = self.declare_numeric_parameter("damping", [0.1, 0.02], unit="1/s")
        self.torque = self.declare_vector_input("torque", 1, default=0.0)
        self.x = self.declare_continuous_state(
            q=1, v=1, default=[1.0, 0.0], element_names=["angle", "rate"]
        )
        self.angle = self.declare_vector_output("angle", 1, self.x.q, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        angle, rate = self.x(context)
        linear, cubic = self.damping(context)
        torque = self.torque(context)[0]
        return [
            rate,
            torque - self.stiffness(context) * np.sin(angle) - (linear + cubic * rate**2) * rate,
        ]


class UntilEdge(fx.LeafSystem):
    """ẋ = √(edge − t) sin(1 + x): undefined after the time of the edge."""

    def __init__(self, name: str = "flow") -> None:
        super().__init__(name)
        self.edge = self.declare_numeric_parameter("edge", 100.0)
        self.x = self.declare_continuous_state(z=1, default=[0.5])
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.sqrt(self.edge(context) - context.time) * np.sin(1.0 + self.x(context))


def driven_pendulum() -> fx.Diagram:
    builder = fx.DiagramBuilder("driven")
    builder.add_all(fx.Sine("drive", amplitude=0.8, frequency=1.7), Pendulum())
    builder.connect("drive.y", "pendulum.torque")
    return builder.build()


def servo(source: fx.System | None = None) -> fx.Diagram:
    """A loop with a controller that sets its filter at the beginning."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        source or fx.Step("target", at=0.5),
        fx.PIDController("pid", kp=16.0, ki=20.0, kd=6.0, derivative_filter=0.02),
        fx.TransferFunction("arm", [1.0], [1.0, 0.4, 4.0]),
        fx.VectorLog("log", period=0.1),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    builder.connect("arm.y", "log.u")
    return builder.build()


def in_lanes(sweep: fx.results.Sweep) -> bool:
    return " lanes on " in sweep.how


def single(sweep: fx.results.Sweep, index: int, **options: Any) -> fx.results.SimulationResult:
    return fx.simulate(sweep.system, sweep.t_final, context=sweep.context(index), **options)


def assert_like_singles(
    sweep: fx.results.Sweep,
    indices: Sequence[int] | None = None,
    *,
    tolerance: float = 1e-12,
    **options: Any,
) -> None:
    """Compare runs with single simulations, in relation to the size of the numbers.

    Rounding errors show in the estimates of errors, and so in the lengths of steps. In smooth
    motion that changes nothing to speak of. Where equations bend, the error of a step depends on
    how it meets the bend, and the tolerance of the run is all that can be asked for.
    """
    for index in range(len(sweep)) if indices is None else indices:
        result = single(sweep, index, **options)
        assert tolerance > 1e-9 or sweep.steps[index] == result.statistics.steps
        assert_close(sweep.final_states[index], result.context.continuous_state, tolerance)
        for signal in sweep.signals:
            assert_close(sweep[signal][index], result.sample(signal, sweep.times), tolerance)


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)
