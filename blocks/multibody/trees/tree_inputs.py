"""Inputs of a tree: external forces, motors on joints, and inertia that force elements carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks.math import MassProperties, RigidTransform, skew
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.solids import symmetric_matrix
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.handles import HandleOwner

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.values.parameters import NumericParameter


#: Ten numbers hold what is carried: mass m in kg, first moment h = m c in kg m, and the inertia
#: xx, yy, zz, xy, xz, yz about the origin of a frame in kg m², all expressed in that frame. They
#: add up where bodies are joined.
INERTIA_SIZE = 10


@dataclass(frozen=True)
class InertiaInput:
    """An input of a tree through which a force element adds to the inertia of a body."""

    name: str  # name of the port, which takes ten numbers about Bo
    body: Body  # the body that carries it


def inertia_on_body(inertia_F: Array, X_BF: RigidTransform) -> Array:
    """Return ten numbers of a frame F on a body B as those of the frame of B.

    With h = R_BF h_F and p = p_BF::

        h_B = h + m p
        I_B = R_BF I_F R_BFᵀ + (2 p · h + m p · p) 1 - (p hᵀ + h pᵀ + m p pᵀ)
    """
    R, p = X_BF
    mass, h = inertia_F[0], R @ inertia_F[1:4]
    twice = skew(h + 0.5 * mass * p) @ skew(p)
    turned = R @ symmetric_matrix(inertia_F[4:]) @ R.T - (twice + twice.T)
    six = [turned[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return scalars.array([mass, *(h + mass * p), *six])


def joined(own: MassProperties, carried: Sequence[Array]) -> MassProperties:
    """Return the mass properties of a body, whose own mass may be zero, with all that it carries.

    Everything is about one point and expressed in one frame.
    """
    added: Array = sum(carried[1:], carried[0])
    mass = own.mass + added[0]
    moment = own.mass * own.com + added[1:4]
    com = moment / np.where(mass == 0.0, 1.0, mass)
    return MassProperties(mass, com, own.inertia + symmetric_matrix(added[4:]))


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
