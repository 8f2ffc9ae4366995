"""The torques of a door hinge: spring, catch, and three kinds of friction.

The law follows Drake's DoorHinge (class documentation and behavior of Drake 1.51), with two
deliberate differences that `HingeLaw` describes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from flexure.diagrams.values.arrays import Array

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
