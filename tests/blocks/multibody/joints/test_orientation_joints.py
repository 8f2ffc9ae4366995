"""Ball and floating joints: angles with their gimbal lock, quaternions without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import RigidTransform, rotation_from_quaternion, rotation_from_rpy
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError
from tests.blocks.multibody.joints.samples import joint_of

BY_ANGLES = {
    "BallQuaternionJoint": joint_of(fx.BallRpyJoint),
    "QuaternionFloatingJoint": joint_of(fx.RpyFloatingJoint),
}
BY_QUATERNIONS = [joint_of(fx.BallQuaternionJoint), joint_of(fx.QuaternionFloatingJoint)]
with_angles = pytest.mark.parametrize("other", BY_ANGLES)
with_quaternion = pytest.mark.parametrize("make", BY_QUATERNIONS, ids=["ball", "floating"])

RIGHT_ANGLE = np.pi / 2
#: Pitches on the two sides of where rates are refused, from above and from below.
ALLOWED = [sign * np.arccos(1e-3 * (1 + 1e-6)) + turn for sign in (1, -1) for turn in (0.0, np.pi)]
REFUSED = [sign * np.arccos(1e-3 * (1 - 1e-6)) + turn for sign in (1, -1) for turn in (0.0, np.pi)]


def padded(joint: fx.multibody.Joint, first: Any, size: int) -> Any:
    """Return a vector that starts with the given numbers."""
    return np.concatenate([first, np.ones(size - len(first))])


def state(joint: fx.multibody.Joint, pitch: float) -> tuple[Any, Any]:
    q = padded(joint, [0.3, pitch, -0.7], joint.num_positions)
    return q, padded(joint, [1.0, 2.0, 3.0], joint.num_velocities)


# Gimbal lock --------------------------------------------------------------------------------------


@with_angles
@pytest.mark.parametrize("pitch", ALLOWED)
def test_rates_of_angles_exist_outside_of_the_tolerance(other: str, pitch: float) -> None:
    joint = BY_ANGLES[other]()
    q, v = state(joint, pitch)
    rates = joint.calc_position_rates(q, v)
    np.testing.assert_allclose(joint.calc_velocities(q, rates), v, rtol=1e-12)


@with_angles
@pytest.mark.parametrize("pitch", [*REFUSED, RIGHT_ANGLE, -RIGHT_ANGLE, 3 * RIGHT_ANGLE])
def test_rates_of_angles_are_refused_in_gimbal_lock(other: str, pitch: float) -> None:
    joint = BY_ANGLES[other]()
    with pytest.raises(EvaluationError) as refusal:
        joint.calc_position_rates(*state(joint, pitch))
    assert str(refusal.value) == (
        "Cannot calculate the rates of the angles of joint 'hip': expected a pitch more than "
        f"0.0573 degrees away from gimbal lock at ±90; found a pitch of {np.rad2deg(pitch):.6g} "
        "degrees. Choose the frames of the joint so that the motion stays away from this pitch, "
        f"or use a {other}."
    )


@with_angles
@pytest.mark.parametrize("v", [0.0, 1e-9])
def test_gimbal_lock_does_not_wait_for_motion(other: str, v: float) -> None:
    joint = BY_ANGLES[other]()
    q, _ = state(joint, RIGHT_ANGLE)
    with pytest.raises(EvaluationError, match="gimbal lock"):
        joint.calc_position_rates(q, np.full(joint.num_velocities, v))


@with_angles
def test_symbols_in_gimbal_lock_give_nan(other: str) -> None:
    joint = BY_ANGLES[other]()
    graph = scalars.Graph()
    traced = joint.calc_position_rates(
        scalars.symbols(graph, "q", joint.num_positions),
        scalars.symbols(graph, "v", joint.num_velocities),
    )
    for pitch, is_locked in [(ALLOWED[0], False), (REFUSED[0], True)]:
        q, v = state(joint, pitch)
        values: dict[Any, float] = {("q", k): x for k, x in enumerate(q)}
        values |= {("v", k): x for k, x in enumerate(v)}
        rates = scalars.evaluate(traced, values)
        assert np.isnan(rates[:3]).all() == is_locked
        assert np.isfinite(rates[3:]).all()


@with_angles
@pytest.mark.parametrize("pitch", [RIGHT_ANGLE, -RIGHT_ANGLE])
def test_all_else_is_defined_in_gimbal_lock(other: str, pitch: float) -> None:
    joint = BY_ANGLES[other]()
    q, v = state(joint, pitch)
    pose = joint.calc_pose(q)
    again = joint.calc_pose(joint.nearest_positions(pose))
    np.testing.assert_allclose(again.R, pose.R, atol=1e-15)
    V = joint.calc_motion_matrix(q) @ v
    np.testing.assert_array_equal(joint.nearest_velocities(q, V), v)
    assert np.isfinite(joint.calc_velocities(q, q)).all()
    np.testing.assert_array_equal(joint.calc_motion_bias(q, v), np.zeros(6))


# Orientations -------------------------------------------------------------------------------------


@with_angles
def test_angles_are_taken_from_a_pose_in_their_ranges(other: str) -> None:
    joint = BY_ANGLES[other]()
    q = joint.nearest_positions(RigidTransform(rotation_from_rpy([4.0, 0.2, -0.3]), np.ones(3)))
    np.testing.assert_allclose(q[:3], [4.0 - 2 * np.pi, 0.2, -0.3], atol=1e-14)


@with_quaternion
@pytest.mark.parametrize("length", [1.0, 0.25, 1e3, 1e-10])
def test_the_length_of_a_quaternion_does_not_turn_anything(make: Any, length: float) -> None:
    joint, unit = make(), np.array([0.5, -0.5, 0.5, 0.5])
    q = padded(joint, length * unit, joint.num_positions)
    np.testing.assert_allclose(joint.calc_pose(q).R, rotation_from_quaternion(unit), atol=1e-15)


@with_quaternion
@pytest.mark.parametrize("length", [1.0, 0.25])
def test_the_equations_do_not_change_the_length_of_a_quaternion(make: Any, length: float) -> None:
    joint = make()
    q = padded(joint, length * np.array([0.5, -0.5, 0.5, 0.5]), joint.num_positions)
    rates = joint.calc_position_rates(q, padded(joint, [1.0, 2.0, 3.0], joint.num_velocities))
    assert q[:4] @ rates[:4] == pytest.approx(0.0, abs=1e-16)
    # ½ (0, w) ⊗ q, without any term that restores the length.
    np.testing.assert_allclose(rates[:4], length * np.array([-1.0, 0.0, -0.5, 1.5]), atol=1e-16)


@with_quaternion
def test_quaternions_are_taken_from_a_pose_with_positive_w(make: Any) -> None:
    joint = make()
    R = rotation_from_quaternion([-0.6, 0.0, 0.8, 0.0])
    q = joint.nearest_positions(RigidTransform(R, np.ones(3)))
    np.testing.assert_allclose(q[:4], [0.6, 0.0, -0.8, 0.0], atol=1e-15)


@with_quaternion
@pytest.mark.parametrize("quaternion", [[0.0] * 4, [1e-20] * 4, [1e-300, 0, 0, 0], [1e200] * 4])
def test_a_quaternion_without_direction_is_refused(make: Any, quaternion: Any) -> None:
    joint = make()
    with pytest.raises(ValueRefusedError, match=r"joint 'hip'.*\(1, 0, 0, 0\)"):
        joint.default_quaternion = quaternion
    with pytest.raises(ValueRefusedError, match=r"joint 'hip'.*a quaternion"):
        joint.default_positions = padded(joint, quaternion, joint.num_positions)
    np.testing.assert_array_equal(joint.default_positions, joint.zero_positions())


def test_a_ball_turns_about_a_point_that_a_floating_body_leaves() -> None:
    ball, floating = BY_QUATERNIONS[0](), BY_QUATERNIONS[1]()
    q = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    np.testing.assert_array_equal(ball.calc_pose(q[:4]).R, floating.calc_pose(q).R)
    np.testing.assert_array_equal(ball.calc_pose(q[:4]).p, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(floating.calc_pose(q).p, [5.0, 6.0, 7.0])
    V = np.arange(1.0, 7.0)
    np.testing.assert_array_equal(ball.nearest_velocities(q[:4], V), V[:3])
    np.testing.assert_array_equal(floating.nearest_velocities(q, V), V)


@pytest.mark.parametrize("seed", range(3))
def test_angles_and_quaternions_turn_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    angles, w = rng.uniform(-1.4, 1.4, 3), rng.normal(size=3)
    by_angles, by_quaternion = joint_of(fx.BallRpyJoint)(), joint_of(fx.BallQuaternionJoint)()
    step = 1e-4
    turned = [
        by_angles.calc_pose(angles + step * by_angles.calc_position_rates(angles, w)).R,
        by_quaternion.calc_pose(
            (q := by_quaternion.nearest_positions(by_angles.calc_pose(angles)))
            + step * by_quaternion.calc_position_rates(q, w)
        ).R,
    ]
    np.testing.assert_allclose(turned[0], turned[1], atol=100 * step**2)
    assert np.abs(turned[0] - by_angles.calc_pose(angles).R).max() > 0.1 * step
