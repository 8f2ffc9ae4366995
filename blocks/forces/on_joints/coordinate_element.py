"""Force elements that act along every coordinate of a joint by itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.coordinate_law import CoordinateLaw
from flexure.blocks.multibody.force_elements.joint_force_element import JointForceElement
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, as_numbers
from flexure.diagrams.values.parameters import NumericParameter


class CoordinateForceElement(JointForceElement):
    """A force element that applies a law to every coordinate of a joint, each by itself.

    The velocities of the joint have to be the rates of its positions, as those of all kinds but
    ball and floating joints are.

    A subclass declares the constants of the law as parameters and implements `law`.
    """

    def __init__(self, name: str, joint: Joint, *, losses_need_position: bool = True) -> None:
        super().__init__(name, joint, losses_need_position=losses_need_position)
        if not (joint.velocities_are_rates and joint.num_velocities):
            raise DeclarationError(
                f"Cannot attach '{name}' to joint '{joint.name}'",
                expected="a joint whose velocities are the rates of its positions",
                found=f"a {joint.type_name} joint",
                remedy="Use a revolute or planar joint, or any but ball and floating joints",
            )

    @abstractmethod
    def law(self, context: Any) -> CoordinateLaw:
        """Return the law with the constants of a context."""

    def calc_generalized_force(self, context: Any) -> Array:
        """Return the force along every coordinate."""
        return self.law(context).force(self.position(context), self.velocity(context))

    def calc_terms(self, context: Any) -> dict[str, Array]:
        """Return the conservative and the dissipative force along every coordinate."""
        law, position = self.law(context), self.position(context)
        return {
            "elastic": law.conservative_force(position),
            "damping": law.dissipative_force(position, self.velocity(context)),
        }

    def calc_stored_energy(self, context: Any) -> Array:
        """Return the stored energy of all coordinates."""
        return np.sum(self.law(context).stored_energy(self.position(context)))

    def calc_conservative_power(self, context: Any) -> Array:
        """Return the power of the conservative forces, the negative rate of the energy."""
        law = self.law(context)
        return np.sum(law.conservative_power(self.position(context), self.velocity(context)))

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of all other forces."""
        law = self.law(context)
        return np.sum(law.non_conservative_power(self.position(context), self.velocity(context)))


def declare_per_coordinate(
    element: JointForceElement,
    name: str,
    value: npt.ArrayLike,
    units: tuple[str, str],
    *,
    lower: float = -np.inf,
    exclusive: bool = False,
    allow_infinite: bool = False,
    doc: str = "",
) -> NumericParameter:
    """Declare a constant with a value for each coordinate of the joint of an element.

    One value serves all coordinates; that of a joint with a single coordinate is a scalar. Units
    are those for a coordinate that turns, and for one that moves along a line. The other arguments
    are those of `LeafSystem.declare_numeric_parameter`.
    """
    attempt = f"Cannot declare parameter '{element.name}.{name}'"
    count = element.joint.num_velocities
    numbers = as_numbers(value, attempt)
    if numbers.shape not in ((), (count,)):
        raise DeclarationError(
            attempt,
            expected=f"one number, or {count} for the coordinates of joint '{element.joint.name}'",
            found=f"an array of shape {numbers.shape}",
        )
    return element.declare_numeric_parameter(
        name,
        numbers.reshape(()) if count == 1 else np.broadcast_to(numbers, count),
        unit=coordinate_unit(element.joint, *units),
        lower=lower,
        exclusive=exclusive,
        allow_infinite=allow_infinite,
        doc=doc,
    )


def coordinate_unit(joint: Joint, turning: str, sliding: str) -> str:
    """Return the unit for the coordinates of a joint; one after the other where they differ.

    The names of angular velocities begin with w.
    """
    units = [turning if each.startswith("w") else sliding for each in joint.VELOCITY_SUFFIXES]
    return units[0] if len(set(units)) == 1 else ", ".join(units)
