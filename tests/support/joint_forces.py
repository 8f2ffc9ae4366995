"""Joints to attach force elements to, and what a force element computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.force_elements.force_element import JointForceElement
from flexure.blocks.multibody.joints.ball_quaternion import BallQuaternionJoint
from flexure.blocks.multibody.joints.ball_rpy import BallRpyJoint
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.planar import PlanarJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.quaternion_floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.screw import ScrewJoint
from flexure.blocks.multibody.joints.universal import UniversalJoint
from flexure.blocks.multibody.joints.weld import WeldJoint

#: How to make a joint of each kind, before it is in a plant.
_KINDS: dict[str, Callable[..., Joint]] = {
    "ball_quaternion": BallQuaternionJoint,
    "ball_rpy": BallRpyJoint,
    "planar": PlanarJoint,
    "prismatic": PrismaticJoint,
    "quaternion_floating": QuaternionFloatingJoint,
    "revolute": RevoluteJoint,
    "screw": ScrewJoint,
    "universal": UniversalJoint,
    "weld": WeldJoint,
}
_NEEDED: dict[str, dict[str, Any]] = {
    "prismatic": {"axis": (1.0, 0.0, 0.0)},
    "revolute": {"axis": (0.0, 0.0, 1.0)},
    "screw": {"axis": (0.0, 0.0, 1.0), "screw_pitch": 0.01},
}

#: Kinds whose velocities are no rates of positions, or that have none.
WITHOUT_RATES = ["ball_quaternion", "ball_rpy", "quaternion_floating", "weld"]


def joint(kind: str = "revolute", **options: Any) -> Joint:
    """Make a joint between two bodies of its own."""
    return _KINDS[kind]("axis", Body("base"), Body("part"), **_NEEDED.get(kind, {}), **options)


class Computed(NamedTuple):
    """What a force element on a joint computes."""

    force: Any  # an array, with an entry for each velocity
    stored_energy: float
    conservative_power: float
    non_conservative_power: float


def computed(
    element: JointForceElement, q: npt.ArrayLike, v: npt.ArrayLike = 0.0, **values: Any
) -> Computed:
    """Evaluate an element at a position and velocity, with parameters set in the context."""
    context = element.create_default_context()
    element.position.fix(context, np.broadcast_to(q, element.joint.num_positions))
    element.velocity.fix(context, np.broadcast_to(v, element.joint.num_velocities))
    for name, value in values.items():
        context.set(name, value)
    return Computed(
        element.generalized_force.eval(context),
        float(element.stored_energy.eval(context)[0]),
        float(element.conservative_power.eval(context)[0]),
        float(element.non_conservative_power.eval(context)[0]),
    )
