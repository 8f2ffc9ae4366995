"""A motor swings a compliant door to 60 degrees against spring, catch and friction of its hinge.

Run it with ``python examples/compliant_door.py``. It prints the metrics of the step response and
saves ``compliant_door_step.png``, ``compliant_door_diagram.png`` and ``compliant_door.gif``. Any
parameter can be changed by its path::

    python examples/compliant_door.py --set door.hinge.spring_constant=2 --set pid.kp=80
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

TARGET = np.deg2rad(60.0)


def build() -> fx.Diagram:
    """Make a plant of the door, and wire it with target and controller."""
    plant = fx.PlantBuilder("door", gravity=(0, 0, -9.81))
    inertia = fx.SpatialInertia.solid_box(mass=9.0, size=(0.02, 0.6, 0.7))
    panel = plant.add_body("panel", inertia, com=(0, 0.3, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_force_element(fx.DoorHinge("hinge", axis, spring_constant=3.0))
    plant.add_actuator("motor", axis)
    plant.add_shape(panel, fx.BodyShape.sphere(radius=0.025), (-0.03, 0.54, 0.0), color="gray")
    plant.add_shape(plant.world, fx.BodyShape.box(size=(0.06, 0.06, 0.8)), (0.06, -0.02, 0.0))

    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        plant.build(),
        fx.Step("target", at=0.5, to=TARGET),
        fx.PIDController("pid", kp=60.0, ki=20.0, kd=12.0),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect("pid.u", "door.motor")
    return builder.build()


def run(settings: list[str], folder: Path) -> fx.results.StepResponse:
    """Simulate with changed parameters, print, save the pictures, and return the response."""
    servo = build()
    context = servo.create_default_context()
    for setting in settings:
        path, _, value = setting.partition("=")
        context.set(path.strip(), float(value))
    result = fx.simulate(servo, 10.0, context=context, rtol=1e-7)
    response = result.step_response("door.axis.angle")
    print(result.message)
    print(response.info)
    step, diagram = folder / "compliant_door_step.png", folder / "compliant_door_diagram.png"
    response.plot(path=step)
    servo.plot(depth=2, path=diagram)
    film = folder / "compliant_door.gif"
    fx.animate(result, path=film, fps=5)
    print(f"saved {step}, {diagram} and {film}")
    return response


def main() -> None:
    """Read the command line, run, and check the result of the unchanged door."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="change a parameter"
    )
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pictures")
    arguments = parser.parse_args()
    try:
        response = run(arguments.set, arguments.folder)
    except (fx.errors.FlexureError, ValueError) as error:
        parser.error(str(error))
    if not arguments.set:
        info = response.info
        assert abs(info.steady_state_error) < np.deg2rad(1.0), "the door does not reach 60 degrees"
        assert 0.1 < info.rise_time < 1.5, f"unexpected rise time {info.rise_time:.3g} s"
        assert info.overshoot < 15.0, f"unexpected overshoot {info.overshoot:.3g} %"


if __name__ == "__main__":
    main()
