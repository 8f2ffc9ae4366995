"""A four-bar linkage: its loop closed by a joint, and beside it by a stiff bushing.

Joints of a plant form a tree, and one of the four pins of the linkage closes the loop. As a loop
joint it is a constraint, which is upheld exactly; as a bushing that is stiff in all directions but
the rotation about the pin it gives way a little, and makes the equations stiff. Both are compared
with the closed form of the rigid linkage, while the crank is driven at constant torque against
damping.

Run it with ``python examples/mechanisms/four_bar_linkage.py``. It saves ``four_bar_linkage.png``
with the motion, and ``four_bar_linkage.gif`` with an animation.
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


def build(*, with_bushing: bool = False) -> tuple[fx.Plant, fx.Context]:
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
    # z of these frames is the y axis of the bars, about which the pin turns.
    ends = [
        plant.add_frame(f"pin_{body.name}", body, (x_rotation(-0.5 * np.pi), (length, 0.0, 0.0)))
        for body, length in ((coupler, COUPLER), (rocker, ROCKER))
    ]
    if with_bushing:
        bushing = fx.LinearBushing(
            "pin",
            *ends,
            torque_stiffness=[1e4, 1e4, 0.0],
            torque_damping=[10.0, 10.0, 0.0],
            force_stiffness=STIFFNESS,
            force_damping=1e-3 * STIFFNESS,
        )
        plant.add_force_element(bushing)
    else:
        plant.add_loop_joint(fx.RevoluteJoint("pin", ends[0], ends[1], axis=(0, 0, 1)))
    plant.add_actuator("motor", joints[0])
    plant.add_energy_ledger()
    linkage = plant.build()

    context = linkage.create_default_context()
    angle = 0.5 * np.pi
    coupler_angle, rocker_angle = rigid_linkage(angle)
    for joint, value in zip(joints, (angle, coupler_angle - angle, rocker_angle), strict=True):
        joint.angle.set(context, value)
    linkage.assemble(context, fixed="shaft")
    linkage.input_port("motor").fix(context, 4.0)
    return linkage, context


def main() -> None:
    """Run, check, and save the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pictures")
    parser.add_argument("--fps", type=int, default=15, help="pictures per second of animation")
    arguments = parser.parse_args()
    folder = arguments.folder
    times = np.linspace(0.0, 6.0, 600)
    errors, steps = {}, {}
    for name, gap in (("bushing", "pin.position"), ("joint", "pin.error")):
        linkage, context = build(with_bushing=name == "bushing")
        result = fx.simulate(linkage, 6.0, context=context, rtol=1e-7, atol=1e-9)
        print(f"pin as {name}: {result.message}")
        crank, rocker, opening = result.sample_all(["shaft.angle", "foot.angle", gap], times)
        expected = np.unwrap([rigid_linkage(angle)[1] for angle in crank])
        errors[name] = np.max(np.abs(rocker - expected))
        steps[name] = result.statistics.steps
        largest = np.max(np.linalg.norm(opening[:, :3], axis=1))
        balance = np.ptp(result["ledger.balance"])
        print(f"the pin opens by at most {largest:.2g} m in {steps[name]} steps")
        print(f"the rocker is within {errors[name]:.2g} rad of that of a rigid linkage")
        print(f"the ledger of energy moves by {balance:.2g} J\n")
        assert balance < 1e-3, "energy comes from nowhere"
    turns = (crank[-1] - crank[0]) / (2.0 * np.pi)
    print(f"{turns:.1f} turns")

    figure = result.plot("shaft.rate", "foot.angle", "pin.reaction")
    figure.savefig(folder / "four_bar_linkage.png", dpi=150)
    fx.animate(
        result,
        path=folder / "four_bar_linkage.gif",
        fps=arguments.fps,
        trace=linkage.frame("pin_coupler"),
    )
    assert turns > 2.0, "the crank does not turn"
    assert errors["bushing"] < 2e-3, "the linkage with a bushing is not nearly a rigid one"
    assert errors["joint"] < 1e-6, "the linkage with a loop joint is no rigid one"
    assert errors["joint"] < 1e-3 * errors["bushing"], "the loop joint is no better"
    assert steps["joint"] < 0.05 * steps["bushing"], "the loop joint does not save steps"


if __name__ == "__main__":
    main()
