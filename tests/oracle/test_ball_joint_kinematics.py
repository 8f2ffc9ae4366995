"""The ball joint with roll, pitch and yaw agrees with Drake, also where both refuse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_quaternion
from tests.oracle.models import pose
from tests.oracle.reading import cases, read

FILE = "joint_ball_rpy_kinematics.json"
every_case = pytest.mark.parametrize("case", cases(FILE))


class Mechanism(NamedTuple):
    """A body on a ball joint to the world, in the state of a case."""

    joint: fx.BallRpyJoint
    body: fx.Body
    context: fx.Context


def mechanism(case: dict[str, Any]) -> Mechanism:
    builder = fx.PlantBuilder("oracle")
    body = builder.add_body("B", fx.SpatialInertia.solid_box(mass=1.0, size=(1.0, 1.0, 1.0)))
    F = builder.add_frame("F", builder.world, pose(case["X_PF"]))
    M = builder.add_frame("M", body, pose(case["X_BM"]))
    joint = builder.add_joint(fx.BallRpyJoint("ball", F, M))
    context = builder.build().create_default_context()
    joint.angles.set(context, case["angles"])
    joint.angular_velocity.set(context, case["w_FM"])
    return Mechanism(joint, body, context)


def close(found: Any, expected: Any, case: dict[str, Any]) -> None:
    """Compare relative to the largest number, less closely near gimbal lock."""
    tolerance = 1e-11 if abs(np.cos(case["angles"][1])) >= 0.05 else 1e-9
    scale = max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * scale)


@every_case
def test_poses_and_motions_of_the_frames(case: dict[str, Any]) -> None:
    joint, _, context = mechanism(case)
    expected = case["expected"]
    close(joint.pose.get(context).R, expected["R_FM"], case)
    np.testing.assert_array_equal(joint.pose.get(context).p, np.zeros(3))
    V = [*expected["w_FM_F"], *expected["v_FMo_F"]]
    close(joint.spatial_velocity.get(context), V, case)


@every_case
def test_pose_and_motion_of_the_body_in_the_world(case: dict[str, Any]) -> None:
    _, body, context = mechanism(case)
    X, V = case["expected"]["X_WB"], case["expected"]["V_WB"]
    close(body.pose(context).R, rotation_from_quaternion(np.array(X["q"])), case)
    close(body.pose(context).p, X["p"], case)
    close(body.spatial_velocity(context), [*V["w"], *V["v"]], case)


@every_case
def test_angles_are_kept_as_they_are_set(case: dict[str, Any]) -> None:
    joint, _, context = mechanism(case)
    assert joint.angles.get(context).tolist() == case["expected"]["get_angles"]


@every_case
def test_angles_that_are_taken_from_a_pose(case: dict[str, Any]) -> None:
    joint, _, context = mechanism(case)
    before = joint.pose.get(context)
    joint.pose.set(context, before)
    close(joint.pose.get(context).R, before.R, case)
    if case["kind"] != "singular":  # where angles by themselves are not well defined
        close(joint.angles.get(context), case["expected"]["rpy_canonical_from_R"], case)


@every_case
def test_velocities_that_belong_to_rates_of_the_angles(case: dict[str, Any]) -> None:
    joint, _, _ = mechanism(case)
    q, q_rate = np.array(case["angles"]), np.array(case["qdot"])
    close(joint.calc_velocities(q, q_rate), case["expected"]["v_from_qdot"], case)
    columns = [joint.calc_velocities(q, unit) for unit in np.eye(3)]
    close(np.column_stack(columns), case["expected"]["Nplus"], case)


@every_case
def test_rates_of_the_angles_that_belong_to_velocities(case: dict[str, Any]) -> None:
    joint, _, context = mechanism(case)
    q, v, expected = np.array(case["angles"]), np.array(case["w_FM"]), case["expected"]
    if expected["throws"]:
        with pytest.raises(fx.errors.EvaluationError, match=r"'ball'.*gimbal lock"):
            joint.calc_position_rates(q, v)
        with pytest.raises(fx.errors.EvaluationError, match=r"'ball'.*gimbal lock"):
            joint.tree.eval_time_derivatives(context)
        return
    close(joint.calc_position_rates(q, v), expected["qdot_from_v"], case)
    close(joint.tree.eval_time_derivatives(context)[:3], expected["qdot_from_v"], case)
    columns = [joint.calc_position_rates(q, unit) for unit in np.eye(3)]
    close(np.column_stack(columns), expected["N"], case)


def test_the_tolerance_is_that_of_drake() -> None:
    tolerance = read(FILE)["constants"]["singularity_tolerance_cos_pitch"]
    joint = fx.BallRpyJoint("ball", fx.Body("P"), fx.Body("B"))
    just_allowed, refused = (np.arccos(tolerance * factor) for factor in (1 + 1e-9, 1 - 1e-9))
    joint.calc_position_rates(np.array([0.0, just_allowed, 0.0]), np.zeros(3))
    with pytest.raises(fx.errors.EvaluationError):
        joint.calc_position_rates(np.array([0.0, refused, 0.0]), np.zeros(3))
