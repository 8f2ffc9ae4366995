"""The torques of a door hinge: spring, catch, and three kinds of friction.

The law follows Drake's DoorHinge (class documentation and behavior of Drake 1.51), with two
deliberate differences that `HingeLaw` describes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexure.blocks.forces.on_joints.hinge_constants import HingeConstants
from flexure.diagrams.values.arrays import Array


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
