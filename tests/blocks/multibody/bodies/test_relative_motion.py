"""Motions measured in frames that move, against differences of the poses that are seen there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError
from tests.support.mechanics.mechanisms import chain, random_context
from tests.support.mechanics.multibody import random_pose

STEP = 1e-5


def three_frames() -> tuple[fx.Plant, list[fx.Frame]]:
    """A tree, and frames on two of its bodies and on the world."""
    rng, builder = np.random.default_rng(8), chain("universal", "prismatic", "ball_quaternion")
    bodies = builder.bodies
    frames = [builder.add_frame(f"f{k}", bodies[k], random_pose(rng)) for k in (3, 1, 0)]
    return builder.build(), frames


def along_the_motion(plant: fx.Plant, context: fx.Context, ask: Any) -> tuple[Any, Any]:
    """Return what is asked for a moment before and a moment after."""
    x, rates = context.continuous_state, plant.eval_time_derivatives(context)
    answers = []
    for side in (-STEP, STEP):
        moved = context.clone()
        moved.continuous_state = x + side * rates
        answers.append(ask(moved))
    return answers[0], answers[1]


@pytest.mark.parametrize("seed", range(3))
def test_velocities_are_rates_of_poses_and_accelerations_those_of_velocities(seed: int) -> None:
    plant, (F, M, E) = three_frames()
    context = random_context(plant, np.random.default_rng(seed))
    before, after = along_the_motion(plant, context, lambda c: F.pose(c, measured_in=M))
    turn = Rotation.from_matrix(after.R @ before.R.T).as_rotvec()
    V_M = np.concatenate([turn, after.p - before.p]) / (2.0 * STEP)
    np.testing.assert_allclose(F.spatial_velocity(context, M, M), V_M, atol=1e-7)
    before, after = along_the_motion(plant, context, lambda c: F.spatial_velocity(c, M, M))
    A_M = (after - before) / (2.0 * STEP)
    np.testing.assert_allclose(F.spatial_acceleration(context, M, M), A_M, atol=1e-6)
    R_EM = E.pose(context).R.T @ M.pose(context).R
    in_E = F.spatial_velocity(context, measured_in=M, expressed_in=E)
    np.testing.assert_allclose(in_E, np.kron(np.eye(2), R_EM) @ V_M, atol=1e-7)


def test_jacobians_give_velocities_and_accelerations() -> None:
    plant, (F, M, E) = three_frames()
    context = random_context(plant, np.random.default_rng(4))
    v, vdot = plant.get_velocities(context), plant.calc_vdot(context)
    for frames in ((None, None), (M, None), (None, E), (M, E), (F.body, E), (plant.world, M)):
        J = plant.calc_jacobian(context, F, (0, 0, 0), *frames)
        bias = plant.calc_bias_spatial_acceleration(context, F, (0, 0, 0), *frames)
        V, A = F.spatial_velocity(context, *frames), F.spatial_acceleration(context, *frames)
        np.testing.assert_allclose(J @ v, V, atol=1e-12)
        np.testing.assert_allclose(J @ vdot + bias, A, atol=1e-10)


def test_velocities_do_not_ask_for_forces() -> None:
    plant, (F, M, _) = three_frames()
    context = plant.create_default_context()
    for body in plant.bodies[1:]:
        body.mass.set(context, 0.0)
    assert not F.spatial_velocity(context, M).any()


def test_frames_of_another_plant_are_refused() -> None:
    (plant, (F, _, _)), (_, (foreign, _, _)) = three_frames(), three_frames()
    context = plant.create_default_context()
    asks: list[Any] = [
        lambda: F.pose(context, foreign),
        lambda: F.spatial_velocity(context, foreign),
        lambda: F.spatial_velocity(context, None, foreign),
        lambda: F.spatial_acceleration(context, measured_in=foreign),
    ]
    for ask in asks:
        with pytest.raises(DeclarationError, match=r"frames of one plant.*another plant"):
            ask()
    for measured_in, expressed_in in ((foreign, None), (None, foreign)):
        with pytest.raises(UnknownNameError):
            plant.calc_jacobian(context, F, (0, 0, 0), measured_in, expressed_in)
    unknown: Any = "f1"
    with pytest.raises(DeclarationError, match="expected a Frame or a Body"):
        F.pose(context, unknown)
