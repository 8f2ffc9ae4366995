"""Time of a nonlinear predictive controller per sample: a compliant arm with two motors.

Run it with ``python benchmarks/control/predictive_control.py [--quick] [--json FILE]``. Two links
turn in a plane, each driven through an elastic gear and with an elastic joint in its middle: six
coordinates, twelve states. The controller plans 20 periods of 20 ms within the limits of the
motors, with one real-time iteration per sample. The bar is 5 ms per sample at the median.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.versus.table import Row, formatted, write

PERIOD, HORIZON, BAR = 0.02, 20, 5.0  # s, 1, ms


def arm(name: str) -> fx.Plant:
    """Return the arm."""
    plant = fx.PlantBuilder(name, gravity=(0.0, 0.0, 0.0))
    end: Any = plant.world
    for k, (stiffness, mass) in enumerate([(400.0, 2.0), (150.0, 1.0)], start=1):
        disk = fx.SpatialInertia.solid_cylinder(5.0, radius=0.15, length=0.05)
        half = fx.SpatialInertia.solid_box(mass, size=(0.25, 0.04, 0.04))
        rotor = plant.add_body(f"rotor{k}", disk)
        inner = plant.add_body(f"inner{k}", half, com=(0.125, 0.0, 0.0))
        outer = plant.add_body(f"outer{k}", half, com=(0.125, 0.0, 0.0))
        middle = plant.add_frame(f"middle{k}", inner, (0.25, 0.0, 0.0))
        axis = (0, 0, 1)
        motor = plant.add_joint(fx.RevoluteJoint(f"motor{k}", end, rotor, axis, damping=0.1))
        gear = plant.add_joint(fx.RevoluteJoint(f"gear{k}", rotor, inner, axis, damping=0.2))
        bend = plant.add_joint(fx.RevoluteJoint(f"bend{k}", middle, outer, axis, damping=0.2))
        plant.add_force_element(fx.JointSpring(f"spring{k}", gear, stiffness=stiffness))
        plant.add_force_element(fx.JointSpring(f"leaf{k}", bend, stiffness=0.5 * stiffness))
        plant.add_actuator(f"torque{k}", motor)
        end = plant.add_frame(f"end{k}", outer, (0.25, 0.0, 0.0))
    return plant.build()


def measure(t_final: float) -> tuple[fx.NonlinearPredictiveController, float]:
    """Move the arm, and return the controller and how far from its goal the arm ends."""
    controller = fx.NonlinearPredictiveController(
        "mpc",
        arm("model"),
        period=PERIOD,
        horizon=HORIZON,
        inputs={"torque1": (-15.0, 15.0), "torque2": (-5.0, 5.0)},
        cost={"motor1.angle": 10.0, "motor2.angle": 10.0, "motor1.rate": 0.3, "motor2.rate": 0.3},
        change_cost={"torque1": 1e-4, "torque2": 1e-4},
        targets={"motor1.angle": 1.0, "motor2.angle": -0.8},
        final_weight=0.5,
    )
    builder = fx.DiagramBuilder("loop")
    plant = arm("arm")
    names = [name.removeprefix("tree.x[").removesuffix("]") for name in controller.state_names]
    builder.add_all(controller, plant, fx.Multiplexer("x", [1] * len(names)))
    for k, name in enumerate(names, start=1):
        joint, _, kind = name.rpartition("_")
        builder.connect(f"arm.{joint}.{'angle' if kind == 'q' else 'rate'}", f"x.u{k}")
    builder.add(fx.Demultiplexer("split", [1, 1]))
    builder.connect_chain("x", "mpc.state")
    builder.connect_chain("mpc.u", "split.u")
    builder.connect("split.y1", "arm.torque1")
    builder.connect("split.y2", "arm.torque2")
    result = fx.simulate(builder.build(), t_final)
    error = abs(result["arm.motor1.angle"][-1] - 1.0) + abs(result["arm.motor2.angle"][-1] + 0.8)
    return controller, float(error)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a shorter motion")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    controller, error = measure(1.0 if arguments.quick else 4.0)
    times = [1e3 * each for each in controller.solve_times][1:]  # the first plan is made of nothing
    title = "compliant arm, 12 states, 20 periods"
    note = f"{len(times)} samples; the arm ends {error:.1e} rad from its goal"
    rows = [
        Row(title, "time per sample, median [ms]", statistics.median(times), BAR, note=note),
        Row(title, "time per sample, largest [ms]", max(times)),
    ]
    print(formatted(rows))
    if arguments.json:
        write(rows, arguments.json)


if __name__ == "__main__":
    main()
