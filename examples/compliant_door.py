"""A motor swings a compliant door to 60 degrees against spring, catch and friction of its hinge.

Run it with ``python examples/compliant_door.py``. It prints the figures of the step response and
saves two pictures: ``compliant_door_step.png`` and ``compliant_door_diagram.png``. Any parameter
can be changed by its path::

    python examples/compliant_door.py --set hinge.spring_constant=3 --set pid.kp=80
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

TARGET = np.deg2rad(60.0)


class Door(fx.LeafSystem):
    """A rigid door on an axis: I θ̈ = hinge torque + motor torque."""

    def __init__(self, name: str = "door", inertia: float = 1.5) -> None:
        super().__init__(name)
        self.inertia = self.declare_numeric_parameter(
            "inertia", inertia, unit="kg m^2", lower=0.0, exclusive=True, doc="about the axis"
        )
        self.state = self.declare_continuous_state(q=1, v=1, element_names=["angle", "rate"])
        self.hinge_torque = self.declare_vector_input("hinge_torque", 1, unit="N m")
        self.motor_torque = self.declare_vector_input("motor_torque", 1, unit="N m")
        self.angle = self.declare_vector_output("angle", 1, self.state.q, unit="rad")
        self.rate = self.declare_vector_output("rate", 1, self.state.v, unit="rad/s")

    def calc_time_derivatives(self, context: fx.Context) -> list[object]:
        """Return (θ̇, θ̈)."""
        torque = self.hinge_torque(context) + self.motor_torque(context)
        return [self.state.v(context), torque / self.inertia(context)]


def build() -> fx.Diagram:
    """Wire target, controller, door and hinge."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Step("target", at=0.5, to=TARGET),
        fx.PIDController("pid", kp=60.0, ki=20.0, kd=12.0),
        Door("door"),
        fx.DoorHinge("hinge"),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "door.motor_torque")
    builder.connect("door.angle", "pid.measurement")
    builder.connect("door.angle", "hinge.angle")
    builder.connect("door.rate", "hinge.rate")
    builder.connect("hinge.torque", "door.hinge_torque")
    return builder.build()


def run(settings: list[str], folder: Path) -> fx.StepResponse:
    """Simulate with changed parameters, print, save the pictures, and return the response."""
    servo = build()
    context = servo.create_default_context()
    for setting in settings:
        path, _, value = setting.partition("=")
        context.set(path.strip(), float(value))
    result = fx.simulate(servo, 10.0, context, rtol=1e-7)
    response = result.step_response("door.angle", at=0.5, final=TARGET, target=TARGET)
    print(result.message)
    print(response.info)
    step, diagram = folder / "compliant_door_step.png", folder / "compliant_door_diagram.png"
    response.plot(path=step)
    servo.plot(path=diagram)
    print(f"saved {step} and {diagram}")
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
