"""Base class of the springs on joints."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.coordinate_element import (
    CoordinateForceElement,
    declare_per_coordinate,
)
from flexure.blocks.forces.on_joints.coordinate_law import LinearlyDampedLaw
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.values.arrays import Array


class DampedSpring(CoordinateForceElement):
    """Base class of springs with a linear damper along every coordinate of a joint.

    A subclass declares what else its spring needs and implements `law`.

    Parameters
    ----------
    name : str
        Name of the block.
    joint : Joint
        The joint it acts on.
    nominal_position : float or array_like, shape (num_positions,)
        Position from which the deflection of the spring is counted, in rad, or m.
    preload : float or array_like, shape (num_positions,)
        Constant force in N m, or N, positive towards greater positions.
    damping : float or array_like, shape (num_positions,)
        Damping constant >= 0 in N m s/rad, or N s/m.
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        nominal_position: npt.ArrayLike,
        preload: npt.ArrayLike,
        damping: npt.ArrayLike,
    ) -> None:
        super().__init__(name, joint, losses_need_position=False)
        self.nominal_position = declare_per_coordinate(
            self,
            "nominal_position",
            nominal_position,
            ("rad", "m"),
            doc="where the deflection is zero",
        )
        self.preload = declare_per_coordinate(
            self, "preload", preload, ("N m", "N"), doc="constant force"
        )
        self.damping = declare_per_coordinate(
            self, "damping", damping, ("N m s/rad", "N s/m"), lower=0.0
        )

    @abstractmethod
    def law(self, context: Any) -> LinearlyDampedLaw:
        """Return the law with the constants of a context."""

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of the damper, which needs no position."""
        return np.sum(self.law(context).damper_power(self.velocity(context)))
