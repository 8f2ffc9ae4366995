"""A chain of rods on ball joints, each with a spring to the wall, swings in space.

Five rods hang one below the other on roll-pitch-yaw ball joints; springs pull their ends sideways.
The chain is released, swings, and its energy is followed by a ledger: what gravity, springs and
motion hold together, and what the dampers of the joints have taken.

Run it with ``python examples/mechanisms/ball_chain.py``. It saves ``ball_chain.png`` and
``ball_chain.gif``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

RODS, LENGTH, MASS = 5, 0.4, 0.8  # number, m, kg


def build() -> tuple[fx.Plant, fx.Context]:
    """Hang the rods on each other, and deflect them."""
    builder = fx.PlantBuilder("chain")
    above: fx.Body | fx.Frame = builder.world
    joints = []
    for k in range(RODS):
        inertia = fx.SpatialInertia.solid_cylinder(MASS, radius=0.02, length=LENGTH)
        rod = builder.add_body(f"rod{k}", inertia, com=(0.0, 0.0, -0.5 * LENGTH))
        joints.append(builder.add_joint(fx.BallRpyJoint(f"ball{k}", above, rod, damping=0.01)))
        wall = np.array([0.8, 0.1 * k, -(k + 1) * LENGTH])
        spring = fx.LinearSpringDamper(
            f"spring{k}",
            builder.world,
            wall,
            rod,
            (0.0, 0.0, -LENGTH),
            free_length=0.8,
            stiffness=12.0,
            damping=0.1,
        )
        builder.add_force_element(spring)
        above = builder.add_frame(f"end{k}", rod, (0.0, 0.0, -LENGTH))
    builder.add_energy_ledger()
    chain = builder.build()
    context = chain.create_default_context()
    joints[0].angles.set(context, [0.6, -0.5, 0.0])
    joints[2].angular_velocity.set(context, [1.0, 0.0, 2.0])
    return chain, context


def main() -> None:
    """Run, check the energies, and save the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pictures")
    parser.add_argument("--fps", type=int, default=12, help="pictures per second of animation")
    arguments = parser.parse_args()
    folder = arguments.folder
    chain, context = build()
    result = fx.simulate(chain, 10.0, context=context, method="DOP853", rtol=1e-9, atol=1e-9)
    print(result.message)

    energy = result["mechanical_energy"]
    lost = -result["ledger.works"].sum(axis=1)
    drift = np.ptp(result["ledger.balance"])
    print(f"mechanical energy {energy[0]:.3f} J at first, {energy[-1]:.3f} J at the end")
    print(f"the dampers took {lost[-1]:.3f} J; the ledger moves by {drift:.2g} J")

    figure = result.plot(["rod4.position"], "mechanical_energy", "ledger.works")
    figure.savefig(folder / "ball_chain.png", dpi=150)
    fx.animate(result, path=folder / "ball_chain.gif", fps=arguments.fps, view=(-60.0, 20.0))
    assert np.all(np.diff(energy) < 1e-9), "energy rises"
    assert np.isclose(energy[0] - energy[-1], lost[-1], rtol=1e-6), "energy is lost elsewhere"
    assert drift < 1e-6, "the ledger does not balance"


if __name__ == "__main__":
    main()
