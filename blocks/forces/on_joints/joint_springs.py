"""Springs and dampers along the coordinates of a joint: linear ones, and measured ones."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.coordinate_element import (
    CoordinateForceElement,
    coordinate_unit,
    declare_per_coordinate,
)
from flexure.blocks.forces.on_joints.coordinate_law import LinearlyDampedLaw
from flexure.blocks.forces.on_joints.force_table import ForceTable, declare_table
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, FloatArray


@dataclass(frozen=True)
class SpringLaw(LinearlyDampedLaw):
    """The law of a linear spring and damper along a coordinate.

    With the coordinate q, its rate v, and x = q - q₀::

        f_c = -k x + f₀             conservative force
        f_d = -d v                  dissipative force
        V = k x²/2 - f₀ x           stored energy, zero at the nominal position

    Attributes
    ----------
    stiffness : float
        Stiffness k >= 0 in N m/rad, or N/m.
    nominal_position : float
        Coordinate q₀ at which the force is the preload, in rad, or m.
    preload : float
        Constant force f₀ in N m, or N, positive towards greater q.
    damping : float
        Damping constant d >= 0 in N m s/rad, or N s/m.

    See Also
    --------
    flexure.JointSpring : The element with this law.

    Examples
    --------
    >>> law = SpringLaw(stiffness=100.0, nominal_position=0.5, preload=2.0, damping=3.0)
    >>> law.force(0.6, 1.0), law.stored_energy(0.6)
    (-11.0, 0.3)
    """

    stiffness: Array
    nominal_position: Array = 0.0
    preload: Array = 0.0
    damping: Array = 0.0

    def conservative_force(self, q: Array) -> Array:
        """Return the force of spring and preload in N m, or N."""
        return self.preload - self.stiffness * (q - self.nominal_position)

    def stored_energy(self, q: Array) -> Array:
        """Return the energy of spring and preload in J, zero at the nominal position."""
        x = q - self.nominal_position
        return (0.5 * self.stiffness * x - self.preload) * x


class DampedSpring(CoordinateForceElement):
    """Base class of springs with a linear damper along every coordinate of a joint.

    A subclass declares what else its spring needs and implements `law`. Constants are those of
    `JointSpring`.
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


