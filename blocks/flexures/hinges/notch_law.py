"""How notches bend: their compliance as integrals along a beam, their stress, and closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from flexure.blocks.flexures.hinges.notches import CircularNotch, Notch
from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array


class NotchCompliance(NamedTuple):
    """Compliance of a notch at its center, where rotation and translation decouple.

    Attributes
    ----------
    rotation : array, shape (3,)
        Angle per moment about x, y and z, in rad/(N m).
    translation : array, shape (3,)
        Displacement per force along x, y and z, in m/N.

    See Also
    --------
    NotchLaw : Its compliance and stress.

    Examples
    --------
    >>> import flexure as fx
    >>> notch = fx.sections.CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2)
    >>> steel = fx.Material.common("structural steel S235")
    >>> compliance = fx.laws.NotchLaw.of(notch, steel).compliance()
    >>> round(float(1.0 / compliance.rotation[2]), 3)  # N m/rad
    11.895
    """

    rotation: Array
    translation: Array

    def at(self, offset: Array) -> Array:
        """Return the compliance at a point of the axis, where forces turn and moments shift.

        Parameters
        ----------
        offset : float or Symbol
            Position of the point from the middle along x in m, on the side of what is loaded.

        Returns
        -------
        array, shape (6, 6)
            Rotations, then displacements, per moments, then forces, about x, y and z.
        """
        (_, turn_y, turn_z), x = self.rotation, offset
        rows: list[list[Any]] = [[0.0] * 6 for _ in range(6)]
        for k, value in enumerate([*self.rotation, *self.translation]):
            rows[k][k] = value
        rows[1][5] = rows[5][1] = -x * turn_y
        rows[2][4] = rows[4][2] = x * turn_z
        rows[4][4] = rows[4][4] + x * x * turn_z
        rows[5][5] = rows[5][5] + x * x * turn_y
        return scalars.array(rows)


@dataclass(frozen=True)
class NotchLaw:
    """The compliance and the stress of a notch as a beam of variable height.

    With the section of the height h(x) and x from the middle of the neck, all integrals along the
    notch::

        rotation     ∫ dx/(G J)    ∫ dx/(E I_y)    ∫ dx/(E I_z)
        translation  ∫ dx/(E A)    ∫ (x²/(E I_z) + 1/(k_y G A)) dx    the same with y and z swapped

    At the neck, moments M, the torque T and the force N along x cause, with the factors K of
    stress concentration and at the place x where it is greatest::

        σ = K_t (|N|/A + 6 |M_y|/(h b²)) + 6 K_b |M_z|/(b h²)
        von Mises' stress √(σ² + 3 K_t² τ²)

    Attributes
    ----------
    notch : Notch
        The shape.
    youngs_modulus, shear_modulus : float or Symbol
        E and G in Pa.
    poissons_ratio : float or Symbol
        Poisson's ratio, on which the shear factor depends.
    plate : bool
        Whether bending about z is that of a notch so wide that its section cannot change its shape,
        with E/(1 - ν²) for E.

    See Also
    --------
    flexure.NotchHinge : The element with this law.

    Notes
    -----
    The constants may be symbols, and nothing is checked.

    The factor K_t of tension is taken for torsion as well, since it is the greatest one, and both
    factors everywhere along the notch. Stress is evaluated at the points of the integrals: in the
    neck, where moments cause the greatest one, and beside it to 3 % where that is of a force across
    the notch. Stresses of shear are left out.

    What it leaves out: that stress bypasses the corners of a beam whose height changes fast, and
    that what the notch is cut into gives way, too. See :doc:`/notches` for how much that is.

    Examples
    --------
    >>> steel = Material.common("structural steel S235")
    >>> law = NotchLaw.of(CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2), steel)
    >>> stiffness, greatest = 1.0 / law.compliance().rotation[2], law.greatest_angle(235e6)
    >>> print(f"{stiffness:.3f} N m/rad, {1e3 * greatest:.3f} mrad")
    11.895 N m/rad, 8.072 mrad
    """

    notch: Notch
    youngs_modulus: Any
    shear_modulus: Any
    poissons_ratio: Any
    plate: bool = False

    @classmethod
    def of(
        cls, notch: Notch, material: Material | MaterialConstants, *, plate: bool = False
    ) -> Self:
        """Return the law of a notch in a material."""
        E, G, nu = material.youngs_modulus, material.shear_modulus, material.poissons_ratio
        return cls(notch, E, G, nu, plate)

    def compliance(self) -> NotchCompliance:
        """Return the compliance about the middle.

        Returns
        -------
        NotchCompliance
        """
        E, G = self.youngs_modulus, self.shear_modulus
        stiff = E / (1.0 - self.poissons_ratio**2) if self.plate else E
        sums: list[Any] = [0.0] * 6
        for x, weight, section in self.notch.stations():
            k_y, k_z = section.shear_factors(self.poissons_ratio)
            bend_y = 1.0 / (E * section.second_moment_y)
            bend_z = 1.0 / (stiff * section.second_moment_z)
            stretch, shear = 1.0 / (E * section.area), 1.0 / (G * section.area)
            parts = [
                1.0 / (G * section.torsion_constant),
                bend_y,
                bend_z,
                stretch,
                x * x * bend_z + shear / k_y,
                x * x * bend_y + shear / k_z,
            ]
            twice = 2.0 * weight  # for both halves
            sums = [total + twice * part for total, part in zip(sums, parts, strict=True)]
        return NotchCompliance(scalars.array(sums[:3]), scalars.array(sums[3:]))

    def greatest_stress(self, moment: Array, force: Array) -> Array:
        """Return the greatest equivalent stress.

        Parameters
        ----------
        moment : array_like, shape (3,)
            Moment on the end towards x about the middle, in N m.
        force : array_like, shape (3,)
            Force on it in N.

        Returns
        -------
        float or Symbol
            In Pa.
        """
        normal = [
            self._normal_stress(section, place, moment, force)
            for x, _, section in self.notch.stations()
            for place in (x, -x)
        ]
        return self._equivalent(reduce(np.maximum, normal), self.notch.neck, moment)

    def stress_at(self, offset: Array, moment: Array, force: Array) -> Array:
        """Return the greatest equivalent stress of a section.

        Parameters
        ----------
        offset : float or Symbol
            Where the section is, from the middle along x in m.
        moment, force : array_like, shape (3,)
            As for `greatest_stress`.

        Returns
        -------
        float or Symbol
            In Pa.
        """
        section = self.notch.section_at(offset)
        normal = self._normal_stress(section, offset, moment, force)
        return self._equivalent(normal, section, moment)

    def _normal_stress(
        self, section: RectangleSection, place: Array, moment: Array, force: Array
    ) -> Array:
        """Return the greatest normal stress of a section, with both factors."""
        (_, my, mz), (axial, fy, fz) = moment, force
        tension, bending = self.notch.stress_concentration()
        along = tension * section.normal_stress(axial, my + place * fz, 0.0)
        return along + bending * section.normal_stress(0.0, 0.0, mz - place * fy)

    def _equivalent(self, normal: Array, section: RectangleSection, moment: Array) -> Array:
        """Return von Mises' stress of a normal stress, and of the torsion of a section."""
        tau = self.notch.stress_concentration().tension * section.torsion_stress(moment[0])
        return np.hypot(normal, np.sqrt(3.0) * tau)

    def greatest_angle(self, stress: Array) -> Array:
        """Return the angle about z at which a pure moment causes a stress.

        Parameters
        ----------
        stress : float or Symbol
            The stress that is admitted in Pa.

        Returns
        -------
        float or Symbol
            In rad.
        """
        per_moment = self.notch.stress_concentration().bending
        per_moment = per_moment * self.notch.neck.normal_stress(0.0, 0.0, 1.0)
        return stress * self.compliance().rotation[2] / per_moment


