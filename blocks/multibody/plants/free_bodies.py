"""The joints of bodies that nothing connects to the world."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.quaternion_floating import QuaternionFloatingJoint
from flexure.blocks.multibody.trees.joint_graph import JointGraph


def floating_joints(
    graph: JointGraph,
    bodies: Sequence[Body],
    joints: Collection[Joint],
    anchors: Iterable[Body],
) -> list[Joint]:
    """Make a floating joint for one body of each group that no joint connects to the world.

    Parameters
    ----------
    graph : JointGraph
        Of all joints that exist.
    bodies : sequence of Body
        All bodies, the world first.
    joints : collection of Joint
        The joints that exist.
    anchors : iterable of Body
        Bodies that get joints elsewhere.
    """

    def connected(body: Body) -> set[Body]:
        return {body, *(outboard for _, _, outboard in graph.outwards(body))}

    children, names = {each.child_body for each in joints}, {each.name for each in joints}
    world = bodies[0]
    reached = set[Body]().union(*map(connected, [world, *anchors]))
    made: list[Joint] = []
    for body in sorted(bodies, key=children.__contains__):  # no child of a joint first
        if body not in reached:
            reached |= connected(body)
            name = body.name
            while name in names:
                name += "_free"
            made.append(QuaternionFloatingJoint(name, world, body))
    return made
