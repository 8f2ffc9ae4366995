"""A container for forces on bodies and along joints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.values import FloatArray

if TYPE_CHECKING:
    from flexure.blocks.multibody.plant import Plant


class MultibodyForces:
    """Forces on the bodies of a plant and along its joints, zero at first, to be added to.

    Parameters
    ----------
    plant : Plant
        The plant.

    Attributes
    ----------
    generalized_forces : ndarray, shape (nv,)
        Forces along the velocities of the joints, in N or N m.
    body_forces : list of ndarray, shape (6,)
        Spatial force on each body about its origin, expressed in the world, the world first.
    """

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.generalized_forces: FloatArray = np.zeros(plant.num_velocities)
        self.body_forces: list[FloatArray] = [np.zeros(6) for _ in plant.bodies]

    def add(self, other: MultibodyForces) -> None:
        """Add other forces on the same plant."""
        self.generalized_forces += other.generalized_forces
        for number, force in enumerate(other.body_forces):
            self.body_forces[number] += force
