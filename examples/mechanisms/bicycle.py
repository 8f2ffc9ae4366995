"""A bicycle on two wheels that roll without slip: its eigenvalues over the speed, as published.

The bicycle is the benchmark of J. P. Meijaard, J. M. Papadopoulos, A. Ruina and A. L. Schwab
(Proc. R. Soc. A 463, 2007, 1955-1982): a frame with a rigid rider, a fork, and two wheels with
sharp rims. Nobody steers it. Between 4.29 and 6.02 m/s it rights itself when it is pushed.

Run it with ``python examples/mechanisms/bicycle.py``. It saves ``bicycle_poles.png`` and
``bicycle_push.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flexure as fx

WHEELBASE, TRAIL, TILT = 1.02, 0.08, np.deg2rad(18.0)  # m, m, of the axis of the fork
RADII = {"rear": 0.3, "front": 0.35}  # m
#: Mass in kg, center of mass in m, inertia xx, yy, zz, xy, xz, yz in kg m²; x ahead, z up, from
#: where the rear wheel touches the ground, or from the center of a wheel.
BODIES = {
    "frame": (85.0, (0.3, 0.0, 0.9), (9.2, 11.0, 2.8, 0.0, -2.4, 0.0)),
    "fork": (4.0, (0.9, 0.0, 0.7), (0.05892, 0.06, 0.00708, 0.0, 0.00756, 0.0)),
    "rear": (2.0, (0.0, 0.0, 0.0), (0.0603, 0.12, 0.0603, 0.0, 0.0, 0.0)),
    "front": (3.0, (0.0, 0.0, 0.0), (0.1405, 0.28, 0.1405, 0.0, 0.0, 0.0)),
}
#: Published at 5 m/s: weave, capsize and castering, in 1/s.
POLES = (-0.775341882195845 + 4.46486771378823j, -0.322866429004087, -14.0783896927982)
STABLE = (4.29238253634111, 6.02426201538837)  # m/s, published


def build() -> tuple[fx.Plant, fx.Context]:
    """Build the bicycle, and let it go straight ahead at 5 m/s."""
    builder = fx.PlantBuilder("bicycle", gravity=(0.0, 0.0, -9.81))
    frame, fork, rear, front = (
        builder.add_body(name, fx.SpatialInertia(*numbers)) for name, numbers in BODIES.items()
    )
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, frame))
    above, below = (
        builder.add_frame(f"head_of_{body.name}", body, (WHEELBASE + TRAIL, 0.0, 0.0))
        for body in (frame, fork)
    )
    down = (np.sin(TILT), 0.0, -np.cos(TILT))
    builder.add_joint(fx.RevoluteJoint("steer", above, below, axis=down))
    for wheel, on, x in ((rear, frame, 0.0), (front, fork, WHEELBASE)):
        name, radius = wheel.name, RADII[wheel.name]
        hub = builder.add_frame(f"{name}_hub", on, (x, 0.0, radius))
        builder.add_joint(fx.RevoluteJoint(f"{name}_axle", hub, wheel, axis=(0, 1, 0)))
        builder.add_constraint(
            fx.constraints.RollingDisk(
                f"{name}_contact", builder.world, wheel, radius, axis=(0, 1, 0)
            )
        )
        rim = fx.BodyShape.cylinder(radius=radius, length=0.02, axis="y")
        builder.add_shape(wheel, rim)
    builder.add_energy_ledger()
    plant = builder.build()
    return plant, at_speed(plant, 5.0)


def at_speed(plant: fx.Plant, speed: float) -> fx.Context:
    """Return a context of the bicycle that goes straight ahead."""
    context = plant.create_default_context()
    plant.joint("free").velocities.set(context, [0.0, 0.0, 0.0, speed, 0.0, 0.0])
    for name, radius in RADII.items():
        plant.joint(f"{name}_axle").velocities.set(context, [speed / radius])
    return context


def eigenvalues(plant: fx.Plant, speed: float) -> np.ndarray:
    """Return the four poles of lean and steer; all others are zero."""
    poles = fx.linearize(plant, at_speed(plant, speed), inputs=[], outputs=[]).poles
    return poles[np.argsort(-np.abs(poles))[:4]]


def main() -> None:
    """Compare the poles, plot them over the speed, and push the bicycle."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pictures")
    folder = parser.parse_args().folder
    plant, context = build()
    assembly = plant.assemble(context)
    print(f"{assembly.mobility} velocities and {assembly.position_mobility} displacements are free")

    found = eigenvalues(plant, 5.0)
    worst = max(np.min(np.abs(found - pole)) for pole in POLES)
    print(f"poles at 5 m/s: {np.round(found, 6)}, off by at most {worst:.1e}")
    assert worst < 1e-8, "the poles are not those that were published"

    speeds = np.linspace(0.0, 10.0, 41)
    poles = np.array([eigenvalues(plant, speed) for speed in speeds])
    stable = speeds[np.all(poles.real < 0.0, axis=1)]
    print(f"it is stable from about {stable[0]:.2f} to {stable[-1]:.2f} m/s")
    assert np.all((stable > STABLE[0]) & (stable < STABLE[1])), "it is stable elsewhere"

    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(speeds, poles.real, "k.", markersize=3)
    axes.plot(speeds, np.abs(poles.imag), "b.", markersize=2)
    axes.axvspan(*STABLE, color="tab:green", alpha=0.2)
    axes.set(xlabel="speed / m/s", ylabel="real (black), imaginary (blue) part / 1/s")
    axes.set(ylim=(-10.0, 10.0), title="A bicycle that nobody steers")
    figure.savefig(folder / "bicycle_poles.png", dpi=150)

    plant.joint("free").velocities.set(context, [0.5, 0.0, 0.0, 5.0, 0.0, 0.0])
    plant.assemble(context)
    result = fx.simulate(plant, 6.0, context=context, rtol=1e-8, atol=1e-10)
    result.plot("steer.angle", "frame.position[1]").savefig(folder / "bicycle_push.png", dpi=150)
    energy = result["mechanical_energy"]
    slip = max(np.max(np.abs(result[f"{name}_contact.error"])) for name in RADII)
    lifted = max(np.max(result[f"{name}_contact.lift_off"]) for name in RADII)
    print(f"pushed, it steers by {np.rad2deg(np.max(np.abs(result['steer.angle']))):.1f} degrees")
    assert abs(result["steer.angle"][-1]) < 1e-2, "it does not right itself"
    assert np.ptp(energy) < 1e-8 * energy[0], "energy is lost"
    assert slip < 1e-7, "a wheel slips"
    assert not lifted, "a wheel lifts off"


if __name__ == "__main__":
    main()
