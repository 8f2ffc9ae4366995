"""Joints of every kind, and states to try them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.math import rotation_from_rpy
from flexure.blocks.multibody import joints as fj
from flexure.blocks.multibody.bodies.bodies import Body
from tests.support.tiers import for_each

POSE = (rotation_from_rpy([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]))


class Kind(NamedTuple):
    """A joint, and what is known about its kind."""

    make: Callable[..., fj.Joint]
    type_name: str
    positions: str
    velocities: str
    can_rotate: bool
    can_translate: bool


def joint_of(kind: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return a function that makes a joint between two bodies, new ones unless given."""

    def make(parent: Body | None = None, child: Body | None = None, **more: Any) -> Any:
        ends = parent or Body("pelvis"), child or Body("thigh")
        return kind("hip", *ends, *args, **{**kwargs, **more})

    return make


REVOLUTE = ("revolute", "q", "w", True, False)
PRISMATIC = ("prismatic", "x", "v", False, True)
SCREW = ("screw", "q", "w", True, True)
XYZ, V_XYZ = "x y z", "wx wy wz vx vy vz"

KINDS: dict[str, Kind] = {
    "weld": Kind(joint_of(fj.WeldJoint), "weld", "", "", False, False),
    "weld with a pose": Kind(joint_of(fj.WeldJoint, POSE), "weld", "", "", False, False),
    "revolute x": Kind(joint_of(fj.RevoluteJoint, (1, 0, 0)), *REVOLUTE),
    "revolute -y": Kind(joint_of(fj.RevoluteJoint, (0, -2, 0)), *REVOLUTE),
    "revolute z": Kind(joint_of(fj.RevoluteJoint, (0, 0, 0.1)), *REVOLUTE),
    "revolute yz": Kind(joint_of(fj.RevoluteJoint, (0, -3, 4)), *REVOLUTE),
    "revolute": Kind(joint_of(fj.RevoluteJoint, (2, -3, 6)), *REVOLUTE),
    "prismatic -z": Kind(joint_of(fj.PrismaticJoint, (0, 0, -1)), *PRISMATIC),
    "prismatic": Kind(joint_of(fj.PrismaticJoint, (2, -3, 6)), *PRISMATIC),
    "screw z": Kind(joint_of(fj.ScrewJoint, screw_pitch=-0.3), *SCREW),
    "screw": Kind(joint_of(fj.ScrewJoint, (2, -3, 6), screw_pitch=0.7), *SCREW),
    "screw without pitch": Kind(joint_of(fj.ScrewJoint, (0, 1, 0), screw_pitch=0.0), *SCREW),
    "universal": Kind(joint_of(fj.UniversalJoint), "universal", "qx qy", "wx wy", True, False),
    "planar": Kind(joint_of(fj.PlanarJoint), "planar", "x y qz", "vx vy wz", True, True),
    "ball rpy": Kind(joint_of(fj.BallRpyJoint), "ball_rpy", "qx qy qz", "wx wy wz", True, False),
    "ball quaternion": Kind(
        joint_of(fj.BallQuaternionJoint),
        "ball_quaternion",
        "qw qx qy qz",
        "wx wy wz",
        True,
        False,
    ),
    "rpy floating": Kind(
        joint_of(fj.RpyFloatingJoint), "rpy_floating", f"qx qy qz {XYZ}", V_XYZ, True, True
    ),
    "quaternion floating": Kind(
        joint_of(fj.QuaternionFloatingJoint),
        "quaternion_floating",
        f"qw qx qy qz {XYZ}",
        V_XYZ,
        True,
        True,
    ),
}

every_kind = for_each("name", KINDS)
SEEDS = range(4)


def has_quaternion(joint: fj.Joint) -> bool:
    """Tell whether the joint has one position more than velocities."""
    return joint.num_positions > joint.num_velocities


def random_state(joint: fj.Joint, seed: int) -> tuple[Any, Any]:
    """Draw positions away from gimbal lock, quaternions of any length, and velocities."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.4, 1.4, joint.num_positions)
    return q, rng.normal(size=joint.num_velocities)
