"""A wrist on three tilted wires, which turns a peg about its tip, so that it finds its hole.

Lines along the wires meet near a point. About the center of compliance there, couples turn the
platform without moving that point, and forces through it do not turn the platform. The tilt puts
this center at the tip of the peg: the rim of the hole then pushes the peg aside, and does not tilt
it. Pressing makes the wrist softer, until its wires buckle.

Run it with ``python examples/flexures/remote_center.py``. It saves ``remote_center.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import flexure as fx
from flexure.blocks.math import rotation_about

STEEL = fx.Material.common("stainless steel 301")
RADIUS, LENGTH, DIAMETER = 0.04, 0.05, 0.0008  # of the circle of wires, and of a wire, in m
PEG = 0.09  # from the platform down to the tip, in m


def build(tilt: float = 0.42) -> fx.Plant:
    """Hang a platform on three wires that lean inwards by an angle."""
    builder = fx.PlantBuilder("wrist", gravity=(0.0, 0.0, 0.0))
    disk = fx.SpatialInertia.solid_cylinder(0.3, radius=RADIUS, length=0.004)
    platform = builder.add_body("platform", disk)
    builder.add_frame("tip", platform, (0.0, 0.0, -PEG))
    builder.add_external_force("press", platform)
    for k in range(3):
        about = rotation_about((0.0, 0.0, 1.0), 2.0 * np.pi * k / 3.0)
        R = about @ rotation_about((0.0, 1.0, 0.0), np.pi / 2.0 + tilt)  # x along the wire, down
        end = about @ (RADIUS, 0.0, 0.0)
        above = builder.add_frame(f"above{k}", builder.world, (R, end - LENGTH * R[:, 0]))
        below = builder.add_frame(f"below{k}", platform, (R, end))
        size = {"length": LENGTH, "diameter": DIAMETER}
        builder.add_force_element(fx.WireFlexure(f"wire{k}", above, below, material=STEEL, **size))
    return builder.build()


def height_of_center(tilt: float) -> float:
    """Return how far the center of compliance is above the tip of the peg."""
    return float(fx.stiffness(build(tilt), "tip").center_of_compliance.point[2])


def main() -> None:
    """Find the tilt, check what the wrist does at the tip, and press until it buckles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder

    tilt = brentq(height_of_center, 0.3, 0.5, xtol=1e-4)
    wrist = build(tilt)
    found = fx.stiffness(wrist, "tip")
    print(f"tilt {np.degrees(tilt):.2f} degrees, lines meet {RADIUS / np.tan(tilt):.4f} m down")
    print(found)

    # A force at the tip does not turn the peg, and a couple turns it about its tip.
    assert np.max(np.abs(found.compliance[:3, 3:])) * PEG < 1e-3 * found.compliance[3, 3]
    line = found.rotation_axis((1.0, 0.0, 0.0))
    assert np.linalg.norm(line.point) < 1e-3 * PEG

    # The peg is pushed back with its force on the ground: that makes the wires softer, until the
    # platform twists aside.
    down = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    critical = fx.buckling(wrist, {"press": down}, num_factors=2)
    print(critical)
    force = min((each.factor for each in critical if each.factor > 0.0), key=abs)
    steps = np.linspace(0.0, 0.95 * force, 12)
    track = fx.track_stiffness(wrist, "tip", {"press": steps[:, np.newaxis] * down})
    tilting, twisting = track.diagonals(held=False)[:, [0, 2]].T
    assert np.all(np.diff(tilting) < 0.0)
    assert twisting[-1] < 0.1 * twisting[0]

    figure = plt.figure(figsize=(9.0, 4.5), layout="constrained")
    picture, curve = figure.subplots(1, 2)
    fx.plot_mechanism(wrist, found.context, ax=picture)
    curve.plot(steps, tilting, label="tilting")
    curve.plot(steps, twisting, label="twisting")
    curve.axvline(force, color="0.5", linestyle=":", label="buckling")
    curve.set(xlabel="force along the peg [N]", ylabel="stiffness at the tip [N m/rad]", ylim=0.0)
    curve.grid(alpha=0.3)
    curve.legend()
    figure.savefig(folder / "remote_center.png", dpi=150)


if __name__ == "__main__":
    main()
