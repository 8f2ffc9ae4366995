"""Rules about bodies: masses, sizes, distances and gravity."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flexure.solvers.analysis.plausibility.diagnosed_system import DiagnosedSystem
from flexure.solvers.analysis.plausibility.findings import Finding

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

    Mass over the volume of the uniform box with the same radii of gyration. For uniform solids of
    other shapes, too, this is within 15 % of their density. The densest element is osmium with
    22 600 kg/m³, so the upper limit is 30 000. Air has 1.2 kg/m³, and a body of 1 kg with moments
    of 1 kg m², as in textbooks, 0.07; the lower limit is 0.01. Grams instead of kilograms change
    the density by 10³, and millimeters instead of meters by 10⁹. Thin rods and plates have no
    volume: they count as thick when judged too heavy, and are never too light.
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
        look = "Look at the mass (kg, not g) and at the size of its inertia (m, not mm)"
        what = f"{solid.mass:.4g} kg in about {shape} m, a density of "
        if heavy > _DENSEST:
            yield Finding(
                "density",
                (mass, inertia),
                f"{what}{heavy:.3g} kg/m³",
                heavy,
                "kg/m^3",
                _DENSEST,
                "No material is as dense",
                look,
            )
        elif light < _LIGHTEST:
            yield Finding(
                "density",
                (inertia, mass),
                f"{what}{light:.3g} kg/m³",
                light,
                "kg/m^3",
                _LIGHTEST,
                "It is far lighter than air",
                look,
            )


def mass_ratio(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find masses of one mechanism that differ by more than a million.

    A screw and the crane that it is in differ by 10⁷ and are seldom two bodies of one model: the
    light one changes nothing but the condition of the mass matrix, which is about this ratio and
    costs as many digits.
    """
    for leaf, _ in diagnosed.trees:
        solids = [solid for solid in diagnosed.solids if solid.tree is leaf]
        if solids:
            heavy = max(solids, key=lambda solid: solid.mass)
            light = min(solids, key=lambda solid: solid.mass)
            ratio = heavy.mass / light.mass
            if ratio > _MASSES:
                yield Finding(
                    "mass ratio",
                    (heavy.paths[0], light.paths[0]),
                    f"{heavy.mass:.4g} kg beside {light.mass:.4g} kg, {ratio:.2g} times as much",
                    ratio,
                    "",
                    _MASSES,
                    "Bodies of one mechanism are seldom that different",
                    "Look at the units of both (kg, not g), or leave the light body out",
                )


def size_ratio(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find bodies of one mechanism that differ in size by more than ten thousand.

    That is a grain of sand on a house. Sizes are the longest edges of the boxes of `density`.
    """
    for leaf, _ in diagnosed.trees:
        solids = [each for each in diagnosed.solids if each.tree is leaf and each.size[-1] > 0.0]
        if solids:
            large = max(solids, key=lambda solid: float(solid.size[-1]))
            small = min(solids, key=lambda solid: float(solid.size[-1]))
            ratio = float(large.size[-1] / small.size[-1])
            if ratio > _SIZES:
                yield Finding(
                    "size ratio",
                    (large.paths[2], small.paths[2]),
                    f"{large.size[-1]:.3g} m beside {small.size[-1]:.3g} m",
                    ratio,
                    "",
                    _SIZES,
                    "Bodies of one mechanism are seldom that different",
                    "Look at the units of both sizes (m, not mm)",
                )


def arm(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find centers of mass and joints that are hundreds of sizes of their body away from it.

    A body reaches about as far as it is large; a bob on a long rod reaches a hundred times as far.
    Beyond 300 sizes either the distance is in millimeters or the inertia in other units.
    """
    for solid in diagnosed.solids:
        longest = float(solid.size[-1])
        if longest > 0.0 and solid.reach > _ARM * longest:
            yield Finding(
                "arm",
                solid.paths[1:],
                f"a center of mass or a joint {solid.reach:.4g} m from the origin of "
                f"'{solid.name}', which is {longest:.3g} m long by its inertia",
                solid.reach / longest,
                "",
                _ARM,
                "It is far outside of the body",
                "Look at the units of both lengths (m, not mm)",
            )


def gravity(diagnosed: DiagnosedSystem) -> Iterator[Finding]:
    """Find gravity that is stronger than on any planet, or weaker than on a small moon.

    It is 9.81 m/s² on Earth, 24.8 m/s² on Jupiter and 0.1 m/s² on moons of 100 km; the limits are
    100 and 0.01 m/s², so that 9810 and 0.00981, in mm and km, are found. Zero is no gravity.
    """
    for leaf, tree in diagnosed.trees:
        pull = float(np.linalg.norm(tree.gravity(leaf)))
        if pull > 0.0 and not _LIGHTEST_PULL <= pull <= _HEAVIEST_PULL:
            limit = _HEAVIEST_PULL if pull > _HEAVIEST_PULL else _LIGHTEST_PULL
            yield Finding(
                "gravity",
                (diagnosed.path_of(tree.gravity),),
                f"{pull:.4g} m/s²",
                pull,
                "m/s^2",
                limit,
                "It is 9.81 m/s² on Earth",
                "Look at the unit of lengths: everything is in m",
            )


RULES = (density, mass_ratio, size_ratio, arm, gravity)
