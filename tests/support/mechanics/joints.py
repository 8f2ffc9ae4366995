"""Every kind of joint, once for all tests: how it is made, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import flexure as fx


class JointKind(NamedTuple):
    """A kind of joint.

    ``positions`` and ``velocities`` are the names of the coordinates. ``options`` are arguments
    with which it can be made, beside the frames, and ``draw`` draws others. ``chain`` are simpler
    joints, each a kind and its axis, that move as it does one after the other, with the same
    coordinates; an axis of None is that of the joint.
    """

    make: type[fx.multibody.Joint]
    positions: str
    velocities: str
    options: Mapping[str, Any] = {}
    draw: Callable[[np.random.Generator], dict[str, Any]] = lambda rng: {}
    chain: tuple[tuple[str, tuple[float, ...] | None], ...] = ()

    @property
    def has_axis(self) -> bool:
        """Whether an axis is among its arguments."""
        return "axis" in self.options


def _axis(rng: np.random.Generator) -> dict[str, Any]:
    return {"axis": rng.normal(size=3)}


def _thread(rng: np.random.Generator) -> dict[str, Any]:
    return {**_axis(rng), "screw_pitch": rng.uniform(-2.0, 2.0)}


_X, _Y, _Z = (tuple(row) for row in np.eye(3).tolist())
_W, _V = "wx wy wz", "vx vy vz"

JOINTS: dict[str, JointKind] = {
    "weld": JointKind(fx.WeldJoint, "", ""),
    "revolute": JointKind(fx.RevoluteJoint, "q", "w", {"axis": _Z}, _axis),
    "prismatic": JointKind(fx.PrismaticJoint, "x", "v", {"axis": _X}, _axis),
    "cylindrical": JointKind(
        fx.CylindricalJoint,
        "q x",
        "w v",
        {"axis": _Z},
        _axis,
        chain=(("revolute", None), ("prismatic", None)),
    ),
    "screw": JointKind(fx.ScrewJoint, "q", "w", {"axis": _Z, "screw_pitch": 0.1}, _thread),
    "universal": JointKind(
        fx.UniversalJoint, "qx qy", "wx wy", chain=(("revolute", _X), ("revolute", _Y))
    ),
    "planar": JointKind(
        fx.PlanarJoint,
        "x y qz",
        "vx vy wz",
        chain=(("prismatic", _X), ("prismatic", _Y), ("revolute", _Z)),
    ),
    "ball_rpy": JointKind(fx.BallRpyJoint, "qx qy qz", _W),
    "ball_quaternion": JointKind(fx.BallQuaternionJoint, "qw qx qy qz", _W),
    "rpy_floating": JointKind(fx.RpyFloatingJoint, "qx qy qz x y z", f"{_W} {_V}"),
    "quaternion_floating": JointKind(fx.QuaternionFloatingJoint, "qw qx qy qz x y z", f"{_W} {_V}"),
}
