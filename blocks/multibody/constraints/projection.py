"""The way back to where constraints are met: for positions, and for velocities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flexure.blocks.multibody.articulated_body import Articulation
from flexure.blocks.multibody.constraints.constrained_motion import impulse
from flexure.blocks.multibody.constraints.constraint import Condition, ConstrainedTree
from flexure.blocks.multibody.constraints.stabilization import Stabilization
from flexure.diagrams import scalars
from flexure.diagrams.values import Array


class Correction(NamedTuple):
    """What brings a tree back to where its constraints are met.

    Attributes
    ----------
    displacement : array, shape (num_velocities,)
        Displacements along the velocities.
    velocity : array, shape (num_velocities,)
        What is added to the velocities.
    """

    displacement: Array
    velocity: Array


def calc_correction(articulation: Articulation, conditions: Sequence[Condition]) -> Correction:
    """Return the smallest changes of positions and velocities that constraints ask for.

    They are those of one step of Newton's method, and the smallest by the kinetic energy of the
    change: a blow by the constraints alone gives the velocities, ::

        δ = -M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹ φ        Δv = -M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹ φ̇

    For the displacements, J and φ are those of equations between positions; equations w = 0 between
    velocities alone have w in the place of φ̇. Redundant ones are solved as those of multipliers.

    Parameters
    ----------
    articulation : Articulation
        The tree; the forces on it do not matter.
    conditions : sequence of Condition
        The equations of each constraint.

    Returns
    -------
    Correction
    """
    of_positions = [_of_positions(each) for each in conditions if len(each.errors)]
    return Correction(
        impulse(articulation, of_positions, [-scalars.array(c.errors) for c in of_positions]),
        impulse(articulation, conditions, [-scalars.array(c.rates) for c in conditions]),
    )


def _of_positions(condition: Condition) -> Condition:
    """Return the equations between positions, which come first."""
    return Condition(*(values[: len(condition.errors)] for values in condition))


def calc_deviations(tree: ConstrainedTree, context: Any, allowed: Stabilization) -> list[Array]:
    """Return all errors and rates of the constraints, in units of what is tolerated."""
    error = allowed.tolerance(context)
    rate = allowed.rate(context, error, tree.moving_velocities(context))
    conditions = tree.conditions(context)
    errors = [value / error for each in conditions for value in each.errors]
    return [*errors, *(value / rate for each in conditions for value in each.rates)]


__all__ = ["Correction", "calc_correction", "calc_deviations"]
