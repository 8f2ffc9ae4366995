"""Jacobians map the velocities of the joints to those of points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flexure.blocks.math import shift_spatial_velocity, transform_point
from flexure.blocks.multibody.trees.kinematics import (
    calc_accelerations,
    calc_placements,
    jacobian_bias,
    spatial_jacobian,
)
from tests.blocks.math.samples import rate
from tests.support.mechanics.multibody import any_tree, drawn, random_tree, scale_of


@any_tree(15)
def test_a_jacobian_gives_the_velocity_of_any_point(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, rng = drawn(seed, count, random_frames)
    for number, (placement, motion) in enumerate(zip(state.placements, state.motions, strict=True)):
        point = rng.normal(size=3)
        J = spatial_jacobian(state.topology, state.placements, number, point)
        V = shift_spatial_velocity(motion.V_WB, placement.R_WB @ point)
        assert J @ state.v == pytest.approx(V, abs=1e-11 * scale_of(V))


@pytest.mark.full
@any_tree(8)
def test_columns_are_the_rates_of_the_point_by_the_positions(
    seed: int, count: int, random_frames: bool
) -> None:
    tree, state, rng = drawn(seed, count, random_frames)
    number, point = count, rng.normal(size=3)
    J = spatial_jacobian(state.topology, state.placements, number, point)[3:]
    for column, unit in zip(J.T, np.eye(len(state.v)), strict=True):
        dq = tree.position_rates(state.q, unit)

        def position(t: float, dq: Any = dq) -> Any:
            body = calc_placements(tree.topology, state.q + t * dq)[number]
            return transform_point((body.R_WB, body.p_WB), point)

        assert column == pytest.approx(rate(position), abs=1e-8)


@any_tree(8)
def test_the_bias_is_the_rate_of_the_jacobian(seed: int, count: int, random_frames: bool) -> None:
    tree, state, rng = drawn(seed, count, random_frames)
    number, point = count, rng.normal(size=3)
    dq = tree.position_rates(state.q, state.v)

    def velocity(t: float) -> Any:
        placements = calc_placements(tree.topology, state.q + t * dq)
        return spatial_jacobian(tree.topology, placements, number, point) @ state.v

    found = jacobian_bias(state.topology, state.placements, state.motions, number, point)
    expected = rate(velocity, 2e-4)
    assert found == pytest.approx(expected, abs=1e-7 * scale_of(expected))


@any_tree(15)
def test_accelerations_are_those_of_the_jacobian_and_its_bias(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, rng = drawn(seed, count, random_frames)
    vdot, origin = rng.normal(size=state.v.shape), np.zeros(3)
    accelerations = calc_accelerations(state.topology, state.placements, state.motions, vdot)
    for number, A in enumerate(accelerations):
        J = spatial_jacobian(state.topology, state.placements, number, origin)
        bias = jacobian_bias(state.topology, state.placements, state.motions, number, origin)
        assert pytest.approx(J @ vdot + bias, abs=1e-11 * scale_of(A)) == A


@pytest.mark.parametrize("kinds", [["weld"], ["revolute", "weld"]])
def test_the_world_and_what_is_welded_to_it_do_not_move(kinds: list[str]) -> None:
    rng = np.random.default_rng(2)
    state = random_tree(rng, 6, kinds=kinds).random_state(rng)
    nv = state.topology.num_velocities
    still = [0] + [
        mobilizer.outboard
        for mobilizer in state.topology.mobilizers
        if all(each.is_weld for each in state.topology.path_to(mobilizer.outboard))
    ]
    for number in still:
        J = spatial_jacobian(state.topology, state.placements, number, np.ones(3))
        bias = jacobian_bias(state.topology, state.placements, state.motions, number, np.ones(3))
        assert np.array_equal(J, np.zeros((6, nv)))
        assert np.array_equal(bias, np.zeros(6))
