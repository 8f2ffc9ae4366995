"""Materials know what follows from two elastic constants, and refuse what cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import flexure as fx
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


def test_common_materials_have_a_source_and_plausible_numbers() -> None:
    assert len(fx.Material.names()) >= 40
    for name in fx.Material.names():
        material = fx.Material.common(name)
        assert material.name == name
        assert material.source
        assert not ("brittle" in material.source and material.yield_strength)
        # Sound goes through plastics at 1.2 km/s, and through fibers of boron at 10 km/s.
        assert 1200.0 < np.sqrt(material.youngs_modulus / material.density) < 10700.0, name
        expansion = material.thermal_expansion
        assert expansion is None or -5e-6 < expansion < 120e-6, name


def test_common_metals_are_like_each_other_in_what_metals_have_in_common() -> None:
    seen = 0
    for name in fx.Material.names():
        material = fx.Material.common(name)
        if material.yield_strength is None or material.youngs_modulus < 50e9:
            continue
        seen += 1
        assert 0.2 < material.poissons_ratio < 0.4, name
        # Two given constants are rounded in data sheets; of rolled sheets they are not isotropic.
        isotropic = material.youngs_modulus / (2.0 * (1.0 + material.poissons_ratio))
        assert material.shear_modulus == pytest.approx(isotropic, rel=0.03), name
        assert 3800.0 < np.sqrt(material.youngs_modulus / material.density) < 5300.0, name
        assert 1e-3 < material.yield_strength / material.youngs_modulus < 1e-2, name
        assert material.fatigue_limit is None or material.fatigue_limit < material.yield_strength
    assert seen >= 15


def rotated(C: NDArray[np.float64], axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the compliance, as a tensor of rank four, in the axes that are rows."""
    pairs = [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]
    tensor = np.zeros((3, 3, 3, 3))
    for row, (i, j) in enumerate(pairs):
        for column, (k, m) in enumerate(pairs):
            halves = (1.0 if row < 3 else 0.5) * (1.0 if column < 3 else 0.5)
            value = halves * np.linalg.inv(C)[row, column]
            for first in {(i, j), (j, i)}:
                for second in {(k, m), (m, k)}:
                    tensor[first + second] = value
    return np.asarray(np.einsum("ai,bj,ck,dm,ijkm->abcd", axes, axes, axes, axes, tensor))


def test_crystals_have_the_compliance_of_the_rotated_tensor() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        root = rng.normal(size=(6, 6))
        C = root @ root.T + np.eye(6)
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        s = rotated(C, axes)
        if not -1.0 < -s[0, 0, 1, 1] / s[0, 0, 0, 0] < 0.5:
            continue
        found = fx.Material.from_stiffness(C, 3.0 * axes[0], axes[1], density=1.0)
        assert found.youngs_modulus == pytest.approx(1.0 / s[0, 0, 0, 0], rel=1e-9)
        assert found.poissons_ratio == pytest.approx(-s[0, 0, 1, 1] / s[0, 0, 0, 0], rel=1e-9)
        assert found.shear_modulus == pytest.approx(0.25 / s[0, 1, 0, 1], rel=1e-9)
    # Published moduli of silicon and quartz, in GPa.
    for make, along, width, E in (
        (fx.Material.silicon, (1, 0, 0), (0, 1, 0), 130.0),
        (fx.Material.silicon, (1, 1, 0), (0, 0, 1), 169.0),
        (fx.Material.silicon, (1, 1, 1), (1, -1, 0), 188.0),
        (fx.Material.quartz, (1, 0, 0), (0, 1, 0), 78.3),
        (fx.Material.quartz, (0, 0, 1), (1, 0, 0), 102.7),
    ):
        found = make(along, width)
        assert found.youngs_modulus == pytest.approx(E * 1e9, rel=3e-3)
    for bad in ({"along": (0, 0, 0)}, {"width": (1, 1, 0)}, {"along": (np.nan, 0, 0)}):
        with pytest.raises(ValueRefusedError, match="Cannot make Material"):
            fx.Material.silicon(**({"along": (1, 1, 0), "width": (0, 0, 1)} | bad))
    with pytest.raises(ValueRefusedError, match="positive definite"):
        fx.Material.from_stiffness(-np.eye(6), (1, 0, 0), (0, 1, 0), density=1.0)
    for make in (fx.Material.silicon, fx.Material.quartz):
        assert make((3e200, 0, 3e200), (0, 1e-200, 0)) == make((1, 0, 1), (0, 1, 0))
    # Copper in GPa: along <110>, ν of [001] is -s₁₂ E with E of cubic crystals.
    c11, c12, c44 = 168.4e9, 121.4e9, 75.4e9
    C = np.diag([c11 - c12] * 3 + [c44] * 3)
    C[:3, :3] += c12
    s11, s12, s44 = np.linalg.inv(C)[[0, 0, 3], [0, 1, 3]]
    E = 1.0 / (s11 - 0.5 * (s11 - s12 - 0.5 * s44))
    with pytest.raises(ValueRefusedError, match=r"width along \(0, 0, 1\)") as caught:
        fx.Material.from_stiffness(C, (1, 1, 0), (0, 0, 1), density=8960.0)
    assert f"{-s12 * E:.6g}" in str(caught.value)
    assert f"Material({E:.6g}, shear_modulus={c44:.6g}" in str(caught.value)


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


