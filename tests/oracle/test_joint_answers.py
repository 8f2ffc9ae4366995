"""Joints answer as Drake's do, and where they do not, the difference is one that is meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import flexure as fx
from tests.oracle.reading import read

FILE = "joint_api.json"
CASES = {case["name"]: case for case in read(FILE)["cases"]}
Refusal: Any = (fx.errors.DeclarationError, fx.errors.ContextError)


class Ball(NamedTuple):
    """A body B on the ball joint J to the world, with the damping 3."""

    plant: fx.Plant
    joint: fx.BallRpyJoint
    context: fx.Context


def unbuilt(**options: Any) -> fx.BallRpyJoint:
    return fx.BallRpyJoint("J", fx.Body("W"), fx.Body("B"), **{"damping": 3.0, **options})


def solid() -> fx.SpatialInertia:
    return fx.SpatialInertia.solid_box(mass=1.0, size=(0.1, 0.2, 0.3))


def ball(prepare: Callable[[fx.BallRpyJoint], Any] = lambda joint: None) -> Ball:
    builder = fx.PlantBuilder("oracle", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("B", solid())
    joint = builder.add_joint(fx.BallRpyJoint("J", builder.world, body, damping=3.0))
    prepare(joint)
    plant = builder.build()
    return Ball(plant, joint, plant.create_default_context())


def hinge(**options: Any) -> fx.RevoluteJoint:
    return fx.RevoluteJoint("J", fx.Body("W"), fx.Body("B"), **{"axis": (0, 0, 1), **options})


def moving_hinge() -> tuple[fx.Plant, fx.RevoluteJoint, fx.Context]:
    builder = fx.PlantBuilder("oracle")
    body = builder.add_body("B", solid())
    joint = builder.add_joint(
        fx.RevoluteJoint("J", builder.world, body, axis=(0, 0, 1), damping=0.5)
    )
    plant = builder.build()
    context = plant.create_default_context()
    joint.angular_rate.set(context, -2.0)
    return plant, joint, context


# The same answers ---------------------------------------------------------------------------------


def all_limits(joint: fx.multibody.Joint) -> list[Any]:
    return [
        getattr(joint, f"{what}_{end}_limits")
        for what in ("position", "velocity", "acceleration")
        for end in ("lower", "upper")
    ]


def damping() -> Any:
    _, joint, context = ball()
    return joint.damping.get(context)


def velocity_limits() -> list[Any]:
    joint = unbuilt()
    joint.set_velocity_limits([-1.0, -2.0, -3.0], [1.0, 2.0, 3.0])
    return [joint.velocity_lower_limits, joint.velocity_upper_limits]


def defaults_outside_of_limits() -> Any:
    joint = unbuilt()
    joint.set_position_limits([-1.0] * 3, [1.0] * 3)
    joint.default_angles = [5.0, 6.0, 7.0]
    return joint.default_angles


def angles_beyond_limits() -> Any:
    _, joint, context = ball(lambda joint: joint.set_position_limits([-1.0] * 3, [1.0] * 3))
    joint.angles.set(context, [9.0, 8.0, 7.0])
    return joint.angles.get(context)


def locked() -> list[Any]:
    _, joint, context = ball()
    joint.angular_velocity.set(context, [1.0, 2.0, 3.0])
    joint.lock(context)
    return [joint.is_locked(context), joint.angular_velocity.get(context)]


def unlocked() -> bool:
    _, joint, context = ball()
    joint.lock(context)
    joint.unlock(context)
    return joint.is_locked(context)


def locked_for_a_while() -> Any:
    plant, joint, context = ball()
    joint.angles.set(context, [0.3, 0.2, 0.1])
    joint.angular_velocity.set(context, [1.0, 2.0, 3.0])
    joint.lock(context)
    end = fx.simulate(plant, 0.05, context=context).context
    return [*joint.angles.get(end), *joint.angular_velocity.get(end)]


def random_defaults() -> Any:
    def prepare(joint: fx.BallRpyJoint) -> None:
        joint.default_angles = [0.1, 0.2, 0.3]

    plant, joint, _ = ball(prepare)
    return joint.angles.get(plant.create_random_context(np.random.default_rng(1)))


def hinge_limits() -> list[float]:
    joint = hinge(position_limits=(-1.0, 2.0), damping=0.5)
    return [
        joint.position_lower_limit,
        joint.position_upper_limit,
        joint.default_damping,
        joint.default_damping_vector[0],
    ]


def hinge_forces() -> Any:
    plant, joint, context = moving_hinge()
    forces = fx.MultibodyForces(plant)
    forces.generalized_forces[:] = 1.0
    joint.add_in_damping(context, forces)
    joint.add_in_torque(10.0, forces)
    return forces.generalized_forces


ANSWERS: dict[str, Callable[[], Any]] = {
    "num_positions(), num_velocities()": lambda: [
        unbuilt().num_positions,
        unbuilt().num_velocities,
    ],
    "can_rotate(), can_translate()": lambda: [unbuilt().can_rotate, unbuilt().can_translate],
    "default limits (pos lo, pos hi, vel lo, vel hi, acc lo, acc hi)": lambda: all_limits(
        unbuilt()
    ),
    "GetDampingVector(context)": damping,
    "set_velocity_limits ok then read": velocity_limits,
    "set_default_angles outside the limits [1,1,1] (accepted, no clamping)": (
        defaults_outside_of_limits
    ),
    "set_angles beyond the limits (accepted)": angles_beyond_limits,
    "Lock(context): is_locked, angular velocity (zeroed)": locked,
    "Unlock(context): is_locked": unlocked,
    "discrete plant (dt 0.01): locked, v = 0, state after 0.05 s": locked_for_a_while,
    "SetRandomContext without a distribution gives the default angles [.1,.2,.3]": random_defaults,
    "revolute: suffixes": lambda: [hinge().position_suffix(0), hinge().velocity_suffix(0)],
    "revolute: limits and damping": hinge_limits,
    "revolute: 1 + damping (0.5, rate -2) + 10 (adds, does not overwrite)": hinge_forces,
}


def as_numbers(value: Any) -> Any:
    """Turn the words of the file for infinities into numbers, and arrays into lists."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [as_numbers(entry) for entry in value]
    return float(value) if value in ("inf", "-inf") else value


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_the_same(name: str) -> None:
    found, expected = as_numbers(ANSWERS[name]()), as_numbers(CASES[name]["result"])
    assert not CASES[name]["throws"]
    assert found == expected


