"""The joints that a plant gets when it is built: of bodies that nothing connects, and of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

from flexure.blocks.math import compose_transforms
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement, ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.trees.joint_graph import JointGraph, bodies_in_plane, default_poses


def completed_joints(
    graph: JointGraph,
    bodies: Sequence[Body],
    given: Sequence[Joint],
    elements: Iterable[ForceElement],
    inside: Iterable[Any],
) -> list[Joint]:
    """Return all joints of a plant, with those of bodies that float and of nodes of elements.

    The graph is that of the given joints. All force elements check how they are assembled and make
    joints for their nodes. ``inside`` is what elements have inside: nodes, which are bodies, and
    segments.
    """
    world = bodies[0]
    nodes = [part for part in inside if isinstance(part, Body)]
    joints = [*given, *_floating_joints(graph, bodies, given, nodes)]
    default = BodyForceElement.check_assembly
    asking = [
        each
        for each in elements
        if isinstance(each, BodyForceElement) and type(each).check_assembly is not default
    ]
    if asking:
        graph = JointGraph(bodies, joints)
        poses = default_poses(graph, world)
    for element in asking:
        ends = [(poses[each.body], each.frame.X_BF) for each in element.attachments]
        at = [compose_transforms(*each) for each in ends]
        element.check_assembly(at)
        made = element.make_joints(world, at, partial(bodies_in_plane, graph, poses))
        for joint in made:
            graph.add_joint(joint)
        if made:
            poses = default_poses(graph, world)
        joints += made
    for index, joint in enumerate(joints[len(given) :], start=len(given)):
        joint.index = index
        joint.complete()
    return joints


def _floating_joints(
    graph: JointGraph, bodies: Sequence[Body], joints: Collection[Joint], anchors: Iterable[Body]
) -> list[Joint]:
    """Make a floating joint for one body of each group that no joint or anchor connects."""

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
