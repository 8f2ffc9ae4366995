"""Quaternions go along with matrices, their rates with angular velocities, halves with halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation

from flexure.blocks import math as fm
from tests.blocks.math.samples import (
    EPS,
    differences,
    quaternions,
    random_rotation,
    rate,
    traced_slopes,
    vectors,
)
from tests.support.tiers import for_each

ONE = np.array([1.0, 0.0, 0.0, 0.0])


def of(axis: Any, angle: float) -> Any:
    """Return the quaternion of a rotation about an axis of any length."""
    return fm.quaternion_from_axis_angle(np.asarray(axis) / np.linalg.norm(axis), angle)


def up_to_sign(q: Any, expected: Any) -> Any:
    """Return that one of q and -q which is closer to what is expected."""
    return q * np.copysign(1.0, q @ expected)


@given(q_AB=quaternions, q_BC=quaternions)
def test_products_go_along_with_those_of_matrices(q_AB: Any, q_BC: Any) -> None:
    R_AC = fm.rotation_from_quaternion(q_AB) @ fm.rotation_from_quaternion(q_BC)
    q_AC = fm.quaternion_product(q_AB, q_BC)
    assert fm.rotation_from_quaternion(q_AC) == pytest.approx(R_AC, abs=16.0 * EPS)


@given(q_AB=quaternions)
def test_the_matrix_is_the_one_of_scipy(q_AB: Any) -> None:
    expected = Rotation.from_quat(np.roll(q_AB, -1)).as_matrix()
    assert fm.rotation_from_quaternion(q_AB) == pytest.approx(expected, abs=8.0 * EPS)


@given(q_AB=quaternions)
def test_the_conjugate_turns_back(q_AB: Any) -> None:
    back = fm.quaternion_product(q_AB, fm.quaternion_conjugate(q_AB))
    assert back == pytest.approx(ONE, abs=4.0 * EPS)


@pytest.mark.parametrize("scale", [-2.0, 1e-30, 1e30])
def test_the_length_of_a_quaternion_does_not_matter(scale: float) -> None:
    q_AB = of([1.0, 2.0, 3.0], 0.7)
    expected = fm.rotation_from_quaternion(q_AB)
    assert fm.rotation_from_quaternion(scale * q_AB) == pytest.approx(expected, abs=8.0 * EPS)
    unit = fm.canonical_quaternion(fm.normalized_quaternion(scale * q_AB))
    assert unit == pytest.approx(q_AB, abs=4.0 * EPS)


@given(q_AB=quaternions)
def test_a_quaternion_comes_back_from_its_matrix(q_AB: Any) -> None:
    found = fm.quaternion_from_rotation(fm.rotation_from_quaternion(q_AB))
    assert found[0] >= 0.0
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=2.0 * EPS)
    assert up_to_sign(found, q_AB) == pytest.approx(q_AB, abs=8.0 * EPS)


@pytest.mark.parametrize("k", range(3))
def test_a_half_turn_about_a_coordinate_axis_is_exact(k: int) -> None:
    axis = np.eye(3)[k]
    found = fm.quaternion_from_rotation(2.0 * np.outer(axis, axis) - np.eye(3))
    assert found.tolist() == [0.0, *axis]


@for_each("short_of_it", [0.0, 1e-15, 1e-9, 1e-4])
@for_each("seed", range(10))
def test_a_quaternion_is_exact_around_half_turns(seed: int, short_of_it: float) -> None:
    axis = np.random.default_rng(seed).normal(size=3)
    q_AB = of(axis, np.pi - short_of_it)
    found = fm.quaternion_from_rotation(fm.rotation_from_quaternion(q_AB))
    assert up_to_sign(found, q_AB) == pytest.approx(q_AB, abs=4.0 * EPS)


def test_of_both_quaternions_of_a_half_turn_that_with_the_positive_component_is_given() -> None:
    axis = np.array([0.6, -0.8, 0.0])
    found = fm.quaternion_from_rotation(2.0 * np.outer(axis, axis) - np.eye(3))
    assert found == pytest.approx([0.0, -0.6, 0.8, 0.0], abs=2.0 * EPS)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, np.pi - 1e-3, np.pi - 1e-9])
def test_slopes_along_rotations_are_exact(angle: float) -> None:
    R_AB = fm.rotation_about([0.0, 0.6, 0.8], angle)
    w_AB_A = np.array([0.3, -0.5, 0.7])
    slopes = traced_slopes(fm.quaternion_from_rotation, R_AB)
    expected = fm.quaternion_rate_from_w_A(fm.quaternion_from_rotation(R_AB), w_AB_A)
    found = slopes @ (fm.skew(w_AB_A) @ R_AB).ravel()
    assert found == pytest.approx(expected, abs=1e-14)


# Rates --------------------------------------------------------------------------------------------


@given(q_AB=quaternions, w=vectors)
def test_rates_of_a_quaternion_are_those_of_its_matrix(q_AB: Any, w: Any) -> None:
    w = w / 10.0
    R_AB = fm.rotation_from_quaternion(q_AB)
    in_parent, in_child = fm.quaternion_rate_from_w_A(q_AB, w), fm.quaternion_rate_from_w_B(q_AB, w)

    def matrix_rate(q_AB_rate: Any) -> Any:
        return rate(lambda t: fm.rotation_from_quaternion(q_AB + t * q_AB_rate))

    assert matrix_rate(in_parent) == pytest.approx(fm.skew(w) @ R_AB, abs=1e-9)
    assert matrix_rate(in_child) == pytest.approx(R_AB @ fm.skew(w), abs=1e-9)


@given(q_AB=quaternions, w=vectors)
def test_the_angular_velocity_comes_back_from_the_rate(q_AB: Any, w: Any) -> None:
    for scale in (1.0, -3.0):
        q = scale * q_AB
        growth = 0.7 * q  # of the length, which turns nothing
        q_rate = fm.quaternion_rate_from_w_A(q, w) + growth
        assert fm.w_A_from_quaternion_rate(q, q_rate) == pytest.approx(w, abs=1e-13)
        q_rate = fm.quaternion_rate_from_w_B(q, w) + growth
        assert fm.w_B_from_quaternion_rate(q, q_rate) == pytest.approx(w, abs=1e-13)


@given(q_AB=quaternions, w_AB_A=vectors)
def test_both_frames_give_one_rate(q_AB: Any, w_AB_A: Any) -> None:
    w_AB_B = fm.rotation_from_quaternion(q_AB).T @ w_AB_A
    expected = fm.quaternion_rate_from_w_A(q_AB, w_AB_A)
    assert fm.quaternion_rate_from_w_B(q_AB, w_AB_B) == pytest.approx(expected, abs=1e-13)
    assert expected @ q_AB == pytest.approx(0.0, abs=1e-13)


# Half rotations -----------------------------------------------------------------------------------


@given(q_AC=quaternions)
def test_half_a_rotation_twice_is_the_whole_one(q_AC: Any) -> None:
    q_AB = fm.half_rotation(q_AC)
    R_AB = fm.rotation_from_quaternion(q_AB)
    assert pytest.approx(fm.rotation_from_quaternion(q_AC), abs=16.0 * EPS) == R_AB @ R_AB
    assert q_AB[0] >= np.sqrt(0.5)
    assert np.array_equal(q_AB, fm.half_rotation(-q_AC)) or q_AC[0] == 0.0


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.5, 2.0, np.pi - 1e-9, np.pi])
def test_the_modified_rodrigues_vector_is_the_tangent_of_a_quarter(angle: float) -> None:
    axis = np.array([0.6, 0.0, -0.8])
    sigma = fm.modified_rodrigues(fm.quaternion_from_axis_angle(axis, angle))
    assert sigma == pytest.approx(np.tan(0.25 * angle) * axis, rel=8.0 * EPS)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.5, 2.0, np.pi - 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_the_angular_velocity_of_the_frame_halfway(seed: int, angle: float) -> None:
    rng = np.random.default_rng(seed)
    q_AC, w_AC_A = of(rng.normal(size=3), angle), rng.normal(size=3)

    def half_at(time: float) -> Any:
        turn = fm.quaternion_from_rotation_vector(time * w_AC_A)
        return fm.half_rotation(fm.quaternion_product(turn, q_AC))

    sigma = fm.modified_rodrigues(q_AC)
    expected = fm.w_A_from_quaternion_rate(half_at(0.0), rate(half_at))
    found = 0.5 * (w_AC_A - fm.cross(sigma, w_AC_A))
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("function", [fm.half_rotation, fm.modified_rodrigues])
@pytest.mark.parametrize("q_AC", [ONE, -ONE, of([1.0, 2.0, 2.0], 1e-9), of([1.0, 2.0, 2.0], 3.1)])
def test_slopes_of_halves_are_exact(function: Any, q_AC: Any) -> None:
    slopes = traced_slopes(function, q_AC)
    assert slopes == pytest.approx(differences(function, q_AC), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_half_turns_halve_to_quarter_turns(seed: int) -> None:
    R_AB = random_rotation(np.random.default_rng(seed))
    axis = R_AB[:, 0]
    half = fm.half_rotation(fm.quaternion_from_axis_angle(axis, np.pi))
    assert half == pytest.approx(of(axis, 0.5 * np.pi), abs=4.0 * EPS)
