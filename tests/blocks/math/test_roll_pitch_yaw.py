"""Roll, pitch and yaw are Drake's, also at half turns and in gimbal lock; their rates are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

from flexure.blocks import math as fm
from tests.blocks.math.samples import (
    EPS,
    angles,
    quaternions,
    rate,
    slopes_backward,
    traced_slopes,
    vectors,
)
from tests.oracle.reading import cases
from tests.support.tiers import for_each

QUARTER = 0.5 * np.pi
all_angles = st.tuples(angles, st.floats(-QUARTER, QUARTER), angles).map(np.array)
away_from_lock = st.tuples(angles, st.floats(-1.3, 1.3), angles).map(np.array)
IN_LOCK = [
    [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]],
    [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
    fm.rotation_from_rpy([0.5, QUARTER, 0.1]),
    fm.rotation_from_rpy([0.5, -QUARTER, 0.1]),
]


# Angles -------------------------------------------------------------------------------------------


@given(rpy=st.tuples(angles, angles, angles).map(np.array))
def test_the_matrix_is_a_product_of_three(rpy: Any) -> None:
    roll, pitch, yaw = rpy
    product = fm.z_rotation(yaw) @ fm.y_rotation(pitch) @ fm.x_rotation(roll)
    assert fm.rotation_from_rpy(rpy) == pytest.approx(product, abs=4.0 * EPS)
    scipys = Rotation.from_euler("ZYX", [yaw, pitch, roll]).as_matrix()
    assert fm.rotation_from_rpy(rpy) == pytest.approx(scipys, abs=8.0 * EPS)


@given(q_AB=quaternions)
def test_the_angles_of_any_matrix_give_the_matrix(q_AB: Any) -> None:
    R_AB = fm.rotation_from_quaternion(q_AB)
    for rpy in (fm.rpy_from_rotation(R_AB), fm.rpy_from_quaternion(q_AB)):
        assert np.all(np.abs(rpy) <= [np.pi, QUARTER, np.pi])
        assert fm.rotation_from_rpy(rpy) == pytest.approx(R_AB, abs=32.0 * EPS)


@given(rpy=all_angles)
def test_the_matrix_comes_back_also_in_gimbal_lock(rpy: Any) -> None:
    R_AB = fm.rotation_from_rpy(rpy)
    found = fm.rotation_from_rpy(fm.rpy_from_rotation(R_AB))
    assert found == pytest.approx(R_AB, abs=32.0 * EPS)


@given(roll=angles, yaw=angles, sign=st.sampled_from([-1.0, 1.0]), power=st.floats(-20.0, -1.0))
def test_the_matrix_comes_back_at_all_distances_from_lock(
    roll: float, yaw: float, sign: float, power: float
) -> None:
    R_AB = fm.rotation_from_rpy([roll, sign * (QUARTER - 10.0**power), yaw])
    found = fm.rotation_from_rpy(fm.rpy_from_rotation(R_AB))
    assert found == pytest.approx(R_AB, abs=32.0 * EPS)


@given(rpy=away_from_lock)
def test_angles_away_from_lock_come_back(rpy: Any) -> None:
    assert fm.rpy_from_rotation(fm.rotation_from_rpy(rpy)) == pytest.approx(rpy, abs=1e-14) or (
        np.abs(rpy).max() > np.pi - 1e-14  # π may come back as -π
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("roll", "yaw"), [(0.5, 0.1), (0.0, 0.0), (-1.0, 0.4), (2.0, 1.0)])
def test_in_gimbal_lock_roll_and_yaw_share_what_is_defined(
    roll: float, yaw: float, sign: float
) -> None:
    found = fm.rpy_from_rotation(fm.rotation_from_rpy([roll, sign * QUARTER, yaw]))
    share = 0.5 * (roll - sign * yaw)
    assert found == pytest.approx([share, sign * QUARTER, -sign * share], abs=4.0 * EPS)


@pytest.mark.parametrize(
    ("diagonal", "expected"),
    [
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
        ([1.0, -1.0, -1.0], [np.pi, 0.0, 0.0]),
        ([-1.0, 1.0, -1.0], [np.pi, 0.0, np.pi]),
        ([-1.0, -1.0, 1.0], [0.0, 0.0, np.pi]),
    ],
)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_half_turns_are_positive(diagonal: list[float], expected: list[float], zero: float) -> None:
    R_AB = np.full((3, 3), zero)
    np.fill_diagonal(R_AB, diagonal)
    found = fm.rpy_from_rotation(R_AB)
    assert found.tolist() == expected
    assert not np.signbit(found).any()


@for_each("case", cases("roll_pitch_yaw.json"))
def test_angles_and_rates_are_those_of_drake(case: dict[str, Any]) -> None:
    drakes = case["expected"]
    R_AB = fm.rotation_from_quaternion(case["q"])
    rpy = fm.rpy_from_rotation(R_AB)
    assert fm.rotation_from_rpy(drakes["rpy_from_matrix"]) == pytest.approx(
        fm.rotation_from_rpy(rpy), abs=4e-15
    )
    assert fm.quaternion_from_rotation(R_AB) == pytest.approx(
        drakes["quaternion_canonical"], abs=1e-15
    )
    assert (np.abs(fm.cos_pitch(rpy)) < 0.008) == drakes["throws"]
    if case["kind"] in ("random", "half_turn"):
        assert rpy == pytest.approx(drakes["rpy_from_matrix"], abs=1e-14)
    if not drakes["throws"]:
        tolerance = 1e-11 if fm.cos_pitch(rpy) > 0.05 else 1e-9
        rpy_rate = fm.rpy_rate_matrix(rpy) @ case["w_parent"]
        assert rpy_rate == pytest.approx(drakes["rpy_dt"], rel=tolerance)
        acceleration = fm.rpy_acceleration(rpy, rpy_rate, case["alpha_parent"])
        assert acceleration == pytest.approx(drakes["rpy_ddt"], rel=tolerance)
        assert R_AB.T @ case["w_parent"] == pytest.approx(drakes["w_child"], abs=1e-13)


@pytest.mark.parametrize("case", cases("joint_ball_rpy_kinematics.json"))
def test_matrices_are_those_of_drakes_ball_joint(case: dict[str, Any]) -> None:
    drakes, rpy = case["expected"], case["angles"]
    assert fm.rotation_from_rpy(rpy) == pytest.approx(np.array(drakes["R_FM"]), abs=2e-15)
    assert (np.abs(fm.cos_pitch(rpy)) < 0.001) == drakes["throws"]
    if drakes.get("Nplus") is not None:
        assert fm.rpy_velocity_matrix(rpy) == pytest.approx(np.array(drakes["Nplus"]), abs=4e-15)
    if drakes.get("N") is not None:
        assert fm.rpy_rate_matrix(rpy) == pytest.approx(np.array(drakes["N"]), rel=1e-12, abs=4e-15)


# Rates --------------------------------------------------------------------------------------------


@given(rpy=away_from_lock, rpy_rate=vectors)
def test_rates_are_mapped_to_the_angular_velocity(rpy: Any, rpy_rate: Any) -> None:
    rpy_rate = rpy_rate / 10.0
    R_AB_rate = rate(lambda t: fm.rotation_from_rpy(rpy + t * rpy_rate))
    w_AB_A = fm.rpy_velocity_matrix(rpy) @ rpy_rate
    assert fm.skew(w_AB_A) @ fm.rotation_from_rpy(rpy) == pytest.approx(R_AB_rate, abs=1e-9)


@given(rpy=away_from_lock)
def test_the_rate_matrix_is_the_inverse(rpy: Any) -> None:
    product = fm.rpy_rate_matrix(rpy) @ fm.rpy_velocity_matrix(rpy)
    assert product == pytest.approx(np.eye(3), abs=32.0 * EPS)


@given(rpy=all_angles, rpy_rate=vectors)
def test_the_rate_of_the_velocity_matrix(rpy: Any, rpy_rate: Any) -> None:
    rpy_rate = rpy_rate / 10.0
    expected = rate(lambda t: fm.rpy_velocity_matrix(rpy + t * rpy_rate))
    assert fm.rpy_velocity_matrix_rate(rpy, rpy_rate) == pytest.approx(expected, abs=1e-9)


@given(rpy=away_from_lock, rpy_rate=vectors, alpha=vectors)
def test_accelerations_are_mapped_to_the_angular_acceleration(
    rpy: Any, rpy_rate: Any, alpha: Any
) -> None:
    rpy_rate, alpha = rpy_rate / 10.0, alpha / 10.0
    acceleration = fm.rpy_acceleration(rpy, rpy_rate, alpha)

    def w_AB_A_at(t: float) -> Any:
        moved = rpy + t * rpy_rate + 0.5 * t * t * acceleration
        return fm.rpy_velocity_matrix(moved) @ (rpy_rate + t * acceleration)

    assert rate(w_AB_A_at, step=1e-4) == pytest.approx(alpha, abs=1e-7)


@pytest.mark.full
@given(rpy=away_from_lock, w_AB_A=vectors)
def test_slopes_along_rotations_are_the_rates(rpy: Any, w_AB_A: Any) -> None:
    R_AB = fm.rotation_from_rpy(rpy)
    slopes = traced_slopes(fm.rpy_from_rotation, R_AB)
    found = slopes @ (fm.skew(w_AB_A) @ R_AB).ravel()
    assert found == pytest.approx(fm.rpy_rate_matrix(rpy) @ w_AB_A, abs=1e-11)


@pytest.mark.parametrize("R_AB", IN_LOCK)
def test_slopes_are_finite_in_gimbal_lock(R_AB: Any) -> None:
    assert np.isfinite(traced_slopes(fm.rpy_from_rotation, R_AB)).all()
    assert np.isfinite(slopes_backward(fm.rpy_from_rotation, R_AB)).all()
