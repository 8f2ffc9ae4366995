"""A truss that snaps through: its load path, and the jump of a simulation beside it.

Two springs meet in a tip above the line between their supports. Along the load path, force and
height of the tip follow a closed form, also where the equilibria are unstable. A simulation in
which the force grows slowly stays on the stable part up to the limit point, and jumps from there to
the other side, as nothing else is stable under this force.

Run it with ``python examples/flexures/snap_through.py``. It saves ``snap_through.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

import flexure as fx

SPAN, RISE = 1.0, 0.1  # from the middle to a support, and from there to the tip, in m
STIFFNESS, DAMPING = 1000.0, 300.0  # of each spring, in N/m and N s/m
LENGTH = float(np.hypot(SPAN, RISE))
FASTEST, LAST = 0.01, 0.6  # growth of the force in N/s, and where it ends


def build() -> tuple[fx.Diagram, fx.Context]:
    """Build the truss and a force that grows with time."""
    plant = fx.PlantBuilder("truss", gravity=(0.0, 0.0, 0.0))
    tip = plant.add_body("tip", fx.SpatialInertia.point_mass(0.1))
    slide = plant.add_joint(fx.PrismaticJoint("slide", plant.world, tip, axis=(0, 0, 1)))
    slide.default_translation = RISE
    for side, x in (("left", -SPAN), ("right", SPAN)):
        bar = fx.LinearSpringDamper(
            side,
            plant.world,
            (x, 0.0, 0.0),
            tip,
            (0.0, 0.0, 0.0),
            free_length=LENGTH,
            stiffness=STIFFNESS,
            damping=DAMPING,
        )
        plant.add_force_element(bar)
    plant.add_actuator("force", slide)
    builder = fx.DiagramBuilder("snap")
    builder.add_all(plant.build(), fx.Ramp("push", slope=-FASTEST))
    builder.connect("push.y", "truss.force")
    diagram = builder.build()
    return diagram, diagram.create_default_context()


def force_at(height: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the force that holds the tip at a height, in N."""
    z = np.asarray(height)
    return np.asarray(2.0 * STIFFNESS * z * (1.0 - LENGTH / np.hypot(SPAN, z)))


def main() -> None:
    """Follow the path, run, check, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    diagram, _ = build()

    truss = next(child for child in diagram.children if isinstance(child, fx.Plant))
    alone = fx.load_path(truss, {"force": -LAST})
    height, force = alone["slide.translation"], alone["force"]
    error = np.max(np.abs(force - force_at(height)))
    lower, upper = alone.limit_points
    limit = lower.values["force"]
    print(alone)
    print(f"the path is within {error:.1g} N of the closed form")
    print(f"it snaps at {limit:.6f} N, and back at {upper.values['force']:.6f} N")

    result = fx.simulate(diagram, LAST / FASTEST, rtol=1e-6)
    run = result["truss.slide.translation"]
    pushed = -FASTEST * result.time
    jump = pushed[np.argmax(run < 0.0)]
    print(f"in the simulation the tip passes the middle at {jump:.4f} N")

    ax = alone.plot("slide.translation", "force")
    ax.plot(run, pushed, color="#c8641e", linewidth=1.0, label="simulation, force growing slowly")
    ax.legend(loc="lower center", frameon=False)
    ax.figure.figure.savefig(folder / "snap_through.png", dpi=150)
    assert error < 1e-8, "the path is not that of the closed form"
    top = np.sqrt((SPAN**2 * LENGTH) ** (2.0 / 3.0) - SPAN**2)
    assert abs(limit - force_at(top)) < 1e-8, "the limit load is not that of the closed form"
    assert limit - 0.03 < jump < limit, "the simulation does not jump at the limit"
    assert abs(run[-1] - height[-1]) < 1e-3, "the simulation ends elsewhere"


if __name__ == "__main__":
    main()
