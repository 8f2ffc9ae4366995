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
    compliances : list of array
        What a multiplier of 1 adds to the second derivative of its own equation.
    rates : array, shape (num_velocities,)
        The rates of all velocities.
    """

    values: list[Array]
    compliances: list[Array]
    rates: Array


class UpheldEquations:
    """The equations of constraints in a tree, and what their multipliers do to its velocities.

    Parameters
    ----------
    articulation : Articulation
        The tree; the forces on it do not matter.
    conditions : sequence of Condition
        The equations of each constraint, of which the values do not matter.

    Attributes
    ----------
    rows : list of list of _Equation
        The rows of J for each constraint.
    """

    def __init__(self, articulation: Articulation, conditions: Sequence[Condition]) -> None:
        self._articulation = articulation
        self._held = [each.held for each in conditions]
        self.rows = [
            [
                _Equation(articulation.local(forces), efforts)
                for forces, efforts in zip(condition.forces, condition.efforts, strict=True)
            ]
            for condition in conditions
        ]
        self._responses = [[articulation.response(*each) for each in some] for some in self.rows]
        self._blocks = _blocks(self.rows, self._responses)

    def multipliers(
        self,
        wanted: Sequence[Array],
        held: Sequence[Sequence[Array] | None] | None = None,
    ) -> list[Array]:
        """Return the multipliers of each constraint that change J v̇, or J v, as it is wanted.

        Which equations hold is what the conditions say when it is not given.
        """
        return _solve(self._blocks, wanted, self._held if held is None else held)

    def compliances(self) -> list[Array]:
        """Return what a multiplier of 1 adds to its own equation, for each constraint."""
        return [np.diagonal(self._blocks[i, i]) for i in range(len(self._held))]

    def added(self, multipliers: Sequence[Array]) -> Array:
        """Return what multipliers add to the rates of all velocities, or to the velocities."""
        return _added(self._articulation, self._responses, multipliers)


def find_multipliers(
    articulation: Articulation, conditions: Sequence[Condition], pace: Array
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
    equations without ε, with the least sum of squares of the multipliers in this measure. An
    equation that does not hold gets a row and a column of the identity, and zero on the right-hand
    side.

    Parameters
    ----------
    articulation : Articulation
        The tree under the other forces.
    conditions : sequence of Condition
        The equations of each constraint.
    pace : float or Symbol
        The pace α in 1/s, at which errors decay.

    Returns
    -------
    Multipliers
    """
    equations = UpheldEquations(articulation, conditions)
    free = articulation.free_motion()
    wanted = [
        scalars.array(
            [
                -(
                    each.along(free)
                    + condition.biases[k]
                    + 2.0 * pace * condition.rates[k]
                    + _pull(condition, k, pace)
                )
                for k, each in enumerate(some)
            ]
        )
        for condition, some in zip(conditions, equations.rows, strict=True)
    ]
    values = equations.multipliers(wanted)
    rates = np.concatenate([np.zeros(0), *free.rates.values()])
    return Multipliers(values, equations.compliances(), rates + equations.added(values))


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


class _Equation(NamedTuple):
    """A row of J, as forces on bodies, expressed in them, and efforts along velocities."""

    forces: Mapping[int, Array]
    efforts: Mapping[int, Array]

    def along(self, motion: Response) -> Array:
        """Return J v̇."""
        total = 0.0
        for number, F in self.forces.items():
            if number in motion.accelerations:
                total = total + dot(F, motion.accelerations[number])
        for number, effort in self.efforts.items():
            if number in motion.rates:
                total = total + dot(effort, motion.rates[number])
        return total


def _pull(condition: Condition, k: int, pace: Array) -> Array:
    """Return α² φ of one equation; one between velocities has nowhere to go back to."""
    return pace * pace * condition.errors[k] if k < len(condition.errors) else 0.0


def _blocks(
    equations: Sequence[Sequence[_Equation]], responses: Sequence[Sequence[Response]]
) -> dict[tuple[int, int], Array]:
    """Return the blocks i >= j of J M⁻¹ Jᵀ that are not zero, and those with i = j."""
    touched = [{n for each in some for n in (*each.forces, *each.efforts)} for some in equations]
    moved = [
        {n for response in each for n in (*response.accelerations, *response.rates)}
        for each in responses
    ]
    return {
        (i, j): scalars.array(
            [[each.along(response) for response in responses[j]] for each in equations[i]]
        )
        for i in range(len(equations))
        for j in range(i + 1)
        if i == j or touched[i] & moved[j]
    }


def _solve(
    blocks: Mapping[tuple[int, int], Array],
    wanted: Sequence[Array],
    held: Sequence[Sequence[Array] | None],
) -> list[Array]:
    """Solve the equations that hold, redundant ones included; the other multipliers are zero.

    Of A x = b with ε D on the diagonal of A, the rest b - A x after a solution dx is ε D dx, so
    that refinements need no product with A.
    """
    added = [_REGULARIZATION * _felt(blocks[i, i]) for i in range(len(wanted))]
    blocks, wanted = dict(blocks), list(wanted)
    for i, each in enumerate(held):
        if each is not None:
            hold = scalars.array(each)
            wanted[i] = hold * wanted[i]
            for a, b in blocks:
                if a == i:
                    blocks[a, b] = hold[:, np.newaxis] * blocks[a, b]
                if b == i:
                    blocks[a, b] = blocks[a, b] * hold
            blocks[i, i] = blocks[i, i] + np.diag(1.0 - hold)
    factors = _BlockFactors(blocks, added)
    values = change = factors.solve(wanted)
    for _ in range(_REFINEMENTS):
        change = factors.solve([e * dx for e, dx in zip(added, change, strict=True)])
        values = [x + dx for x, dx in zip(values, change, strict=True)]
    return values


def _felt(block: Array) -> Array:
    """Return what multipliers do to their own equations, at least a part of what all of them do.

    For an equation that is about nothing it is a constant, so that such ones cost nothing.
    """
    diagonal = np.diagonal(block)
    return np.where(diagonal > 0.0, diagonal + _LEAST_SCALE * np.sum(diagonal), 1.0)


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


__all__ = ["Multipliers", "UpheldEquations", "constraint_forces", "find_multipliers"]
