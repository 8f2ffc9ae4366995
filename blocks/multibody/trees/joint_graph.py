"""Bodies and joints as a graph without loops, which grows joint by joint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from flexure.blocks.math import RigidTransform, compose_transforms, invert_transform
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.values.arrays import FloatArray

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
