"""Rotation matrices, axes with angles and rotation vectors, on both sides of their singular points.

Second routes are SciPy's Rotation, the matrix exponential, and differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from scipy.spatial.transform import Rotation

from flexure.blocks import math as fm
from flexure.blocks.math.rotation_vectors import arc_quotient, stumpff
from flexure.diagrams import scalars
from tests.blocks.math.samples import (
    EPS,
    angles,
    differences,
    flat,
    quaternions,
    rate,
    slopes_backward,
    traced,
    traced_slopes,
    values_of,
    vectors,
)
from tests.support.tiers import for_each

#: Unit vectors, three of them along axes.
AXES = [
    np.array([1.0, 0.0, 0.0]),
    np.array([0.0, -1.0, 0.0]),
    np.array([0.0, 0.0, 1.0]),
    np.array([2.0, -3.0, 6.0]) / 7.0,
    np.array([-0.6, 0.0, 0.8]),
]
#: Where formulas are singular, where series end (0.2 and 1), and close to it all.
LENGTHS = [
    *(0.0, 1e-300, 1e-12, 1e-9, 1e-4, 0.199, 0.201, 0.999999, 1.0, 1.000001, 2.5),
    *(np.pi - 1e-4, np.pi - 1e-9, np.pi),
]

along_every_axis = for_each("axis", AXES)
of_every_length = for_each("length", LENGTHS)


# Matrices about axes ------------------------------------------------------------------------------


@for_each("angle", [0.0, 0.3, -2.0, np.pi, 7.0])
@pytest.mark.parametrize(
    ("about", "axis"), [(fm.x_rotation, "x"), (fm.y_rotation, "y"), (fm.z_rotation, "z")]
)
def test_a_rotation_about_a_coordinate_axis_is_right_handed(
    about: Any, axis: str, angle: float
) -> None:
    assert about(angle) == pytest.approx(Rotation.from_euler(axis, angle).as_matrix(), abs=EPS)


@along_every_axis
@for_each("angle", [0.0, 1e-9, 0.3, -2.0, np.pi, 7.0])
def test_a_rotation_about_any_axis_is_the_matrix_exponential(axis: Any, angle: float) -> None:
    found = fm.rotation_about(axis, angle)
    assert found == pytest.approx(scipy.linalg.expm(angle * fm.skew(axis)), abs=1e-13)
    assert found == pytest.approx(Rotation.from_rotvec(angle * axis).as_matrix(), abs=8.0 * EPS)


@given(a=vectors, b=vectors)
def test_the_skew_matrix_makes_the_vector_product(a: Any, b: Any) -> None:
    assert fm.skew(a) @ b == pytest.approx(np.cross(a, b), abs=1e-13)
    assert fm.cross(a, b) == pytest.approx(np.cross(a, b), abs=1e-13)
    assert np.array_equal(fm.skew(a).T, -fm.skew(a))


# Axis and angle -----------------------------------------------------------------------------------


@along_every_axis
@of_every_length
def test_axis_and_angle_come_back_from_a_quaternion(axis: Any, length: float) -> None:
    found, angle = fm.axis_angle_from_quaternion(fm.quaternion_from_axis_angle(axis, length))
    assert angle == pytest.approx(length, abs=4.0 * EPS)
    if length > 1e-150:  # the square of anything smaller is zero
        assert found == pytest.approx(axis, abs=4.0 * EPS)


@along_every_axis
@for_each("angle", [1e-9, 0.3, np.pi - 1e-9])
def test_axis_and_angle_come_back_from_a_matrix(axis: Any, angle: float) -> None:
    found, length = fm.axis_angle_from_rotation(fm.rotation_about(axis, angle))
    assert length == pytest.approx(angle, abs=8.0 * EPS)
    assert found == pytest.approx(axis, abs=1e-7 if angle < 1e-6 else 8.0 * EPS)


def test_where_nothing_is_turned_the_axis_is_that_of_x() -> None:
    axis, angle = fm.axis_angle_from_rotation(np.eye(3))
    assert axis.tolist() == [1.0, 0.0, 0.0]
    assert angle == 0.0


def test_slopes_of_axis_and_angle_are_finite_where_nothing_is_turned() -> None:
    slopes = traced_slopes(fm.axis_angle_from_quaternion, np.array([1.0, 0.0, 0.0, 0.0]))
    assert not slopes.any()


# Rotation vectors ---------------------------------------------------------------------------------


@pytest.mark.full
@along_every_axis
@of_every_length
def test_the_matrix_of_a_rotation_vector_is_the_matrix_exponential(
    axis: Any, length: float
) -> None:
    theta = length * axis
    expected = scipy.linalg.expm(fm.skew(theta))
    found = fm.rotation_from_rotation_vector(theta)
    assert found == pytest.approx(expected, abs=1e-14)
    assert found == pytest.approx(fm.rotation_about(axis, length), abs=4.0 * EPS)
    through_quaternion = fm.rotation_from_quaternion(fm.quaternion_from_rotation_vector(theta))
    assert through_quaternion == pytest.approx(found, abs=8.0 * EPS)


@along_every_axis
@of_every_length
def test_a_rotation_vector_comes_back(axis: Any, length: float) -> None:
    theta = length * axis
    q_AB, R_AB = fm.quaternion_from_rotation_vector(theta), fm.rotation_from_rotation_vector(theta)
    for found in (fm.rotation_vector_from_quaternion(q_AB), fm.rotation_vector_from_rotation(R_AB)):
        # Of a half turn, either sign will do.
        sign = np.copysign(1.0, found @ axis) if length == np.pi else 1.0
        assert sign * found == pytest.approx(theta, rel=16.0 * EPS, abs=8.0 * EPS * length)


@given(q_AB=quaternions)
def test_a_rotation_vector_is_the_one_of_scipy(q_AB: Any) -> None:
    theta = fm.rotation_vector_from_quaternion(q_AB)
    assert np.linalg.norm(theta) <= np.pi * (1.0 + 4.0 * EPS)
    expected = Rotation.from_quat(np.roll(q_AB, -1)).as_matrix()
    assert Rotation.from_rotvec(theta).as_matrix() == pytest.approx(expected, abs=16.0 * EPS)


@for_each("scale", [-3.0, 1e-3, 1e3])
def test_length_and_sign_of_a_quaternion_do_not_matter(scale: float) -> None:
    for angle in (1e-3, 2.0):
        q_AB = fm.quaternion_from_axis_angle(AXES[3], angle)
        found = fm.rotation_vector_from_quaternion(scale * q_AB)
        assert found == pytest.approx(angle * AXES[3], rel=8.0 * EPS)


@for_each("axis", AXES[:3])
def test_a_half_turn_is_exact(axis: Any) -> None:
    theta = fm.rotation_vector_from_rotation(2.0 * np.outer(axis, axis) - np.eye(3))
    assert np.array_equal(theta, np.pi * np.abs(axis))


SMOOTH_AT_ZERO = {
    "quaternion of a rotation vector": (fm.quaternion_from_rotation_vector, np.zeros(3)),
    "matrix of a rotation vector": (fm.rotation_from_rotation_vector, np.zeros(3)),
    "rate matrix": (fm.rotation_vector_rate_matrix, np.zeros(3)),
    "velocity matrix": (fm.rotation_vector_velocity_matrix, np.zeros(3)),
    "rotation vector of a quaternion": (
        fm.rotation_vector_from_quaternion,
        np.array([1.0, 0.0, 0.0, 0.0]),
    ),
    "rotation vector of a matrix": (fm.rotation_vector_from_rotation, np.eye(3)),
}


@for_each("name", SMOOTH_AT_ZERO)
@for_each("distance", [0.0, 1e-9, 1e-3])
def test_slopes_are_exact_where_next_to_nothing_is_turned(name: str, distance: float) -> None:
    function, identity = SMOOTH_AT_ZERO[name]
    point = identity + distance * np.arange(1.0, identity.size + 1.0).reshape(identity.shape)
    expected = differences(function, point)
    assert traced_slopes(function, point) == pytest.approx(expected, abs=1e-10)
    assert slopes_backward(function, point) == pytest.approx(expected, abs=1e-10)


def test_second_slopes_of_a_rotation_are_exact_where_nothing_is_turned() -> None:
    zero = np.zeros(3)
    first = scalars.jacobian(traced(fm.rotation_from_rotation_vector, [zero]), [*values_of([zero])])
    second = scalars.jacobian(first.to_array().ravel(), [*values_of([zero])]).to_array()
    found = scalars.evaluate(second, values_of([zero])).reshape(3, 3, 3, 3)
    one = np.eye(3)  # R = 1 + [θ] + [θ]²/2 + ...
    products = np.einsum("ik,jl->ijkl", one, one) + np.einsum("il,jk->ijkl", one, one)
    expected = 0.5 * products - np.einsum("ij,kl->ijkl", one, one)
    assert found == pytest.approx(expected, abs=EPS)


@along_every_axis
@for_each("length", [*LENGTHS, 6.0])
def test_rates_of_a_rotation_vector_are_mapped_to_the_angular_velocity(
    axis: Any, length: float
) -> None:
    theta, theta_rate = length * axis, np.array([0.3, -0.5, 0.7])
    R_AB_rate = rate(lambda t: fm.rotation_from_rotation_vector(theta + t * theta_rate))
    R_AB = fm.rotation_from_rotation_vector(theta)
    velocity_matrix = fm.rotation_vector_velocity_matrix(theta)
    assert fm.skew(velocity_matrix @ theta_rate) @ R_AB == pytest.approx(R_AB_rate, abs=1e-10)
    assert R_AB @ fm.skew(velocity_matrix.T @ theta_rate) == pytest.approx(R_AB_rate, abs=1e-10)


@along_every_axis
@for_each("length", [*LENGTHS, 6.0])
def test_the_rate_matrix_of_a_rotation_vector_is_the_inverse(axis: Any, length: float) -> None:
    theta = length * axis
    product = fm.rotation_vector_rate_matrix(theta) @ fm.rotation_vector_velocity_matrix(theta)
    assert product == pytest.approx(np.eye(3), abs=1e-13 if length == 6.0 else 16.0 * EPS)


@given(theta=vectors, angle=angles)
def test_turning_about_a_fixed_axis_needs_no_matrix(theta: Any, angle: float) -> None:
    theta = theta * (angle / np.maximum(np.linalg.norm(theta), np.pi))
    assert fm.rotation_vector_rate_matrix(theta) @ theta == pytest.approx(theta, abs=16.0 * EPS)


# Quotients ----------------------------------------------------------------------------------------


@for_each("angle", [0.0, 1e-160, 1e-8, 0.5, 0.999999, 1.0, 1.000001, 3.0, 6.0, 50.0])
def test_stumpff_functions_are_quotients_of_angles_and_sines(angle: float) -> None:
    square = np.float64(angle * angle)
    found = [stumpff(k, square) for k in range(5)]
    x = np.longdouble(angle)
    if angle > 0.1:
        sine, cosine = np.sin(x), np.cos(x)
        quotients = [sine / x, (1 - cosine) / x**2, (x - sine) / x**3]
        expected = [cosine, *quotients, (x**2 / 2 - 1 + cosine) / x**4]
    else:
        expected = [1 - x**2 / 2, 1 - x**2 / 6, 0.5 - x**2 / 24, 1 / np.longdouble(6), 1 / 24]
    tolerance = 4e-16 * max(1.0, angle)  # cos θ is as uncertain as θ² is
    assert np.abs(np.array(found) - expected).max() < tolerance


@pytest.mark.parametrize("square", [0.0, 1e-12, 0.3, 0.999999, 1.0, 2.0, 9.0, 36.0])
def test_slopes_of_stumpff_functions_are_stumpff_functions(square: float) -> None:
    first_three = traced_slopes(
        lambda s: [stumpff(k, s) for k in range(3)], np.float64(square)
    ).ravel()
    expected = [0.5 * (k * stumpff(k + 2, square) - stumpff(k + 1, square)) for k in range(3)]
    assert first_three == pytest.approx(expected, abs=4.0 * EPS)


@for_each("angle", [0.0, 1e-9, 0.05, 0.0996, 0.0998, 0.3, 0.7, 1.5, np.pi / 2])
def test_the_arc_quotient_and_its_slopes_are_right_on_both_sides_of_its_seam(angle: float) -> None:
    sine, cosine = np.sin(angle), np.cos(angle)
    found = arc_quotient(sine * sine, cosine)
    assert found * sine == pytest.approx(angle, rel=4.0 * EPS)
    by_square, by_cosine = traced_slopes(arc_quotient, sine * sine, cosine)[0]
    assert by_cosine == pytest.approx(-1.0, rel=8.0 * EPS)
    expected = (cosine - found) / (2.0 * sine**2) if angle > 0.01 else -1.0 / 3.0
    assert by_square == pytest.approx(expected, rel=1e-12)


def test_no_reading_of_a_rotation_vector_divides_by_zero() -> None:
    with np.errstate(all="raise"):
        theta = np.zeros(3)
        assert np.array_equal(fm.rotation_from_rotation_vector(theta), np.eye(3))
        assert np.array_equal(fm.rotation_vector_rate_matrix(theta), np.eye(3))
        assert np.array_equal(flat(fm.rotation_vector_from_rotation(np.eye(3))), theta)
