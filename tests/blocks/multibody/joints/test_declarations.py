"""What joints are made of: damping, limits, defaults and distributions, and what is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.diagrams.checks.errors import ContextError, DeclarationError, ValueRefusedError
from tests.blocks.multibody.joints.samples import KINDS, POSE, every_kind, joint_of
from tests.support.tiers import for_each

BALL = joint_of(fx.BallRpyJoint)
REVOLUTE = joint_of(fx.RevoluteJoint, (0, 0, 1))
moving = for_each("name", [name for name in KINDS if "weld" not in name])


# Frames -------------------------------------------------------------------------------------------


def test_a_joint_is_between_a_parent_and_a_child() -> None:
    door, wall = Body("door", model_instance="house"), Body("wall")
    edge = Frame("edge", door, POSE)
    joint = fx.RevoluteJoint("hinge", wall, edge, axis=(0, 0, 1))
    assert (joint.parent_body, joint.child_body) == (wall, door)
    assert (joint.frame_on_parent, joint.frame_on_child) == (wall.frame, edge)
    assert (joint.name, joint.index, joint.model_instance) == ("hinge", None, "house")


def test_a_joint_needs_two_bodies() -> None:
    door = Body("door")
    with pytest.raises(DeclarationError, match=r"'hinge'.*frames on two bodies.*on 'door'"):
        fx.BallRpyJoint("hinge", door, Frame("edge", door))


def test_a_joint_needs_frames() -> None:
    with pytest.raises(DeclarationError, match=r"'hinge'.*a Frame or a Body.*'door'"):
        fx.BallRpyJoint("hinge", Body("wall"), "door")  # type: ignore[arg-type]


def test_a_joint_needs_a_name_without_dots() -> None:
    with pytest.raises(DeclarationError, match=r"'left\.hinge'"):
        fx.BallRpyJoint("left.hinge", Body("wall"), Body("door"))


@every_kind
def test_a_joint_is_not_copied(name: str) -> None:
    with pytest.raises(DeclarationError, match="Cannot copy joint 'hip'"):
        copy.copy(KINDS[name].make())


@every_kind
@for_each("index", [-1, 7, 0.5, "q"])
def test_there_are_names_only_for_the_coordinates_there_are(name: str, index: Any) -> None:
    joint = KINDS[name].make()
    with pytest.raises(ValueRefusedError, match=r"Cannot name position.*'hip'"):
        joint.position_suffix(index)
    with pytest.raises(ValueRefusedError, match=r"Cannot name velocity.*'hip'"):
        joint.velocity_suffix(index)


# Damping ------------------------------------------------------------------------------------------


@moving
def test_without_damping_it_is_zero(name: str) -> None:
    joint = KINDS[name].make()
    np.testing.assert_array_equal(joint.default_damping_vector, np.zeros(joint.num_velocities))


@for_each("name", [n for n in KINDS if "weld" not in n and "floating" not in n])
def test_one_damping_is_that_of_all_velocities(name: str) -> None:
    joint: Any = KINDS[name].make(damping=0.5)
    np.testing.assert_array_equal(joint.default_damping_vector, [0.5] * joint.num_velocities)
    joint.default_damping = 0.25
    np.testing.assert_array_equal(joint.default_damping_vector, [0.25] * joint.num_velocities)
    np.testing.assert_array_equal(joint.default_damping, 0.25)


@for_each("name", ["rpy floating", "quaternion floating"])
def test_floating_joints_are_damped_in_rotation_and_in_translation(name: str) -> None:
    joint: Any = KINDS[name].make(angular_damping=0.2, translational_damping=0.3)
    np.testing.assert_array_equal(joint.default_damping_vector, [0.2] * 3 + [0.3] * 3)
    joint.default_angular_damping = 0.4
    joint.default_translational_damping = 0.5
    np.testing.assert_array_equal(joint.default_damping_vector, [0.4] * 3 + [0.5] * 3)
    assert (joint.default_angular_damping, joint.default_translational_damping) == (0.4, 0.5)


@for_each("name", ["planar", "ball rpy", "ball quaternion"])
def test_each_velocity_can_have_a_damping_of_its_own(name: str) -> None:
    joint: Any = KINDS[name].make(damping=(1.0, 5.0, 7.0))
    np.testing.assert_array_equal(joint.default_damping_vector, [1.0, 5.0, 7.0])
    np.testing.assert_array_equal(np.ravel(joint.default_damping)[0], 1.0)


WRONG_DAMPING = [-1.0, [1.0, 1.0, -1e-300], np.nan, np.inf, [1.0, 2.0], None, "much"]


@for_each("damping", WRONG_DAMPING)
def test_wrong_damping_is_refused(damping: Any) -> None:
    with pytest.raises(ValueRefusedError, match="damping of joint 'hip'"):
        BALL(damping=damping)
    joint = BALL(damping=2.0)
    with pytest.raises(ValueRefusedError, match="damping of joint 'hip'"):
        joint.default_damping_vector = damping
    np.testing.assert_array_equal(joint.default_damping_vector, [2.0] * 3)


@for_each("damping", [-1.0, np.nan, [1.0, 2.0, 3.0], None])
@for_each("which", ["angular", "translational"])
def test_wrong_damping_of_a_floating_joint_is_refused(which: str, damping: Any) -> None:
    with pytest.raises(ValueRefusedError, match="'hip'"):
        joint_of(fx.RpyFloatingJoint)(**{f"{which}_damping": damping})
    joint = joint_of(fx.RpyFloatingJoint)(angular_damping=2.0)
    with pytest.raises(ValueRefusedError, match="damping of joint 'hip'"):
        setattr(joint, f"default_{which}_damping", damping)
    np.testing.assert_array_equal(joint.default_damping_vector, [2.0] * 3 + [0.0] * 3)


# Limits -------------------------------------------------------------------------------------------


@every_kind
def test_without_limits_they_are_infinite(name: str) -> None:
    joint = KINDS[name].make()
    for what, size in [
        ("position", joint.num_positions),
        ("velocity", joint.num_velocities),
        ("acceleration", joint.num_velocities),
    ]:
        np.testing.assert_array_equal(getattr(joint, f"{what}_lower_limits"), [-np.inf] * size)
        np.testing.assert_array_equal(getattr(joint, f"{what}_upper_limits"), [np.inf] * size)


@moving
@for_each("what", ["position", "velocity", "acceleration"])
def test_limits_are_numbers_or_vectors(name: str, what: str) -> None:
    kind = KINDS[name]
    size = len(kind.positions.split() if what == "position" else kind.velocities.split())
    joint = kind.make(**{f"{what}_limits": (-1.0, np.arange(size))})
    np.testing.assert_array_equal(getattr(joint, f"{what}_lower_limits"), [-1.0] * size)
    np.testing.assert_array_equal(getattr(joint, f"{what}_upper_limits"), np.arange(size))
    getattr(joint, f"set_{what}_limits")(-2.0, np.inf)
    np.testing.assert_array_equal(getattr(joint, f"{what}_lower_limits"), [-2.0] * size)


@for_each("name", [n for n in KINDS if KINDS[n].velocities in ("w", "v")])
def test_limits_of_one_coordinate_are_numbers_too(name: str) -> None:
    joint: Any = KINDS[name].make(
        position_limits=(-1.0, 2.0), velocity_limits=(-3.0, 4.0), acceleration_limits=(-5.0, 6.0)
    )
    assert (joint.position_lower_limit, joint.position_upper_limit) == (-1.0, 2.0)
    assert (joint.velocity_lower_limit, joint.velocity_upper_limit) == (-3.0, 4.0)
    assert (joint.acceleration_lower_limit, joint.acceleration_upper_limit) == (-5.0, 6.0)
    np.testing.assert_array_equal(joint.position_limits, [[-1.0], [2.0]])


WRONG_LIMITS = [
    (1.0, -1.0),
    ([0.0, 0.0, 1.0], [1.0, 1.0, 0.0]),
    (np.nan, 1.0),
    ([1.0, 2.0], [3.0, 4.0]),
    (None, 1.0),
]


@for_each("limits", WRONG_LIMITS)
@for_each("what", ["position", "velocity", "acceleration"])
def test_wrong_limits_are_refused(what: str, limits: Any) -> None:
    with pytest.raises(ValueRefusedError, match=f"{what} limits of joint 'hip'"):
        BALL(**{f"{what}_limits": limits})
    joint = BALL(**{f"{what}_limits": (-2.0, 2.0)})
    with pytest.raises(ValueRefusedError, match=f"{what} limits of joint 'hip'"):
        getattr(joint, f"set_{what}_limits")(*limits)
    np.testing.assert_array_equal(getattr(joint, f"{what}_lower_limits"), [-2.0] * 3)
    np.testing.assert_array_equal(getattr(joint, f"{what}_upper_limits"), [2.0] * 3)


@for_each("limits", [1.0, (1.0, 2.0, 3.0), "no"])
def test_limits_come_in_pairs(limits: Any) -> None:
    with pytest.raises(ValueRefusedError, match=r"'hip'.*a pair \(lower, upper\)"):
        BALL(position_limits=limits)


def test_limits_may_be_equal() -> None:
    np.testing.assert_array_equal(REVOLUTE(position_limits=(1.0, 1.0)).position_limits, 1.0)


# Default positions --------------------------------------------------------------------------------


def test_default_positions_are_not_held_by_limits() -> None:
    joint = BALL(position_limits=(-1.0, 1.0))
    joint.default_angles = [5.0, 6.0, 7.0]
    np.testing.assert_array_equal(joint.default_positions, [5.0, 6.0, 7.0])


DEFAULTS = [
    ("revolute", "default_angle", 0.3, [0.3]),
    ("prismatic", "default_translation", 0.3, [0.3]),
    ("screw", "default_rotation", 0.3, [0.3]),
    ("screw", "default_translation", 0.35, [np.pi]),
    ("universal", "default_angles", [0.1, 0.2], [0.1, 0.2]),
    ("planar", "default_translation", [3.0, 4.0], [3.0, 4.0, 0.0]),
    ("planar", "default_rotation", 0.5, [0.0, 0.0, 0.5]),
    ("ball rpy", "default_angles", [0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
    ("ball quaternion", "default_quaternion", [0, 2, 0, 0], [0.0, 2.0, 0.0, 0.0]),
    ("rpy floating", "default_angles", [0.1, 0.2, 0.3], [0.1, 0.2, 0.3, 0.0, 0.0, 0.0]),
    ("rpy floating", "default_translation", [1, 2, 3], [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]),
    ("quaternion floating", "default_quaternion", [0, 0, 1, 0], [0, 0, 1, 0, 0, 0, 0]),
    ("quaternion floating", "default_translation", [1, 2, 3], [1, 0, 0, 0, 1, 2, 3]),
]
every_default = for_each(("name", "default", "value", "positions"), DEFAULTS)


@every_default
def test_parts_of_the_default_positions_have_names(
    name: str, default: str, value: Any, positions: Any
) -> None:
    joint = KINDS[name].make()
    setattr(joint, default, value)
    np.testing.assert_allclose(joint.default_positions, positions, rtol=1e-15)
    np.testing.assert_allclose(getattr(joint, default), value, rtol=1e-15)


@every_default
@for_each("wrong", [np.nan, [1.0] * 5, None, "up"])
def test_wrong_default_positions_are_refused(
    name: str, default: str, value: Any, positions: Any, wrong: Any
) -> None:
    joint = KINDS[name].make()
    before = joint.default_positions
    with pytest.raises(ValueRefusedError, match="'hip'"):
        setattr(joint, default, wrong)
    with pytest.raises(ValueRefusedError, match="default positions of joint 'hip'"):
        joint.default_positions = wrong
    assert joint.default_positions is before


@every_default
def test_default_positions_are_copied_and_read_only(
    name: str, default: str, value: Any, positions: Any
) -> None:
    joint = KINDS[name].make()
    mine = np.array(positions, dtype=float)
    joint.default_positions = mine
    mine[:] = 9.0
    np.testing.assert_array_equal(joint.default_positions, positions)
    with pytest.raises(ValueError, match="read-only"):
        joint.default_positions[0] = 9.0


@every_kind
def test_the_default_pose_is_that_of_the_default_positions(name: str) -> None:
    joint = KINDS[name].make()
    joint.default_pose = POSE
    expected = joint.calc_pose(joint.default_positions)
    np.testing.assert_array_equal(joint.default_pose.R, expected.R)
    np.testing.assert_array_equal(joint.default_pose.p, expected.p)


def test_the_default_pose_of_a_floating_joint_is_what_was_set() -> None:
    joint = joint_of(fx.QuaternionFloatingJoint)()
    joint.default_pose_pair = ([0.0, -3.0, 0.0, -4.0], [1.0, 2.0, 3.0])
    quaternion, position = joint.default_pose_pair
    np.testing.assert_allclose(quaternion, [0.0, 0.6, 0.0, 0.8], atol=1e-15)
    np.testing.assert_array_equal(position, [1.0, 2.0, 3.0])


WRONG_POSES = [
    (None, "a pair"),
    (np.eye(3), "a pair"),
    ((np.eye(3), [0.0, 0.0]), "size 3"),
    ((np.eye(2), [0.0, 0.0, 0.0]), "shape"),
    ((np.eye(3), [0.0, 0.0, np.nan]), "finite"),
    ((np.full((3, 3), np.inf), [0.0, 0.0, 0.0]), "finite"),
    ((-np.eye(3), [0.0, 0.0, 0.0]), "determinant 1"),
    ((np.eye(3) + 1e-6, [0.0, 0.0, 0.0]), "R Rᵀ = 1"),
]


@for_each(("pose", "expected"), WRONG_POSES)
def test_wrong_default_poses_are_refused(pose: Any, expected: str) -> None:
    joint = BALL()
    with pytest.raises(ValueRefusedError, match=f"default pose of joint 'hip'.*{expected}"):
        joint.default_pose = pose


@for_each(
    ("pair", "expected"),
    [
        (([0.0] * 4, [0.0] * 3), "quaternion"),
        (([1.0, 0.0, 0.0], [0.0] * 3), "size 4"),
        (([1.0, 0.0, 0.0, np.inf], [0.0] * 3), "finite"),
        (([1.0, 0.0, 0.0, 0.0], [0.0] * 2), "size 3"),
        ([1.0, 0.0, 0.0, 0.0], "a pair"),
    ],
)
def test_wrong_default_pairs_are_refused(pair: Any, expected: str) -> None:
    joint = BALL()
    with pytest.raises(ValueRefusedError, match=f"default pose of joint 'hip'.*{expected}"):
        joint.default_pose_pair = pair


def test_a_weld_keeps_its_pose() -> None:
    joint = joint_of(fx.WeldJoint, POSE)()
    joint.default_pose = (np.eye(3), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(joint.default_pose.R, POSE[0])
    np.testing.assert_array_equal(joint.X_FM.p, POSE[1])
    with pytest.raises(ValueError, match="read-only"):
        joint.X_FM.p[0] = 0.0


def test_a_weld_needs_a_pose_with_a_rotation() -> None:
    with pytest.raises(DeclarationError, match=r"'hip'.*R Rᵀ = 1"):
        joint_of(fx.WeldJoint)(pose=(2.0 * np.eye(3), np.zeros(3)))


# Distributions ------------------------------------------------------------------------------------


def uniform(size: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.uniform(2.0, 3.0, size)


DISTRIBUTIONS = [
    ("revolute", "angle", 1, [0]),
    ("prismatic", "translation", 1, [0]),
    ("screw", "pose", 1, [0]),
    ("universal", "angles", 2, [0, 1]),
    ("planar", "pose", 3, [0, 1, 2]),
    ("ball rpy", "angles", 3, [0, 1, 2]),
    ("ball quaternion", "quaternion", 4, [0, 1, 2, 3]),
    ("rpy floating", "angles", 3, [0, 1, 2]),
    ("rpy floating", "translation", 3, [3, 4, 5]),
    ("quaternion floating", "quaternion", 4, [0, 1, 2, 3]),
    ("quaternion floating", "translation", 3, [4, 5, 6]),
    ("quaternion floating", "positions", 7, [0, 1, 2, 3, 4, 5, 6]),
]
every_distribution = for_each(("name", "what", "size", "places"), DISTRIBUTIONS)


@every_distribution
def test_named_positions_are_drawn_and_the_others_keep_their_defaults(
    name: str, what: str, size: int, places: list[int]
) -> None:
    joint = KINDS[name].make()
    getattr(joint, f"set_random_{what}_distribution")(uniform(size))
    assert joint.random_positions_distribution is not None
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    q = np.asarray(joint.random_positions_distribution(rng))
    np.testing.assert_array_equal(q[places], uniform(size)(again))
    others = [k for k in range(joint.num_positions) if k not in places]
    np.testing.assert_array_equal(q[others], joint.default_positions[others])


@every_distribution
def test_a_distribution_is_a_function(name: str, what: str, size: int, places: list[int]) -> None:
    joint = KINDS[name].make()
    with pytest.raises(DeclarationError, match=r"distribution of joint 'hip'.*\[1.0\]"):
        getattr(joint, f"set_random_{what}_distribution")([1.0])
    assert joint.random_positions_distribution is None


def test_orientation_and_position_are_drawn_independently() -> None:
    joint = joint_of(fx.RpyFloatingJoint)()
    joint.set_random_translation_distribution(lambda rng: [1.0, 2.0, 3.0])
    joint.set_random_angles_distribution(lambda rng: [0.1, 0.2, 0.3])
    q = joint.random_positions_distribution(np.random.default_rng())
    np.testing.assert_array_equal(q, [0.1, 0.2, 0.3, 1.0, 2.0, 3.0])


@for_each("drawn", [[1.0, 2.0], [np.nan] * 3, None])
def test_what_is_drawn_wrongly_is_refused(drawn: Any) -> None:
    joint = joint_of(fx.RpyFloatingJoint)()
    joint.set_random_angles_distribution(lambda rng: drawn)
    with pytest.raises(ValueRefusedError, match="Cannot draw the positions of joint 'hip'"):
        joint.random_positions_distribution(np.random.default_rng())


@for_each("name", ["ball quaternion", "quaternion floating"])
def test_uniform_orientations_prefer_no_direction(name: str) -> None:
    joint: Any = KINDS[name].make()
    joint.set_random_quaternion_distribution_to_uniform()
    rng = np.random.default_rng(5)
    q = np.array([joint.random_positions_distribution(rng)[:4] for _ in range(4000)])
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0)
    # Each entry of the mean of q qᵀ scatters by less than 0.2 / √4000 = 0.003.
    np.testing.assert_allclose(q.T @ q / len(q), np.eye(4) / 4.0, atol=0.015)


# Before there is a plant --------------------------------------------------------------------------


@every_kind
@for_each(
    "use",
    [
        lambda joint: joint.positions.get(None),
        lambda joint: joint.velocities.set(None, [0.0] * joint.num_velocities),
        lambda joint: joint.pose.get(None),
        lambda joint: joint.lock(None),
        lambda joint: joint.damping,
        lambda joint: joint.position_start,
        lambda joint: joint.parent_plant,
    ],
)
def test_contexts_come_with_a_plant(name: str, use: Any) -> None:
    with pytest.raises((DeclarationError, ContextError), match=r"'hip'.*build\(\) first"):
        use(KINDS[name].make())


def test_values_show_their_names() -> None:
    assert repr(REVOLUTE().angle) == "<JointValue 'hip.angle'>"


def test_rotations_are_those_of_the_floor() -> None:
    joint = BALL()
    joint.default_angles = [0.3, -0.4, 3.0]
    np.testing.assert_array_equal(joint.default_pose.R, rotation_from_rpy([0.3, -0.4, 3.0]))
