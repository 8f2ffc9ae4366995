"""What holds for joints of every kind: kinematics that fit together, in numbers and in symbols."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_rpy, skew
from flexure.blocks.math.transforms import RigidTransform
from flexure.diagrams import scalars
from tests.blocks.math.samples import EPS, flat, rate
from tests.blocks.multibody.joints.samples import (
    KINDS,
    SEEDS,
    every_kind,
    has_quaternion,
    random_state,
)
from tests.support.mechanics.joints import JOINTS
from tests.support.mechanics.multibody import random_inertia, random_pose
from tests.support.tiers import for_each

in_many_states = for_each("seed", SEEDS)


# What a kind of joint is --------------------------------------------------------------------------


@every_kind
def test_names_and_numbers_of_coordinates(name: str) -> None:
    kind, joint = KINDS[name], KINDS[name].make()
    assert joint.type_name == joint.TYPE_NAME == kind.type_name
    positions = [joint.position_suffix(k) for k in range(joint.num_positions)]
    velocities = [joint.velocity_suffix(k) for k in range(joint.num_velocities)]
    assert (positions, velocities) == (kind.positions.split(), kind.velocities.split())
    assert (joint.can_rotate, joint.can_translate) == (kind.can_rotate, kind.can_translate)


@for_each("name", sorted({*KINDS} - {"weld with a pose"}))
def test_at_zero_the_two_frames_coincide(name: str) -> None:
    joint = KINDS[name].make()
    R, p = joint.calc_pose(joint.zero_positions())
    np.testing.assert_array_equal(R, np.eye(3))
    np.testing.assert_array_equal(p, np.zeros(3))


@every_kind
def test_can_rotate_and_can_translate_tell_what_the_motion_matrix_can_do(name: str) -> None:
    joint = KINDS[name].make()
    H = joint.calc_motion_matrix(random_state(joint, 0)[0])
    assert H.shape == (6, joint.num_velocities)
    assert joint.can_rotate == np.any(H[:3])
    # A screw without pitch is still a screw.
    assert joint.can_translate == (np.any(H[3:]) or name == "screw without pitch")


@every_kind
def test_a_joint_can_be_pickled(name: str) -> None:
    joint = KINDS[name].make()
    again = pickle.loads(pickle.dumps(joint))
    assert repr(again) == repr(joint) == f"<{type(joint).__name__} 'hip'>"
    np.testing.assert_array_equal(again.default_positions, joint.default_positions)


# Kinematics ---------------------------------------------------------------------------------------


@every_kind
@in_many_states
def test_the_pose_has_a_rotation_matrix(name: str, seed: int) -> None:
    joint = KINDS[name].make()
    R, _ = joint.calc_pose(random_state(joint, seed)[0])
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=8 * EPS)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=8 * EPS)


@every_kind
@in_many_states
def test_the_motion_matrix_gives_the_rate_of_the_pose(name: str, seed: int) -> None:
    joint = KINDS[name].make()
    q, v = random_state(joint, seed)
    q_rate = joint.calc_position_rates(q, v)
    turning = rate(lambda time: joint.calc_pose(q + time * q_rate).R)
    moving = rate(lambda time: joint.calc_pose(q + time * q_rate).p)
    V = joint.calc_motion_matrix(q) @ v
    np.testing.assert_allclose(turning @ joint.calc_pose(q).R.T, skew(V[:3]), atol=1e-9)
    np.testing.assert_allclose(moving, V[3:], atol=1e-9)


@every_kind
@in_many_states
def test_the_bias_is_the_rate_of_the_motion_matrix_times_the_velocities(
    name: str, seed: int
) -> None:
    joint = KINDS[name].make()
    q, v = random_state(joint, seed)
    q_rate = joint.calc_position_rates(q, v)
    expected = rate(lambda time: joint.calc_motion_matrix(q + time * q_rate) @ v)
    bias = joint.calc_motion_bias(q, v)
    assert bias.shape == (6,)
    np.testing.assert_allclose(bias, expected, atol=1e-9)


@every_kind
@in_many_states
def test_position_rates_and_velocities_are_inverse_to_each_other(name: str, seed: int) -> None:
    joint = KINDS[name].make()
    q, v = random_state(joint, seed)
    there = joint.calc_position_rates(q, v)
    assert there.shape == (joint.num_positions,)
    np.testing.assert_allclose(joint.calc_velocities(q, there), v, atol=1e-14)
    back = np.random.default_rng(seed).normal(size=joint.num_positions)
    if has_quaternion(joint):
        back[:4] -= (back[:4] @ q[:4]) / (q[:4] @ q[:4]) * q[:4]  # the length stays as it is
    velocities = joint.calc_velocities(q, back)
    assert velocities.shape == (joint.num_velocities,)
    np.testing.assert_allclose(joint.calc_position_rates(q, velocities), back, atol=1e-14)


@every_kind
def test_velocities_are_rates_where_the_two_are_equal(name: str) -> None:
    joint = KINDS[name].make()
    q, v = random_state(joint, 1)
    assert joint.velocities_are_rates == np.array_equal(joint.calc_position_rates(q, v), v)


# Best matches -------------------------------------------------------------------------------------


@every_kind
@in_many_states
def test_the_pose_of_positions_is_matched_exactly(name: str, seed: int) -> None:
    joint = KINDS[name].make()
    pose = joint.calc_pose(3.0 * random_state(joint, seed)[0])
    again = joint.calc_pose(joint.nearest_positions(pose))
    np.testing.assert_allclose(again.R, pose.R, atol=1e-14)
    np.testing.assert_allclose(again.p, pose.p, atol=1e-14)


@every_kind
@in_many_states
def test_the_motion_of_velocities_is_matched_exactly(name: str, seed: int) -> None:
    joint = KINDS[name].make()
    q, v = random_state(joint, seed)
    found = joint.nearest_velocities(q, joint.calc_motion_matrix(q) @ v)
    np.testing.assert_allclose(found, v, atol=1e-14)


@every_kind
@in_many_states
def test_any_pose_and_motion_has_a_best_match(name: str, seed: int) -> None:
    joint = KINDS[name].make()
    rng = np.random.default_rng(seed)
    pose = RigidTransform(rotation_from_rpy(rng.uniform(-3.0, 3.0, 3)), rng.normal(size=3))
    q = joint.nearest_positions(pose)
    v = joint.nearest_velocities(q, rng.normal(size=6))
    assert (q.shape, v.shape) == ((joint.num_positions,), (joint.num_velocities,))
    assert np.isfinite(np.concatenate([q, v])).all()


# Two readings -------------------------------------------------------------------------------------

HOOKS = {
    "pose": lambda joint, q, v, q_rate: joint.calc_pose(q),
    "motion matrix": lambda joint, q, v, q_rate: joint.calc_motion_matrix(q),
    "motion bias": lambda joint, q, v, q_rate: joint.calc_motion_bias(q, v),
    "position rates": lambda joint, q, v, q_rate: joint.calc_position_rates(q, v),
    "velocities": lambda joint, q, v, q_rate: joint.calc_velocities(q, q_rate),
}


@every_kind
@for_each("hook", HOOKS)
def test_symbols_give_the_numbers_of_floats(name: str, hook: str) -> None:
    joint = KINDS[name].make()
    q, v = random_state(joint, 1)
    numbers = {"q": q, "v": v, "q_rate": q[::-1]}
    graph = scalars.Graph()
    traced = [scalars.symbols(graph, key, value.size) for key, value in numbers.items()]
    values = {(key, k): x for key, value in numbers.items() for k, x in enumerate(value)}
    expected = flat(HOOKS[hook](joint, *numbers.values()))
    result = scalars.evaluate(scalars.array(flat(HOOKS[hook](joint, *traced))), values)
    assert np.shape(result) == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=8 * EPS, atol=8 * EPS)


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("revolute x", [(1, 1), (1, 2), (2, 1), (2, 2)]),
        ("revolute -y", [(0, 0), (0, 2), (2, 0), (2, 2)]),
        ("revolute z", [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ("screw z", [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ("planar", [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ("prismatic -z", []),
        ("weld with a pose", []),
    ],
)
def test_what_never_changes_in_a_rotation_is_no_symbol(
    name: str, places: list[tuple[int, int]]
) -> None:
    joint = KINDS[name].make()
    R, _ = joint.calc_pose(scalars.symbols(scalars.Graph(), "q", joint.num_positions))
    found = [
        place
        for place, entry in np.ndenumerate(np.asarray(R, object))
        if scalars.is_symbolic(entry)
    ]
    assert found == places


@every_kind
def test_motion_matrices_are_constant_but_for_the_universal_joint(name: str) -> None:
    joint = KINDS[name].make()
    H = joint.calc_motion_matrix(scalars.symbols(scalars.Graph(), "q", joint.num_positions))
    assert scalars.is_symbolic(H) == (name == "universal")


# As a chain of simpler joints ---------------------------------------------------------------------

CHAINS = [name for name, kind in JOINTS.items() if kind.chain]


def on_a_swing(name: str, *, as_chain: bool) -> tuple[fx.Plant, fx.Context]:
    """Return a body on a joint on a swing, with damping and stops, or on its chain, in motion."""
    rng = np.random.default_rng(7)
    builder = fx.PlantBuilder("swing")
    swing, body = (builder.add_body(each, random_inertia(rng)) for each in ("swing", "body"))
    builder.add_joint(fx.RevoluteJoint("pivot", builder.world, swing, axis=(0.2, 1.0, -0.3)))
    F, M = (builder.add_frame(each.name + "_at", each, random_pose(rng)) for each in (swing, body))
    kind = JOINTS[name]
    axis, count = (2.0, -3.0, 6.0), len(kind.velocities.split())
    damping, upper, stiffness, q, v = rng.uniform(0.1, 0.9, (5, count))
    inner: fx.Frame | fx.Body = F
    pieces = kind.chain if as_chain else [(name, axis if kind.has_axis else None)]
    rows = range(count) if as_chain else [slice(None)]
    for place, (piece, along) in zip(rows, pieces, strict=True):
        last = place in (count - 1, slice(None))
        outer = M if last else builder.add_body(f"between_{place}", fx.SpatialInertia(0.0))
        options: dict[str, Any] = (
            {} if piece == name and not kind.has_axis else {"axis": along or axis}
        )
        joint = JOINTS[piece].make(
            f"joint_{place}" if not last else "joint",
            inner,
            outer,
            damping=damping[place],
            **options,
        )
        joint.default_positions = np.atleast_1d(q[place])
        builder.add_joint(joint)
        stop = fx.JointStop(
            f"stop_{joint.name}",
            joint,
            stiffness=30.0 * stiffness[place],
            damping=0.1,
            lower=-1.0,
            upper=0.5 * upper[place],
        )
        builder.add_force_element(stop)
        inner = outer
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_velocities(context, [0.7, *v])
    return plant, context


@pytest.mark.parametrize("name", CHAINS)
def test_a_joint_moves_as_the_chain_of_its_coordinates(name: str) -> None:
    results = []
    for as_chain in (False, True):
        plant, context = on_a_swing(name, as_chain=as_chain)
        found = [plant.calc_mass_matrix(context), context.store.time_derivatives()]
        found += [context.get(path) for path in ("joint.reaction", "pivot.reaction")]
        for locked in plant.joints[1:]:
            locked.lock(context)
        found.append(context.store.time_derivatives())
        results.append([np.asarray(each, dtype=float) for each in found])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