def test_the_refusal_of_a_name_suggests_one() -> None:
    with pytest.raises(ValueRefusedError, match="Did you mean 'titanium Ti-6Al-4V'"):
        fx.Material.common("titanum Ti-6Al-4V")


def test_few_cycles_do_not_exceed_the_static_strength_and_pressure_has_a_safety_too() -> None:
    once = fx.Fatigue(300e6, 1000e6, cycles=10.0)
    assert float(once.safety(2000e6)) == pytest.approx(0.5)  # and not that of Basquin's line
    pressed = fx.Fatigue(300e6, 1000e6, stress_ratio=0.0)
    assert float(pressed.safety(-100e6)) == pytest.approx(6.0)  # 50 MPa, without a mean
    assert float(pressed.safety(100e6)) == pytest.approx(1.0 / (50.0 / 300.0 + 50.0 / 1000.0))


def test_fatigue_is_basquins_line_and_smiths_diagram() -> None:
    """The second route is a leaf that is bent by a couple, and the line by hand."""
    thin, width, length, angle = 3e-4, 1e-2, 5e-2, 0.05
    steel = fx.Material(200e9, poissons_ratio=0.3, density=7850.0, yield_strength=900e6)
    fatigue = fx.Fatigue(400e6, 1300e6, cycles=1e5, stress_ratio=0.0, concentration=1.6)
    for segments in (1, 3):
        builder = fx.PlantBuilder("hinge", gravity=(0.0, 0.0, 0.0))
        arm = builder.add_body("arm", fx.SpatialInertia.point_mass(0.1))
        joint = builder.add_joint(fx.PlanarJoint("arm", builder.world, arm))
        joint.default_pose = np.eye(3), (length, 0.0, 0.0)
        sizes: dict[str, Any] = {"length": length, "width": width, "thickness": thin}
        leaf = fx.LeafSpring(
            *("leaf", builder.world, arm),
            **sizes,
            material=steel,
            fatigue=fatigue,
            segments=segments,
            planar=True,
        )
        builder.add_force_element(leaf)
        plant = builder.build()
        couple = 200e9 * width * thin**3 / 12.0 * angle / length
        context = plant.create_default_context()
        assert plant.find("leaf.fatigue_safety").eval(context)[0] > 1e9  # at rest
        path = fx.load_path(plant, {"generalized_force[arm_tz]": couple}, context=context)
        context = path.context(-1)
        stress = 200e9 * angle * thin / (2.0 * length)
        half = 0.5 * 1.6 * stress
        endured = 400e6 * (1e6 / 1e5) ** 0.2
        expected = 1.0 / (half / endured + half / 1300e6)
        assert leaf.fatigue_safety.eval(context)[0] == pytest.approx(expected, rel=1e-3)
        leaf.find("fatigue_cycles").set(context, 1e8)
        assert leaf.fatigue_safety.eval(context)[0] == pytest.approx(
            1.0 / (half / 400e6 + half / 1300e6), rel=1e-3
        )
    # A class of IIW is the range at 2e6 cycles, with the exponents 3 and 22 around 1e7.
    for cycles, stress_range in (
        (2e6, 80e6),
        (2.5e5, 160e6),
        (1e9, 80e6 * 0.2 ** (1 / 3) * 0.01 ** (1 / 22)),
    ):
        for ratio in (-1.0, 0.0, 0.5):
            weld = fx.Fatigue.weld(80e6, cycles=cycles, stress_ratio=ratio)
            assert weld.safety(stress_range / (1.0 - ratio)) == pytest.approx(1.0)
    for make in (
        lambda: fx.Fatigue(0.0, 1.0),
        lambda: fx.Fatigue(1.0, 1.0, stress_ratio=1.0),
        lambda: fx.Fatigue.weld(80.0),
        lambda: fx.LeafSpring(
            *("leaf", fx.Body("a"), fx.Body("b")), **sizes, material=steel, fatigue=3.0
        ),
    ):
        with pytest.raises(fx.errors.FlexureError, match="atigue"):
            make()


