"""Fatigue of flexures: the line of S-N, and the mean stress by Smith's diagram."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.scalars import is_symbolic
from flexure.diagrams.values.arrays import Array, bounded

_FAT_CYCLES, _KNEE = 2e6, 1e7  # of the classes of IIW


def _number(unit: str, doc: str, default: Any = None, **bounds: Any) -> Any:
    """Return a field whose metadata are what its parameter is declared with."""
    options: dict[str, Any] = {} if default is None else {"default": default}
    return field(metadata={"unit": unit, "doc": doc, "lower": 0.0, **bounds}, **options)


@dataclass(frozen=True)
class Fatigue:
    """The fatigue strength of a flexure, by Basquin's line and Smith's diagram.

    The stress alternates between that of a context and R times it. With the stress σ at the
    extreme of a cycle, and the factor K of stress concentration at the ends, the amplitude and the
    mean of the cycle are ::

        σ_a = K σ (1 - R)/2,    σ_m = K σ (1 + R)/2

    The amplitude S that is endured for N cycles without a mean is Basquin's line with a knee, and
    the safety n is the distance from the straight line of Smith's diagram, on which the mean takes
    away strength (Goodman)::

        S = strength (knee/N)^(1/k),    1/n = |σ_a|/S + max(σ_m, 0)/static_strength

    S is at most the static strength, which few cycles do not exceed either.

    Parameters
    ----------
    strength : float
        Amplitude > 0 at the knee, in Pa, such as ``fatigue_limit``.
    static_strength : float
        Mean stress > 0 in Pa at which no amplitude is left: the tensile strength (Goodman), or the
        yield strength (Soderberg), which is safer. Infinite if the mean has no influence.
    cycles : float
        Number N of cycles to endure.
    knee : float
        Number of cycles at the knee.
    exponent, exponent_beyond : float
        Exponents k of Basquin's line before and beyond the knee; infinite beyond it by default, so
        that the strength remains.
    stress_ratio : float
        Ratio R < 1 of the other extreme of a cycle to this one: -1 to both sides, 0 to one side.
    concentration : float
        Factor K > 0 at the ends of the flexure: of a fillet, a clamp or a surface. Where it is not
        at least 1, the stress inside counts as well.

    Raises
    ------
    ValueRefusedError
        When a number is out of its range.

    See Also
    --------
    LeafSpring : Takes it as ``fatigue=``, and has the output ``fatigue_safety``.
    FilletedNotch : Peterson's stress concentration at fillets.

    Notes
    -----
    See O. H. Basquin, Proc. ASTM 10 (1910) 625-630, and R. I. Stephens et al., Metal Fatigue in
    Engineering. Equivalent stresses have no sign, so that one component has to prevail, as bending
    does in leaves. For a clamp, take a measured factor, which includes fretting.

    Examples
    --------
    >>> import flexure as fx
    >>> alternating = fx.Fatigue(strength=300e6, static_strength=1200e6, cycles=1e8)
    >>> float(alternating.safety(150e6))
    2.0
    >>> weld = fx.Fatigue.weld(90e6, cycles=2e6)
    >>> round(float(weld.safety(45e6)), 6)
    1.0
    """

    strength: float = _number("Pa", "amplitude endured at the knee")
    static_strength: float = _number(
        "Pa", "mean stress that leaves no amplitude", allow_infinite=True
    )
    cycles: float = _number("", "number of cycles to endure", 1e7)
    knee: float = _number("", "number of cycles at the knee", 1e6)
    exponent: float = _number("", "exponent of Basquin's line", 5.0)
    exponent_beyond: float = _number("", "exponent beyond the knee", np.inf, allow_infinite=True)
    stress_ratio: float = _number("", "ratio of both stresses", -1.0, lower=-np.inf, upper=1.0)
    concentration: float = _number("", "factor of the stress at the ends", 1.0)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not is_symbolic(value):
                limits = {name: x for name, x in each.metadata.items() if name != "doc"}
                attempt = f"Cannot make Fatigue with {each.name}"
                number = bounded(value, attempt, exclusive=True, **limits)
                object.__setattr__(self, each.name, number)

    @staticmethod
    def weld(
        fat_class: float,
        *,
        cycles: float = 1e7,
        stress_ratio: float = -1.0,
        partial_factor: float = 1.0,
    ) -> Fatigue:
        """Return the fatigue of a welded end, by its FAT class.

        Parameters
        ----------
        fat_class : float
            Range of the stress in Pa that is endured 2e6 times, such as these of EN 1993-1-9 for
            steel: at the toe of a faultless cruciform or tee joint shorter than 50 mm, 80e6; at
            the root of a fillet weld, by the stress in the weld, 36e6; for hot-spot stresses
            90e6 if fillet welds carry the load, and else 100e6.
        cycles, stress_ratio
            As for `Fatigue`. The mean stress has no influence, since welds have residual stresses.
        partial_factor : float
            Factor > 0 that divides the strength.

        Returns
        -------
        Fatigue

        Raises
        ------
        ValueRefusedError
            When a number is out of its range.

        Notes
        -----
        The line is that of A. Hobbacher, Recommendations for Fatigue Design of Welded Joints and
        Components, IIW-1823-07 (2008), for normal stress of constant amplitude: the exponent is 3
        up to 1e7 cycles, and 22 beyond. EN 1993-1-9 has the same classes and another line, with
        its limit at 5e6 cycles. The stress is the nominal one, and the leaf is thinner than 25 mm.
        """
        attempt = "Cannot make Fatigue of a weld with"
        size = bounded(fat_class, f"{attempt} fat_class", lower=0.0, exclusive=True, unit="Pa")
        require(size > 1e5, fat_class, f"{attempt} fat_class", "a stress in Pa, such as 80e6")
        divisor = bounded(partial_factor, f"{attempt} partial_factor", lower=0.0, exclusive=True)
        return Fatigue(
            strength=0.5 * size / divisor * (_FAT_CYCLES / _KNEE) ** (1.0 / 3.0),
            static_strength=np.inf,
            cycles=cycles,
            knee=_KNEE,
            exponent=3.0,
            exponent_beyond=22.0,
            stress_ratio=stress_ratio,
        )

    def amplitude(self) -> Array:
        """Return the amplitude in Pa that is endured for the number of cycles without a mean."""
        is_before = self.cycles < self.knee
        exponent = np.where(is_before, 1.0 / self.exponent, 1.0 / self.exponent_beyond)
        line = self.strength * np.exp(exponent * np.log(self.knee / self.cycles))
        return np.minimum(line, self.static_strength)

    def safety(self, stress: Array) -> Array:
        """Return the safety n for a stress K σ in Pa, concentration included; infinite at 0."""
        is_free = stress == 0.0
        loaded = np.where(is_free, 1.0, stress)
        alternating = 0.5 * (1.0 - self.stress_ratio) * np.abs(loaded) / self.amplitude()
        mean = 0.5 * np.maximum((1.0 + self.stress_ratio) * loaded, 0.0) / self.static_strength
        return np.where(is_free, np.inf, 1.0 / (alternating + mean))
