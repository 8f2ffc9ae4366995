"""A compliant gripper: two fingers on leaf springs close on a ball by a tendon, and lift it.

Each finger hangs on two parallel leaves, which are its joint and its spring. A tendon between the
fingers becomes shorter than their distance and squeezes a ball of rubber between the pads. Friction
carries it when the palm moves up: it does so as long as the weight, and the inertia of the lift, are
below the coefficient of friction times the forces of both pads. With pads that are too smooth the
ball stays on the table.

Run it with ``python examples/gripper.py``. It saves ``gripper.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

STEEL = fx.Material.common("stainless steel 301")
LENGTH, WIDTH, THICKNESS = 0.05, 0.01, 2.5e-4  # of each leaf, in m
RADIUS, MASS = 0.015, 0.03  # of the ball, in m and kg
PAD = (0.006, 0.02, 0.03)  # of each finger, in m
GAP = 0.002  # between pad and ball while the gripper is open, in m
TENDON, PULL = 2e4, 6.0  # stiffness in N/m, and force in N when the pads touch
LIFT, DURATION, START, LAST = 0.04, 0.25, 0.15, 0.6  # m, s
GRAVITY = 9.81
PADS = ("left_pad", "right_pad")


def build(friction: float) -> fx.Diagram:
    """Build the gripper with its drive."""
    builder = fx.PlantBuilder("gripper", gravity=(0.0, -GRAVITY, 0.0))
    palm = builder.add_body("palm", fx.SpatialInertia.solid_box(0.2, size=(0.1, 0.01, 0.02)))
    above = builder.add_frame("above", builder.world, (0.0, LENGTH + RADIUS, 0.0))
    lift = builder.add_joint(fx.PrismaticJoint("lift", above, palm, axis=(0, 1, 0)))
    builder.add_constraint(fx.PrescribedMotion("drive", lift))
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(MASS, radius=RADIUS))
    rest = builder.add_frame("rest", builder.world, (0.0, RADIUS, 0.0))
    builder.add_joint(fx.PlanarJoint("flight", rest, ball))
    shape = fx.BodyShape.sphere(radius=RADIUS)
    builder.add_shape(ball, shape.colored("orange"))
    rubber = {"stiffness": 2e4, "damping": 0.5, "friction": friction, "transition_velocity": 1e-4}
    builder.add_force_element(
        fx.Contact("table", ball, shape, _up(builder, builder.world), "half_space", **rubber)
    )
    fingers = []
    for name, side in (("left", -1.0), ("right", 1.0)):
        x = side * (RADIUS + GAP + 0.5 * PAD[0])
        finger = builder.add_body(name, fx.SpatialInertia.solid_box(0.02, size=PAD))
        builder.add_shape(finger, fx.BodyShape.box(size=PAD).colored("gray"))
        joint = fx.PlanarJoint(
            f"{name}_motion", builder.add_frame(f"below_{name}", palm, (x, -LENGTH, 0.0)), finger
        )
        builder.add_joint(joint)
        for number, offset in enumerate((-1.0, 1.0)):
            ends = [
                builder.add_frame(
                    f"{name}_{number}_{body.name}",
                    body,
                    (np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), place),
                )
                for body, place in (
                    (palm, (x + 0.002 * offset, 0.0, 0.0)),
                    (finger, (0.002 * offset, 0.0, 0.0)),
                )
            ]
            builder.add_force_element(
                fx.LeafSpring(
                    f"{name}_leaf{number}",
                    *ends,
                    length=LENGTH,
                    width=WIDTH,
                    thickness=THICKNESS,
                    material=STEEL,
                    planar=True,
                    damping_time=1e-3,
                )
            )
        box = fx.BodyShape.box(size=PAD)
        builder.add_force_element(fx.Contact(f"{name}_pad", ball, shape, finger, box, **rubber))
        fingers.append(finger)
    width = 2.0 * (RADIUS + 0.5 * PAD[0])
    builder.add_force_element(
        fx.Cable(
            "tendon",
            fingers[0],
            (0.0, 0.0, 0.0),
            fingers[1],
            (0.0, 0.0, 0.0),
            free_length=width - PULL / TENDON,
            stiffness=TENDON,
            damping=5.0,
        )
    )
    builder.add_energy_ledger()
    plant = builder.build()
    diagram = fx.DiagramBuilder("bench")
    diagram.add(plant)
    diagram.add(fx.FunctionBlock("course", course, inputs={}, output_size=3, with_time=True))
    diagram.connect("course.y", "gripper.drive")
    return diagram.build()
