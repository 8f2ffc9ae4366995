"""Motors on joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.handles import HandleOwner

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.values.parameters import NumericParameter


@dataclass(eq=False)
class Actuator(HandleOwner):
    """A motor on a joint: a plant input with one generalized force per velocity.

    The rotor turns ρ times per turn of the joint, so the joint feels its inertia I as ρ² I, added
    to the diagonal of the mass matrix. Its kinetic energy ½ ρ² I v² is part of that of the plant;
    momentum, weight and gyroscopic moments of rotors are left out, as they are in Drake.

    Attributes
    ----------
    name : str
        Name of the input of the plant.
    joint : Joint
        What it drives.
    default_gear_ratio : float
        Turns ρ of the rotor per turn of the joint in new contexts; the input is the torque on the
        side of the joint.
    default_rotor_inertia : float
        Inertia I of the rotor in new contexts, in kg m² (or kg).
    effort_limit : float
        Greatest magnitude of the force that the motor gives, on the side of the joint.

    See Also
    --------
    PlantBuilder : Adds actuators.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> motor = builder.add_actuator("motor", axis, effort_limit=10.0)
    >>> door = builder.build()
    >>> door.input_port("motor")
    <ExportedInputPort 'door.motor'>
    """

    name: str
    joint: Joint
    default_gear_ratio: float = 1.0
    default_rotor_inertia: float = 0.0
    effort_limit: float = np.inf

    if not TYPE_CHECKING:  # where it would hide misspelled names

        def __setattr__(self, name: str, value: Any) -> None:
            made = "effort_limit" in self.__dict__  # which comes last
            if made and not isinstance(getattr(type(self), name, None), property):
                raise DeclarationError(
                    f"Cannot set '{name}' of motor '{self.name}' to {value!r:.80}",
                    expected="the constants with which it was added to its plant",
                    found="a change of them",
                    remedy="Pass them to add_actuator",
                )
            super().__setattr__(name, value)

    @property
    def gear_ratio(self) -> NumericParameter:
        """Turns ρ of the rotor per turn of the joint in contexts."""
        return self.joint.tree.find_parameter(f"{self.name}_gear_ratio")

    @property
    def rotor_inertia(self) -> NumericParameter:
        """Inertia I of the rotor in contexts, in kg m² (or kg)."""
        return self.joint.tree.find_parameter(f"{self.name}_rotor_inertia")

    def calc_reflected_inertia(self, context: Context) -> float:
        """Return ρ² I, the inertia that each velocity of the joint feels, in kg m² or kg."""
        return float(self.gear_ratio.get(context) ** 2 * self.rotor_inertia.get(context))