class JointSpring(DampedSpring):
    """A linear spring and damper along every coordinate of a joint.

    The generalized force is that of `SpringLaw`, for each coordinate q with its rate q̇::

        generalized_force = -k (q - q₀) + f₀ - d q̇

    It is a torsion spring where the joint turns and a coil spring where it slides. All constants
    are parameters of the block, with their names as attributes: scalars for a joint with one
    coordinate, else vectors. The preload counts as a conservative force; so the stored energy,
    which is zero at q₀, is negative around q₀ + f₀/k.

    Parameters
    ----------
    name : str
        Name of the block.
    joint : Joint
        A joint whose velocities are the rates of its positions, which is any kind but ball,
        floating and weld joints.
    stiffness : float or array_like, shape (num_positions,)
        Stiffness k >= 0 in N m/rad, or N/m. Vectors have one entry per coordinate, here as below.
    nominal_position : float or array_like, shape (num_positions,)
        Position q₀ in rad, or m, at which the spring exerts just its preload.
    preload : float or array_like, shape (num_positions,)
        Constant force f₀ in N m, or N, positive towards greater positions.
    damping : float or array_like, shape (num_positions,)
        Damping constant d >= 0 in N m s/rad, or N s/m.

    Raises
    ------
    DeclarationError
        When the joint is of another kind, or a vector has the wrong size.
    ValueRefusedError
        When stiffness or damping is negative, or a number is not finite.

    See Also
    --------
    TabulatedSpring : A spring with a measured characteristic.
    LinearSpringDamper : A linear spring and damper between point P of body A and point Q of body B.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> from flexure.blocks.multibody.joints.revolute import RevoluteJoint
    >>> axis = RevoluteJoint("axis", Body("frame"), Body("lever"), axis=(0, 0, 1))
    >>> spring = JointSpring("spring", axis, stiffness=20.0, nominal_position=0.1)
    >>> context = spring.create_default_context()
    >>> spring.position.fix(context, 0.6)
    >>> spring.velocity.fix(context, 0.0)
    >>> spring.generalized_force.eval(context), spring.stored_energy.eval(context)
    (array([-10.]), array([2.5]))
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        stiffness: npt.ArrayLike,
        nominal_position: npt.ArrayLike = 0.0,
        preload: npt.ArrayLike = 0.0,
        damping: npt.ArrayLike = 0.0,
    ) -> None:
        super().__init__(
            name, joint, nominal_position=nominal_position, preload=preload, damping=damping
        )
        self.stiffness = declare_per_coordinate(
            self, "stiffness", stiffness, ("N m/rad", "N/m"), lower=0.0
        )

    def law(self, context: Any) -> SpringLaw:
        """Return the law with the constants of a context."""
        return SpringLaw(
            stiffness=self.stiffness(context),
            nominal_position=self.nominal_position(context),
            preload=self.preload(context),
            damping=self.damping(context),
        )


@dataclass(frozen=True)
class TabulatedSpringLaw(LinearlyDampedLaw):
    """The law of a spring given by a table of forces over deflections.

    With the deflection x = q - q₀ of the coordinate q, its rate v, and the piecewise linear f(x)
    through the points of the table::

        f_c = -f(x) + f₀            conservative force
        f_d = -d v                  dissipative force
        V = ∫₀ˣ f dx - f₀ x         stored energy, exact, zero at the nominal position

    Attributes
    ----------
    deflections : ndarray, shape (n,)
        Strictly increasing deflections in rad, or m; two or more.
    forces : array, shape (n,)
        Forces f in N m, or N, with which the spring resists the deflections: positive ones
        against a positive deflection. They may fall, as those of a snapping spring do.
    nominal_position : float
        Coordinate q₀ at which the deflection is zero, in rad, or m.
    preload : float
        Constant force f₀ in N m, or N, positive towards greater q.
    damping : float
        Damping constant d >= 0 in N m s/rad, or N s/m.
    end_stiffness : float, optional
        Slope of f beyond both ends of the table, >= 0, in N m/rad, or N/m: great for a stop, zero
        for a constant force. When omitted the outermost lines go on.

    See Also
    --------
    flexure.TabulatedSpring : The element with this law.

    Examples
    --------
    >>> import numpy as np
    >>> law = TabulatedSpringLaw(np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 6.0]))
    >>> law.force(np.array([-1.0, 1.5, 3.0]), 0.0)
    array([  2.,  -4., -10.])
    >>> law.stored_energy(np.array([-1.0, 1.0, 2.0]))
    array([1., 1., 5.])
    """

    deflections: FloatArray
    forces: Array
    nominal_position: Array = 0.0
    preload: Array = 0.0
    damping: Array = 0.0
    end_stiffness: Array | None = None

    def conservative_force(self, q: Array) -> Array:
        """Return the force of spring and preload in N m, or N."""
        return self.preload - self._table().force(q - self.nominal_position)

    def stored_energy(self, q: Array) -> Array:
        """Return the energy of spring and preload in J, zero at the nominal position."""
        x = q - self.nominal_position
        return self._table().energy(x) - self.preload * x

    def _table(self) -> ForceTable:
        end = self.end_stiffness
        if end is None:
            return ForceTable.continued(self.deflections, self.forces)
        return ForceTable(self.deflections, self.forces, end, end)


class TabulatedSpring(DampedSpring):
    """A spring with a measured characteristic, and a linear damper, on a joint.

    The generalized force is that of `TabulatedSpringLaw`, for the position q and its rate q̇::

        generalized_force = -f(q - q₀) + f₀ - d q̇

    with straight lines between the points of the table. All constants but the deflections are
    parameters of the block, with their names as attributes.

    Parameters
    ----------
    name : str
        Name of the block.
    joint : Joint
        A joint with one position and its rate as velocity: revolute, prismatic or screw.
    deflections : array_like, shape (n,)
        Strictly increasing deflections in rad, or m; two or more. They are structure, not a
        parameter.
    forces : array_like, shape (n,)
        Forces f in N m, or N, with which the spring resists the deflections.
    nominal_position : float
        Position q₀ at which the deflection is zero, in rad, or m.
    preload : float
        Constant force f₀ in N m, or N, positive towards greater positions.
    damping : float
        Damping constant d >= 0 in N m s/rad, or N s/m.
    end_stiffness : float, optional
        Slope of f beyond both ends of the table, >= 0, in N m/rad, or N/m: great for a stop, zero
        for a constant force. When omitted the outermost lines go on, and there is no such
        parameter.

    Raises
    ------
    DeclarationError
        When the joint is of another kind, the deflections do not increase, or there are not as
        many forces.
    ValueRefusedError
        When damping or end stiffness is negative, or a number is not finite.

    See Also
    --------
    JointSpring : A linear spring and damper along every coordinate of a joint.

    Examples
    --------
    A slider with play of 1 mm, between springs of 5 kN/m:

    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
    >>> slide = PrismaticJoint("slide", Body("rail"), Body("slider"), axis=(1, 0, 0))
    >>> play = TabulatedSpring(
    ...     "play", slide, deflections=[-1e-3, 1e-3], forces=[0.0, 0.0], end_stiffness=5e3
    ... )
    >>> context = play.create_default_context()
    >>> play.position.fix(context, 3e-3)
    >>> play.velocity.fix(context, 0.0)
    >>> play.generalized_force.eval(context)
    array([-10.])
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        deflections: npt.ArrayLike,
        forces: npt.ArrayLike,
        nominal_position: float = 0.0,
        preload: float = 0.0,
        damping: float = 0.0,
        end_stiffness: float | None = None,
    ) -> None:
        super().__init__(
            name, joint, nominal_position=nominal_position, preload=preload, damping=damping
        )
        if joint.num_velocities != 1:
            raise DeclarationError(
                f"Cannot attach '{name}' to joint '{joint.name}'",
                expected="a joint with one position",
                found=f"a {joint.type_name} joint, which has {joint.num_positions}",
            )
        self.deflections, self.forces = declare_table(
            self, deflections, forces, unit=coordinate_unit(joint, "N m", "N")
        )
        self.end_stiffness = (
            None
            if end_stiffness is None
            else declare_per_coordinate(
                self,
                "end_stiffness",
                end_stiffness,
                ("N m/rad", "N/m"),
                lower=0.0,
                doc="beyond the ends of the table",
            )
        )

    def law(self, context: Any) -> TabulatedSpringLaw:
        """Return the law with the constants of a context."""
        return TabulatedSpringLaw(
            self.deflections,
            self.forces(context),
            nominal_position=self.nominal_position(context),
            preload=self.preload(context),
            damping=self.damping(context),
            end_stiffness=None if self.end_stiffness is None else self.end_stiffness(context),
        )
