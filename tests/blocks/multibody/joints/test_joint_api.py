"""Joints in a plant: what is read from contexts and written to them, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import (
    RigidTransform,
    relative_pose,
    relative_velocity,
    rotation_from_quaternion,
    rotation_from_rpy,
)
from tests.blocks.math.samples import EPS
from tests.blocks.multibody.joints.samples import KINDS, POSE, every_kind, random_state
from tests.support.tiers import for_each

ContextError, DeclarationError = fx.errors.ContextError, fx.errors.DeclarationError
ValueRefusedError = fx.errors.ValueRefusedError

MOVING = [name for name in KINDS if "weld" not in name]
ONE_DOF = [name for name in KINDS if KINDS[name].velocities in ("w", "v")]
every_moving_kind = for_each("name", MOVING)


class Leg(NamedTuple):
    """A plant in which the joint 'hip' is the second of three."""

    plant: fx.Plant
    hip: Any
    knee: fx.RevoluteJoint
    context: fx.Context


def leg(name: str, *, prepare: Callable[[Any], None] = lambda hip: None, **options: Any) -> Leg:
    """Build pelvis, thigh and shank on the world, and set every joint in motion."""
    builder = fx.PlantBuilder("leg")
    box = fx.SpatialInertia.solid_box(mass=2.0, size=(0.3, 0.2, 0.5))
    pelvis, thigh, shank = (
        builder.add_body(body, box, com=(0.1, 0.05, -0.3)) for body in ("pelvis", "thigh", "shank")
    )
    waist = builder.add_joint(fx.RevoluteJoint("waist", builder.world, pelvis, axis=(1, 2, 2)))
    hip = builder.add_joint(KINDS[name].make(pelvis, thigh, **options))
    knee = builder.add_joint(fx.RevoluteJoint("knee", thigh, shank, axis=(0, 1, 0)))
    prepare(hip)
    plant = builder.build()
    context = plant.create_default_context()
    for joint in (waist, hip, knee):
        q, v = random_state(joint, 7)
        joint.positions.set(context, q)
        joint.velocities.set(context, v)
    return Leg(plant, hip, knee, context)


def values(plant: fx.Plant, context: fx.Context) -> Any:
    return plant.tree.state.get(context).copy()


# Coordinates --------------------------------------------------------------------------------------


@every_kind
def test_the_coordinates_of_a_joint_are_in_the_middle_of_those_of_the_plant(name: str) -> None:
    plant, hip, knee, context = leg(name)
    q, v = random_state(hip, 7)
    assert (hip.position_start, hip.velocity_start) == (1, 1)
    assert (knee.position_start, knee.velocity_start) == (1 + q.size, 1 + v.size)
    np.testing.assert_array_equal(hip.positions.get(context), q)
    np.testing.assert_array_equal(hip.velocities(context), v)
    np.testing.assert_array_equal(plant.get_positions(context)[1:-1], q)
    np.testing.assert_array_equal(plant.get_velocities(context)[1:-1], v)
    assert (hip.index, hip.parent_plant) == (1, plant)


@every_moving_kind
def test_setting_a_joint_leaves_the_others_alone(name: str) -> None:
    plant, hip, _, context = leg(name)
    before = values(plant, context)
    q, v = random_state(hip, 8)
    hip.positions.set(context, q)
    hip.velocities.set(context, v)
    changed = np.flatnonzero(values(plant, context) != before)
    first = 1 + plant.num_positions
    np.testing.assert_array_equal(changed, [*range(1, 1 + q.size), *range(first, first + v.size)])


@every_moving_kind
def test_values_are_copied_and_cannot_be_written_to(name: str) -> None:
    _, hip, _, context = leg(name)
    mine, _ = random_state(hip, 8)
    hip.positions.set(context, mine)
    mine += 1.0
    np.testing.assert_array_equal(hip.positions.get(context), random_state(hip, 8)[0])
    for handle in (hip.positions, hip.velocities):
        with pytest.raises(ValueError, match="read-only"):
            handle.get(context)[0] = 1.0


HANDLES = [
    ("revolute", "angle", "angular_rate", 0.3),
    ("prismatic", "translation", "translation_rate", 0.3),
    ("screw", "rotation", "angular_velocity", 0.3),
    ("screw", "translation", "translational_velocity", 0.3),
    ("universal", "angles", "angular_rates", [0.1, 0.2]),
    ("planar", "translation", "translational_velocity", [0.1, 0.2]),
    ("planar", "rotation", "angular_velocity", 0.3),
    ("ball rpy", "angles", "angular_velocity", [0.1, 0.2, 9.0]),
    ("ball quaternion", "quaternion", "angular_velocity", [0.1, 0.2, 0.3, 0.4]),
    ("rpy floating", "angles", "angular_velocity", [0.1, 0.2, 9.0]),
    ("rpy floating", "translation", "translational_velocity", [0.1, 0.2, 0.3]),
    ("quaternion floating", "quaternion", "angular_velocity", [0.1, 0.2, 0.3, 0.4]),
    ("quaternion floating", "translation", "translational_velocity", [0.1, 0.2, 0.3]),
]
every_handle = for_each(("name", "position", "velocity", "value"), HANDLES)


@every_handle
def test_parts_of_positions_and_velocities_have_names(
    name: str, position: str, velocity: str, value: Any
) -> None:
    _, hip, _, context = leg(name)
    rate = 2.0 * np.array(value) if np.ndim(value) == 0 else 2.0 * np.array(value)[:3]
    getattr(hip, position).set(context, value)
    getattr(hip, velocity).set(context, rate)
    np.testing.assert_allclose(getattr(hip, position).get(context), value, rtol=EPS)
    np.testing.assert_allclose(getattr(hip, velocity)(context), rate, rtol=EPS)
    assert np.shape(getattr(hip, position).get(context)) == np.shape(value)


@for_each("name", ["revolute", "prismatic", "screw", "universal", "ball rpy", "ball quaternion"])
def test_outputs_of_a_joint_have_handles_of_the_same_name(name: str) -> None:
    plant, hip, _, context = leg(name)
    q, v = random_state(hip, 3)
    hip.positions.set(context, q)
    hip.velocities.set(context, v)
    for port, whole in zip(hip.PORT_NAMES, (hip.positions, hip.velocities), strict=True):
        handle = getattr(hip, port)
        found = plant.output_port(f"hip.{port}").eval(context)
        np.testing.assert_array_equal(np.atleast_1d(handle.get(context)), found)
        handle.set(context, 0.5 * handle.get(context))
        np.testing.assert_allclose(whole.get(context), 0.5 * found, rtol=EPS)
        assert repr(handle) == f"<JointValue 'hip.{port}'>"


@every_handle
def test_parts_are_those_of_the_pose_and_the_motion(
    name: str, position: str, velocity: str, value: Any
) -> None:
    _, hip, _, context = leg(name)
    R, p = hip.pose.get(context)
    w, v = np.split(hip.spatial_velocity.get(context), 2)
    place, motion = getattr(hip, position).get(context), getattr(hip, velocity).get(context)
    axis = np.array([2.0, -3.0, 6.0]) / 7.0
    if position == "translation":
        expected = p[: np.size(place)] if np.ndim(place) else axis @ p
        np.testing.assert_allclose(place, expected, rtol=1e-14)
    elif position == "quaternion":
        np.testing.assert_allclose(R, rotation_from_quaternion(place), atol=1e-15)
    else:
        np.testing.assert_allclose(R, hip.calc_pose(hip.positions.get(context)).R)
    if "translation" in velocity:
        expected = v[: np.size(motion)] if np.ndim(motion) else axis @ v
        np.testing.assert_allclose(motion, expected, rtol=1e-14)
    elif velocity == "angular_velocity":
        expected = w if np.ndim(motion) else w[2] if name == "planar" else axis @ w
        np.testing.assert_allclose(motion, expected, rtol=1e-14)


@every_handle
@for_each("wrong", [np.nan, [1.0] * 5, None, "up"])
def test_wrong_values_are_refused(
    name: str, position: str, velocity: str, value: Any, wrong: Any
) -> None:
    plant, hip, _, context = leg(name)
    before = values(plant, context)
    for handle in (
        getattr(hip, position),
        getattr(hip, velocity),
        hip.positions,
        hip.velocities,
        hip.pose,
        hip.pose_pair,
        hip.spatial_velocity,
    ):
        with pytest.raises(ValueRefusedError, match="'hip'"):
            handle.set(context, wrong)
    np.testing.assert_array_equal(values(plant, context), before)


@for_each("name", ["ball quaternion", "quaternion floating"])
def test_a_quaternion_of_zeros_is_refused(name: str) -> None:
    _, hip, _, context = leg(name)
    before = hip.positions.get(context)
    for handle, zeros in [(hip.quaternion, np.zeros(4)), (hip.positions, 0.0 * before)]:
        with pytest.raises(ValueRefusedError, match=r"positions of joint 'hip'.*a quaternion"):
            handle.set(context, zeros)
    np.testing.assert_array_equal(hip.positions.get(context), before)


@for_each("name", ["ball quaternion", "quaternion floating"])
@for_each("component", [0.0, 1e-17, 1e17])
def test_a_quaternion_without_a_direction_is_refused_in_the_state_as_well(
    name: str, component: float
) -> None:
    plant, hip, _, context = leg(name)
    before = context.clone()
    x = values(plant, context)
    x[plant.tree.positions_of(hip)][:4] = component
    refused = pytest.raises(ValueRefusedError, match=r"joint 'hip' with a quaternion .*2\.2e-16")
    with refused:
        context.set("tree.x", x)
    with refused:
        context.continuous_state = x
    with refused:
        plant.set_positions(context, x[: plant.num_positions])
    with refused:
        fx.sweep(plant, {"tree.x": [before.continuous_state, x]}, 0.1)
    assert context == before


@for_each("length", [1e-10, 0.5, 1e10])
def test_a_quaternion_of_another_length_is_kept_as_it_is(length: float) -> None:
    _, hip, _, context = leg("ball quaternion")
    context.set("hip.quaternion", [length, 0.0, 0.0, 0.0])
    assert hip.quaternion.get(context).tolist() == [length, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(hip.orientation.get(context), np.eye(3))


def test_positions_and_velocities_are_set_by_the_paths_of_their_ports() -> None:
    plant, hip, knee, context = leg("ball rpy")
    context.set("knee.angle", 0.3)
    context.set("knee.rate", 0.4)
    context.set("hip.angles", [0.1, 0.2, 0.5])
    context.set("hip.angular_velocity", [1.0, 2.0, 3.0])
    context.set("hip.angular_velocity[wy]", 7.0)
    assert (knee.angle.get(context), context.get("tree.x[knee_q]")) == (0.3, 0.3)
    assert (*knee.velocities.get(context), context.get("knee.rate[0]")) == (0.4, 0.4)
    assert hip.angles.get(context).tolist() == [0.1, 0.2, 0.5]
    assert hip.angular_velocity.get(context).tolist() == [1.0, 7.0, 3.0]
    context.set("positions", np.arange(5.0))
    context.set("velocities", np.arange(5.0, 10.0))
    np.testing.assert_array_equal(values(plant, context), np.arange(10.0))


def test_without_pitch_a_screw_cannot_be_set_by_its_advance() -> None:
    _, hip, _, context = leg("screw without pitch")
    with pytest.raises(ValueRefusedError, match="'translation' of joint 'hip'"):
        hip.translation.set(context, 0.1)
    assert (hip.translation.get(context), hip.translational_velocity.get(context)) == (0.0, 0.0)


@for_each("name", ONE_DOF)
def test_the_one_position_and_velocity(name: str) -> None:
    _, hip, _, context = leg(name)
    assert hip.get_one_position(context) == hip.positions.get(context)[0]
    assert hip.get_one_velocity(context) == hip.velocities.get(context)[0]


@for_each("name", sorted({*KINDS} - {*ONE_DOF}))
def test_there_is_no_one_position_of_many_or_none(name: str) -> None:
    _, hip, _, context = leg(name)
    count = hip.num_positions
    with pytest.raises(ContextError, match=rf"one position of joint 'hip'.*which has {count}"):
        hip.get_one_position(context)
    with pytest.raises(ContextError, match="one velocity of joint 'hip'"):
        hip.get_one_velocity(context)


# Poses and motions --------------------------------------------------------------------------------


@every_kind
def test_pose_and_motion_are_those_of_the_two_bodies(name: str) -> None:
    plant, hip, _, context = leg(name)
    F, M = plant.body("pelvis"), plant.body("thigh")
    X_FM = relative_pose(F.pose(context), M.pose(context))
    np.testing.assert_allclose(hip.pose.get(context).R, X_FM.R, atol=1e-14)
    np.testing.assert_allclose(hip.pose.get(context).p, X_FM.p, atol=1e-14)
    V_FM = relative_velocity(
        F.pose(context), F.spatial_velocity(context), M.pose(context), M.spatial_velocity(context)
    )
    np.testing.assert_allclose(hip.spatial_velocity.get(context), V_FM, atol=1e-14)


@every_kind
def test_the_pose_that_is_set_is_matched_as_well_as_can_be(name: str) -> None:
    _, hip, _, context = leg(name)
    hip.pose.set(context, POSE)
    X_FM = hip.pose.get(context)
    nearest = hip.calc_pose(hip.nearest_positions(RigidTransform(*POSE)))
    np.testing.assert_array_equal(X_FM.R, nearest.R)
    np.testing.assert_array_equal(X_FM.p, nearest.p)
    if "ball" in name or "floating" in name:
        np.testing.assert_allclose(X_FM.R, POSE[0], atol=1e-15)
    if "floating" in name:
        np.testing.assert_array_equal(X_FM.p, POSE[1])


@every_kind
def test_the_motion_that_is_set_is_matched_as_well_as_can_be(name: str) -> None:
    _, hip, _, context = leg(name)
    V = np.arange(1.0, 7.0)
    hip.spatial_velocity.set(context, V)
    found = hip.spatial_velocity.get(context)
    expected = hip.nearest_velocities(hip.positions.get(context), V)
    np.testing.assert_array_equal(hip.velocities.get(context), expected)
    if "floating" in name:
        np.testing.assert_array_equal(found, V)
    if "ball" in name:
        np.testing.assert_array_equal(found, [1.0, 2.0, 3.0, 0.0, 0.0, 0.0])


@for_each("name", ["ball rpy", "rpy floating", "quaternion floating"])
def test_a_pose_can_be_given_by_a_quaternion(name: str) -> None:
    _, hip, _, context = leg(name)
    hip.pose_pair.set(context, ([-1.2, 0.0, 1.6, 0.0], [1.0, 2.0, 3.0]))
    quaternion, position = hip.pose_pair.get(context)
    np.testing.assert_allclose(quaternion, [0.6, 0.0, -0.8, 0.0], atol=1e-15)
    np.testing.assert_array_equal(position, np.zeros(3) if name == "ball rpy" else [1, 2, 3])


@for_each("name", ["ball rpy", "ball quaternion", "rpy floating"])
def test_an_orientation_can_be_set_alone(name: str) -> None:
    _, hip, _, context = leg(name)
    before = hip.pose.get(context).p
    hip.orientation.set(context, rotation_from_rpy([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(
        hip.orientation.get(context), rotation_from_rpy([0.1, 0.2, 0.3]), atol=1e-15
    )
    np.testing.assert_array_equal(hip.pose.get(context).p, before)
    with pytest.raises(ValueRefusedError, match=r"'orientation' of joint 'hip'.*determinant 1"):
        hip.orientation.set(context, -np.eye(3))


@for_each("name", ["ball rpy", "rpy floating"])
def test_gimbal_lock_ends_the_equations_with_the_name_of_the_joint(name: str) -> None:
    plant, hip, _, context = leg(name)
    hip.angles.set(context, [0.0, np.pi / 2, 0.0])
    assert np.isfinite(plant.calc_vdot(context)).all()
    with pytest.raises(fx.errors.EvaluationError, match=r"joint 'hip'.*pitch of 90 degrees"):
        plant.tree.eval_time_derivatives(context)


# Damping ------------------------------------------------------------------------------------------


@every_moving_kind
def test_damping_is_a_parameter_of_the_context(name: str) -> None:
    plant, hip, _, context = leg(name)
    d = np.arange(1.0, 1.0 + hip.num_velocities)
    hip.damping.set(context, d)
    np.testing.assert_array_equal(hip.damping.get(context), d)
    assert hip.damping.path.endswith("tree.hip_damping")
    np.testing.assert_array_equal(hip.default_damping_vector, np.zeros(d.size))
    forces = fx.MultibodyForces(plant)
    forces.generalized_forces[:] = 10.0
    hip.add_in_damping(context, forces)
    expected = 10.0 - d * hip.velocities.get(context)
    np.testing.assert_allclose(forces.generalized_forces, [10.0, *expected, 10.0])


@every_moving_kind
@for_each("wrong", [-1.0, np.nan, [1.0] * 7, "much"])
def test_wrong_damping_is_refused(name: str, wrong: Any) -> None:
    _, hip, _, context = leg(name)
    before = hip.damping.get(context)
    value = np.full(hip.num_velocities, wrong) if isinstance(wrong, float) else wrong
    with pytest.raises(ValueRefusedError, match="hip_damping"):
        hip.damping.set(context, value)
    np.testing.assert_array_equal(hip.damping.get(context), before)


def test_a_weld_has_no_damping() -> None:
    plant, hip, _, context = leg("weld")
    forces = fx.MultibodyForces(plant)
    hip.add_in_damping(context, forces)
    np.testing.assert_array_equal(forces.generalized_forces, [0.0, 0.0])
    with pytest.raises(fx.errors.UnknownNameError, match="hip_damping"):
        _ = hip.damping


# Locks --------------------------------------------------------------------------------------------


@every_moving_kind
def test_a_locked_joint_rests(name: str) -> None:
    plant, hip, _, context = leg(name)
    assert not hip.is_locked(context)
    others = [0, 1 + hip.num_velocities]
    before = plant.get_velocities(context)[others]
    hip.lock(context)
    assert hip.is_locked(context)
    np.testing.assert_array_equal(hip.velocities.get(context), np.zeros(hip.num_velocities))
    np.testing.assert_array_equal(plant.get_velocities(context)[others], before)
    vdot = plant.calc_vdot(context)
    np.testing.assert_array_equal(vdot[1 : 1 + hip.num_velocities], np.zeros(hip.num_velocities))
    assert (vdot[others] != 0.0).all()
    hip.unlock(context)
    assert not hip.is_locked(context)
    assert (plant.calc_vdot(context)[1 : 1 + hip.num_velocities] != 0.0).any()


@every_moving_kind
def test_a_locked_joint_takes_positions_but_no_velocities(name: str) -> None:
    _, hip, _, context = leg(name)
    hip.lock(context)
    q, v = random_state(hip, 8)
    hip.positions.set(context, q)
    np.testing.assert_array_equal(hip.positions.get(context), q)
    hip.velocities.set(context, 0.0 * v)
    with pytest.raises(ContextError, match=r"velocities of joint 'hip'.*unlock\(context\)"):
        hip.velocities.set(context, v)
    np.testing.assert_array_equal(hip.velocities.get(context), 0.0 * v)
    hip.unlock(context)
    hip.velocities.set(context, v)
    np.testing.assert_array_equal(hip.velocities.get(context), v)


def test_a_weld_needs_no_lock() -> None:
    plant, hip, _, context = leg("weld")
    before = values(plant, context)
    hip.lock(context)
    hip.unlock(context)
    assert not hip.is_locked(context)
    np.testing.assert_array_equal(values(plant, context), before)


def test_locks_belong_to_contexts() -> None:
    _, hip, _, context = leg("revolute")
    other = context.clone()
    hip.lock(context)
    assert (hip.is_locked(context), hip.is_locked(other)) == (True, False)


# Forces along velocities --------------------------------------------------------------------------


@every_moving_kind
def test_a_force_is_added_along_one_velocity(name: str) -> None:
    plant, hip, _, _ = leg(name)
    forces = fx.MultibodyForces(plant)
    last = hip.num_velocities - 1
    hip.add_in_one_force(last, 2.0, forces)
    hip.add_in_one_force(last, 0.5, forces)
    expected = np.zeros(plant.num_velocities)
    expected[1 + last] = 2.5
    np.testing.assert_array_equal(forces.generalized_forces, expected)
    for index in (-1, last + 1, 0.5):
        with pytest.raises(ValueRefusedError, match="force along joint 'hip'"):
            hip.add_in_one_force(index, 2.0, forces)
    with pytest.raises(ValueRefusedError, match="force along joint 'hip'"):
        hip.add_in_one_force(last, np.nan, forces)
    np.testing.assert_array_equal(forces.generalized_forces, expected)


def test_a_torque_about_a_hinge_and_a_force_along_a_rail() -> None:
    for name, what in (("revolute", "torque"), ("prismatic", "force")):
        plant, hip, _, _ = leg(name)
        forces = fx.MultibodyForces(plant)
        getattr(hip, f"add_in_{what}")(3.0, forces)
        np.testing.assert_array_equal(forces.generalized_forces, [0.0, 3.0, 0.0])


def test_forces_belong_to_one_plant() -> None:
    _, hip, _, context = leg("ball rpy")
    others = fx.MultibodyForces(leg("ball rpy").plant)
    with pytest.raises(ContextError, match="force along joint 'hip'"):
        hip.add_in_one_force(0, 1.0, others)
    with pytest.raises(ContextError, match="damping of joint 'hip'"):
        hip.add_in_damping(context, others)
    np.testing.assert_array_equal(others.generalized_forces, np.zeros(5))


# Contexts -----------------------------------------------------------------------------------------


def test_a_joint_reads_the_contexts_of_its_diagram_its_plant_and_its_tree() -> None:
    plant, hip, _, _ = leg("ball rpy")
    builder = fx.DiagramBuilder("gym")
    builder.add(plant)
    context = builder.build().create_default_context()
    for part in (context, context["leg"], context["leg.tree"]):
        hip.angles.set(part, [0.1, 0.2, 0.3])
        hip.lock(part)
        np.testing.assert_array_equal(hip.angles.get(part), [0.1, 0.2, 0.3])
        assert hip.is_locked(part)
        hip.angles.set(context, [0.0, 0.0, 0.0])
        hip.unlock(context)


@every_moving_kind
def test_contexts_of_other_plants_are_refused(name: str) -> None:
    hip, context = leg(name).hip, leg(name).context
    uses: list[Callable[[], Any]] = [
        lambda: hip.positions.get(context),
        lambda: hip.positions.set(context, random_state(hip, 8)[0]),
        lambda: hip.velocities.set(context, random_state(hip, 8)[1]),
        lambda: hip.pose.get(context),
        lambda: hip.spatial_velocity.set(context, np.zeros(6)),
        lambda: hip.lock(context),
        lambda: hip.damping.get(context),
    ]
    for use in uses:
        with pytest.raises(ContextError):
            use()


@every_moving_kind
def test_new_contexts_start_with_the_defaults(name: str) -> None:
    q, _ = random_state(KINDS[name].make(), 5)

    def prepare(hip: Any) -> None:
        hip.default_positions = q
        hip.default_damping_vector = 0.5

    plant, hip, _, _ = leg(name, prepare=prepare)
    context = plant.create_default_context()
    np.testing.assert_array_equal(hip.positions.get(context), q)
    np.testing.assert_array_equal(hip.velocities.get(context), np.zeros(hip.num_velocities))
    np.testing.assert_array_equal(hip.damping.get(context), np.full(hip.num_velocities, 0.5))


@every_kind
def test_defaults_limits_and_distributions_are_settled_when_the_plant_is_built(name: str) -> None:
    _, hip, _, _ = leg(name)
    changes: list[Callable[[], None]] = [
        lambda: setattr(hip, "default_positions", hip.default_positions),
        lambda: setattr(hip, "default_pose", hip.default_pose),
        lambda: setattr(hip, "default_pose_pair", hip.default_pose_pair),
        lambda: setattr(hip, "default_damping_vector", hip.default_damping_vector),
        lambda: hip.set_position_limits(-1.0, 1.0),
        lambda: hip.set_velocity_limits(-1.0, 1.0),
        lambda: hip.set_acceleration_limits(-1.0, 1.0),
        lambda: hip.set_random_positions_distribution(lambda rng: hip.default_positions),
    ]
    for change in changes:
        with pytest.raises(DeclarationError, match=r"joint 'hip'.*a plant that is not built yet"):
            change()


@every_moving_kind
def test_random_contexts_draw_positions_and_start_at_rest(name: str) -> None:
    q, _ = random_state(KINDS[name].make(), 5)

    def prepare(hip: Any) -> None:
        hip.set_random_positions_distribution(lambda rng: q + rng.uniform(0.0, 0.1, q.size))

    plant, hip, knee, _ = leg(name, prepare=prepare)
    first, again, second = (
        plant.create_random_context(np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    drawn = hip.positions.get(first)
    assert ((drawn >= q) & (drawn <= q + 0.1)).all()
    np.testing.assert_array_equal(hip.positions.get(again), drawn)
    assert (hip.positions.get(second) != drawn).all()
    np.testing.assert_array_equal(plant.get_velocities(first), np.zeros(plant.num_velocities))
    assert knee.angle.get(first) == 0.0


@for_each("drawn", [[0.0] * 7, [np.nan] * 7, [1.0] * 6])
def test_what_is_drawn_wrongly_is_refused(drawn: list[float]) -> None:
    def prepare(hip: Any) -> None:
        hip.set_random_positions_distribution(lambda rng: drawn)

    plant = leg("quaternion floating", prepare=prepare).plant
    with pytest.raises(ValueRefusedError, match="Cannot draw the positions of joint 'hip'"):
        plant.create_random_context(np.random.default_rng(1))
