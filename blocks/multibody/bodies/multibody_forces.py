"""A container for forces on bodies and along joints."""

from __future__ import annotations

import numpy as np

from flexure.blocks.multibody.bodies.plant_base import PlantBase
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ContextError, DeclarationError
from flexure.diagrams.values.arrays import FloatArray


class MultibodyForces:
    """Forces on the bodies and joints of a plant; zero at first, then accumulated.

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

    Raises
    ------
    DeclarationError
        When it is no plant.

    See Also
    --------
    Plant.calc_generalized_forces : The generalized forces equivalent to all of them.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("bench")
    >>> bob = builder.add_body("bob", fx.SpatialInertia.point_mass(2.0))
    >>> _ = builder.add_joint(fx.PrismaticJoint("rail", builder.world, bob, axis=(1, 0, 0)))
    >>> plant = builder.build()
    >>> forces = fx.MultibodyForces(plant)
    >>> forces.body_forces[1] += [0.0, 0.0, 0.0, 4.0, 0.0, 0.0]
    >>> context = plant.create_default_context()
    >>> plant.calc_generalized_forces(context, forces)
    array([4.])
    """

    def __init__(self, plant: PlantBase) -> None:
        fits, wanted = isinstance(plant, PlantBase), "a plant, as made by PlantBuilder.build()"
        require(fits, plant, "Cannot collect forces", wanted, error=DeclarationError)
        self.plant = plant
        self.generalized_forces: FloatArray = np.zeros(plant.num_velocities)
        self.body_forces: list[FloatArray] = [np.zeros(6) for _ in plant.bodies]

    def add(self, other: MultibodyForces) -> None:
        """Add other forces on the same plant.

        Raises
        ------
        ContextError
            When they belong to another plant; nothing is added then.
        """
        require_forces(other, self.plant, f"Cannot add to the forces on '{self.plant.label}'")
        self.generalized_forces += other.generalized_forces
        for number, force in enumerate(other.body_forces):
            self.body_forces[number] += force

    def __repr__(self) -> str:
        return f"<MultibodyForces on '{self.plant.label}'>"


def require_forces(forces: object, plant: PlantBase, attempt: str) -> None:
    """Refuse what are no forces on a plant."""
    found = repr(forces)
    if isinstance(forces, MultibodyForces):
        if forces.plant is plant:
            return
        found = f"forces on another plant, '{forces.plant.label}'"
    raise ContextError(
        attempt,
        expected=f"MultibodyForces on '{plant.label}'",
        found=found,
        remedy="Make them with MultibodyForces(plant), from the same plant object",
    )
