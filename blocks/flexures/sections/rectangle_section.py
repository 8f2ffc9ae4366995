"""The section of a leaf spring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.blocks.flexures.sections.sections import Section, dimension
from flexure.diagrams.values.arrays import Array

# ruff: noqa: RUF009 - what the calls return are fields

#: Sum of 1/n⁵ over all odd n, which is 31/32 ζ(5).
_ODD_FIFTH_POWERS = 1.0045237627951384


@dataclass(frozen=True)
class RectangleSection(Section):
    """A rectangular section in the plane x-y, thin along y and wide along z.

    With the longer side a and the shorter side b, and sums over odd n::

        A = w t,   I_z = w t³/12,   I_y = t w³/12
        J = a b³/3 (1 - 192 b/(π⁵ a) Σ tanh(n π a/(2 b)) / n⁵)
        τ = T b/J (1 - 8/π² Σ 1/(n² cosh(n π a/(2 b))))

    Which of the sides is the longer one does not matter.

    Attributes
    ----------
    width : float or Symbol
        Width w > 0 along z in m.
    thickness : float or Symbol
        Thickness t > 0 along y in m.

    See Also
    --------
    CircleSection : The section of a wire.
    TubeSection : The section of a tube.
    GeneralSection : A section given by its constants.

    Notes
    -----
    The series are Saint-Venant's, for free warping; see S. P. Timoshenko and J. N. Goodier, Theory
    of Elasticity, chapter on torsion. They are summed such that few terms give all digits. The
    shear factor is 10 (1 + ν) / (12 + 11 ν), of Cowper, as in `CircleSection`; in a plate that is
    wide against its length, bending stiffness is up to 1/(1 - ν²) higher.

    Examples
    --------
    A leaf of 20 mm x 0.5 mm, and the torsion constant of a square over its side to the fourth:

    >>> leaf = RectangleSection(width=0.02, thickness=0.0005)
    >>> round(leaf.second_moment_z * 1e12, 6)
    0.208333
    >>> float(RectangleSection(width=1.0, thickness=1.0).torsion_constant)
    0.1405770149551...
    """

    width: Any = dimension("m", "width along z")
    thickness: Any = dimension("m", "thickness along y")

    @property
    def area(self) -> Array:
        """The area A in m²."""
        return self.width * self.thickness

    @property
    def second_moment_y(self) -> Array:
        """The second moment of area I_y in m⁴."""
        return self.thickness * self.width * self.width * self.width / 12.0

    @property
    def second_moment_z(self) -> Array:
        """The second moment of area I_z in m⁴."""
        return self.width * self.thickness * self.thickness * self.thickness / 12.0

    @property
    def torsion_constant(self) -> Array:
        """The torsion constant J in m⁴."""
        a, b = self._sides()
        # tanh x is 1 - 2/(exp 2x + 1), and the sum with 1 is known; the rest vanishes like exp -nπ.
        total = _ODD_FIFTH_POWERS
        for n in (1, 3, 5, 7, 9):
            decay = np.exp(-n * np.pi * a / b)
            total = total - 2.0 * decay / (1.0 + decay) / n**5
        return a * b * b * b / 3.0 * (1.0 - 192.0 / np.pi**5 * (b / a) * total)

    def shear_factors(self, poissons_ratio: Array) -> tuple[Array, Array]:
        """Return 10 (1 + ν) / (12 + 11 ν), twice."""
        k = 10.0 * (1.0 + poissons_ratio) / (12.0 + 11.0 * poissons_ratio)
        return k, k

    def normal_stress(self, force: Array, moment_y: Array, moment_z: Array) -> Array:
        """Return ``|N|/A + 6 |M_y|/(t w²) + 6 |M_z|/(w t²)`` in Pa, that in one of the corners."""
        bending = np.abs(moment_y) / self.width + np.abs(moment_z) / self.thickness
        return (np.abs(force) + 6.0 * bending) / self.area

    def torsion_stress(self, torque: Array) -> Array:
        """Return the shear stress in the middle of the longer sides in Pa."""
        a, b = self._sides()
        part = 1.0
        for n in range(1, 25, 2):
            decay = np.exp(-0.5 * n * np.pi * a / b)
            part = part - 16.0 / np.pi**2 * decay / (1.0 + decay * decay) / n**2
        return np.abs(torque) * b / self.torsion_constant * part

    def _sides(self) -> tuple[Array, Array]:
        """Return the longer and the shorter side."""
        return np.maximum(self.width, self.thickness), np.minimum(self.width, self.thickness)
