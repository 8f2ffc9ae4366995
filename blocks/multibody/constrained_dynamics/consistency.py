"""Whether the positions and velocities of a context are such as constraints allow."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from flexure.blocks.multibody.constraints.constraint import ConstrainedTree
from flexure.blocks.multibody.constraints.stabilization import Stabilization
from flexure.diagrams.checks.errors import EvaluationError


def require_consistent(tree: ConstrainedTree, context: Any, allowed: Stabilization) -> None:
    """Refuse errors and rates of constraints that are larger than a motion may begin with."""
    for constraint in tree.constraints:
        constraint.check(context)
    error = float(allowed.start_tolerance(context))
    rate = float(allowed.rate(context, error, tree.moving_velocities(context)))
    found, label = unmet(tree, context, error, rate), tree.parent_plant.label
    for constraint in tree.constraints:
        problem = constraint.start_problem(context)
        if problem is not None:
            raise EvaluationError(
                f"Cannot begin with these positions of '{label}'",
                expected="positions within the limits of all stops",
                found=problem,
                remedy="Set positions within the limits, or other limits in the context",
            )
    if found:
        raise EvaluationError(
            f"Cannot begin with these positions and velocities of '{label}'",
            expected=f"errors of constraints up to {error:.3g}, and rates of them up to {rate:.3g}",
            found=found,
            remedy="Call assemble(context) of the plant, which finds positions and velocities that "
            "fit, or assemble_starts() of its builder, which does so at the start of each run; "
            f"'{tree.name}.start_tolerance' bounds the errors",
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
