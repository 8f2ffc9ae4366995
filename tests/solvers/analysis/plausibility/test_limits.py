"""Flexures beyond their limits are named, with the value, the limit and a way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ContextError, DeclarationError

STEEL = fx.Material.common("titanium Ti-6Al-4V")
NOTCH = fx.sections.CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2)


def stage(notch: fx.sections.Notch = NOTCH) -> tuple[fx.Plant, Any, Any]:
    """A lever that turns about a notch; its joint and the hinge."""
    builder = fx.PlantBuilder("stage", gravity=(0, 0, 0))
    arm = fx.SpatialInertia.solid_box(0.05, size=(0.1, 0.01, 0.01))
    lever = builder.add_body("lever", arm, com=(0.05, 0.0, 0.0))
    pivot = builder.add_joint(fx.RevoluteJoint("pivot", builder.world, lever, axis=(0, 0, 1)))
    hinge = fx.NotchHinge("hinge", builder.world, lever, notch=notch, material=STEEL)
    builder.add_force_element(hinge)
    return builder.build(), pivot, hinge


def leaf(**options: Any) -> tuple[fx.Plant, Any, fx.Beam]:
    """A table on a leaf that moves freely; its joint and the leaf."""
    builder = fx.PlantBuilder("leaf", gravity=(0, 0, 0))
    box = fx.SpatialInertia.solid_box(0.5, size=(0.1, 0.1, 0.1))
    table = builder.add_body("table", box)
    free = builder.add_joint(fx.RpyFloatingJoint("free", builder.world, table))
    free.default_translation = [0.1, 0.0, 0.0]
    given: dict[str, Any] = {
        "section": fx.sections.RectangleSection(width=0.02, thickness=5e-4)
    } | options
    beam = fx.Beam("beam", builder.world, table, material=STEEL, length=0.1, **given)
    builder.add_force_element(beam)
    return builder.build(), free, beam


def test_at_rest_nothing_is_exceeded_and_the_shape_counts() -> None:
    plant, _, _ = stage()
    found = fx.check_limits(plant)
    assert found
    assert found.ok
    assert list(found) == []
    assert found.usages[0].quantity == "error of a beam"
    assert found.usages[0].utilization == pytest.approx(0.4)
    assert "0 of 4 limits exceeded; the most used is hinge" in str(found)
    assert fx.doctor(plant).findings == ()


def test_stress_is_told_against_yield_and_fatigue_with_numbers() -> None:
    plant, pivot, hinge = stage()
    context = plant.create_default_context()
    greatest = hinge.notch_law(context).greatest_angle(STEEL.yield_strength)
    pivot.angle.set(context, 0.8 * greatest)
    (usage,) = fx.check_limits(plant, context)
    assert usage.path == "hinge"
    assert usage.quantity == "stress over fatigue limit"
    assert usage.value == pytest.approx(0.8 * 830e6)
    assert usage.bound == 510e6
    assert usage.utilization == pytest.approx(0.8 * 830.0 / 510.0)
    pivot.angle.set(context, 1.01 * greatest)
    found = fx.check_limits(plant, context)
    assert not found
    assert len(found) == 2
    assert "stress over yield strength: 8.383e+08 Pa, at most 8.3e+08 Pa" in str(found)
    assert "or move it less" in str(found)
    assert found.table()["quantity"][:2] == [each.quantity for each in found]
    findings = fx.doctor(plant, context).findings
    assert [each.rule for each in findings] == ["limit", "limit"]
    assert {each.path for each in findings} == {"hinge"}


def test_thick_necks_and_large_angles_are_named() -> None:
    plant, pivot, _ = stage(fx.sections.CircularNotch(thickness=2e-3, radius=5e-3, width=1e-2))
    context = plant.create_default_context()
    pivot.angle.set(context, 0.4)
    found = {each.quantity: each for each in fx.check_limits(plant, context)}
    assert found["error of a beam"].value == pytest.approx(0.16)
    assert found["angle"].value == pytest.approx(0.4)


@pytest.mark.full
def test_over_a_run_the_worst_time_counts() -> None:
    plant, pivot, hinge = stage()
    context = plant.create_default_context()
    pivot.rate.set(context, 20.0)
    result = fx.simulate(plant, 0.02, context=context)
    found = fx.check_limits(result)
    greatest = np.max(result[hinge.greatest_stress])
    worst = next(each for each in found.usages if each.quantity == "stress over yield strength")
    assert worst.value == pytest.approx(greatest)
    instant = float(result.time[int(np.argmax(result[hinge.greatest_stress]))])
    assert worst.when == f"at t = {instant:.6g} s"


def test_parameters_of_the_context_are_the_bounds() -> None:
    plant, pivot, hinge = stage()
    context = plant.create_default_context()
    pivot.angle.set(context, 0.01)
    hinge.yield_strength.set(context, 100e6)
    worst = fx.check_limits(plant, context).usages[0]
    assert (worst.quantity, worst.bound) == ("stress over yield strength", 100e6)


def test_beams_tell_of_angles_slenderness_and_twist_by_bending() -> None:
    plant, free, _ = leaf()
    context = plant.create_default_context()
    assert fx.check_limits(plant, context)
    free.angles.set(context, [0.0, 0.0, 0.35])
    assert "angle between its ends" in [each.quantity for each in fx.check_limits(plant, context)]
    free.angles.set(context, [0.0, 0.0, 0.0])
    free.translation.set(context, [0.09, 0.05, 0.0])
    assert "angle of its chord" in [each.quantity for each in fx.check_limits(plant, context)]
    thick, _, _ = leaf(section=fx.sections.RectangleSection(width=0.03, thickness=0.025))
    (usage,) = fx.check_limits(thick)
    assert usage.quantity == "thickness over length"
    assert usage.value == pytest.approx(0.25)


def test_a_wide_leaf_that_is_bent_both_ways_twists_inside() -> None:
    plant, free, beam = leaf()
    context = plant.create_default_context()
    free.angles.set(context, [0.0, 0.05, 0.25])
    found = {each.quantity: each for each in fx.check_limits(plant, context).usages}
    usage = found["twist by bending, over the energy of bending"]
    law, section = beam.law(context), fx.sections.RectangleSection(width=0.02, thickness=5e-4)
    stiff, soft = law.bending_stiffness_y, law.bending_stiffness_z
    _, qy, qz = law.strains(law.deformation(plant_pose(plant, context))).turns
    giving = 12.0 * law.torsion_stiffness + stiff * qz * qz + soft * qy * qy
    inside = ((stiff - soft) * qy * qz) ** 2 / (2.0 * giving * 0.1)
    bending = (stiff * qy * qy + soft * qz * qz) / (2.0 * 0.1)
    assert usage.value == pytest.approx(inside / bending, rel=1e-9)
    assert usage.value > 0.1 > 0.01 * section.width
    assert usage in list(fx.check_limits(plant, context))


def plant_pose(plant: fx.Plant, context: fx.Context) -> Any:
    return plant.joint("free").pose(context)


def test_elements_of_your_own_declare_limits() -> None:
    class Thread(fx.multibody.JointForceElement):
        def __init__(self, name: str, joint: fx.multibody.Joint) -> None:
            super().__init__(name, joint)
            self.strength = self.declare_numeric_parameter("strength", 2.0, unit="N m")
            limit = fx.multibody.Limit("torque", self.strength, "N m", "It breaks", "Take two")
            self.declare_limits(
                [limit],
                lambda context: np.abs(self.position(context)),
                prerequisites=[self.position],
            )

        def calc_generalized_force(self, context: Any) -> Any:
            return -self.position(context)

        def calc_stored_energy(self, context: Any) -> Any:
            return 0.5 * self.position(context)[0] ** 2

        def calc_conservative_power(self, context: Any) -> Any:
            return -self.position(context)[0] * self.velocity(context)[0]

        def calc_non_conservative_power(self, context: Any) -> Any:
            return 0.0

    builder = fx.PlantBuilder("loom", gravity=(0, 0, 0))
    arm = builder.add_body("arm", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1)))
    pivot = builder.add_joint(fx.RevoluteJoint("pivot", builder.world, arm, axis=(0, 0, 1)))
    thread = Thread("thread", pivot)
    builder.add_force_element(thread)
    plant = builder.build()
    context = plant.create_default_context()
    pivot.angle.set(context, 3.0)
    (usage,) = fx.check_limits(plant, context)
    assert usage.what == "torque: 3 N m, at most 2 N m"
    with pytest.raises(DeclarationError, match="already"):
        thread.declare_limits(thread.limits, lambda context: [0.0])


def test_a_system_without_limits_says_so() -> None:
    assert str(fx.check_limits(fx.Gain("gain", 2.0))) == "'gain': no element has limits"


def test_what_has_no_limits_is_refused() -> None:
    plant, _, _ = stage()
    result = fx.simulate(plant, 0.001)
    for wrong, context in (("stage", None), (3.0, None), (result, plant.create_default_context())):
        with pytest.raises(DeclarationError, match="a result or a load path"):
            fx.check_limits(wrong, context)
    with pytest.raises(ContextError):
        fx.check_limits(plant, stage()[0].create_default_context())


def test_segments_of_a_divided_beam_tell_how_far_they_bend() -> None:
    plant, free, _ = leaf(segments=4)
    assert fx.check_limits(plant)
    context = plant.create_default_context()
    free.angles.set(context, [0.0, 0.0, 0.5])  # and all nodes stay, so the last segment bends
    bent = {each.path for each in fx.check_limits(plant, context) if each.unit == "rad"}
    assert bent == {"beam_4"}
    assert "stress over yield strength" in [
        each.quantity for each in fx.check_limits(plant, context)
    ]


def test_along_a_load_path_the_worst_point_counts() -> None:
    plant, pivot, hinge = stage()
    path = fx.load_path(plant, {pivot.angle: [0.0, 0.01, 0.03]})
    found = fx.check_limits(path)
    worst = next(each for each in found.usages if each.quantity == "stress over yield strength")
    assert worst.value == pytest.approx(np.max(path[hinge.greatest_stress]))
    assert worst.when == f"at point {len(path) - 1}"
