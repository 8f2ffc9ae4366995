"""A notch hinge as a mesh of solid elements: stiffness, stress and a pendulum on it.

The mesh is made here, of hexahedra between two circular notches, and needs no mesher. Its stiffness
is compared with `NotchHinge`, a beam of variable section, with the formula of Paros and Weisbord
(Machine Design 37 (1965) 151-156), and with the fit of Schotborgh et al. to finite elements
(Precision Engineering 29 (2005) 41-47). The stress in the neck is compared with that of a beam. A
lever then swings on both hinges.

Run it with ``python examples/flexures/solid_hinge.py``. It saves ``solid_hinge.png``, and needs
``pip install 'flexure[mesh]'``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import flexure as fx

STEEL = fx.Material(210e9, poissons_ratio=0.3, density=7850.0, name="steel")
RADIUS, WIDTH = 5e-3, 1e-3  # of the notches and of the sheet, in m
THICKNESSES = (2.5e-4, 5e-4, 1e-3)  # of the neck, in m
CELLS = (40, 4, 1)  # along, across the neck, and over the width
MASS, ARM = 4.7e-3, 0.03  # of the lever, in kg and m

FloatArray = npt.NDArray[np.float64]


def mesh(thickness: float) -> Any:
    """Return the material between two half circles, from one end of the notch to the other."""
    import meshio  # type: ignore[import-untyped]

    shape = tuple(n + 1 for n in CELLS)
    along = np.linspace(-1.0, 1.0, shape[0])
    angle = 0.5 * np.pi * along * np.abs(along) ** 0.5  # finest in the neck
    across, over = np.linspace(-1.0, 1.0, shape[1]), np.linspace(-0.5, 0.5, shape[2])
    a, s, z = np.meshgrid(angle, across, WIDTH * over, indexing="ij")
    half = 0.5 * thickness + RADIUS * (1.0 - np.cos(a))
    points = np.stack([RADIUS * np.sin(a), half * s, z], axis=-1).reshape(-1, 3)
    numbers = np.arange(len(points)).reshape(shape)
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    n, m, p = CELLS
    cells = [numbers[i : n + i, j : m + j, k : p + k].ravel() for k in (0, 1) for i, j in corners]
    return meshio.Mesh(points, [("hexahedron", np.stack(cells, axis=1))])


def solid(thickness: float, modes: int = 0, **options: Any) -> fx.FlexibleBody:
    """Return the elastic body, with both ends of the notch as interfaces."""
    ends: dict[str, Any] = {
        "base": ((-RADIUS, 0.0, 0.0), (1.0, 0.0, 0.0)),
        "lever": ((RADIUS, 0.0, 0.0), (1.0, 0.0, 0.0)),
    }
    return fx.FlexibleBody.from_mesh("hinge", mesh(thickness), STEEL, ends, modes=modes, **options)


def notch(thickness: float) -> fx.sections.CircularNotch:
    """Return the same notch for a `NotchHinge`."""
    return fx.sections.CircularNotch(thickness=thickness, radius=RADIUS, width=WIDTH)


def build(thickness: float = 5e-4, *, meshed: bool = False) -> fx.Plant:
    """Hang a lever on the hinge, as a mesh or as a beam."""
    builder = fx.PlantBuilder("pendulum", gravity=(0.0, 0.0, 0.0))
    size = (2.0 * ARM, 0.01, WIDTH)
    lever = builder.add_body("bar", fx.SpatialInertia.solid_box(MASS, size=size))
    if meshed:
        body = solid(thickness, modes=2, frames={"base": builder.world})
        builder.add_assembly(body)
        end = builder.add_frame("end", body.interfaces["lever"], (ARM, 0.0, 0.0))
        builder.add_joint(fx.WeldJoint("weld", end, lever))
        return builder.build()
    middle = builder.add_frame("middle", builder.world, (RADIUS, 0.0, 0.0))
    joint = builder.add_joint(fx.RpyFloatingJoint("bar", builder.world, lever))
    joint.default_pose = np.eye(3), (2.0 * RADIUS + ARM, 0.0, 0.0)
    root = builder.add_frame("root", lever, (-RADIUS - ARM, 0.0, 0.0))
    builder.add_force_element(
        fx.NotchHinge("hinge", middle, root, notch=notch(thickness), material=STEEL)
    )
    return builder.build()


def main() -> None:
    """Compare stiffness, stress and frequencies, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the picture")
    folder = parser.parse_args().folder
    E, rows = STEEL.youngs_modulus, []
    for t in THICKNESSES:
        ours = 1.0 / np.linalg.inv(solid(t).reduced.stiffness)[2, 2]
        plant = build(t)
        hinge: Any = plant.get_system("hinge")
        law = hinge.notch_law(plant.create_default_context().find(hinge))
        beam = 1.0 / law.compliance().rotation[2]
        paros = 2.0 * E * WIDTH * t**2.5 / (9.0 * np.pi * RADIUS**0.5)
        root = np.sqrt(t / (2.0 * RADIUS))
        fit = E * WIDTH * t**2 / 12.0 * (-0.0089 + 1.3556 * root - 0.5227 * root**2)
        rows.append([ours, beam, paros, fit])
        print(
            f"t/R {t / RADIUS:.2f}: mesh {ours:.4f} N m/rad, beam {beam:.4f}, "
            f"Paros and Weisbord {paros:.4f}, Schotborgh et al. {fit:.4f}"
        )
    table = np.array(rows)

    body = solid(THICKNESSES[1])
    turn = np.linalg.inv(body.reduced.stiffness)[:, 2]  # under 1 N m
    points, stress = body.reduced.stress_points, body.reduced.stress_shapes @ turn
    neck = (np.abs(points[:, 0]) < 1e-9) & (points[:, 1] > 0.4 * THICKNESSES[1])
    peak = np.abs(stress[neck, 0]).mean()
    nominal = 6.0 / (WIDTH * THICKNESSES[1] ** 2)
    print(f"stress in the neck {peak / nominal:.3f} times that of a straight beam")

    found = [fx.modes(build(meshed=meshed)).frequencies for meshed in (True, False)]
    swing = [float(np.abs(each).min()) for each in found]
    print(f"the lever swings at {swing[0]:.2f} Hz on the mesh, {swing[1]:.2f} Hz on the beam")
    draw(points, stress, table, folder / "solid_hinge.png")

    assert np.abs(table[:, 0] / table[:, 3] - 1.0).max() < 0.02, "not the stiffness of the fit"
    assert np.abs(table[:2, 0] / table[:2, 1] - 1.0).max() < 0.04, "not the stiffness of a beam"
    assert 1.0 < peak / nominal < 1.1, "unexpected stress in the neck"
    assert abs(swing[0] / swing[1] - 1.0) < 0.03, "the lever swings otherwise"


