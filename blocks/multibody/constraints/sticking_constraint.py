"""Dry friction along the velocities of a joint, which sticks or slips: what each kind has."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from flexure.blocks.math import dot
from flexure.blocks.multibody.constraints.switched_constraint import Row, SwitchedCoordinates
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.inverse_dynamics import reaction
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array

_FAINTEST = 1e-30  # a rate that is positive, and next to none


class StickingConstraint(SwitchedCoordinates):
    """Friction along every velocity v of a joint: it holds v = 0, or opposes the slip.

    A subclass returns the greatest force with which it holds, and the force while it slips.
    """

    MODES = "0 sticks, 1 or -1 slips in that direction"
    outputs: tuple[str, ...] = ("mode", "generalized_force", "non_conservative_power")
    may_rest = True

    def __init__(self, name: str, joint: Joint) -> None:
        super().__init__(name, joint)
        self.rows = tuple(Row(k, 1.0) for k in range(joint.num_velocities))

    @abstractmethod
    def breakaway_force(self, context: Any) -> Array:
        """Return the force up to which each velocity is held."""

    @abstractmethod
    def slip_force(self, context: Any) -> Array:
        """Return the force along each velocity that slips; none where it sticks."""

    @property
    def still(self) -> Array:
        """The rates up to which the velocities count as zero."""
        return np.array([scale.still for scale in self.scales])

    def held(self, context: Any) -> list[Array]:
        """Return 1 for each velocity that sticks."""
        modes, v = self.modes(context), self.velocity(context)
        return [
            np.where(np.logical_and(mode == 0.0, np.abs(rate) <= still), 1.0, 0.0)
            for mode, rate, still in zip(modes, v, self.still, strict=True)
        ]

    def slip_directions(self, context: Any) -> Array:
        """Return the direction in which each velocity slips, 1 or -1; 0 where it sticks."""
        # A slip that has passed through zero goes on smoothly up to the event that ends it.
        v, modes = self.velocity(context), self.modes(context)
        begins = np.where(np.abs(v) <= self.still, 0.0, np.sign(v))
        return np.where(modes == 0.0, begins, modes)

    def force(self, context: Any) -> Array:
        """Return the whole force along each velocity, also where it sticks."""
        values, _ = self.multipliers(context)
        return values + self.slip_force(context)

    def power(self, context: Any) -> Array:
        """Return the power of the force, never positive."""
        return np.sum(self.slip_force(context) * self.velocity(context))

    def firmness(self, context: Any) -> Array:
        """Return by which acceleration each velocity would have to move on to break away."""
        values, compliances = self.multipliers(context)
        return (self.breakaway_force(context) - np.abs(values)) * compliances

    def witness(self, row: int, context: Any) -> Array:
        """Return how firmly a velocity sticks, or how fast it slips on.

        Where it is at rest without sticking, it is by how much it is kept from slipping back.
        """
        held, mode = self.held(context)[row], self.modes(context)[row]
        v, slack, tree = self.velocity(context)[row], self.scales[row].slack, self.tree
        acceleration = tree.rates(context)[tree.velocities_of(self.joint)][row]
        kept = np.minimum(mode * acceleration + slack, _FAINTEST)
        slip = np.where(v == 0.0, kept, mode * v)
        return np.where(held > 0.0, self.firmness(context)[row] + slack, slip)

    def hold_problem(self, context: Any) -> str | None:
        """Say which velocity sticks with a force that is too great."""
        held, firmness = self.held(context), self.firmness(context)
        values, _ = self.multipliers(context)
        for k, scale in enumerate(self.scales):
            if held[k] > 0.0 and not firmness[k] >= -scale.slack:
                most = float(self.breakaway_force(context)[k])
                return (
                    f"'{self.name}', which would have to hold with {abs(float(values[k])):.6g} and "
                    f"holds up to {most:.6g}"
                )
        return None

    def directions(self, context: Any) -> Array:
        """Return the modes as the velocities say, those of velocities at rest as they are."""
        v = self.velocity(context)
        rests = np.abs(v) <= self.still
        return scalars.array(np.where(rests, self.modes(context), np.sign(v)))


class LoadedFriction(StickingConstraint):
    """Friction along the one velocity of a joint, in proportion to the loads that it transmits.

    A subclass returns the loads that rub, as parts that are linear in the reaction of the joint,
    and the coefficients of friction.
    """

    outputs = (*StickingConstraint.outputs, "load")

    @abstractmethod
    def loads(self, context: Any, F: Array) -> list[Array]:
        """Return the parts of a reaction F that rub, of which the sizes are added.

        The reaction is the moment about Mo and the force on the child body, expressed in M. Parts
        are forces, or times levers where the joint turns.
        """

    @abstractmethod
    def coefficients(self, context: Any) -> tuple[Array, Array]:
        """Return the coefficients of friction of a slip, and up to which it sticks."""

    def load(self, context: Any) -> Array:
        """Return the sum of the sizes of the parts of the present reaction that rub."""
        tree = self.tree
        mobilizer = tree.topology.mobilizer_of(self.joint)
        F = reaction(mobilizer, tree.placements(context), tree.transmitted(context))
        sizes = [np.sqrt(dot(part, part)) for part in self.loads(context, F)]
        return scalars.array([sum(sizes)])

    def breakaway_force(self, context: Any) -> Array:
        """Return the force up to which the velocity is held under the present reaction."""
        _, most = self.coefficients(context)
        return most * self.load(context)

    def slip_force(self, context: Any) -> Array:
        """Return the force that belongs to the reaction under it."""
        found = self.tree.multipliers(context).frictions
        force: Array = found[self.index]
        return force
