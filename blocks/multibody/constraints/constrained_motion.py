"""The multipliers that uphold constraints, and the accelerations under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from flexure.blocks.math import dot, ldl_factors, ldl_solve
from flexure.blocks.multibody.articulated_body import Articulation, Response
from flexure.blocks.multibody.constraints.constraint import Condition
from flexure.diagrams import scalars
from flexure.diagrams.values import Array

#: What is added to the diagonal of the equations, relative to it, so that redundant ones, too, have
#: a solution; refinements take its influence away again.
_REGULARIZATION = 1e-6
_REFINEMENTS = 3
#: What counts at least, as a part of all, of what a multiplier does to its own equation.
_LEAST_SCALE = 1e-2


class Multipliers(NamedTuple):
    """The multipliers of all constraints, and how velocities change under them.

    Attributes
    ----------
    values : list of array
        The multipliers of each constraint.
    rates : array, shape (num_velocities,)
        The rates of all velocities.
    """

    values: list[Array]
    rates: Array


def find_multipliers(
    articulation: Articulation,
    rates: Array,
    accelerations: Sequence[Array],
    conditions: Sequence[Condition],
    pace: Array,
) -> Multipliers:
    """Return the multipliers with which all constraints are upheld.

    With the rates a of the velocities that the other forces cause, and with a pace α > 0 at which
    errors decay, it solves for all equations at once::

        J M⁻¹ Jᵀ λ = -(J a + J̇ v + 2 α φ̇ + α² φ),      v̇ = a + M⁻¹ Jᵀ λ

    With equations w = 0 between velocities, w takes the place of φ̇, and nothing that of φ.
    A column of J M⁻¹ Jᵀ is what a multiplier of 1 adds to the accelerations, by the
    articulated-body algorithm. Constraints on different trees know nothing of each other, and
    the elimination goes from constraint to constraint, so that chains of loops cost in proportion
    to their number.

    Redundant equations make the matrix singular: its diagonal is made larger by a part ε of what
    a multiplier of 1 does to its own equation, and refinements make the solution that of the
    equations without ε, with the least sum of squares of the multipliers in this measure.

    Parameters
    ----------
    articulation : Articulation
        The tree under the other forces.
    rates : array, shape (num_velocities,)
        The rates a.
    accelerations : sequence of array, shape (6,)
        Spatial accelerations of all bodies at these rates, the world first.
    conditions : sequence of Condition
        The equations of each constraint.
    pace : float or Symbol
        The pace α in 1/s, at which errors decay.

    Returns
    -------
    Multipliers
    """
    own = _own_rates(articulation, rates)
    responses = [_responses(articulation, condition) for condition in conditions]
    wanted = [
        scalars.array(
            [
                -(
                    _along(condition, k, accelerations, own)
                    + condition.biases[k]
                    + 2.0 * pace * condition.rates[k]
                    + _pull(condition, k, pace)
                )
                for k in range(len(condition.rates))
            ]
        )
        for condition in conditions
    ]
    blocks = _blocks(conditions, responses)
    values = _solve(blocks, wanted)
    return Multipliers(values, rates + _added(articulation, responses, values))


def constraint_forces(conditions: Sequence[Condition], values: Sequence[Array]) -> dict[int, Array]:
    """Return the spatial forces of constraints with given multipliers.

    Parameters
    ----------
    conditions : sequence of Condition
        The equations of each constraint.
    values : sequence of array
        The multipliers of each.

    Returns
    -------
    dict of int to array, shape (6,)
        Forces about Bo, expressed in the world, by the numbers of the bodies.
    """
    total: dict[int, Array] = {}
    for condition, multipliers in zip(conditions, values, strict=True):
        for forces, multiplier in zip(condition.forces, multipliers, strict=True):
            for number, F in forces.items():
                part = multiplier * F
                total[number] = total[number] + part if number in total else part
    return total


def _own_rates(articulation: Articulation, rates: Array) -> dict[int, Array]:
    """Return the rates of each joint by the number of its outboard body."""
    return {each.outboard: rates[each.v] for each in articulation.topology.mobilizers}


def _responses(articulation: Articulation, condition: Condition) -> list[Response]:
    """Return what a multiplier of 1 of each equation adds to the accelerations."""
    pairs = zip(condition.forces, condition.efforts, strict=True)
    return [articulation.response(forces, efforts) for forces, efforts in pairs]


def _along(
    condition: Condition,
    k: int,
    accelerations: Mapping[int, Array] | Sequence[Array],
    rates: Mapping[int, Array],
) -> Array:
    """Return J v̇ of one equation."""
    total = 0.0
    for number, F in condition.forces[k].items():
        if not isinstance(accelerations, Mapping) or number in accelerations:
            total = total + dot(F, accelerations[number])
    for number, effort in condition.efforts[k].items():
        if number in rates:
            total = total + dot(effort, rates[number])
    return total


def _pull(condition: Condition, k: int, pace: Array) -> Array:
    """Return α² φ of one equation; one between velocities has nowhere to go back to."""
    return pace * pace * condition.errors[k] if k < len(condition.errors) else 0.0


def _blocks(
    conditions: Sequence[Condition], responses: Sequence[Sequence[Response]]
) -> dict[tuple[int, int], Array]:
    """Return the blocks i >= j of J M⁻¹ Jᵀ that are not zero, and those with i = j."""
    touched = [
        {number for forces in each.forces for number in forces}
        | {number for efforts in each.efforts for number in efforts}
        for each in conditions
    ]
    moved = [
        {n for response in each for n in (*response.accelerations, *response.rates)}
        for each in responses
    ]
    blocks = {}
    for i, condition in enumerate(conditions):
        for j in range(i + 1):
            if i == j or touched[i] & moved[j]:
                blocks[i, j] = scalars.array(
                    [
                        [_along(condition, k, r.accelerations, r.rates) for r in responses[j]]
                        for k in range(len(condition.rates))
                    ]
                )
    return blocks


def _solve(blocks: dict[tuple[int, int], Array], wanted: Sequence[Array]) -> list[Array]:
    """Solve the equations, redundant ones included.

    Of A x = b with ε D on the diagonal of A, the rest b - A x after a solution dx is ε D dx, so
    that refinements need no product with A.
    """
    count = len(wanted)
    scales = [_scale(blocks[i, i]) for i in range(count)]
    scaled = {(i, j): scales[i] * scales[j] * block for (i, j), block in blocks.items()}
    added = [_REGULARIZATION * (np.diagonal(scaled[i, i]) + _LEAST_SCALE) for i in range(count)]
    factors = _BlockFactors(scaled, added)
    change = factors.solve([scale * b for scale, b in zip(scales, wanted, strict=True)])
    values = change
    for _ in range(_REFINEMENTS):
        change = factors.solve([e * dx for e, dx in zip(added, change, strict=True)])
        values = [x + dx for x, dx in zip(values, change, strict=True)]
    return [scale * x for scale, x in zip(scales, values, strict=True)]


def _scale(block: Array) -> Array:
    """Return the scale that makes the sum of the diagonal of a block 1.

    What is left of equations that are about nothing are constants then, which cost nothing.
    """
    total = np.sum(np.diagonal(block))
    return 1.0 / np.sqrt(np.where(total > 0.0, total, 1.0))  # zero where all is locked


class _BlockFactors:
    """Factors of a symmetric matrix of blocks, from one constraint to the next.

    Parameters
    ----------
    blocks : mapping of tuple of int to array
        The blocks i >= j that are not zero.
    diagonals : sequence of array
        What is added to the diagonal.
    """

    def __init__(self, blocks: Mapping[tuple[int, int], Array], diagonals: Sequence[Array]) -> None:
        rest, count = dict(blocks), len(diagonals)
        self._columns: list[tuple[Array, Array, dict[int, Array]]] = []
        for j in range(count):
            size = len(diagonals[j])
            L, d = ldl_factors(rest[j, j] + diagonals[j] * np.eye(size))
            below = {i: rest[i, j] for i in range(j + 1, count) if (i, j) in rest}
            solved = {i: ldl_solve(L, d, block.T).T for i, block in below.items()}
            for i, factor in solved.items():
                for k, block in below.items():
                    if k <= i:
                        product = factor @ block.T
                        rest[i, k] = rest[i, k] - product if (i, k) in rest else -product
            self._columns.append((L, d, solved))

    def solve(self, right: Sequence[Array]) -> list[Array]:
        """Return the solution for a right-hand side."""
        y = list(right)
        for j, (_, _, solved) in enumerate(self._columns):
            for i, block in solved.items():
                y[i] = y[i] - block @ y[j]
        x = list(y)
        for j in reversed(range(len(y))):
            L, d, solved = self._columns[j]
            x[j] = ldl_solve(L, d, y[j])
            for i, block in solved.items():
                x[j] = x[j] - block.T @ x[i]
        return x


def _added(
    articulation: Articulation, responses: Sequence[Sequence[Response]], values: Sequence[Array]
) -> Array:
    """Return what multipliers add to the rates of all velocities."""
    added: dict[int, Array] = {}
    for each, multipliers in zip(responses, values, strict=True):
        for response, multiplier in zip(each, multipliers, strict=True):
            for number, rates in response.rates.items():
                part = multiplier * rates
                added[number] = added[number] + part if number in added else part
    parts = [
        added.get(each.outboard, np.zeros(each.joint.num_velocities))
        for each in articulation.topology.mobilizers
    ]
    return np.concatenate([np.zeros(0), *parts])


__all__ = ["Multipliers", "constraint_forces", "find_multipliers"]
