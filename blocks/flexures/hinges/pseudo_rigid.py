"""The pseudo-rigid-body model: a flexure as a rigid link that turns about a pivot with a spring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.values.arrays import Array, as_number, check_bounds

#: Of a beam with a force at its end: ratio of the force along the beam, pushing, to that across;
#: radius factor and up to which angle in degrees it holds, stiffness factor and up to which.
_END_FORCE = np.array(
    [
        (-5.0, 0.8391, 9.7, 2.49874, 7.9),
        (-4.0, 0.8522, 11.9, 2.58991, 9.8),
        (-3.0, 0.8669, 16.0, 2.68893, 12.9),
        (-2.0, 0.8813, 23.2, 2.80162, 18.6),
        (-1.5, 0.8796, 28.7, 2.78081, 23.6),
        (-1.0, 0.8707, 36.3, 2.72816, 31.5),
        (-0.5, 0.8612, 47.7, 2.69320, 44.4),
        (0.0, 0.8517, 64.3, 2.67617, 58.5),
        (0.5, 0.8430, 81.8, 2.63744, 64.1),
        (1.0, 0.8360, 94.8, 2.61259, 67.5),
        (1.5, 0.8311, 103.8, 2.59289, 65.8),
        (2.0, 0.8276, 108.9, 2.59707, 69.0),
        (3.0, 0.8232, 115.4, 2.56737, 64.6),
        (4.0, 0.8207, 119.1, 2.56506, 66.4),
        (5.0, 0.8192, 121.4, 2.56251, 67.5),
        (7.5, 0.8168, 124.5, 2.55984, 69.0),
        (10.0, 0.8156, 126.1, 2.56597, 69.7),
    ]
).T
_LOADS = ("end force", "guided", "end moment", "short")


class Factors(NamedTuple):
    """Constants of a pseudo-rigid-body model."""

    radius: float  # radius factor γ: distance from the pivot to the end over the length
    stiffness: float  # moment of the spring over its angle, over E I/L
    greatest_angle: float  # up to which angle the model holds, in rad


class FixedEnd(NamedTuple):
    """Reactions of a flexure at its fixed end."""

    force: Array  # force along the unbent flexure in N, positive in tension
    moment: Array  # bending moment in N m, its magnitude


@dataclass(frozen=True)
class PseudoRigidBody:
    """The pseudo-rigid-body model of a straight flexure of the length L.

    The rigid link has the length γ L, from its pivot to the end, and turns by Θ against a spring
    with the moment k E I/L Θ::

        load          what it is                              γ        k        up to
        "end force"   clamped, with a force at its free end   0.8517   γ K_Θ    58°  (for n = 0)
        "guided"      both ends keep their orientation        0.8517   2 γ K_Θ  58°, one of two
        "end moment"  clamped, with a moment at its end       0.7346   1.5164   81°
        "short"       much shorter than the link it carries   0.5      1        35°

    For an end force, γ and K_Θ depend on its direction n; K_Θ is 2.676 where n = 0. A guided
    flexure has two pivots, γ L apart, each of which is a spring like this.

    Parameters
    ----------
    load : {"end force", "guided", "end moment", "short"}
        Which of the cases it is.
    axial_ratio : float
        For "end force", n from -5 to 10: the part of the force along the unbent flexure, that
        pushes, over the one across it.

    Raises
    ------
    ValueRefusedError
        When there is no such load, or the ratio is out of range.

    See Also
    --------
    BeamLaw : The law of a beam, valid in all directions.

    Notes
    -----
    Within the angles, the end of the link is where that of the elastica is, but for 0.5 % of the
    way it has gone. Moments and forces are wrong by up to 6 %.

    Source: L. L. Howell, Compliant Mechanisms, Wiley 2001, chapter 5; between the directions of its
    table, factors are interpolated. The angle of a short flexure is for a link ten times as long.

    Examples
    --------
    >>> model = PseudoRigidBody("end force")
    >>> print(f"{model.pivot_distance(0.1):.5f} m from where it is fixed")
    0.01483 m from where it is fixed
    """

    load: str = "end force"
    axial_ratio: float = 0.0

    def __post_init__(self) -> None:
        attempt = "Cannot make a PseudoRigidBody"
        one_of(self.load, _LOADS, "load", attempt)
        ratio = as_number(self.axial_ratio, (), f"{attempt} with axial_ratio")
        least, most = (-5.0, 10.0) if self.load == "end force" else (0.0, 0.0)
        check_bounds(
            ratio, f"{attempt} for '{self.load}' with axial_ratio", lower=least, upper=most
        )
        object.__setattr__(self, "axial_ratio", float(ratio))

    @property
    def factors(self) -> Factors:
        """The factors of the case."""
        if self.load == "short":
            return Factors(0.5, 1.0, np.deg2rad(35.0))
        if self.load == "end moment":
            return Factors(0.7346, 1.5164, np.deg2rad(80.9))
        n, *columns = _END_FORCE
        radius, reach, stiffness, trusted = (
            np.interp(self.axial_ratio, n, each) for each in columns
        )
        springs = 2.0 if self.load == "guided" else 1.0
        angle = np.deg2rad(min(reach, trusted))
        return Factors(float(radius), float(springs * radius * stiffness), float(angle))

    def pivot_distance(self, length: Array) -> Array:
        """Return how far the pivot is from where the flexure is fixed.

        Parameters
        ----------
        length : float or Symbol
            Length L in m.

        Returns
        -------
        float or Symbol
            In m: (1 - γ) L, of a guided flexure (1 - γ) L/2 from each of its ends.
        """
        beyond = 1.0 - self.factors.radius
        return (0.5 * beyond if self.load == "guided" else beyond) * length

    def stiffness(self, bending_stiffness: Array, length: Array) -> Array:
        """Return the stiffness of the spring, k E I/L.

        Parameters
        ----------
        bending_stiffness : float or Symbol
            E I in N m².
        length : float or Symbol
            Length L in m.

        Returns
        -------
        float or Symbol
            In N m/rad.
        """
        return self.factors.stiffness * bending_stiffness / length

    def fixed_end(self, angle: Array, torque: Array, length: Array) -> FixedEnd:
        """Return what bends the flexure where it is fixed, from the balance of the link.

        Parameters
        ----------
        angle : float or Symbol
            Angle Θ in rad.
        torque : float or Symbol
            Moment of the spring in N m.
        length : float or Symbol
            Length L in m.

        Returns
        -------
        FixedEnd
        """
        torque = np.abs(torque)
        if self.load in ("end moment", "short"):
            return FixedEnd(0.0, torque)
        radius, n = self.factors.radius, self.axial_ratio
        cosine, sine = np.cos(angle), np.abs(np.sin(angle))
        across = length * (1.0 - radius * (1.0 - cosine))  # from one end to the other
        if self.load == "guided":
            return FixedEnd(0.0, torque / (radius * length * cosine) * across)
        force = torque / (radius * length * (cosine + n * sine))
        return FixedEnd(-n * force, force * (across + n * radius * length * sine))
