"""Materials of flexures: elastic constants, density and strength, and some common materials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import bounded

_ATTEMPT = "Cannot make Material"
#: Shear modulus over Young's modulus of what does not change its volume, the least of all.
_LEAST_SHEAR = 1.0 / 3.0 - 1e-12


@dataclass(frozen=True, init=False)
class Material:
    """Elastic constants, density and permissible stresses of a material.

    In an isotropic material G = E / (2 (1 + ν)), so one of ν and G is enough. With both given they
    are taken as they are, as for a rolled sheet or a crystal, of which E is that along the flexure.

    Parameters
    ----------
    youngs_modulus : float
        Young's modulus E > 0 in Pa.
    poissons_ratio : float, optional
        Poisson's ratio ν, above -1 and at most 0.5.
    shear_modulus : float, optional
        Shear modulus G > 0 in Pa.
    density : float
        Density ρ > 0 in kg/m³.
    yield_strength : float, optional
        Stress > 0 at which it yields, in Pa.
    fatigue_limit : float, optional
        Amplitude > 0 of an alternating stress that it endures without limit, or for the number of
        cycles that the source states, in Pa.
    name : str
        What tables and messages call it.
    source : str
        Where the numbers are from.

    Raises
    ------
    DeclarationError
        When neither ν nor G is given, or a name is no text.
    ValueRefusedError
        When a number is out of its range or not finite.

    Notes
    -----
    Materials are linear. `Material.common` has a few of them.

    Examples
    --------
    >>> steel = Material(210e9, poissons_ratio=0.3, density=7850.0, yield_strength=235e6)
    >>> round(steel.shear_modulus / 1e9, 3)
    80.769
    >>> Material.common("aluminum 7075-T6").yield_strength
    503000000.0
    """

    youngs_modulus: float
    poissons_ratio: float
    shear_modulus: float
    density: float
    yield_strength: float | None
    fatigue_limit: float | None
    name: str
    source: str

    def __init__(
        self,
        youngs_modulus: float,
        *,
        poissons_ratio: float | None = None,
        shear_modulus: float | None = None,
        density: float,
        yield_strength: float | None = None,
        fatigue_limit: float | None = None,
        name: str = "material",
        source: str = "",
    ) -> None:
        for key, text in (("name", name), ("source", source)):
            if not isinstance(text, str):
                raise DeclarationError(_ATTEMPT, expected=f"{key} to be a text", found=repr(text))
        values = {
            "youngs_modulus": _positive("youngs_modulus", youngs_modulus),
            **_shear_constants(youngs_modulus, poissons_ratio, shear_modulus, name),
            "density": _positive("density", density),
            "yield_strength": _strength("yield_strength", yield_strength),
            "fatigue_limit": _strength("fatigue_limit", fatigue_limit),
            "name": name,
            "source": source,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @staticmethod
    def common(name: str) -> Material:
        """Return a common material by its name.

        Parameters
        ----------
        name : str
            One of "aluminum 6061-T6", "aluminum 7075-T6", "beryllium copper C17200", "fused
            silica", "silicon <110>", "stainless steel 301", "structural steel S235" and "titanium
            Ti-6Al-4V"; its ``source`` says where the numbers are from.

        Returns
        -------
        Material

        Raises
        ------
        ValueRefusedError
            When there is none of that name; the message has all names.

        Notes
        -----
        The numbers are typical ones, to begin with. Strength depends on heat treatment, rolling
        and surface: take that of the data sheet of what is bought. Brittle ones have none here.
        """
        return COMMON[one_of(name, COMMON, "name", "Cannot find a common material")]


def _positive(key: str, value: object, lower: float = 0.0) -> float:
    """Return a number when it is finite, and positive or above a bound."""
    attempt = f"{_ATTEMPT} with {key}"
    return bounded(value, attempt, lower=lower, exclusive=True)


def _strength(key: str, value: object) -> float | None:
    """Return a strength, or None where it is not known."""
    return None if value is None else _positive(key, value)


def _shear_constants(
    youngs_modulus: float, ratio: float | None, shear_modulus: float | None, name: str
) -> dict[str, float]:
    """Return Poisson's ratio and the shear modulus, one of which may follow from the other."""
    E = float(youngs_modulus)
    if ratio is None and shear_modulus is None:
        raise DeclarationError(
            f"{_ATTEMPT} '{name}'",
            expected="poissons_ratio or shear_modulus, from which the other one follows",
            found="neither of them",
            remedy="Pass poissons_ratio; for most metals it is near 0.3",
        )
    if shear_modulus is None:
        nu = _checked_ratio(ratio)
        return {"poissons_ratio": nu, "shear_modulus": E / (2.0 * (1.0 + nu))}
    if ratio is None:
        G = _positive("shear_modulus and no poissons_ratio", shear_modulus, _LEAST_SHEAR * E)
        return {"poissons_ratio": E / (2.0 * G) - 1.0, "shear_modulus": G}
    G = _positive("shear_modulus", shear_modulus)
    return {"poissons_ratio": _checked_ratio(ratio), "shear_modulus": G}


