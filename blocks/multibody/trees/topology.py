"""The graph of bodies and joints, and the tree of both as the algorithms see it: structure only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    cross,
    invert_transform,
    rotate_spatial,
    shift_spatial_velocity,
)
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, quoted, suggestion
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.arrays import Array, FloatArray

#: Returns the bodies that joints let move, relative to a body, in planes across a direction alone.
InPlane: TypeAlias = Callable[[Body, FloatArray], Collection[Body]]
#: How far what is in a plane may be out of it, in rad and of its size: no more than by rounding.
EXACT = 1e-12


class JointGraph:
    """Bodies, and joints that connect them without closing a loop.

    A refused joint leaves the graph as it was.
    """

    def __init__(self, bodies: Iterable[Body] = (), joints: Iterable[Joint] = ()) -> None:
        self._neighbors: dict[Body, dict[Body, Joint]] = {}
        self._trees: dict[Body, list[Body]] = {}  # the bodies that are connected to each body
        self._joints: set[Joint] = set()
        for body in bodies:
            self.add_body(body)
        for joint in joints:
            self.add_joint(joint)

    def add_body(self, body: Body) -> None:
        """Add a body."""
        self._neighbors.setdefault(body, {})
        self._trees.setdefault(body, [body])

    def add_joint(self, joint: Joint) -> None:
        """Add a joint between two bodies of the graph."""
        if joint in self._joints:
            raise DeclarationError(
                f"Cannot use joint '{joint.name}' twice",
                expected="different joints",
                found="the same object again",
                remedy="Make another joint, also between other bodies",
            )
        parent, child = joint.parent_body, joint.child_body
        for body in (parent, child):
            if body not in self._neighbors:
                raise DeclarationError(
                    f"Cannot put joint '{joint.name}' between '{parent.name}' and '{child.name}'",
                    expected="two bodies of the plant",
                    found=f"{body!r} of another one",
                    remedy="Make all bodies with add_body of one plant builder, and use its world",
                )
        if self._trees[parent] is self._trees[child]:
            raise self._loop_error(joint)
        self._joints.add(joint)
        smaller, larger = sorted((self._trees[parent], self._trees[child]), key=len)
        larger += smaller
        self._trees |= dict.fromkeys(smaller, larger)
        self._neighbors[parent][child] = self._neighbors[child][parent] = joint

    def outwards(self, root: Body) -> Iterator[tuple[Body, Joint, Body]]:
        """Yield each joint that is connected to a root, between its inboard and outboard body.

        The joints of a body are followed in the order in which they were added, each to the end of
        its branch before the next one.
        """
        ahead = self._joints_of(root)
        while ahead:
            inboard, joint, outboard = ahead.pop()
            yield inboard, joint, outboard
            ahead += [each for each in self._joints_of(outboard) if each[2] is not inboard]

    def _joints_of(self, body: Body) -> list[tuple[Body, Joint, Body]]:
        """Return the joints of a body, each before the body beyond it, the last one first."""
        return [(body, joint, other) for other, joint in reversed(self._neighbors[body].items())]

    def _loop_error(self, joint: Joint) -> DeclarationError:
        """Return the error of a joint between bodies that joints connect already."""
        inboard_of = {
            outboard: inboard for inboard, _, outboard in self.outwards(joint.parent_body)
        }
        path = [joint.child_body]
        while path[-1] is not joint.parent_body:
            path.append(inboard_of[path[-1]])
        others = [self._neighbors[one][other].name for one, other in pairwise(path)]
        loop = " - ".join(body.name for body in [joint.parent_body, *path])
        return DeclarationError(
            f"Cannot close a loop by joint '{joint.name}'",
            expected="joints that form trees",
            found=f"the loop {loop} of joints {quoted([joint.name, *others])}",
            remedy=(
                f"Close it with add_loop_joint, or with a force element in place of '{joint.name}',"
                " or of another one: a "
                f"LinearBushing or LinearBushingRollPitchYaw between '{joint.frame_on_parent.name}'"
                f" and '{joint.frame_on_child.name}' that is stiff where the joint holds them "
                "together, with BushingConstants for its constants, as in the example of the "
                "four-bar linkage"
            ),
        )


def default_poses(graph: JointGraph, world: Body) -> dict[Body, RigidTransform]:
    """Return where the bodies that joints connect to the world are by default, in the world."""
    poses = {world: RigidTransform(np.eye(3), np.zeros(3))}
    for inboard, joint, outboard in graph.outwards(world):
        X_FM, ends = joint.default_pose, (joint.frame_on_parent.X_BF, joint.frame_on_child.X_BF)
        X_PC = compose_transforms(compose_transforms(ends[0], X_FM), invert_transform(ends[1]))
        is_reversed = joint.child_body is inboard
        X = invert_transform(X_PC) if is_reversed else X_PC
        poses[outboard] = compose_transforms(poses[inboard], X)
    return poses


def bodies_in_plane(
    graph: JointGraph, poses: Mapping[Body, RigidTransform], base: Body, normal: FloatArray
) -> set[Body]:
    """Return the bodies that joints let move, relative to a base, in planes across a direction.

    The base, such as the world, is among them. The poses of all bodies in the world and the
    direction there are the default ones.
    """
    found = {base}
    for inboard, joint, outboard in graph.outwards(base):
        X_WF = compose_transforms(poses[joint.parent_body], joint.frame_on_parent.X_BF)
        n = X_WF.R.T @ normal
        w, v = np.split(joint.calc_motion_matrix(joint.default_positions), 2)
        is_planar = np.allclose(np.cross(w.T, n), 0.0, atol=EXACT) and np.allclose(
            n @ v, 0.0, atol=EXACT
        )
        if inboard in found and is_planar:
            found.add(outboard)
    return found


@dataclass(frozen=True, eq=False)
class Mobilizer:
    """A joint seen from the world outwards: how its outboard body B moves in its inboard body P.

    F is the frame of the joint on P, and M that on B. In a reversed mobilizer F is the frame that
    the joint itself calls M, and M the one that it calls F; coordinates are those of the joint.
    """

    joint: Joint
    # Whether the child body of the joint is nearer to the world than its parent body.
    is_reversed: bool
    # inboard, outboard: numbers of P and B.
    inboard: int
    outboard: int
    # X_PF, X_MB: the pose of F in P and of B in M.
    X_PF: RigidTransform
    X_MB: RigidTransform
    # q, v: where the positions and velocities of the joint are among those of the tree.
    q: slice
    v: slice

    # Kinematics of the joint, outwards -------------------------------------------------------

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the positions q of the joint."""
        pose = self.joint.calc_pose(q)
        return invert_transform(pose) if self.is_reversed else pose

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H of shape (6, nv) with V_FM = H v, expressed in F.

        For a reversed joint, with the joint's own H' and pose X_MF = (R, p)::

            H = -Rᵀ shift(H', -p)
        """
        H = self.joint.calc_motion_matrix(q)
        if not self.is_reversed:
            return H
        R, p = self.joint.calc_pose(q)
        return rotate_spatial(-np.transpose(R), shift_spatial_velocity(H, -p))

    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v of shape (6,), the rate of H seen in F, expressed in F.

        For a reversed joint it is the rate of the matrix above, with the joint's own bias (b, c),
        velocity (w, u) = H' v and pose (R, p)::

            Ḣ v = Rᵀ (-b, w × (2 u + p × w) - c - p × b)
        """
        bias = self.joint.calc_motion_bias(q, v)
        if not self.is_reversed:
            return bias
        R, p = self.joint.calc_pose(q)
        V = self.joint.calc_motion_matrix(q) @ v
        (w, u), (b, c) = (V[:3], V[3:]), (bias[:3], bias[3:])
        turned = np.concatenate([-b, cross(w, 2.0 * u + cross(p, w)) - c - cross(p, b)])
        return rotate_spatial(np.transpose(R), turned)

    def calc_motion_factors(self, q: Array) -> tuple[Array, Array]:
        """Return S of shape (6, nv) and an orthogonal Q with V_PB = S Qᵀ v at Bo, expressed in B.

        For a reversed joint R_FMᵀ H is -shift(H', -p), with what `calc_motion_matrix` names.
        """
        if self.is_reversed:
            _, p = self.joint.calc_pose(q)
            S = -shift_spatial_velocity(self.joint.calc_motion_matrix(q), -p)
            Q = np.eye(self.joint.num_velocities)
        else:
            S, Q = self.joint.calc_motion_factors(q)
        if self.has_lever:
            S = shift_spatial_velocity(S, self.X_MB.p)
        if self.turns_B:
            S = rotate_spatial(self.X_MB.R.T, S)
        return S, Q

    def calc_bias(self, q: Array, v: Array, w_PB: Array) -> Array:
        """Return what is left of the acceleration of B in P at v̇ = 0, at Bo, expressed in B.

        With Ḣ v = (b, c) at Mo and r = p_MB it is (b, c + b × r + w_PB × (w_PB × r)).
        """
        b = c = np.zeros(3)
        if self.has_motion_bias:
            R_BF = np.transpose(self.calc_pose(q).R @ self.X_MB.R)
            bias = self.calc_motion_bias(q, v)
            b, c = R_BF @ bias[:3], R_BF @ bias[3:]
        if self.has_lever and self.joint.can_rotate:
            r = self.X_MB.R.T @ self.X_MB.p
            c = c + cross(b, r) + cross(w_PB, cross(w_PB, r))
        return np.concatenate([b, c])

    # Structure, which saves work -------------------------------------------------------------

    @cached_property
    def is_weld(self) -> bool:
        """Whether the joint has no velocities."""
        return self.joint.num_velocities == 0

    @cached_property
    def turns_F(self) -> bool:
        """Whether the axes of F are others than those of P."""
        return not np.array_equal(self.X_PF.R, np.eye(3))

    @cached_property
    def turns_B(self) -> bool:
        """Whether the axes of B are others than those of M."""
        return not np.array_equal(self.X_MB.R, np.eye(3))

    @cached_property
    def turns(self) -> bool:
        """Whether the axes of B can be others than those of P."""
        if self.joint.can_rotate:
            return True
        R_FM = self.calc_pose(self.joint.zero_positions()).R
        return not np.array_equal(self.X_PF.R @ R_FM @ self.X_MB.R, np.eye(3))

    @cached_property
    def has_lever(self) -> bool:
        """Whether Bo is away from Mo."""
        return bool(np.any(self.X_MB.p))

    @cached_property
    def has_bias(self) -> bool:
        """Whether `calc_bias` is not always zero."""
        return self.has_motion_bias or (self.has_lever and self.joint.can_rotate)

    @cached_property
    def moves_origin(self) -> bool:
        """Whether Bo can move in P."""
        return self.joint.can_translate or (self.joint.can_rotate and self.has_lever)

    @cached_property
    def rows(self) -> slice:
        """Components of the motions of B in P at Bo that are not always zero."""
        return slice(0 if self.joint.can_rotate else 3, 6 if self.moves_origin else 3)

    @cached_property
    def freed(self) -> npt.NDArray[np.bool_]:
        """Which components of a motion of B in P, expressed in B, the joint leaves free by itself.

        There are such components where each velocity is one of them, as for all joints in their
        usual frames; the other components are then those that the joint hands on.
        """
        q = scalars.symbols(scalars.Graph(), "q", self.joint.num_positions)
        S, _ = self.calc_motion_factors(q)
        moved = np.ones((6, 1), dtype=bool) if scalars.sources(S) else np.asarray(S) != 0.0
        is_selection = bool(np.all(np.sum(moved, axis=0) == 1))
        freed: npt.NDArray[np.bool_] = np.any(moved, axis=1) & is_selection
        return freed

    @cached_property
    def has_motion_bias(self) -> bool:
        """Whether H depends on q, so that Ḣ v is not always zero."""
        q = scalars.symbols(scalars.Graph(), "q", self.joint.num_positions)
        return bool(scalars.sources(self.calc_motion_matrix(q)))


@dataclass(frozen=True, eq=False)
class Topology:
    """Bodies and the mobilizers that connect them to the world, as trees."""

    bodies: tuple[Body, ...]  # all bodies by their numbers, the world first
    # One for each body but the world, in the order of their coordinates: along one branch after the
    # other, so that inboard bodies come first and the coordinates of a tree are contiguous.
    mobilizers: tuple[Mobilizer, ...]

    @cached_property
    def num_positions(self) -> int:
        """Number of positions q."""
        return sum(mobilizer.joint.num_positions for mobilizer in self.mobilizers)

    @cached_property
    def num_velocities(self) -> int:
        """Number of velocities v."""
        return sum(mobilizer.joint.num_velocities for mobilizer in self.mobilizers)

    def mobilizer_of(self, joint: Joint) -> Mobilizer:
        """Return the mobilizer of a joint."""
        if joint not in self._by_joint:
            names = (mobilizer.joint.name for mobilizer in self.mobilizers)
            raise UnknownNameError(
                f"Cannot find {joint!r} in a plant", remedy=suggestion(joint.name, names)
            )
        return self._by_joint[joint]

    def path_to(self, body: int) -> list[Mobilizer]:
        """Return the mobilizers between the world and a body, the one of the body first."""
        path = []
        while body:
            path.append(self._by_outboard[body])
            body = path[-1].inboard
        return path

    @cached_property
    def _by_joint(self) -> dict[Joint, Mobilizer]:
        return {mobilizer.joint: mobilizer for mobilizer in self.mobilizers}

    @cached_property
    def _by_outboard(self) -> dict[int, Mobilizer]:
        return {mobilizer.outboard: mobilizer for mobilizer in self.mobilizers}


def make_topology(bodies: Sequence[Body], joints: Sequence[Joint]) -> Topology:
    """Span trees over bodies and joints, from the world outwards.

    From each body its joints are followed in the order in which they are given, and each branch to
    its end before the next one. So the coordinates have the order that Drake 1.51 gives them.
    Joints may be given in any order and direction. They are refused when one is there twice or on
    a body that is not, when they close a loop, or when they leave a body without a path to the
    world.
    """
    numbers = {body: number for number, body in enumerate(bodies)}
    mobilizers: list[Mobilizer] = []
    num_q = num_v = 0
    for inboard, joint, outboard in JointGraph(bodies, joints).outwards(bodies[0]):
        is_reversed = joint.child_body is inboard
        frames = joint.frame_on_parent, joint.frame_on_child
        frame_F, frame_M = reversed(frames) if is_reversed else frames
        mobilizer = Mobilizer(
            joint,
            is_reversed,
            inboard=numbers[inboard],
            outboard=numbers[outboard],
            X_PF=frame_F.X_BF,
            X_MB=invert_transform(frame_M.X_BF),
            q=slice(num_q, num_q + joint.num_positions),
            v=slice(num_v, num_v + joint.num_velocities),
        )
        mobilizers.append(mobilizer)
        num_q, num_v = mobilizer.q.stop, mobilizer.v.stop
    _require_all(bodies, {0, *(mobilizer.outboard for mobilizer in mobilizers)})
    return Topology(tuple(bodies), tuple(mobilizers))


def _require_all(bodies: Sequence[Body], reached: set[int]) -> None:
    """Refuse bodies without a path to the world."""
    lost = [body.name for number, body in enumerate(bodies) if number not in reached]
    if lost:
        raise DeclarationError(
            "Cannot reach all bodies from the world",
            expected="a path of joints to each",
            found=f"none to {quoted(lost)}",
            remedy="Add a joint; a QuaternionFloatingJoint to the world lets a body move freely",
        )
