"""Solutions of linear equations, which are differentiated by their equations.

A solution is recorded operation by operation, as everything else is, so that every reading computes
it. Its derivatives are not those of these operations. From A x = b follow

    dx = A⁻¹ (db - dA x)        and backward, with λ = A⁻ᵀ x̄,        b̄ = λ,    Ā = -λ xᵀ

for which the factors of A are used again: n² operations for each direction, where derivatives of
the elimination take n³.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.scalars.expressions.array import wrap
from flexure.diagrams.scalars.expressions.expression import Symbol, unary
from flexure.diagrams.scalars.expressions.functions import is_symbolic
from flexure.diagrams.scalars.expressions.ufuncs import Objects, objects

_FEW = 3  # unknowns, up to which derivatives of the operations are as short

#: Returns the solution from factors of A and b.
Solver = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Solution:
    """The equations of which some expressions are the solution."""

    # matrix, right, values: A, b and x, shapes (n, n), (n,) and (n,).
    matrix: Objects
    right: Objects
    values: Objects
    factors: tuple[Objects, ...]  # what solvers take before b
    # solver, transposed: solve equations with A and with Aᵀ.
    solver: Solver
    transposed: Solver

    @property
    def operands(self) -> list[Symbol]:
        """The expressions in A and b."""
        both = [*self.matrix.flat, *self.right.flat]
        return [each for each in both if isinstance(each, Symbol)]

    def terms(self) -> Iterator[list[tuple[Any, Any]]]:
        """Yield for each equation the entries of b and A with their factors 1 and -x."""
        factors = [1.0, *(unary("negative", x) for x in self.values)]
        for right, row in zip(self.right, self.matrix, strict=True):
            yield list(zip([right, *row], factors, strict=True))

    def applied(self, right: Sequence[Any], *, transposed: bool = False) -> Objects:
        """Return the solution for another right-hand side."""
        solver = self.transposed if transposed else self.solver
        return objects(solver(*map(wrap, self.factors), wrap(objects(right))))

    @property
    def noted(self) -> list[Symbol]:
        """The unknowns that the graph knows as such."""
        symbols = [each for each in self.values if isinstance(each, Symbol)]
        return [each for each in symbols if each.graph.solutions.get(each.index) is self]

    def note(self) -> None:
        """Let the graph know those of x that are younger than all of A and b."""
        youngest = max((each.index for each in self.operands), default=-1)
        for value in self.values:
            if isinstance(value, Symbol) and value.index > youngest >= 0:
                value.graph.solutions[value.index] = self

    def replaced(self, by: Mapping[int, Any]) -> None:
        """Note the same with other expressions, by index, if there are some for all."""
        parts = [self.matrix, self.right, self.values, *self.factors]
        symbols = [each for part in parts for each in part.flat if isinstance(each, Symbol)]
        if all(each.index in by for each in symbols):
            matrix, right, values, *factors = (_replaced(part, by) for part in parts)
            Solution(matrix, right, values, (*factors,), self.solver, self.transposed).note()


def _replaced(part: Objects, by: Mapping[int, Any]) -> Objects:
    """Return an array with other expressions."""
    found = np.empty(part.shape, dtype=object)
    for k, each in enumerate(part.flat):
        found.flat[k] = by[each.index] if isinstance(each, Symbol) else each
    return found


def solved(
    matrix: Any,
    right: Any,
    factors: tuple[Any, ...],
    solver: Solver,
    transposed: Solver | None = None,
) -> Any:
    """Return ``solver(*factors, right)`` with the derivatives of the solution of A x = b.

    Parameters
    ----------
    matrix : array, shape (n, n)
        A.
    right : array, shape (n,) or (n, m)
        b, or one in each column.
    factors : tuple of array
        What solvers take before b.
    solver, transposed : callable
        Solve equations with A and with Aᵀ; the second is omitted for a symmetric A.
    """
    found = solver(*factors, right)
    if len(matrix) > _FEW and is_symbolic(found):
        A, b, x = objects(matrix), objects(right), objects(found)
        own = tuple(map(objects, factors))
        for one, other in zip(b.reshape(len(A), -1).T, x.reshape(len(A), -1).T, strict=True):
            Solution(A, one, other, own, solver, transposed or solver).note()
    return found