def draw(points: FloatArray, stress: FloatArray, table: FloatArray, file: Path) -> None:
    """Save the stress of the mesh, and the stiffness by all four."""
    import matplotlib.pyplot as plt

    figure, (picture, bars) = plt.subplots(1, 2, figsize=(10.0, 4.5), layout="constrained")
    face = points[:, 2] > 0.0
    grid = CELLS[0] + 1, CELLS[1] + 1
    x, y = (1e3 * points[face, axis].reshape(grid) for axis in (0, 1))
    bent = stress[face, 0].reshape(grid) / 1e9
    shown = picture.pcolormesh(x, y, bent, shading="gouraud", cmap="RdBu_r")
    figure.colorbar(shown, ax=picture, label="stress along x under 1 N mm, in MPa")
    picture.set(xlabel="x in mm", ylabel="y in mm", aspect="equal")
    ratios = np.array(THICKNESSES) / RADIUS
    for column, label in enumerate(("mesh", "NotchHinge", "Paros and Weisbord", "Schotborgh")):
        bars.plot(ratios, table[:, column] / table[:, 3], "o-", label=label)
    bars.set(xlabel="thickness over radius", ylabel="stiffness over that of Schotborgh et al.")
    bars.legend(frameon=False)
    bars.grid(True, color="#dddddd")
    bars.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
