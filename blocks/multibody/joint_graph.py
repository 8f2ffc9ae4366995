"""Bodies and joints as a graph without loops, which grows joint by joint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

import networkx as nx
import numpy as np
from networkx.utils import UnionFind

from flexure.blocks.math import RigidTransform, compose_transforms, invert_transform
from flexure.blocks.multibody.bodies import Body
from flexure.blocks.multibody.joints.joint import Joint
from flexure.diagrams.errors import DeclarationError, quoted
from flexure.diagrams.values import FloatArray

#: Returns the bodies that joints let move in planes across a direction in the world alone.
InPlane: TypeAlias = Callable[[FloatArray], Collection[Body]]
#: How far what is in a plane may be out of it, in rad and of its size: no more than by rounding.
EXACT = 1e-12


class JointGraph:
    """Bodies, and joints that connect them without closing a loop.

    A refused joint leaves the graph as it was.

    Parameters
    ----------
    bodies : iterable of Body
        Bodies to begin with.
    joints : iterable of Joint
        Joints between them to begin with.
    """

    def __init__(self, bodies: Iterable[Body] = (), joints: Iterable[Joint] = ()) -> None:
        self._graph = nx.Graph()
        self._connected = UnionFind()
        self._joints: set[Joint] = set()
        for body in bodies:
            self.add_body(body)
        for joint in joints:
            self.add_joint(joint)

    def add_body(self, body: Body) -> None:
        """Add a body."""
        self._graph.add_node(body)

    def add_joint(self, joint: Joint) -> None:
        """Add a joint between two bodies of the graph.

        Raises
        ------
        DeclarationError
            When the joint is there already, a body of it is not, or it would close a loop.
        """
        if joint in self._joints:
            raise DeclarationError(
                f"Cannot use joint '{joint.name}' twice",
                expected="different joints",
                found="the same object again",
                remedy="Make another joint, also between other bodies",
            )
        parent, child = joint.parent_body, joint.child_body
        for body in (parent, child):
            if body not in self._graph:
                raise DeclarationError(
                    f"Cannot put joint '{joint.name}' between '{parent.name}' and '{child.name}'",
                    expected="two bodies of the plant",
                    found=f"{body!r} of another one",
                    remedy="Make all bodies with add_body of one plant builder, and use its world",
                )
        if self._connected[parent] is self._connected[child]:
            raise self._loop_error(joint)
        self._joints.add(joint)
        self._connected.union(parent, child)
        self._graph.add_edge(parent, child, joint=joint)

    def outwards(self, root: Body) -> Iterator[tuple[Body, Joint, Body]]:
        """Yield each joint that is connected to a root, between its inboard and outboard body.

        The joints of a body are followed in the order in which they were added, each to the end of
        its branch before the next one.
        """
        for inboard, outboard in nx.dfs_edges(self._graph, root):
            yield inboard, self._graph.edges[inboard, outboard]["joint"], outboard

    def _loop_error(self, joint: Joint) -> DeclarationError:
        """Return the error of a joint between bodies that joints connect already."""
        path = nx.shortest_path(self._graph, joint.child_body, joint.parent_body)
        others = [self._graph.edges[pair]["joint"].name for pair in pairwise(path)]
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
    graph: JointGraph, world: Body, poses: Mapping[Body, RigidTransform], normal: FloatArray
) -> set[Body]:
    """Return the bodies that joints let move in planes across a direction alone.

    Parameters
    ----------
    graph : JointGraph
        The joints.
    world : Body
        The world, which belongs to them.
    poses : mapping
        The default poses of all bodies in the world.
    normal : array, shape (3,)
        The direction in the world.
    """
    found = {world}
    for inboard, joint, outboard in graph.outwards(world):
        X_WF = compose_transforms(poses[joint.parent_body], joint.frame_on_parent.X_BF)
        n = X_WF.R.T @ normal
        w, v = np.split(joint.calc_motion_matrix(joint.default_positions), 2)
        is_planar = np.allclose(np.cross(w.T, n), 0.0, atol=EXACT) and np.allclose(
            n @ v, 0.0, atol=EXACT
        )
        if inboard in found and is_planar:
            found.add(outboard)
    return found
