"""Rigid stops at the ends of the range of a joint, with impacts and resting contact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constraints.constraint import ConstrainedTree
from flexure.blocks.multibody.constraints.switched_constraint import (
    NEAR,
    SLOW,
    Row,
    SwitchedCoordinates,
    UnilateralConstraint,
)
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, FloatArray, show


class RigidStop(UnilateralConstraint, SwitchedCoordinates):
    """Rigid stops at the limits of the coordinates of a joint, with impacts.

    With the distance g >= 0 of a coordinate from its limit, and its rate ġ, a stop is open or in
    contact::

        open        g > 0,  λ = 0
        impact      g = 0,  ġ⁻ < 0:   ġ⁺ = -e ġ⁻        the velocities of the mechanism jump
        contact     g = 0,  ġ = 0,    λ >= 0             the stop holds the coordinate
        release     λ falls to zero: open again

    λ is the generalized force of the stop, which pushes and never pulls. At an impact an impulse
    acts along the coordinate, which the mass of the whole mechanism takes up, loops and couplings
    included. Where several coordinates strike, or rest on a stop, at one instant, their impulses
    are such that ``0 <= Λ ⊥ ġ⁺ + e ġ⁻ >= 0`` for each; with ``impacts="sequential"`` of the
    `PlantBuilder`, they strike one after the other. Rebounds come closer and closer together; one
    that is slower than the ``rest_velocity`` does not take place, and contact begins. While it
    lasts, the coordinate is at its limit to the last bit.

    An impact takes the energy ``Λ (1 - e) |ġ⁻|/2`` away, which the output
    ``<name>.dissipated_energy`` of the plant adds up.

    Limits, restitution and ``rest_velocity`` are parameters of the tree with names that begin with
    that of the stop, such as ``tree.stop_restitution``: scalars for a joint with one coordinate,
    else vectors.

    Parameters
    ----------
    name : str
        Name within the plant.
    joint : Joint
        A joint whose velocities are the rates of its positions, which is any kind but ball,
        floating and weld joints.
    restitution : float or array_like, shape (num_positions,)
        Coefficient of restitution e, from 0 (nothing rebounds) to 1 (no energy is lost). Vectors
        have one entry per coordinate, here as below.
    lower, upper : float or array_like, shape (num_positions,), optional
        Limits in rad, or m; by default the position limits that the joint has now. A limit that is
        infinite here has no stop, and stays infinite.
    rest_velocity : float or array_like, shape (num_positions,), optional
        Rate >= 0 in rad/s, or m/s, of the slowest rebound; by default 1e-4 of the rate with which a
        pendulum of the length of the mechanism's longest link moves.

    Raises
    ------
    DeclarationError
        When the joint is of another kind, a vector has the wrong size, a lower limit is not below
        the upper one, or no limit is finite.
    ValueRefusedError
        When the restitution is not from 0 to 1, or a number is negative or not one.

    Notes
    -----
    Newton's law of restitution, with the conditions of Moreau where several stops are struck at
    once: B. Brogliato, Nonsmooth Mechanics, Springer, third edition 2016, chapters 5 and 6. Dry
    friction has no part in impacts: its force is bounded, and the time is short.

    See Also
    --------
    JointStop : Compliant stops.
    RigidContact : The same between shapes of two bodies.

    Examples
    --------
    >>> import numpy as np
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("ball", gravity=(0.0, 0.0, -10.0))
    >>> body = builder.add_body("body", fx.SpatialInertia.point_mass(2.0))
    >>> height = builder.add_joint(
    ...     fx.PrismaticJoint("height", builder.world, body, axis=(0, 0, 1), damping=0.0)
    ... )
    >>> floor = builder.add_constraint(fx.RigidStop("floor", height, restitution=0.5, lower=0.0))
    >>> ball = builder.build()
    >>> context = ball.create_default_context()
    >>> height.translation.set(context, 5.0)
    >>> result = fx.simulate(ball, 4.0, context=context)
    >>> found = result["floor.multipliers"][-1], result["floor.dissipated_energy"][-1]
    >>> print(*np.round(found, 6))
    20.0 100.0
    """

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        restitution: npt.ArrayLike,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
        rest_velocity: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(name, joint)
        if not joint.velocities_are_rates:
            raise DeclarationError(
                f"Cannot make constraint '{name}'",
                expected="a joint whose velocities are the rates of its positions",
                found=f"the {joint.type_name} joint '{joint.name}'",
                remedy="Use a revolute or planar joint, or any but ball and floating joints",
            )
        given = {
            "lower": joint.position_lower_limits if lower is None else lower,
            "upper": joint.position_upper_limits if upper is None else upper,
        }
        limits = [self._vector(each, what, allow_infinite=True) for what, each in given.items()]
        if not (np.all(limits[0] < limits[1]) and np.any(np.isfinite(limits))):
            raise DeclarationError(
                f"Cannot make stop '{name}' on joint '{joint.name}'",
                expected="lower < upper, and a limit that is finite",
                found=f"lower={show(limits[0])}, upper={show(limits[1])}",
                remedy="Pass lower and upper, or set the position limits of the joint first",
            )
        self._limits = limits
        self._restitution = self._vector(restitution, "restitution", lower=0.0, upper=1.0)
        self._rest_velocity: FloatArray | None = None
        if rest_velocity is not None:
            self._rest_velocity = self._vector(rest_velocity, "rest_velocity", lower=0.0)
        self.rows = tuple(
            Row(k, sign)
            for k in range(joint.num_velocities)
            for limit, sign in zip(limits, (1.0, -1.0), strict=True)
            if np.isfinite(limit[k])
        )

    def mode_names(self) -> Sequence[str]:
        """Return which limit each mode belongs to."""
        sides = ["lower" if row.sign > 0.0 else "upper" for row in self.rows]
        if self.joint.num_positions == 1:
            return sides
        names = [self.joint.POSITION_SUFFIXES[row.k] for row in self.rows]
        return [f"{side}_{name}" for side, name in zip(sides, names, strict=True)]

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare limits, restitution, slowest rebound, and what impacts have dissipated."""
        super().declare(tree)
        angle, rate = _units(self.joint)
        for what, limit in zip(("lower", "upper"), self._limits, strict=True):
            self._declare(what, limit, unit=angle, allow_infinite=True, problem=_Pattern(limit))
        tree.declare_relation(self._parameters["lower"], "<", self._parameters["upper"])
        self._declare("restitution", self._restitution, lower=0.0, upper=1.0)
        if self._rest_velocity is None:
            slowest = np.zeros(self.joint.num_positions)
            for row, scale in zip(self.rows, self.scales, strict=True):
                slowest[row.k] = SLOW * scale.rate
        else:
            slowest = self._rest_velocity
        self._declare("rest_velocity", slowest, unit=rate, lower=0.0)
        self._declare_dissipated(tree)

    def _of_rows(self, what: str, context: Any) -> list[Array]:
        """Return a parameter for each equation."""
        value = self._parameters[what](context)
        single = self.joint.num_positions == 1
        return [value if single else value[row.k] for row in self.rows]

    def restitutions(self, context: Any) -> list[Array]:
        """Return the coefficient of restitution of each equation."""
        return self._of_rows("restitution", context)

    def rest_velocities(self, context: Any) -> list[Array]:
        """Return the rate of the slowest rebound of each equation."""
        return self._of_rows("rest_velocity", context)

    def limits(self, context: Any) -> list[Array]:
        """Return the limit of each equation."""
        lower, upper = self._of_rows("lower", context), self._of_rows("upper", context)
        triples = zip(self.rows, lower, upper, strict=True)
        return [low if row.sign > 0.0 else high for row, low, high in triples]

    def gaps(self, context: Any) -> list[Array]:
        """Return how far the coordinate is from each limit, negative beyond it."""
        tree = self.tree
        q = tree.q(context)[tree.positions_of(self.joint)]
        pairs = zip(self.rows, self.limits(context), strict=True)
        return [row.sign * (q[row.k] - limit) for row, limit in pairs]

    def rates(self, context: Any) -> list[Array]:
        """Return the rates of these distances."""
        v = self.velocity(context)
        return [row.sign * v[row.k] for row in self.rows]

    def accelerations(self, context: Any) -> list[Array]:
        """Return the second derivatives of the distances."""
        tree = self.tree
        rates = tree.rates(context)[tree.velocities_of(self.joint)]
        return [row.sign * rates[row.k] for row in self.rows]

    def start_problem(self, context: Any) -> str | None:
        """Say which coordinate is beyond its limit."""
        q = self.tree.q(context)[self.tree.positions_of(self.joint)]
        triples = zip(self.rows, self.gaps(context), self.limits(context), strict=True)
        for (row, gap, limit), scale in zip(triples, self.scales, strict=True):
            if not gap >= -NEAR * scale.size:
                side = "lower" if row.sign > 0.0 else "upper"
                return (
                    f"'{self.joint.name}' at {float(q[row.k]):.9g}, beyond the {side} limit "
                    f"{float(limit):.9g} of stop '{self.name}'"
                )
        return None


class _Pattern:
    """Refuses limits that are finite where they were not, or the other way round."""

    def __init__(self, default: FloatArray) -> None:
        self._finite = np.isfinite(default)

    def __call__(self, value: FloatArray) -> str | None:
        """Say what is wrong with limits."""
        if np.array_equal(np.isfinite(np.reshape(value, -1)), self._finite):
            return None
        return "a limit that is finite where the stop was made without one, or the other way round"


def _units(joint: Joint) -> tuple[str, str]:
    """Return the units of positions and velocities of a joint, if they are the same for all."""
    turns = {each.startswith("w") for each in joint.VELOCITY_SUFFIXES}
    if len(turns) > 1:
        return "", ""
    return ("rad", "rad/s") if turns.pop() else ("m", "m/s")
