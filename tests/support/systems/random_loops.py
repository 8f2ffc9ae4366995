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
        sampled = {"sampled", "hold", "unit delay", "delay", "hold and delay", "observer"}
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


def _composed(
    name: str, entries: tuple[str, ...], end: str, wires: tuple[str, ...], *blocks: fx.LeafSystem
) -> fx.Diagram:
    """Return blocks with some wires, such as "a.y b.u", between an input "u" and an output "y"."""
    builder = fx.DiagramBuilder(name)
    builder.add_all(*blocks)
    for wire in wires:
        builder.connect(*wire.split())
    builder.export_input(*entries, name="u")
    builder.export_output(end, name="y")
    return builder.build()


def _late(name: str, rng: Rng) -> fx.Diagram:
    """Return a unit delay behind a hold."""
    blocks = fx.ZeroOrderHold("hold", PERIOD), fx.UnitDelay("delay", PERIOD)
    return _composed(name, ("hold.u",), "delay.y", ("hold.y delay.u",), *blocks)


def _disturbed(name: str, rng: Rng) -> fx.Diagram:
    """Return a sum with a record."""
    record = {"t": np.linspace(0.0, 0.5, 6), "w": rng.uniform(-0.3, 0.3, 6)}
    blocks = fx.Sum("sum"), fx.Recorded("record", record, time="t")
    return _composed(name, ("sum.u1",), "sum.y", ("record.w sum.u2",), *blocks)


def _three_levels(name: str, rng: Rng) -> fx.Diagram:
    """Return a relay with a dead zone: two relays, one for each sign."""
    on, level = rng.uniform(0.05, 0.3), rng.uniform(0.5, 3.0)
    up = fx.Relay("up", on, 0.5 * on, on_value=level)
    down = fx.Relay("down", -0.5 * on, -on, on_value=0.0, off_value=-level)
    wires = "up.y sum.u1", "down.y sum.u2"
    return _composed(name, ("up.u", "down.u"), "sum.y", wires, fx.Sum("sum"), up, down)


def _observed(name: str, rng: Rng) -> fx.Diagram:
    """Return a sampled observer of a position that moves steadily."""
    model, gain = [[1.0, PERIOD], [0.0, 1.0]], [rng.uniform(0.4, 0.8), rng.uniform(2.0, 8.0)]
    none, shown = np.zeros((2, 0)), [[1.0, 0.0]]
    observer = fx.LuenbergerObserver("observer", model, none, shown, gain=gain, period=PERIOD)
    wires = ("observer.estimate pick.u",)
    return _composed(name, ("observer.y",), "pick.y", wires, observer, fx.MatrixGain("pick", shown))


