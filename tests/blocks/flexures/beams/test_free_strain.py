"""Free strain of beams: expansion, bimetal strips, thermal buckling, drift, and its work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import thinned

LENGTH, WIDTH, THICKNESS, ALPHA, E = 0.1, 0.02, 5e-4, 12e-6, 200e9
STEEL = fx.Material(
    E, poissons_ratio=0.3, density=7800.0, thermal_expansion=ALPHA, yield_strength=5e8
)
#: At 300 K it is STEEL, and it becomes softer by a part that no steel has.
SOFTENING = replace(
    STEEL, thermoelastic_coefficient=-2e-3, temperature=300.0, temperature_range=(250.0, 350.0)
)
KINDS: dict[str, dict[str, Any]] = {
    "one": {},
    "divided": {"segments": 4, "planar": True},
    "tapered": {"end_section": fx.sections.RectangleSection(WIDTH, 1.5 * THICKNESS)},
    "tapered, divided, curved, damped": {
        "end_section": fx.sections.RectangleSection(WIDTH, 0.9 * THICKNESS),
        "segments": 4,
        "curvature": (0.0, 2.0),
        "damping_time": 1e-4,
    },
}


def cantilever(
    *, mass: float = 1e-3, material: fx.Material = STEEL, **options: Any
) -> tuple[fx.Plant, fx.Beam]:
    """A leaf with a tip that moves in the plane x-y."""
    builder = fx.PlantBuilder("strip", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(mass, size=(0.01,) * 3))
    joint = builder.add_joint(fx.PlanarJoint("tip_joint", builder.world, tip))
    options = {"free_strain": True, "reference_temperature": 300.0, **options}
    leaf = fx.Beam(
        "leaf",
        builder.world,
        tip,
        section=fx.sections.RectangleSection(WIDTH, THICKNESS),
        material=material,
        length=LENGTH,
        **options,
    )
    joint.default_pose = leaf.default_shape()(LENGTH)
    builder.add_force_element(leaf)
    builder.add_energy_ledger()
    return builder.build(), leaf


def pose_of_tip(plant: fx.Plant, context: fx.Context) -> Any:
    """Return x, y and the turn of the tip."""
    pose = plant.output_port("tip.pose").eval(context)
    return np.array([pose[9], pose[10], np.arctan2(pose[3], pose[0])])


@pytest.mark.parametrize("kind", thinned(KINDS, fast=2))
def test_free_beams_grow_and_bend_without_stress(kind: str) -> None:
    plant, leaf = cantilever(**KINDS[kind])
    along = {
        "leaf.temperature": 400.0,
        "leaf.temperature_gradient": [-1e4, 0.0],
        "leaf.free_strain": [-2e-4, 0.0, 0.5],
    }
    found = fx.load_path(plant, along).context(-1)
    assert np.max(leaf.stress.eval(found)) < 2e2
    arc = LENGTH * (1.0 + ALPHA * 100.0 - 2e-4)
    kappa = (KINDS[kind].get("curvature", (0.0, 0.0))[1] + ALPHA * 1e4 + 0.5) * arc
    exact = [arc * np.sin(kappa) / kappa, arc * (1.0 - np.cos(kappa)) / kappa, kappa]
    np.testing.assert_allclose(pose_of_tip(plant, found), exact, atol=2e-9)


def test_a_clamped_bar_has_the_stress_of_its_strain_and_buckles() -> None:
    builder = fx.PlantBuilder("clamped", gravity=(0.0, 0.0, 0.0))
    end = builder.add_frame("end", builder.world, (LENGTH, 0.0, 0.0))
    leaf = fx.LeafSpring(
        "leaf",
        builder.world,
        end,
        length=LENGTH,
        width=WIDTH,
        thickness=THICKNESS,
        material=STEEL,
        segments=8,
        planar=True,
        reference_temperature=300.0,
        shear=False,
    )
    builder.add_force_element(leaf)
    plant = builder.build()
    context = plant.create_default_context()
    context.set("leaf.temperature", 301.0)
    np.testing.assert_allclose(leaf.stress.eval(context), E * ALPHA, rtol=1e-9)
    path = fx.load_path(plant, {"leaf.temperature": 320.0})
    point = next(each for each in path.special if each.kind == "branch")
    (critical,) = np.atleast_1d(point.values["leaf.temperature"])
    exact = np.pi**2 * THICKNESS**2 / (3.0 * LENGTH**2 * ALPHA)
    assert critical - 300.0 == pytest.approx(exact, rel=1e-3)  # squeezed, it is shorter as well
    assert path.num_unstable[0] == 0
    assert path.num_unstable[-1] >= 1
    slow = fx.modes(plant, context)[0].frequency
    cold = fx.modes(plant)[0].frequency
    assert (slow / cold) ** 2 == pytest.approx(1.0 - 1.0 / exact, rel=0.02)
    slopes = fx.linearize(plant, context, inputs=["leaf.temperature"], outputs=["leaf.stress"])
    np.testing.assert_allclose(slopes.D[:, 0], E * ALPHA, rtol=1e-6)


def test_a_bimetal_strip_bends_as_timoshenko_found() -> None:
    """J. Opt. Soc. Am. 11 (1925) 233-255, equation 4."""
    thick, alphas, moduli = (3e-4, 5e-4), (1.2e-6, 19e-6), (141e9, 105e9)
    builder = fx.PlantBuilder("bimetal", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(1e-3, size=(0.01,) * 3))
    joint = builder.add_joint(fx.PlanarJoint("tip_joint", builder.world, tip))
    joint.default_pose = np.eye(3), (LENGTH, 0.0, 0.0)
    for k, y in enumerate((0.5 * thick[1], -0.5 * thick[0])):
        ends = (
            builder.add_frame(f"{end}{k}", on, (0.0, y, 0.0))
            for end, on in (("a", builder.world), ("c", tip))
        )
        layer = fx.LeafSpring(
            f"layer{k}",
            *ends,
            length=LENGTH,
            width=WIDTH,
            thickness=thick[k],
            material=fx.Material(
                moduli[k], poissons_ratio=0.3, density=8e3, thermal_expansion=alphas[k]
            ),
            reference_temperature=300.0,
        )
        builder.add_force_element(layer)
    plant = builder.build()
    context, change = plant.create_default_context(), 0.01
    for k in range(2):
        context.set(f"layer{k}.temperature", 300.0 + change)
    angle = pose_of_tip(plant, fx.equilibrium(plant, context, tolerance=1e-13).context)[2]
    m, n, h = thick[0] / thick[1], moduli[0] / moduli[1], sum(thick)
    by_strain = 6.0 * (1 + m) ** 2 / (h * (3 * (1 + m) ** 2 + (1 + m * n) * (m**2 + 1 / (m * n))))
    assert angle == pytest.approx(by_strain * (alphas[1] - alphas[0]) * change * LENGTH, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_beams_are_as_soft_as_beams_of_the_warm_material(kind: str) -> None:
    """Of the stiffness and the stress, without expansion, at 320 K."""
    found = []
    for material, temperature in ((SOFTENING, 320.0), (SOFTENING.at(320.0), 320.0)):
        plant, leaf = cantilever(material=material, **KINDS[kind])
        context = plant.create_default_context()
        context.set("leaf.thermal_expansion", 0.0)
        context.set("leaf.temperature", temperature)
        positions = plant.output_port("tip_joint.q").eval(context)
        context.set("tip_joint.q", positions + np.array([0.0, 1e-4, 0.0]))
        force, stress = leaf.force_on_frame_C.eval(context), leaf.stress.eval(context)
        found.append(np.concatenate([force, stress]))
        assert all(each.unit != "K" for each in fx.check_limits(plant, context))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)
    context.set("leaf.temperature", 360.0)
    (beyond,) = (each for each in fx.check_limits(plant, context) if each.unit == "K")
    assert beyond.value == pytest.approx(60.0)
    plant, leaf = cantilever(material=SOFTENING, **KINDS[kind])
    context = plant.create_default_context()
    context.set("leaf.temperature", 801.0)
    with pytest.raises(fx.errors.EvaluationError, match="modulus is positive"):
        leaf.force_on_frame_C.eval(context)


def heated(kind: str) -> fx.Diagram:
    """A strip whose temperature, gradient and piezo strain swing, with their rates."""
    plant, _ = cantilever(mass=0.01, material=SOFTENING, **KINDS[kind])
    builder, speed = fx.DiagramBuilder("heated"), 200.0
    builder.add(plant)
    swings = {
        "temperature": (300.0, [40.0]),
        "temperature_gradient": (0.0, [3e3, -2e3]),
        "free_strain": (0.0, [1e-4, 0.3, -0.4]),
    }
    for name, (mean, amplitude) in swings.items():
        size = len(amplitude)
        for ending, scale, phase, offset in (("", 1.0, 0.0, mean), ("_rate", speed, np.pi / 2, 0)):
            wave = fx.Sine(
                f"{name}{ending}",
                amplitude=scale * np.array(amplitude),
                frequency=speed,
                phase=np.full(size, phase),
                offset=np.full(size, float(offset)),
            )
            builder.add(wave)
            builder.connect(wave.y, f"strip.leaf.{name}{ending}")
    return builder.build()


@needs_llvmlite
@pytest.mark.parametrize(
    "kind", ["one", pytest.param("tapered, divided, curved, damped", marks=pytest.mark.full)]
)
def test_the_ledger_counts_the_work_of_heat(kind: str) -> None:
    system = heated(kind)
    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-11}
    result = fx.simulate(system, 0.02 if kind == "one" else 0.005, **options)
    spread = np.ptp(result["strip.ledger.balance"])
    assert np.ptp(result["strip.mechanical_energy"]) > 1e-4
    assert spread < 1e-6 * np.ptp(result["strip.mechanical_energy"])
    if kind == "one":
        pair = [
            fx.simulate(system, 0.0005, compiled=way, **options)["strip.positions"][-1]
            for way in ("python", "native")
        ]
        np.testing.assert_allclose(pair[0], pair[1], rtol=1e-9, atol=1e-12)


def test_what_has_no_expansion_or_only_a_pose_is_refused() -> None:
    frames = fx.Body("A"), fx.Body("C")
    options: dict[str, Any] = {"length": 0.1, "width": 0.01, "thickness": 1e-3}
    plain = fx.Material(E, poissons_ratio=0.3, density=7800.0, name="plain")
    with pytest.raises(fx.errors.DeclarationError, match="'plain', whose expansion is not known"):
        fx.LeafSpring("leaf", *frames, material=plain, reference_temperature=300.0, **options)
    pose = np.eye(3), (0.1, 0.0, 0.0)
    with pytest.raises(fx.errors.DeclarationError, match="which free strain changes"):
        fx.LeafSpring(
            "leaf", *frames, material=plain, free_strain=True, unstressed_pose=pose, **options
        )
    with pytest.raises(fx.errors.ValueRefusedError, match="reference_temperature"):
        fx.LeafSpring("leaf", *frames, material=STEEL, reference_temperature=-1.0, **options)


def test_a_guide_between_two_materials_drifts_and_bends() -> None:
    """Two leaves at y = 0 and d; both ends of each shift against each other by ±d (ε₂ - ε₁)/2."""
    distance, strains = 0.06, (23e-6 * 10.0, 1.2e-6 * 40.0)
    for segments in (1, 3):
        builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
        table = builder.add_body("table", fx.SpatialInertia.solid_box(0.1, size=(0.02,) * 3))
        builder.world.add_thermal_expansion(23e-6)
        table.add_thermal_expansion(1.2e-6, reference_temperature=300.0)
        joint = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, table))
        joint.default_pose = np.eye(3), (LENGTH, 0.0, 0.0)
        ends = (
            builder.add_frame(name, on, (0.0, 0.5 * distance, 0.0))
            for name, on in (("root", builder.world), ("end", table))
        )
        size: dict[str, Any] = {"length": LENGTH, "width": WIDTH, "thickness": THICKNESS}
        options = size | {"segments": segments, "planar": segments > 1, "shear": False}
        guide = fx.ParallelGuide("guide", *ends, distance=distance, material=STEEL, **options)
        builder.add_assembly(guide)
        plant = builder.build()
        heat = {"world.temperature": 303.15, "table.temperature": 340.0}
        found = fx.load_path(plant, heat).context(-1)
        apart = 0.5 * distance * (strains[1] - strains[0])
        x, y, _ = table.pose(found).p
        assert y == pytest.approx(-apart, rel=1e-5)
        assert x == pytest.approx(LENGTH, abs=1e-9)
        y = builder.frame("end").pose(found).p[1]
        assert y == pytest.approx(0.5 * distance * (1.0 + strains[1]) - apart, rel=1e-9)
        bending = E * WIDTH * THICKNESS**3 / 12.0
        force = guide.leaves[0].section_forces.eval(found)[4]
        assert abs(force) == pytest.approx(12.0 * bending / LENGTH**3 * abs(apart), rel=1e-4)
        cold = fx.equilibrium(plant).context
        np.testing.assert_allclose(table.pose(cold).p, [LENGTH, 0.0, 0.0], atol=1e-12)
    result = fx.simulate(plant, 1e-3, context=found)
    assert np.ptp(result["table.position"], axis=0).max() < 1e-10


def test_jacobians_of_frames_on_warm_bodies_follow_them() -> None:
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    arm = builder.add_body("arm", fx.SpatialInertia.point_mass(0.1))
    arm.add_thermal_expansion(1e-3)
    corner = builder.add_frame("corner", arm, (0.1, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, arm, axis=(0, 0, 1)))
    plant = builder.build()
    context = plant.create_default_context()
    context.set("arm.temperature", 393.15)
    axis.angular_rate.set(context, 2.0)
    J = plant.calc_jacobian(context, corner)
    assert J[:, 0] * 2.0 == pytest.approx([0.0, 0.0, 2.0, 0.0, 0.22, 0.0], abs=1e-12)
    bias = plant.calc_bias_spatial_acceleration(context, corner)
    assert bias[3:] == pytest.approx([-0.44, 0.0, 0.0], abs=1e-12)


def test_bodies_do_not_expand_where_something_would_not_follow(tmp_path: Path) -> None:
    def built(expand_last: bool, at: Any) -> fx.Plant:
        builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
        table = builder.add_body("table", fx.SpatialInertia.point_mass(0.1))
        if not expand_last:
            table.add_thermal_expansion(1e-5)
        corner = builder.add_frame("corner", table, at)
        builder.add_joint(fx.RevoluteJoint("axis", builder.world, corner, axis=(0, 0, 1)))
        points = builder.world, (1.0, 0.0, 0.0), table, (0.0, 0.0, 0.0)
        law: dict[str, Any] = {"free_length": 1.0, "stiffness": 1.0, "damping": 0.0}
        builder.add_force_element(fx.LinearSpringDamper("spring", *points, **law))
        if expand_last:
            table.add_thermal_expansion(1e-5)
            with pytest.raises(fx.errors.DeclarationError, match="found one that does"):
                table.add_thermal_expansion(1e-5)
        return builder.build()

    plant = built(False, (0.0, 0.0, 0.0))
    assert plant.input_port("table.temperature").size == 1
    with pytest.warns(UserWarning, match="the thermal expansion of 'table'"):
        fx.save_urdf(plant, tmp_path / "stage.urdf")
    with pytest.raises(fx.errors.DeclarationError, match="'axis', which does not follow"):
        built(False, (0.1, 0.0, 0.0))
    with pytest.raises(fx.errors.DeclarationError, match="'spring', which was attached before"):
        built(True, (0.0, 0.0, 0.0))
    with pytest.raises(fx.errors.ValueRefusedError, match="reference_temperature"):
        fx.Body("a").add_thermal_expansion(1e-5, reference_temperature=-1.0)
