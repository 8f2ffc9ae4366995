"""Notch hinges turn bodies like the springs of their law, anywhere and however they are turned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks import math as fm
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError, ValueRefusedError
from tests.support.native.native import needs_llvmlite

STEEL = fx.Material.common("structural steel S235")
NOTCH = fx.sections.CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2)


def lever(material: fx.Material = STEEL, **options: Any) -> tuple[fx.Plant, Any, Any]:
    """A lever on a notch, free to move: its plant, its joint and the hinge."""
    builder = fx.PlantBuilder("stage", gravity=(0, 0, 0))
    arm = fx.SpatialInertia.solid_box(0.05, size=(0.1, 0.01, 0.01))
    body = builder.add_body("lever", arm, com=(0.05, 0.0, 0.0))
    free = builder.add_joint(fx.RpyFloatingJoint("free", builder.world, body))
    hinge = fx.NotchHinge("hinge", builder.world, body, notch=NOTCH, material=material, **options)
    builder.add_force_element(hinge)
    return builder.build(), free, hinge


def placed(plant: fx.Plant, free: Any, X: Any) -> fx.Context:
    context = plant.create_default_context()
    free.pose.set(context, X)
    return context


def test_a_moment_about_z_turns_it_as_the_integral_says() -> None:
    plant, free, hinge = lever()
    context = placed(plant, free, (fm.rotation_about([0.0, 0.0, 1.0], 0.002), np.zeros(3)))
    closed = fx.laws.paros_weisbord(NOTCH, STEEL.youngs_modulus)
    moment = 0.002 / closed.bending_z
    on_lever = hinge.force_on_frame_C.eval(context)
    np.testing.assert_allclose(on_lever, [0, 0, -moment, 0, 0, 0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        hinge.section_forces.eval(context), [0, 0, moment, 0, 0, 0], rtol=1e-9, atol=1e-12
    )
    stress = 6.0 * moment / (NOTCH.width * NOTCH.thickness**2)
    stress *= NOTCH.stress_concentration().bending
    assert hinge.greatest_stress.eval(context)[0] == pytest.approx(stress)
    assert hinge.safety.eval(context)[0] == pytest.approx(235e6 / stress)


def test_a_large_turn_of_both_bodies_changes_nothing_within() -> None:
    builder = fx.PlantBuilder("pair")
    inertia = fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1))
    bodies = [builder.add_body(name, inertia) for name in ("base", "arm")]
    joints = [
        builder.add_joint(fx.RpyFloatingJoint(f"to_{body.name}", builder.world, body))
        for body in bodies
    ]
    hinge = fx.NotchHinge("hinge", *bodies, notch=NOTCH, material=STEEL)
    builder.add_force_element(hinge)
    plant = builder.build()
    small = fm.RigidTransform(
        fm.rotation_from_rotation_vector([0.003, -0.001, 0.2]), np.array([1e-6, 3e-6, -2e-6])
    )
    found = []
    for turn in ([0.0, 0.0, 0.0], [1.0, 0.4, 2.0]):
        X = fm.RigidTransform(fm.rotation_from_rotation_vector(turn), np.array([3.0, -1.0, 2.0]))
        context = plant.create_default_context()
        joints[0].pose.set(context, X)
        joints[1].pose.set(context, fm.compose_transforms(X, small))
        ports = (hinge.section_forces, hinge.greatest_stress, hinge.force_on_frame_A)
        found.append(np.concatenate([port.eval(context) for port in ports]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7)


def test_another_radius_causes_no_stress() -> None:
    plant, _, hinge = lever()
    context = plant.create_default_context()
    hinge.radius.set(context, 8e-3)
    assert hinge.greatest_stress.eval(context)[0] == 0.0
    assert hinge.stored_energy.eval(context)[0] == 0.0


def test_it_swings_at_the_frequency_of_its_stiffness() -> None:
    plant, _, _ = lever()
    modes = fx.modes(plant)
    inertia = 0.05 * (0.1**2 + 0.01**2) / 12.0 + 0.05 * 0.05**2
    stiffness = 1.0 / fx.laws.paros_weisbord(NOTCH, STEEL.youngs_modulus).bending_z
    lowest = min(each.frequency for each in modes if each.frequency > 0.0)
    assert lowest == pytest.approx(np.sqrt(stiffness / inertia) / (2.0 * np.pi), rel=1e-3)


def test_dampers_make_the_loss_factor_of_their_time() -> None:
    time = 1e-5
    plant, free, hinge = lever(damping_time=time)
    context = placed(plant, free, (np.eye(3), np.zeros(3)))
    free.spatial_velocity.set(context, [0.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    stiffness = 1.0 / fx.laws.paros_weisbord(NOTCH, STEEL.youngs_modulus).bending_z
    assert hinge.non_conservative_power.eval(context)[0] == pytest.approx(-4.0 * time * stiffness)


@pytest.mark.full
@needs_llvmlite
def test_its_dimensions_are_parameters_of_a_compiled_run() -> None:
    plant, free, hinge = lever(damping_time=1e-4)
    ends = []
    for compiled in ("python", "native"):
        context = placed(plant, free, (fm.rotation_about([0.0, 0.0, 1.0], 0.005), np.zeros(3)))
        hinge.thickness.set(context, 4e-4)
        result = fx.simulate(
            plant, 0.005, context=context, compiled=compiled, rtol=1e-8, atol=1e-10
        )
        ends.append(result[hinge.angles][-1])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-4, atol=1e-9)


def test_a_plate_is_stiffer_about_z_alone() -> None:
    _, _, free = lever()
    _, _, plate = lever(plate=True)
    first, second = (
        each.notch_law(each.create_default_context()).compliance()
        for each in (
            fx.NotchHinge(
                "hinge", fx.Body("a"), fx.Body("b"), notch=NOTCH, material=STEEL, plate=is_plate
            )
            for is_plate in (False, True)
        )
    )
    np.testing.assert_allclose(second.rotation / first.rotation, [1.0, 1.0, 0.91], rtol=1e-12)
    assert plate.plate
    assert not free.plate


def test_brittle_materials_have_a_stress_and_no_safety() -> None:
    plant, _, hinge = lever(fx.Material.common("fused silica"))
    assert "safety" not in [port.name for port in hinge.output_ports]
    assert hinge.greatest_stress.eval(plant.create_default_context())[0] == 0.0
    assert [limit.quantity for limit in hinge.limits] == ["angle", "error of a beam"]


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"notch": 3.0}, DeclarationError, "a Notch"),
        ({"material": "steel"}, DeclarationError, "a Material"),
        ({"plate": 3}, DeclarationError, "plate"),
        ({"damping_time": -1.0}, ValueRefusedError, "damping_time"),
        ({"damping_time": np.nan}, ValueRefusedError, "damping_time"),
    ],
)
def test_what_cannot_be_is_refused(change: Any, error: type[Exception], said: str) -> None:
    given: Any = {"notch": NOTCH, "material": STEEL} | change
    with pytest.raises(error, match=said):
        fx.NotchHinge("hinge", fx.Body("a"), fx.Body("b"), **given)


def test_half_a_turn_is_refused_by_name() -> None:
    plant, free, hinge = lever()
    context = placed(plant, free, (fm.rotation_about([0.0, 0.0, 1.0], 3.1), np.zeros(3)))
    with pytest.raises(EvaluationError, match="hinge"):
        hinge.stored_energy.eval(context)