def test_moduli_follow_the_temperature_within_their_range() -> None:
    """Against EN 10088-1, NIST's polynomial, and the cuts of quartz that keep their frequency."""
    common = fx.Material.common
    steel, warm = common("stainless steel 1.4301"), common("stainless steel 1.4301").at(473.15)
    assert warm.youngs_modulus == pytest.approx(186e9, rel=4e-3)
    assert warm.shear_modulus / warm.youngs_modulus == pytest.approx(
        steel.shear_modulus / steel.youngs_modulus
    )
    assert warm.at(293.15).youngs_modulus == pytest.approx(steel.youngs_modulus)
    aluminum = np.polynomial.Polynomial([77.71221, 0.01030646, -2.9241e-4, 8.9936e-7, -1.0709e-9])
    ratio = common("aluminum 6061-T6").at(220.0).youngs_modulus / 68.9e9
    assert ratio == pytest.approx(aluminum(220.0) / aluminum(293.15), rel=2e-3)
    # The crystal at two temperatures; tuning forks of quartz turn at room temperature.
    silicon = fx.Material.silicon((1, 1, 0), (0, 0, 1))
    cold, hot = (165.7e9, 63.9e9, 79.6e9), np.array([165.7e9, 63.9e9, 79.6e9])
    hot *= 1.0 - 1e-6 * np.array([73.25, 91.59, 60.14])
    moduli = []
    for c11, c12, c44 in (cold, hot):
        s11, s12 = (c11 + c12) / (c11 - c12) / (c11 + 2 * c12), -c12 / (c11 - c12) / (c11 + 2 * c12)
        moduli.append(1.0 / (s11 - 0.5 * (s11 - s12 - 0.5 / c44)))
    assert silicon.thermoelastic_coefficient == pytest.approx(moduli[1] / moduli[0] - 1.0, rel=1e-3)
    assert common("silicon <110>").thermoelastic_coefficient == pytest.approx(-64.6e-6)
    fork = fx.Material.quartz((0, 1, 0), (1, 0, 0)).thermoelastic_coefficient
    assert fork is not None
    assert abs(fork) < 5e-6
    with pytest.raises(ValueRefusedError, match=r"in \[200, 300\] K; found 400"):
        common("Invar 36").at(400.0)
    with pytest.raises(DeclarationError, match="'POM' at another temperature"):
        common("POM").at(300.0)
    for bad in ({"temperature_range": (300.0, 200.0)}, {"creep_temperature": -1.0}):
        with pytest.raises(ValueRefusedError, match="Cannot make Material with"):
            fx.Material(1e9, poissons_ratio=0.3, density=1e3, **bad)


def test_checks_name_the_flexures_that_creep() -> None:
    found = {}
    for name in ("POM", "stainless steel 301"):
        builder = fx.PlantBuilder("clip", gravity=(0.0, 0.0, 0.0))
        arm = builder.add_body("arm", fx.SpatialInertia.point_mass(0.1))
        end = builder.add_frame("end", arm, (0.05, 0.0, 0.0))
        size: dict[str, Any] = {"length": 0.05, "width": 0.01, "thickness": 1e-3}
        material = fx.Material.common(name)
        leaf = fx.LeafSpring("leaf", builder.world, end, material=material, segments=2, **size)
        builder.add_force_element(leaf)
        plant = builder.build()
        found[name] = fx.check_limits(plant, plant.create_default_context())
    assert "'POM' creeps" in str(found["POM"])
    assert list(found["POM"].notes.values()) == [["leaf"]]
    assert found["POM"].ok
    assert "Note" not in str(found["stainless steel 301"])
