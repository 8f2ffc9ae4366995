"""The energy of a slender beam and its slopes, as functions of how its ends stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from flexure.blocks.flexures.materials import Material
from flexure.blocks.flexures.sections import Section
from flexure.blocks.math import dot
from flexure.diagrams import scalars
from flexure.diagrams.values import Array


class BeamStrains(NamedTuple):
    """How a beam is bent, twisted and stretched.

    Attributes
    ----------
    length : float or Symbol
        Distance l of the ends in m.
    direction : array, shape (3,)
        Unit vector n from the one to the other, expressed in B.
    turns : array, shape (3,)
        Mean curvature times length, q: the twist, and the bending about y and z, in rad.
    chord : array, shape (2,)
        Angles u and w of the chord along y and z, beyond those of a helix, in rad.
    force : float or Symbol
        Axial force N, positive in tension, in N.
    """

    length: Array
    direction: Array
    turns: Array
    chord: Array
    force: Array


@dataclass(frozen=True)
class BeamLaw:
    """The law of a straight slender beam along x between a frame A and a frame C.

    The deformation is that of a bushing on the rotation vector: θ turns A into C, and p is the
    position of Co from Ao expressed in the frame B halfway between them. With the length h, and
    with p = l n of the length l::

        u = 2 n_y / (1 + n_x) - θ_x θ_y / 24      w = 2 n_z / (1 + n_x) - θ_x θ_z / 24
        q = θ + θ × (0, -w, u)

    Bending at constant curvature belongs to q, bending like an S to u and w. Both shorten the
    chord, by Q, and give way to an axial force, by D, with Φ = 12 EI / (k G A h²) per plane::

        Q = h (q_y² + q_z²)/24 + h (u²/(1 + Φ_z)² + w²/(1 + Φ_y)²)/10 + (I_p/A) q_x²/(2 h)
        D = h/EA + 2 h³ (a_z q_z² + s_z u²)/EI_z + 2 h³ (a_y q_y² + s_y w²)/EI_y
        a = (1 + 5 Φ)/1440,  s = (1 + 15 Φ + 35 Φ²/3)/(1400 (1 + Φ)³)
        N = (l - h + Q)/D
        V = (½ GJ q_x² + ½ EI_y q_y² + ½ EI_z q_z² + 6 EI_z u²/(1 + Φ_z) + 6 EI_y w²/(1 + Φ_y))/h
            + ½ N² D - (EI_y - EI_z)² q_y² q_z²/(24 GJ h)

    Attributes
    ----------
    length : float or Symbol
        Length h > 0 of the unstressed beam in m.
    axial_stiffness : float or Symbol
        EA > 0 in N.
    torsion_stiffness : float or Symbol
        GJ > 0 in N m².
    bending_stiffness_y, bending_stiffness_z : float or Symbol
        EI_y, EI_z > 0 of bending about y and z, in N m².
    gyration_square : float or Symbol
        I_p/A >= 0, by which twist shortens a beam, in m².
    shear_ratio_y, shear_ratio_z : float or Symbol
        Φ_y, Φ_z >= 0 of bending about y and z; 0 without deflection by shear.

    Notes
    -----
    The constants may be symbols, and nothing is checked. The terms with N and N² are those of the
    series of the stability functions of a beam column with shear, so that one beam stiffens in
    tension, buckles in compression, and is softer along x while it is bent. The last term is what
    the energy loses as the twist inside follows from the bending.

    Divided into n beams, slender rods come out with errors that fall like 1/n⁴. One beam is good
    for angles up to about 0.3. The last term has no lower bound: where it is not small against the
    bending energy, as in wide leaves bent far the stiff way, more beams are needed.

    The stability functions are in S. P. Timoshenko and J. M. Gere, Theory of Elastic Stability. The
    meaning of the terms with N² for flexures is discussed by S. Awtar and others, Characteristics
    of beam-based flexure modules, Journal of Mechanical Design 129 (2007) 625-639.

    Examples
    --------
    The force along y at a tip that is displaced by y without turning is 12 EI y/h³:

    >>> law = BeamLaw(2.0, 1e6, 1.0, 3.0, 4.0)
    >>> law.slopes(np.zeros(3), np.array([2.0, 1e-6, 0.0]))[1].round(12)[1] * 1e6
    np.float64(6.0)
    """

    length: Any
    axial_stiffness: Any
    torsion_stiffness: Any
    bending_stiffness_y: Any
    bending_stiffness_z: Any
    gyration_square: Any = 0.0
    shear_ratio_y: Any = 0.0
    shear_ratio_z: Any = 0.0

    @classmethod
    def of(cls, length: Any, section: Section, material: Material, *, shear: bool = True) -> Self:
        """Return the law of a beam of one section, with or without deflection by shear."""
        E, G, A = material.youngs_modulus, material.shear_modulus, section.area
        bend_y, bend_z = E * section.second_moment_y, E * section.second_moment_z
        ratios: tuple[Any, Any] = (0.0, 0.0)
        if shear:
            k_y, k_z = section.shear_factors(material.poissons_ratio)
            scale = 12.0 / (G * A * length**2)
            ratios = scale * bend_y / k_z, scale * bend_z / k_y  # about y it deflects along z
        return cls(
            length,
            E * A,
            G * section.torsion_constant,
            bend_y,
            bend_z,
            section.polar_moment / A,
            *ratios,
        )

    def strains(self, theta: Array, position: Array) -> BeamStrains:
        """Return the strains that belong to the rotation vector θ and the position p."""
        h = self.length
        tx, ty, tz = theta
        length = np.sqrt(dot(position, position))
        nx, ny, nz = direction = position / length
        u = 2.0 * ny / (1.0 + nx) - tx * ty / 24.0
        w = 2.0 * nz / (1.0 + nx) - tx * tz / 24.0
        turns = scalars.array([tx + ty * u + tz * w, ty - tx * u, tz - tx * w])
        qx, qy, qz = turns
        a, b = 1.0 + self.shear_ratio_z, 1.0 + self.shear_ratio_y
        shortening = h * ((qy * qy + qz * qz) / 24.0 + (u * u / a**2 + w * w / b**2) / 10.0)
        shortening = shortening + 0.5 * self.gyration_square * qx * qx / h
        force = (length - h + shortening) / self._axial_compliance(turns, u, w)
        return BeamStrains(length, direction, turns, scalars.array([u, w]), force)

    def stored_energy(self, theta: Array, position: Array) -> Array:
        """Return the energy V in J."""
        strains = self.strains(theta, position)
        (qx, qy, qz), (u, w) = strains.turns, strains.chord
        bend_y, bend_z = self.bending_stiffness_y, self.bending_stiffness_z
        twisting = 0.5 * self.torsion_stiffness * qx * qx
        about_y = bend_y * (0.5 * qy * qy + 6.0 * w * w / (1.0 + self.shear_ratio_y))
        about_z = bend_z * (0.5 * qz * qz + 6.0 * u * u / (1.0 + self.shear_ratio_z))
        stretching = 0.5 * strains.force**2 * self._axial_compliance(strains.turns, u, w)
        relaxed = self._relaxation() * (qy * qz) ** 2
        return (twisting + about_y + about_z) / self.length + stretching - relaxed

    def slopes(self, theta: Array, position: Array) -> tuple[Array, Array]:
        """Return ∂V/∂θ in N m and ∂V/∂p in N, the loads that hold the beam as it stands."""
        strains = self.strains(theta, position)
        (tx, ty, tz), (nx, ny, nz) = theta, strains.direction
        (qx, qy, qz), (u, w), N = strains.turns, strains.chord, strains.force
        h, bend_y, bend_z = self.length, self.bending_stiffness_y, self.bending_stiffness_z
        a, b = 1.0 + self.shear_ratio_z, 1.0 + self.shear_ratio_y
        (arc_y, curl_y), (arc_z, curl_z) = self._softness()
        # Bending about y and z resists by EI, stiffens by N and gives way again by N².
        g, softening = self._relaxation(), N * N * h**3
        about_y = bend_y / h + N * h / 12.0 - 2.0 * softening * arc_y / bend_y - 2.0 * g * qz * qz
        about_z = bend_z / h + N * h / 12.0 - 2.0 * softening * arc_z / bend_z - 2.0 * g * qy * qy
        along_y = 12.0 * bend_z / (h * a) + N * h / (5.0 * a**2) - 2.0 * softening * curl_z / bend_z
        along_z = 12.0 * bend_y / (h * b) + N * h / (5.0 * b**2) - 2.0 * softening * curl_y / bend_y
        mx = (self.torsion_stiffness + N * self.gyration_square) / h * qx
        my, mz = about_y * qy, about_z * qz
        # By the chain rule from q to θ, u and w, and from these to θ and n.
        mu = along_y * u + mx * ty - my * tx
        mw = along_z * w + mx * tz - mz * tx
        moment = scalars.array(
            [
                mx - my * u - mz * w - (mu * ty + mw * tz) / 24.0,
                my + mx * u - mu * tx / 24.0,
                mz + mx * w - mw * tx / 24.0,
            ]
        )
        c = 1.0 + nx
        by_n = scalars.array([-2.0 * (mu * ny + mw * nz) / c**2, 2.0 * mu / c, 2.0 * mw / c])
        n = strains.direction
        return moment, N * n + (by_n - dot(by_n, n) * n) / strains.length

    def _axial_compliance(self, turns: Array, u: Array, w: Array) -> Array:
        """Return D: what an axial force lengthens, directly and by straightening what is bent."""
        h, (_, qy, qz) = self.length, turns
        (arc_y, curl_y), (arc_z, curl_z) = self._softness()
        about_y = (qy * qy * arc_y + w * w * curl_y) / self.bending_stiffness_y
        about_z = (qz * qz * arc_z + u * u * curl_z) / self.bending_stiffness_z
        return h / self.axial_stiffness + 2.0 * h**3 * (about_y + about_z)

    def _softness(self) -> list[tuple[Array, Array]]:
        """Return the factors a and s of bending in an arc and like an S, about y and about z."""
        return [
            (
                (1.0 + 5.0 * ratio) / 1440.0,
                (1.0 + 15.0 * ratio + 35.0 / 3.0 * ratio**2) / (1400.0 * (1.0 + ratio) ** 3),
            )
            for ratio in (self.shear_ratio_y, self.shear_ratio_z)
        ]

    def _relaxation(self) -> Array:
        """Return the factor of q_y² q_z² in the energy that the twist inside takes away."""
        difference = self.bending_stiffness_y - self.bending_stiffness_z
        return difference**2 / (24.0 * self.torsion_stiffness * self.length)
