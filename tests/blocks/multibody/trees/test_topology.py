"""Bodies and joints become trees from the world outwards, or the reason why not is named."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    x_rotation,
    y_rotation,
)
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.trees.topology import JointGraph, Mobilizer, make_topology
from flexure.diagrams import scalars
from tests.blocks.math.samples import rate
from tests.support.mechanics.multibody import KINDS, MakeJoint, random_pose
from tests.support.tiers import for_each


class CrankJoint(Joint):
    """A joint of nobody's making, in which everything depends on everything."""

    TYPE_NAME = "crank"
    POSITION_SUFFIXES = VELOCITY_SUFFIXES = ("x", "y")
    can_rotate = can_translate = True

    def calc_pose(self, q: Any) -> RigidTransform:
        x, y = q
        position = [x * y, np.sin(x), np.cos(y)]
        return RigidTransform(x_rotation(x) @ y_rotation(y), scalars.array(position))

    def calc_motion_matrix(self, q: Any) -> Any:
        x, y = q
        by_x = [1.0, 0.0, 0.0, y, np.cos(x), 0.0]
        by_y = [0.0, np.cos(x), np.sin(x), x, 0.0, -np.sin(y)]
        return np.stack([scalars.array(by_x), scalars.array(by_y)], axis=1)

    def calc_motion_bias(self, q: Any, v: Any) -> Any:
        (x, y), (u, w) = q, v
        turning = [0.0, -np.sin(x) * u * w, np.cos(x) * u * w]
        moving = [2.0 * u * w, -np.sin(x) * u * u, -np.cos(y) * w * w]
        return scalars.array([*turning, *moving])

    def nearest_positions(self, X_FM: RigidTransform) -> Any:
        return X_FM.p[:2]

    def nearest_velocities(self, q: Any, V_FM: Any) -> Any:
        raise NotImplementedError


#: Every kind of joint, and one that shows what the others have only in part.
JOINTS: Mapping[str, MakeJoint] = {**KINDS, "crank": lambda name, F, M, rng: CrankJoint(name, F, M)}
MOVING = [kind for kind in JOINTS if kind != "weld"]


def revolutes(*edges: str) -> tuple[list[Body], list[Any]]:
    """Make bodies named by single letters, w for the world, and joints named by their ends."""
    names = ["w", *sorted(set("".join(edges)) - {"w"})]
    bodies = {name: Body("world" if name == "w" else name) for name in names}
    bodies["w"].number = 0
    joints = [RevoluteJoint(edge, bodies[edge[0]], bodies[edge[1]], (0, 0, 1)) for edge in edges]
    return list(bodies.values()), joints


def refusal(call: Callable[[], object]) -> str:
    """Return the text of the refusal of a call."""
    with pytest.raises(fx.errors.DeclarationError) as caught:
        call()
    return str(caught.value)


# The order of coordinates --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "order"),
    [
        # The coordinates that Drake 1.51 gives to the joints, found by asking it.
        (["wa", "wb", "ac", "bd", "ae", "cf"], "wa ac cf ae wb bd"),
        (["ac", "wa", "wb", "ae", "cf", "bd"], "wa ac cf ae wb bd"),
        (["cf", "ac", "wb", "bd", "wa", "ae"], "wb bd wa ac cf ae"),
        (["bw", "aw", "ac", "db"], "bw db aw ac"),
        (["wa", "ab", "ac", "ce", "bd", "df", "eg"], "wa ab bd df ac ce eg"),
    ],
)
def test_branches_are_numbered_one_after_the_other(edges: list[str], order: str) -> None:
    topology = make_topology(*revolutes(*edges))
    assert [mobilizer.joint.name for mobilizer in topology.mobilizers] == order.split()
    for k, mobilizer in enumerate(topology.mobilizers):
        assert mobilizer.q == mobilizer.v == slice(k, k + 1)


def test_a_joint_has_as_many_coordinates_as_it_needs() -> None:
    bodies, _ = revolutes("wa", "ab", "bc")
    rng = np.random.default_rng(0)
    kinds = ["quaternion_floating", "weld", "planar"]
    pairs = zip(kinds, pairwise(bodies), strict=True)
    joints = [KINDS[kind](kind, P, B, rng) for kind, (P, B) in pairs]
    topology = make_topology(bodies, joints)
    slices = [(m.q, m.v) for m in topology.mobilizers]
    assert slices == [
        (slice(0, 7), slice(0, 6)),
        (slice(7, 7), slice(6, 6)),
        (slice(7, 10), slice(6, 9)),
    ]
    assert (topology.num_positions, topology.num_velocities) == (10, 9)


