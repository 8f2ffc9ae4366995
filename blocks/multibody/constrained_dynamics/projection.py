"""Whether constraints are met, and the way back to there: for positions, and for velocities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.math import dot, ldl_factors
from flexure.blocks.multibody.bodies.body_motion import Placement
from flexure.blocks.multibody.constrained_dynamics.constrained_motion import UpheldEquations
from flexure.blocks.multibody.constraints.constraint import (
    Condition,
    ConstrainedTree,
    constraint_forces,
)
from flexure.blocks.multibody.constraints.stabilization import Stabilization
from flexure.blocks.multibody.trees.articulated_body import Articulation
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import Array

#: Pivots below which a position is near a singular one: of a parallelogram, within 6° of a line.
_NEAR = 1e-2
#: Pivots with which an equation is about to be dropped as a redundant one.
_DROPPED = 1e-7
_ROUNDING = 1e-12


class Correction(NamedTuple):
    """The projection of a tree's state onto its constraints."""

    displacement: Array  # displacements along the velocities, shape (num_velocities,)
    velocity: Array  # what is added to the velocities, shape (num_velocities,)


def calc_correction(articulation: Articulation, conditions: Sequence[Condition]) -> Correction:
    """Return the smallest changes of positions and velocities that constraints ask for.

    They are those of one step of Newton's method, and the smallest by the kinetic energy of the
    change: a blow by the constraints alone gives the velocities, ::

        δ = -M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹ φ        Δv = -M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹ φ̇

    Equations w = 0 between velocities have w instead of φ̇, and zero instead of φ: nothing slips
    meanwhile. Redundant ones are solved as those of multipliers.
    """
    equations = UpheldEquations(articulation, conditions)
    errors = [
        -scalars.array([*c.errors, *[0.0] * (len(c.rates) - len(c.errors))]) for c in conditions
    ]
    rates = [-scalars.array(c.rates) for c in conditions]
    displacement, velocity = (
        equations.added(equations.multipliers(wanted)) for wanted in (errors, rates)
    )
    return Correction(displacement, velocity)


def calc_deviations(tree: ConstrainedTree, context: Any, allowed: Stabilization) -> list[Array]:
    """Return all errors and rates of the constraints, in units of what is tolerated.

    Near a singular position a small error means a large displacement. What is tolerated there is
    less, by `_leverage`.
    """
    error = allowed.tolerance(context)
    rate = allowed.rate(context, error, tree.moving_velocities(context))
    conditions, placements = tree.conditions(context), tree.placements(context)
    weights = [_leverage(tree.topology, placements, each) for each in conditions]
    pairs = list(zip(weights, conditions, strict=True))
    errors = [weight * (value / error) for weight, each in pairs for value in each.errors]
    return [*errors, *(weight * (value / rate) for weight, each in pairs for value in each.rates)]


def equation_row(
    topology: Topology, placements: Sequence[Placement], condition: Condition, k: int
) -> Array:
    """Return the derivative of the rate of one equation by the velocities, shape (num_velocities,).

    It is zero where the equation does not hold now.
    """
    alone = condition._replace(forces=[condition.forces[k]], slips=())
    on_bodies = constraint_forces(placements, [alone], [np.ones(1)])
    efforts, nothing = condition.efforts[k], [np.zeros(0)]
    on_joints = [
        efforts.get(each.outboard, np.zeros(each.joint.num_velocities))
        for each in topology.mobilizers
    ]
    row = generalized_forces(topology, placements, on_bodies) + np.concatenate(nothing + on_joints)
    return row if condition.held is None else row * condition.held[k]


def _leverage(topology: Topology, placements: Sequence[Placement], condition: Condition) -> Array:
    """Return how far velocities may be for a rate of the equations of one constraint, at least 1.

    The pivots p of J Jᵀ, as parts of its largest entry, are squares of what each equation adds to
    those before it. One of them goes through zero where the mechanism goes through a singular
    position, and the displacement that belongs to an error grows as 1/√p. Redundant equations, with
    pivots of rounding, count as none.
    """
    count = len(condition.rates)
    if count < 2:
        return 1.0
    rows = [equation_row(topology, placements, condition, k) for k in range(count)]
    A = scalars.array([[dot(a, b) for b in rows] for a in rows])
    largest = np.max(np.diagonal(A))
    scale = np.where(largest > 0.0, largest, 1.0)
    _, pivots = ldl_factors(A / scale + _ROUNDING * np.eye(count))
    p = np.maximum(pivots - _ROUNDING, 0.0)
    return np.maximum(1.0, np.max(np.where(p < _NEAR, np.sqrt(p) / (p + _DROPPED), 1.0)))


def require_consistent(tree: ConstrainedTree, context: Any, allowed: Stabilization) -> None:
    """Refuse errors and rates of constraints that are larger than a motion may begin with."""
    for constraint in tree.constraints:
        constraint.check(context)
    error = float(allowed.start_tolerance(context))
    rate = float(allowed.rate(context, error, tree.moving_velocities(context)))
    found, label = unmet(tree, context, error, rate), tree.parent_plant.label
    if found:
        raise EvaluationError(
            f"Cannot begin with these positions and velocities of '{label}'",
            expected=f"errors of constraints up to {error:.3g}, and rates of them up to {rate:.3g}",
            found=found,
            remedy="Call assemble(context) of the plant, which finds positions and velocities that "
            "fit, or assemble_starts() of its builder, which does so at the start of each run; "
            f"'{tree.name}.start_tolerance' bounds the errors",
        )
    for constraint in tree.constraints:
        problem = constraint.start_problem(context)
        if problem is not None:
            raise EvaluationError(
                f"Cannot begin with these positions of '{label}'",
                expected="positions that all stops and loop joints allow",
                found=problem,
                remedy="Set other positions, or other limits in the context; assemble(context) of "
                "the plant turns loop joints, where their frames fit",
            )


def unmet(tree: ConstrainedTree, context: Any, error: float, rate: float) -> str:
    """Name the constraints with errors or rates of them that are larger, with the largest."""
    limits = compared(tree, context, error, rate)
    return ", ".join(
        f"{what} {float(value):.3g}" for what, value, limit in limits if not value <= limit
    )


def compared(
    tree: ConstrainedTree, context: Any, error: Any, rate: Any
) -> list[tuple[str, Any, Any]]:
    """Return errors and rates of all constraints in words, as values, and how large they may be.

    Values are numbers, or symbols of a trace.
    """
    found: list[tuple[str, Any, Any]] = []
    for constraint, condition in zip(tree.constraints, tree.conditions(context), strict=True):
        count, name = len(condition.errors), f"'{constraint.name}'"
        found += [
            (f"{name} open by", _largest(condition.errors), error),
            (f"{name} with rates of its errors of", _largest(condition.rates[:count]), rate),
            (f"{name} off by a velocity of", _largest(condition.rates[count:]), rate),
        ]
    return found


def _largest(values: Iterable[Any]) -> Any:
    """Return the largest magnitude, NaN if one is NaN."""
    return reduce(np.maximum, map(np.abs, values), 0.0)
