"""A measured hinge, inspected: its torques with a slider for each constant, and a report of a run.

Run it with ``python examples/flexures/hinge_inspector.py``. It writes ``hinge.html``, in which the
measured torques lie below the curves of the fitted hinge, and ``hinge_report.html``, the experiment
as a page to send or to print. Open them in any browser; they need nothing else.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import flexure as fx


def measured(seed: int = 3) -> tuple[Any, Any, Any]:
    """Return angles, rates and torques of a hinge on a test bench, with noise."""
    rng = np.random.default_rng(seed)
    angles = np.linspace(-0.02, 1.5, 200)
    rates = np.full(200, 0.2)
    torques = fx.laws.HingeLaw(spring_constant=2.4, viscous_friction=1.5).torque(angles, rates)
    return angles, rates, torques + rng.normal(0.0, 0.15, 200)


def build() -> fx.Diagram:
    """Return a door with the hinge, fitted to the measurement, which is pushed open."""
    plant = fx.PlantBuilder("door", gravity=(0.0, 0.0, -9.81))
    box = fx.SpatialInertia.solid_box(mass=9.0, size=(0.02, 0.6, 0.7))
    panel = plant.add_body("panel", box, com=(0.0, 0.3, 0.0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    fitted = ["spring_constant", "viscous_friction", "catch_torque"]
    config, _ = fx.fitting.fit_hinge(*measured(), fitted=fitted)
    plant.add_force_element(fx.DoorHinge("hinge", axis, config))
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("bench")
    builder.add_all(plant.build(), fx.Step("push", at=0.5, to=12.0))
    builder.connect("push.y", "door.motor")
    return builder.build()


def main() -> None:
    """Write both pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pages")
    folder = parser.parse_args().folder
    bench = build()
    hinge = bench.get_system("door.hinge")
    page = fx.inspect_block(
        hinge,
        measured=measured(),
        ranges={"angle": (-0.1, 1.6)},
        title="The hinge",
        path=folder / "hinge.html",
    )
    print(f"saved {folder / 'hinge.html'}: {page}")
    assert page.live, "the hinge is not computed in its page"

    result = fx.simulate(bench, 20.0)
    question = "How far does a push of 12 N m open the door?"
    written = fx.report(result, question=question, path=folder / "hinge_report.html")
    print(f"saved {folder / 'hinge_report.html'}: {written}")
    assert "<script" not in written.html, "a report needs no scripts"
    assert "could not be made" not in written.html, "a section is missing"


if __name__ == "__main__":
    main()
