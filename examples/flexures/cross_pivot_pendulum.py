"""A pendulum on a cross pivot: stiffness over the angle, shift of its frequency, and stress.

Two leaves that cross let a pendulum swing without friction and without play. For small angles its
stiffness is that of the leaves in pure bending, less what the weight takes away, since the leaves
let it sink as they bend. Further out the stiffness changes, and so does the frequency: it is found
from the energy along the equilibria, and by a simulation. The swing ends where the steel yields.

Run it with ``python examples/flexures/cross_pivot_pendulum.py``. It saves
``cross_pivot_pendulum.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

import flexure as fx

STEEL = fx.Material.common("stainless steel 301")
LENGTH, WIDTH, THICKNESS = 0.04, 0.01, 4e-4  # of each leaf, in m
MASS, ARM = 0.2, 0.06  # of the pendulum in kg, and of its center below the crossing in m
SIZE = (0.08, 0.03, 0.012)
GRAVITY = 9.81
FARTHEST, HIT = np.deg2rad(40.0), np.deg2rad(30.0)
SAFETY = 1.5  # against yield
ANGLE, STRESS = "swing.q[2]", "pivot_leaf1.greatest_stress"
#: The axes of the pivot: x downwards, z the axis of rotation.
DOWN = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]])


def build(gravity: float = GRAVITY) -> fx.Plant:
    """Hang a bar on two leaves; the plant moves in one plane."""
    builder = fx.PlantBuilder("pendulum", gravity=(0.0, 0.0, -gravity))
    top = builder.add_frame("top", builder.world, (DOWN, (0.0, 0.0, 0.0)))
    bar = builder.add_body("bar", fx.SpatialInertia.solid_box(MASS, size=SIZE), com=(ARM, 0.0, 0.0))
    builder.add_joint(fx.PlanarJoint("swing", top, bar))
    builder.add_assembly(
        fx.CrossPivot(
            "pivot",
            top,
            bar,
            length=LENGTH,
            width=WIDTH,
            thickness=THICKNESS,
            material=STEEL,
            gap=0.016,
            damping_time=1e-5,
            segments=2,
            planar=True,
        )
    )
    return builder.build()


def period(moment: CubicSpline, inertia: CubicSpline, amplitude: float) -> float:
    """Return the period of a swing, in s, from the moment that holds the pendulum at an angle.

    The time is ∫ dθ/ω with ½ J ω² = V(θ₀) - V(θ); with θ = θ₀ sin φ nothing in it is infinite.
    """
    energy = moment.antiderivative()
    angle = amplitude * np.sin((np.arange(400) + 0.5) * np.pi / 800.0)
    rates = np.sqrt(2.0 * (energy(amplitude) - energy(angle)) / inertia(angle))
    return float(2.0 * np.pi * np.mean(np.sqrt(amplitude**2 - angle**2) / rates))


def inertia_along(path: fx.results.LoadPath) -> CubicSpline:
    """Return J(θ) in kg m², which changes as the center of the rotation wanders."""
    x, y, angle = path["swing.q"][path.stations].T
    center = np.stack([x + ARM * np.cos(angle), y + ARM * np.sin(angle)])
    speed = CubicSpline(angle, center, axis=1)(angle, 1)
    inertia = MASS * ((SIZE[0] ** 2 + SIZE[1] ** 2) / 12.0 + np.sum(speed**2, axis=0))
    return CubicSpline(angle, inertia)


def swing(plant: fx.Plant, rate: float) -> tuple[float, float]:
    """Return amplitude in rad and frequency in Hz of a pendulum that is hit, from a simulation."""
    context = plant.create_default_context()
    context.set("swing.v", [0.0, 0.0, rate])
    result = fx.simulate(plant, 2.0, context=context, rtol=1e-6)
    angle = CubicSpline(result.time, result["swing.q"][:, 2])
    crossings = angle.roots(extrapolate=False)[1:]
    amplitude = float(np.max(np.abs(angle(np.linspace(0.0, 2.0, 20_001)))))
    return amplitude, float(0.5 / np.mean(np.diff(crossings)))


def main() -> None:
    """Follow equilibria, compare with closed forms, swing, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    angles = np.linspace(0.0, FARTHEST, 21)
    moments, paths = [], []
    for plant in (build(0.0), build()):
        path = fx.load_path(plant, {ANGLE: angles}, signals=[STRESS, "swing.q"])
        held = path.required[ANGLE][path.stations]
        # The other half of the swing is the same.
        both = np.concatenate([-angles[:0:-1], angles]), np.concatenate([-held[:0:-1], held])
        moments.append(CubicSpline(*both))
        paths.append(path)
    (alone, hanging), path = moments, paths[1]

    EI = STEEL.youngs_modulus * WIDTH * THICKNESS**3 / 12.0
    weight = MASS * GRAVITY
    by_leaves = 2.0 * EI / LENGTH
    by_weight = weight * ARM - weight * LENGTH / (6.0 * np.cos(np.pi / 4.0))
    pivot, total = float(alone(0.0, 1)), float(hanging(0.0, 1))
    print(f"stiffness of the pivot {pivot:.5f} N m/rad, closed form {by_leaves:.5f}")
    print(f"with the weight {total:.5f} N m/rad, closed form {by_leaves + by_weight:.5f}")

    inertia = inertia_along(path)
    small = fx.modes(plant, path.context(0))[0].frequency
    by_hand = np.sqrt(total / inertia(0.0)) / (2.0 * np.pi)
    print(f"small swings: {small:.4f} Hz, by hand {by_hand:.4f} Hz")
    energy = hanging.antiderivative()
    rate = float(np.sqrt(2.0 * float(energy(HIT) - energy(0.0)) / inertia(0.0)))
    amplitude, swung = swing(plant, rate)
    expected = 1.0 / period(hanging, inertia, amplitude)
    print(
        f"swings of {np.rad2deg(amplitude):.2f} degrees: {swung:.4f} Hz, expected {expected:.4f} Hz"
    )

    stress = path[STRESS][path.stations]
    per_angle = 0.5 * STEEL.youngs_modulus * THICKNESS / LENGTH
    allowed = (STEEL.yield_strength or np.inf) / SAFETY
    limit = float(np.interp(allowed, stress, angles))
    bent, pure = paths[0][STRESS][paths[0].stations][1], per_angle * angles[1]
    print(f"{SAFETY:g} times safe against yield up to {np.rad2deg(limit):.1f} degrees")
    print(f"without weight at 2 degrees {1e-6 * bent:.2f} MPa, in an arc {1e-6 * pure:.2f} MPa")
    figures = amplitude, swung, allowed
    draw(plant, path, moments, inertia, figures, folder / "cross_pivot_pendulum.png")

    assert abs(pivot / by_leaves - 1.0) < 1e-3, "the pivot is not that of the closed form"
    assert abs(total / (by_leaves + by_weight) - 1.0) < 2e-3, "the weight acts otherwise"
    assert abs(small / by_hand - 1.0) < 2e-3, "the mode has another frequency"
    assert abs(swung / expected - 1.0) < 2e-3, "the swing has another frequency"
    assert abs(bent / pure - 1.0) < 0.02, "the leaves have another stress"


