"""What blocks of the catalog are made of: bodies, joints and trees in no plant, and functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.blocks.multibody.trees.topology import Topology, make_topology
from flexure.blocks.multibody.trees.tree_inputs import Actuator, ForceInput

#: An inertia about no axis of symmetry, with the center of mass off the origin.
LUMP = fx.SpatialInertia(
    2.0, (0.1, -0.2, 0.3), [[0.5, 0.05, -0.02], [0.05, 0.6, 0.03], [-0.02, 0.03, 0.7]]
)
#: A pose that is turned about no axis of coordinates.
ASKEW = rotation_from_rpy((0.3, -0.4, 0.5)), (0.2, -0.1, 0.3)


def world() -> fx.Body:
    """Make the body that does not move."""
    body = fx.Body("world")
    body.number = 0
    return body


def lump(name: str) -> fx.Body:
    """Make a body."""
    return fx.Body(name, LUMP)


def askew(body: fx.Body) -> fx.Frame:
    """Make a frame that lies on a body in a general way."""
    return fx.Frame(f"{body.name}_askew", body, ASKEW)


def joint(
    kind: type[fx.multibody.Joint], *arguments: object, **options: object
) -> fx.multibody.Joint:
    """Make a joint between two bodies of its own."""
    return kind("axis", lump("frame"), lump("panel"), *arguments, **options)  # type: ignore[arg-type]


HINGED = joint(fx.RevoluteJoint, (0.0, 0.0, 1.0), position_limits=(-0.5, 1.5))
SLIDING = joint(fx.PrismaticJoint, (1.0, 0.0, 0.0))
SCREWED = joint(fx.ScrewJoint, (0.0, 0.0, 1.0), screw_pitch=0.1)
PLANAR = joint(fx.PlanarJoint)
UNIVERSAL = joint(fx.UniversalJoint)
BALL = joint(fx.BallRpyJoint)
GLIDE = fx.PlanarJoint("glide", lump("table"), lump("plate"))
GEARS = fx.constraints.GearPair("gears", HINGED, (GLIDE, "qz"), -2.0, 0.1)
MIXER = fx.constraints.Coupling("mixer", {HINGED: 1.0, (GLIDE, "y"): -2.0, (GLIDE, "qz"): 3.0})


def tree(*joints: fx.multibody.Joint) -> Topology:
    """Number the bodies of joints, and span a tree over them."""
    ends = [body for joint in joints for body in (joint.parent_body, joint.child_body)]
    bodies = sorted(dict.fromkeys(ends), key=lambda body: not body.is_world)
    for number, body in enumerate(bodies):
        body.number = number
    return make_topology(bodies, joints)


def pendulum() -> Topology:
    """One body on a damped axis of coordinates."""
    return tree(fx.RevoluteJoint("axis", world(), lump("bob"), (0.0, 1.0, 0.0), damping=0.5))


def slider_on_arm() -> Topology:
    """A prismatic joint, at frames that lie askew, on a revolute one that is reversed."""
    ground, arm, slider = world(), lump("arm"), lump("slider")
    return tree(
        fx.RevoluteJoint("axis", askew(arm), askew(ground), (1.0, 2.0, -1.0), damping=0.1),
        fx.PrismaticJoint("slide", arm, askew(slider), (0.0, 1.0, 0.5), damping=0.2),
    )


def gripper() -> Topology:
    """A screw on a universal joint."""
    ground, wrist, finger = world(), lump("wrist"), lump("finger")
    return tree(
        fx.UniversalJoint("wrist", ground, askew(wrist), damping=(0.1, 0.2)),
        fx.ScrewJoint("spindle", wrist, finger, (0.0, 0.0, 1.0), screw_pitch=0.2, damping=0.3),
    )


def puck() -> Topology:
    """A planar joint, with a body welded to what it moves."""
    ground, disk, knob = world(), lump("disk"), lump("knob")
    return tree(
        fx.PlanarJoint("plane", askew(ground), disk, damping=(0.1, 0.2, 0.3)),
        fx.WeldJoint("glue", disk, knob, ASKEW),
    )


def shoulder() -> Topology:
    """A ball joint with angles."""
    return tree(fx.BallRpyJoint("shoulder", world(), askew(lump("arm")), damping=(0.1, 0.2, 0.3)))


def reversed_hip() -> Topology:
    """A ball joint with a quaternion, which is reversed."""
    thigh = lump("thigh")
    return tree(fx.BallQuaternionJoint("hip", askew(thigh), world(), damping=(0.1, 0.2, 0.3)))


def airplane() -> Topology:
    """A body that floats, with angles."""
    return tree(fx.RpyFloatingJoint("airplane", world(), lump("airplane"), angular_damping=0.1))


def satellite() -> Topology:
    """A body that floats, with a quaternion."""
    return tree(fx.QuaternionFloatingJoint("satellite", world(), lump("satellite")))


def forces_on(topology: Topology) -> Sequence[ForceInput]:
    """Make inputs of a tree for an element, a motor and a force from outside."""
    joints = [each.joint for each in topology.mobilizers if each.joint.num_velocities]
    body = topology.bodies[1]
    return (
        ForceInput("spring_on_A", body, is_internal=True),
        ForceInput("friction", joints[-1], is_internal=True),
        ForceInput("motor_effort", joints[0]),
        ForceInput("push", body),
    )


def motors_on(topology: Topology) -> Sequence[Actuator]:
    """Make motors with and without a gear on the joints at both ends."""
    joints = [each.joint for each in topology.mobilizers if each.joint.num_velocities]
    return (Actuator("motor", joints[0], 3.0, 0.03), Actuator("tail", joints[-1], 1.0, 0.2))


def flying() -> fx.Plant:
    """A plant of a body that a motor moves in every direction."""
    builder = fx.PlantBuilder("flying")
    body = builder.add_body("drone", LUMP)
    drone = builder.add_joint(
        fx.RpyFloatingJoint("drone", builder.world, body, angular_damping=0.1)
    )
    builder.add_actuator("rotors", drone, gear_ratio=3.0, rotor_inertia=0.03)
    return builder.build()


def half_driven() -> fx.Plant:
    """A plant with a joint that has a motor, on one without."""
    builder = fx.PlantBuilder("half_driven")
    frame, arm = builder.add_body("frame", LUMP), builder.add_body("arm", LUMP)
    builder.add_joint(fx.RpyFloatingJoint("drift", builder.world, frame))
    shoulder = builder.add_joint(fx.BallRpyJoint("shoulder", frame, arm))
    builder.add_actuator("motor", shoulder, rotor_inertia=0.2)
    return builder.build()


def random_unit_inertia(rng: np.random.Generator) -> object:
    """Draw the unit inertia of a body, as xx, yy, zz, xy, xz, yz."""
    points = rng.normal(size=(4, 3))
    moments = np.trace(points.T @ points) * np.eye(3) - points.T @ points
    return [*np.diag(moments), moments[0, 1], moments[0, 2], moments[1, 2]]


# Functions that are handed to blocks are at the top level, so that they can be pickled.


def bowl(left: Any, right: Any) -> Any:
    bent = np.where(right[0] > 0.5, left[1] * right[0], np.abs(left[0]))
    return [left[0] * left[0] + right[1], bent]


def spiral(time: Any, radius: Any) -> Any:
    return [radius * np.cos(time), radius * np.sin(time)]


def foreign_sine(u: Any) -> Any:
    return math.sin(u[0])
