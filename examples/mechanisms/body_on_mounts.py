"""A machine on four rubber mounts: its six modes, by linearization and by hand.

A rigid block stands on four gimbal-free bushings near its corners. The natural frequencies of the
linearized plant are compared with those of the 6 x 6 stiffness and mass matrices that one would
write down by hand, and a released motion is compared with the modes.

Run it with ``python examples/mechanisms/body_on_mounts.py``. It saves ``body_on_mounts.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx
from flexure.blocks.math import skew

MASS, SIZE = 40.0, (0.6, 0.4, 0.3)  # kg, m
STIFFNESS = np.array([4e4, 3e4, 9e4])  # N/m, along x, y, z of each mount
TORSION = np.array([20.0, 20.0, 10.0])  # N m/rad
CORNERS = [np.array([x, y, -0.15]) for x in (-0.25, 0.25) for y in (-0.15, 0.15)]


def build() -> fx.Plant:
    """Put the machine on its mounts; without gravity its equilibrium is where it is built."""
    builder = fx.PlantBuilder("machine", gravity=(0.0, 0.0, 0.0))
    block = builder.add_body("block", fx.SpatialInertia.solid_box(MASS, size=SIZE))
    builder.add_joint(fx.RpyFloatingJoint("float", builder.world, block))
    for k, corner in enumerate(CORNERS):
        foot = builder.add_frame(f"foot{k}", block, corner)
        floor = builder.add_frame(f"floor{k}", builder.world, corner)
        mount = fx.LinearBushing(
            f"mount{k}",
            floor,
            foot,
            torque_stiffness=TORSION,
            torque_damping=2e-4 * TORSION,
            force_stiffness=STIFFNESS,
            force_damping=2e-4 * STIFFNESS,
        )
        builder.add_force_element(mount)
    return builder.build()


def frequencies_by_hand() -> np.ndarray:
    """Return the natural frequencies in Hz from K φ = ω² M φ, with φ = (rotation, translation)."""
    x, y, z = SIZE
    inertia = MASS / 12.0 * np.array([y * y + z * z, z * z + x * x, x * x + y * y])
    masses = np.concatenate([inertia, np.full(3, MASS)])
    K = np.zeros((6, 6))
    for corner in CORNERS:
        J = np.hstack([-skew(corner), np.eye(3)])  # displacement of the foot
        K += J.T @ np.diag(STIFFNESS) @ J
        K[:3, :3] += np.diag(TORSION)
    scale = 1.0 / np.sqrt(masses)
    squares = np.linalg.eigvalsh(scale[:, None] * K * scale)
    return np.sqrt(squares) / (2.0 * np.pi)


def main() -> None:
    """Compare, release the machine, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    machine = build()
    context = machine.create_default_context()
    poles = fx.linearize(machine, context).poles
    found = np.sort(np.abs(poles[poles.imag > 0.0])) / (2.0 * np.pi)
    expected = frequencies_by_hand()
    for mine, hand in zip(found, expected, strict=True):
        print(f"{mine:8.4f} Hz    by hand {hand:8.4f} Hz")

    machine.joint("float").velocities.set(context, [0.02, 0.01, 0.0, 0.0, 0.0, 0.01])
    result = fx.simulate(machine, 2.0, context=context, rtol=1e-8)
    times = np.linspace(0.0, 2.0, 4000)
    height = result.sample("block.position", times)[:, 2]
    spectrum = np.abs(np.fft.rfft(height * np.hanning(times.size), 8 * times.size))
    peak = np.fft.rfftfreq(8 * times.size, times[1])[np.argmax(spectrum)]
    vertical = np.sqrt(4.0 * STIFFNESS[2] / MASS) / (2.0 * np.pi)
    print(f"the block bounces at {peak:.2f} Hz, by hand {vertical:.2f} Hz")

    figure = result.plot("block.position", "float.v", "mount0.stored_energy")
    figure.savefig(folder / "body_on_mounts.png", dpi=150)
    assert np.allclose(found, expected, rtol=1e-4), "the modes differ from those by hand"
    assert abs(peak - vertical) < 0.02 * vertical, "the block does not bounce as it should"


if __name__ == "__main__":
    main()
