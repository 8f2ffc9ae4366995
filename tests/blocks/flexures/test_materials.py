"""Materials know what follows from two elastic constants, and refuse what cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.flexures.sections.materials import COMMON
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError


def test_the_shear_modulus_follows_from_poissons_ratio_and_back() -> None:
    first = fx.Material(70e9, poissons_ratio=0.33, density=2700.0)
    again = fx.Material(70e9, shear_modulus=first.shear_modulus, density=2700.0)
    assert first.shear_modulus == pytest.approx(70e9 / 2.66)
    assert again.poissons_ratio == pytest.approx(0.33)


def test_both_constants_are_taken_as_they_are() -> None:
    silicon = fx.Material(169e9, poissons_ratio=0.064, shear_modulus=50.9e9, density=2330.0)
    assert (silicon.poissons_ratio, silicon.shear_modulus) == (0.064, 50.9e9)


def test_rubber_may_keep_its_volume() -> None:
    assert fx.Material(3e6, shear_modulus=1e6, density=1000.0).poissons_ratio == pytest.approx(0.5)


BRITTLE = ["fused silica", "silicon <110>"]


@pytest.mark.parametrize("name", sorted(COMMON))
def test_common_materials_have_their_names_and_a_source(name: str) -> None:
    material = fx.Material.common(name)
    assert material.name == name
    assert material.source
    assert (material.yield_strength is None) == (name in BRITTLE)


@pytest.mark.parametrize("name", sorted(set(COMMON) - set(BRITTLE)))
def test_common_materials_are_like_each_other_in_what_metals_have_in_common(name: str) -> None:
    material = fx.Material.common(name)
    assert 0.2 < material.poissons_ratio < 0.35
    # Two given constants are rounded in data sheets, and of rolled sheets they are not isotropic.
    isotropic = material.youngs_modulus / (2.0 * (1.0 + material.poissons_ratio))
    assert material.shear_modulus == pytest.approx(isotropic, rel=0.03)
    # Sound goes through light metals and steels at about 5 km/s, and at 4 km/s through bronzes.
    assert 3800.0 < np.sqrt(material.youngs_modulus / material.density) < 5300.0
    assert material.yield_strength is not None
    assert 1e-3 < material.yield_strength / material.youngs_modulus < 1e-2
    assert material.fatigue_limit is None or material.fatigue_limit < material.yield_strength


def test_silicon_along_110_has_the_modulus_that_its_cubic_constants_give() -> None:
    c11, c12, c44 = 165.7e9, 63.9e9, 79.6e9  # of the source
    stiffness = np.diag([c11 - c12] * 3 + [c44] * 3)
    stiffness[:3, :3] += c12
    compliance = np.linalg.inv(stiffness)
    s11, s12, s44 = compliance[0, 0], compliance[0, 1], compliance[3, 3]
    along = s11 - 0.5 * (s11 - s12 - 0.5 * s44)
    silicon = fx.Material.common("silicon <110>")
    assert silicon.youngs_modulus == pytest.approx(1.0 / along, rel=2e-3)
    assert silicon.poissons_ratio == pytest.approx(
        -(s12 + 0.5 * (s11 - s12 - 0.5 * s44)) / along, rel=0.04
    )
    # In the plane (100), the shear of two directions <110>:
    assert silicon.shear_modulus == pytest.approx(0.5 * (c11 - c12), rel=2e-3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"youngs_modulus": 0.0}, "youngs_modulus"),
        ({"youngs_modulus": np.nan}, "youngs_modulus"),
        ({"density": -1.0}, "density"),
        ({"poissons_ratio": 0.51}, "poissons_ratio"),
        ({"poissons_ratio": -1.0}, "poissons_ratio"),
        ({"poissons_ratio": None, "shear_modulus": 60e9}, "shear_modulus and no poissons_ratio"),
        ({"yield_strength": 0.0}, "yield_strength"),
        ({"fatigue_limit": np.inf}, "fatigue_limit"),
    ],
)
def test_constants_out_of_their_range_are_refused_by_name(change: Any, said: str) -> None:
    good = {"youngs_modulus": 200e9, "poissons_ratio": 0.3, "density": 7850.0}
    with pytest.raises(ValueRefusedError, match=f"Material with {said}"):
        fx.Material(**{**good, **change})


def test_a_material_needs_a_second_elastic_constant() -> None:
    with pytest.raises(DeclarationError, match="Pass poissons_ratio"):
        fx.Material(200e9, density=7850.0)


def test_who_asks_for_a_material_that_is_not_common_gets_the_names() -> None:
    with pytest.raises(ValueRefusedError, match="titanium Ti-6Al-4V"):
        fx.Material.common("wood")
