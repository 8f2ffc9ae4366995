"""The door hinge on a joint: spring, catch, and three kinds of friction.

The law follows Drake's DoorHinge (class documentation and behavior of Drake 1.51), with two
deliberate differences that `HingeLaw` describes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

import numpy as np

from flexure.blocks.multibody.force_elements.joint_force_element import JointForceElement
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, suggestion
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter

# ruff: noqa: RUF009 - what the calls return are fields
_T = TypeVar("_T")


def _constant(default: float, unit: str, doc: str, *, lower: float = 0.0) -> Any:
    """Return a field whose metadata are what its parameter is declared with."""
    return field(default=default, metadata={"unit": unit, "lower": lower, "doc": doc})


@dataclass(frozen=True)
class HingeConstants(Generic[_T]):
    """The constants of a door hinge, which `DoorHingeConfig` explains: of numbers or of symbols.

    Parameters, laws, fits and checks follow from these lines.
    """

    spring_zero_angle_rad: _T = _constant(
        -1.5, "rad", "angle at which the torsion spring is relaxed", lower=-np.inf
    )
    spring_constant: _T = _constant(1.5, "N m/rad", "stiffness of the torsion spring")
    dynamic_friction_torque: _T = _constant(3.0, "N m", "friction of a moving hinge")
    static_friction_torque: _T = _constant(2.0, "N m", "scale of what is added around standstill")
    viscous_friction: _T = _constant(1.0, "N m s/rad", "friction torque per rate")
    catch_width: _T = _constant(0.02, "rad", "range of angles in which the catch acts")
    catch_torque: _T = _constant(15.0, "N m", "scale of the torque of the catch")
    motion_threshold: _T = _constant(0.001, "rad/s", "rate above which the hinge counts as moving")


@dataclass(frozen=True)
class DoorHingeConfig(HingeConstants[float]):
    """Constants of a door hinge; the defaults describe a dishwasher door.

    Attributes
    ----------
    spring_zero_angle_rad : float
        Angle at which the torsion spring is relaxed, in rad.
    spring_constant : float
        Stiffness of the torsion spring, >= 0, in N m/rad.
    dynamic_friction_torque : float
        Friction torque of a moving hinge, >= 0, in N m.
    static_friction_torque : float
        Scale of the additional friction around standstill, >= 0, in N m. Its peak, at a rate of
        0.658 times the motion threshold, is 0.770 of this.
    viscous_friction : float
        Friction torque per rate, >= 0, in N m s/rad.
    catch_width : float
        Range of angles (0, catch_width) in which the catch acts, >= 0, in rad; 0 for no catch.
    catch_torque : float
        Scale of the torque of the catch, >= 0, in N m. The greatest torque is 0.770 of this.
    motion_threshold : float
        Rate above which the hinge counts as moving, >= 0, in rad/s. With 0 there is no dry
        friction. Small values make the equations stiff: the slope of the friction torque at
        standstill is (dynamic + 2 static)/threshold.

    See Also
    --------
    DoorHinge : The element.

    Examples
    --------
    >>> import flexure as fx
    >>> config = fx.DoorHingeConfig(spring_constant=3.0)
    >>> config.spring_constant
    3.0
    """


@dataclass(frozen=True)
class HingeLaw(HingeConstants[Array]):
    """The law of a door hinge as functions of angle q and rate q̇, without a context.

    All torques act about the axis on the door. With s(t, x) = tanh(x/t) and
    doublet(t, x) = 2 s (1 - s²)::

        spring    -k_ts (q - q_s0)
        catch      k_c doublet(q_c0/2, q - q_c0/2)
        dynamic   -k_df s(q̇_0, q̇)
        static    -k_sf doublet(q̇_0, q̇)
        viscous   -k_vf q̇

    Its constants, numbers or symbols, and their defaults are those of `DoorHingeConfig`.

    See Also
    --------
    flexure.DoorHinge : The element with this law.

    Notes
    -----
    Differences from Drake 1.51: with ``motion_threshold = 0`` the viscous torque keeps its sign
    (Drake's becomes a negative damping); a negative catch torque is refused.

    Examples
    --------
    >>> law = HingeLaw(spring_constant=2.0)
    >>> float(law.torque(1.0, 1.0))
    -9.0
    """

    def spring_torque(self, angle: Array) -> Array:
        """Return the torque of spring and catch in N m."""
        spring, catch = self._spring_and_catch(angle)
        return spring + catch

    def frictional_torque(self, rate: Array) -> Array:
        """Return the torque of dynamic, static and viscous friction in N m."""
        dynamic, static, viscous = self._frictions(rate)
        return -(dynamic + static + viscous)

    def torque(self, angle: Array, rate: Array) -> Array:
        """Return the total torque in N m."""
        return self.spring_torque(angle) + self.frictional_torque(rate)

    def terms(self, angle: Array, rate: Array) -> dict[str, Array]:
        """Return the five torques by name in N m; their sum is the total torque."""
        spring, catch = self._spring_and_catch(angle)
        dynamic, static, viscous = self._frictions(rate)
        return {
            "spring": spring,
            "catch": catch,
            "dynamic friction": -dynamic,
            "static friction": -static,
            "viscous friction": -viscous,
        }

    def stored_energy(self, angle: Array) -> Array:
        """Return the energy stored in spring and catch in J, zero at the closed position q = 0.

        It is the negative integral of `spring_torque`. With singlet(t, x) = 1 - s²::

            k_ts/2 ((q - q_s0)² - q_s0²)
                + k_c q_c0/2 (singlet(q_c0/2, q - q_c0/2) - singlet(q_c0/2, -q_c0/2))
        """
        half = 0.5 * self.catch_width
        zero = self.spring_zero_angle_rad
        spring = 0.5 * self.spring_constant * (np.square(angle - zero) - np.square(zero))
        rise = np.square(_step(half, -half)) - np.square(_step(half, angle - half))
        return spring + self.catch_torque * half * rise

    def conservative_power(self, angle: Array, rate: Array) -> Array:
        """Return the power of spring and catch in W, the negative rate of the stored energy."""
        return rate * self.spring_torque(angle)

    def non_conservative_power(self, rate: Array) -> Array:
        """Return the power of friction in W, never positive."""
        return rate * self.frictional_torque(rate)

    def _spring_and_catch(self, angle: Array) -> tuple[Array, Array]:
        half = 0.5 * self.catch_width
        spring = -self.spring_constant * (angle - self.spring_zero_angle_rad)
        return spring, self.catch_torque * _doublet(half, angle - half)

    def _frictions(self, rate: Array) -> tuple[Array, Array, Array]:
        """Return the torques against which a motion with this rate works."""
        dynamic = self.dynamic_friction_torque * _step(self.motion_threshold, rate)
        static = self.static_friction_torque * _doublet(self.motion_threshold, rate)
        return dynamic, static, self.viscous_friction * rate


def _step(width: Array, x: Array) -> Array:
    """Step smoothly from -1 to 1: tanh(x/width), or 0 for a width of zero."""
    return np.where(width > 0.0, np.tanh(x / np.where(width > 0.0, width, 1.0)), 0.0)


def _doublet(width: Array, x: Array) -> Array:
    """Return a negative lump before zero and a positive one behind it."""
    s = _step(width, x)
    return 2.0 * s * (1.0 - np.square(s))


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
