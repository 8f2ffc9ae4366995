"""The compliant door of the examples in Drake, all of it in C++.

Constants of the hinge and gains are constants of a diagram there, so that each run needs its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.versus.drake_plants import part
from benchmarks.versus.workloads import Array

END, STEP_AT, TARGET = 10.0, 0.5, float(np.deg2rad(60.0))
#: By the paths of the example; what is not here has the value of Drake's hinge by default.
NOMINAL = {
    "door.panel.mass": 9.0,
    "door.hinge.spring_constant": 3.0,
    "pid.kp": 60.0,
    "pid.ki": 20.0,
    "pid.kd": 12.0,
    "pid.derivative_filter": 0.01,
}
SCHEMES = ("runge_kutta3", "bogacki_shampine3", "runge_kutta5", "radau3", "implicit_euler")
_HINGE = "door.hinge."


@dataclass(frozen=True)
class DoorRun:
    """What a run left behind: angle and torque at the ends of its steps, and its CPU time."""

    times: Array
    angle: Array
    torque: Array
    seconds: float


def run(
    values: Mapping[str, float], scheme: str, accuracy: float, limit: float = math.inf
) -> DoorRun:
    """Simulate the step response of a door with other values.

    Counted are the seconds of this thread from the beginning to the end, the diagram included. A
    run that takes more than a limit ends there.
    """
    start = time.thread_time()
    diagram, loggers = _diagram(NOMINAL | dict(values))
    analysis = part("systems.analysis")
    config = analysis.SimulatorConfig(
        integration_scheme=scheme, max_step_size=0.1, accuracy=accuracy, use_error_control=True
    )
    simulator = analysis.Simulator(diagram)
    analysis.ApplySimulatorConfig(config, simulator)
    if limit < math.inf:
        status = part("systems.framework").EventStatus

        def watch(root: Any) -> Any:
            late = time.thread_time() - start > limit
            return status.ReachedTermination(diagram, "late") if late else status.DidNothing()

        simulator.set_monitor(watch)
    simulator.AdvanceTo(END)
    logs = [logger.FindLog(simulator.get_context()) for logger in loggers]
    angle, torque = (log.data()[0].copy() for log in logs)
    times = logs[0].sample_times().copy()
    return DoorRun(times, angle, torque, time.thread_time() - start)


def _diagram(values: Mapping[str, float]) -> tuple[Any, list[Any]]:
    """Make the loop, and logs of angle and torque."""
    primitives = part("systems.primitives")
    builder = part("systems.framework").DiagramBuilder()
    plant = builder.AddSystem(_plant(values))
    kp, ki, kd, lag = (values[f"pid.{name}"] for name in ("kp", "ki", "kd", "derivative_filter"))
    law = primitives.LinearSystem(  # of setpoint and measurement
        A=[[0.0, 0.0], [0.0, -1.0 / lag]],
        B=[[1.0, -1.0], [0.0, -1.0 / lag]],
        C=[[ki, -kd / lag]],
        D=[[kp, -kp - kd / lag]],
    )
    controller = builder.AddSystem(law)
    hold = part("trajectories").PiecewisePolynomial.ZeroOrderHold
    step = hold([0.0, STEP_AT, END], [[0.0, TARGET, TARGET]])
    target = builder.AddSystem(primitives.TrajectorySource(step))
    parts = builder.AddSystem(primitives.Demultiplexer(2))
    both = builder.AddSystem(primitives.Multiplexer(2))
    builder.Connect(plant.get_state_output_port(), parts.get_input_port())
    builder.Connect(target.get_output_port(), both.get_input_port(0))
    builder.Connect(parts.get_output_port(0), both.get_input_port(1))
    builder.Connect(both.get_output_port(), controller.get_input_port())
    builder.Connect(controller.get_output_port(), plant.get_actuation_input_port())
    signals = parts.get_output_port(0), controller.get_output_port()
    loggers = [primitives.LogVectorOutput(signal, builder) for signal in signals]
    return builder.Build(), loggers


def _plant(values: Mapping[str, float]) -> Any:
    """Make the door."""
    tree, plant = part("multibody.tree"), part("multibody.plant").MultibodyPlant(0.0)
    box = tree.SpatialInertia.SolidBoxWithMass(values["door.panel.mass"], 0.02, 0.6, 0.7)
    panel = plant.AddRigidBody("panel", box)
    shift = part("math").RigidTransform([0.0, -0.3, 0.0])
    edge = plant.AddFrame(tree.FixedOffsetFrame("edge", panel.body_frame(), shift))
    axis = tree.RevoluteJoint("axis", plant.world_frame(), edge, [0.0, 0.0, 1.0])
    joint = plant.AddJoint(axis)
    config = tree.DoorHingeConfig()
    for path, value in values.items():
        if path.startswith(_HINGE):
            setattr(config, path.removeprefix(_HINGE), value)
    plant.AddForceElement(tree.DoorHinge(joint, config))
    plant.AddJointActuator("motor", joint)
    plant.Finalize()
    return plant
