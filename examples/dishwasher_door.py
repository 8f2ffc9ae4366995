"""The door of a dishwasher: it is pulled open, stays where it is let go, and is pushed shut.

The door turns about a horizontal axis at its lower edge; upright is closed. A `DoorHinge` with the
default constants of a dishwasher carries it: its spring balances some of the weight, its dry
friction holds the door where it is let go, and its catch latches it. A hand, which is a source of
torque, opens the door against the catch, lets go, and pushes it shut again. A stop keeps the door
from turning beyond closed and beyond 90 degrees.

Run it with ``python examples/dishwasher_door.py``. It saves ``dishwasher_door.png`` and
``dishwasher_door.gif``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

#: The torque of the hand in N m, each from a time on.
HAND_TIMES = (0.0, 0.5, 0.6, 4.0, 6.0)
HAND_TORQUES = (0.0, 22.0, 0.0, -22.0, 0.0)


def build() -> fx.Diagram:
    """Make the door, and let a hand act on it."""
    builder = fx.PlantBuilder("door")
    panel = fx.SpatialInertia.solid_box(2.0, size=(0.02, 0.6, 0.7))
    door = builder.add_body("panel", panel, com=(0.0, 0.0, 0.35))
    handle = fx.BodyShape.cylinder(radius=0.012, length=0.4, axis="y")
    builder.add_shape(door, handle, (0.03, 0.0, 0.64), color="gray")
    cabinet = fx.BodyShape.box(size=(0.5, 0.6, 0.75))
    builder.add_shape(builder.world, cabinet, (-0.27, 0.0, 0.36))
    axis = fx.RevoluteJoint(
        "axis", builder.world, door, axis=(0, 1, 0), position_limits=(0.0, 0.5 * np.pi)
    )
    builder.add_joint(axis)
    builder.add_force_element(fx.DoorHinge("hinge", axis, spring_zero_angle_rad=-1.5))
    builder.add_force_element(fx.JointStop("stop", axis, stiffness=5e3, damping=1.0))
    builder.add_actuator("hand", axis)
    builder.add_energy_ledger()

    outer = fx.DiagramBuilder("kitchen")
    outer.add_all(builder.build(), fx.Trajectory("hand", HAND_TIMES, HAND_TORQUES, kind="hold"))
    outer.connect("hand.y", "door.hand")
    return outer.build()


def main() -> None:
    """Run, check what the door does, and save the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pictures")
    parser.add_argument("--fps", type=int, default=12, help="pictures per second of animation")
    arguments = parser.parse_args()
    folder = arguments.folder
    kitchen = build()
    result = fx.simulate(kitchen, 8.0, rtol=1e-6)
    print(result.message)

    closed, open_, later, shut = np.rad2deg(result.sample("door.axis.angle", [0.4, 2.5, 3.9, 8.0]))
    drift = np.ptp(result["door.ledger.balance"])
    print(f"latched at {closed:.2f} degrees, let go at {open_:.1f}, shut again at {shut:.2f}")
    print(f"it creeps by {abs(later - open_):.2g} degrees while it is let go")
    print(f"the ledger moves by {drift:.2g} J")

    figure = result.plot("door.axis.angle", "hand.y", "door.hinge.stored_energy")
    figure.savefig(folder / "dishwasher_door.png", dpi=150)
    fx.animate(result, path=folder / "dishwasher_door.gif", fps=arguments.fps, view=(-50.0, 20.0))
    assert abs(closed) < 1.0, "the door is not latched"
    assert open_ > 20.0, "the door does not open"
    assert abs(later - open_) < 1.0, "the door does not stay open"
    assert abs(shut) < 1.0, "the door is not shut"
    assert drift < 1e-3, "energy comes from nowhere"


if __name__ == "__main__":
    main()
