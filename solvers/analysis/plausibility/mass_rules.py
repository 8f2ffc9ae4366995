"""Rules about bodies: masses, sizes, distances and gravity."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding, exceeded

_DENSEST = 3e4  # kg/m³
_LIGHTEST = 0.01  # kg/m³
_MASSES = 1e6
_SIZES = 1e4
_ARM = 300.0
_HEAVIEST_PULL = 100.0  # m/s²
_LIGHTEST_PULL = 0.01  # m/s²
_THIN = 1e-6  # part of the longest edge that counts as no thickness


def density(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find bodies denser than any material, or far lighter than the air around them.

    The density is the mass over the volume of the uniform box with the same radii of gyration,
    within 15 % of the true one for uniform solids of other shapes. The densest element is osmium
    with 22 600 kg/m³, so the upper limit is 30 000. Air has 1.2 kg/m³, and a textbook body of 1 kg
    with moments of 1 kg m² has 0.07; the lower limit is 0.01. Grams instead of kilograms change the
    density by 10³, and millimeters instead of meters by 10⁹. Thin rods and plates have no volume:
    the upper limit treats them as thick, and the lower one does not apply.
    """
    for solid in diagnosed.solids:
        longest = float(solid.size[-1])
        if longest == 0.0:
            continue
        mass, _, inertia = solid.paths
        edges = np.where(solid.size > _THIN * longest, solid.size, longest)
        heavy = solid.mass / float(np.prod(edges))
        light = solid.mass / max(float(np.prod(solid.size)), 1e-300)
        shape = " x ".join(f"{edge:.3g}" for edge in solid.size)
        look = "Check the mass (kg, not g) and the size of its inertia (m, not mm)"
        what = f"{solid.mass:.4g} kg in about {shape} m, a density of "
        if heavy > _DENSEST:
            yield exceeded(
                "density",
                (mass, inertia),
                f"{what}{heavy:.3g} kg/m³",
                (heavy, "kg/m^3", _DENSEST),
                "No material is this dense",
                look,
            )
        elif light < _LIGHTEST:
            yield exceeded(
                "density",
                (inertia, mass),
                f"{what}{light:.3g} kg/m³",
                (light, "kg/m^3", _LIGHTEST),
                "It is far lighter than air",
                look,
            )


def mass_ratio(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find masses of one mechanism that differ by more than a million.

    A screw and its crane differ by 10⁷ and are seldom two bodies of one model: the light body has
    no effect except on the condition number of the mass matrix, which is about this ratio, so that
    results lose as many digits.
    """
    for leaf, _ in diagnosed.trees:
        solids = [solid for solid in diagnosed.solids if solid.tree is leaf]
        if solids:
            heavy = max(solids, key=lambda solid: solid.mass)
            light = min(solids, key=lambda solid: solid.mass)
            ratio = heavy.mass / light.mass
            if ratio > _MASSES:
                yield exceeded(
                    "mass ratio",
                    (heavy.paths[0], light.paths[0]),
                    f"{heavy.mass:.4g} kg beside {light.mass:.4g} kg, {ratio:.2g} times as much",
                    (ratio, "", _MASSES),
                    "Bodies of one mechanism are seldom that different",
                    "Check the units of both (kg, not g), or remove the light body",
                )


def size_ratio(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find bodies of one mechanism that differ in size by more than ten thousand.

    A grain of sand and a house do. Sizes are the longest edges of the boxes of `density`.
    """
    for leaf, _ in diagnosed.trees:
        solids = [each for each in diagnosed.solids if each.tree is leaf and each.size[-1] > 0.0]
        if solids:
            large = max(solids, key=lambda solid: float(solid.size[-1]))
            small = min(solids, key=lambda solid: float(solid.size[-1]))
            ratio = float(large.size[-1] / small.size[-1])
            if ratio > _SIZES:
                yield exceeded(
                    "size ratio",
                    (large.paths[2], small.paths[2]),
                    f"{large.size[-1]:.3g} m beside {small.size[-1]:.3g} m",
                    (ratio, "", _SIZES),
                    "Bodies of one mechanism are seldom that different",
                    "Check the units of both sizes (m, not mm)",
                )


def arm(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find centers of mass and joints that are hundreds of body sizes away from their body.

    They are usually about one body size away; for a bob on a long rod, a hundred. Beyond 300 sizes,
    the distance is in millimeters or the inertia in another unit.
    """
    for solid in diagnosed.solids:
        longest = float(solid.size[-1])
        if longest > 0.0 and solid.reach > _ARM * longest:
            yield exceeded(
                "arm",
                solid.paths[1:],
                f"a center of mass or a joint {solid.reach:.4g} m from the origin of "
                f"'{solid.name}', which is {longest:.3g} m long by its inertia",
                (solid.reach / longest, "", _ARM),
                "It is far outside the body",
                "Check the units of both lengths (m, not mm)",
            )


def gravity(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find gravity that is stronger than on any planet, or weaker than on a small moon.

    It is 9.81 m/s² on Earth, 24.8 m/s² on Jupiter and 0.1 m/s² on moons of 100 km; the limits are
    100 and 0.01 m/s², so that 9810 and 0.00981, in mm and km, are reported. Zero is allowed.
    """
    for leaf, tree in diagnosed.trees:
        pull = float(np.linalg.norm(tree.gravity(leaf)))
        if pull > 0.0 and not _LIGHTEST_PULL <= pull <= _HEAVIEST_PULL:
            limit = _HEAVIEST_PULL if pull > _HEAVIEST_PULL else _LIGHTEST_PULL
            yield exceeded(
                "gravity",
                (diagnosed.path_of(tree.gravity),),
                f"{pull:.4g} m/s²",
                (pull, "m/s^2", limit),
                "It is 9.81 m/s² on Earth",
                "Check the unit of lengths: all are in m",
            )


RULES = (density, mass_ratio, size_ratio, arm, gravity)
