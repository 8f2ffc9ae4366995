"""Limits and friction of joints, as all formats have them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.joint_friction import JointFriction
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder

#: Limits from here on count as none; formats without infinity write such numbers.
BOUNDLESS = 1e16

#: Rate in rad/s, or m/s, within which friction that was read changes its direction.
TRANSITION_VELOCITY = 0.01


def set_limits(
    joint: Joint,
    *,
    positions: tuple[npt.ArrayLike, npt.ArrayLike] | None,
    velocity: npt.ArrayLike = np.inf,
    acceleration: npt.ArrayLike = np.inf,
) -> None:
    """Set limits of positions, if there are any, and of magnitudes of the rates."""
    if positions is not None:
        joint.set_position_limits(*(_with_infinity(each) for each in positions))
    rate, change = _with_infinity(velocity), _with_infinity(acceleration)
    joint.set_velocity_limits(-rate, rate)
    joint.set_acceleration_limits(-change, change)


def add_friction(builder: PlantBuilder, joint: Joint, coulomb_friction: npt.ArrayLike) -> None:
    """Add dry friction to a joint, called ``<joint>_friction``, if there is any."""
    if np.any(np.asarray(coulomb_friction) != 0.0):
        builder.add_force_element(
            JointFriction(
                f"{joint.name}_friction",
                joint,
                coulomb_friction=coulomb_friction,
                transition_velocity=TRANSITION_VELOCITY,
            )
        )


def _with_infinity(limit: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return limits with infinities instead of very large numbers."""
    numbers = np.asarray(limit, dtype=float)
    return np.where(np.abs(numbers) >= BOUNDLESS, np.copysign(np.inf, numbers), numbers)
