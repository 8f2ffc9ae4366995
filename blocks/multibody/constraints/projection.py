"""The way back to where constraints are met: for positions, and for velocities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flexure.blocks.multibody.articulated_body import Articulation
from flexure.blocks.multibody.constraints.constrained_motion import UpheldEquations
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

    Equations w = 0 between velocities have w in the place of φ̇, and zero in that of φ: nothing
    slips on the way. Redundant ones are solved as those of multipliers.

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
    equations = UpheldEquations(articulation, conditions)
    errors = [-scalars.array([*c.errors, *[0.0] * _missing(c)]) for c in conditions]
    rates = [-scalars.array(c.rates) for c in conditions]
    displacement, velocity = (
        equations.added(equations.multipliers(wanted)) for wanted in (errors, rates)
    )
    return Correction(displacement, velocity)


def _missing(condition: Condition) -> int:
    """Return how many equations are between velocities alone."""
    return len(condition.rates) - len(condition.errors)


def calc_deviations(tree: ConstrainedTree, context: Any, allowed: Stabilization) -> list[Array]:
    """Return all errors and rates of the constraints, in units of what is tolerated."""
    error = allowed.tolerance(context)
    rate = allowed.rate(context, error, tree.moving_velocities(context))
    conditions = tree.conditions(context)
    errors = [value / error for each in conditions for value in each.errors]
    return [*errors, *(value / rate for each in conditions for value in each.rates)]


__all__ = ["Correction", "calc_correction", "calc_deviations"]
