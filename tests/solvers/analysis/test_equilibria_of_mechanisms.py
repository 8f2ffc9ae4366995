"""Equilibria of mechanisms: with free directions, quaternions, friction, ledgers and locks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.diagrams.checks.errors import EvaluationError
from flexure.solvers.analysis.equations.equations import Equations
from tests.support.tiers import thinned

LINK = fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.2, 0.3))
MASS, GRAVITY = 40.0, 9.81
CORNERS = [np.array([x, y, -0.15]) for x in (-0.25, 0.25) for y in (-0.15, 0.15)]


def ball_chain(kind: Any, count: int, *, ledger: bool = False, damping: float = 0.1) -> fx.Plant:
    """Links of 0.5 m that hang on each other by ball joints."""
    builder = fx.PlantBuilder("chain")
    inner: fx.Body | fx.Frame = builder.world
    for k in range(count):
        link = builder.add_body(f"link{k}", LINK, com=(0.0, 0.0, -0.25))
        builder.add_joint(kind(f"ball{k}", inner, link, damping=damping))
        inner = builder.add_frame(f"end{k}", link, (np.eye(3), (0.0, 0.0, -0.5)))
    if ledger:
        builder.add_energy_ledger()
    return builder.build()


def on_mounts(kind: Any, *, ledger: bool = False) -> fx.Plant:
    """A block on four rubber mounts near its corners."""
    builder = fx.PlantBuilder("machine", gravity=(0.0, 0.0, -GRAVITY))
    block = builder.add_body("block", fx.SpatialInertia.solid_box(MASS, size=(0.6, 0.4, 0.3)))
    builder.add_joint(kind("float", builder.world, block))
    for k, corner in enumerate(CORNERS):
        foot = builder.add_frame(f"foot{k}", block, (np.eye(3), corner))
        floor = builder.add_frame(f"floor{k}", builder.world, (np.eye(3), corner))
        stiffness, torsion = np.array([4e4, 3e4, 9e4]), np.array([20.0, 20.0, 10.0])
        builder.add_force_element(
            fx.LinearBushing(
                f"mount{k}",
                floor,
                foot,
                torque_stiffness=torsion,
                torque_damping=2e-4 * torsion,
                force_stiffness=stiffness,
                force_damping=2e-4 * stiffness,
            )
        )
    if ledger:
        builder.add_energy_ledger()
    return builder.build()


def door(*, ledger: bool = False) -> fx.Plant:
    """A panel on a horizontal hinge with a spring, friction and a catch."""
    builder = fx.PlantBuilder("door")
    inertia = fx.SpatialInertia.solid_box(9.0, size=(0.02, 0.6, 0.7))
    panel = builder.add_body("panel", inertia, com=(0.0, 0.3, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(1, 0, 0)))
    builder.add_force_element(fx.DoorHinge("hinge", axis, spring_constant=3.0))
    if ledger:
        builder.add_energy_ledger()
    return builder.build()


def on_a_spring() -> fx.Plant:
    """A ball that hangs on a spring, which is fixed 0.1 m above its center."""
    builder = fx.PlantBuilder("yo", gravity=(0.0, 0.0, -GRAVITY))
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(2.0, radius=0.1))
    top = (0.0, 0.0, 0.1)
    builder.add_force_element(
        fx.LinearSpringDamper(
            *("spring", builder.world, (0.0, 0.0, 0.0), ball, top),
            free_length=1.0,
            stiffness=100.0,
            damping=1.0,
        )
    )
    return builder.build()


def cart() -> fx.Plant:
    """A cart with a motor on a rail, the rail on a compliant base, and a ledger."""
    builder = fx.PlantBuilder("cart")
    base = builder.add_body("base", fx.SpatialInertia.solid_box(5.0, size=(0.5, 0.5, 0.1)))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, base, (1, 0, 0)))
    wagon = builder.add_body("wagon", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1)))
    rail = builder.add_joint(fx.PrismaticJoint("rail", base, wagon, (1, 0, 0), damping=0.5))
    builder.add_force_element(fx.JointSpring("spring", slide, stiffness=200.0, damping=1.0))
    builder.add_actuator("motor", rail)
    builder.add_energy_ledger()
    return builder.build()


def disturbed(plant: fx.Plant, size: float, seed: int) -> fx.Context:
    """Return a context with all joints somewhat off their defaults, and in motion."""
    rng, context = np.random.default_rng(seed), plant.create_default_context()
    for joint in plant.joints:
        q = joint.positions.get(context)
        joint.positions.set(context, q + size * rng.normal(size=q.size))
        joint.velocities.set(context, 0.1 * rng.normal(size=joint.num_velocities))
    return context


def assert_at_rest(plant: fx.Plant, found: fx.results.Equilibrium) -> None:
    """Nothing moves or starts to, and quaternions have length 1."""
    rates = plant.eval_time_derivatives(found.context)
    np.testing.assert_allclose(rates, 0.0, atol=1e-8)
    np.testing.assert_array_equal(plant.get_velocities(found.context), 0.0)
    for joint in plant.joints:
        if "quaternion" in joint.type_name:
            length = np.linalg.norm(joint.positions.get(found.context)[:4])
            assert length == pytest.approx(1.0, abs=4e-16)


def slow_poles(plant: fx.Plant, context: fx.Context) -> int:
    """Count the poles at zero, which rounding moves by its square root where they are double."""
    return int(np.sum(np.abs(fx.linearize(plant, context).poles) < 1e-6))


# Free directions ----------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("kind", [fx.BallQuaternionJoint, fx.BallRpyJoint])
@pytest.mark.parametrize("ledger", [False, True])
@pytest.mark.parametrize("seed", thinned(range(3), fast=1))
def test_a_chain_of_ball_joints_hangs_down(kind: Any, ledger: bool, seed: int) -> None:
    plant = ball_chain(kind, 3, ledger=ledger)
    start = disturbed(plant, 0.1, seed)
    found = fx.equilibrium(plant, start)
    assert_at_rest(plant, found)
    for k in range(3):
        place = found.context.get(f"link{k}.position")
        np.testing.assert_allclose(place, [0.0, 0.0, -0.5 * k], atol=1e-8)
    assert np.linalg.norm(found.context.q - start.q) < 1.5
    assert found.iterations <= 20


@pytest.mark.parametrize("kind", [fx.BallQuaternionJoint, fx.BallRpyJoint])
def test_a_pendulum_without_damping_keeps_its_turn_about_the_vertical(kind: Any) -> None:
    plant = ball_chain(kind, 1, damping=0.0)
    ball: Any = plant.joints[0]
    context = plant.create_default_context()
    ball.orientation.set(context, rotation_from_rpy(np.array([0.2, 0.1, 0.8])))
    found = fx.equilibrium(plant, context)
    assert_at_rest(plant, found)
    R = ball.orientation.get(found.context)
    np.testing.assert_allclose(R[:, 2], [0.0, 0.0, 1.0], atol=1e-10)
    assert np.arctan2(R[1, 0], R[0, 0]) == pytest.approx(0.8, abs=0.05)


def test_what_hangs_at_rest_stays_as_it_is() -> None:
    plant = ball_chain(fx.BallQuaternionJoint, 2, ledger=True)
    context = plant.create_default_context()
    context.set("ball0.quaternion", [np.cos(0.4), 0.0, 0.0, np.sin(0.4)])
    context.set("ledger.x[gravity_conservative]", 3.0)
    found = fx.equilibrium(plant, context)
    assert found.iterations == 0
    np.testing.assert_array_equal(found.context.continuous_state, context.continuous_state)


def test_free_directions_are_poles_at_zero() -> None:
    """The turn of each link about the vertical is free; the length of a quaternion is no motion."""
    plant = ball_chain(fx.BallQuaternionJoint, 2, ledger=True)
    context = fx.equilibrium(plant, disturbed(plant, 0.1, 0)).context
    integrators = context.get("ledger.x").size
    assert slow_poles(plant, context) == 2 + integrators
    assert not fx.linearize(plant, context).is_stable


# Known positions ----------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("kind", [fx.QuaternionFloatingJoint, fx.RpyFloatingJoint])
@pytest.mark.parametrize("ledger", [False, True])
@pytest.mark.parametrize("size", thinned([0.05, 0.0, 0.2], fast=1))
def test_a_block_sinks_into_its_mounts(kind: Any, ledger: bool, size: float) -> None:
    plant = on_mounts(kind, ledger=ledger)
    found = fx.equilibrium(plant, disturbed(plant, size, 3))
    assert_at_rest(plant, found)
    expected = [*np.eye(3).ravel(), 0.0, 0.0, -MASS * GRAVITY / (4 * 9e4)]
    np.testing.assert_allclose(found.context.get("block.pose"), expected, atol=1e-10)


@pytest.mark.parametrize("ledger", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.8])
def test_a_door_hangs_where_its_spring_balances_gravity(ledger: bool, rate: float) -> None:
    plant = door(ledger=ledger)
    context = plant.create_default_context()
    context.set("axis.angle", -1.2)
    context.set("axis.rate", rate)
    found = fx.equilibrium(plant, context)
    assert_at_rest(plant, found)
    angle = found.context.get("axis.angle[0]")
    assert plant.calc_potential_energy(found.context) < plant.calc_potential_energy(context)
    torque = found.context.get("hinge.generalized_force[0]")
    assert torque == pytest.approx(9.0 * 9.81 * 0.3 * np.cos(angle), abs=1e-8)


@pytest.mark.parametrize(("x", "z"), [(0.0, -1.1), (0.2, -1.1), (0.5, -1.5)])
def test_a_mass_hangs_on_its_spring(x: float, z: float) -> None:
    plant = on_a_spring()
    context = plant.create_default_context()
    context.set("tree.x[ball_x]", x)
    context.set("tree.x[ball_z]", z)
    found = fx.equilibrium(plant, context)
    assert_at_rest(plant, found)
    place = found.context.get("ball.position")
    np.testing.assert_allclose(place, [0.0, 0.0, -1.1 - 2.0 * GRAVITY / 100.0], atol=1e-10)


def test_a_cart_on_a_compliant_base_stays_on_its_rail() -> None:
    plant = cart()
    context = plant.create_default_context()
    context.set("positions", [0.1, 0.3])
    context.set("velocities", [1.0, -2.0])
    found = fx.equilibrium(plant, context)
    assert_at_rest(plant, found)
    assert found.context.get("slide.translation[0]") == pytest.approx(0.0, abs=1e-12)
    assert found.context.get("rail.translation[0]") == pytest.approx(0.3, abs=1e-12)
    assert slow_poles(plant, found.context) == 1 + found.context.get("ledger.x").size


def test_a_motor_that_pushes_is_turned_off_when_it_is_free() -> None:
    plant = cart()
    context = plant.create_default_context()
    context.set("motor", 1.0)
    before = context.clone()
    with pytest.raises(EvaluationError, match=r"a rate of tree\.x\[rail_v\] of 0\.5 where it is 0"):
        fx.equilibrium(plant, context)
    assert context == before
    found = fx.equilibrium(plant, context, free="motor")
    assert_at_rest(plant, found)
    assert found.context.get("motor[0]") == pytest.approx(0.0, abs=1e-12)


# What is fixed ------------------------------------------------------------------------------------


def test_a_position_is_fixed_by_its_path_or_as_that_of_its_joint() -> None:
    builder = fx.PlantBuilder("arm")
    link = builder.add_body("link", LINK, com=(0.0, 0.0, -0.5))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, link, axis=(0, 1, 0)))
    builder.add_actuator("motor", axis)
    plant = builder.build()
    context = plant.create_default_context()
    context.set("axis.angle", 0.4)
    ways: list[Any] = [["axis.angle"], axis.angle, "tree.x[axis_q]", axis, "axis", ["axis", axis]]
    for fixed in ways:
        found = fx.equilibrium(plant, context, free=["motor[0]"], fixed=fixed)
        assert found.context.get("axis.angle[0]") == 0.4
        assert found.context.get("motor[0]") == pytest.approx(2.0 * 9.81 * 0.5 * np.sin(0.4))
    outer = fx.DiagramBuilder("outer")
    outer.add(plant)
    system = outer.build()
    start = system.create_default_context()
    start.set("arm.axis.angle", 0.4)
    found = fx.equilibrium(system, start, free=["arm.motor[0]"], fixed="arm.axis")
    assert found.context.get("arm.motor[0]") == pytest.approx(9.81 * np.sin(0.4))
    with pytest.raises(fx.errors.UnknownNameError, match=r"'arm\.axes' fixed.*mean 'arm\.axis'"):
        fx.equilibrium(system, fixed="arm.axes")


def test_a_fixed_quaternion_keeps_its_length() -> None:
    plant = ball_chain(fx.BallQuaternionJoint, 1)
    context = plant.create_default_context()
    context.set("ball0.quaternion", [0.0, 0.0, 0.0, 2.0])
    found = fx.equilibrium(plant, context, fixed=["ball0.quaternion"])
    assert found.context.get("ball0.quaternion").tolist() == [0.0, 0.0, 0.0, 2.0]
    normal = fx.equilibrium(plant, context)
    assert normal.context.get("ball0.quaternion").tolist() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("kind", [fx.BallQuaternionJoint, fx.BallRpyJoint])
def test_a_locked_joint_stays_where_it_is(kind: Any) -> None:
    plant = ball_chain(kind, 2)
    context = disturbed(plant, 0.2, 1)
    first: Any = plant.joints[0]
    first.lock(context)
    found = fx.equilibrium(plant, context)
    held = first.orientation.get(context)
    np.testing.assert_allclose(first.orientation.get(found.context), held, atol=1e-15)
    R = np.reshape(found.context.get("link1.pose")[:9], (3, 3))
    np.testing.assert_allclose(R[:, 2], [0.0, 0.0, 1.0], atol=1e-8)


# Refusals -----------------------------------------------------------------------------------------


def test_a_body_in_free_fall_is_refused_with_its_state() -> None:
    builder = fx.PlantBuilder("stone")
    builder.add_body("stone", LINK)
    plant = builder.build()
    with pytest.raises(EvaluationError, match=r"a rate of tree\.x\[stone_vz\] of -9\.81"):
        fx.equilibrium(plant)


def test_when_steps_run_out_more_are_recommended() -> None:
    plant = ball_chain(fx.BallRpyJoint, 2)
    with pytest.raises(EvaluationError, match=r"after 1 steps\. Raise max_iterations"):
        fx.equilibrium(plant, disturbed(plant, 0.3, 0), max_iterations=1)


def test_steps_into_gimbal_lock_are_shortened() -> None:
    plant = ball_chain(fx.BallRpyJoint, 1)
    context = plant.create_default_context()
    context.set("ball0.angles", [0.0, 1.5, 0.0])
    found = fx.equilibrium(plant, context)
    assert_at_rest(plant, found)


def test_an_equilibrium_that_is_not_near_the_start_is_told_with_the_body_and_its_turn() -> None:
    builder = fx.PlantBuilder("arm")
    inner: fx.Body | fx.Frame = builder.world
    for k in range(2):
        rod = fx.SpatialInertia.thin_rod(1.0, length=1.0, axis="x")
        body = builder.add_body(f"bar{k}", rod, com=(0.5, 0.0, 0.0))
        joint = builder.add_joint(fx.RevoluteJoint(f"j{k}", inner, body, axis=(0, 1, 0)))
        builder.add_force_element(fx.JointSpring(f"spring{k}", joint, stiffness=3.0))
        inner = builder.add_frame(f"end{k}", body, (1.0, 0.0, 0.0))
    plant = builder.build()
    context = plant.create_default_context()
    plant.joint("j0").positions.set(context, [-1.5])
    with pytest.warns(UserWarning, match=r"'arm' is not near the start: 'bar1' turned by 171°"):
        found = fx.equilibrium(plant, context).context
    assert np.max(np.abs(plant.calc_vdot(found))) < 1e-7


def test_a_leaf_that_bends_far_takes_few_slopes_of_its_equations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Damped steps crawl here; a release leads to the end of the load path soon."""
    builder = fx.PlantBuilder("leaf", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(0.01, size=(0.01, 0.02, 0.01)))
    joint = builder.add_joint(fx.PlanarJoint("end", builder.world, tip))
    joint.default_pose = np.eye(3), (0.2, 0.0, 0.0)
    shape: Any = {"length": 0.2, "width": 0.02, "thickness": 0.001, "segments": 4, "planar": True}
    steel = fx.Material(210e9, shear_modulus=81e9, density=7800.0)
    builder.add_force_element(fx.LeafSpring("beam", builder.world, tip, material=steel, **shape))
    builder.add_external_force("load", tip)
    plant = builder.build()
    load = [0.0, 0.0, 0.0, 0.0, 10.0, 0.0]
    context = plant.create_default_context()
    plant.input_port("load").fix(context, load)
    slopes, jacobian = [], Equations.jacobian

    def counted(equations: Equations, point: Any) -> Any:
        slopes.append(point)
        return jacobian(equations, point)

    monkeypatch.setattr(Equations, "jacobian", counted)
    found = fx.equilibrium(plant, context).context
    assert len(slopes) < 100  # as damped steps alone take
    expected = fx.load_path(plant, {"load": [np.zeros(6), load]}).context(-1)
    n = len(found.continuous_state) // 2
    assert found.continuous_state[:n] == pytest.approx(expected.continuous_state[:n], abs=1e-9)
