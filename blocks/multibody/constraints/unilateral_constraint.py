"""The base class of constraints that push and never pull: gaps that stay open or closed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from flexure.blocks.math import dot
from flexure.blocks.multibody.constraints.constraint import ConstrainedTree, Slip
from flexure.blocks.multibody.constraints.switched_constraint import Scale, SwitchedConstraint
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import quoted
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.state import DiscreteState

NEAR = 1e-6  # how far from the limit a contact still holds, as a part of the usual size
TOUCHING = 1e-13  # how far counts as touching, likewise


def touches(gap: Any, scale: Scale, reach: Any = TOUCHING) -> Any:
    """Return whether a coordinate is at its limit, or beyond it."""
    return gap <= reach * scale.size


def rests(gap: Any, rate: Any, scale: Scale, reach: Any = TOUCHING) -> Any:
    """Return whether a coordinate is at rest at its limit."""
    return np.logical_and(touches(gap, scale, reach), np.abs(rate) <= scale.still)


class UnilateralConstraint(SwitchedConstraint):
    """Gaps g >= 0, each with impacts and resting contact: 0 <= g ⊥ λ >= 0.

    Subclasses return the gaps with their rates and accelerations, and what is said of each.
    """

    MODES = "1 in contact, 0 open"
    outputs: tuple[str, ...] = ("mode", "dissipated_energy")

    #: How many times larger than those of coordinates gaps and rates may be while contacts hold.
    LEEWAY: ClassVar[tuple[float, float]] = (1.0, 1.0)

    #: Whether there is friction in proportion to the multipliers.
    has_friction: bool = False

    _dissipated: DiscreteState | None = None

    def _declare_dissipated(self, tree: ConstrainedTree) -> None:
        self._dissipated = tree.declare_discrete_state(
            f"{self.name}_dissipated", [0.0], doc="energy that impacts have taken away, in J"
        )

    @property
    def dissipated(self) -> DiscreteState:
        """The energy that impacts have taken away so far."""
        assert self._dissipated is not None  # the tree declares it before
        return self._dissipated

    @abstractmethod
    def gaps(self, context: Any) -> list[Array]:
        """Return the gap of each equation, negative beyond the limit."""

    @abstractmethod
    def rates(self, context: Any) -> list[Array]:
        """Return the rates of the gaps."""

    @abstractmethod
    def accelerations(self, context: Any) -> list[Array]:
        """Return the second derivatives of the gaps."""

    @abstractmethod
    def limits(self, context: Any) -> list[Array]:
        """Return the coordinate of each equation where its gap is zero, if there is one."""

    @abstractmethod
    def restitutions(self, context: Any) -> list[Array]:
        """Return the coefficient of restitution of each equation."""

    @abstractmethod
    def rest_velocities(self, context: Any) -> list[Array]:
        """Return the rate of the slowest rebound of each equation."""

    def friction_force(self, context: Any) -> Array:
        """Return the friction of each equation on the second of the bodies, in the world."""
        (values, _), (A, B) = self.multipliers(context), self.bodies
        number = A.number if B.is_world else B.number
        assert number is not None  # the plant builder numbers bodies before
        R = self.tree.placements(context)[number].R_WB
        pairs = zip(self._slips(context), values, strict=True)
        forces = [value * (R @ slip.force[number][3:]) for slip, value in pairs]
        return np.concatenate([-force if B.is_world else force for force in forces])

    def power(self, context: Any) -> Array:
        """Return the power of the friction."""
        (values, _), slips = self.multipliers(context), self._slips(context)
        pairs = zip(slips, values, strict=True)
        return sum(
            value * dot(scalars.array(slip.drags), scalars.array(slip.rates))
            for slip, value in pairs
        )

    def _slips(self, context: Any) -> Sequence[Slip]:
        assert self.index is not None  # the plant builder numbers constraints before
        slips: Sequence[Slip] = self.tree.conditions(context)[self.index].slips
        return slips

    def resting(self, context: Any) -> list[Any]:
        """Return for each equation whether the coordinate is at rest at its limit."""
        triples = zip(self.gaps(context), self.rates(context), self.scales, strict=True)
        return [rests(*each) for each in triples]

    def held(self, context: Any) -> list[Array]:
        """Return 1 for each contact, unless bodies were moved away from it."""
        modes, gaps, rates = self.modes(context), self.gaps(context), self.rates(context)
        far, fast = self.LEEWAY
        pairs = zip(gaps, self.scales, strict=True)
        near = [np.abs(gap) <= far * NEAR * scale.size for gap, scale in pairs]
        pairs = zip(rates, self.scales, strict=True)
        still = [np.abs(rate) <= fast * scale.still for rate, scale in pairs]
        return [
            np.where(np.logical_and(*each), modes[k], 0.0)
            for k, each in enumerate(zip(near, still, strict=True))
        ]

    @property
    def num_position_equations(self) -> int:
        """How many of the equations are between positions: all."""
        return self.num_equations

    def errors(self, context: Any) -> Sequence[Array]:
        """Return the distances from the limits."""
        return self.gaps(context)

    def hold_problem(self, context: Any) -> str | None:
        """Say which contact pulls, and which coordinate is pressed through its limit."""
        held, (values, _) = self.held(context), self.multipliers(context)
        resting, accelerations = self.resting(context), self.accelerations(context)
        names = self.mode_names()
        for k, scale in enumerate(self.scales):
            if held[k] > 0.0 and not self.witness(k, context) >= 0.0:
                return (
                    f"'{self.name}' in contact ({names[k]}), pulling with {-float(values[k]):.6g}"
                )
            if resting[k] and not held[k] and accelerations[k] < -scale.slack:
                pressed = quoted(
                    each.name for each in ([self.joint] if self.joint else self.bodies)
                )
                return f"'{self.name}' open ({names[k]}), with {pressed} pressed against it"
        return None

    def witness(self, row: int, context: Any) -> Array:
        """Return the distance from a limit, or how firmly the stop holds.

        Where a coordinate rests at the limit without the stop, it is by how much it is kept there.
        """
        values, compliances = self.multipliers(context)
        slack = self.scales[row].slack
        # What has just left its limit counts as away from it.
        near = TOUCHING * self.scales[row].size
        gap = self.gaps(context)[row] + near
        force = values[row] * compliances[row]
        firm = np.where(np.abs(force) < 0.1 * slack, slack, force + slack)  # without rounding
        kept = np.minimum(self.accelerations(context)[row] + slack, near)
        open_ = np.where(self.resting(context)[row], kept, gap)
        return np.where(self.held(context)[row] > 0.0, firm, open_)
