"""The base class of all bushings."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.bushings.bushing_law import BushingLaw
from flexure.blocks.forces.bushings.halfway_element import HalfwayElement
from flexure.blocks.forces.coefficients.mounts import BushingConstants
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.values.arrays import Array, FloatArray, as_number, as_numbers
from flexure.diagrams.values.parameters import NumericParameter


class Bushing(HalfwayElement):
    """Base class of the bushings between a frame A and a frame C.

    Its forces are those of a `BushingLaw`, which a subclass chooses by implementing `law`::

        on C about Co:  ( t - ½ (r×f + σ × (r×f)),   f)
        on A about Ao:  (-t - ½ (r×f - σ × (r×f)),  -f)

    Outputs are those of `HalfwayElement`. Constants, one for each angle or axis of B, or for all,
    are stiffnesses >= 0 in N m/rad and N/m and dampings >= 0 in N m s/rad and N s/m.
    """

    drawn_as = "frames"

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        torque_stiffness: npt.ArrayLike,
        torque_damping: npt.ArrayLike,
        force_stiffness: npt.ArrayLike,
        force_damping: npt.ArrayLike,
    ) -> None:
        super().__init__(name, frame_a, frame_c)
        declare = self._declare_constants
        self.torque_stiffness = declare("torque_stiffness", torque_stiffness, "N m/rad")
        self.torque_damping = declare("torque_damping", torque_damping, "N m s/rad")
        self.force_stiffness = declare("force_stiffness", force_stiffness, "N/m")
        self.force_damping = declare("force_damping", force_damping, "N s/m")
        self._declare_outputs()

    @classmethod
    def from_constants(
        cls,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        constants: BushingConstants,
        **options: Any,
    ) -> Self:
        """Make a bushing with the constants of a mount or of a fit.

        Parameters
        ----------
        name : str
            Name of the block.
        frame_a, frame_c : Frame or Body
            The frames A and C.
        constants : BushingConstants
            Stiffness and damping.
        **options
            Further arguments of the constructor.

        Returns
        -------
        Bushing
            Of the class on which this is called.

        Examples
        --------
        >>> from flexure.blocks.forces.bushings.bushing import LinearBushingRollPitchYaw
        >>> from flexure.blocks.multibody.bodies.bodies import Body
        >>> wall, door = Body("wall"), Body("door")
        >>> constants = BushingConstants.revolute("z", torque_stiffness=200.0, force_stiffness=1e5)
        >>> hinge = LinearBushingRollPitchYaw.from_constants("hinge", wall, door, constants)
        >>> hinge.torque_stiffness_constants
        array([200., 200.,   0.])
        """
        return cls(
            name,
            frame_a,
            frame_c,
            torque_stiffness=constants.torque_stiffness,
            torque_damping=constants.torque_damping,
            force_stiffness=constants.force_stiffness,
            force_damping=constants.force_damping,
            **options,
        )

    # Declarations ----------------------------------------------------------------------------

    def _declare_constants(self, name: str, value: npt.ArrayLike, unit: str) -> NumericParameter:
        """Declare three constants that are not negative, from three numbers or from one."""
        attempt = f"Cannot declare parameter '{self.label}.{name}'"
        numbers = as_numbers(value, attempt)
        numbers = np.full(3, numbers) if numbers.shape == () else as_number(numbers, (3,), attempt)
        return self.declare_numeric_parameter(name, numbers, unit=unit, lower=0.0)

    # Default constants -----------------------------------------------------------------------

    @property
    def torque_stiffness_constants(self) -> FloatArray:
        """Torsional stiffness in new contexts, in N m/rad."""
        return self._default(self.torque_stiffness)

    @property
    def torque_damping_constants(self) -> FloatArray:
        """Torsional damping in new contexts, in N m s/rad."""
        return self._default(self.torque_damping)

    @property
    def force_stiffness_constants(self) -> FloatArray:
        """Stiffness along the axes of B in new contexts, in N/m."""
        return self._default(self.force_stiffness)

    @property
    def force_damping_constants(self) -> FloatArray:
        """Damping along the axes of B in new contexts, in N s/m."""
        return self._default(self.force_damping)

    @staticmethod
    def _default(parameter: NumericParameter) -> FloatArray:
        constants: FloatArray = parameter.default
        return constants

    # Equations -------------------------------------------------------------------------------

    @abstractmethod
    def law(self, context: Any) -> BushingLaw:
        """Return the law with the constants of a context."""

    def constants(self, context: Any) -> tuple[Array, Array, Array, Array]:
        """Return stiffness and damping of torques, then of forces, as laws take them."""
        return (
            self.torque_stiffness(context),
            self.torque_damping(context),
            self.force_stiffness(context),
            self.force_damping(context),
        )