def draw(
    plant: fx.Plant,
    path: fx.results.LoadPath,
    moments: list[CubicSpline],
    inertia: CubicSpline,
    figures: tuple[float, float, float],
    file: Path,
) -> None:
    """Save the pendulum, and stiffness, frequency and stress over the angle."""
    import matplotlib.pyplot as plt

    amplitude, swung, allowed = figures
    figure, axes = plt.subplots(2, 2, figsize=(11.0, 7.5), layout="constrained")
    fx.plot_mechanism(plant, path.context(-1), view="xz", stress=True, ax=axes[0, 0])
    shown = np.linspace(0.0, FARTHEST, 100)
    degrees: NDArray[np.float64] = np.rad2deg(shown)
    for moment, label in zip(moments, ("without weight", "with the weight"), strict=True):
        axes[0, 1].plot(degrees, moment(shown, 1), label=label)
    axes[0, 1].set(xlabel="angle in degrees", ylabel="stiffness in N m/rad")
    axes[0, 1].legend(frameon=False)
    swings = np.linspace(0.02, FARTHEST, 40)
    frequencies = [1.0 / period(moments[1], inertia, swing) for swing in swings]
    axes[1, 0].plot(np.rad2deg(swings), frequencies, label="by the energy")
    axes[1, 0].plot(np.rad2deg(amplitude), swung, "o", label="simulation")
    axes[1, 0].set(xlabel="amplitude in degrees", ylabel="frequency in Hz")
    axes[1, 0].legend(frameon=False)
    angles, stress = path.values[ANGLE], path[STRESS]
    axes[1, 1].plot(np.rad2deg(angles), 1e-6 * stress)
    axes[1, 1].axhline(1e-6 * allowed, color="#b22222", linestyle="--")
    axes[1, 1].set(xlabel="angle in degrees", ylabel="greatest stress in MPa")
    for ax in axes.flat[1:]:
        ax.grid(True, color="#dddddd")
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