def test_joints_are_reversed_where_their_child_is_nearer_to_the_world() -> None:
    topology = make_topology(*revolutes("wa", "ba", "bc", "dc"))
    found = [(m.joint.name, m.is_reversed, m.inboard, m.outboard) for m in topology.mobilizers]
    assert found == [
        ("wa", False, 0, 1),
        ("ba", True, 1, 2),
        ("bc", False, 2, 3),
        ("dc", True, 3, 4),
    ]
    assert [m.joint.name for m in topology.path_to(4)] == ["dc", "bc", "ba", "wa"]
    assert topology.path_to(0) == []


def test_a_long_chain_needs_no_deep_recursion() -> None:
    bodies = [Body("world"), *(Body(f"link{k}") for k in range(3000))]
    joints = [
        PrismaticJoint(f"slide{k}", P, B, (0, 0, 1)) for k, (P, B) in enumerate(pairwise(bodies))
    ]
    assert make_topology(bodies, joints).mobilizers[-1].outboard == 3000


def test_a_topology_can_be_copied_and_pickled() -> None:
    topology = make_topology(*revolutes("wa", "ba"))
    assert [m.rows for m in topology.mobilizers] == [slice(0, 3)] * 2  # which is kept with it
    again = pickle.loads(pickle.dumps(topology))
    assert [m.joint.name for m in again.mobilizers] == ["wa", "ba"]
    assert copy.copy(topology).bodies == topology.bodies


# What is refused -----------------------------------------------------------------------------


def test_a_body_without_a_path_to_the_world_is_named() -> None:
    bodies, joints = revolutes("wa", "bc")
    text = refusal(lambda: make_topology(bodies, joints))
    assert "none to 'b', 'c'" in text
    assert "QuaternionFloatingJoint" in text


@pytest.mark.parametrize(
    ("edges", "loop"),
    [
        (["wa", "ab", "bw"], "b - world - a - b of joints 'bw', 'wa', 'ab'"),
        (["wa", "ab", "ba"], "b - a - b of joints 'ba', 'ab'"),
        (["ab", "bc", "cd", "bd"], "b - d - c - b of joints 'bd', 'cd', 'bc'"),
        (["wa", "wb", "cb", "ca"], "c - a - world - b - c of joints 'ca', 'wa', 'wb', 'cb'"),
    ],
)
def test_a_loop_is_named_and_a_force_element_advised(edges: list[str], loop: str) -> None:
    text = refusal(lambda: make_topology(*revolutes(*edges)))
    assert text.startswith(f"Cannot close a loop by joint '{edges[-1]}'")
    assert f"the loop {loop}." in text
    parent, child = ("world" if body == "w" else body for body in edges[-1])
    bushing = f"a LinearBushing or LinearBushingRollPitchYaw between '{parent}' and '{child}'"
    assert f"in place of '{edges[-1]}', or of another one: {bushing}" in text


def test_a_joint_is_used_once() -> None:
    bodies, joints = revolutes("wa", "ab")
    text = refusal(lambda: make_topology(bodies, [*joints, joints[0]]))
    assert text.startswith("Cannot use joint 'wa' twice")


def test_bodies_of_another_plant_are_refused() -> None:
    bodies, joints = revolutes("wa")
    stranger = Body("stranger")
    joint = RevoluteJoint("foreign", bodies[1], stranger, (0, 0, 1))
    text = refusal(lambda: make_topology(bodies, [*joints, joint]))
    assert "'foreign' between 'a' and 'stranger'" in text
    assert "<Body 'stranger'> of another one" in text


def test_a_joint_of_another_plant_has_no_mobilizer() -> None:
    topology = make_topology(*revolutes("wa", "ab"))
    _, (other,) = revolutes("wa")
    with pytest.raises(fx.errors.UnknownNameError, match="Valid names: 'wa', 'ab'"):
        topology.mobilizer_of(other)


def test_a_refused_joint_leaves_the_graph_as_it_was() -> None:
    bodies, joints = revolutes("wa", "ab", "bw", "bc")
    graph = JointGraph(bodies, joints[:2])
    for joint in (joints[2], joints[0], RevoluteJoint("x", bodies[1], Body("x"), (0, 0, 1))):
        with pytest.raises(fx.errors.DeclarationError):
            graph.add_joint(joint)
    graph.add_joint(joints[3])
    names = [joint.name for _, joint, _ in graph.outwards(bodies[0])]
    assert names == ["wa", "ab", "bc"]


# Joints seen from the world ------------------------------------------------------------------


def mobilizer_of(kind: str, rng: np.random.Generator, *, is_reversed: bool) -> Mobilizer:
    """Make a joint of a kind between the world and a body, at random frames."""
    bodies = [Body("world"), Body("body")]
    F, M = (Frame(body.name, body, random_pose(rng)) for body in bodies)
    joint = JOINTS[kind]("joint", *((M, F) if is_reversed else (F, M)), rng)
    (mobilizer,) = make_topology(bodies, [joint]).mobilizers
    assert mobilizer.is_reversed == is_reversed
    return mobilizer


