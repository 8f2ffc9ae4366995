"""The laws of bushings: forces, moments, energy and powers agree with each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.forces.bushings.bushing_law import RollPitchYawBushingLaw
from flexure.diagrams import scalars
from tests.blocks.math.samples import EPS, flat, traced, traced_slopes, values_of
from tests.support.mechanics.bushings import (
    LAWS,
    Sample,
    compute,
    compute_plainly,
    consistent_law,
    random_sample,
)
from tests.support.tiers import for_each

every_law = for_each("kind", LAWS)
conservative_laws = for_each("kind", ["consistent", "gimbal_free"])
seeds = for_each("seed", range(10))

NONE = np.zeros(3)
UNEQUAL = np.array([1000.0, 100.0, 10.0])
ARM = np.array([0.4, 0.3, -0.2])


def energy_slopes(kind: str, sample: Sample) -> Any:
    """Return the slopes of the stored energy along six unit velocities of C in A, by symbols."""
    law = LAWS[kind](*sample.constants)
    slopes = traced_slopes(lambda R, r: law.stored_energy(law.deformation((R, r))), *sample[1:3])
    moves = [fm.skew(V[:3]) @ sample.R_AC for V in np.eye(6)]
    moved = [np.concatenate([R.ravel(), V[3:]]) for R, V in zip(moves, np.eye(6), strict=True)]
    return np.stack(moved) @ slopes[0]


# Forces -------------------------------------------------------------------------------------------


@every_law
@seeds
def test_a_plainer_derivation_gives_the_same(kind: str, seed: int) -> None:
    sample = random_sample(seed)
    found = compute(LAWS[kind](*sample.constants), *sample[1:])
    expected = compute_plainly(kind, sample)
    sizes = {name: float(np.abs(part).max()) for name, part in expected._asdict().items()}
    summed = max(sizes.values())  # powers are sums of large terms of both signs
    for name, size in sizes.items():
        tolerance = 32.0 * EPS * (summed if "power" in name else size)
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=tolerance), name


@every_law
@seeds
def test_action_is_reaction(kind: str, seed: int) -> None:
    sample = random_sample(seed)
    found = compute(LAWS[kind](*sample.constants), *sample[1:])
    on_C_about_Ao = fm.shift_spatial_force(found.on_C, -sample.r)
    assert np.array_equal(found.on_A[3:], -found.on_C[3:])
    assert on_C_about_Ao == pytest.approx(-found.on_A, abs=32.0 * EPS * np.abs(found.on_A).max())


@seeds
def test_drakes_forces_act_at_the_point_halfway(seed: int) -> None:
    sample = random_sample(seed)
    found = compute(LAWS["drake"](*sample.constants), *sample[1:])
    on_C = fm.shift_spatial_force(found.on_C, -0.5 * sample.r)
    on_A = fm.shift_spatial_force(found.on_A, 0.5 * sample.r)
    without_force = compute(LAWS["drake"](*sample.constants[:2], NONE, NONE), *sample[1:])
    assert on_C[:3] == pytest.approx(without_force.on_C[:3], rel=1e-12)
    assert on_A[:3] == pytest.approx(without_force.on_A[:3], rel=1e-12)


@every_law
def test_a_stretched_mount_pulls_back_along_its_axes(kind: str) -> None:
    law = LAWS[kind](NONE, NONE, UNEQUAL, np.array([1.0, 2.0, 3.0]))
    found = compute(law, np.eye(3), ARM, np.array([0.0, 0.0, 0.0, 1.0, -1.0, 2.0]))
    assert found.on_C[3:] == pytest.approx([-401.0, -28.0, -4.0])


@every_law
@pytest.mark.parametrize("axis", range(3))
def test_a_mount_turned_about_one_axis_is_a_torsion_spring(kind: str, axis: int) -> None:
    law = LAWS[kind](np.array([5.0, 7.0, 9.0]), np.array([0.1, 0.2, 0.3]), NONE, NONE)
    along = np.eye(3)[axis]
    found = compute(law, fm.rotation_about(along, 1.1), NONE, np.concatenate([2.0 * along, NONE]))
    torque = -([5.0, 7.0, 9.0][axis] * 1.1 + [0.1, 0.2, 0.3][axis] * 2.0)
    assert found.on_C == pytest.approx(np.concatenate([torque * along, NONE]), abs=1e-14)
    assert found.on_C_in_C == pytest.approx(found.on_C, abs=1e-14)


@seeds
def test_both_variants_agree_for_equal_stiffness(seed: int) -> None:
    k0, d0, _, _ = random_sample(seed).constants
    equal = (k0, d0, np.full(3, 50.0), NONE)
    sample = random_sample(seed)._replace(constants=equal)
    drakes, ours = (compute(LAWS[kind](*equal), *sample[1:]) for kind in ("drake", "consistent"))
    assert ours.on_C == pytest.approx(drakes.on_C, rel=1e-12)
    assert ours.on_A == pytest.approx(drakes.on_A, rel=1e-12)


@every_law
def test_laws_agree_for_small_rotations_to_second_order(kind: str) -> None:
    sample = random_sample(3)
    turn, still = np.array([0.6, -0.8, 0.3]), np.zeros(6)
    errors = []
    for size in (1e-2, 1e-3):
        R_AC = fm.rotation_from_rotation_vector(size * turn)
        found = compute(LAWS[kind](*sample.constants), R_AC, size * ARM, still)
        linear = -np.concatenate([sample.constants[0] * turn, sample.constants[2] * ARM]) * size
        errors.append(np.abs(found.on_C - linear).max())
    assert errors[1] < 2e-2 * errors[0]


# Energy and power ---------------------------------------------------------------------------------


@every_law
@seeds
def test_powers_add_up_to_what_the_forces_do(kind: str, seed: int) -> None:
    sample = random_sample(seed)
    found = compute(LAWS[kind](*sample.constants), *sample[1:])
    done = found.on_C @ sample.V_AC
    total = found.conservative_power + found.non_conservative_power
    scale = abs(found.conservative_power) + abs(found.non_conservative_power)
    assert total == pytest.approx(done, abs=64.0 * EPS * scale)


@every_law
@seeds
def test_conservative_power_is_what_the_stored_energy_loses(kind: str, seed: int) -> None:
    sample = random_sample(seed)
    found = compute(LAWS[kind](*sample.constants), *sample[1:])
    assert -energy_slopes(kind, sample) @ sample.V_AC == pytest.approx(
        found.conservative_power, rel=1e-11, abs=1e-11
    )


@conservative_laws
@seeds
def test_spring_forces_are_the_slopes_of_the_energy(kind: str, seed: int) -> None:
    sample = random_sample(seed, damped=False)
    found = compute(LAWS[kind](*sample.constants), *sample[1:])
    expected = -energy_slopes(kind, sample)
    assert found.on_C == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
    assert found.non_conservative_power == 0.0


@conservative_laws
@for_each("seed", range(50))
def test_nothing_but_dampers_has_non_conservative_power(kind: str, seed: int) -> None:
    sample = random_sample(seed, turn=3.1)
    found = compute(LAWS[kind](*sample.constants), *sample[1:])
    dissipated = sample.constants[1] @ found.angle_rates**2
    dissipated += sample.constants[3] @ found.position_rate**2
    assert found.non_conservative_power == pytest.approx(-dissipated, rel=1e-13)


@for_each("seed", range(50))
def test_drakes_dampers_only_dissipate(seed: int) -> None:
    sample = random_sample(seed, turn=3.1)
    _, d0, _, d = sample.constants
    found = compute(LAWS["drake"](NONE, d0, NONE, d), *sample[1:])
    assert found.non_conservative_power < 0.0
    assert found.conservative_power == 0.0


@pytest.mark.parametrize(
    ("degrees", "power", "lost"),
    [
        (10.0, 6.031, 7.850),
        (30.0, 13.509, 19.293),
        (60.0, 25.038, 36.370),
        (90.0, 34.200, 48.739),
    ],
)
def test_drakes_springs_do_other_work_than_their_energy_tells(
    degrees: float, power: float, lost: float
) -> None:
    R_AC, V_AC = fm.z_rotation(np.deg2rad(degrees)), np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = compute(LAWS["drake"](NONE, NONE, UNEQUAL, NONE), R_AC, ARM, V_AC)
    assert found.on_C @ V_AC == pytest.approx(power, abs=5e-4)
    assert found.conservative_power == pytest.approx(lost, abs=5e-4)
    ours = compute(consistent_law(NONE, NONE, UNEQUAL, NONE), R_AC, ARM, V_AC)
    assert ours.on_C @ V_AC == pytest.approx(lost, abs=5e-4)


def work_around_a_loop(kind: str, *, turns: int = 1) -> float:
    """Return the work of the springs while C goes around a loop of orientations at one place."""
    law = LAWS[kind](np.array([3.0, 5.0, 7.0]), NONE, UNEQUAL, NONE)
    phases = turns * np.linspace(0.0, 2.0 * np.pi, 128, endpoint=False)
    work = 0.0
    for s in phases:
        rpy = 0.8 * np.array([np.cos(s), np.sin(s), 0.5 * np.sin(s + 0.7)])
        rpy_rate = 0.8 * np.array([-np.sin(s), np.cos(s), 0.5 * np.cos(s + 0.7)])
        w = fm.rpy_velocity_matrix(rpy) @ rpy_rate
        V_AC = np.concatenate([w, NONE])
        work += compute(law, fm.rotation_from_rpy(rpy), ARM, V_AC).on_C @ V_AC
    return float(work * turns * 2.0 * np.pi / len(phases))


@conservative_laws
def test_springs_do_no_work_around_a_loop(kind: str) -> None:
    assert work_around_a_loop(kind) == pytest.approx(0.0, abs=1e-12)


def test_drakes_springs_do_opposite_work_around_a_loop_and_back() -> None:
    assert work_around_a_loop("drake") == pytest.approx(-39.791, abs=5e-4)
    assert work_around_a_loop("drake", turns=-1) == pytest.approx(39.791, abs=5e-4)


# Rates --------------------------------------------------------------------------------------------


@every_law
@seeds
def test_rates_are_those_of_angles_and_position(kind: str, seed: int) -> None:
    sample = random_sample(seed)
    law = LAWS[kind](*sample.constants)
    arguments = sample[1:3]
    moved = np.concatenate([(fm.skew(sample.V_AC[:3]) @ sample.R_AC).ravel(), sample.V_AC[3:]])

    def coordinates(R: Any, r: Any) -> Any:
        now = law.deformation((R, r))
        return np.concatenate([now.angles, now.position])

    found = compute(law, *sample[1:])
    expected = traced_slopes(coordinates, *arguments) @ moved
    rates = np.concatenate([found.angle_rates, found.position_rate])
    assert rates == pytest.approx(expected, abs=1e-11)


# Gimbal lock --------------------------------------------------------------------------------------


def at_pitch(cosine: float, sign: float) -> Any:
    return fm.rotation_from_rpy([0.3, sign * np.arccos(cosine), -0.2])


@pytest.mark.parametrize("kind", ["drake", "consistent"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rates_are_refused_close_to_gimbal_lock(kind: str, sign: float) -> None:
    law = LAWS[kind](NONE, NONE, NONE, NONE)
    allowed, refused = (law.deformation((at_pitch(c, sign), ARM)) for c in (0.00801, 0.00799))
    assert np.isfinite(law.rates(allowed, np.ones(6)).angles).all()
    with pytest.raises(fx.errors.EvaluationError, match="gimbal lock"):
        law.rates(refused, np.ones(6))
    assert np.isfinite(law.stored_energy(refused))


def test_the_refusal_names_the_bushing_the_pitch_the_tolerance_and_two_ways_out() -> None:
    law = RollPitchYawBushingLaw(NONE, NONE, NONE, NONE, label="car.mount")
    with pytest.raises(
        fx.errors.EvaluationError,
        match=r"'car\.mount'.*0\.458 degrees.* -89\.943 degrees\. Orient .*, or use LinearBushing",
    ):
        law.rates(law.deformation((at_pitch(0.001, -1.0), ARM)), np.ones(6))


def test_symbols_become_not_a_number_where_numbers_are_refused() -> None:
    law = RollPitchYawBushingLaw(*random_sample(0).constants)

    def forces(R: Any, r: Any, V: Any) -> Any:
        now = law.deformation((R, r))
        return law.spatial_forces(now, law.rates(now, V))[1]

    for cosine, finite in ((0.00799, False), (0.00801, True)):
        arguments = [at_pitch(cosine, 1.0), ARM, np.ones(6)]
        found = scalars.evaluate(traced(forces, arguments), values_of(arguments))
        assert np.isfinite(found[:3]).all() == finite


# Readings -----------------------------------------------------------------------------------------


@every_law
@seeds
def test_symbols_give_the_numbers_of_floats(kind: str, seed: int) -> None:
    sample = random_sample(seed)

    def everything(*arguments: Any) -> Any:
        return flat(list(compute(LAWS[kind](*arguments[:4]), *arguments[4:])))

    arguments = [*sample.constants, *sample[1:]]
    found = scalars.evaluate(traced(everything, arguments), values_of(arguments))
    expected = everything(*arguments)
    assert found == pytest.approx(expected, abs=1e-13 * np.abs(expected).max())


@every_law
def test_at_rest_slopes_are_the_constants(kind: str) -> None:
    k0, d0, k, d = random_sample(1).constants

    def force(R: Any, r: Any, V: Any) -> Any:
        law = LAWS[kind](k0, d0, k, d)
        now = law.deformation((R, r))
        return law.spatial_forces(now, law.rates(now, V))[1]

    slopes = traced_slopes(force, np.eye(3), NONE, np.zeros(6))
    turns = np.stack([fm.skew(axis).ravel() for axis in np.eye(3)], axis=1)
    assert slopes[:, :9] @ turns == pytest.approx(-np.vstack([np.diag(k0), np.zeros((3, 3))]))
    assert slopes[:, 9:12] == pytest.approx(-np.vstack([np.zeros((3, 3)), np.diag(k)]))
    assert slopes[:, 12:] == pytest.approx(-np.diag(np.concatenate([d0, d])))


@every_law
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-5])
def test_tiny_rotations_give_tiny_torques(kind: str, size: float) -> None:
    k0, _, _, _ = random_sample(1).constants
    turn = np.array([0.6, -0.8, 0.3])
    R_AC = Rotation.from_rotvec(size * turn).as_matrix()
    found = compute(LAWS[kind](k0, NONE, NONE, NONE), R_AC, NONE, np.zeros(6))
    assert found.on_C[:3] == pytest.approx(-size * k0 * turn, rel=1e-4)
