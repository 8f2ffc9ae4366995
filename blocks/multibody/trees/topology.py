"""The tree of bodies and joints as the algorithms see it: structure only, no values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import (
    RigidTransform,
    cross,
    invert_transform,
    rotate_spatial,
    shift_spatial_velocity,
)
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.joint_graph import JointGraph
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, quoted, suggestion
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.arrays import Array


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
