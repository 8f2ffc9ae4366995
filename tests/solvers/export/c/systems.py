"""Systems that become C."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx


class Ball(fx.LeafSystem):
    """A ball that bounces."""

    def __init__(self) -> None:
        super().__init__("ball")
        self.restitution = self.declare_numeric_parameter("restitution", 0.8)
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.height = self.declare_vector_output("height", 1, self.x.q, unit="m")
        self.declare_unrestricted_update(self.bounce, fx.diagrams.Witness(self.x.q, "falling"))

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.x.v(context)[0], -9.81]

    def bounce(self, context: Any) -> Any:
        return {self.x: [0.0, -self.restitution(context) * self.x.v(context)[0]]}


class Pendulum(fx.LeafSystem):
    """A driven pendulum whose outputs go through all functions that are ours."""

    def __init__(self) -> None:
        super().__init__("pendulum")
        self.length = self.declare_numeric_parameter("length", 0.7)
        self.u = self.declare_vector_input("u", 1)
        self.x = self.declare_continuous_state(q=1, v=1, default=[0.3, 0.0])
        self.declare_vector_output("y", 5, self.outputs)

    def calc_time_derivatives(self, context: Any) -> Any:
        (q, v), (u,) = self.x(context), self.u(context)
        return [v, -9.81 / self.length(context) * np.sin(q) - 0.3 * v + u]

    def outputs(self, context: Any) -> Any:
        (q, v), (u,) = self.x(context), self.u(context)
        size = np.abs(u) + 0.1
        return [np.sin(q), np.cos(v), np.exp(u), np.log(size), np.power(size, q)]


def controller() -> fx.Diagram:
    """Return a sampled controller with limits, with its setpoint and measurement as inputs."""
    builder = fx.DiagramBuilder("controller")
    builder.add_all(
        fx.PIDController("pid", period=0.01, kp=60.0, ki=60.0, kd=12.0, lower=-20.0, upper=20.0),
        fx.Constant("feedforward", 0.0),
    )
    builder.connect("feedforward.y", "pid.feedforward")
    builder.export_input("pid.setpoint", name="setpoint")
    builder.export_input("pid.measurement", name="measurement")
    builder.export_output("pid.u", name="u")
    return builder.build()


def strut(*, told: bool) -> fx.Plant:
    """A pendulum, and a slider at a distance from its tip that is a parameter."""
    builder = fx.PlantBuilder("strut")
    rod = fx.SpatialInertia.thin_rod(1.0, length=1.0, axis="x")
    crank, slider = (builder.add_body(name, rod) for name in ("crank", "slider"))
    pivot = builder.add_joint(fx.RevoluteJoint("pivot", builder.world, crank, axis=(0, -1, 0)))
    guide = builder.add_joint(fx.PrismaticJoint("guide", builder.world, slider, axis=(1, 0, 0)))
    pivot.default_angle, guide.default_translation = 0.5 * np.pi, 1.5
    tip = builder.add_frame("tip", crank, (1.0, 0.0, 0.0))
    length = float(np.hypot(1.0, 1.5))
    builder.add_constraint(
        fx.constraints.DistanceConstraint(
            "link", tip, (0, 0, 0), slider, (0, 0, 0), distance=length
        )
    )
    if told:
        builder.assemble_starts(fixed=pivot)
    return builder.build()