def _checked_ratio(value: object) -> float:
    """Return Poisson's ratio when it leaves the material stable."""
    attempt = f"{_ATTEMPT} with poissons_ratio"
    return bounded(value, attempt, lower=float(np.nextafter(-1.0, 0.0)), upper=0.5)


#: The materials of `Material.common` by name.
COMMON = {
    each.name: each
    for each in (
        Material(
            68.9e9,
            poissons_ratio=0.33,
            density=2700.0,
            yield_strength=276e6,
            fatigue_limit=96.5e6,
            name="aluminum 6061-T6",
            source="ASM Handbook 2, typical values; fatigue at 5e8 cycles of smooth rotating beams",
        ),
        Material(
            71.7e9,
            poissons_ratio=0.33,
            density=2810.0,
            yield_strength=503e6,
            fatigue_limit=159e6,
            name="aluminum 7075-T6",
            source="ASM Handbook 2, typical values; fatigue at 5e8 cycles of smooth rotating beams;"
            " EN 485-2 guarantees less, by thickness",
        ),
        Material(
            127e9,
            poissons_ratio=0.3,
            shear_modulus=49e9,
            density=8260.0,
            yield_strength=960e6,
            name="beryllium copper C17200",
            source="NGK Insulators, properties of alloy 25; yield the minimum of strip, temper OT",
        ),
        Material(
            72.7e9,
            poissons_ratio=0.16,
            shear_modulus=31.4e9,
            density=2201.0,
            name="fused silica",
            source="Corning, data sheet of HPFS 7980; brittle, its strength is that of the surface",
        ),
        Material(
            169e9,
            poissons_ratio=0.064,
            shear_modulus=50.9e9,
            density=2330.0,
            name="silicon <110>",
            source="M. A. Hopcroft, W. D. Nix, T. W. Kenny, What is the Young's modulus of silicon,"
            " J. Microelectromech. Syst. 19 (2010) 229-238; in the plane of a (100) wafer, along"
            " <110>; brittle, its strength is that of the surface",
        ),
        Material(
            193e9,
            shear_modulus=78e9,
            density=7880.0,
            yield_strength=965e6,
            name="stainless steel 301",
            source="Elgiloy, data sheet of alloy 301, much like 1.4310; yield the minimum of full"
            " hard strip",
        ),
        Material(
            210e9,
            poissons_ratio=0.3,
            density=7850.0,
            yield_strength=235e6,
            name="structural steel S235",
            source="E and ν of EN 1993-1-1, 3.2.6; density of EN 1991-1-1; yield the minimum of"
            " EN 10025-2 up to 16 mm",
        ),
        Material(
            114e9,
            poissons_ratio=0.33,
            shear_modulus=44e9,
            density=4430.0,
            yield_strength=830e6,
            fatigue_limit=510e6,
            name="titanium Ti-6Al-4V",
            source="ASM data sheet of annealed bar; fatigue at 1e7 cycles of smooth specimens",
        ),
    )
}
