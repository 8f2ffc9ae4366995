"""External forces on a tree: one description for each input of forces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.values.arrays import Array


@dataclass(frozen=True)
class ForceInput:
    """An input of a tree through which forces come in."""

    name: str  # name of the port
    # What the force acts on: a body, with a spatial force about its origin expressed in the world,
    # or a joint, with a generalized force.
    target: Body | Joint
    # Whether a force element gives it, which accounts for its power by itself.
    is_internal: bool = False
    limit: float = np.inf  # greatest magnitude of each component that has an effect

    def limited(self, value: Array) -> Array:
        """Return what of the value at the port has an effect."""
        return value if self.limit == np.inf else np.clip(value, -self.limit, self.limit)
