"""Dry and viscous friction along the coordinates of a joint: smooth, and with exact sticking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.coordinate_element import (
    coordinate_unit,
    declare_per_coordinate,
)
from flexure.blocks.multibody.constraints import StickingConstraint
from flexure.blocks.multibody.constraints.constraint import ConstrainedTree
from flexure.blocks.multibody.force_elements.joint_force_element import JointForceElement
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array


@dataclass(frozen=True)
class SlidingLaw:
    """The law of Coulomb, static and viscous friction at a sliding velocity.

    With the rate v::

        g(v) = F_c + (F_s - F_c) exp(-(v/v_s)²)     dry friction with the Stribeck effect

    Attributes
    ----------
    coulomb_friction, static_friction, viscous_friction
        As for `FrictionLaw`.
    stribeck_velocity : float or None
        Rate v_s > 0 around which static turns into Coulomb friction, in rad/s, or m/s. Without one,
        g is F_c.

    See Also
    --------
    FrictionLaw : The same law of a joint.

    Examples
    --------
    >>> law = SlidingLaw(3.0, 5.0, 0.1, 0.5)
    >>> law.strength(np.array([0.0, 10.0])), law.force_towards(-1e-9, -1.0)
    (array([5., 3.]), np.float64(5.0...))
    """

    coulomb_friction: Array
    static_friction: Array
    stribeck_velocity: Array | None
    viscous_friction: Array

    def strength(self, v: Array) -> Array:
        """Return the dry friction g at the rate v in N m, or N."""
        if self.stribeck_velocity is None:
            return self.coulomb_friction
        fading = np.exp(-np.square(v / self.stribeck_velocity))
        excess = self.static_friction - self.coulomb_friction
        return self.coulomb_friction + excess * fading

    def force_towards(self, v: Array, direction: Array) -> Array:
        """Return the force of a slip at the rate v in a direction, 1 or -1, in N m, or N."""
        return -self.strength(v) * direction - self.viscous_friction * v


@dataclass(frozen=True)
class FrictionLaw(SlidingLaw):
    """The law of Coulomb, static and viscous friction, smooth around standstill.

    With the rate v::

        g(v) = F_c + (F_s - F_c) exp(-(v/v_s)²)     dry friction with the Stribeck effect
        f = -g(v) tanh(v/v_t) - F_v v               force
        P = f v <= 0                                power

    Attributes
    ----------
    coulomb_friction : float
        Dry friction F_c >= 0 of a fast motion in N m, or N.
    static_friction : float
        Dry friction F_s >= 0 of a slow motion in N m, or N; usually at least F_c. The greatest
        force comes close to it when v_t is much smaller than v_s: 0.91 of the way from F_c to F_s
        for F_s = 2 F_c and v_t = v_s/10.
    stribeck_velocity : float
        Rate v_s > 0 around which static turns into Coulomb friction, in rad/s, or m/s.
    viscous_friction : float
        Friction F_v >= 0 per rate in N m s/rad, or N s/m.
    transition_velocity : float
        Rate v_t > 0 at which dry friction has reached tanh(1) = 0.76 of its size, in rad/s, or m/s.

    See Also
    --------
    flexure.JointFriction : The element with this law.
    SlidingLaw : The same law for a force and a velocity.

    Notes
    -----
    Nothing sticks: under a load below F_s a body creeps, with ``v_t artanh(load/F_s)`` about. The
    smaller v_t is, the closer this is to rest, and the stiffer the equations are: around standstill
    a motion dies away with the `time_constant`.

    The model is described by B. Armstrong-Hélouvry, P. Dupont and C. Canudas de Wit, A survey of
    models, analysis tools and compensation methods for the control of machines with friction,
    Automatica 30 (1994) 1083-1138, but for the tanh that makes it smooth.

    Examples
    --------
    >>> law = FrictionLaw(3.0, 5.0, 0.1, 0.5, 0.01)
    >>> law.force(np.array([-10.0, 0.0, 10.0]))
    array([ 8., -0., -8.])
    >>> law.time_constant(inertia=2.0)
    np.float64(0.003996...)
    """

    transition_velocity: Array

    def force(self, v: Array) -> Array:
        """Return the force f at the rate v in N m, or N."""
        return self._dry_force(v) - self.viscous_friction * v

    def terms(self, v: Array) -> dict[str, Array]:
        """Return dry and viscous friction by name, in N m, or N; their sum is the force."""
        return {"dry friction": self._dry_force(v), "viscous friction": -self.viscous_friction * v}

    def _dry_force(self, v: Array) -> Array:
        """Return -g(v) tanh(v/v_t)."""
        return -self.strength(v) * np.tanh(v / self.transition_velocity)

    def power(self, v: Array) -> Array:
        """Return the power P of friction in W, never positive."""
        return self.force(v) * v

    def time_constant(self, inertia: npt.ArrayLike) -> Array:
        """Return the time in which a slow motion decays to 1/e, ``I/(F_s/v_t + F_v)``.

        It is that of the slope of the force at standstill. Explicit integrators need steps of about
        this size whenever the motion is slow; so it should not be much shorter than needed.

        Parameters
        ----------
        inertia : float or array_like
            Inertia I that moves along the coordinate: a moment of inertia in kg m², or a mass in
            kg.

        Returns
        -------
        float or ndarray
            In s; infinite without friction.
        """
        slope = self.static_friction / self.transition_velocity + self.viscous_friction
        with np.errstate(divide="ignore"):
            return np.divide(inertia, slope)


class JointFriction(JointForceElement):
    """Dry and viscous friction along every velocity of a joint.

    The generalized force is that of `FrictionLaw`, for each velocity v::

        g(v) = F_c + (F_s - F_c) exp(-(v/v_s)²)
        generalized_force = -g(v) tanh(v/v_t) - F_v v

    No energy is stored. All constants are parameters of the block, with their names as attributes:
    scalars for a joint with one velocity, else vectors. Viscous damping of the joint itself acts in
    addition.

    Parameters
    ----------
    name : str
        Name of the block.
    joint : Joint
        Any joint that moves.
    coulomb_friction : float or array_like, shape (num_velocities,)
        Dry friction F_c >= 0 of a fast motion in N m, or N. Vectors have one entry per velocity,
        here as below.
    transition_velocity : float or array_like, shape (num_velocities,)
        Rate v_t > 0 in rad/s, or m/s, within which dry friction changes its direction. Small values
        make the equations stiff: ``friction.law(context).time_constant(inertia)`` tells how much.
    static_friction : float or array_like, shape (num_velocities,), optional
        Dry friction F_s >= 0 of a slow motion in N m, or N; as great as F_c when omitted.
    stribeck_velocity : float or array_like, shape (num_velocities,), optional
        Rate v_s > 0 around which static turns into Coulomb friction, in rad/s, or m/s; ten times
        v_t when omitted.
    viscous_friction : float or array_like, shape (num_velocities,)
        Friction F_v >= 0 per rate in N m s/rad, or N s/m.

    Raises
    ------
    DeclarationError
        When the joint cannot move, or a vector has the wrong size.
    ValueRefusedError
        When a constant is negative or not finite, or one of the two rates is zero.

    See Also
    --------
    StickSlipFriction : Dry and viscous friction in a joint.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
    >>> slide = PrismaticJoint("slide", Body("rail"), Body("slider"), axis=(1, 0, 0))
    >>> friction = JointFriction(
    ...     "friction", slide, coulomb_friction=3.0, transition_velocity=1e-3, viscous_friction=0.5
    ... )
    >>> context = friction.create_default_context()
    >>> friction.position.fix(context, 0.0)
    >>> friction.velocity.fix(context, 2.0)
    >>> friction.generalized_force.eval(context), friction.non_conservative_power.eval(context)
    (array([-4.]), array([-8.]))
    >>> friction.law(context).time_constant(inertia=6.0)
    np.float64(0.00199...)
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        coulomb_friction: npt.ArrayLike,
        transition_velocity: npt.ArrayLike,
        static_friction: npt.ArrayLike | None = None,
        stribeck_velocity: npt.ArrayLike | None = None,
        viscous_friction: npt.ArrayLike = 0.0,
    ) -> None:
        super().__init__(name, joint, stores_energy=False, losses_need_position=False)
        if not joint.num_velocities:
            raise DeclarationError(
                f"Cannot attach '{name}' to joint '{joint.name}'",
                expected="a joint that moves",
                found=f"a {joint.type_name} joint",
            )
        forces, rates = ("N m", "N"), ("rad/s", "m/s")
        self.coulomb_friction = declare_per_coordinate(
            self, "coulomb_friction", coulomb_friction, forces, lower=0.0
        )
        self.static_friction = declare_per_coordinate(
            self,
            "static_friction",
            coulomb_friction if static_friction is None else static_friction,
            forces,
            lower=0.0,
        )
        self.viscous_friction = declare_per_coordinate(
            self, "viscous_friction", viscous_friction, ("N m s/rad", "N s/m"), lower=0.0
        )
        self.transition_velocity = declare_per_coordinate(
            self, "transition_velocity", transition_velocity, rates, lower=0.0, exclusive=True
        )
        self.stribeck_velocity = declare_per_coordinate(
            self,
            "stribeck_velocity",
            10.0 * self.transition_velocity.default
            if stribeck_velocity is None
            else stribeck_velocity,
            rates,
            lower=0.0,
            exclusive=True,
        )

    def law(self, context: Any) -> FrictionLaw:
        """Return the law with the constants of a context."""
        return FrictionLaw(
            coulomb_friction=self.coulomb_friction(context),
            static_friction=self.static_friction(context),
            stribeck_velocity=self.stribeck_velocity(context),
            viscous_friction=self.viscous_friction(context),
            transition_velocity=self.transition_velocity(context),
        )

    def calc_generalized_force(self, context: Any) -> Array:
        """Return the force of friction along every velocity."""
        return self.law(context).force(self.velocity(context))

    def calc_terms(self, context: Any) -> dict[str, Array]:
        """Return dry and viscous friction along every velocity."""
        return self.law(context).terms(self.velocity(context))

    def calc_stored_energy(self, context: Any) -> Array:
        """Return zero: friction stores nothing."""
        return 0.0

    def calc_conservative_power(self, context: Any) -> Array:
        """Return zero: friction gives nothing back."""
        return 0.0

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of friction along all velocities."""
        return np.sum(self.law(context).power(self.velocity(context)))


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
        forces, rates = ("N m", "N"), ("rad/s", "m/s")
        self._set_vector("coulomb_friction", coulomb_friction, forces)
        coulomb, _ = self._defaults["coulomb_friction"]
        static = coulomb if static_friction is None else static_friction
        self._set_vector("static_friction", static, forces, least=coulomb)
        self._set_vector("viscous_friction", viscous_friction, ("N m s/rad", "N s/m"))
        if stribeck_velocity is not None:
            self._set_vector("stribeck_velocity", stribeck_velocity, rates, exclusive=True)
        self._has_own_static = static_friction is not None

    def _set_vector(
        self,
        what: str,
        value: npt.ArrayLike,
        units: tuple[str, str],
        *,
        least: npt.ArrayLike = 0.0,
        exclusive: bool = False,
    ) -> None:
        """Check the default of a constant along every velocity, and keep it with its unit."""
        vector = self._vector(value, what, lower=least, exclusive=exclusive)
        unit = coordinate_unit(self.joint, *units)
        self._defaults[what] = vector, {"unit": unit, "lower": 0.0, "exclusive": exclusive}

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare the constants, and which friction is the larger one."""
        super().declare(tree)
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