_SHAPERS: dict[str, Callable[[str, Rng], fx.System | None]] = {
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
_MORE_SHAPERS = _SHAPERS | {
    "hold and delay": _late,
    "record": _disturbed,
    "three levels": _three_levels,
    "observer": _observed,
}


def _second_order(rng: Rng) -> tuple[fx.System, str, str, str]:
    w, zeta = rng.uniform(1.0, 6.0), rng.uniform(0.1, 1.0)
    plant = fx.TransferFunction("plant", [w * w], [1.0, 2.0 * zeta * w, w * w])
    return plant, "plant.u", "plant.y", "control.kp"


def _arm(rng: Rng) -> tuple[fx.PlantBuilder, fx.multibody.Joint]:
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


def _bearing(rng: Rng) -> tuple[fx.System, str, str, str]:
    plant, joint = _arm(rng)
    mu = rng.uniform(0.05, 0.3)
    plant.add_constraint(fx.BearingFriction("bearing", joint, friction=mu, radius=0.02))
    return plant.build(), "plant.motor", "plant.axis.angle", "plant.spring.stiffness"


def _carriage(rng: Rng) -> tuple[fx.PlantBuilder, fx.Body]:
    plant = fx.PlantBuilder("plant", gravity=(0, 0, -9.81))
    mass = rng.uniform(0.3, 1.0)
    body = plant.add_body("ball", fx.SpatialInertia.solid_sphere(mass, radius=0.05))
    joint = plant.add_joint(fx.PrismaticJoint("axis", plant.world, body, axis=(0, 0, 1)))
    stiffness, damping = rng.uniform(20.0, 60.0), rng.uniform(1.0, 3.0)
    plant.add_force_element(fx.JointSpring("spring", joint, stiffness=stiffness, damping=damping))
    plant.add_actuator("motor", joint)
    return plant, body


def _touching(rng: Rng) -> tuple[fx.System, str, str, str]:
    plant, ball = _carriage(rng)
    floor, shape = (
        plant.add_frame("floor", plant.world, (0, 0, -0.1)),
        fx.BodyShape.sphere(radius=0.05),
    )
    pair, stiffness = (ball, shape, floor, "half_space"), 10.0 ** rng.uniform(3.0, 4.5)
    plant.add_force_element(fx.Contact("touch", *pair, stiffness=stiffness, damping=0.5))
    return plant.build(), "plant.motor", "plant.axis.translation", "plant.spring.stiffness"


def _striking(rng: Rng) -> tuple[fx.System, str, str, str]:
    plant, ball = _carriage(rng)
    floor, shape = (
        plant.add_frame("floor", plant.world, (0, 0, -0.1)),
        fx.BodyShape.sphere(radius=0.05),
    )
    pair = ball, shape, floor, "half_space"
    plant.add_constraint(fx.RigidContact("touch", *pair, restitution=rng.uniform(0.0, 0.6)))
    return plant.build(), "plant.motor", "plant.axis.translation", "plant.spring.stiffness"


def _flexible(rng: Rng) -> tuple[fx.System, str, str, str]:
    plant, ball = _carriage(rng)
    strip, ends = fx.PlateMesh.rectangle(0.1, 0.02, cells=(4, 1)), {"root": "left", "tip": "right"}
    body = fx.FlexibleBody.from_plate(
        "strip", strip, rng.uniform(5e-4, 1e-3), _STEEL, ends, modes=0, frames={"root": ball},
        damping_ratio=0.05,
    )  # fmt: skip
    plant.add_assembly(body)
    return plant.build(), "plant.motor", "plant.axis.translation", "plant.spring.stiffness"


_PLANTS = {
    "second order": _second_order,
    "mechanism": _mechanism,
    "stop": _stopped,
    "flexure": _flexure,
}
_MORE_PLANTS = _PLANTS | {
    "bearing": _bearing,
    "contact": _touching,
    "rigid contact": _striking,
    "flexible body": _flexible,
}


def draw_loop(rng: Rng, *, more: bool = False) -> Loop:
    """Draw a loop: its blocks, how they are wired, and the values of all parameters.

    Out of more kinds, contacts, friction, flexible bodies, records and composed blocks are drawn,
    too.
    """
    shapers, plants = (_MORE_SHAPERS, _MORE_PLANTS) if more else (_SHAPERS, _PLANTS)
    shares = [0.2, 0.1, 0.1, 0.1, 0.15, 0.15, 0.15, 0.05] if more else [0.5, 0.2, 0.15, 0.15]
    names = (
        str(rng.choice([*_CONTROLLERS])),
        str(rng.choice([*shapers])),
        str(rng.choice([*plants], p=shares)),
        str(rng.choice([*shapers])),
    )
    builder = fx.DiagramBuilder("loop")
    plant, entry, output, gain = plants[names[2]](rng)
    target = fx.Step("target", at=0.1, to=rng.uniform(0.2, 1.0))
    builder.add_all(target, _CONTROLLERS[names[0]](rng), plant)
    builder.connect("target.y", "control.setpoint")
    wire = "control.u"
    for name, shaper, after in (
        ("actuator", shapers[names[1]], entry),
        ("sensor", shapers[names[3]], "control.measurement"),
    ):
        block = shaper(name, rng)
        if block is not None:
            builder.add(block)
            builder.connect(wire, f"{name}.u")
            wire = f"{name}.y"
        builder.connect(wire, after)
        wire = output
    return Loop(builder.build(), output, gain, names)
