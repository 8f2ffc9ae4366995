"""A mass on a belt that a spring holds back: it sticks and slips.

Dry friction holds the mass on the belt until the spring pulls with the static friction; then it
slips back, and sticks again. With friction that falls at once from static to Coulomb friction, each
slip is a part of an oscillation, of which the closed form is known. Nothing creeps while it sticks,
and the heat is that of the slip.

Run it with ``python examples/mechanisms/stick_slip.py``. It saves ``stick_slip.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

MASS, STIFFNESS = 1.0, 100.0  # kg, N/m
STATIC, COULOMB = 5.0, 3.0  # N
SPEED, LAST = 0.1, 4.0  # of the belt in m/s, and the end in s


def build() -> tuple[fx.Diagram, fx.Context]:
    """Build the mass as it is seen from the belt, where the foot of the spring moves away."""
    plant = fx.PlantBuilder("mass", gravity=(0.0, 0.0, 0.0))
    body = plant.add_body("body", fx.SpatialInertia.point_mass(MASS))
    slide = fx.PrismaticJoint("slide", plant.world, body, axis=(1, 0, 0), damping=0.0)
    plant.add_joint(slide)
    plant.add_force_element(fx.JointSpring("spring", slide, stiffness=STIFFNESS))
    friction = fx.StickSlipFriction("belt", slide, coulomb_friction=COULOMB, static_friction=STATIC)
    plant.add_constraint(friction)
    plant.add_actuator("pull", slide)
    plant.add_energy_ledger()
    builder = fx.DiagramBuilder("stick_slip")
    builder.add_all(plant.build(), fx.Ramp("foot", slope=STIFFNESS * SPEED))
    builder.connect("foot.y", "mass.pull")
    diagram = builder.build()
    return diagram, diagram.create_default_context()


def period() -> float:
    """Return the time from slip to slip, by the closed form.

    In the frame of the spring's foot the mass swings around the Coulomb friction, and comes back to
    the speed of the belt; meanwhile the spring relaxes, and the belt winds it up again.
    """
    w = np.sqrt(STIFFNESS / MASS)
    lead = (STATIC - COULOMB) / STIFFNESS  # beyond the middle of the swing
    turn = 2.0 * (np.pi - np.arctan(lead * w / SPEED))  # while it slips, as a phase
    return float(turn / w + 2.0 * lead / SPEED)


def main() -> None:
    """Run, check, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    diagram, context = build()
    result = fx.simulate(diagram, LAST, context=context, rtol=1e-9)

    mode = result["mass.belt.mode"]
    begins = result.time[np.flatnonzero((mode[1:] != 0.0) & (mode[:-1] == 0.0))]
    assert abs(begins[0] - STATIC / (STIFFNESS * SPEED)) < 1e-8
    print(f"slips every {np.diff(begins).mean():.6f} s, by the closed form {period():.6f} s")
    assert np.max(np.abs(np.diff(begins) - period())) < 1e-6

    rate = result["mass.slide.rate"]
    assert np.all(rate[1:-1][(mode[1:-1] == 0.0) & (mode[2:] == 0.0)] == 0.0)  # no creep
    heat = -result["mass.ledger.works"][-1][result_of_belt(diagram)]
    way = COULOMB * result["mass.slide.translation"][-1]
    print(f"heat {heat:.6f} J, Coulomb friction along the way {way:.6f} J")
    assert abs(heat - way) < 1e-5
    assert np.ptp(result["mass.ledger.balance"]) < 1e-5

    paths = ["mass.slide.translation", "mass.belt.generalized_force", "mass.belt.mode"]
    result.plot(*paths, path=folder / "stick_slip.png")


def result_of_belt(diagram: fx.Diagram) -> int:
    """Return where the work of the friction is among those of the ledger."""
    ledger = diagram.find("mass.ledger.works")
    return list(ledger.element_names).index("belt")


if __name__ == "__main__":
    main()
