"""Forces make accelerations: each algorithm agrees with the others and with second routes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import spatial_inertia_matrix
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces
from flexure.blocks.multibody.trees.kinematics import jacobian_bias, spatial_jacobian
from flexure.blocks.multibody.trees.topology import Topology
from tests.support.mechanics.multibody import (
    KINDS,
    any_tree,
    drawn,
    make_tree,
    random_forces,
    random_inertia,
    random_pose,
    random_tree,
    scale_of,
)

EPS = float(np.finfo(float).eps)
ORIGIN = np.zeros(3)


def by_the_mass_matrix(M: Any, tau: Any, bias: Any) -> tuple[Any, float]:
    """Return the accelerations of M v̇ = τ - bias, and how accurate they are."""
    vdot, size = np.linalg.solve(M, tau - bias), np.linalg.norm
    sum_of_forces = size(tau) + size(bias)
    amplified = size(np.linalg.inv(M)) * (size(M) * size(vdot) + sum_of_forces)
    return vdot, 200.0 * EPS * float(amplified)


def per_velocity(topology: Topology, values: Any) -> Any:
    """Return the value of the mobilizer of each velocity."""
    return np.repeat(values, [m.joint.num_velocities for m in topology.mobilizers])


# Forward dynamics ----------------------------------------------------------------------------


@pytest.mark.full
@any_tree(30)
def test_articulated_bodies_move_as_the_mass_matrix_says(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, rng = drawn(seed, count, random_frames)
    nv = state.topology.num_velocities
    forces, tau = random_forces(state, rng), rng.normal(size=nv)
    reflected = rng.choice([0.0, 0.3], size=len(state.topology.mobilizers))
    found = state.forward_dynamics(tau, forces, reflected=reflected)
    M = state.mass_matrix() + np.diag(per_velocity(state.topology, reflected))
    bias = state.inverse_dynamics(np.zeros(nv), forces)
    expected, accuracy = by_the_mass_matrix(M, tau, bias)
    assert found == pytest.approx(expected, abs=accuracy)


@pytest.mark.full
@any_tree(30)
def test_inverse_dynamics_undoes_forward_dynamics(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, rng = drawn(seed, count, random_frames)
    nv = state.topology.num_velocities
    forces, tau = random_forces(state, rng), rng.normal(size=nv)
    vdot = state.forward_dynamics(tau, forces)
    found = state.inverse_dynamics(vdot, forces)
    M, bias = state.mass_matrix(), state.inverse_dynamics(np.zeros(nv), forces)
    _, accuracy = by_the_mass_matrix(M, tau, bias)
    assert found == pytest.approx(tau, abs=accuracy * float(np.linalg.norm(M)))


@pytest.mark.full
@any_tree(30)
def test_velocities_that_cannot_change_do_not(seed: int, count: int, random_frames: bool) -> None:
    _, state, rng = drawn(seed, count, random_frames)
    topology = state.topology
    nv, size = topology.num_velocities, len(topology.mobilizers)
    forces, tau = random_forces(state, rng), rng.normal(size=nv)
    mobile, reflected = rng.choice([0.0, 1.0], size=size), rng.uniform(0.0, 0.2, size)
    found = state.forward_dynamics(tau, forces, mobile, reflected)
    mobile, reflected = per_velocity(topology, mobile), per_velocity(topology, reflected)
    free = np.flatnonzero(mobile)
    M = (state.mass_matrix() + np.diag(reflected))[np.ix_(free, free)]
    bias = state.inverse_dynamics(np.zeros(nv), forces)[free]
    expected, accuracy = by_the_mass_matrix(M, tau[free], bias)
    assert found[free] == pytest.approx(expected, abs=accuracy)
    assert not found[mobile == 0.0].any()


@pytest.mark.full
@any_tree(30)
def test_a_locked_joint_is_a_weld(seed: int, count: int, random_frames: bool) -> None:
    tree, state, rng = drawn(seed, count, random_frames)
    topology, q, v = tree.topology, state.q, state.v
    tau, forces = rng.normal(size=v.shape), random_forces(state, rng)
    joints: list[Joint] = []
    mobile = np.ones(len(topology.mobilizers))
    kept_q, kept_v = np.ones(q.shape, dtype=bool), np.ones(v.shape, dtype=bool)
    for k, mobilizer in enumerate(topology.mobilizers):
        joint = mobilizer.joint
        if rng.random() < 0.5:
            mobile[k] = 0.0
            pose = joint.calc_pose(q[mobilizer.q])
            R, _, Q = np.linalg.svd(pose.R)  # the nearest rotation, to the last bits
            kept_q[mobilizer.q] = kept_v[mobilizer.v] = False
            frames = joint.frame_on_parent, joint.frame_on_child
            joint = WeldJoint(joint.name, frames[0], frames[1], (R @ Q, pose.p))
        joints.append(joint)
    v = np.where(kept_v, v, 0.0)
    locked = tree.at(q, v).forward_dynamics(tau, forces, mobile)
    welded = make_tree(topology.bodies, joints).at(q[kept_q], v[kept_v])
    found = welded.forward_dynamics(tau[kept_v], forces)
    M, bias = welded.mass_matrix(), welded.inverse_dynamics(0.0 * v[kept_v], forces)
    _, accuracy = by_the_mass_matrix(M, tau[kept_v], bias)
    assert found == pytest.approx(locked[kept_v], abs=accuracy)


def test_a_joint_that_moves_no_inertia_is_named() -> None:
    world, rod, tip = Body("world"), Body("rod"), Body("tip")
    rod.inertia, tip.inertia = SpatialInertia(1.0, (0.0, 0.0, 1.0)), SpatialInertia(0.0)
    joints = [
        RevoluteJoint("shoulder", world, rod, (0, 1, 0)),
        RevoluteJoint("wrist", rod, tip, (0, 1, 0)),
    ]
    state = make_tree([world, rod, tip], joints).at(np.zeros(2), np.zeros(2))
    with pytest.raises(fx.errors.EvaluationError, match=r"'wrist'.*mass"):
        state.forward_dynamics(np.zeros(2))
    # A rotor, or a lock, is all it needs.
    assert np.isfinite(state.forward_dynamics(np.zeros(2), reflected=np.ones(2))).all()
    assert np.isfinite(state.forward_dynamics(np.zeros(2), mobile=np.array([1.0, 0.0]))).all()


# The mass matrix -----------------------------------------------------------------------------


@pytest.mark.full
@any_tree(30)
def test_the_mass_matrix_is_the_sum_over_the_bodies(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, _ = drawn(seed, count, random_frames)
    M = state.mass_matrix()
    expected = np.zeros_like(M)
    for number, inertia in enumerate(state.inertias):
        J = spatial_jacobian(state.topology, state.placements, number, ORIGIN)
        expected += J.T @ spatial_inertia_matrix(inertia) @ J
    assert pytest.approx(expected, rel=1e-12, abs=1e-12 * scale_of(M)) == M
    assert np.array_equal(M, M.T)
    assert np.all(np.linalg.eigvalsh(M) > 0.0)


@any_tree(30)
def test_the_bias_is_what_each_body_needs_at_constant_velocities(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, rng = drawn(seed, count, random_frames)
    forces = random_forces(state, rng)
    found = state.inverse_dynamics(np.zeros(state.topology.num_velocities), forces)
    expected = np.zeros_like(found)
    bodies = zip(state.inertias, state.motions, forces, strict=True)
    for number, (inertia, motion, force) in enumerate(bodies):
        J = spatial_jacobian(state.topology, state.placements, number, ORIGIN)
        A = jacobian_bias(state.topology, state.placements, state.motions, number, ORIGIN)
        w, (mass, com, about_origin) = motion.V_WB[:3], inertia
        turning = np.concatenate(
            [
                np.cross(w, about_origin @ w),
                mass * np.cross(w, np.cross(w, com)),
            ]
        )
        expected += J.T @ (spatial_inertia_matrix(inertia) @ A + turning - force)
    assert found == pytest.approx(expected, abs=1e-11 * scale_of(expected))


@any_tree(30)
def test_forces_on_bodies_are_projected_on_the_joints(
    seed: int, count: int, random_frames: bool
) -> None:
    _, state, rng = drawn(seed, count, random_frames)
    drawn_forces = enumerate(random_forces(state, rng))
    forces = {number: F for number, F in drawn_forces if number % 3 != 1}
    found = generalized_forces(state.topology, state.placements, forces)
    expected = np.zeros(state.topology.num_velocities)
    for number, F in forces.items():
        expected += spatial_jacobian(state.topology, state.placements, number, ORIGIN).T @ F
    assert found == pytest.approx(expected, abs=1e-12 * (count + 1) ** 2)


# No velocities, and few ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_tree_of_welds_has_no_velocities(count: int) -> None:
    rng = np.random.default_rng(count)
    state = random_tree(rng, count, kinds=["weld"]).random_state(rng)
    nothing = np.zeros(0)
    assert state.forward_dynamics(nothing, random_forces(state, rng)).shape == (0,)
    assert state.inverse_dynamics(nothing, random_forces(state, rng)).shape == (0,)
    assert state.mass_matrix().shape == (0, 0)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "weld"])
def test_welds_before_and_after_a_joint_only_move_it_and_add_mass(kind: str) -> None:
    rng = np.random.default_rng(11)
    world, base, body, load = Body("world"), Body("base"), Body("body"), Body("load")
    inertia, load.inertia = random_inertia(rng), random_inertia(rng)
    base.inertia, body.inertia = random_inertia(rng), inertia
    offset = np.array([0.5, -0.4, 0.2])
    F, M = Frame("F", base, (np.eye(3), [0.1, 0.2, 0.3])), Frame("M", body, random_pose(rng))
    joints = [
        WeldJoint("before", world, base, (np.eye(3), offset)),
        KINDS[kind]("joint", F, M, np.random.default_rng(12)),
        WeldJoint("after", load, body, (np.eye(3), offset)),
    ]
    welded = make_tree([world, base, body, load], joints).random_state(rng)
    whole = Body("whole", inertia + load.inertia.shifted(-offset))
    F, M = Frame("F", world, (np.eye(3), offset + F.X_BF.p)), Frame("M", whole, M.X_BF)
    joint = KINDS[kind]("joint", F, M, np.random.default_rng(12))
    alone = make_tree([world, whole], [joint]).at(welded.q, welded.v)
    tau = rng.normal(size=welded.v.shape)
    expected = alone.forward_dynamics(tau)
    assert welded.forward_dynamics(tau) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert pytest.approx(alone.mass_matrix(), rel=1e-12, abs=1e-12) == welded.mass_matrix()
