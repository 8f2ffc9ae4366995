"""Materials of flexures: elastic constants, density, expansion and strength."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import is_one_of, require, shown
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError, suggestion
from flexure.diagrams.interface.option_names import AnswersOtherWords
from flexure.diagrams.values.arrays import FloatArray, as_number, bounded

_ATTEMPT = "Cannot make Material"
#: Shear modulus over Young's modulus of what does not change its volume, the least of all.
_LEAST_SHEAR = 1.0 / 3.0 - 1e-12


@dataclass(frozen=True, init=False)
class Material(AnswersOtherWords):
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
    thermal_expansion : float, optional
        Coefficient of linear expansion along the flexure, in 1/K.
    thermoelastic_coefficient : float, optional
        Change of E with the temperature, over E, in 1/K; ν stays, so that G changes alike.
    temperature_range : (float, float)
        Temperatures in K between which that coefficient holds.
    temperature : float
        Temperature in K of the elastic constants; 293.15 K by default, 20 °C.
    creep_temperature : float, optional
        Temperature in K above which a lasting load makes it creep and relax; 0 of polymers, which
        always do. Flexures do not model that; `check_limits` names those that would.
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

    See Also
    --------
    Material.common : Materials with their sources.
    Beam : A flexure of a material.

    Notes
    -----
    Materials are linear. `Material.common` has many of them, `Material.silicon` and
    `Material.quartz` are crystals.

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
    thermal_expansion: float | None
    thermoelastic_coefficient: float | None
    temperature_range: tuple[float, float]
    temperature: float
    creep_temperature: float | None
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
        thermal_expansion: float | None = None,
        thermoelastic_coefficient: float | None = None,
        temperature_range: tuple[float, float] = (0.0, np.inf),
        temperature: float = 293.15,
        creep_temperature: float | None = None,
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
            "thermal_expansion": _per_kelvin("thermal_expansion", thermal_expansion),
            "thermoelastic_coefficient": _per_kelvin(
                "thermoelastic_coefficient", thermoelastic_coefficient
            ),
            "temperature_range": _range(temperature_range),
            "temperature": _positive("temperature", temperature),
            "creep_temperature": None
            if creep_temperature is None
            else bounded(creep_temperature, f"{_ATTEMPT} with creep_temperature", lower=0.0),
            "name": name,
            "source": source,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def at(self, temperature: float) -> Material:
        """Return the material with the elastic constants of another temperature.

        With the coefficient β at the temperature T₀ of this one, E and G are multiplied by ::

            1 + β (T - T₀)

        Expansion, density and strengths stay.

        Parameters
        ----------
        temperature : float
            The temperature T in K.

        Returns
        -------
        Material

        Raises
        ------
        DeclarationError
            When the coefficient is not known.
        ValueRefusedError
            When the temperature is out of its range.

        See Also
        --------
        Beam : Has a temperature as an input, with ``reference_temperature``.

        Examples
        --------
        >>> import flexure as fx
        >>> steel = fx.Material.common("stainless steel 1.4301")
        >>> round(steel.at(373.15).youngs_modulus / 1e9, 1)
        194.0
        """
        attempt = f"Cannot give '{self.name}' at another temperature"
        if self.thermoelastic_coefficient is None:
            raise DeclarationError(
                attempt,
                expected="a material with a thermoelastic_coefficient",
                found="none",
                remedy="Pass fx.Material(..., thermoelastic_coefficient=...) in 1/K",
            )
        low, high = self.temperature_range
        T = bounded(temperature, attempt, lower=low, upper=high, unit="K")
        scale = 1.0 + self.thermoelastic_coefficient * (T - self.temperature)
        return replace(
            self,
            youngs_modulus=self.youngs_modulus * scale,
            shear_modulus=self.shear_modulus * scale,
            thermoelastic_coefficient=self.thermoelastic_coefficient / scale,
            temperature=T,
        )

    @staticmethod
    def common(name: str) -> Material:
        """Return a common material by its name.

        Parameters
        ----------
        name : str
            One of `Material.names`, such as "stainless steel 301"; its ``source`` states where the
            numbers are from.

        Returns
        -------
        Material

        Raises
        ------
        ValueRefusedError
            When there is none of that name; the message lists all names.

        See Also
        --------
        silicon, quartz : Crystals, by direction.

        Notes
        -----
        The numbers are typical ones, to begin with. Strength depends on heat treatment, rolling
        and surface: use that of the data sheet of what is bought. Brittle materials have none
        here, and composites are those along their fibers.

        Examples
        --------
        >>> import flexure as fx
        >>> fx.Material.common("Invar 36").thermal_expansion
        1.2e-06
        """
        known = _common_materials()
        if not is_one_of(name, known):
            raise ValueRefusedError(
                "Cannot find a common material",
                expected="one of Material.names()",
                found=shown(name),
                remedy=suggestion(name, known),
            )
        return known[name]

    @staticmethod
    def names() -> tuple[str, ...]:
        """Return the names of all common materials in alphabetical order.

        Examples
        --------
        >>> import flexure as fx
        >>> len(fx.Material.names()) >= 40
        True
        """
        return tuple(sorted(_common_materials(), key=str.lower))

    @staticmethod
    def silicon(along: npt.ArrayLike, width: npt.ArrayLike) -> Material:
        """Return silicon for a flexure in given directions of the crystal.

        Parameters
        ----------
        along : array_like, shape (3,)
            Miller indices of the direction of the flexure, such as (1, 1, 0).
        width : array_like, shape (3,)
            Those of the direction of its width, across which it is stiff: the normal of the wafer
            for a leaf that stands on it, a direction in the wafer for one that lies in it.

        Returns
        -------
        Material
            E along the flexure, ν of its width, and G of the plane of both directions.

        Raises
        ------
        ValueRefusedError
            When a direction is zero, or the two are not perpendicular.

        See Also
        --------
        from_stiffness : Any crystal.

        Notes
        -----
        Constants at room temperature of M. A. Hopcroft, W. D. Nix, T. W. Kenny, J.
        Microelectromech. Syst. 19 (2010) 229-238. Their change with the temperature is that of
        lightly doped silicon; heavy doping reduces it, or turns its sign. Silicon is brittle: its
        strength is that of the surface.

        Examples
        --------
        A leaf along a flat of a (100) wafer that stands on the wafer:

        >>> import flexure as fx
        >>> leaf = fx.Material.silicon((1, 1, 0), width=(0, 0, 1))
        >>> round(leaf.youngs_modulus / 1e9, 1), round(leaf.shear_modulus / 1e9, 1)
        (169.1, 79.6)
        """
        c = np.array([165.7e9, 63.9e9, 79.6e9])  # c11, c12, c44
        both = []
        for c11, c12, c44 in (c, c * [-73.25e-6, -91.59e-6, -60.14e-6]):
            both.append(np.diag([c11 - c12] * 3 + [c44] * 3))
            both[-1][:3, :3] += c12
        return Material.from_stiffness(
            both[0],
            along,
            width,
            stiffness_rate=both[1],
            temperature_range=(273.0, 373.0),
            density=2330.0,
            thermal_expansion=2.6e-6,
            name="silicon",
            source="Hopcroft, Nix and Kenny, J. Microelectromech. Syst. 19 (2010) 229-238;"
            " expansion of Okada and Tokumaru, J. Appl. Phys. 56 (1984) 314-320; change with the"
            " temperature of Bourgeois et al., Proc. IEEE Frequency Control Symp. (1997) 791-799",
        )

    @staticmethod
    def quartz(along: npt.ArrayLike, width: npt.ArrayLike) -> Material:
        """Return crystalline quartz for a flexure in given directions of the crystal.

        Parameters
        ----------
        along, width : array_like, shape (3,)
            Directions of the flexure and of its width, as for `silicon`, in the Cartesian axes X,
            Y, Z of right-handed alpha quartz: X is the electrical axis, Z the optical axis.

        Returns
        -------
        Material
            E along the flexure, ν of its width, and G of the plane of both directions, without the
            stiffening by the piezoelectric effect.

        Raises
        ------
        ValueRefusedError
            When a direction is zero, or the two are not perpendicular.

        See Also
        --------
        from_stiffness : Any crystal.

        Notes
        -----
        Constants at 25 °C of H. J. McSkimin, P. Andreatch, R. N. Thurston, J. Appl. Phys. 36 (1965)
        1624-1632. Quartz is brittle: its strength is that of the surface.

        Examples
        --------
        A tuning fork with prongs along Y:

        >>> import flexure as fx
        >>> prong = fx.Material.quartz((0, 1, 0), width=(1, 0, 0))
        >>> round(prong.youngs_modulus / 1e9, 1)
        78.3
        """
        c = np.array([86.80e9, 7.04e9, 11.91e9, -18.04e9, 105.75e9, 58.20e9])
        per_kelvin = c * [-48.5e-6, -3000e-6, -550e-6, 101e-6, -160e-6, -177e-6]
        C, rate = (
            np.array(
                [
                    [c11, c12, c13, c14, 0.0, 0.0],
                    [c12, c11, c13, -c14, 0.0, 0.0],
                    [c13, c13, c33, 0.0, 0.0, 0.0],
                    [c14, -c14, 0.0, c44, 0.0, 0.0],
                    [0.0, 0.0, 0.0, 0.0, c44, c14],
                    [0.0, 0.0, 0.0, 0.0, c14, 0.5 * (c11 - c12)],
                ]
            )
            for c11, c12, c13, c14, c33, c44 in (c, per_kelvin)
        )
        x = as_number(along, (3,), f"{_ATTEMPT} of quartz along this direction")
        steep = float(_direction(x)[2] ** 2)
        return Material.from_stiffness(
            C,
            along,
            width,
            stiffness_rate=rate,
            temperature_range=(273.0, 323.0),
            temperature=298.15,
            density=2649.0,
            thermal_expansion=13.7e-6 + (7.5e-6 - 13.7e-6) * steep,
            name="quartz",
            source="McSkimin, Andreatch and Thurston, J. Appl. Phys. 36 (1965) 1624-1632; expansion"
            " across and along the optical axis 13.7e-6 and 7.5e-6 at room temperature; change with"
            " the temperature of Bechmann, Ballato and Lukaszek, Proc. IRE 50 (1962) 1812-1822",
        )

    @staticmethod
    def from_stiffness(
        stiffness: npt.ArrayLike,
        along: npt.ArrayLike,
        width: npt.ArrayLike,
        *,
        stiffness_rate: npt.ArrayLike | None = None,
        **others: Any,
    ) -> Material:
        """Return an anisotropic material for a flexure in given directions of its axes.

        With the compliance s = C⁻¹ in axes 1 along the flexure and 2 across its width, ::

            E = 1 / s₁₁,   ν = -s₁₂ / s₁₁,   G = 1 / s₆₆

        Parameters
        ----------
        stiffness : array_like, shape (6, 6)
            C in Voigt's notation (xx, yy, zz, yz, xz, xy), in Pa.
        along, width : array_like, shape (3,)
            Directions of the flexure and of its width in the axes of C.
        stiffness_rate : array_like, shape (6, 6), optional
            Change of C with the temperature, in Pa/K, for the ``thermoelastic_coefficient`` of E;
            that of G, by which flexures twist, is another one, and is not modeled.
        **others
            Density, strengths, expansion, name and source, as for `Material`.

        Returns
        -------
        Material

        Raises
        ------
        ValueRefusedError
            When C is not symmetric and positive definite, a direction is zero, the two directions
            are not perpendicular, or ν is not in (-1, 0.5], as in some directions of crystals and
            laminates.

        Notes
        -----
        Couplings between bending and torsion (s₁₅, s₁₆), which low symmetry brings, are neglected.

        Examples
        --------
        Carbon fibers in epoxy (T300/5208), across the fibers:

        >>> import numpy as np
        >>> import flexure as fx
        >>> s = np.diag([1 / 181e9, 1 / 10.3e9, 1 / 10.3e9, 1 / 3.5e9, 1 / 7.17e9, 1 / 7.17e9])
        >>> s[0, 1:3] = s[1:3, 0] = -0.28 / 181e9
        >>> s[1, 2] = s[2, 1] = -0.47 / 10.3e9
        >>> across = fx.Material.from_stiffness(
        ...     np.linalg.inv(s), along=(0, 1, 0), width=(1, 0, 0), density=1600.0
        ... )
        >>> round(across.youngs_modulus / 1e9, 2), round(across.shear_modulus / 1e9, 2)
        (10.3, 7.17)
        """
        C = as_number(stiffness, (6, 6), f"{_ATTEMPT} with this stiffness")
        fits = np.allclose(C, C.T, rtol=1e-9, atol=0.0) and np.linalg.eigvalsh(C).min() > 0.0
        require(fits, stiffness, _ATTEMPT, "a symmetric, positive definite stiffness")
        x, y = (
            _direction(as_number(each, (3,), f"{_ATTEMPT} with this direction {name}"))
            for name, each in {"along": along, "width": width}.items()
        )
        fits = x.any() and y.any() and abs(x @ y) < 1e-9
        require(fits, (along, width), _ATTEMPT, "two perpendicular directions")
        axes = np.stack([x, y])
        s = np.linalg.inv(C)
        # Factors of Voigt's strains in the strains of both directions, and in their shear.
        a, b = axes
        first, second = (np.array([*(n * n), n[1] * n[2], n[0] * n[2], n[0] * n[1]]) for n in axes)
        shear = np.array(
            [
                *(2.0 * a * b),
                a[1] * b[2] + a[2] * b[1],
                a[0] * b[2] + a[2] * b[0],
                a[0] * b[1] + a[1] * b[0],
            ]
        )
        s_11, s_12, s_66 = (
            float(v @ s @ w)
            for v, w in zip((first, second, shear), (first, first, shear), strict=True)
        )
        E, nu, G = 1.0 / s_11, -s_12 / s_11, 1.0 / s_66
        if stiffness_rate is not None:
            rate = as_number(stiffness_rate, (6, 6), f"{_ATTEMPT} with this stiffness_rate")
            strain = s @ first
            others["thermoelastic_coefficient"] = float(strain @ rate @ strain) * E
        require(
            -1.0 < nu <= 0.5,
            round(nu, 6),
            f"{_ATTEMPT} along {along!r} with the width along {width!r}",
            "Poisson's ratio in (-1, 0.5]",
            remedy=f"Pass fx.Material({E:.6g}, shear_modulus={G:.6g}, poissons_ratio=...) with one"
            " in this range: only shear and the stiffness of plates depend on it",
        )
        return Material(E, poissons_ratio=nu, shear_modulus=G, **others)


def _direction(vector: FloatArray) -> FloatArray:
    """Return a vector of length 1, or zeros."""
    scaled = vector / max(np.abs(vector).max(), np.finfo(float).tiny)
    unit: FloatArray = scaled / max(float(np.linalg.norm(scaled)), np.finfo(float).tiny)
    return unit


def _positive(key: str, value: object, lower: float = 0.0) -> float:
    """Return a number when it is finite, and positive or above a bound."""
    attempt = f"{_ATTEMPT} with {key}"
    return bounded(value, attempt, lower=lower, exclusive=True)


def _per_kelvin(key: str, value: object) -> float | None:
    """Return a coefficient, which may be negative, or None."""
    return None if value is None else bounded(value, f"{_ATTEMPT} with {key}")


def _range(value: object) -> tuple[float, float]:
    """Return two temperatures, the lower one first."""
    attempt = f"{_ATTEMPT} with temperature_range"
    low, high = as_number(value, (2,), attempt).tolist()
    require(0.0 <= low < high, value, attempt, "two temperatures in K, the lower one first")
    return low, high


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


@cache
def _common_materials() -> dict[str, Material]:
    """Return the common materials by name, from the data beside this file."""
    data = (files(__package__) / "common_materials.toml").read_text(encoding="utf-8")
    return {name: Material(**given, name=name) for name, given in tomllib.loads(data).items()}
