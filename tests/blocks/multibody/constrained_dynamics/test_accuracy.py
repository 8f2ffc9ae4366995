"""Accelerations of loops with short levers and uneven masses beside dense solutions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

import flexure as fx
from flexure.diagrams.values.arrays import FloatArray
from tests.support.tiers import by_tier


def closed(seed: int) -> tuple[fx.Plant, fx.Context, list[fx.Frame]]:
    """Return a chain of bars that is closed as it stands, with velocities that fit.

    Its tip is held by a weld, or by two balls.
    """
    rng = np.random.default_rng(seed)
    builder = fx.PlantBuilder("chain", gravity=5.0 * rng.normal(size=3))
    inner, p, R = builder.world.frame, np.zeros(3), np.eye(3)
    for k in range(int(rng.integers(4, 9))):
        mass, length = 10.0 ** rng.uniform([-2.0, -1.0], [1.5, 0.0])
        box = fx.SpatialInertia.solid_box(mass, size=length * rng.uniform(0.1, 1.0, size=3))
        body = builder.add_body(f"bar{k}", box, com=0.5 * length * rng.normal(size=3))
        axis = rng.normal(size=3)
        joint = builder.add_joint(fx.RevoluteJoint(f"j{k}", inner, body, axis=axis))
        joint.default_angle = angle = rng.uniform(-2.0, 2.0)
        p = p + R @ inner.X_BF.p
        R = R @ Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
        inner = builder.add_frame(f"end{k}", body, length * rng.normal(size=3))
    lever = 10.0 ** rng.uniform(-2.5, 0.0) * rng.normal(size=3)
    places = [np.zeros(3)] if seed % 3 == 0 else [np.zeros(3), lever]
    tips = [builder.add_frame(f"tip{k}", body, inner.X_BF.p + q) for k, q in enumerate(places)]
    for k, tip in enumerate(tips):
        hold = builder.add_frame(f"hold{k}", builder.world, (R, p + R @ tip.X_BF.p))
        kind = fx.WeldJoint if len(tips) == 1 else fx.BallRpyJoint
        builder.add_loop_joint(kind(f"loop{k}", hold, tip))
    plant = builder.build()
    context = plant.create_default_context()
    free = null_space(equations(plant, context, tips)[0], rcond=1e-9)
    drawn = np.random.default_rng(seed + 1).normal(size=free.shape[1])
    plant.set_velocities(context, free @ drawn)
    return plant, context, tips


def equations(
    plant: fx.Plant, context: fx.Context, tips: list[fx.Frame]
) -> tuple[FloatArray, FloatArray]:
    """Return J and J̇ v of what holds the tips, from the kinematics of the plant alone."""
    rows = slice(0 if len(tips) == 1 else 3, 6)
    J = [plant.calc_jacobian(context, tip)[rows] for tip in tips]
    bias = [plant.calc_bias_spatial_acceleration(context, tip)[rows] for tip in tips]
    return np.concatenate(J), np.concatenate(bias)


def dense(plant: fx.Plant, context: fx.Context, tips: list[fx.Frame]) -> tuple[FloatArray, float]:
    """Return accelerations from M and J by a null space, and how large those without loops are."""
    J, bias = equations(plant, context, tips)
    M = plant.calc_mass_matrix(context)
    f = plant.calc_gravity_generalized_forces(context) - plant.calc_bias_term(context)
    given = -np.linalg.lstsq(J, bias, rcond=1e-9)[0]
    Z = null_space(J, rcond=1e-9)
    rates = given + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (f - M @ given))
    return np.asarray(rates, dtype=np.float64), float(np.max(np.abs(np.linalg.solve(M, f))))


def off(plant: fx.Plant, context: fx.Context, tips: list[fx.Frame]) -> float:
    """Return the error of the accelerations, relative to the largest with loops or without."""
    expected, without = dense(plant, context, tips)
    size = max(without, float(np.max(np.abs(expected))))
    return float(np.max(np.abs(plant.calc_vdot(context) - expected))) / size


@pytest.mark.full
@pytest.mark.parametrize("part", range(10))
def test_accelerations_of_random_loops_are_dense_ones_or_their_error_is_named(part: int) -> None:
    exact, count = 0, by_tier(fast=1, full=30)
    for seed in range(30 * part, 30 * part + count):
        plant, context, tips = closed(seed)
        for remedy in ("Call assemble(context)", "Rounding allows no better"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                error = off(plant, context, tips)
                plant.assemble(context)
            named = [each for each in caught if remedy in str(each.message)]
            assert error < 1e-8 or named, seed
        exact += error < 1e-9
    assert exact >= 0.9 * count


@pytest.mark.parametrize("lever", [0.4, 0.02, 0.002])
def test_hinges_of_a_gate_carry_what_statics_say_however_near_they_are(lever: float) -> None:
    mass, arm, rate, g = 40.0, 0.6, 2.0, 9.81
    builder = fx.PlantBuilder("g")
    box = fx.SpatialInertia.solid_box(mass, size=(2.0 * arm, 0.04, 2.0))
    gate = builder.add_body("gate", box, com=(arm, 0.0, 0.0))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, gate))
    hinges = []
    for name, z in (("upper", 0.5 * lever), ("lower", -0.5 * lever)):
        ends = [
            builder.add_frame(f"{name}_{end.name}", end, (0.0, 0.0, z))
            for end in (builder.world, gate)
        ]
        hinges.append(builder.add_loop_joint(fx.BallRpyJoint(name, *ends)))
    plant = builder.build()
    context = plant.create_default_context()
    free.angular_velocity.set(context, [0.0, 0.0, rate])
    plant.assemble(context)
    pull, tilt = 0.5 * mass * rate**2 * arm, mass * g * arm / lever
    upper, lower = (hinge.reaction(context) for hinge in hinges)
    assert upper[3] == pytest.approx(-pull - tilt, rel=1e-9)
    assert lower[3] == pytest.approx(-pull + tilt, rel=1e-9)
    assert plant.calc_vdot(context) == pytest.approx(np.zeros(6), abs=1e-9 * tilt)
    assert np.array_equal(upper, context.get("upper.reaction"))