@for_each("is_reversed", [False, True])
@for_each("kind", JOINTS)
def test_both_directions_hold_the_same_bodies_together(kind: str, is_reversed: bool) -> None:
    rng = np.random.default_rng(3)
    mobilizer = mobilizer_of(kind, rng, is_reversed=is_reversed)
    joint = mobilizer.joint
    q = joint.nearest_positions(random_pose(rng))
    # From the world to the body, and on to where the joint itself says that the world is.
    X_WB = compose_transforms(
        compose_transforms(mobilizer.X_PF, mobilizer.calc_pose(q)), mobilizer.X_MB
    )
    outer, inner = joint.frame_on_parent.X_BF, joint.frame_on_child.X_BF
    X_FM = joint.calc_pose(q)
    if is_reversed:
        found = compose_transforms(compose_transforms(X_WB, outer), X_FM)
        expected = inner
    else:
        found = compose_transforms(X_WB, inner)
        expected = compose_transforms(outer, X_FM)
    for part, right in zip(found, expected, strict=True):
        assert part == pytest.approx(right, abs=1e-14)


@for_each("is_reversed", [False, True])
@for_each("kind", MOVING)
def test_motion_matrices_are_the_rates_of_poses(kind: str, is_reversed: bool) -> None:
    rng = np.random.default_rng(4)
    mobilizer = mobilizer_of(kind, rng, is_reversed=is_reversed)
    joint = mobilizer.joint
    q, v = joint.nearest_positions(random_pose(rng)), rng.normal(size=joint.num_velocities)
    dq = joint.calc_position_rates(q, v)
    V = mobilizer.calc_motion_matrix(q) @ v
    turning = rate(lambda t: mobilizer.calc_pose(q + t * dq).R)
    moving = rate(lambda t: mobilizer.calc_pose(q + t * dq).p)
    spin = turning @ mobilizer.calc_pose(q).R.T
    assert V[:3] == pytest.approx([spin[2, 1], spin[0, 2], spin[1, 0]], abs=1e-9)
    assert V[3:] == pytest.approx(moving, abs=1e-9)


@for_each("is_reversed", [False, True])
@for_each("kind", MOVING)
def test_motion_biases_are_the_rates_of_motion_matrices(kind: str, is_reversed: bool) -> None:
    rng = np.random.default_rng(5)
    mobilizer = mobilizer_of(kind, rng, is_reversed=is_reversed)
    joint = mobilizer.joint
    q, v = joint.nearest_positions(random_pose(rng)), rng.normal(size=joint.num_velocities)
    dq = joint.calc_position_rates(q, v)
    expected = rate(lambda t: mobilizer.calc_motion_matrix(q + t * dq) @ v)
    assert mobilizer.calc_motion_bias(q, v) == pytest.approx(expected, abs=1e-9)
    assert mobilizer.has_motion_bias or not expected.any()


@pytest.mark.parametrize(
    ("kind", "at_frames", "on_levers"),
    [
        ("weld", slice(3, 3), slice(3, 3)),
        ("revolute", slice(0, 3), slice(0, 6)),
        ("prismatic", slice(3, 6), slice(3, 6)),
        ("ball_rpy", slice(0, 3), slice(0, 6)),
        ("screw", slice(0, 6), slice(0, 6)),
        ("planar", slice(0, 6), slice(0, 6)),
        ("quaternion_floating", slice(0, 6), slice(0, 6)),
    ],
)
def test_what_can_never_move_is_known(kind: str, at_frames: slice, on_levers: slice) -> None:
    rng = np.random.default_rng(7)
    world, body = Body("world"), Body("body")
    joint = KINDS[kind]("joint", world, body, rng)
    (plain,) = make_topology([world, body], [joint]).mobilizers
    assert plain.rows == at_frames
    assert mobilizer_of(kind, rng, is_reversed=False).rows == on_levers
    assert mobilizer_of(kind, rng, is_reversed=True).rows == on_levers


def test_only_axes_that_turn_are_turned() -> None:
    world, body = Body("world"), Body("body")
    quarter = (np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.zeros(3))
    F, M = Frame("F", world, quarter), Frame("M", body, quarter)
    expected = {
        WeldJoint("turned", world, body, quarter): True,
        WeldJoint("straight", world, body, (np.eye(3), [1.0, 2.0, 3.0])): False,
        PrismaticJoint("slide", F, body, (0, 0, 1)): True,
        PrismaticJoint("back", F, M, (0, 0, 1)): False,
    }
    for joint, turns in expected.items():
        (mobilizer,) = make_topology([world, body], [joint]).mobilizers
        assert mobilizer.turns is turns
