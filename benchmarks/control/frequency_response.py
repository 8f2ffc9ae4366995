"""Measure the frequency response of a sampled servo: 40 frequencies in 2 s on a quiet machine.

Prints the time beside that of the same runs as single simulations, and the largest error to the
exact response of the sampled linear model.

Run ``python benchmarks/control/frequency_response.py``; ``--quick`` takes 10 frequencies.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import flexure as fx

PERIOD, BAR = 0.01, 2.0  # s


def servo() -> fx.Diagram:
    """Return the servo of the README with a sampled controller and a linear hinge."""
    plant = fx.PlantBuilder("door", gravity=(0, 0, -9.81))
    box = fx.SpatialInertia.solid_box(mass=9.0, size=(0.02, 0.6, 0.7))
    panel = plant.add_body("panel", box, com=(0, 0.3, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_force_element(fx.JointSpring("hinge", axis, stiffness=3.0, damping=0.5))
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        plant.build(),
        fx.Constant("target", 0.0),
        fx.PIDController("pid", kp=60.0, ki=60.0, kd=12.0, derivative_filter=0.02, period=PERIOD),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect("pid.u", "door.motor")
    return builder.build()


def main() -> None:
    """Measure, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer frequencies")
    count = 10 if parser.parse_args().quick else 40
    system, omega = servo(), np.geomspace(1.0, np.pi / PERIOD, count)
    outputs = ["door.axis.angle", "pid.u"]

    def measure() -> fx.results.FrequencyResponse:
        return fx.frequency_response(
            system, "pid.setpoint", outputs, omega, 0.01, period=PERIOD, max_periods=5000.0
        )

    start = time.perf_counter()
    measure()
    first = time.perf_counter() - start
    start = time.perf_counter()
    found = measure()
    spent = time.perf_counter() - start
    start = time.perf_counter()
    fx.simulate(system, found.duration, rtol=1e-8)
    single = time.perf_counter() - start
    model = fx.linearize(system, None, ["pid.setpoint"], outputs, period=PERIOD)
    error = np.max(np.abs(found.response / model.frequency_response(omega)[:, :, 0] - 1.0))
    print(
        f"{count} frequencies   {first:.2f} s with compilation, {spent:.2f} s again (bar {BAR} s)"
    )
    print(f"beside one simulation of the longest run: {spent / single:.1f} times")
    print(f"largest relative error to the sampled linear model: {error:.1e}")


if __name__ == "__main__":
    main()
