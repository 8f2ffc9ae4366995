"""A leaf that wraps onto a cam: the hinge becomes stiffer as its free length becomes shorter.

A leaf spring is clamped where a round cam touches it. A force across its end bends it towards the
cam, until its curvature at the clamp is that of the cam. From then on it wraps onto the cam, and
its curvature, hence the stress, grows no further. The leaf is a beam of several segments, with a
contact at each of its nodes. The force over the deflection is compared with an integration of the
elastica: an arc on the cam, and from its end a free rod, in which neither angle nor moment jumps.

Run it with ``python examples/flexures/contact_aided_hinge.py``. It saves
``contact_aided_hinge.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import flexure as fx

STEEL = fx.Material.common("stainless steel 301")
LENGTH, WIDTH, THICKNESS = 0.05, 0.01, 2e-4  # of the leaf, in m
RADIUS = 0.07  # of the cam, to the center line of the leaf
SEGMENTS = 12
FARTHEST = 0.0155  # deflection of the end in m
BENDING = STEEL.youngs_modulus * WIDTH * THICKNESS**3 / 12.0
HEIGHT = "end.q[1]"


def build(*, cam: bool = True) -> fx.Plant:
    """Clamp a leaf beside a cam."""
    builder = fx.PlantBuilder("hinge", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(0.01))
    place = builder.add_frame("place", builder.world, (LENGTH, 0.0, 0.0))
    builder.add_joint(fx.PlanarJoint("end", place, tip))
    leaf = fx.LeafSpring(
        "leaf",
        builder.world,
        tip,
        length=LENGTH,
        width=WIDTH,
        thickness=THICKNESS,
        material=STEEL,
        segments=SEGMENTS,
        planar=True,
    )
    builder.add_force_element(leaf)
    round_cam = fx.BodyShape.sphere(radius=RADIUS).moved((0.0, -RADIUS, 0.0))
    if cam:
        for node in leaf.inside.nodes:
            point = fx.BodyShape.point()
            builder.add_force_element(
                fx.Contact(f"cam_{node.name}", node, point, builder.world, round_cam, stiffness=1e6)
            )
    return builder.build()


def rod(force: float, wrapped: float) -> NDArray[np.float64]:
    """Return x, y, angle and curvature at the end of a rod that leaves the cam at an arc length."""

    def slopes(_: float, state: NDArray[np.float64]) -> list[float]:
        _, _, angle, curvature = state
        return [np.cos(angle), np.sin(angle), -curvature, -force / BENDING * np.cos(angle)]

    turn = wrapped / RADIUS
    start = [RADIUS * np.sin(turn), RADIUS * (np.cos(turn) - 1.0), -turn, 1.0 / RADIUS]
    run = solve_ivp(slopes, (wrapped, LENGTH), start, rtol=1e-9, atol=1e-12)
    end: NDArray[np.float64] = run.y[:, -1]
    return end


def by_elastica(force: float) -> tuple[float, float]:
    """Return deflection and wrapped length in m, for a force with which the leaf wraps."""
    wrapped = brentq(lambda s: rod(force, s)[3], 0.0, 0.999 * LENGTH, xtol=1e-12)
    return -float(rod(force, wrapped)[1]), float(wrapped)


def main() -> None:
    """Follow the deflection, compare with the elastica, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    depths = np.linspace(0.0, FARTHEST, 25)
    plant = build()
    stress = "leaf.greatest_stress"
    path = fx.load_path(plant, {HEIGHT: -depths}, signals=[stress])
    free = fx.load_path(build(cam=False), {HEIGHT: -depths}, signals=[stress])
    force = -path.required[HEIGHT][path.stations]
    plain = -free.required[HEIGHT][free.stations]

    first = BENDING / (RADIUS * LENGTH)  # the force at which the leaf begins to wrap, nearly
    forces = np.linspace(1.2 * first, force[-1], 12)
    wrapping = np.array([by_elastica(each) for each in forces])
    found = np.interp(wrapping[:, 0], depths, force)
    error = np.max(np.abs(found / forces - 1.0))
    linear = 3.0 * BENDING / LENGTH**3
    print(f"stiffness at first {force[1] / depths[1]:.2f} N/m, of a free leaf {linear:.2f} N/m")
    wrapped = 1e3 * wrapping[-1, 1]
    print(f"wraps from {first:.3f} N on; at {force[-1]:.3f} N {wrapped:.1f} mm lie on the cam")
    print(f"force up to {100.0 * error:.2f} % off that of the elastica")
    limit = 0.5 * STEEL.youngs_modulus * THICKNESS / RADIUS
    greatest = path[stress][path.stations][-1], free[stress][free.stations][-1]
    print(
        f"stress {1e-6 * greatest[0]:.0f} MPa, of a leaf bent to the cam {1e-6 * limit:.0f} MPa, "
        f"without the cam {1e-6 * greatest[1]:.0f} MPa"
    )
    draw(plant, path, (depths, force, plain), (wrapping[:, 0], forces), folder)

    assert abs(force[1] / depths[1] / linear - 1.0) < 0.02, "the leaf has another stiffness"
    assert error < 0.02, "the leaf wraps otherwise than the elastica"
    assert greatest[0] < 1.1 * limit < greatest[1], "the cam does not limit the stress"


def draw(
    plant: fx.Plant,
    path: fx.results.LoadPath,
    curves: tuple[NDArray[np.float64], ...],
    elastica: tuple[NDArray[np.float64], ...],
    folder: Path,
) -> None:
    """Save the bent leaf, and the force over the deflection."""
    import matplotlib.pyplot as plt

    depths, force, plain = curves
    figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.5), layout="constrained")
    fx.plot_mechanism(plant, path.context(-1), view="xy", stress=True, ax=axes[0])
    angles = np.linspace(0.0, 1.2, 60)
    arc = RADIUS * np.sin(angles), RADIUS * (np.cos(angles) - 1.0)
    axes[0].fill_between(arc[0], arc[1], np.min(arc[1]), color="#dddddd")
    axes[1].plot(1e3 * depths, plain, color="#999999", label="free leaf")
    axes[1].plot(1e3 * depths, force, label="leaf with contacts")
    axes[1].plot(1e3 * elastica[0], elastica[1], "o", label="elastica on the cam")
    axes[1].set(xlabel="deflection in mm", ylabel="force in N")
    axes[1].legend(frameon=False)
    axes[1].grid(True, color="#dddddd")
    axes[1].spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "contact_aided_hinge.png", dpi=120)


if __name__ == "__main__":
    main()
