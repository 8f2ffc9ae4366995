"""Compliant stops at the ends of the range of a joint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.coordinate_element import (
    CoordinateForceElement,
    declare_per_coordinate,
)
from flexure.blocks.forces.on_joints.coordinate_law import CoordinateLaw, hunt_crossley_damping
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, show


@dataclass(frozen=True)
class StopLaw(CoordinateLaw):
    """The law of compliant stops at a lower and an upper limit of a coordinate.

    With the coordinate q, its rate v, and how deep it is in the stops::

        a = max(lower - q, 0)                               depth in the lower stop
        b = max(q - upper, 0)                               depth in the upper stop
        f = k a max(0, 1 - d v) - k b max(0, 1 + d v)       force
        V = k (a² + b²)/2                                   stored energy

    The force is zero between the limits and continuous at them. A stop pushes and never pulls, and
    its damping, which is that of `hunt_crossley_damping`, acts only within it.

    Attributes
    ----------
    lower, upper : float
        Limits of the coordinate in rad, or m; an infinite one has no stop.
    stiffness : float
        Stiffness k >= 0 in N m/rad, or N/m.
    damping : float
        Damping constant d >= 0 in s/rad, or s/m.

    See Also
    --------
    flexure.JointStop : The element with this law.

    Examples
    --------
    >>> law = StopLaw(lower=-1.0, upper=1.0, stiffness=1000.0, damping=0.5)
    >>> law.force(np.array([-1.25, 0.0, 1.25]), 1.0)
    array([ 125.,    0., -375.])
    """

    lower: Array
    upper: Array
    stiffness: Array
    damping: Array = 0.0

    def conservative_force(self, q: Array) -> Array:
        """Return the elastic force of both stops in N m, or N."""
        below, above = self._elastic_forces(q)
        return below - above

    def dissipative_force(self, q: Array, v: Array) -> Array:
        """Return what damping adds to the force of both stops in N m, or N."""
        below, above = self._elastic_forces(q)
        damping = self.damping
        return hunt_crossley_damping(below, -v, damping) - hunt_crossley_damping(above, v, damping)

    def stored_energy(self, q: Array) -> Array:
        """Return the energy stored in both stops in J."""
        a, b = self._depths(q)
        return 0.5 * self.stiffness * (a * a + b * b)

    def _depths(self, q: Array) -> tuple[Array, Array]:
        """Return how deep the coordinate is in the lower and the upper stop."""
        return np.maximum(self.lower - q, 0.0), np.maximum(q - self.upper, 0.0)

    def _elastic_forces(self, q: Array) -> tuple[Array, Array]:
        """Return with which forces the stops are compressed."""
        a, b = self._depths(q)
        return self.stiffness * a, self.stiffness * b


class JointStop(CoordinateForceElement):
    """Compliant stops at the limits of every coordinate of a joint.

    The generalized force is that of `StopLaw`, for each coordinate q with its rate q̇::

        a = max(lower - q, 0),  b = max(q - upper, 0)
        generalized_force = k a max(0, 1 - d q̇) - k b max(0, 1 + d q̇)

    All constants are parameters of the block, with their names as attributes: scalars for a joint
    with one coordinate, else vectors.

    Parameters
    ----------
    name : str
        Name of the block.
    joint : Joint
        A joint whose velocities are the rates of its positions, which is any kind but ball,
        floating and weld joints.
    stiffness : float or array_like, shape (num_positions,)
        Stiffness k >= 0 in N m/rad, or N/m. Vectors have one entry per coordinate, here as below.
    damping : float or array_like, shape (num_positions,)
        Damping constant d >= 0 in s/rad, or s/m. It is no force per rate: the damping force grows
        with the depth as the elastic force does. A body that arrives with the rate u rebounds with
        about ``u (1 - 2/3 d u)`` as long as this is close to u.
    lower, upper : float or array_like, shape (num_positions,), optional
        Limits in rad, or m; by default the position limits that the joint has now. An infinite
        limit has no stop.

    Raises
    ------
    DeclarationError
        When the joint is of another kind, a vector has the wrong size, a lower limit is above the
        upper one, or no limit is finite.
    ValueRefusedError
        When stiffness or damping is negative, or a number is not one.

    See Also
    --------
    RigidStop : Rigid stops at the limits of the coordinates of a joint.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> from flexure.blocks.multibody.joints.revolute import RevoluteJoint
    >>> axis = RevoluteJoint(
    ...     "axis", Body("frame"), Body("door"), axis=(0, 0, 1), position_limits=(0.0, 1.5)
    ... )
    >>> stop = JointStop("stop", axis, stiffness=1000.0, damping=0.5)
    >>> context = stop.create_default_context()
    >>> stop.position.fix(context, 1.75)
    >>> stop.velocity.fix(context, 1.0)
    >>> stop.generalized_force.eval(context)
    array([-375.])
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        stiffness: npt.ArrayLike,
        damping: npt.ArrayLike,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(name, joint)
        self.lower = declare_per_coordinate(
            self,
            "lower",
            joint.position_lower_limits if lower is None else lower,
            ("rad", "m"),
            allow_infinite=True,
            doc="lower limit",
        )
        self.upper = declare_per_coordinate(
            self,
            "upper",
            joint.position_upper_limits if upper is None else upper,
            ("rad", "m"),
            allow_infinite=True,
            doc="upper limit",
        )
        self.stiffness = declare_per_coordinate(
            self, "stiffness", stiffness, ("N m/rad", "N/m"), lower=0.0
        )
        self.damping = declare_per_coordinate(self, "damping", damping, ("s/rad", "s/m"), lower=0.0)
        limits = np.array([self.lower.default, self.upper.default])
        if not (np.all(limits[0] <= limits[1]) and np.any(np.isfinite(limits))):
            raise DeclarationError(
                f"Cannot make stop '{name}' on joint '{joint.name}'",
                expected="lower <= upper, and a limit that is finite",
                found=f"lower={show(limits[0])}, upper={show(limits[1])}",
                remedy="Pass lower and upper, or set the position limits of the joint first",
            )
        self.declare_relation(self.lower, "<=", self.upper)

    def law(self, context: Any) -> StopLaw:
        """Return the law with the constants of a context."""
        return StopLaw(
            lower=self.lower(context),
            upper=self.upper(context),
            stiffness=self.stiffness(context),
            damping=self.damping(context),
        )
