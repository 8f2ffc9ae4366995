"""The door hinge on a joint; that its numbers are those of Drake is tested in tests/oracle."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import flexure as fx
from flexure.diagrams import scalars
from tests.support.mechanics.joint_forces import computed, joint
from tests.support.tiers import for_each

CONSTANTS: dict[str, float] = {
    "spring_zero_angle_rad": -0.7,
    "spring_constant": 2.5,
    "dynamic_friction_torque": 1.7,
    "static_friction_torque": 0.9,
    "viscous_friction": 0.4,
    "catch_width": 0.1,
    "catch_torque": 6.0,
    "motion_threshold": 0.02,
}


def test_the_spring_alone_pulls_towards_its_zero_angle() -> None:
    bare = fx.DoorHingeConfig(0.2, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    found = computed(fx.DoorHinge("hinge", joint(), bare), 0.7, -2.0)
    np.testing.assert_allclose(found.force, [-1.5], rtol=1e-15)
    assert found.stored_energy == pytest.approx(1.5 * (0.5**2 - 0.2**2), rel=1e-14)
    assert found.conservative_power == pytest.approx(3.0, rel=1e-15)
    assert found.non_conservative_power == 0.0


@pytest.mark.parametrize("rate", [0.5, -0.5])
def test_friction_resists_both_directions(rate: float) -> None:
    hinge = fx.DoorHinge("hinge", joint(), spring_constant=0.0, catch_torque=0.0)
    found = computed(hinge, 1.0, rate)
    np.testing.assert_allclose(found.force, [-np.sign(rate) * (3.0 + 0.5)], rtol=1e-14)
    assert found.non_conservative_power == pytest.approx(-0.5 * 3.5, rel=1e-14)
    assert found.conservative_power == 0.0


def test_the_catch_holds_the_closed_door_and_pushes_the_opened_one() -> None:
    only_catch = {
        **dict.fromkeys(CONSTANTS, 0.0),
        "catch_torque": 10.0,
        "catch_width": 0.2,
    }
    hinge = fx.DoorHinge("hinge", joint(), **only_catch)
    torques = [computed(hinge, angle).force[0] for angle in (0.0, 0.1, 0.2)]
    s = np.tanh(1.0)
    most = 20.0 * s * (1.0 - s**2)
    np.testing.assert_allclose(torques, [-most, 0.0, most], rtol=1e-14, atol=1e-14)


def test_the_parts_of_the_torque_are_outputs_that_add_up() -> None:
    hinge = fx.DoorHinge("hinge", joint(), **CONSTANTS)
    context = hinge.create_default_context()
    hinge.position.fix(context, 0.03)
    hinge.velocity.fix(context, -0.01)
    parts = hinge.spring_torque.eval(context), hinge.frictional_torque.eval(context)
    assert parts[0] != 0.0
    assert parts[1] != 0.0
    np.testing.assert_array_equal(hinge.generalized_force.eval(context), sum(parts))


def test_parts_need_only_what_they_depend_on() -> None:
    hinge = fx.DoorHinge("hinge", joint())
    assert ("velocity", "spring_torque") not in hinge.feedthrough
    assert ("position", "frictional_torque") not in hinge.feedthrough
    assert ("velocity", "stored_energy") not in hinge.feedthrough
    assert ("position", "non_conservative_power") not in hinge.feedthrough


@pytest.mark.parametrize("kind", ["revolute", "screw"])
def test_any_joint_that_turns_at_one_rate_can_have_a_hinge(kind: str) -> None:
    axis = joint(kind)
    hinge = fx.DoorHinge("hinge", axis)
    assert hinge.joint is axis
    assert hinge.generalized_force.size == 1
    assert hinge.model_instance == axis.model_instance == "default"


@for_each("kind", ["prismatic", "universal", "planar", "ball_rpy", "weld"])
def test_other_joints_are_refused(kind: str) -> None:
    with pytest.raises(
        fx.errors.DeclarationError,
        match=f"'hinge' to joint 'axis'.*one velocity, at which it rotates; found a {kind} joint",
    ):
        fx.DoorHinge("hinge", joint(kind))


def test_what_is_no_joint_is_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match=r"a joint; found DoorHingeConfig\("):
        fx.DoorHinge("hinge", fx.DoorHingeConfig())  # type: ignore[arg-type]


# Constants ----------------------------------------------------------------------------------------


def test_without_constants_it_is_a_dishwasher_door() -> None:
    assert fx.DoorHinge("hinge", joint()).config == fx.DoorHingeConfig()


def test_single_constants_replace_those_of_a_config() -> None:
    given_config = fx.DoorHingeConfig(**CONSTANTS)
    hinge = fx.DoorHinge("hinge", joint(), given_config, spring_constant=9.0, catch_width=0.0)
    assert hinge.config == replace(given_config, spring_constant=9.0, catch_width=0.0)
    assert given_config == fx.DoorHingeConfig(**CONSTANTS)


def test_a_config_is_passed_by_position() -> None:
    with pytest.raises(fx.errors.UnknownNameError, match="or a DoorHingeConfig by position"):
        fx.DoorHinge("hinge", joint(), config=fx.DoorHingeConfig())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CONSTANTS)
def test_every_constant_is_a_parameter_that_a_context_can_change(name: str) -> None:
    hinge = fx.DoorHinge("hinge", joint(), **CONSTANTS)
    context = hinge.create_default_context()
    handle: Any = getattr(hinge, name)
    assert handle.get(context) == CONSTANTS[name]
    handle.set(context, 1.25)
    assert hinge.law(context) == fx.laws.HingeLaw(**{**CONSTANTS, name: 1.25})
    assert asdict(hinge.config) == CONSTANTS


@pytest.mark.parametrize("name", [name for name in CONSTANTS if name != "spring_zero_angle_rad"])
def test_negative_constants_are_refused_when_made_and_in_a_context(name: str) -> None:
    negative = {name: -1.0}
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"hinge\.{name}.*found -1"):
        fx.DoorHinge("hinge", joint(), **negative)
    hinge = fx.DoorHinge("hinge", joint())
    context = hinge.create_default_context()
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"hinge\.{name}.*found -1"):
        getattr(hinge, name).set(context, -1.0)


def test_the_rest_angle_may_be_negative_but_not_infinite() -> None:
    hinge = fx.DoorHinge("hinge", joint(), spring_zero_angle_rad=-9.0)
    assert hinge.config.spring_zero_angle_rad == -9.0
    with pytest.raises(fx.errors.ValueRefusedError, match="spring_zero_angle_rad"):
        fx.DoorHinge("hinge", joint(), spring_zero_angle_rad=np.inf)


def test_constants_that_no_hinge_has_are_refused_with_a_guess() -> None:
    with pytest.raises(fx.errors.UnknownNameError, match="Did you mean 'spring_constant'"):
        fx.DoorHinge("hinge", joint(), spring_constnat=1.0)


def test_a_config_of_another_kind_is_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match=r"a DoorHingeConfig; found \{'a': 1\}"):
        fx.DoorHinge("hinge", joint(), {"a": 1})  # type: ignore[arg-type]


def test_the_documentation_tells_units_and_defaults_as_they_are() -> None:
    page = Path(__file__).parents[4] / "docs" / "door_hinge.md"
    section = page.read_text(encoding="utf-8").partition("## DoorHinge")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|.*\| `(\w+)` +\| (.+?) +\| (\S+) +\|$", section, flags=re.MULTILINE)
    hinge = fx.DoorHinge("hinge", joint())
    told = {name: (unit, float(default)) for name, unit, default in rows}
    assert told == {each.name: (each.unit, each.default) for each in hinge.numeric_parameters}


def test_parameters_law_and_config_have_the_same_constants() -> None:
    hinge = fx.DoorHinge("hinge", joint())
    names = [each.name for each in hinge.numeric_parameters]
    assert names == list(asdict(fx.DoorHingeConfig())) == list(asdict(fx.laws.HingeLaw()))
    assert names == list(CONSTANTS)
    assert fx.laws.HingeLaw() == hinge.law(hinge.create_default_context())


# The law ------------------------------------------------------------------------------------------

angles = st.floats(-2.0, 2.0)
rates = st.floats(-2.0, 2.0)


@given(angles, rates)
def test_the_law_answers_what_the_block_does(angle: float, rate: float) -> None:
    hinge = fx.DoorHinge("hinge", joint(), **CONSTANTS)
    law, found = hinge.law(hinge.create_default_context()), computed(hinge, angle, rate)
    np.testing.assert_allclose(found.force, law.torque(angle, rate), rtol=1e-14)
    assert found.stored_energy == pytest.approx(law.stored_energy(angle), rel=1e-14)
    assert found.conservative_power == pytest.approx(law.conservative_power(angle, rate))
    assert found.non_conservative_power == pytest.approx(law.non_conservative_power(rate))
    assert found.non_conservative_power <= 0.0


@given(angles)
def test_the_spring_torque_is_the_slope_of_the_energy(angle: float) -> None:
    law = fx.laws.HingeLaw(**CONSTANTS)
    energy = law.stored_energy(scalars.symbols(scalars.Graph(), "q", ()))
    (slope,) = scalars.evaluate(scalars.gradient(energy, [("q", 0)]), {("q", 0): angle})
    assert -slope == pytest.approx(law.spring_torque(angle), rel=1e-9, abs=1e-12)
    assert law.stored_energy(0.0) == 0.0
