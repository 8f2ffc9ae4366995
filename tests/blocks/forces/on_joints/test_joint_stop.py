"""Compliant stops on joints, one physical situation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import flexure as fx
from flexure.blocks.forces.on_joints.joint_stop import JointStop, StopLaw
from tests.support.mechanics.joint_forces import WITHOUT_RATES, computed, joint
from tests.support.tiers import for_each


def stop(**options: Any) -> JointStop:
    """Make stops at -1 and 1 rad."""
    limits = {"lower": -1.0, "upper": 1.0}
    return JointStop("stop", joint(), **{"stiffness": 800.0, "damping": 0.5, **limits, **options})


def test_within_the_limits_nothing_acts() -> None:
    for rate in [0.0, 7.0, -7.0]:
        for angle in [-1.0, -0.3, 1.0]:
            assert computed(stop(), angle, rate) == (0.0, 0.0, 0.0, 0.0)


def test_a_stop_at_rest_pushes_back_and_stores_energy() -> None:
    for side in [1.0, -1.0]:
        assert computed(stop(), 1.25 * side) == (-200.0 * side, 25.0, 0.0, 0.0)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_damping_acts_within_the_stop_on_the_way_in_and_out(side: float) -> None:
    deeper, back = computed(stop(), 1.25 * side, side), computed(stop(), 1.25 * side, -side)
    np.testing.assert_allclose(deeper.force, [-300.0 * side], rtol=1e-15)
    np.testing.assert_allclose(back.force, [-100.0 * side], rtol=1e-15)
    assert (deeper.conservative_power, back.conservative_power) == (-200.0, 200.0)
    assert deeper.non_conservative_power == back.non_conservative_power == -100.0


@given(st.floats(1.0, 3.0), st.floats(-100.0, 100.0), st.sampled_from([1.0, -1.0]))
def test_a_stop_never_pulls(depth: float, rate: float, side: float) -> None:
    found = computed(stop(), side * depth, rate)
    assert side * found.force[0] <= 0.0
    assert found.non_conservative_power <= 0.0


def test_what_leaves_quickly_is_not_held() -> None:
    assert computed(stop(), 1.25, -2.0).force == 0.0
    assert computed(stop(), 1.25, -50.0).force == 0.0


def test_the_force_sets_in_without_a_jump() -> None:
    assert computed(stop(), np.nextafter(1.0, 2.0), 50.0).force == pytest.approx(0.0, abs=1e-11)


# Limits -------------------------------------------------------------------------------------------


def test_the_limits_are_those_of_the_joint() -> None:
    axis = joint(position_limits=(-0.5, 2.0))
    made = JointStop("stop", axis, stiffness=100.0, damping=0.0)
    assert (made.lower.default, made.upper.default) == (-0.5, 2.0)
    assert computed(made, -0.75).force == 25.0
    assert computed(made, 2.5).force == -50.0


def test_given_limits_replace_those_of_the_joint() -> None:
    axis = joint(position_limits=(-0.5, 2.0))
    made = JointStop("stop", axis, stiffness=100.0, damping=0.0, upper=1.0)
    assert (made.lower.default, made.upper.default) == (-0.5, 1.0)


def test_an_infinite_limit_has_no_stop() -> None:
    made = stop(lower=-np.inf)
    assert computed(made, -1e6, 3.0) == (0.0, 0.0, 0.0, 0.0)
    assert computed(made, 1.25).force == -200.0


def test_every_coordinate_has_stops_of_its_own() -> None:
    axis = joint("planar", position_limits=([-1.0, -2.0, -np.inf], [1.0, 2.0, 3.0]))
    made = JointStop("stop", axis, stiffness=[10.0, 20.0, 30.0], damping=0.0)
    found = computed(made, [-1.5, 1.0, 3.1])
    np.testing.assert_allclose(found.force, [5.0, 0.0, -3.0], rtol=1e-13)
    assert found.stored_energy == pytest.approx(1.25 + 0.15, rel=1e-13)
    assert made.damping.unit == "s/m, s/m, s/rad"


def test_constants_can_be_changed_in_a_context() -> None:
    made = stop()
    context = made.create_default_context()
    made.upper.set(context, 0.5)
    made.stiffness.set(context, 10.0)
    assert made.law(context) == StopLaw(-1.0, 0.5, 10.0, 0.5)
    assert computed(made, 1.25, upper=1.0, stiffness=4.0).force == -1.0


# Refusals -----------------------------------------------------------------------------------------


def test_a_joint_without_limits_needs_limits() -> None:
    with pytest.raises(
        fx.errors.DeclarationError,
        match=r"joint 'axis'.*a limit that is finite.*lower=\[?-inf.*Pass lower and upper",
    ):
        JointStop("stop", joint(), stiffness=100.0, damping=0.0)


def test_limits_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match=r"lower <= upper.*found lower=2, upper=1"):
        stop(lower=2.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("stiffness", -1.0), ("damping", -0.1), ("lower", np.nan), ("stiffness", np.inf)],
)
def test_impossible_constants_are_refused(name: str, value: float) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"stop\.{name}"):
        stop(**{name: value})
    made = stop()
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"stop\.{name}"):
        getattr(made, name).set(made.create_default_context(), value)


@for_each("kind", WITHOUT_RATES)
def test_joints_whose_velocities_are_no_rates_are_refused(kind: str) -> None:
    with pytest.raises(fx.errors.DeclarationError, match=f"found a {kind} joint"):
        JointStop("stop", joint(kind), stiffness=1.0, damping=0.0, lower=-1.0, upper=1.0)
