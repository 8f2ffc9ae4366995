"""Whether the positions and velocities of a context are such as constraints allow."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.multibody.constraints.constraint import ConstrainedTree
from flexure.blocks.multibody.constraints.stabilization import Stabilization
from flexure.diagrams.errors import EvaluationError


def require_consistent(tree: ConstrainedTree, context: Any, allowed: Stabilization) -> None:
    """Refuse errors and rates of constraints that are larger than a motion may begin with.

    A rate may be that of an allowed error that decays at the present pace, or that comes within a
    radian or a meter of the fastest joint.

    Parameters
    ----------
    tree : ConstrainedTree
        The tree.
    context : Context
        Its context.
    allowed : Stabilization
        Its parameters.

    Raises
    ------
    EvaluationError
        When the errors of a constraint, or its rates, are larger, or not finite.
    """
    error = float(allowed.start_tolerance(context))
    fastest = np.max(np.abs(tree.moving_velocities(context)), initial=0.0)
    rate = error * max(1.0, float(allowed.pace(context)) + float(fastest))
    found = []
    for constraint, condition in zip(tree.constraints, tree.conditions(context), strict=True):
        count = len(condition.errors)
        for what, limit, values in (
            ("open by", error, condition.errors),
            ("with rates of its errors of", rate, condition.rates[:count]),
            ("off by a velocity of", rate, condition.rates[count:]),
        ):
            largest = float(np.max(np.abs(np.array(values, dtype=float)), initial=0.0))
            if not largest <= limit:
                found.append(f"'{constraint.name}' {what} {largest:.3g}")
    if found:
        label = tree.parent_plant.label
        raise EvaluationError(
            f"Cannot begin with these positions and velocities of '{label}'",
            expected=f"errors of constraints up to {error:.3g}, and rates of them up to {rate:.3g}",
            found=", ".join(found),
            remedy="Call assemble(context) of the plant, which finds positions and velocities that "
            f"fit; '{tree.name}.start_tolerance' is how large errors may be",
        )


__all__ = ["require_consistent"]
