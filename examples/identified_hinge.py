"""A hinge identified from noisy records, and a controller that is tuned on the result.

A door swings from two angles, and its angle is measured with noise. From these records, `fx.fit`
finds the constants of the hinge with their standard errors. A PID controller is tuned on the door
that was found, with a bound on the peak of the sensitivity, and then moves the true door.

Run it with ``python examples/identified_hinge.py``. It saves ``identified_hinge.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

TRUE = {"spring_constant": 3.4, "viscous_friction": 0.9, "dynamic_friction_torque": 0.3}
GUESS = {"spring_constant": 2.0, "viscous_friction": 2.0, "dynamic_friction_torque": 0.1}
NOISE = 3e-3  # rad
TIMES = np.linspace(0.0, 6.0, 301)
MAX_SENSITIVITY = 1.5


def build_door(constants: dict[str, float]) -> fx.Plant:
    """Hang a panel on a hinge that pulls it to 0 rad; the catch and static friction are off."""
    builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    panel = builder.add_body(
        "panel", fx.SpatialInertia.solid_box(9.0, size=(0.02, 0.6, 0.7)), com=(0.0, 0.3, 0.0)
    )
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    config = fx.DoorHingeConfig(
        spring_zero_angle_rad=0.0,
        static_friction_torque=0.0,
        catch_torque=0.0,
        motion_threshold=0.05,
        **constants,
    )
    builder.add_force_element(fx.DoorHinge("hinge", axis, config))
    builder.add_actuator("motor", axis)
    return builder.build()


def records() -> list[dict[str, np.ndarray]]:
    """Measure the true door as it swings from two angles."""
    rng = np.random.default_rng(5)
    found = []
    for angle in (1.0, -0.6):
        door = build_door(TRUE)
        context = door.create_default_context()
        context.set("axis.angle", angle)
        context.set("motor", 0.0)
        swing = fx.simulate(door, TIMES[-1], context=context, rtol=1e-8).sample("axis.angle", TIMES)
        measured = swing + NOISE * rng.normal(size=TIMES.size)
        found.append({"time": TIMES, "axis.angle": measured})
    return found


def identify() -> fx.results.Fit:
    """Fit the constants of the hinge to the records, from a guess that is far off."""
    door = build_door(GUESS)
    begins = []
    for record in records():
        context = door.create_default_context()
        context.set("axis.angle", record["axis.angle"][0])
        context.set("motor", 0.0)
        begins.append(context)
    wanted = [f"hinge.{name}" for name in TRUE]
    return fx.fit(door, records(), [*wanted, "axis.angle"], context=begins)


def build(constants: dict[str, float] = TRUE) -> fx.Diagram:
    """Let a controller turn a door to a target; the motor needs 50 ms for its torque."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        build_door(constants),
        fx.Step("target", at=0.5, to=np.deg2rad(40.0)),
        fx.PIDController("pid", kp=1.0, ki=1.0, kd=1.0, setpoint_weight=0.3),
        fx.FirstOrderLag("drive", time_constant=0.05),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect("pid.u", "drive.u")
    builder.connect("drive.y", "door.motor")
    return builder.build()


def main() -> None:
    """Identify, tune, move the true door, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    found = identify()
    print(found)
    constants = {name: found[f"hinge.{name}"] for name in TRUE}

    model = build(constants)
    tuning = fx.tune_pid(model, "pid", max_sensitivity=MAX_SENSITIVITY)
    print(tuning)
    servo = build()
    context = servo.create_default_context()
    for gain in ("kp", "ki", "kd"):
        context.set(f"pid.{gain}", getattr(tuning, gain))
    loop = fx.loop_gain(servo, "pid.u", context=context)
    peak = 1.0 / fx.margins(loop).modulus_margin
    result = fx.simulate(servo, 8.0, context=context)
    info = result.step_info("door.axis.angle")
    print(info)
    print(f"peak of the sensitivity with the true door: {peak:.3f}")

    result.plot("door.axis.angle", "pid.u").savefig(folder / "identified_hinge.png", dpi=150)
    for name, true in TRUE.items():
        low, high = found.confidence_intervals(0.999)[f"hinge.{name}"]
        assert low < true < high, f"{name} is not where the fit says"
    assert peak < 1.05 * MAX_SENSITIVITY, "the true door is less robust than the one that was found"
    assert info.overshoot < 25.0, "the door overshoots"
    assert abs(info.steady_state_error) < 1e-3, "the door does not reach its target"


if __name__ == "__main__":
    main()
