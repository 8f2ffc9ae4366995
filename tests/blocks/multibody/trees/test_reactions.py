"""What joints exert on bodies, against the laws of motion of each body alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.blocks.math import rotate_spatial, shift_spatial_force
from flexure.blocks.multibody.constraints import LoadedFriction
from flexure.diagrams.checks.errors import AlgebraicLoopError
from tests.support.mechanics.mechanisms import (
    BOX,
    MECHANISMS,
    arm,
    elements_on_bodies,
    motors,
    random_context,
    random_plant,
)
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each

STEP = 1e-5


def about_world(context: fx.Context, body: fx.Body, F_Bo_W: Any) -> Any:
    """Return a force on a body about its origin as one about the origin of the world."""
    return shift_spatial_force(F_Bo_W, -body.pose(context).p)


def reaction_about_world(context: fx.Context, joint: fx.multibody.Joint) -> Any:
    """Return what a joint exerts on its child about the origin of the world, expressed there."""
    R_WM, p_WM = joint.frame_on_child.pose(context)
    return shift_spatial_force(rotate_spatial(R_WM, joint.reaction(context)), -p_WM)


def momenta(plant: fx.Plant, context: fx.Context) -> Any:
    """Return the momentum of each body about the origin of the world."""
    found = []
    for body in plant.bodies[1:]:
        R, p = body.pose(context)
        V = body.spatial_velocity(context)
        m, G = body.mass.get(context), body.unit_inertia.get(context)
        xx, yy, zz, xy, xz, yz = G
        I_W = m * R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        c = R @ body.com.get(context)
        linear = m * (V[3:] + np.cross(V[:3], c))
        found.append([*(I_W @ V[:3] + np.cross(p + c, linear)), *linear])
    return np.array(found)


def check_newton_and_euler(plant: fx.Plant, context: fx.Context) -> None:
    """Compare the rate of the momentum of each body with all forces on it."""
    x, rates = context.continuous_state, plant.eval_time_derivatives(context)
    forces = {body: np.zeros(6) for body in plant.bodies}
    acting = fx.MultibodyForces(plant)
    acting.body_forces[:] = plant.tree.gravity_forces(context)
    for element in plant.force_elements:
        element.calc_and_add_force_contribution(context, acting)
    for body, F in zip(plant.bodies, acting.body_forces, strict=True):
        forces[body] += about_world(context, body, F)
    for force in plant.tree.force_inputs:
        if isinstance(force.target, fx.Body) and not force.is_internal:
            F = plant.tree.input_port(force.name).eval(context)
            forces[force.target] += about_world(context, force.target, F)
    for joint in plant.joints:
        F = reaction_about_world(context, joint)
        forces[joint.child_body] += F
        forces[joint.parent_body] -= F
    sides = []
    for side in (-STEP, STEP):
        moved = context.clone()
        moved.continuous_state = x + side * rates
        sides.append(momenta(plant, moved))
    slopes = (sides[1] - sides[0]) / (2.0 * STEP)
    expected = np.array([forces[body] for body in plant.bodies[1:]])
    scale = 1.0 + np.max(np.abs(rates), initial=0.0) ** 2 + np.max(np.abs(expected))  # welds alone
    np.testing.assert_allclose(slopes, expected, atol=1e-6 * scale)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 6))
def test_all_forces_on_a_body_change_its_momentum(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    plant = random_plant(rng, count)
    check_newton_and_euler(plant, random_context(plant, rng))  # some joints are locked in it


@pytest.mark.parametrize("make", [motors, elements_on_bodies, MECHANISMS["elements on joints"]])
def test_forces_of_motors_elements_and_from_outside_are_included(make: Any) -> None:
    rng, plant = np.random.default_rng(4), make()
    for _ in range(3):
        check_newton_and_euler(plant, random_context(plant, rng))


@pytest.mark.full
@for_each("name", MECHANISMS)
def test_reactions_do_only_the_work_of_the_coordinates(name: str) -> None:
    rng, plant = np.random.default_rng(7), MECHANISMS[name]()
    for _ in range(3):
        context = random_context(plant, rng)
        tree, v = plant.tree, plant.get_velocities(context)
        along = tree.joint_forces(context.find_leaf(tree))
        for friction in tree.frictions:
            if isinstance(friction, LoadedFriction):
                along[tree.velocities_of(friction.joint)] += friction.slip_force(context)
        along = along - tree.constants.reflected_inertia(context) * tree.accelerations(context)
        values = tree.multipliers(context).values
        for condition, multipliers in zip(tree.conditions.eval(context), values, strict=True):
            for efforts, multiplier in zip(condition.efforts, multipliers, strict=True):
                for mobilizer in tree.topology.mobilizers:
                    effort = efforts.get(mobilizer.outboard, 0.0)
                    along[mobilizer.v] += multiplier * effort
        for joint in plant.joints:
            part, M = tree.velocities_of(joint), joint.frame_on_child
            V_FM = M.spatial_velocity(context, joint.frame_on_parent, M)
            power = tree.reaction_of(joint)(context) @ V_FM  # at positions that open loops
            assert power == pytest.approx(along[part] @ v[part], rel=1e-9, abs=1e-9)


def test_a_pendulum_pulls_at_its_pivot_as_in_the_textbook() -> None:
    builder = fx.PlantBuilder("pendulum", gravity=(0.0, 0.0, -10.0))
    bob = builder.add_body("bob", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -0.5))
    pivot = builder.add_joint(fx.RevoluteJoint("pivot", builder.world, bob, axis=(0, 1, 0)))
    plant = builder.build()
    context = plant.create_default_context()
    pivot.angular_rate.set(context, 3.0)
    hanging = 2.0 * 10.0 + 2.0 * 0.5 * 3.0**2  # the weight, and what turns the bob
    np.testing.assert_allclose(pivot.reaction(context), [0, 0, 0, 0, 0, hanging], atol=1e-12)
    pivot.lock(context)
    pivot.angle.set(context, np.pi / 2)
    np.testing.assert_allclose(pivot.reaction(context), [0, 10, 0, -20, 0, 0], atol=1e-12)


def reading_arm() -> fx.Plant:
    builder, link, axis = arm()
    builder.add_joint(fx.WeldJoint("grip", builder.add_body("tip", BOX), link))
    builder.add_actuator("motor", axis)
    builder.add_external_force("push", link)
    return builder.build()


def test_reactions_need_all_forces_at_once_and_positions_none() -> None:
    pairs = reading_arm().feedthrough
    for output in ("axis.reaction", "grip.reaction"):
        for force in ("motor", "push", "generalized_force"):
            assert (force, output) in pairs
    assert not [pair for pair in pairs if pair[1] in ("axis.angle", "axis.rate", "link.pose")]


def controlled(measured: str) -> fx.DiagramBuilder:
    """Start a loop around an arm, with its reaction on display."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(reading_arm(), fx.Gain("gain", -1.0), fx.Demultiplexer("parts", [1] * 6))
    builder.connect("arm.axis.reaction", "parts.u")
    builder.connect(measured, "gain.u")
    builder.connect("gain.y", "arm.motor")
    return builder


@needs_llvmlite
def test_a_loop_of_ordinary_use_stays_free() -> None:
    builder = controlled("arm.axis.angle")
    builder.export_output("arm.grip.reaction", "load")
    servo = builder.build()
    context = servo.create_default_context()
    context.set("arm.axis.angle", 0.3)
    result = fx.simulate(servo, 0.2, context=context)
    assert result["load"].shape == (len(result.time), 6)
    assert result["arm.axis.reaction"].shape == result["load"].shape


def test_a_reaction_that_drives_its_own_motor_is_a_loop() -> None:
    with pytest.raises(AlgebraicLoopError, match=r"reaction"):
        controlled("parts.y1").build()
