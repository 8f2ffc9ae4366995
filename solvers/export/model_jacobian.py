"""Jacobians of exported models: entry by entry where they are short, else one direction at a time.

Written entry by entry, a Jacobian takes the fewest operations, but many times those of the
equations: megabytes of text, and an engine of JavaScript takes a tenth of a millisecond to optimize
each of them. Slopes along one direction are a few times longer than the equations, however many
states there are. States that never meet in one equation share a direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.jacobians import directional, jacobian_length, reach
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, Key
from flexure.solvers.native.emission.emission import SEED, depth_first
from flexure.solvers.native.emission.sparse_factors import (
    Indices,
    SparseFactors,
    find_sparse_factors,
)
from flexure.solvers.native.emission.tangent_emission import (
    DirectionPlan,
    depending_on_seeds,
    operands_of,
    plan_directions,
)
from flexure.solvers.native.programs.lane_equations import LaneJacobian
from flexure.solvers.tracing.compile_limits import WRITTEN, refuse_beyond
from flexure.solvers.tracing.exact_jacobian import numbers_behind

#: Operations of all entries, beyond which slopes along directions are written. They are faster for
#: a chain of 43 states (62 000), from 300 Jacobians on, but hardly ever for 12 states (10 000).
_LONG = 20_000


@dataclass(frozen=True)
class ModelJacobian:
    """The derivatives of the derivatives by the states."""

    # rows, columns: where the entries are that are not always zero.
    rows: Indices
    columns: Indices
    # What linear equations with them need; None where dense factors are as fast.
    factors: SparseFactors | None
    entries: Sequence[Any] = ()  # expressions of the entries; none where there is a plan
    slopes: Sequence[Any] = ()  # with a plan, slopes of the derivatives along a direction, by seeds
    numbers: Sequence[Any] = ()  # what slopes need, whatever the direction is
    plan: DirectionPlan | None = None  # how entries come from slopes

    @classmethod
    def of(cls, derivatives: Sequence[Any]) -> ModelJacobian:
        """Differentiate all derivatives, or raise `TraceError` where that is too long."""
        keys: list[Key] = [((STATE, 0, 0), k) for k in range(len(derivatives))]
        if jacobian_length(derivatives, keys) > _LONG:
            return cls._along_directions(derivatives, keys)
        found = LaneJacobian.of(list(derivatives))
        return cls(found.rows, found.columns, found.factors, found.entries)

    @classmethod
    def _along_directions(cls, derivatives: Sequence[Any], keys: Sequence[Key]) -> ModelJacobian:
        """Differentiate along one direction at a time."""
        expressions = simplify(derivatives)
        reached = reach(expressions, keys)[1]
        refuse_beyond(WRITTEN, len(reached), "the Jacobian of derivatives")
        behind = [
            reached.get(each.index, 0) if isinstance(each, scalars.Symbol) else 0
            for each in expressions
        ]
        plan = plan_directions(behind, len(keys), 1)
        found = directional(expressions, keys, _seeds(len(keys)))
        slopes = simplify(each for each, bits in zip(found, behind, strict=True) if bits)
        nodes = reachable(slopes)
        operands = operands_of(nodes, depending_on_seeds(nodes))
        numbers = [each for each in operands if each.op != "input"]
        rows, columns = (np.array(each, np.int64) for each in (plan.rows, plan.columns))
        factors = find_sparse_factors(len(keys), rows, columns)
        return cls(rows, columns, factors, (), slopes, numbers, plan)

    @property
    def expressions(self) -> list[Any]:
        """All expressions."""
        return [*self.entries, *self.numbers, *self.slopes]

    def matrix(self, store: Store, time: float, x: FloatArray) -> FloatArray:
        """Return the dense matrix at a time and state, with the other values of a root context."""
        found = np.zeros((len(x), len(x)))
        if self.plan is None:
            numbers: dict[Any, Any] = {**numbers_behind(store, self.entries, time, x)}
            found[self.rows, self.columns] = scalars.evaluate(self.entries, numbers)
        else:
            inputs = [each for each in depth_first(self.slopes, {}) if each.op == "input"]
            seeds = dict(zip(_seeds(len(x)), np.eye(len(x)), strict=True))
            others = [each for each in inputs if each.key not in seeds]
            numbers = {**numbers_behind(store, others, time, x), **seeds}
            found[np.unique(self.rows)] = scalars.evaluate(self.slopes, numbers)
        return found


def _seeds(count: int) -> list[Key]:
    """Return the keys of the changes of states."""
    return [((SEED, 0, 0), k) for k in range(count)]
