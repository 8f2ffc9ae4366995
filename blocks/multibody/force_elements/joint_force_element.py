"""The base class of force elements along the coordinates of one joint."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from flexure.blocks.multibody.force_elements.force_element import ForceElement, JointEnd
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.component_names import along_joint
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array


class JointForceElement(ForceElement):
    """A force element that acts along the coordinates of one joint.

    It has the inputs ``position`` and ``velocity`` of the joint and the output
    ``generalized_force``.

    Beside the contract of `ForceElement`, a subclass keeps this one:

    1. `calc_generalized_force` returns the force along each velocity of the joint, in N m for
       rad/s and in N for m/s, positive where it drives that velocity: times the velocities it is
       the power. The child body gets it, and the parent body the opposite.
    2. It reads the two inputs, and tells the constructor of this class by ``stores_energy`` and
       ``losses_need_position`` what does not depend on which of them.

    Parameters
    ----------
    name : str
        Name of the block.
    joint : Joint
        The joint it acts on.
    stores_energy : bool
        Whether a part of the force is conservative. Otherwise ``stored_energy`` and
        ``conservative_power`` are zero and read nothing.
    losses_need_position : bool
        Whether the other part depends on the position, too. Otherwise ``non_conservative_power``
        reads the velocity alone, and so does the force of an element that stores no energy.

    See Also
    --------
    JointSpring : A spring and a damper along a joint.
    BodyForceElement : Forces between bodies.

    Examples
    --------
    >>> import flexure as fx
    >>> class Spring(fx.multibody.JointForceElement):
    ...     def calc_generalized_force(self, context):
    ...         return -2.0 * self.position(context)
    ...
    ...     def calc_stored_energy(self, context):
    ...         return self.position(context) @ self.position(context)
    ...
    ...     def calc_conservative_power(self, context):
    ...         return self.calc_generalized_force(context) @ self.velocity(context)
    ...
    ...     def calc_non_conservative_power(self, context):
    ...         return 0.0
    >>> builder = fx.PlantBuilder("bench")
    >>> arm = builder.add_body("arm", fx.SpatialInertia.thin_rod(0.1, length=0.2, axis="x"))
    >>> pin = builder.add_joint(fx.RevoluteJoint("pin", builder.world, arm, axis=(0, 0, 1)))
    >>> spring = builder.add_force_element(Spring("spring", pin))
    >>> context = builder.build().create_default_context()
    >>> pin.angle.set(context, 0.5)
    >>> context.get("spring.stored_energy")
    array([0.25])
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        stores_energy: bool = True,
        losses_need_position: bool = True,
    ) -> None:
        super().__init__(name)
        if not isinstance(joint, Joint):
            raise DeclarationError(f"Cannot attach '{name}'", expected="a joint", found=repr(joint))
        self.joint = joint
        self.position = self.declare_vector_input("position", joint.num_positions)
        self.velocity = self.declare_vector_input("velocity", joint.num_velocities)
        both, rates = [self.position, self.velocity], [self.velocity]
        self.generalized_force = self.declare_vector_output(
            "generalized_force",
            joint.num_velocities,
            self.calc_generalized_force,
            prerequisites=both if stores_energy or losses_need_position else rates,
            **along_joint(joint),
        )
        end = JointEnd(joint, self.position, self.velocity, self.generalized_force)
        self.joint_ends = (end,)
        self._declare_energies(
            energy=[self.position] if stores_energy else [],
            conservative=both if stores_energy else [],
            non_conservative=both if losses_need_position else rates,
        )

    @abstractmethod
    def calc_generalized_force(self, context: Any) -> Array:
        """Return the generalized force along the velocities of the joint."""

    def calc_terms(self, context: Any) -> dict[str, Array]:
        """Return parts of the generalized force by name; their sum is all of it.

        Pictures show them beside the whole. An element whose force has no parts with names of their
        own need not have this method.
        """
        return {}
