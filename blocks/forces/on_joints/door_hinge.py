"""The door hinge as a block on a joint."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from flexure.blocks.forces.on_joints.hinge_law import DoorHingeConfig, HingeLaw
from flexure.blocks.multibody.force_elements.joint_force_element import JointForceElement
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, suggestion
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter

_CONSTANTS = tuple(field.name for field in fields(DoorHingeConfig))


class DoorHinge(JointForceElement):
    """A door hinge on a joint: spring, catch and friction.

    The torque about the axis, on the child of the joint, is that of `HingeLaw` with the angle q and
    the rate q̇ of the joint::

        generalized_force = spring_torque(q) + frictional_torque(q̇)

    All constants are parameters of the block, with their names as attributes. Beside the outputs of
    every force element, the torque has its parts as outputs: ``spring_torque`` of spring and catch,
    and ``frictional_torque``, in N m. The viscous damping of the joint itself acts in addition.

    Parameters
    ----------
    name : str
        Name of the block.
    joint : Joint
        A joint with one velocity, at which it rotates: a revolute or a screw joint. The closed
        door is at zero and opens towards greater angles.
    config : DoorHingeConfig, optional
        Values of the constants in new contexts; a dishwasher door when omitted. It is passed by
        position.
    **constants : float
        Single constants by their names in `DoorHingeConfig`, instead of those of ``config``.

    Raises
    ------
    DeclarationError
        When the joint does not rotate at one velocity.
    UnknownNameError
        When a hinge has no such constant.
    ValueRefusedError
        When a constant other than ``spring_zero_angle_rad`` is negative.

    See Also
    --------
    DoorHingeConfig : Constants of a door hinge.
    JointSpring : A linear spring and damper along every coordinate of a joint.

    Examples
    --------
    >>> import flexure as fx
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> from flexure.blocks.multibody.joints.revolute import RevoluteJoint
    >>> axis = RevoluteJoint("axis", Body("frame"), Body("panel"), axis=(0, 0, 1))
    >>> hinge = fx.DoorHinge("hinge", axis, spring_constant=3.0, viscous_friction=0.5)
    >>> context = hinge.create_default_context()
    >>> hinge.position.fix(context, 1.0)
    >>> hinge.velocity.fix(context, -2.0)
    >>> hinge.generalized_force.eval(context)
    array([-3.5])
    >>> hinge.spring_constant.set(context, 2.0)
    >>> hinge.law(context).torque(1.0, -2.0)
    np.float64(-1.0)
    """

    drawn_as = "knuckles"
    spring_zero_angle_rad: NumericParameter
    spring_constant: NumericParameter
    dynamic_friction_torque: NumericParameter
    static_friction_torque: NumericParameter
    viscous_friction: NumericParameter
    catch_width: NumericParameter
    catch_torque: NumericParameter
    motion_threshold: NumericParameter

    def __init__(
        self, name: str, joint: Joint, config: DoorHingeConfig | None = None, /, **constants: float
    ) -> None:
        super().__init__(name, joint, losses_need_position=False)
        if joint.num_velocities != 1 or not joint.can_rotate:
            raise DeclarationError(
                f"Cannot attach door hinge '{name}' to joint '{joint.name}'",
                expected="a joint with one velocity, at which it rotates",
                found=f"a {joint.type_name} joint",
                remedy="Use a RevoluteJoint",
            )
        self._config = _with_constants(config, constants, f"Cannot make door hinge '{name}'")
        for each in fields(self._config):
            value = getattr(self._config, each.name)
            parameter = self.declare_numeric_parameter(each.name, value, **each.metadata)
            setattr(self, each.name, parameter)
        self.spring_torque = self.declare_vector_output(
            "spring_torque",
            1,
            self._calc_spring_torque,
            prerequisites=[self.position],
            unit="N m",
            doc="torque of spring and catch",
        )
        self.frictional_torque = self.declare_vector_output(
            "frictional_torque",
            1,
            self._calc_frictional_torque,
            prerequisites=[self.velocity],
            unit="N m",
            doc="torque of dynamic, static and viscous friction",
        )

    @property
    def config(self) -> DoorHingeConfig:
        """The constants in new contexts."""
        return self._config

    def law(self, context: Any) -> HingeLaw:
        """Return the law with the constants of a context."""
        return HingeLaw(**{each.name: each(context) for each in self.numeric_parameters})

    def calc_generalized_force(self, context: Any) -> Array:
        """Return the torque of the hinge."""
        return self.law(context).torque(self.position(context), self.velocity(context))

    def calc_terms(self, context: Any) -> dict[str, Array]:
        """Return the torques of spring, catch, and three kinds of friction."""
        return self.law(context).terms(self.position(context), self.velocity(context))

    def calc_stored_energy(self, context: Any) -> Array:
        """Return the energy stored in spring and catch, zero for the closed door."""
        return self.law(context).stored_energy(self.position(context))

    def calc_conservative_power(self, context: Any) -> Array:
        """Return the power of spring and catch."""
        return self.law(context).conservative_power(self.position(context), self.velocity(context))

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of friction."""
        return self.law(context).non_conservative_power(self.velocity(context))

    def _calc_spring_torque(self, context: Any) -> Array:
        return self.law(context).spring_torque(self.position(context))

    def _calc_frictional_torque(self, context: Any) -> Array:
        return self.law(context).frictional_torque(self.velocity(context))


def _with_constants(
    config: DoorHingeConfig | None, constants: dict[str, float], attempt: str
) -> DoorHingeConfig:
    """Return a config in which single constants are replaced."""
    if config is None:
        config = DoorHingeConfig()
    if not isinstance(config, DoorHingeConfig):
        raise DeclarationError(attempt, expected="a DoorHingeConfig", found=repr(config))
    for constant, value in constants.items():
        if constant not in _CONSTANTS:
            raise UnknownNameError(
                f"{attempt} with '{constant}'",
                expected="constants by name, or a DoorHingeConfig by position",
                found=f"{constant}={value!r}",
                remedy=suggestion(constant, _CONSTANTS),
            )
    return replace(config, **constants)
