"""A compliant gripper: two fingers on leaf springs close on a ball by a tendon, and lift it.

Each finger hangs on two parallel leaves, which are its joint and its spring. A tendon between the
fingers becomes shorter than their distance and squeezes a ball of rubber between the pads. Friction
carries the ball when the palm moves up, if its weight and the inertia of the lift are below the
coefficient of friction times the forces of both pads. Pads that are too smooth leave it on the
table.

Run it with ``python examples/mechanisms/gripper.py``. It saves ``gripper.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flexure as fx

STEEL = fx.Material.common("stainless steel 301")
LENGTH, WIDTH, THICKNESS = 0.05, 0.01, 2.5e-4  # of each leaf, in m
RADIUS, MASS = 0.015, 0.03  # of the ball, in m and kg
PAD = (0.006, 0.02, 0.03)  # of each finger, in m
GAP = 0.002  # between pad and ball while the gripper is open, in m
TENDON, PULL = 500.0, 6.0  # stiffness in N/m, and force in N when the pads touch
LIFT, DURATION, START, LAST = 0.04, 0.25, 0.15, 0.6  # m, s
GRAVITY, RUBBER = 9.81, 2e4  # m/s^2, and stiffness of the ball in N/m
PADS = ("left_pad", "right_pad")


#: Axes of frames for leaves that hang down: x downwards.
DOWN = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
#: Axes of the table: z, out of its half-space, upwards.
UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def add_finger(
    builder: fx.PlantBuilder, palm: fx.Body, name: str, x: float, spacing: float = 0.004
) -> fx.Body:
    """Hang a finger on two leaves below a place on the palm."""
    finger = builder.add_body(name, fx.SpatialInertia.solid_box(0.02, size=PAD))
    below = builder.add_frame(f"below_{name}", palm, (x, -LENGTH, 0.0))
    builder.add_joint(fx.PlanarJoint(f"{name}_motion", below, finger))
    for number, shift in enumerate((-0.5 * spacing, 0.5 * spacing), start=1):
        places = (palm, (x + shift, 0.0, 0.0)), (finger, (shift, 0.0, 0.0))
        ends = [
            builder.add_frame(f"{name}{number}_{body.name}", body, (DOWN, place))
            for body, place in places
        ]
        leaf = fx.LeafSpring(
            f"{name}_leaf{number}",
            *ends,
            length=LENGTH,
            width=WIDTH,
            thickness=THICKNESS,
            material=STEEL,
            planar=True,
            damping_time=1e-3,
        )
        builder.add_force_element(leaf)
    return finger


def build(friction: float = 0.5) -> fx.Diagram:
    """Build the gripper with its drive."""
    builder = fx.PlantBuilder("gripper", gravity=(0.0, -GRAVITY, 0.0))
    palm = builder.add_body("palm", fx.SpatialInertia.solid_box(0.035, size=(0.06, 0.004, 0.02)))
    above = builder.add_frame("above", builder.world, (0.0, LENGTH + RADIUS, 0.0))
    lift = builder.add_joint(fx.PrismaticJoint("lift", above, palm, axis=(0, 1, 0)))
    builder.add_constraint(fx.constraints.PrescribedMotion("drive", lift))
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(MASS, radius=RADIUS))
    rest = builder.add_frame("rest", builder.world, (0.0, RADIUS, 0.0))
    builder.add_joint(fx.PlanarJoint("flight", rest, ball))
    fingers = [
        add_finger(builder, palm, name, side * (RADIUS + GAP + 0.5 * PAD[0]))
        for name, side in (("left", -1.0), ("right", 1.0))
    ]
    closed = 2.0 * RADIUS + PAD[0]
    ends = fingers[0], (0.0, 0.0, 0.0), fingers[1], (0.0, 0.0, 0.0)
    builder.add_force_element(
        fx.Cable("tendon", *ends, free_length=closed - PULL / TENDON, stiffness=TENDON, damping=5.0)
    )
    table = builder.add_frame("table", builder.world, (UP, (0.0, 0.0, 0.0)))
    rubber, pad = fx.BodyShape.sphere(radius=RADIUS), fx.BodyShape.box(size=PAD)
    others: list[tuple[str, fx.Body | fx.Frame, Any]] = [
        ("floor", table, "half_space"),
        *zip(PADS, fingers, (pad, pad), strict=True),
    ]
    for name, body, shape in others:
        contact = fx.Contact(
            name,
            ball,
            rubber,
            body,
            shape,
            stiffness=RUBBER,
            damping=0.5,
            friction=friction,
            transition_velocity=1e-4,
        )
        builder.add_force_element(contact)
    diagram = fx.DiagramBuilder("bench")
    diagram.add(builder.build())
    diagram.add(fx.MinimumJerkProfile("course", at=START, to=LIFT, duration=DURATION))
    diagram.add(fx.Multiplexer("drive", [1, 1, 1]))
    for number, port in enumerate(("y", "velocity", "acceleration"), start=1):
        diagram.connect(f"course.{port}", f"drive.u{number}")
    diagram.connect("drive.y", "gripper.drive")
    return diagram.build()


def main() -> None:
    """Lift with rough and with smooth pads, check, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    runs: dict[str, fx.results.SimulationResult] = {}
    for label, friction in (("rough", 0.5), ("smooth", 0.02)):
        bench = build(friction)
        runs[label] = fx.simulate(bench, LAST, rtol=1e-6)
    heights = {label: run["gripper.ball.position"][:, 1] - RADIUS for label, run in runs.items()}
    rough = runs["rough"]
    held = rough["gripper.left_pad.load"][-1]
    stiffness = 2.0 * 12.0 * STEEL.youngs_modulus * WIDTH * THICKNESS**3 / 12.0 / LENGTH**3
    # Pads sink into the ball, which releases the tendon and bends the leaves further.
    by_hand = (PULL - stiffness * GAP) / (1.0 + (2.0 * TENDON + stiffness) / RUBBER)
    print(f"force of each pad {held:.2f} N, by hand {by_hand:.2f} N")
    needed = MASS * (GRAVITY + 10.0 / np.sqrt(3.0) * LIFT / DURATION**2)
    print(f"friction needed {needed:.3f} N, rough {by_hand:.2f} N, smooth {0.04 * by_hand:.3f} N")
    for label, height in heights.items():
        print(f"{label}: lifted by {1e3 * height[-1]:.2f} mm of {1e3 * LIFT:.0f} mm")
    draw(bench.get_system("gripper"), runs, heights, folder / "gripper.png")

    assert abs(held / by_hand - 1.0) < 0.01, "the pads press otherwise"
    assert abs(heights["rough"][-1] - LIFT) < 2e-4, "the ball slips through rough pads"
    assert abs(heights["smooth"][-1]) < 1e-4, "smooth pads lift the ball"


def draw(
    plant: Any,
    runs: dict[str, fx.results.SimulationResult],
    heights: dict[str, NDArray[np.float64]],
    file: Path,
) -> None:
    """Save the lifted ball, its height, and the forces of the pads."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13.0, 4.0), layout="constrained")
    context = plant.create_default_context()
    for name in ("lift.translation", "flight.q", "left_motion.q", "right_motion.q"):
        context.set(name, runs["rough"][f"gripper.{name}"][-1])
    fx.plot_mechanism(plant, context, view="xy", ax=axes[0])
    for label, run in runs.items():
        axes[1].plot(run.time, 1e3 * heights[label], label=f"{label} pads")
        axes[2].plot(run.time, run["gripper.left_pad.load"], label=f"{label} pads")
    axes[1].set(xlabel="time in s", ylabel="height of the ball in mm")
    axes[2].set(xlabel="time in s", ylabel="force of a pad in N")
    for ax in axes[1:]:
        ax.legend(frameon=False)
        ax.grid(True, color="#dddddd")
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
