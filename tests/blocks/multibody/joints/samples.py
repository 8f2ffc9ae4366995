"""Joints of every kind, and states to try them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.blocks.multibody.bodies.bodies import Body
from tests.support.mechanics.joints import JOINTS
from tests.support.tiers import for_each

POSE = (rotation_from_rpy([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]))


class Kind(NamedTuple):
    """A joint, and what is known about its kind."""

    make: Callable[..., fx.multibody.Joint]
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


def _kind(name: str, *args: Any, **kwargs: Any) -> Kind:
    """Return a sample of a kind of joint."""
    known = JOINTS[name]
    turns, moves = "w" in known.velocities, "v" in known.velocities or name == "screw"
    make = joint_of(known.make, *args, **kwargs)
    return Kind(make, name, known.positions, known.velocities, turns, moves)


def _samples() -> dict[str, Kind]:
    """Return a sample of each kind, by its name with spaces, and more for those with an axis."""
    general = {"axis": (2, -3, 6)}
    found = {}
    for name, known in JOINTS.items():
        options = {**known.options, **(general if known.has_axis else {})}
        found[name.replace("_", " ")] = _kind(name, **options)
    return found


KINDS: dict[str, Kind] = {
    **_samples(),
    "weld with a pose": _kind("weld", POSE),
    "revolute x": _kind("revolute", (1, 0, 0)),
    "revolute -y": _kind("revolute", (0, -2, 0)),
    "revolute z": _kind("revolute", (0, 0, 0.1)),
    "revolute yz": _kind("revolute", (0, -3, 4)),
    "prismatic -z": _kind("prismatic", (0, 0, -1)),
    "screw": _kind("screw", (2, -3, 6), screw_pitch=0.7),
    "screw z": _kind("screw", screw_pitch=-0.3),
    "screw without pitch": _kind("screw", (0, 1, 0), screw_pitch=0.0),
}

every_kind = for_each("name", KINDS)
SEEDS = range(4)


def has_quaternion(joint: fx.multibody.Joint) -> bool:
    """Return whether the joint has one position more than velocities."""
    return joint.num_positions > joint.num_velocities


def random_state(joint: fx.multibody.Joint, seed: int) -> tuple[Any, Any]:
    """Draw positions away from gimbal lock, quaternions of any length, and velocities."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.4, 1.4, joint.num_positions)
    return q, rng.normal(size=joint.num_velocities)
