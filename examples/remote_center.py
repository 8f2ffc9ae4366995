"""A wrist on three tilted wires, which turns a peg about its tip, so that it finds its hole.

Lines along the wires meet in a point: about there, the table gives way to couples without moving
aside, and to forces without turning. The tilt is chosen so that this center of compliance is at the
tip of a peg, which is then carried to the hole rather than turned away from it. What the wires bear
is another question: pressed too hard, they buckle, and the wrist is soft long before.

Run it with ``python examples/remote_center.py``. It saves ``remote_center.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import flexure as fx
from flexure.blocks.math import rotation_about

STEEL = fx.Material.common("stainless steel 301")
RADIUS, LENGTH, DIAMETER = 0.04, 0.05, 0.0012  # of the circle of the wires, and of a wire, in m
PEG = 0.09  # from the table down to the tip, in m


def build(tilt: float = 0.4) -> fx.Plant:
    """Hang a table on three wires that lean inwards by an angle."""
    builder = fx.PlantBuilder("wrist", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.solid_cylinder(0.3, radius=0.05, length=0.01))
    builder.add_frame("tip", table, (0.0, 0.0, -PEG))
    builder.add_external_force("press", table)
    for k in range(3):
        about = rotation_about((0.0, 0.0, 1.0), 2.0 * np.pi * k / 3.0)
        R = about @ rotation_about((0.0, 1.0, 0.0), np.pi / 2.0 + tilt)  # x is along the wire, down
        foot = about @ (RADIUS, 0.0, 0.0)
        above = builder.add_frame(f"above{k}", builder.world, (R, foot - LENGTH * R[:, 0]))
        below = builder.add_frame(f"below{k}", table, (R, foot))
        wire = fx.WireFlexure(
            f"wire{k}", above, below, length=LENGTH, diameter=DIAMETER, material=STEEL
        )
        builder.add_force_element(wire)
    return builder.build()


if __name__ == "__main__":
    for t in (0.2,0.3,0.4,0.5):
        s=fx.stiffness(build(t),"tip"); print(t, s.center_of_compliance); print(s)
