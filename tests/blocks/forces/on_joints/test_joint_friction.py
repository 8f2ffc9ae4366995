"""Friction in joints, one physical situation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

import flexure as fx
from flexure.blocks.forces.on_joints.joint_friction import FrictionLaw, JointFriction
from flexure.diagrams import scalars
from tests.support.mechanics.joint_forces import computed, joint

LAW = FrictionLaw(
    coulomb_friction=3.0,
    static_friction=5.0,
    stribeck_velocity=0.1,
    viscous_friction=0.5,
    transition_velocity=1e-4,
)
not_negative = st.floats(0.0, 100.0)
positive = st.floats(1e-4, 10.0)


def test_a_fast_motion_meets_coulomb_and_viscous_friction() -> None:
    for v in [4.0, -4.0]:
        assert LAW.force(v) == pytest.approx(-np.sign(v) * (3.0 + 2.0), rel=1e-15)


def test_a_slow_motion_meets_static_friction() -> None:
    assert LAW.force(1e-3) == pytest.approx(-5.0, rel=1e-3)


def test_at_the_stribeck_velocity_the_excess_has_decayed_to_its_e_th_part() -> None:
    expected = 3.0 + 2.0 / np.e + 0.5 * 0.1
    assert LAW.force(-0.1) == pytest.approx(expected, rel=1e-14)


def test_at_the_transition_velocity_dry_friction_has_three_quarters_of_its_size() -> None:
    law = FrictionLaw(3.0, 3.0, 0.1, 0.0, 0.01)
    assert law.force(0.01) == pytest.approx(-3.0 * np.tanh(1.0), rel=1e-15)


def test_without_motion_there_is_no_friction() -> None:
    assert LAW.force(0.0) == 0.0


def test_the_peak_comes_as_close_to_static_friction_as_the_docstring_says() -> None:
    law = FrictionLaw(1.0, 2.0, 1.0, 0.0, 0.1)
    peak = -minimize_scalar(law.force, bounds=(0.01, 1.0), method="bounded").fun
    assert peak - 1.0 == pytest.approx(0.91, abs=0.005)


@given(
    st.builds(FrictionLaw, not_negative, not_negative, positive, not_negative, positive),
    st.floats(-1e3, 1e3),
)
def test_friction_never_gives_energy_and_is_odd(law: FrictionLaw, v: float) -> None:
    assert law.power(v) <= 0.0
    assert law.power(v) == law.force(v) * v
    assert law.force(-v) == -law.force(v)


@given(st.floats(-2.0, 2.0))
def test_symbols_give_the_same_numbers_as_floats(v: float) -> None:
    graph = scalars.Graph()
    constants = [3.0, 5.0, 0.1, 0.5, 0.01]
    known = {("k", i): value for i, value in enumerate(constants)} | {("v", 0): v}
    law = FrictionLaw(*scalars.symbols(graph, "k", 5))
    found = scalars.evaluate(law.force(scalars.symbols(graph, "v", ())), known)
    assert found == FrictionLaw(*constants).force(v)


# The time constant --------------------------------------------------------------------------------


def test_a_slow_motion_dies_away_with_the_time_constant() -> None:
    inertia = 2.0
    tau = float(LAW.time_constant(inertia))
    assert tau == pytest.approx(2.0 / (5.0 / 1e-4 + 0.5), rel=1e-15)
    slow = 1e-4 * LAW.transition_velocity
    run = solve_ivp(lambda t, v: LAW.force(v) / inertia, (0.0, tau), [slow], rtol=1e-10, atol=1e-20)
    assert run.y[0, -1] == pytest.approx(slow / np.e, rel=1e-7)


def test_greater_inertias_take_longer_and_without_friction_nothing_dies_away() -> None:
    np.testing.assert_allclose(LAW.time_constant([1.0, 3.0]), [2e-5, 6e-5], rtol=1e-4)
    assert FrictionLaw(0.0, 0.0, 0.1, 0.0, 0.01).time_constant(1.0) == np.inf


# The block ----------------------------------------------------------------------------------------


def friction(kind: str = "revolute", **options: Any) -> JointFriction:
    dry = {"coulomb_friction": 3.0, "transition_velocity": 1e-4}
    return JointFriction("friction", joint(kind), **{**dry, **options})


def test_the_block_loses_energy_and_stores_none() -> None:
    found = computed(friction(viscous_friction=0.5), 0.7, -2.0)
    assert found == (4.0, 0.0, 0.0, -8.0)


def test_the_block_needs_no_position() -> None:
    reading = {"generalized_force", "non_conservative_power"}
    assert friction().feedthrough == {("velocity", name) for name in reading}


def test_what_is_not_given_makes_plain_coulomb_friction() -> None:
    made = friction()
    assert made.law(made.create_default_context()) == FrictionLaw(3.0, 3.0, 1e-3, 0.0, 1e-4)


def test_units_are_those_of_the_velocities() -> None:
    for kind, unit in [("revolute", "N m"), ("prismatic", "N"), ("planar", "N, N, N m")]:
        assert friction(kind).static_friction.unit == unit


@pytest.mark.parametrize("kind", ["planar", "ball_rpy", "ball_quaternion"])
def test_every_velocity_has_friction_of_its_own(kind: str) -> None:
    made = friction(kind, coulomb_friction=[1.0, 2.0, 0.0], viscous_friction=[0.0, 0.0, 0.5])
    found = computed(made, made.joint.default_positions, [1.0, -2.0, 4.0])
    np.testing.assert_allclose(found.force, [-1.0, 2.0, -2.0], rtol=1e-15)
    assert found.non_conservative_power == pytest.approx(-1.0 - 4.0 - 8.0, rel=1e-15)


def test_constants_can_be_changed_in_a_context() -> None:
    found = computed(friction(), 0.0, 1.0, coulomb_friction=7.0, viscous_friction=1.0)
    np.testing.assert_allclose(found.force, [-8.0], rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coulomb_friction", -1.0),
        ("static_friction", -1.0),
        ("viscous_friction", -1.0),
        ("transition_velocity", 0.0),
        ("stribeck_velocity", 0.0),
        ("viscous_friction", np.inf),
    ],
)
def test_impossible_constants_are_refused(name: str, value: Any) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"friction\.{name}"):
        friction(**{name: value})
    made = friction()
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"friction\.{name}"):
        getattr(made, name).set(made.create_default_context(), value)


def test_a_joint_that_does_not_move_is_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match="a joint that moves; found a weld joint"):
        friction("weld")