class ParosWeisbord(NamedTuple):
    """The closed forms of J. M. Paros and L. Weisbord for a circular notch.

    Attributes
    ----------
    axial : float or Symbol
        Displacement along x per force along x, in m/N.
    bending_y, bending_z : float or Symbol
        Angle per moment about y and z, in rad/(N m).

    See Also
    --------
    paros_weisbord : Compute them.

    Examples
    --------
    >>> import flexure as fx
    >>> notch = fx.sections.CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2)
    >>> found = fx.laws.paros_weisbord(notch, 210e9)
    >>> round(float(1.0 / found.bending_z), 2)  # N m/rad
    11.89
    """

    axial: Array
    bending_y: Array
    bending_z: Array


def paros_weisbord(
    notch: CircularNotch, youngs_modulus: Array, *, simplified: bool = False
) -> ParosWeisbord:
    """Return the closed forms for a circular notch, in full or for thin necks.

    With β = t/(2R) and α = 2β + β², in full::

        axial      (2 (1 + β)/√α arctan √((2 + β)/β) - π/2)/(E b)
        bending_z  3/(2 E b R² α) (1/(1 + β) + (3 + 2β + β²)/((1 + β) α)
                                    + 6 (1 + β)/α^(3/2) arctan √((2 + β)/β))

    and simplified, for t much smaller than R::

        axial      (π √(R/t) - 2.57)/(E b)
        bending_z  9π √R/(2 E b t^(5/2))

    In both, bending about y is 12/b² times the axial compliance.

    Parameters
    ----------
    notch : CircularNotch
        The notch, of thickness t, radius R and width b.
    youngs_modulus : float or Symbol
        E in Pa.
    simplified : bool
        Whether terms that vanish for thin necks are left out.

    Returns
    -------
    ParosWeisbord

    See Also
    --------
    NotchHinge : A notch between two bodies.

    Notes
    -----
    The full form is the integral along a beam, as `NotchLaw` has it. Simplified, a neck of
    t = 0.1 R is 1.3 % too soft in bending.

    Source: J. M. Paros and L. Weisbord, How to design flexure hinges, Machine Design 37 (1965)
    151-156.

    Examples
    --------
    >>> notch = CircularNotch(thickness=1e-3, radius=1e-2, width=1e-2)
    >>> full, simple = (paros_weisbord(notch, 2e11, simplified=each) for each in (False, True))
    >>> print(f"{100.0 * (full.bending_z / simple.bending_z - 1.0):.2f} %")
    -1.27 %
    """
    t, R, b = notch.thickness, notch.radius, notch.width
    per_length = youngs_modulus * b
    if simplified:
        axial = (np.pi * np.sqrt(R / t) - 2.57) / per_length
        bending = 4.5 * np.pi * np.sqrt(R) / (per_length * t**2.5)
    else:
        beta = t / (2.0 * R)
        alpha = 2.0 * beta + beta * beta
        arc = np.arctan(np.sqrt((2.0 + beta) / beta))
        axial = (2.0 * (1.0 + beta) / np.sqrt(alpha) * arc - 0.5 * np.pi) / per_length
        braces = (1.0 + (3.0 + 2.0 * beta + beta * beta) / alpha) / (1.0 + beta)
        braces = braces + 6.0 * (1.0 + beta) / alpha**1.5 * arc
        bending = 1.5 / (per_length * R * R * alpha) * braces
    return ParosWeisbord(axial, 12.0 / b**2 * axial, bending)
