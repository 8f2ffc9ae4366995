"""Poses, spatial vectors and inertias: what is physical survives shifts and rotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given

from flexure.blocks import math as fm
from flexure.diagrams import scalars
from tests.blocks.math.samples import (
    EPS,
    quaternions,
    random_positive_matrix,
    random_rotation,
    rate,
    spatial_vectors,
    vectors,
)


def cloud_of_points(seed: int) -> tuple[Any, Any]:
    """Draw masses and positions of the points of a rigid body."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1.0, 8), rng.normal(size=(8, 3))


def summed(masses: Any, positions: Any) -> fm.MassProperties:
    """Add up the spatial inertia of points about the origin of their positions."""
    com = masses @ positions / masses.sum()
    inertia = sum(-m * fm.skew(p) @ fm.skew(p) for m, p in zip(masses, positions, strict=True))
    return fm.MassProperties(masses.sum(), com, inertia)


def almost(M: fm.MassProperties, expected: fm.MassProperties) -> None:
    """Check that two spatial inertias are equal to rounding."""
    for found, right in zip(M, expected, strict=True):
        assert found == pytest.approx(right, rel=1e-13, abs=1e-13)


def homogeneous(X_AB: fm.RigidTransform) -> Any:
    """Return the matrix of a pose with four rows."""
    return np.block([[X_AB.R, X_AB.p[:, np.newaxis]], [np.zeros((1, 3)), np.ones((1, 1))]])


def random_pose(rng: np.random.Generator) -> fm.RigidTransform:
    return fm.RigidTransform(random_rotation(rng), rng.normal(size=3))


# Poses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_poses_are_composed_and_inverted_like_their_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X_AB, X_BC, p_BQ = random_pose(rng), random_pose(rng), rng.normal(size=3)
    X_AC = homogeneous(X_AB) @ homogeneous(X_BC)
    assert homogeneous(fm.compose_transforms(X_AB, X_BC)) == pytest.approx(X_AC, abs=4.0 * EPS)
    X_BA = np.linalg.inv(homogeneous(X_AB))
    assert homogeneous(fm.invert_transform(X_AB)) == pytest.approx(X_BA, abs=1e-14)
    p_AQ = homogeneous(X_AB) @ [*p_BQ, 1.0]
    assert fm.transform_point(X_AB, p_BQ) == pytest.approx(p_AQ[:3], abs=4.0 * EPS)


@pytest.mark.parametrize("seed", range(5))
def test_the_pose_between_two_frames_leads_from_one_to_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X_WA, X_WB = random_pose(rng), random_pose(rng)
    X_AB = fm.relative_pose(X_WA, X_WB)
    found = homogeneous(fm.compose_transforms(X_WA, X_AB))
    assert found == pytest.approx(homogeneous(X_WB), abs=8.0 * EPS)


def test_small_distances_far_away_keep_their_digits() -> None:
    R = fm.rotation_from_rpy([0.3, -0.4, 0.5])
    far = np.array([2.0**40, -(2.0**40), 2.0**40])
    step = np.array([1.0, 2.0, -3.0])
    X_AB = fm.relative_pose((R, far), (R, far + step))
    assert X_AB.p == pytest.approx(R.T @ step, abs=8.0 * EPS)


# Velocities, forces, momenta ----------------------------------------------------------------------


