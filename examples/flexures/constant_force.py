"""A constant-force mechanism: what a bistable beam takes away, a spring gives back.

Two inclined leaves that buckle push a slider ahead: the farther it has gone, the less force it
takes. A folded guide of other leaves resists in proportion to the stroke. It is made so stiff that
both cancel, and one force is left over a stroke as long as the leaves rise, as for grippers and for
contacts that have to be pressed alike whether they are worn or new.

In buckled leaves the axial force hardly changes: it is Euler's, P = 4 π² EI/l². So the leaves have
the stiffness -2 P/l together, and the force is P times twice their slope at rest.

Run it with ``python examples/flexures/constant_force.py``. It saves ``constant_force.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import flexure as fx

POLYMER = fx.Material(1.5e9, poissons_ratio=0.4, density=1040.0, yield_strength=40e6)
SPAN, RISE = 0.03, 0.003  # of each leaf, in m
WIDTH, THICKNESS = 0.006, 0.0004
BOW = 2e-5  # of leaves at rest in m, since none is straight, and to say which way they buckle
GUIDE = 0.03  # length of the leaves of the guide, in m
FIRST, LAST = 0.6e-3, 3.3e-3  # where the force is constant, in m
STROKE, ENERGIES = "slide.translation", ("left", "right", *(f"guide_leaf{k}" for k in range(1, 5)))

LENGTH = float(np.hypot(SPAN, RISE))
EI = POLYMER.youngs_modulus * WIDTH * THICKNESS**3 / 12.0
EULER = 4.0 * np.pi**2 * EI / LENGTH**2
NEGATIVE = 2.0 * EULER / LENGTH  # what the stiffness of buckled leaves is below zero, in N/m
FORCE = NEGATIVE * RISE
#: A folded guide has 12 EI/L³.
GUIDE_THICKNESS = float(np.cbrt(NEGATIVE * GUIDE**3 / (POLYMER.youngs_modulus * WIDTH)))


def build(*, guided: bool = True) -> fx.Plant:
    """Put a slider on two leaves, which rise to it from both sides, and on a guide."""
    builder = fx.PlantBuilder("gripper", gravity=(0.0, 0.0, 0.0))
    slider = builder.add_body(
        "slider", fx.SpatialInertia.solid_box(0.002, size=(0.004, 0.004, 0.006))
    )
    slide = fx.PrismaticJoint("slide", builder.world, slider, axis=(0, -1, 0), damping=0.4)
    builder.add_actuator("finger", builder.add_joint(slide))
    leaf: dict[str, Any] = {
        "width": WIDTH,
        "material": POLYMER,
        "damping_time": 1e-4,
        "planar": True,
    }
    for side, x in (("left", -1.0), ("right", 1.0)):
        # Along an arc over the straight line from foot to head, both bowed upwards.
        angle = np.arctan2(RISE, -x * SPAN)
        half = -x * 4.0 * BOW / LENGTH
        foot = builder.add_frame(
            f"{side}_foot", builder.world, (turned(angle + half), (x * SPAN, -RISE, 0.0))
        )
        head = builder.add_frame(f"{side}_head", slider, (turned(angle - half), (0.0, 0.0, 0.0)))
        along = LENGTH / np.sinc(half / np.pi)
        bent: dict[str, Any] = {
            "length": along,
            "curvature": (0.0, -2.0 * half / along),
            "segments": 4,
        }
        builder.add_force_element(
            fx.LeafSpring(side, foot, head, thickness=THICKNESS, **bent, **leaf)
        )
    if guided:
        above = 0.016
        shuttle = fx.SpatialInertia.solid_box(0.002, size=(0.003, 0.022, 0.006))
        guide = fx.FoldedGuide(
            "guide",
            builder.add_frame("stand", builder.world, (0.0, above, 0.0)),
            builder.add_frame("mount", slider, (0.0, above, 0.0)),
            outer_distance=0.018,
            inner_distance=0.008,
            shuttle=shuttle.shifted((GUIDE, 0.0, 0.0)),
            length=GUIDE,
            thickness=GUIDE_THICKNESS,
            **leaf,
        )
        builder.add_assembly(guide)
    return builder.build()


def turned(angle: float) -> np.ndarray:
    """Return the rotation about z by an angle in rad."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def main() -> None:
    """Follow both load paths, check the force, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    strokes = np.linspace(0.0, 0.004, 41)
    stored = [f"{each}.stored_energy" for each in ENERGIES]
    bistable = fx.load_path(build(guided=False), {STROKE: strokes})
    path = fx.load_path(build(), {STROKE: strokes}, signals=[*stored, "left.safety"])

    stroke, force = bistable[STROKE], bistable.required[STROKE]
    between = (stroke > 1e-3) & (stroke < 3e-3)
    slope = np.polyfit(stroke[between], force[between], 1)[0]
    print(f"the buckled leaves have {slope:.1f} N/m, closed form {-NEGATIVE:.1f} N/m")

    stroke, force = path[STROKE], path.required[STROKE]
    there = (stroke >= FIRST) & (stroke <= LAST)
    mean = float(np.mean(force[there]))
    ripple = float(np.ptp(force[there])) / 2.0 / mean
    print(f"with the guide the force is {mean:.4f} N ± {ripple:.1%}, closed form {FORCE:.4f} N")
    safety = float(path["left.safety"].min())
    print(f"from {1e3 * FIRST:.1f} to {1e3 * LAST:.1f} mm; safety {safety:.1f}")

    energy = np.sum([path[each] for each in stored], axis=0)
    work = float(np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(stroke)))
    draw(bistable, path, folder / "constant_force.png")

    assert abs(slope / -NEGATIVE - 1.0) < 0.03, "the negative stiffness is another one"
    assert abs(mean / FORCE - 1.0) < 0.02, "the force is another one"
    assert ripple < 0.02, "the force is not constant"
    assert np.all(path.stable), "it is unstable although it is held"
    assert abs(work / (energy[-1] - energy[0]) - 1.0) < 0.01, "the work is not what is stored"
    assert safety > 1.5, "the leaves yield"


def draw(bistable: fx.results.LoadPath, path: fx.results.LoadPath, file: Path) -> None:
    """Save the mechanism along its path, and the forces with and without the guide."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained")
    path.plot_mechanism(num_equilibria=3, view="xy", stress=True, ax=left, title="at three strokes")
    for each, label in ((bistable, "leaves that buckle"), (path, "with the guide")):
        right.plot(1e3 * each[STROKE], each.required[STROKE], label=label)
    stroke = 1e3 * path[STROKE]
    right.plot(stroke, NEGATIVE * path[STROKE], label="guide, 12 EI/L³", linestyle="--")
    right.axvspan(1e3 * FIRST, 1e3 * LAST, color="#eeeeee", zorder=0)
    right.set(xlabel="stroke in mm", ylabel="force in N", title="what the finger feels")
    right.legend(frameon=False)
    right.grid(True, color="#dddddd")
    right.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
