"""A pendulum and a loop around it, whose equations are known in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx

GRAVITY = 9.81


class Pendulum(fx.LeafSystem):
    """m l² q̈ = torque - b q̇ - m g l sin q, with the horizontal position of the mass as output."""

    def __init__(self, name: str = "pendulum", angle: float = 0.0) -> None:
        super().__init__(name)
        self.mass = self.declare_numeric_parameter("mass", 2.0, lower=0.0, exclusive=True)
        self.length = self.declare_numeric_parameter("length", 0.5, lower=0.0, exclusive=True)
        self.damping = self.declare_numeric_parameter("damping", 0.3)
        self.state = self.declare_continuous_state(
            q=1, v=1, default=[angle, 0.0], element_names=["angle", "rate"]
        )
        self.torque = self.declare_vector_input("torque", 1)
        self.angle = self.declare_vector_output("angle", 1, self.state.q)
        self.position = self.declare_vector_output("position", 1, self.calc_position)

    def calc_time_derivatives(self, context: Any) -> Any:
        angle, rate = self.state(context)
        mass, length = self.mass(context), self.length(context)
        torque = self.torque(context)[0] - self.damping(context) * rate
        return [rate, torque / (mass * length**2) - GRAVITY / length * np.sin(angle)]

    def calc_position(self, context: Any) -> Any:
        return self.length(context) * np.sin(self.state.q(context))


class ForeignPendulum(Pendulum):
    """The same equations behind a function of numbers, which no trace passes."""

    def calc_time_derivatives(self, context: Any) -> Any:
        if float(self.state(context)[0]) > 1e9:
            return [0.0, 0.0]
        return super().calc_time_derivatives(context)


def servo(kp: float = 60.0, ki: float = 20.0, kd: float = 12.0, **options: Any) -> fx.Diagram:
    """A PID controller that turns a pendulum to a target."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Constant("target", 0.8), fx.PIDController("pid", kp, ki, kd, **options), Pendulum()
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect("pid.u", "pendulum.torque")
    builder.connect("pendulum.angle", "pid.measurement")
    return builder.build()