@given(V=spatial_vectors, p=vectors)
def test_points_of_a_turning_body_move_as_differences_say(V: Any, p: Any) -> None:
    w, v = V[:3] / 10.0, V[3:]
    step = 1e-5
    ahead, behind = (fm.rotation_from_rotation_vector(h * w) for h in (step, -step))
    moved = v + (ahead - behind) @ p / (2.0 * step)
    found = fm.shift_spatial_velocity([*w, *v], p)
    assert found == pytest.approx([*w, *moved], abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_relative_velocities_are_the_rates_of_relative_poses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X_WA, X_WB = random_pose(rng), random_pose(rng)
    V_WA, V_WB = rng.normal(size=(2, 6))

    def moved(X: fm.RigidTransform, V: Any, t: float) -> fm.RigidTransform:
        return fm.RigidTransform(fm.rotation_from_rotation_vector(t * V[:3]) @ X.R, X.p + t * V[3:])

    def pose_at(t: float) -> Any:
        return homogeneous(fm.relative_pose(moved(X_WA, V_WA, t), moved(X_WB, V_WB, t)))

    w_AB, v_AB = np.split(fm.relative_velocity(X_WA, V_WA, X_WB, V_WB), 2)
    R_AB = pose_at(0.0)[:3, :3]
    slopes = rate(pose_at)
    assert slopes[:3, :3] == pytest.approx(fm.skew(w_AB) @ R_AB, abs=1e-9)
    assert slopes[:3, 3] == pytest.approx(v_AB, abs=1e-9)


@given(V=spatial_vectors, F=spatial_vectors, p=vectors)
def test_the_power_of_a_force_is_the_same_at_all_points(V: Any, F: Any, p: Any) -> None:
    power = fm.dot(F, V)
    found = fm.dot(fm.shift_spatial_force(F, p), fm.shift_spatial_velocity(V, p))
    assert found == pytest.approx(power, abs=1e-10)


@pytest.mark.full
@pytest.mark.parametrize(
    "shift", [fm.shift_spatial_velocity, fm.shift_spatial_force, fm.shift_spatial_momentum]
)
@given(S=spatial_vectors, p=vectors, q=vectors)
def test_two_shifts_are_one(shift: Any, S: Any, p: Any, q: Any) -> None:
    assert shift(shift(S, p), q) == pytest.approx(shift(S, p + q), abs=1e-11)
    assert shift(shift(S, p), -p) == pytest.approx(S, abs=1e-11)


@given(q_AB=quaternions, V=spatial_vectors, F=spatial_vectors)
def test_power_does_not_depend_on_the_frame(q_AB: Any, V: Any, F: Any) -> None:
    R_AB = fm.rotation_from_quaternion(q_AB)
    found = fm.dot(fm.rotate_spatial(R_AB, F), fm.rotate_spatial(R_AB, V))
    assert found == pytest.approx(fm.dot(F, V), abs=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_cross_products_are_the_rates_of_moving_along(seed: int) -> None:
    rng = np.random.default_rng(seed)
    V, S = rng.normal(size=6), rng.normal(size=6)
    # One second of the velocity V takes a frame from A to B; what is fixed in it moves along.
    twist = np.block([[fm.skew(V[:3]), V[3:, np.newaxis]], [np.zeros((1, 4))]])
    X_AB = scipy.linalg.expm(twist)
    R_AB, p_AB = X_AB[:3, :3], X_AB[:3, 3]
    for cross, shift in (
        (fm.motion_cross_motion, fm.shift_spatial_velocity),
        (fm.motion_cross_force, fm.shift_spatial_force),
    ):
        matrix = np.stack([cross(V, column) for column in np.eye(6)], axis=1)
        expected = scipy.linalg.expm(matrix) @ S
        assert shift(fm.rotate_spatial(R_AB, S), -p_AB) == pytest.approx(expected, abs=1e-13)


@given(V=spatial_vectors, M=spatial_vectors, F=spatial_vectors)
def test_cross_products_leave_power_alone(V: Any, M: Any, F: Any) -> None:
    motion = fm.dot(fm.motion_cross_motion(V, M), F)
    force = fm.dot(M, fm.motion_cross_force(V, F))
    assert motion + force == pytest.approx(0.0, abs=1e-10)
    assert fm.motion_cross_motion(V, V) == pytest.approx(np.zeros(6), abs=1e-12)


# Inertias -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@given(p=vectors)
def test_an_inertia_is_shifted_as_its_points_are(seed: int, p: Any) -> None:
    masses, positions = cloud_of_points(seed)
    shifted = fm.shift_mass_properties(summed(masses, positions), p)
    expected = summed(masses, positions - p)
    assert shifted.com == pytest.approx(expected.com, abs=1e-13)
    assert shifted.inertia == pytest.approx(expected.inertia, abs=1e-11)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@given(q_AB=quaternions)
def test_an_inertia_is_turned_as_its_points_are(seed: int, q_AB: Any) -> None:
    masses, positions = cloud_of_points(seed)
    R_AB = fm.rotation_from_quaternion(q_AB)
    turned = fm.rotate_mass_properties(R_AB, summed(masses, positions))
    almost(turned, summed(masses, positions @ R_AB.T))


@pytest.mark.parametrize("seed", range(3))
@given(V=spatial_vectors)
def test_momentum_and_energy_are_the_sums_over_the_points(seed: int, V: Any) -> None:
    masses, positions = cloud_of_points(seed)
    velocities = V[3:] + np.cross(V[:3], positions)
    momenta = masses[:, np.newaxis] * velocities
    M = summed(masses, positions)
    L = fm.spatial_momentum(M, V)
    assert L[3:] == pytest.approx(momenta.sum(axis=0), abs=1e-11)
    assert L[:3] == pytest.approx(np.cross(positions, momenta).sum(axis=0), abs=1e-11)
    assert fm.spatial_inertia_matrix(M) @ V == pytest.approx(L, abs=1e-11)
    energy = 0.5 * np.sum(momenta * velocities)
    assert fm.kinetic_energy(M, V) == pytest.approx(energy, rel=1e-12, abs=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@given(V=spatial_vectors, p=vectors, q_AB=quaternions)
def test_kinetic_energy_depends_on_neither_point_nor_frame(
    seed: int, V: Any, p: Any, q_AB: Any
) -> None:
    M = summed(*cloud_of_points(seed))
    R_AB = fm.rotation_from_quaternion(q_AB)
    shifted = fm.shift_mass_properties(M, p), fm.shift_spatial_velocity(V, p)
    turned = fm.rotate_mass_properties(R_AB, M), fm.rotate_spatial(R_AB, V)
    energy = fm.kinetic_energy(M, V)
    assert fm.kinetic_energy(*shifted) == pytest.approx(energy, rel=1e-9, abs=1e-9)
    assert fm.kinetic_energy(*turned) == pytest.approx(energy, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@given(V=spatial_vectors, p=vectors)
def test_momentum_is_shifted_like_the_body(seed: int, V: Any, p: Any) -> None:
    M = summed(*cloud_of_points(seed))
    L = fm.shift_spatial_momentum(fm.spatial_momentum(M, V), p)
    found = fm.spatial_momentum(fm.shift_mass_properties(M, p), fm.shift_spatial_velocity(V, p))
    assert found == pytest.approx(L, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
@given(p=vectors)
def test_a_matrix_is_shifted_like_the_body(seed: int, p: Any) -> None:
    M = summed(*cloud_of_points(seed))
    found = fm.shift_inertia_matrix(fm.spatial_inertia_matrix(M), p)
    expected = fm.spatial_inertia_matrix(fm.shift_mass_properties(M, p))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("seed", range(3))
@given(p=vectors)
def test_any_symmetric_matrix_is_shifted_as_velocities_and_forces_are(seed: int, p: Any) -> None:
    P = random_positive_matrix(np.random.default_rng(seed), 6)
    found = fm.shift_inertia_matrix(P, p)
    for V in np.eye(6):
        expected = fm.shift_spatial_force(P @ fm.shift_spatial_velocity(V, -p), p)
        assert found @ V == pytest.approx(expected, rel=1e-12, abs=1e-10)
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("seed", range(3))
def test_any_symmetric_matrix_is_turned_as_velocities_and_forces_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, R = random_positive_matrix(rng, 6), random_rotation(rng)
    found = fm.rotate_inertia_matrix(R, P)
    for V in np.eye(6):
        expected = fm.rotate_spatial(R, P @ fm.rotate_spatial(R.T, V))
        assert found @ V == pytest.approx(expected, rel=1e-13, abs=1e-13)
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("seed", range(3))
def test_turned_inertias_are_exactly_symmetric(seed: int) -> None:
    rng = np.random.default_rng(seed)
    turned = fm.rotate_mass_properties(random_rotation(rng), summed(*cloud_of_points(seed)))
    assert np.array_equal(turned.inertia, turned.inertia.T)


def test_mirrored_entries_of_inertias_of_symbols_are_one_symbol() -> None:
    graph = scalars.Graph()
    mass, com = scalars.symbols(graph, "mass", ()), scalars.symbols(graph, "com", 3)
    inertia = fm.mirrored(scalars.symbols(graph, "inertia", (3, 3)))
    R_AB, p = scalars.symbols(graph, "R", (3, 3)), scalars.symbols(graph, "p", 3)
    turned = fm.rotate_mass_properties(R_AB, fm.MassProperties(mass, com, inertia))
    for matrix in (
        turned.inertia,
        fm.shift_inertia_matrix(fm.spatial_inertia_matrix(turned), p),
        fm.rotate_inertia_matrix(R_AB, fm.spatial_inertia_matrix(turned)),
    ):
        pairs = zip(matrix.flat, matrix.T.flat, strict=True)
        assert all(entry is mirror or entry == mirror == 0.0 for entry, mirror in pairs)


@given(a=vectors, b=vectors, c=vectors)
def test_columns_are_multiplied_one_by_one(a: Any, b: Any, c: Any) -> None:
    expected = np.stack([fm.cross(a, b), fm.cross(a, c)], axis=1)
    columns = np.stack([b, c], axis=1)
    assert np.array_equal(fm.cross(a, columns), expected)
    assert np.array_equal(fm.cross(columns, a), -expected)


def test_the_matrix_of_an_inertia_is_symmetric_and_solves_for_the_acceleration() -> None:
    rng = np.random.default_rng(7)
    M = fm.MassProperties(1.5, rng.normal(size=3), 5.0 * random_positive_matrix(rng, 3))
    about_com = fm.MassProperties(M.mass, np.zeros(3), M.inertia)
    M_SP = fm.shift_mass_properties(about_com, -M.com)
    matrix = fm.spatial_inertia_matrix(M_SP)
    assert np.array_equal(matrix, matrix.T)
    F = rng.normal(size=6)
    A = fm.solve_symmetric(matrix, F)
    # Newton and Euler about the center of mass, from which the body was shifted
    about_center = fm.shift_spatial_force(F, M.com)
    alpha = np.linalg.solve(M.inertia, about_center[:3])
    assert A[:3] == pytest.approx(alpha, rel=1e-12)
    assert A[3:] + np.cross(alpha, M.com) == pytest.approx(F[3:] / M.mass, rel=1e-12)
