"""A machine on four mounts, isolated from a shaking floor by a skyhook.

The modes of the machine say what has to be damped. A force in proportion to its own velocity does
that without making the mounts stiffer; how strong it may be is bounded by the delay of the sensor.
The gain is the largest one that keeps a bound on the peak of the sensitivity. The transmissibility
of linear models is confirmed by a simulation at the resonance.

Run it with ``python examples/mechanisms/vibration_isolation.py``. It saves
``vibration_isolation.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import flexure as fx

MASS, SIZE = 40.0, (0.6, 0.4, 0.3)  # kg, m
STIFFNESS = np.array([4e4, 3e4, 9e4])  # N/m, of each mount
DAMPING = 2e-4 * STIFFNESS  # N s/m
FLOOR = 1e5  # kg, so heavy that the machine does not move it
MAX_SENSITIVITY = 1.3
UP = np.eye(6)[:, 5:]  # a vertical force as a spatial force


def build() -> fx.Diagram:
    """Put the machine on a floor that a shaker moves, and feed its velocity back."""
    builder = fx.PlantBuilder("plant", gravity=(0.0, 0.0, 0.0))
    floor = builder.add_body("floor", fx.SpatialInertia.solid_box(FLOOR, size=(5.0, 5.0, 1.0)))
    builder.add_joint(fx.PrismaticJoint("lift", builder.world, floor, axis=(0, 0, 1)))
    machine = builder.add_body("machine", fx.SpatialInertia.solid_box(MASS, size=SIZE))
    builder.add_joint(fx.RpyFloatingJoint("float", builder.world, machine))
    for k, corner in enumerate([(x, y, -0.15) for x in (-0.25, 0.25) for y in (-0.15, 0.15)]):
        mount = fx.LinearBushing(
            f"mount{k}",
            builder.add_frame(f"below{k}", floor, corner),
            builder.add_frame(f"above{k}", machine, corner),
            torque_stiffness=np.full(3, 20.0),
            torque_damping=np.full(3, 0.02),
            force_stiffness=STIFFNESS,
            force_damping=DAMPING,
        )
        builder.add_force_element(mount)
    builder.add_external_force("shaker", floor)
    builder.add_external_force("coil", machine)

    loop = fx.DiagramBuilder("isolation")
    loop.add_all(
        builder.build(),
        fx.Selector("velocity", 6, [5]),
        fx.PadeDelay("sensor", 2e-3),
        fx.Gain("skyhook", 0.0),
        fx.MatrixGain("up", UP),
        fx.Sine("source", frequency=1.0, amplitude=0.0),
        fx.MatrixGain("shaking", UP),
    )
    loop.connect("plant.machine.spatial_velocity", "velocity.u")
    loop.connect_chain("velocity", "sensor", "skyhook", "up", "plant.coil")
    loop.connect_chain("source", "shaking", "plant.shaker")
    return loop.build()


def peak_of_sensitivity(diagram: fx.Diagram, context: fx.Context, gain: float) -> float:
    """Return the peak for a gain; infinity when the loop is not stable."""
    context.set("skyhook.gain", -gain)
    found = fx.margins(fx.loop_gain(diagram, "up.u", context=context))
    return 1.0 / found.modulus_margin if found.is_stable else np.inf


def tuned(diagram: fx.Diagram, context: fx.Context) -> float:
    """Return the largest gain that keeps the bound, by bisection."""
    low, high = 1.0, 1e5
    while high > 1.001 * low:
        middle = np.sqrt(low * high)
        fits = peak_of_sensitivity(diagram, context, middle) <= MAX_SENSITIVITY
        low, high = (middle, high) if fits else (low, middle)
    return low


def transmissibility(diagram: fx.Diagram, context: fx.Context, frequency: np.ndarray) -> np.ndarray:
    """Return how much of the motion of the floor the machine follows, at frequencies in Hz."""
    heights = ["plant.machine.position[2]", "plant.floor.position[2]"]
    model = fx.linearize(diagram, context, ["shaking.u"], heights)
    machine, floor = model.frequency_response(2.0 * np.pi * frequency)[..., 0].T
    return abs(machine / floor)


def simulated(diagram: fx.Diagram, context: fx.Context, frequency: float) -> float:
    """Shake the floor at a frequency in Hz, and return the ratio of the amplitudes."""
    context.set("source.frequency", 2.0 * np.pi * frequency)
    context.set("source.amplitude", 1e-4 * FLOOR * (2.0 * np.pi * frequency) ** 2)  # 0.1 mm
    result = fx.simulate(diagram, 60.0 / frequency, context=context, rtol=1e-9, atol=1e-12)
    times = np.linspace(50.0, 60.0, 2000, endpoint=False) / frequency  # ten whole periods
    wave = np.exp(-2j * np.pi * frequency * times)
    heights = [result.sample(f"plant.{body}.position[2]", times) for body in ("machine", "floor")]
    drift = np.polynomial.Polynomial.fit(times, heights[1], 1)(times)  # the floor drifts away
    machine, floor = (abs(np.sum((height - drift) * wave)) for height in heights)
    return float(machine / floor)


def main() -> None:
    """Tune, compare, confirm, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    diagram = build()
    passive, active = diagram.create_default_context(), diagram.create_default_context()
    print(fx.modes(diagram, passive).table())
    gain = tuned(diagram, active)
    peak = peak_of_sensitivity(diagram, active, gain)
    print(f"skyhook of {gain:.0f} N s/m, peak of the sensitivity {peak:.3f}")

    bounce = np.sqrt(4.0 * STIFFNESS[2] / MASS) / (2.0 * np.pi)
    frequency = np.geomspace(1.0, 200.0, 2000)
    curves = [transmissibility(diagram, each, frequency) for each in (passive, active)]
    predicted = float(transmissibility(diagram, active, np.array([bounce]))[0])
    confirmed = simulated(diagram, active, bounce)
    print(f"the machine bounces at {bounce:.2f} Hz; there it follows the floor")
    print(
        f"{max(curves[0]):.1f} times without, {predicted:.3f} times with, {confirmed:.3f} simulated"
    )

    with plt.style.context("flexure.pictures"):
        figure, ax = plt.subplots()
        for curve, label in zip(curves, ("mounts alone", "with the skyhook"), strict=True):
            ax.loglog(frequency, curve, label=label)
        ax.loglog([bounce], [confirmed], "o", label="simulated")
        ax.set(xlabel="frequency [Hz]", ylabel="motion of the machine / motion of the floor")
        ax.legend()
        figure.savefig(folder / "vibration_isolation.png")
    assert peak <= MAX_SENSITIVITY
    assert abs(frequency[np.argmax(curves[0])] - bounce) < 0.01 * bounce
    assert predicted < max(curves[0]) / 10.0, "the skyhook does not isolate"
    assert abs(confirmed - predicted) < 0.02 * predicted, "the simulation says something else"


if __name__ == "__main__":
    main()
