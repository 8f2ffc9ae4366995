"""The law of a beam whose section changes from one end to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.blocks.flexures.beams.beam_strains import STRAIGHT, Bending, MixedForm
from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.sections import Section
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array

_PLANES = 18  # numbers that say how a beam bends in its two planes
_ORDER = 6  # 9 digits of integrals if the thickness doubles, and 5 if it is four times as large
_X, _W = np.polynomial.legendre.leggauss(_ORDER)
#: Stations along a beam, from 0 to 1, where its section is asked for, and their weights.
STATIONS, WEIGHTS = 0.5 + 0.5 * _X, 0.5 * _W


def _running_integrals() -> Array:
    """Return the matrix that takes values at the stations to their integrals from 0 to there."""
    powers = np.vander(STATIONS, _ORDER, increasing=True)
    orders = np.arange(1, _ORDER + 1)
    integrals = STATIONS[:, None] ** orders / orders
    return np.linalg.solve(powers.T, integrals.T).T


_UP_TO = _running_integrals()


@dataclass(frozen=True)
class TaperedBeamLaw(BeamLaw):
    """The law of a slender beam whose section changes along x.

    It is a `BeamLaw` in which arcs and S mix: each form of bending has a product of both angles,
    too. They are exact integrals along the beam at x from -h/2 to h/2 in its middle, with the
    moment M = M₀ + V x of ends that are loaded::

        q = ∫ M/EI dx,   -h u = ∫ M x/EI dx + V ∫ dx/(k G A)
        φ = ∫ M/EI dx,   γ = -V/(k G A)   turn of the sections, and angle of shear
        Q = ½ ∫ (y' - ȳ')² - γ² dx        with the slope y' = φ + γ of the axis and its mean ȳ'
        D = ∫ dx/EA + ∫ m²/EI dx + ∫ t²/(k G A) dx

    where m and t are moment and shear force by a tension of one along the normals of the sections
    while the ends stay as they are: t = c - φ and m = m₀ + ∫ (y' - c) dx. So it is as good as the
    law of uniform beams in the plane. The coupling of twist and bending uses mean values, and so
    does u* = u/(1 + Φ). Stiffnesses are those of a uniform beam that is as soft.
    """

    # Stiffness, shortening and softness (see `Bending`) about y, and then about z, shape (18,).
    planes: Any = None

    @classmethod
    def between(
        cls,
        length: Any,
        sections: Sequence[Section],
        material: Material | MaterialConstants,
        *,
        shear: bool = True,
        plate_factor: Any = 1.0,
    ) -> Self:
        """Return the law of a beam of the sections at ``STATIONS``."""
        h, E, G = length, material.youngs_modulus, material.shear_modulus

        def mean(values: Any) -> Any:
            return sum(weight * value for weight, value in zip(WEIGHTS, values, strict=True))

        areas = scalars.array([each.area for each in sections])
        twist = scalars.array([1.0 / (G * each.torsion_constant) for each in sections])
        gyration = scalars.array([each.polar_moment for each in sections]) / areas
        wagner = scalars.array([E * each.wagner_constant for each in sections])
        about_y = scalars.array([1.0 / (E * each.second_moment_y) for each in sections])
        about_z = scalars.array(
            [1.0 / (E * each.second_moment_z * plate_factor) for each in sections]
        )
        factors = [each.shear_factors(material.poissons_ratio) for each in sections]
        along_y, along_z = (
            1.0 / (G * areas * scalars.array([each[k] for each in factors])) * float(shear)
            for k in range(2)
        )
        ratio_y, ratio_z = (
            12.0 * mean(across) / (mean(about) * h**2)
            for about, across in ((about_y, along_z), (about_z, along_y))
        )
        planes = [*_plane(h, about_y, along_z, ratio_y), *_plane(h, about_z, along_y, ratio_z)]
        return cls(
            h,
            E / mean(1.0 / areas),
            1.0 / mean(twist),
            1.0 / mean(about_y),
            1.0 / mean(about_z),
            mean(gyration * twist * twist) / mean(twist) ** 2,
            ratio_y,
            ratio_z,
            wagner_stiffness=mean(wagner * twist**4) / mean(twist) ** 4,
            planes=scalars.array(planes),
        )

    @classmethod
    def from_constants(cls, constants: Array, label: str = "beam") -> Self:
        """Return the law of an array of `constants`."""
        law = super().from_constants(constants[:-_PLANES], label)
        return replace(law, planes=constants[-_PLANES:])

    def constants(self) -> Array:
        """Return all constants in one array, those of the planes last."""
        return np.concatenate([super().constants(), self.planes])

    def bending(self) -> tuple[Bending, Bending]:
        """Return how the beam bends about y, and about z."""
        forms = [MixedForm(*self.planes[k : k + 3]) for k in range(0, _PLANES, 3)]
        return STRAIGHT if self.planar else Bending(*forms[:3]), Bending(*forms[3:])


def _plane(h: Any, bend: Array, shear: Array, ratio: Any) -> list[Any]:
    """Return stiffness, shortening and softness in one plane, of 1/EI and 1/(k G A)."""
    # They are those by q and by u* = u/(1 + Φ), of the mean ratio Φ.

    def integral(a: Any, b: Any) -> Any:
        return h * np.sum(WEIGHTS * a * b)

    x = h * (STATIONS - 0.5)
    f0, f1 = integral(bend, 1.0), integral(bend, x)
    f2 = integral(bend, x * x) + integral(shear, 1.0)
    scale = 1.0 / (f0 * f2 - f1 * f1)
    arc, curl, mixed = f2 * scale, h * h * f0 * scale, h * f1 * scale
    # Slopes of the axis by M₀ and by V, without those of the chord; then those by q and by u, the
    # angles of shear among them, and without these.
    by_moment, by_force = h * np.matmul(_UP_TO, bend), h * np.matmul(_UP_TO, x * bend) - shear
    by_moment, by_force = (each - np.sum(WEIGHTS * each) for each in (by_moment, by_force))
    slopes = [arc * by_moment - mixed / h * by_force, mixed * by_moment - curl / h * by_force]
    angles = [mixed / h * shear, curl / h * shear]
    turns = [slope - angle for slope, angle in zip(slopes, angles, strict=True)]
    moments = [h * np.matmul(_UP_TO, each) for each in slopes]
    rests = [
        (integral(m, bend), -integral(m * x, bend) - integral(t, shear))
        for m, t in zip(moments, turns, strict=True)
    ]
    shortening, softness = [], []
    for i, j in ((0, 0), (1, 1), (0, 1)):
        shortening.append(integral(slopes[i], slopes[j]) - integral(angles[i], angles[j]))
        (a, b), (c, d) = rests[i], rests[j]
        taken = (a * c * f2 + (a * d + b * c) * f1 + b * d * f0) * scale  # what the ends hold back
        whole = integral(moments[i] * moments[j], bend) + integral(turns[i] * turns[j], shear)
        softness.append(whole - taken)
    by_tilt = 1.0 + ratio
    scales = [1.0, by_tilt * by_tilt, by_tilt] * 3
    forms = [arc, curl, mixed, *shortening, *softness]
    return [scale * number for scale, number in zip(scales, forms, strict=True)]
