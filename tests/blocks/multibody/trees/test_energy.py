"""Energies, momenta and centers of mass, against sums over bodies and the laws of motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import MassProperties
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.trees import energy
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces
from flexure.diagrams import scalars
from tests.blocks.math.samples import rate
from tests.support.mechanics.multibody import (
    State,
    Tree,
    any_tree,
    drawn,
    make_tree,
    random_forces,
    random_tree,
    scale_of,
)
from tests.support.tiers import for_each

GRAVITY = np.array([0.3, -0.5, -9.81])


def centers(state: State) -> tuple[Any, Any, Any]:
    """Return the masses of the bodies, and positions and velocities of their centers."""
    masses, positions, velocities = [], [], []
    bodies = zip(state.placements, state.motions, state.inertias, strict=True)
    for placement, motion, inertia in list(bodies)[1:]:
        w, v = motion.V_WB[:3], motion.V_WB[3:]
        masses.append(inertia.mass)
        positions.append(placement.p_WB + inertia.com)
        velocities.append(v + np.cross(w, inertia.com))
    return np.array(masses), np.array(positions), np.array(velocities)


def central_inertia(inertia: MassProperties) -> Any:
    """Return the inertia of a body about its own center of mass."""
    m, c, about_origin = inertia
    return about_origin - m * (c @ c * np.eye(3) - np.outer(c, c))


# Against sums over the bodies ----------------------------------------------------------------


@any_tree(20)
def test_the_kinetic_energy_is_that_of_the_mass_matrix_and_of_the_centers(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, _ = drawn(seed, count, random_frames)
    found = energy.kinetic_energy(state.motions, state.inertias)
    by_the_matrix = 0.5 * state.v @ state.mass_matrix() @ state.v
    masses, _, velocities = centers(state)
    turning = [
        motion.V_WB[:3] @ central_inertia(inertia) @ motion.V_WB[:3]
        for motion, inertia in zip(state.motions, state.inertias, strict=True)
    ]
    by_koenig = 0.5 * (masses @ np.sum(velocities**2, axis=1) + sum(turning))
    assert found == pytest.approx(by_the_matrix, rel=1e-12)
    assert found == pytest.approx(by_koenig, rel=1e-12)


@any_tree(20)
def test_momentum_is_the_sum_over_the_bodies(seed: int, count: int, random_frames: bool) -> None:
    _, state, rng = drawn(seed, count, random_frames)
    point = rng.normal(size=3)
    found = energy.momentum(state.placements, state.motions, state.inertias, point)
    masses, positions, velocities = centers(state)
    linear = masses[:, np.newaxis] * velocities
    turning = [
        central_inertia(inertia) @ motion.V_WB[:3]
        for motion, inertia in zip(state.motions, state.inertias, strict=True)
    ]
    angular = np.cross(positions - point, linear).sum(axis=0) + sum(turning)
    expected = np.concatenate([angular, linear.sum(axis=0)])
    assert found == pytest.approx(expected, abs=1e-12 * scale_of(expected) * (count + 1))


@any_tree(20)
def test_the_center_of_mass_is_the_mean_of_the_centers(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, _ = drawn(seed, count, random_frames)
    masses, positions, velocities = centers(state)
    found = energy.center_of_mass(state.placements, state.inertias)
    assert found == pytest.approx(np.average(positions, axis=0, weights=masses), abs=1e-12)
    rates = energy.center_of_mass_velocity(state.motions, state.inertias)
    expected = np.average(velocities, axis=0, weights=masses)
    assert rates == pytest.approx(expected, abs=1e-12 * scale_of(velocities))
    momentum = energy.momentum(state.placements, state.motions, state.inertias)
    assert momentum[3:] == pytest.approx(masses.sum() * rates, abs=1e-11 * scale_of(momentum))


# Against each other --------------------------------------------------------------------------


@any_tree(8)
def test_rates_of_what_depends_on_positions(seed: int, count: int, random_frames: bool) -> None:
    tree, state, _ = drawn(seed, count, random_frames)
    dq = tree.position_rates(state.q, state.v)
    weights = energy.gravity_forces(state.inertias, GRAVITY)

    def moved(t: float) -> Any:
        there = tree.at(state.q + t * dq, state.v)
        height = energy.gravity_energy(there.placements, there.inertias, GRAVITY)
        return np.array([height, *energy.center_of_mass(there.placements, there.inertias)])

    slope = rate(moved, 2e-4)
    velocity = energy.center_of_mass_velocity(state.motions, state.inertias)
    assert velocity == pytest.approx(slope[1:], abs=1e-8 * scale_of(state.motions[-1].V_WB))
    power = generalized_forces(state.topology, state.placements, dict(enumerate(weights))) @ state.v
    assert power == pytest.approx(-slope[0], abs=1e-7 * scale_of(slope))
    by_body = sum(
        weight @ motion.V_WB for weight, motion in zip(weights, state.motions, strict=True)
    )
    assert power == pytest.approx(by_body, abs=1e-11 * scale_of(slope))


@any_tree(8)
def test_the_power_of_all_forces_changes_the_kinetic_energy(
    seed: int, count: int, random_frames: bool
) -> None:
    tree, state, rng = drawn(seed, count, random_frames)
    forces, tau = random_forces(state, rng), rng.normal(size=state.v.shape)
    power = tau @ state.v + sum(
        force @ motion.V_WB for force, motion in zip(forces, state.motions, strict=True)
    )
    vdot = state.forward_dynamics(tau, forces)
    dq = tree.position_rates(state.q, state.v)

    def moved(t: float) -> Any:
        there = tree.at(state.q + t * dq, state.v + t * vdot)
        return energy.kinetic_energy(there.motions, there.inertias)

    exchanged = energy.kinetic_energy(state.motions, state.inertias)
    assert rate(moved, 2e-4) == pytest.approx(power, abs=1e-6 * scale_of([power, exchanged]))


@for_each("seed", range(20))
def test_only_outer_forces_change_the_momentum_of_what_floats(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 6, base_kinds=["quaternion_floating", "rpy_floating"])
    state = tree.random_state(rng)
    forces, tau = random_forces(state, rng), rng.normal(size=state.v.shape)
    outer = np.zeros(6)
    for placement, force in list(zip(state.placements, forces, strict=True))[1:]:
        outer += [*force[:3] + np.cross(placement.p_WB, force[3:]), *force[3:]]
    for mobilizer in state.topology.mobilizers:
        if mobilizer.inboard == 0:
            tau[mobilizer.v] = 0.0  # which would act on the world
    dq, vdot = tree.position_rates(state.q, state.v), state.forward_dynamics(tau, forces)

    def moved(t: float) -> Any:
        there = tree.at(state.q + t * dq, state.v + t * vdot)
        return energy.momentum(there.placements, there.motions, there.inertias)

    size = scale_of(energy.momentum(state.placements, state.motions, state.inertias))
    assert rate(moved, 2e-4) == pytest.approx(outer, abs=1e-6 * size)


def test_the_weight_of_a_body_acts_at_its_center() -> None:
    inertia = MassProperties(np.float64(2.0), np.array([0.5, 0.0, 0.0]), np.eye(3))
    world, weight = energy.gravity_forces([inertia, inertia], np.array([0.0, 0.0, -10.0]))
    assert not world.any()
    assert weight.tolist() == [0.0, 10.0, 0.0, 0.0, 0.0, -20.0]


# Nothing to sum ------------------------------------------------------------------------------


def test_a_world_without_bodies_has_no_energy_and_no_momentum() -> None:
    rng = np.random.default_rng(0)
    state = random_tree(rng, 0).random_state(rng)
    assert energy.kinetic_energy(state.motions, state.inertias) == 0.0
    assert energy.gravity_energy(state.placements, state.inertias, GRAVITY) == 0.0
    assert not energy.momentum(state.placements, state.motions, state.inertias).any()


def test_bodies_without_mass_have_no_center_of_mass() -> None:
    world, ghost = Body("world"), Body("ghost", SpatialInertia(0.0))
    tree = make_tree([world, ghost], [RevoluteJoint("axis", world, ghost, (0, 0, 1))])
    state = tree.at(np.zeros(1), np.zeros(1))
    with pytest.raises(fx.errors.EvaluationError, match="total mass of zero"):
        energy.center_of_mass(state.placements, state.inertias)
    with pytest.raises(fx.errors.EvaluationError, match="total mass of zero"):
        energy.center_of_mass_velocity(state.motions, state.inertias)


def test_a_symbolic_mass_of_zero_gives_no_number() -> None:
    world, body = Body("world"), Body("body")
    topology = make_tree([world, body], [RevoluteJoint("axis", world, body, (0, 0, 1))]).topology
    mass = scalars.Graph().input("mass")
    tree = Tree(topology, [MassProperties(mass, np.ones(3), np.eye(3))])
    state = tree.at(np.zeros(1), np.zeros(1))
    center = energy.center_of_mass(state.placements, state.inertias)
    assert scalars.evaluate(center, {"mass": 3.0}) == pytest.approx(np.ones(3))
    assert np.isnan(scalars.evaluate(center, {"mass": 0.0})).all()
