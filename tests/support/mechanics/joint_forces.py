"""Joints to attach force elements to, and what a force element computes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.force_elements.joint_force_element import JointForceElement
from flexure.blocks.multibody.joints.base.joint import Joint
from tests.support.mechanics.joints import JOINTS


def joint(kind: str = "revolute", **options: Any) -> Joint:
    """Make a joint between two bodies of its own."""
    known = JOINTS[kind]
    return known.make("axis", Body("base"), Body("part"), **{**known.options, **options})


#: Kinds whose velocities are no rates of positions, or that have none.
WITHOUT_RATES = [
    kind
    for kind, known in JOINTS.items()
    if not known.velocities or not joint(kind).velocities_are_rates
]


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
