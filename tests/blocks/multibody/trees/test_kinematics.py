"""Velocities are the rates of poses, and accelerations those of velocities, in any tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flexure.blocks.math import compose_transforms, invert_transform, relative_velocity
from flexure.blocks.multibody.trees.kinematics import calc_accelerations, calc_placements
from tests.blocks.math.samples import rate
from tests.support.mechanics.multibody import any_tree, drawn, scale_of

STEP = 2e-4


@any_tree(8)
def test_velocities_are_the_rates_of_poses(seed: int, count: int, random_frames: bool) -> None:
    tree, state, _ = drawn(seed, count, random_frames)
    dq = tree.position_rates(state.q, state.v)

    def poses(t: float) -> Any:
        placements = calc_placements(tree.topology, state.q + t * dq)
        return np.array([[*each.R_WB.ravel(), *each.p_WB] for each in placements])

    rates = rate(poses, STEP)
    for placement, motion, row in zip(state.placements, state.motions, rates, strict=True):
        spin = row[:9].reshape(3, 3) @ placement.R_WB.T
        found, expected = motion.V_WB, [spin[2, 1], spin[0, 2], spin[1, 0], *row[9:]]
        assert found == pytest.approx(np.array(expected), abs=1e-7 * scale_of(rates))


@any_tree(8)
def test_accelerations_are_the_rates_of_velocities(
    seed: int, count: int, random_frames: bool
) -> None:
    tree, state, rng = drawn(seed, count, random_frames)
    dq = tree.position_rates(state.q, state.v)
    vdot = rng.normal(size=state.v.shape)

    def velocities(t: float) -> Any:
        moved = tree.at(state.q + t * dq, state.v + t * vdot)
        return np.array([motion.V_WB for motion in moved.motions])

    found = calc_accelerations(tree.topology, state.placements, state.motions, vdot)
    expected = rate(velocities, STEP)
    assert np.array(found) == pytest.approx(expected, abs=1e-7 * scale_of(expected))
    steady = calc_accelerations(tree.topology, state.placements, state.motions)
    zero = calc_accelerations(tree.topology, state.placements, state.motions, 0.0 * vdot)
    assert np.array(steady) == pytest.approx(np.array(zero), rel=1e-15, abs=1e-15)


@any_tree(8)
def test_a_placement_is_relative_to_the_body_inboard(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, _ = drawn(seed, count, random_frames)
    for mobilizer in state.topology.mobilizers:
        X_PF, X_MB = mobilizer.X_PF, mobilizer.X_MB
        X_FM = mobilizer.calc_pose(state.q[mobilizer.q])
        X_PB = compose_transforms(compose_transforms(X_PF, X_FM), X_MB)
        P, B = (state.placements[k] for k in (mobilizer.inboard, mobilizer.outboard))
        expected = compose_transforms((P.R_WB, P.p_WB), X_PB)
        for found, right in zip((B.R_WB, B.p_WB), expected, strict=True):
            assert found == pytest.approx(right, abs=1e-12)
        assert B.p_PB_W == pytest.approx(B.p_WB - P.p_WB, abs=1e-12)


@any_tree(8)
def test_the_motion_matrix_is_that_of_the_joint_at_the_origin_of_the_body(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, _ = drawn(seed, count, random_frames)
    for mobilizer in state.topology.mobilizers:
        P, B = (state.placements[k] for k in (mobilizer.inboard, mobilizer.outboard))
        X_WF = compose_transforms((P.R_WB, P.p_WB), mobilizer.X_PF)
        X_WM = compose_transforms((B.R_WB, B.p_WB), invert_transform(mobilizer.X_MB))
        H_FM = mobilizer.calc_motion_matrix(state.q[mobilizer.q])
        for found, expected in zip(B.H_PB_W.T, H_FM.T, strict=True):
            at_M = np.concatenate([found[:3], found[3:] + np.cross(found[:3], X_WM.p - B.p_WB)])
            seen = relative_velocity(X_WF, np.zeros(6), X_WM, at_M)
            assert seen == pytest.approx(expected, abs=1e-12)
        outside = np.delete(B.H_PB_W, mobilizer.rows, axis=0)
        assert not outside.any()


def test_the_world_stays_where_it_is() -> None:
    tree, state, _ = drawn(seed=1, count=3, random_frames=True)
    world, motion = state.placements[0], state.motions[0]
    assert np.array_equal(world.R_WB, np.eye(3))
    assert not world.p_WB.any()
    assert not motion.V_WB.any()
    accelerations = calc_accelerations(tree.topology, state.placements, state.motions)
    assert not accelerations[0].any()
