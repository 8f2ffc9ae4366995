"""Linear springs on joints, one physical situation at a time."""

from __future__ import annotations

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.forces.on_joints.joint_springs import JointSpring, SpringLaw
from tests.support.mechanics.joint_forces import WITHOUT_RATES, computed, joint
from tests.support.tiers import for_each


def test_a_torsion_spring_turns_back_towards_its_nominal_angle() -> None:
    spring = JointSpring("spring", joint(), stiffness=20.0, nominal_position=0.1)
    found = computed(spring, 0.6)
    np.testing.assert_allclose(found.force, [-10.0], rtol=1e-15)
    assert found.stored_energy == pytest.approx(2.5, rel=1e-15)
    assert computed(spring, -0.4).force == pytest.approx(10.0)
    assert computed(spring, 0.1).force == 0.0


def test_a_damper_takes_energy_in_both_directions() -> None:
    spring = JointSpring("spring", joint("prismatic"), stiffness=0.0, damping=3.0)
    for rate in (2.0, -2.0):
        found = computed(spring, 0.7, rate)
        np.testing.assert_array_equal(found.force, [-3.0 * rate])
        assert found[1:] == (0.0, 0.0, -12.0)


def test_a_spring_that_moves_gives_power_and_stores_it() -> None:
    spring = JointSpring("spring", joint(), stiffness=20.0, damping=1.0)
    found = computed(spring, 0.5, 2.0)
    assert found.conservative_power == -20.0
    assert found.non_conservative_power == -4.0


def test_the_damper_needs_no_position() -> None:
    spring = JointSpring("spring", joint(), stiffness=20.0)
    assert ("velocity", "non_conservative_power") in spring.feedthrough
    assert ("position", "non_conservative_power") not in spring.feedthrough


def test_a_preload_is_a_constant_force_with_an_energy() -> None:
    spring = JointSpring("spring", joint(), stiffness=10.0, nominal_position=0.2, preload=4.0)
    at_nominal, at_rest = computed(spring, 0.2), computed(spring, 0.6)
    assert (at_nominal.force, at_nominal.stored_energy) == (4.0, 0.0)
    assert at_rest.force == pytest.approx(0.0, abs=1e-15)
    assert at_rest.stored_energy == pytest.approx(-(4.0**2) / (2.0 * 10.0), rel=1e-14)
    counterweight = JointSpring("weight", joint(), stiffness=0.0, preload=4.0)
    assert computed(counterweight, 5.0, 0.5)[1:] == (-20.0, 2.0, 0.0)


def test_every_coordinate_has_a_spring_of_its_own() -> None:
    spring = JointSpring(
        "spring",
        joint("planar"),
        stiffness=[1.0, 2.0, 3.0],
        nominal_position=[0.5, 0.0, -0.5],
        preload=[0.0, 0.1, 0.0],
        damping=[0.0, 0.0, 0.2],
    )
    found = computed(spring, [1.5, 1.0, 0.5], [1.0, -1.0, 2.0])
    np.testing.assert_allclose(found.force, [-1.0, -1.9, -3.4], rtol=1e-15)
    assert found.stored_energy == pytest.approx(0.5 + (1.0 - 0.1) + 1.5, rel=1e-15)
    assert found.conservative_power == pytest.approx(-1.0 + 1.9 - 6.0, rel=1e-14)
    assert found.non_conservative_power == pytest.approx(-0.8, rel=1e-15)


def test_one_number_serves_all_coordinates() -> None:
    spring = JointSpring("spring", joint("universal"), stiffness=4.0)
    np.testing.assert_array_equal(spring.stiffness.default, [4.0, 4.0])
    np.testing.assert_array_equal(computed(spring, [0.5, -1.0]).force, [-2.0, 4.0])


@pytest.mark.parametrize(
    ("kind", "unit", "shape"),
    [
        ("revolute", "N m/rad", ()),
        ("screw", "N m/rad", ()),
        ("prismatic", "N/m", ()),
        ("universal", "N m/rad", (2,)),
        ("planar", "N/m, N/m, N m/rad", (3,)),
    ],
)
def test_units_and_shapes_are_those_of_the_coordinates(
    kind: str, unit: str, shape: tuple[int, ...]
) -> None:
    spring = JointSpring("spring", joint(kind), stiffness=4.0)
    assert (spring.stiffness.unit, spring.stiffness.shape) == (unit, shape)


def test_constants_can_be_changed_in_a_context() -> None:
    spring = JointSpring("spring", joint(), stiffness=4.0)
    context = spring.create_default_context()
    spring.stiffness.set(context, 5.0)
    spring.preload.set(context, -1.0)
    spring.damping.set(context, 2.0)
    spring.nominal_position.set(context, 0.25)
    assert spring.law(context) == SpringLaw(5.0, 0.25, -1.0, 2.0)
    changed = computed(spring, 0.0, stiffness=5.0, nominal_position=1.0)
    assert (changed.force, changed.stored_energy) == (5.0, 2.5)


@for_each("kind", WITHOUT_RATES)
def test_joints_whose_velocities_are_no_rates_are_refused(kind: str) -> None:
    with pytest.raises(
        fx.errors.DeclarationError, match=f"'spring' to joint 'axis'.*found a {kind} joint"
    ):
        JointSpring("spring", joint(kind), stiffness=1.0)


@pytest.mark.parametrize("name", ["stiffness", "damping"])
def test_negative_constants_are_refused(name: str) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"spring\.{name}.*found -1"):
        JointSpring("spring", joint(), **{"stiffness": 1.0, name: -1.0})
    spring = JointSpring("spring", joint(), stiffness=1.0)
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"spring\.{name}.*found -1"):
        getattr(spring, name).set(spring.create_default_context(), -1.0)


@for_each("wrong", [[1.0, 2.0, 3.0], [[1.0, 2.0]], [1.0]])
def test_vectors_of_the_wrong_size_are_refused(wrong: list[float]) -> None:
    with pytest.raises(
        fx.errors.DeclarationError, match=r"spring\.preload.*one number, or 2 for.*joint 'axis'"
    ):
        JointSpring("spring", joint("universal"), stiffness=1.0, preload=wrong)
