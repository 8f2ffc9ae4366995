"""The planar and the universal joint: their motions, and the best matches of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import RigidTransform, rotation_from_rpy, x_rotation, y_rotation
from tests.blocks.multibody.joints.samples import joint_of

PLANAR = joint_of(fx.PlanarJoint)
UNIVERSAL = joint_of(fx.UniversalJoint)
ANGLES = np.linspace(-np.pi, np.pi, 361)


def random_pose(seed: int) -> RigidTransform:
    rng = np.random.default_rng(seed)
    return RigidTransform(rotation_from_rpy(rng.uniform(-3, 3, 3)), rng.normal(size=3))


def likeness(joint: fx.multibody.Joint, q: Any, pose: RigidTransform) -> float:
    return float(np.trace(joint.calc_pose(np.asarray(q)).R.T @ pose.R))


# Planar -------------------------------------------------------------------------------------------


def test_a_puck_moves_and_turns_in_the_plane() -> None:
    R, p = PLANAR().calc_pose(np.array([3.0, 4.0, np.pi / 2]))
    np.testing.assert_allclose(R, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-16)
    np.testing.assert_array_equal(p, [3.0, 4.0, 0.0])
    V = PLANAR().calc_motion_matrix(np.zeros(3)) @ [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(V, [0.0, 0.0, 3.0, 1.0, 2.0, 0.0])


@pytest.mark.parametrize("seed", range(4))
def test_no_other_place_in_the_plane_is_nearer(seed: int) -> None:
    joint, pose = PLANAR(), random_pose(seed)
    q = joint.nearest_positions(pose)
    np.testing.assert_array_equal(joint.calc_pose(q).p, [*pose.p[:2], 0.0])
    best = likeness(joint, q, pose)
    assert best >= max(likeness(joint, [0.0, 0.0, angle], pose) for angle in ANGLES) - 1e-14


def test_no_other_motion_in_the_plane_is_nearer() -> None:
    joint, V = PLANAR(), np.arange(1.0, 7.0)
    H = joint.calc_motion_matrix(np.zeros(3))
    expected = np.linalg.lstsq(H, V, rcond=None)[0]
    np.testing.assert_allclose(joint.nearest_velocities(np.zeros(3), V), expected, rtol=1e-15)


# Universal ----------------------------------------------------------------------------------------


def test_a_cross_turns_about_x_of_the_parent_and_then_about_y_of_the_child() -> None:
    q = np.array([0.4, -2.0])
    R, _ = UNIVERSAL().calc_pose(q)
    np.testing.assert_allclose(R, x_rotation(0.4) @ y_rotation(-2.0), atol=1e-16)


def test_the_axes_of_the_cross_stay_at_right_angles() -> None:
    for q in ([0.0, np.pi / 2], [1.0, -np.pi / 2], [3.0, 0.2]):
        H = UNIVERSAL().calc_motion_matrix(np.array(q))
        np.testing.assert_allclose(H.T @ H, np.eye(2), atol=1e-15)


def test_at_an_angle_the_driven_shaft_turns_unevenly() -> None:
    """The shafts z of F and z of M, at an angle β, turn in bearings; the cross connects them.

    Where the axis of the cross on F is at right angles to both shafts, the driven one is slower by
    cos β; a quarter turn later it is faster by 1 / cos β.
    """
    beta, joint = 0.5, UNIVERSAL()
    for q, expected in [([beta, 0.0], np.cos(beta)), ([0.0, beta], 1.0 / np.cos(beta))]:
        R, _ = joint.calc_pose(np.array(q))
        H = joint.calc_motion_matrix(np.array(q))[:3]
        # The angular velocities z_F of F and (rate z_M) of M differ by a motion of the joint.
        rate, *_ = np.linalg.solve(np.column_stack([R[:, 2], -H]), [0.0, 0.0, 1.0])
        assert rate == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_the_cross_is_matched_first_and_then_the_shaft(seed: int) -> None:
    joint, pose = UNIVERSAL(), random_pose(seed)
    q = joint.nearest_positions(pose)
    nearness = [x_rotation(angle)[:, 1] @ pose.R[:, 1] for angle in ANGLES]
    assert x_rotation(q[0])[:, 1] @ pose.R[:, 1] >= max(nearness) - 1e-14
    best = likeness(joint, q, pose)
    assert best >= max(likeness(joint, [q[0], angle], pose) for angle in ANGLES) - 1e-14


@pytest.mark.parametrize("seed", range(4))
def test_no_other_rates_are_nearer_to_a_motion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    joint, q, V = UNIVERSAL(), rng.uniform(-3, 3, 2), rng.normal(size=6)
    expected = np.linalg.lstsq(joint.calc_motion_matrix(q), V, rcond=None)[0]
    np.testing.assert_allclose(joint.nearest_velocities(q, V), expected, atol=1e-14)
