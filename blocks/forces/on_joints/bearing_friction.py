"""Friction in proportion to the load on a bearing or a guide."""

from __future__ import annotations

from typing import Any

from flexure.blocks.math import cross, dot
from flexure.blocks.multibody.constraints import LoadedFriction
from flexure.blocks.multibody.constraints.constraint import ConstrainedTree
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, bounded

_COEFFICIENTS = ("friction", "static_friction")


class BearingFriction(LoadedFriction):
    """Dry friction in proportion to the load on a bearing or a guide.

    The joint transmits the force f and the moment t to its child body, about the origin of the
    frame M there. With its axis n and the parts f_r, t_r across it, two bearings at ±b/2 along the
    axis carry ``p₁,₂ = f_r/2 ± t_r × n/b``, and without a length b one carries p = f_r. The forces
    that rub, and the friction along the velocity v, are ::

        turning     N = r Σ |p| + r_a |f·n|
        sliding     N = Σ |p| + |t·n|/r              the last part only with a radius
        stick       v = 0, and the friction τ is what holds: |τ| <= μ_s N
        slip        τ = -μ N sign(v)

    f and t are those under the friction itself: where it accelerates an eccentric mass, it changes
    its own load, and both are solved for together. Where it presses its joint by more than it takes
    to cause it, there may be several motions or none (Painlevé's paradox), which is refused.
    Sticking is as exact as that of `StickSlipFriction`, with the same modes, events and outputs:
    ``<name>.generalized_force`` in N m or N, ``<name>.non_conservative_power`` and ``<name>.mode``;
    ``<name>.load`` is N.

    Added by `PlantBuilder.add_constraint`; its constants are parameters of the tree with names that
    begin with its own, such as ``tree.bearing_friction``.

    Parameters
    ----------
    name : str
        Name within the plant.
    joint : RevoluteJoint or PrismaticJoint
        The joint, whose frame M is in the middle of the bearing.
    friction : float
        Coefficient of friction μ >= 0 of a slip.
    static_friction : float, optional
        Coefficient μ_s >= μ up to which it sticks; μ when omitted.
    radius : float, optional
        Radius r > 0 in m: that of a journal, required if the joint turns; in a guide half of the
        distance of the lines that carry a moment about its axis, which else does not rub.
    length : float, optional
        Length b > 0 in m of the bearing along its axis. When omitted, moments across the axis do
        not rub, as in a spherical bearing.
    thrust_radius : float, optional
        Mean radius r_a > 0 in m at which a collar of a revolute joint carries the force along its
        axis; when omitted, this force does not rub.

    Raises
    ------
    DeclarationError
        When the joint is of another kind, or a radius is missing or means nothing for it.
    ValueRefusedError
        When a number is out of range or not finite.
    EvaluationError
        During motions, when friction presses its own joint too much.

    See Also
    --------
    StickSlipFriction : Friction of a given size, independent of the load.

    Notes
    -----
    The friction circle of a journal has the radius r sin(arctan μ), which is μ r to μ²/2; the load
    of rolling bearings is rated by the same formula with μ = 0.001 to 0.003 at r. Impacts pass
    without friction. Statics hold a joint that sticks.

    Source: F. P. Beer, E. R. Johnston and others, Vector Mechanics for Engineers: Statics, the
    sections on journal bearings, thrust bearings and self-locking guides.

    Examples
    --------
    A bracket on a post, with its load 150 mm from the axis of a bearing 90 mm long, holds itself
    where ``2 μ a > b``:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("clamp", gravity=(0.0, 0.0, -10.0))
    >>> bracket = builder.add_body(
    ...     "bracket", fx.SpatialInertia.point_mass(2.0), com=(0.15, 0.0, 0.0)
    ... )
    >>> post = builder.add_joint(
    ...     fx.PrismaticJoint("post", builder.world, bracket, axis=(0, 0, 1), damping=0.0)
    ... )
    >>> grip = builder.add_constraint(fx.BearingFriction("grip", post, friction=0.4, length=0.09))
    >>> result = fx.simulate(builder.build(), 1.0)
    >>> print(result["grip.generalized_force"][-1].round(9), result["post.translation"][-1])
    20.0 0.0
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        friction: float,
        static_friction: float | None = None,
        radius: float | None = None,
        length: float | None = None,
        thrust_radius: float | None = None,
    ) -> None:
        super().__init__(name, joint)
        attempt = f"Cannot make constraint '{name}'"
        fits = isinstance(joint, RevoluteJoint | PrismaticJoint)
        require(fits, joint, attempt, "a revolute or prismatic joint", error=DeclarationError)
        self._axis, self._turns_about = joint.axis, isinstance(joint, RevoluteJoint)
        if radius is None if self._turns_about else thrust_radius is not None:
            raise DeclarationError(
                attempt,
                expected="a radius if the joint turns, and no thrust_radius if it slides",
                found=f"radius={radius!r}, thrust_radius={thrust_radius!r} of {joint!r}",
            )
        self._set_default("friction", friction, lower=0.0)
        if static_friction is not None:
            least, _ = self._defaults["friction"]
            bounded(static_friction, f"{attempt} with this static_friction", lower=least)
            self._set_default("static_friction", static_friction, lower=0.0)
        lengths = {"radius": radius, "length": length, "thrust_radius": thrust_radius}
        for what, value in lengths.items():
            if value is not None:
                self._set_default(what, value, lower=0.0, exclusive=True, unit="m")

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare the constants, and which coefficient is the larger one."""
        super().declare(tree)
        if "static_friction" in self._parameters:
            sliding, most = (self._parameters[each] for each in _COEFFICIENTS)
            tree.declare_relation(sliding, "<=", most)

    def coefficients(self, context: Any) -> tuple[Array, Array]:
        """Return μ and μ_s."""
        given = [self._parameters[e](context) for e in _COEFFICIENTS if e in self._parameters]
        return given[0], given[-1]

    def loads(self, context: Any, F: Array) -> list[Array]:
        """Return the forces that rub, times their levers where the joint turns."""
        value = {what: parameter(context) for what, parameter in self._parameters.items()}
        n, t, f = self._axis, F[:3], F[3:]
        loads = [f - dot(f, n) * n]
        if "length" in value:
            couple = cross(t, n) / value["length"]
            loads = [0.5 * loads[0] + couple, 0.5 * loads[0] - couple]
        if self._turns_about:
            loads = [value["radius"] * load for load in loads]
        elif "radius" in value:
            loads.append(dot(t, n) / value["radius"] * n)
        if "thrust_radius" in value:
            loads.append(value["thrust_radius"] * dot(f, n) * n)
        return loads
