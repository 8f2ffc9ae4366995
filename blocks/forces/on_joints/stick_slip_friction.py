"""Dry friction that sticks exactly, with modes for sticking and for slip in each direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.coordinate_element import coordinate_unit
from flexure.blocks.forces.on_joints.joint_friction import SlidingLaw
from flexure.blocks.multibody.constraints import StickingConstraint
from flexure.blocks.multibody.constraints.constraint import ConstrainedTree
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, FloatArray, as_numbers, check_bounds
from flexure.diagrams.values.parameters import NumericParameter


class StickSlipFriction(StickingConstraint):
    """Dry and viscous friction in a joint, with true sticking and slipping.

    It has the constants of `JointFriction`, but for the rate within which that one is smooth. For
    each velocity v::

        stick   v = 0, and the force is what holds:                     |f| <= F_s
        slip    g(v) = F_c + (F_s - F_c) exp(-(v/v_s)²)
                f = -g(v) sign(v) - F_v v

    A sticking coordinate does not creep: its velocity is zero and its position constant, to the
    last bit. Where the force that would hold exceeds F_s, it breaks away in the direction of the
    load; where a slip comes to an end, it sticks, or goes on backwards at once. These instants are
    located as events. Added to a plant by `PlantBuilder.add_constraint`, it has the outputs
    ``<name>.generalized_force``, the force along each velocity in N m, or N,
    ``<name>.non_conservative_power`` in W, and ``<name>.mode``: 0 where it sticks, 1 or -1 where it
    slips in that direction.

    All constants are parameters of the tree with names that begin with its own, such as
    ``tree.friction_coulomb_friction``: scalars for a joint with one velocity, else vectors.

    Parameters
    ----------
    name : str
        Name within the plant.
    joint : Joint
        Any joint that moves.
    coulomb_friction : float or array_like, shape (num_velocities,)
        Dry friction F_c >= 0 of a fast motion in N m, or N. Vectors have one entry per velocity,
        here as below.
    static_friction : float or array_like, shape (num_velocities,), optional
        Dry friction F_s up to which it sticks in N m, or N; as great as F_c when omitted.
    stribeck_velocity : float or array_like, shape (num_velocities,), optional
        Rate v_s > 0 around which static turns into Coulomb friction, in rad/s, or m/s. When omitted
        it does so at once, ``g = F_c``, and there is no such parameter.
    viscous_friction : float or array_like, shape (num_velocities,)
        Friction F_v >= 0 per rate in N m s/rad, or N s/m.

    Raises
    ------
    DeclarationError
        When the joint cannot move, or a vector has the wrong size.
    ValueRefusedError
        When a constant is negative or not finite, static friction is less than Coulomb friction, or
        the Stribeck velocity is zero.

    Notes
    -----
    In contexts where static friction is less than that of a slow slip, it sticks up to the latter,
    so that what has broken away can move.

    Where several joints stick in one closed loop, how they share the load is not determined; the
    shares with the least sum of squares are taken.

    See Also
    --------
    JointFriction : The same, smooth around standstill.

    Examples
    --------
    A block that is pushed up a slope, slides until it stands, and sticks:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("slope", gravity=(3.0, 0.0, -9.0))
    >>> block = builder.add_body("block", fx.SpatialInertia.point_mass(2.0))
    >>> slide = builder.add_joint(
    ...     fx.PrismaticJoint("slide", builder.world, block, axis=(1, 0, 0), damping=0.0)
    ... )
    >>> friction = builder.add_constraint(
    ...     fx.StickSlipFriction("friction", slide, coulomb_friction=5.0, static_friction=7.0)
    ... )
    >>> slope = builder.build()
    >>> context = slope.create_default_context()
    >>> slide.translation_rate.set(context, -1.0)
    >>> result = fx.simulate(slope, 5.0, context=context)
    >>> result["friction.generalized_force"][[0, -1]].round(9)
    array([ 5., -6.])
    >>> result["slide.rate"][-1] == 0.0
    np.True_
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        coulomb_friction: npt.ArrayLike,
        static_friction: npt.ArrayLike | None = None,
        stribeck_velocity: npt.ArrayLike | None = None,
        viscous_friction: npt.ArrayLike = 0.0,
    ) -> None:
        super().__init__(name, joint)
        coulomb = self._vector(coulomb_friction, "coulomb_friction")
        self._defaults = {
            "coulomb_friction": coulomb,
            "static_friction": coulomb
            if static_friction is None
            else self._vector(static_friction, "static_friction", lower=coulomb),
            "viscous_friction": self._vector(viscous_friction, "viscous_friction"),
        }
        if stribeck_velocity is not None:
            self._defaults["stribeck_velocity"] = self._vector(
                stribeck_velocity, "stribeck_velocity", exclusive=True
            )
        self._has_own_static = static_friction is not None
        self._parameters: dict[str, NumericParameter] = {}

    def _vector(
        self,
        value: npt.ArrayLike,
        what: str,
        *,
        lower: float | FloatArray = 0.0,
        exclusive: bool = False,
    ) -> FloatArray:
        """Return one number for each velocity."""
        attempt, n = f"Cannot make constraint '{self.name}' with this {what}", len(self.rows)
        numbers = as_numbers(value, attempt)
        if numbers.shape not in ((), (n,)):
            raise DeclarationError(
                attempt,
                expected=f"one number, or {n} for the velocities of joint '{self.joint.name}'",
                found=f"an array of shape {numbers.shape}",
            )
        vector: FloatArray = np.broadcast_to(numbers, n).astype(float)
        check_bounds(vector, attempt, lower=lower, exclusive=exclusive)
        return vector

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare the constants."""
        super().declare(tree)
        units = {"stribeck_velocity": ("rad/s", "m/s"), "viscous_friction": ("N m s/rad", "N s/m")}
        for what, value in self._defaults.items():
            turning, sliding = units.get(what, ("N m", "N"))
            self._parameters[what] = tree.declare_numeric_parameter(
                f"{self.name}_{what}",
                value[0] if len(value) == 1 else value,
                unit=coordinate_unit(self.joint, turning, sliding),
                lower=0.0,
                exclusive=what == "stribeck_velocity",
            )
        if self._has_own_static:
            sliding_force, breakaway = (
                self._parameters[what] for what in ("coulomb_friction", "static_friction")
            )
            tree.declare_relation(sliding_force, "<=", breakaway)

    def law(self, context: Any) -> SlidingLaw:
        """Return the law of slip with the constants of a context."""
        values = {what: parameter(context) for what, parameter in self._parameters.items()}
        return SlidingLaw(**{"stribeck_velocity": None, **values})

    def breakaway_force(self, context: Any) -> Array:
        """Return F_s for each velocity."""
        law = self.law(context)
        rests = np.zeros(len(self.rows))
        return np.maximum(law.static_friction, law.strength(rests)) + rests

    def slip_force(self, context: Any) -> Array:
        """Return the force along each velocity that slips; none where it sticks."""
        directions = self.slip_directions(context)
        return self.law(context).force_towards(self.velocity(context), directions)