# The same refusals --------------------------------------------------------------------------------


def one_position() -> None:
    _, joint, context = ball()
    joint.get_one_position(context)


def one_velocity() -> None:
    _, joint, context = ball()
    joint.get_one_velocity(context)


def damping_of_wrong_size() -> None:
    _, joint, context = ball()
    joint.damping.set(context, [1.0, 2.0])


def force_along_second_of_one() -> None:
    plant, joint, _ = moving_hinge()
    joint.add_in_one_force(1, 1.0, fx.MultibodyForces(plant))


REFUSALS: dict[str, Callable[[], Any]] = {
    "position_suffix(3)": lambda: unbuilt().position_suffix(3),
    "position_suffix(-1)": lambda: unbuilt().position_suffix(-1),
    "constructor damping = -1": lambda: unbuilt(damping=-1.0),
    "SetDampingVector wrong size": damping_of_wrong_size,
    "set_default_damping_vector after finalize": lambda: setattr(
        ball().joint, "default_damping_vector", [1.0, 2.0, 3.0]
    ),
    "set_default_damping_vector negative before finalize": lambda: setattr(
        unbuilt(), "default_damping_vector", [1.0, -2.0, 3.0]
    ),
    "GetOnePosition": one_position,
    "GetOneVelocity": one_velocity,
    "set_position_limits sizes 2,2": lambda: unbuilt().set_position_limits([0, 0], [1, 1]),
    "set_position_limits lower > upper": lambda: unbuilt().set_position_limits(
        [0, 0, 2], [1, 1, 1]
    ),
    "set_position_limits with nan": lambda: unbuilt().set_position_limits(
        [0, 0, np.nan], [1, 1, 1]
    ),
    "set_default_positions size 2": lambda: setattr(unbuilt(), "default_positions", [1.0, 2.0]),
    "revolute: AddInOneForce dof 1": force_along_second_of_one,
    "revolute: zero axis": lambda: hinge(axis=(0, 0, 0)),
    "revolute: tiny axis 1e-17": lambda: hinge(axis=(0, 0, 1e-17)),
    "revolute: negative damping": lambda: hinge(damping=-1.0),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_are_the_same(name: str) -> None:
    assert CASES[name]["throws"]
    with pytest.raises(Refusal, match="J"):
        REFUSALS[name]()


# Differences that are meant -----------------------------------------------------------------------


def test_the_kind_of_motion_is_known_before_the_plant_is_built() -> None:
    assert CASES["can_rotate() before finalize"]["throws"]
    assert unbuilt().can_rotate


@pytest.mark.parametrize("before", [0.0, 1.0])
def test_all_values_of_the_damping_of_a_ball_act_and_add(before: float) -> None:
    plant, joint, context = ball()
    joint.damping.set(context, [1.0, 5.0, 7.0])
    joint.angular_velocity.set(context, [0.1, 0.2, 0.3])
    forces = fx.MultibodyForces(plant)
    forces.generalized_forces[:] = before
    joint.add_in_damping(context, forces)
    np.testing.assert_allclose(forces.generalized_forces - before, [-0.1, -1.0, -2.1], rtol=1e-15)
    contribution = plant.calc_force_elements_contribution(context)
    np.testing.assert_allclose(contribution.generalized_forces, [-0.1, -1.0, -2.1], rtol=1e-15)


def test_a_moment_can_be_added_about_one_axis_of_a_ball() -> None:
    assert CASES["AddInOneForce(dof 0)"]["throws"]
    plant, joint, _ = ball()
    forces = fx.MultibodyForces(plant)
    joint.add_in_one_force(0, 2.0, forces)
    np.testing.assert_array_equal(forces.generalized_forces, [2.0, 0.0, 0.0])


def test_a_ball_has_a_default_pose() -> None:
    assert CASES["GetDefaultPose"]["throws"]
    assert CASES["SetDefaultPosePair"]["throws"]
    joint = unbuilt()
    joint.default_pose_pair = ([0.6, 0.8, 0.0, 0.0], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(joint.default_angles, [2 * np.arcsin(0.8), 0.0, 0.0], atol=1e-15)
    np.testing.assert_array_equal(joint.default_pose.p, np.zeros(3))


def test_a_context_keeps_its_angles_since_defaults_are_settled_before() -> None:
    name = "old context keeps its angles"
    _, joint, context = ball()
    with pytest.raises(Refusal, match="a plant that is not built yet"):
        joint.default_angles = [5.0, 6.0, 7.0]
    assert joint.angles.get(context).tolist() == CASES[name]["result"]


def test_a_locked_ball_cannot_be_set_in_motion() -> None:
    name = "set_angular_velocity while locked (accepted)"
    assert CASES[name]["result"] == [1.0, 2.0, 3.0]
    _, joint, context = ball()
    joint.lock(context)
    with pytest.raises(fx.errors.ContextError, match=r"'J'.*locked"):
        joint.angular_velocity.set(context, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(joint.angular_velocity.get(context), np.zeros(3))


def test_angles_can_be_drawn_from_the_same_distribution() -> None:
    expected = CASES["set_random_angles_distribution, 200 draws (statistics only)"]["result"]
    assert expected["velocities_all_zero"]

    def prepare(joint: fx.BallRpyJoint) -> None:
        joint.set_random_angles_distribution(
            lambda rng: [-1.0 + 2.0 * rng.random(), 5.0 + rng.random(), 0.25]
        )

    plant, joint, _ = ball(prepare)
    rng = np.random.default_rng(1)
    contexts = [plant.create_random_context(rng) for _ in range(200)]
    angles = np.array([joint.angles.get(context) for context in contexts])
    # The ends and the middle of 200 uniform numbers scatter by about 1/200 and 1/√2400 of a range.
    for statistic, tolerance in (("min", 0.05), ("max", 0.05), ("mean", 0.2)):
        found = getattr(angles, statistic)(axis=0)
        np.testing.assert_allclose(found, expected[statistic], atol=tolerance)
    assert all((plant.get_velocities(context) == 0.0).all() for context in contexts)


DIFFERENT = {
    "can_rotate() before finalize",
    "AddInDamping with damping [1,5,7], w=[.1,.2,.3] (only the first coefficient acts)",
    "AddInDamping onto generalized forces already [1,1,1] (ball_rpy overwrites them)",
    "AddInOneForce(dof 0)",
    "GetDefaultPose",
    "SetDefaultPosePair",
    "old context keeps its angles",
    "set_angular_velocity while locked (accepted)",
    "set_random_angles_distribution, 200 draws (statistics only)",
}


def test_no_answer_is_left_out() -> None:
    assert set(CASES) == {*ANSWERS, *REFUSALS, *DIFFERENT}
