"""A bistable switch: a slider on two inclined leaves that snaps from one side to the other.

The leaves are clamped at both ends, and push against each other. Along the load path the force of
the finger grows to a limit point, falls below zero, and comes back: there are two places where the
switch stays by itself. A simulation of a finger that pushes and lets go ends in the second one,
after a snap at the limit point, and one that pushes less comes back.

Run it with ``python examples/flexures/bistable_switch.py``. It saves ``bistable_switch.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

POLYMER = fx.Material(1.5e9, poissons_ratio=0.4, density=1040.0, yield_strength=40e6)
SPAN, RISE = 0.03, 0.003  # of each leaf, in m
WIDTH, THICKNESS = 0.006, 0.0004
MASS, FRICTION = 0.002, 0.4  # of the slider, in kg and N s/m
SEGMENTS = 4
STROKE, ENERGIES = "slide.translation", ("left.stored_energy", "right.stored_energy")


def build() -> fx.Plant:
    """Put a slider on two leaves, which rise to it from both sides."""
    builder = fx.PlantBuilder("switch", gravity=(0.0, 0.0, 0.0))
    slider = builder.add_body(
        "slider", fx.SpatialInertia.solid_box(MASS, size=(0.004, 0.004, 0.006))
    )
    joint = builder.add_joint(
        fx.PrismaticJoint("slide", builder.world, slider, axis=(0, 1, 0), damping=FRICTION)
    )
    angle, length = np.arctan2(RISE, SPAN), np.hypot(SPAN, RISE)
    for side, turn, x in (("left", angle, -SPAN), ("right", np.pi - angle, SPAN)):
        R = np.array(
            [[np.cos(turn), -np.sin(turn), 0.0], [np.sin(turn), np.cos(turn), 0.0], [0.0, 0.0, 1.0]]
        )
        foot = builder.add_frame(f"{side}_foot", builder.world, (R, (x, -RISE, 0.0)))
        head = builder.add_frame(f"{side}_head", slider, (R, (0.0, 0.0, 0.0)))
        leaf = fx.LeafSpring(
            side,
            foot,
            head,
            length=length,
            width=WIDTH,
            thickness=THICKNESS,
            material=POLYMER,
            damping_time=1e-4,
            segments=SEGMENTS,
            planar=True,
        )
        builder.add_force_element(leaf)
    builder.add_actuator("finger", joint)
    return builder.build()


def press(force: float) -> fx.results.SimulationResult:
    """Push the slider down with a force, and let go when it has come to rest."""
    builder = fx.DiagramBuilder("test")
    builder.add_all(
        build(), fx.Step("push", at=0.01, to=-force), fx.Step("let_go", at=0.1, to=force)
    )
    builder.add(fx.Sum("finger", "++"))
    builder.connect_chain("push", "finger.u1")
    builder.connect_chain("let_go", "finger.u2")
    builder.connect("finger.y", "switch.finger")
    return fx.simulate(builder.build(), 0.2, rtol=1e-5)


def main() -> None:
    """Follow the path, press, check, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    switch = build()
    strokes = np.concatenate([[0.0, -1e-6], np.linspace(-1e-4, -0.006, 60)])
    path = fx.load_path(switch, {STROKE: strokes}, signals=["left.section_forces", *ENERGIES])
    stroke, force = path[STROKE], path.required[STROKE]

    length, sine = np.hypot(SPAN, RISE), RISE / np.hypot(SPAN, RISE)
    EI = POLYMER.youngs_modulus * WIDTH * THICKNESS**3 / 12.0
    axial = POLYMER.youngs_modulus * WIDTH * THICKNESS / length
    by_hand = 2.0 * (12.0 * EI / length**3 * (1.0 - sine**2) + axial * sine**2)
    at_start = force[path.stations[1]] / -1e-6
    euler = 4.0 * np.pi**2 * EI / length**2
    buckled = path.branch_points[0]
    pushed = -path["left.section_forces"][buckled.index, 3]
    print(f"stiffness at the start {at_start:.1f} N/m, closed form {by_hand:.1f} N/m")
    print(f"the leaves buckle at {pushed:.4f} N, Euler's load is {euler:.4f} N")

    k = int(np.flatnonzero(path.stable & (force < 0.0) & (stroke < -RISE))[0])
    there = float(np.interp(0.0, force[[k, k - 1]], stroke[[k, k - 1]]))
    stored = np.sum([path[energy] for energy in ENERGIES], axis=0)
    work = float(np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(stroke)))
    most = -float(force[stroke > -RISE].min())
    print(f"it also stays at {1e3 * there:.3f} mm, and snaps at {most:.3f} N at most")

    gentle, firm = (press(each) for each in (0.3, 0.6))
    ends = [float(result["switch.slide.translation"][-1]) for result in (gentle, firm)]
    print(f"pressed by 0.3 N and 0.6 N it ends at {1e3 * ends[0]:.3f} and {1e3 * ends[1]:.3f} mm")
    draw(path, gentle, firm, folder / "bistable_switch.png")

    assert abs(at_start / by_hand - 1.0) < 2e-3, "the switch has another stiffness"
    assert abs(pushed / euler - 1.0) < 5e-3, "the leaves buckle at another load"
    assert abs(work / (stored[-1] - stored[0]) - 1.0) < 0.01, "the work is not what is stored"
    assert abs(ends[0]) < 1e-6, "a gentle press does not come back"
    assert abs(ends[1] - there) < 1e-5, "a firm press ends elsewhere"


def draw(
    path: fx.results.LoadPath,
    gentle: fx.results.SimulationResult,
    firm: fx.results.SimulationResult,
    file: Path,
) -> None:
    """Save the switch along its load path and at its end, the path, and both presses."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11.0, 7.0), layout="constrained")
    path.plot_mechanism(view="xy", stress=True, ax=axes[0, 0], title="along the load path")
    switch = next(each for each in firm.system.children or () if isinstance(each, fx.Plant))
    context, title = firm.context_at(0.2), "after a press by 0.6 N"
    fx.plot_mechanism(switch, context, view="xy", stress=True, ax=axes[0, 1], title=title)
    path.plot(ax=axes[1, 0])
    for result, label in ((gentle, "0.3 N"), (firm, "0.6 N")):
        axes[1, 1].plot(result.time, 1e3 * result["switch.slide.translation"], label=label)
    axes[1, 1].set(xlabel="time in s", ylabel="stroke in mm")
    axes[1, 1].legend(frameon=False)
    axes[1, 1].grid(True, color="#dddddd")
    axes[1, 1].spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
