"""A four-bar linkage, whose loop a stiff bushing closes in place of a revolute joint.

Joints of a plant form a tree, so that one of the four pins of the linkage has to be a force: a
bushing that is stiff in all directions but the rotation about the pin. The crank is driven at
constant torque against damping. The motion is compared with the closed form of the rigid linkage,
which it follows within the compliance of the bushing.

Run it with ``python examples/four_bar_linkage.py``. It saves ``four_bar_linkage.png`` with the
motion, and ``four_bar_linkage.gif`` with an animation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx
from flexure.blocks.math import x_rotation

GROUND, CRANK, COUPLER, ROCKER = 0.9, 0.25, 0.8, 0.6  # lengths in m
STIFFNESS = 1e6  # N/m


def rigid_linkage(crank: float) -> tuple[float, float]:
    """Return the angles of coupler and rocker from the horizontal for an angle of the crank.

    The tip of the crank and the foot of the rocker are the centers of two circles, which meet in
    the pin between coupler and rocker.
    """
    tip = CRANK * np.array([np.cos(crank), np.sin(crank)])
    to_foot = np.array([GROUND, 0.0]) - tip
    distance = np.linalg.norm(to_foot)
    inner = np.arccos((COUPLER**2 + distance**2 - ROCKER**2) / (2.0 * COUPLER * distance))
    coupler = np.arctan2(to_foot[1], to_foot[0]) + inner
    pin = tip + COUPLER * np.array([np.cos(coupler), np.sin(coupler)])
    rocker = np.arctan2(pin[1], pin[0] - GROUND)
    return float(coupler), float(rocker)


def build() -> tuple[fx.Plant, fx.Context]:
    """Build the linkage in the x-z plane, and put it together with the crank upright."""
    plant = fx.PlantBuilder("linkage")

    def bar(name: str, length: float) -> fx.Body:
        rod = fx.SpatialInertia.thin_rod(2.0 * length, length=length, axis="x")
        return plant.add_body(name, rod, com=(0.5 * length, 0.0, 0.0))

    crank, coupler, rocker = bar("crank", CRANK), bar("coupler", COUPLER), bar("rocker", ROCKER)
    foot = plant.add_frame("foot", plant.world, (GROUND, 0.0, 0.0))
    tip = plant.add_frame("tip", crank, (CRANK, 0.0, 0.0))
    up = (0, -1, 0)  # positive angles lift the bars
    joints = [
        plant.add_joint(fx.RevoluteJoint("shaft", plant.world, crank, axis=up, damping=0.5)),
        plant.add_joint(fx.RevoluteJoint("knee", tip, coupler, axis=up)),
        plant.add_joint(fx.RevoluteJoint("foot", foot, rocker, axis=up, damping=0.05)),
    ]
    # The pin turns about z of its frames, which is the y axis of the bars.
    ends = [
        plant.add_frame(f"pin_{body.name}", body, (x_rotation(-0.5 * np.pi), (length, 0.0, 0.0)))
        for body, length in ((coupler, COUPLER), (rocker, ROCKER))
    ]
    pin = fx.LinearBushing(
        "pin",
        *ends,
        torque_stiffness=[1e4, 1e4, 0.0],
        torque_damping=[10.0, 10.0, 0.0],
        force_stiffness=STIFFNESS,
        force_damping=1e-3 * STIFFNESS,
    )
    plant.add_force_element(pin)
    plant.add_actuator("motor", joints[0])
    plant.add_energy_ledger()
    linkage = plant.build()

    context = linkage.create_default_context()
    angle = 0.5 * np.pi
    coupler_angle, rocker_angle = rigid_linkage(angle)
    for joint, value in zip(joints, (angle, coupler_angle - angle, rocker_angle), strict=True):
        joint.angle.set(context, value)
    linkage.input_port("motor").fix(context, 4.0)
    return linkage, context


def main() -> None:
    """Run, check, and save the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pictures")
    parser.add_argument("--fps", type=int, default=15, help="pictures per second of animation")
    arguments = parser.parse_args()
    folder = arguments.folder
    linkage, context = build()
    result = fx.simulate(linkage, 6.0, context, rtol=1e-6)
    print(result.message)

    times = np.linspace(0.0, 6.0, 600)
    crank, rocker, gap = result.sample_all(["shaft.angle", "foot.angle", "pin.position"], times)
    expected = np.unwrap([rigid_linkage(angle)[1] for angle in crank])
    error = np.max(np.abs(rocker - expected))
    opening = np.max(np.linalg.norm(gap, axis=1))
    turns = (crank[-1] - crank[0]) / (2.0 * np.pi)
    balance = np.ptp(result["ledger.balance"])
    print(f"{turns:.1f} turns; the pin opens by at most {1e6 * opening:.1f} um")
    print(f"the rocker is within {error:.2g} rad of that of a rigid linkage")
    print(f"the ledger of energy moves by {balance:.2g} J")

    figure = result.plot("shaft.rate", "foot.angle", "pin.stored_energy")
    figure.savefig(folder / "four_bar_linkage.png", dpi=150)
    fx.animate(
        result,
        path=folder / "four_bar_linkage.gif",
        fps=arguments.fps,
        trace=linkage.frame("pin_coupler"),
    )
    assert turns > 2.0, "the crank does not turn"
    assert opening < 1e-3, "the pin opens"
    assert error < 2e-3, "the linkage does not move like a rigid one"
    assert balance < 1e-3, "energy comes from nowhere"


if __name__ == "__main__":
    main()
