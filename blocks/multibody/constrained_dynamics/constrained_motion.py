"""The multipliers that uphold constraints, and the accelerations under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate, islice
from operator import add
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.math import dot
from flexure.blocks.multibody.constraints.constraint import Condition
from flexure.blocks.multibody.constraints.stabilization import REGULARIZATION
from flexure.blocks.multibody.trees.articulated_body import Articulation, Push
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array

_REFINEMENTS = 2
_ROUNDING = 1e-14
#: What counts at least, as a part of all, of what a multiplier does to its own equation.
_LEAST_SCALE = 1e-2


class Multipliers(NamedTuple):
    """The multipliers of all constraints, and how velocities change under them."""

    values: list[Array]  # the multipliers of each constraint
    # What a multiplier of 1 adds to the second derivative of its own equation.
    compliances: list[Array]
    rates: Array  # the rates of all velocities, shape (num_velocities,)
    equations: UpheldEquations | None = None  # what was solved; None without constraints
    wanted: Sequence[Array] = ()  # its right-hand side, for each constraint
    # The slip forces of friction that follows the loads, by numbers of constraints.
    frictions: Mapping[int, Array] | None = None


class UpheldEquations:
    """The equations of constraints in a tree, and what their multipliers do to its velocities.

    Forces on the tree and the values of the conditions do not matter. The regularization is added
    to the diagonal of the equations, relative to it, so that redundant ones, too, have a solution;
    refinements remove its influence.
    """

    def __init__(
        self,
        articulation: Articulation,
        conditions: Sequence[Condition],
        regularization: Array = REGULARIZATION,
    ) -> None:
        self.articulation = articulation  # the tree
        self._regularization = regularization
        self._held = [each.held for each in conditions]
        # The rows of J for each constraint, as pushes by a multiplier of 1.
        self.rows = [
            [articulation.push(*row) for row in zip(each.forces, each.efforts, strict=True)]
            for each in conditions
        ]
        self._columns = _columns(self.rows)
        diagonal = [column[j] for j, column in enumerate(self._columns)]
        self._compliances = self._by_constraint(diagonal)
        self._factored: Any = None  # what holds, and what solves then, of the last call

    def multipliers(
        self, wanted: Sequence[Array], held: Sequence[Sequence[Array] | None] | None = None
    ) -> list[Array]:
        """Return the multipliers of each constraint that change J v̇, or J v, as it is wanted.

        Which equations hold is what the conditions say when it is not given.
        """
        held = self._held if held is None else held
        if self._factored is None or self._factored[0] is not held:
            self._factored = held, self._factors(held, self._regularization)
        changes = self._factored[1](wanted)
        return self._by_constraint([reduce(add, each) for each in zip(*changes, strict=True)])

    def _factors(
        self, held: Sequence[Sequence[Array] | None], regularization: Array
    ) -> Callable[[Sequence[Array]], list[list[Array]]]:
        """Return what solves for multipliers, without any refinement, and by each what it adds."""
        added = [e for each in self._compliances for e in _added(each, regularization)]
        holds = [
            hold
            for rows, each in zip(self.rows, held, strict=True)
            for hold in ([1.0] * len(rows) if each is None else each)
        ]
        return _solver(self._columns, added, holds)

    def inaccuracy(
        self, wanted: Sequence[Array], regularization: float
    ) -> tuple[float, list[float]]:
        """Estimate what the refinements leave, from how fast they become smaller.

        ``wanted`` has for each constraint what the multipliers are to change. Returns the error of
        the changes of the velocities, relative to the largest of them, and how much of it comes
        from each constraint.
        """
        found = self._factors(self._held, regularization)(wanted)
        changes = [self._by_constraint(each) for each in found]
        first, second, third = (_largest(self.added(each)) for each in changes)
        last = zip(changes[-1], self._compliances, strict=True)
        shares = [_largest(values * compliances) for values, compliances in last]
        if third <= _ROUNDING * first:
            return 0.0, shares
        return third / first * (third / (second - third) if third < 0.5 * second else 1.0), shares

    def response(
        self, push: Push, held: Sequence[Sequence[Array] | None] | None = None
    ) -> tuple[dict[int, Array], list[Array]]:
        """Return the rates of pushes under a push that the equations resist, and the multipliers.

        The rates are by numbers of outboard bodies, as those of `pushed`.
        """
        wanted = [-scalars.array([row.along(push.rates) for row in rows]) for rows in self.rows]
        values = self.multipliers(wanted, held)
        return self.pushed(push.rates, values), values

    def compliances(self) -> list[Array]:
        """Return what a multiplier of 1 adds to its own equation, for each constraint."""
        return self._compliances

    def _by_constraint(self, values: Sequence[Array]) -> list[Array]:
        """Return values of all equations in an array for each constraint."""
        following = iter(values)
        return [scalars.array(list(islice(following, len(rows)))) for rows in self.rows]

    def added(self, multipliers: Sequence[Array]) -> Array:
        """Return what multipliers add to the rates of all velocities, or to the velocities."""
        return self.articulation.rates(self.pushed({}, multipliers))

    def pushed(self, own: Mapping[int, Array], multipliers: Sequence[Array]) -> dict[int, Array]:
        """Return rates of pushes, by numbers of outboard bodies, and those of the multipliers."""
        total = dict(own)
        rows = [row for some in self.rows for row in some]
        values = [value for each in multipliers for value in each]
        # In the order in which they are found, so that nothing waits.
        for row, value in zip(reversed(rows), reversed(values), strict=True):
            for number, rates in row.rates.items():
                part = value * rates
                total[number] = total[number] + part if number in total else part
        return total


def find_multipliers(
    equations: UpheldEquations, conditions: Sequence[Condition], pace: Array
) -> Multipliers:
    """Return the multipliers with which all constraints are upheld.

    With the rates a of the velocities that the other forces cause, and with a pace α > 0 at which
    errors decay, it solves for all equations at once::

        J M⁻¹ Jᵀ λ = -(J a + J̇ v + 2 α φ̇ + α² φ),      v̇ = a + M⁻¹ Jᵀ λ

    With equations w = 0 between velocities, w takes the place of φ̇, and nothing that of φ.
    A multiplier of 1 pushes the joints between its bodies and the world, by the articulated-body
    algorithm, and the entries of J M⁻¹ Jᵀ and of J a are products of two pushes. Constraints on
    different trees know nothing of each other, and the elimination goes from equation to equation,
    so that chains of loops cost in proportion to their number.

    Redundant equations make the matrix singular: its diagonal is made larger by a part ε of what
    a multiplier of 1 does to its own equation, and refinements make the solution that of the
    equations without ε, with the least sum of squares of the multipliers in this measure. An
    equation that keeps a part μ of that beside all others errs by (ε/(ε + μ))³ after two
    refinements: with ε = 1e-6 by 1e-15 for a tenth and 1e-12 for a hundredth, but by 3 % for
    2e-6, as two ball joints of a gate have when they are 2 mm apart. Such mechanisms need a smaller
    ε, see `fit_regularization`. Others are better off with 1e-6: it takes them through change
    points, where a part μ goes through zero and errors of the state would be divided by it. An
    equation that does not hold gets a row and a column of the identity, and zero on the right.
    """
    articulation = equations.articulation
    own, steady = articulation.own_rates, articulation.steady_accelerations()
    wanted = [
        scalars.array(
            [
                -(
                    push.along(own)
                    + sum(dot(F, steady[number]) for number, F in condition.forces[k].items())
                    + condition.biases[k]
                    + 2.0 * pace * condition.rates[k]
                    + _pull(condition, k, pace)
                )
                for k, push in enumerate(rows)
            ]
        )
        for condition, rows in zip(conditions, equations.rows, strict=True)
    ]
    values = equations.multipliers(wanted)
    rates = articulation.rates(equations.pushed(own, values))
    return Multipliers(values, equations.compliances(), rates, equations, wanted)


def _pull(condition: Condition, k: int, pace: Array) -> Array:
    """Return α² φ of one equation; one between velocities has nowhere to go back to."""
    return pace * pace * condition.errors[k] if k < len(condition.errors) else 0.0


def _columns(rows: Sequence[Sequence[Push]]) -> list[dict[int, Array]]:
    """Return the columns of J M⁻¹ Jᵀ from the diagonal downwards, without what is always zero."""
    reached = [{number for row in some for number in row.efforts} for some in rows]
    first = [0, *accumulate(map(len, rows))]
    columns: list[dict[int, Array]] = [{} for some in rows for _ in some]
    for j, some in enumerate(rows):
        for i, others in enumerate(rows[j:], start=j):
            if i == j or reached[i] & reached[j]:
                for b, row in enumerate(some, start=first[j]):
                    for a, other in enumerate(others, start=first[i]):
                        if a >= b:
                            columns[b][a] = other.along(row.rates)
    return columns


def _added(compliances: Array, regularization: Array) -> Array:
    """Return what is added to the diagonal for the equations of a constraint."""
    # It is a part of what multipliers do to their own equations, and of what all of them do. For an
    # equation that is about nothing it is a constant, so that such ones cost nothing.
    scales = compliances + _LEAST_SCALE * np.sum(compliances)
    return regularization * np.where(compliances > 0.0, scales, 1.0)


def _solver(
    columns: Sequence[Mapping[int, Array]], added: Sequence[Array], holds: Sequence[Array]
) -> Callable[[Sequence[Array]], list[list[Array]]]:
    """Return what solves equations that hold, redundant ones included; other multipliers are 0."""
    # The solution is the sum of what is returned: without any refinement, and by each. Of A x = b
    # with ε D on the diagonal of A, the rest b - A x after a solution dx is ε D dx, so that
    # refinements need no product with A.
    regular = [
        {i: holds[i] * holds[j] * a for i, a in column.items()} for j, column in enumerate(columns)
    ]
    for j, hold in enumerate(holds):
        regular[j][j] = regular[j][j] + (1.0 - hold) + added[j]
    factors = _Factors(regular)

    def solve(wanted: Sequence[Array]) -> list[list[Array]]:
        right = (w for each in wanted for w in each)
        changes = [factors.solve([h * w for h, w in zip(holds, right, strict=True)])]
        for _ in range(_REFINEMENTS):
            rest = [e * dx for e, dx in zip(added, changes[-1], strict=True)]
            changes.append(factors.solve(rest))
        return changes

    return solve


def _largest(values: Array) -> float:
    """Return the largest magnitude."""
    return float(np.max(np.abs(values), initial=0.0))


class _Factors:
    """Factors L D Lᵀ of a symmetric positive definite matrix, of which much may be zero.

    Its columns are given from the diagonal downwards, without what is always zero.
    """

    def __init__(self, columns: Sequence[Mapping[int, Array]]) -> None:
        rest = [dict(column) for column in columns]
        self._columns: list[tuple[Array, dict[int, Array]]] = []
        for j, below in enumerate(rest):
            inverse = 1.0 / below.pop(j)
            factors = {i: value * inverse for i, value in below.items()}
            for k, value in below.items():
                for i, factor in factors.items():
                    if i >= k:
                        product = factor * value
                        rest[k][i] = rest[k][i] - product if i in rest[k] else -product
            self._columns.append((inverse, dict(sorted(factors.items(), reverse=True))))

    def solve(self, right: Sequence[Array]) -> list[Array]:
        """Return the solution for a right-hand side."""
        x = list(right)
        for j, (_, factors) in enumerate(self._columns):
            for i, factor in factors.items():
                x[i] = x[i] - factor * x[j]
        for j, (inverse, factors) in reversed(list(enumerate(self._columns))):
            x[j] = x[j] * inverse
            for i, factor in factors.items():  # what is known last comes last, so nothing waits
                x[j] = x[j] - factor * x[i]
        return x
