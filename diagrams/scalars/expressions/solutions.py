"""Solutions of linear equations, which are differentiated by their equations.

A solution is recorded operation by operation, as everything else is, so that every reading computes
it. Its derivatives are not those of these operations. From A x = b follow

    dx = A⁻¹ (db - dA x)        and backward, with λ = A⁻ᵀ x̄,        b̄ = λ,    Ā = -λ xᵀ

for which the factors of A are used again: n² operations for each direction, where derivatives of
the elimination take n³. Equations that fall apart are several solutions, so that unknowns depend on
what is in their own equations alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.scalars.expressions.array import wrap
from flexure.diagrams.scalars.expressions.expression import Symbol, unary
from flexure.diagrams.scalars.expressions.functions import is_symbolic
from flexure.diagrams.scalars.expressions.ufuncs import Objects, objects

_FEW = 3  # unknowns, up to which derivatives of the operations are as short

IntArray: TypeAlias = npt.NDArray[np.intp]

#: Returns the solution from factors of A and b.
Solver = Callable[..., Any]


def is_zero(weight: Any) -> bool:
    """Return whether a weight is known to be zero."""
    value = weight.leaf if isinstance(weight, Symbol) and weight.op == "constant" else weight
    return isinstance(value, float) and value == 0.0


@dataclass(frozen=True, eq=False)
class Solution:
    """The equations of which some expressions are the solution."""

    matrix: Objects  # A, shape (n, n)
    right: Objects  # b, shape (n,)
    values: Objects  # x, shape (n,)
    # rows, columns: which equations and unknowns these are of those that solvers solve.
    rows: IntArray
    columns: IntArray
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
        solver, places, found = self.solver, self.rows, self.columns
        if transposed:
            solver, places, found = self.transposed, found, places
        whole = np.full(len(self.factors[0]), 0.0, dtype=object)
        whole[places] = objects(right)
        return objects(solver(*map(wrap, self.factors), wrap(whole)))[found]

    @property
    def noted(self) -> list[Symbol]:
        """The unknowns that the graph knows as such."""
        symbols = [each for each in self.values if isinstance(each, Symbol)]
        return [each for each in symbols if each.graph.solutions.get(each.index) is self]

    def note(self) -> None:
        """Let the graph know those of x that are younger than all of A and b, part by part."""
        for rows, columns in _parts(self.matrix):
            if _FEW < len(rows) == len(columns):
                replace(
                    self,
                    matrix=self.matrix[np.ix_(rows, columns)],
                    right=self.right[rows],
                    values=self.values[columns],
                    rows=self.rows[rows],
                    columns=self.columns[columns],
                )._note()

    def _note(self) -> None:
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
            replace(self, matrix=matrix, right=right, values=values, factors=(*factors,)).note()


def _replaced(part: Objects, by: Mapping[int, Any]) -> Objects:
    """Return an array with other expressions."""
    found = np.empty(part.shape, dtype=object)
    for k, each in enumerate(part.flat):
        found.flat[k] = by[each.index] if isinstance(each, Symbol) else each
    return found


def _parts(A: Objects) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the rows and columns of the parts that a matrix falls apart into."""
    filled = np.array([not is_zero(each) for each in A.flat]).reshape(A.shape)
    together = filled @ filled.T
    for _ in range(len(A).bit_length()):
        together = together @ together
    for rows in np.unique(together, axis=0):
        yield np.flatnonzero(rows), np.flatnonzero(filled[rows].any(axis=0))


def solved(
    matrix: Any,
    right: Any,
    factors: tuple[Any, ...],
    solver: Solver,
    transposed: Solver | None = None,
) -> Any:
    """Return ``solver(*factors, right)`` with the derivatives of the solution of A x = b.

    ``factors`` are what solvers take before b, which may have several columns. ``transposed``
    solves equations with Aᵀ; it is omitted for a symmetric A.
    """
    found = solver(*factors, right)
    if len(matrix) > _FEW and is_symbolic(found):
        A, b, x = objects(matrix), objects(right), objects(found)
        own = tuple(map(objects, factors))
        for one, other in zip(b.reshape(len(A), -1).T, x.reshape(len(A), -1).T, strict=True):
            every = np.arange(len(A))
            Solution(A, one, other, every, every, own, solver, transposed or solver).note()
    return found
