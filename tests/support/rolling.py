"""Mechanisms that roll and skate: the benchmark bicycle, a sleigh, a disk."""

from __future__ import annotations

import numpy as np

import flexure as fx

GRAVITY = 9.81


def bicycle() -> fx.Plant:
    """Build the benchmark of Meijaard, Papadopoulos, Ruina and Schwab (2007), z down."""
    builder = fx.PlantBuilder("bicycle", gravity=(0.0, 0.0, GRAVITY))
    wheelbase, trail, tilt = 1.02, 0.08, np.pi / 10.0
    bodies = {
        "frame": (85.0, (0.3, 0.0, -0.9), (9.2, 11.0, 2.8, 0.0, 2.4, 0.0)),
        "fork": (4.0, (0.9, 0.0, -0.7), (0.05892, 0.06, 0.00708, 0.0, -0.00756, 0.0)),
        "rear": (2.0, (0.0, 0.0, 0.0), (0.0603, 0.12, 0.0603, 0.0, 0.0, 0.0)),
        "front": (3.0, (0.0, 0.0, 0.0), (0.1405, 0.28, 0.1405, 0.0, 0.0, 0.0)),
    }
    frame, fork, rear, front = (
        builder.add_body(name, fx.SpatialInertia(*numbers)) for name, numbers in bodies.items()
    )
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, frame))
    above, below = (
        builder.add_frame(f"head_{body.name}", body, (wheelbase + trail, 0.0, 0.0))
        for body in (frame, fork)
    )
    tilted = (np.sin(tilt), 0.0, np.cos(tilt))
    builder.add_joint(fx.RevoluteJoint("steer", above, below, axis=tilted))
    for wheel, on, x, radius in ((rear, frame, 0.0, 0.3), (front, fork, wheelbase, 0.35)):
        hub = builder.add_frame(f"{wheel.name}_hub", on, (x, 0.0, -radius))
        builder.add_joint(fx.RevoluteJoint(f"{wheel.name}_axle", hub, wheel, axis=(0, 1, 0)))
        builder.add_constraint(
            fx.RollingDisk(
                f"{wheel.name}_contact",
                builder.world,
                wheel,
                radius=radius,
                axis=(0, 1, 0),
                normal=(0, 0, -1),
            )
        )
    builder.add_energy_ledger()
    return builder.build()


def at_speed(plant: fx.Plant, speed: float) -> fx.Context:
    """Return a context of the bicycle that goes straight ahead."""
    context = plant.create_default_context()
    plant.joint("free").velocities.set(context, [0.0, 0.0, 0.0, speed, 0.0, 0.0])
    plant.joint("rear_axle").velocities.set(context, [-speed / 0.3])
    plant.joint("front_axle").velocities.set(context, [-speed / 0.35])
    return context


def disk(mass: float, radius: float, *, crown_radius: float = 0.0) -> fx.Plant:
    """Build a thin disk with the axis y that rolls on the ground."""
    builder = fx.PlantBuilder("coin")
    inertia = fx.SpatialInertia.solid_cylinder(mass, radius=radius, length=1e-9, axis="y")
    coin = builder.add_body("coin", inertia)
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, coin))
    builder.add_constraint(
        fx.RollingDisk(
            "rim",
            builder.world,
            coin,
            radius=radius,
            axis=(0, 1, 0),
            crown_radius=crown_radius,
        )
    )
    builder.add_energy_ledger()
    return builder.build()
