"""Closed loops drawn at random from the whole library: controller, actuator, plant and sensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import flexure as fx

PERIOD = 0.02
Rng = np.random.Generator
_STEEL = fx.Material(193e9, poissons_ratio=0.3, density=7880.0)


@dataclass(frozen=True)
class Loop:
    """A drawn loop, in which a wire is opened at the output of the controller.

    Attributes
    ----------
    diagram : Diagram
        The loop, driven by the block ``target``.
    output : str
        Path of what is measured.
    gain : str
        Path of a parameter that moves the output.
    kinds : tuple of str
        What was drawn for controller, actuator, plant and sensor.
    """

    diagram: fx.Diagram
    output: str
    gain: str
    kinds: tuple[str, ...]

    @property
    def period(self) -> float | None:
        """Period of the blocks that are sampled; None where there are none."""
        sampled = {"sampled", "hold", "unit delay", "delay"}
        return PERIOD if sampled & set(self.kinds) else None


def _pid(rng: Rng, **options: Any) -> fx.PIDController:
    kp, ki, kd = rng.uniform(0.5, 4.0), rng.uniform(0.1, 3.0), rng.uniform(0.0, 0.5)
    return fx.PIDController("control", kp=kp, ki=ki, kd=kd, derivative_filter=0.05, **options)


_CONTROLLERS: dict[str, Callable[[Rng], fx.LeafSystem]] = {
    "pid": _pid,
    "limited": lambda rng: _pid(rng, lower=-3.0, upper=3.0),
    "conditional": lambda rng: _pid(rng, lower=-3.0, upper=3.0, anti_windup="conditional"),
    "sampled": lambda rng: fx.PIDController(
        "control", kp=rng.uniform(0.5, 4.0), ki=rng.uniform(0.1, 3.0), period=PERIOD
    ),
}
_SHAPERS: dict[str, Callable[[str, Rng], fx.LeafSystem | None]] = {
    "none": lambda name, rng: None,
    "saturation": lambda name, rng: fx.Saturation(name, -rng.uniform(1, 5), rng.uniform(1, 5)),
    "rate": lambda name, rng: fx.RateLimiter(name, rng.uniform(2.0, 20.0), 10.0, 0.02),
    "dead zone": lambda name, rng: fx.DeadZone(name, -0.01, rng.uniform(0.01, 0.05)),
    "quantizer": lambda name, rng: fx.Quantizer(name, 10.0 ** rng.uniform(-4.0, -2.0)),
    "hold": lambda name, rng: fx.ZeroOrderHold(name, PERIOD),
    "unit delay": lambda name, rng: fx.UnitDelay(name, PERIOD),
    "delay": lambda name, rng: fx.TimeDelay(name, 2.0 * PERIOD, period=PERIOD),
    "lag": lambda name, rng: fx.FirstOrderLag(name, rng.uniform(0.01, 0.2)),
}


def _second_order(rng: Rng) -> tuple[fx.System, str, str, str]:
    w, zeta = rng.uniform(1.0, 6.0), rng.uniform(0.1, 1.0)
    plant = fx.TransferFunction("plant", [w * w], [1.0, 2.0 * zeta * w, w * w])
    return plant, "plant.u", "plant.y", "control.kp"


def _arm(rng: Rng) -> tuple[fx.PlantBuilder, fx.Joint]:
    plant = fx.PlantBuilder("plant", gravity=(0, 0, -9.81))
    inertia = fx.SpatialInertia.solid_box(rng.uniform(0.5, 2.0), size=(0.02, 0.4, 0.05))
    arm = plant.add_body("arm", inertia, com=(0, 0.2, 0))
    joint = plant.add_joint(fx.RevoluteJoint("axis", plant.world, arm, axis=(1, 0, 0)))
    stiffness, damping = rng.uniform(5.0, 20.0), rng.uniform(0.2, 1.0)
    plant.add_force_element(fx.JointSpring("spring", joint, stiffness=stiffness, damping=damping))
    plant.add_actuator("motor", joint)
    return plant, joint


def _mechanism(rng: Rng) -> tuple[fx.System, str, str, str]:
    return _arm(rng)[0].build(), "plant.motor", "plant.axis.angle", "plant.spring.stiffness"


def _stopped(rng: Rng) -> tuple[fx.System, str, str, str]:
    plant, joint = _arm(rng)
    stop = fx.RigidStop("stop", joint, lower=-0.3, upper=0.4, restitution=0.5)
    plant.add_constraint(stop)
    return plant.build(), "plant.motor", "plant.axis.angle", "plant.spring.stiffness"


def _flexure(rng: Rng) -> tuple[fx.System, str, str, str]:
    plant = fx.PlantBuilder("plant", gravity=(0, 0, 0))
    body = plant.add_body("tip", fx.SpatialInertia.solid_box(0.2, size=(0.02, 0.02, 0.02)))
    joint = plant.add_joint(fx.PrismaticJoint("axis", plant.world, body, axis=(0, 1, 0)))
    foot = plant.add_frame("foot", plant.world, (-0.1, 0, 0))
    leaf = fx.LeafSpring(
        "leaf", foot, body, length=0.1, width=0.02, thickness=rng.uniform(3e-4, 6e-4),
        material=_STEEL, damping_time=rng.uniform(1e-2, 5e-2),
    )  # fmt: skip
    plant.add_force_element(leaf)
    plant.add_actuator("motor", joint)
    return plant.build(), "plant.motor", "plant.axis.translation", "plant.leaf.thickness"


_PLANTS = {
    "second order": _second_order,
    "mechanism": _mechanism,
    "stop": _stopped,
    "flexure": _flexure,
}


def draw_loop(rng: Rng) -> Loop:
    """Draw a loop: its blocks, how they are wired, and the values of all parameters."""
    names = (
        str(rng.choice([*_CONTROLLERS])),
        str(rng.choice([*_SHAPERS])),
        str(rng.choice([*_PLANTS], p=[0.5, 0.2, 0.15, 0.15])),
        str(rng.choice([*_SHAPERS])),
    )
    builder = fx.DiagramBuilder("loop")
    plant, entry, output, gain = _PLANTS[names[2]](rng)
    target = fx.Step("target", at=0.1, to=rng.uniform(0.2, 1.0))
    builder.add_all(target, _CONTROLLERS[names[0]](rng), plant)
    builder.connect("target.y", "control.setpoint")
    wire = "control.u"
    for name, shaper, after in (
        ("actuator", _SHAPERS[names[1]], entry),
        ("sensor", _SHAPERS[names[3]], "control.measurement"),
    ):
        block = shaper(name, rng)
        if block is not None:
            builder.add(block)
            builder.connect(wire, f"{name}.u")
            wire = f"{name}.y"
        builder.connect(wire, after)
        wire = output
    return Loop(builder.build(), output, gain, names)


__all__ = ["PERIOD", "Loop", "draw_loop"]
