"""How accurate accelerations and reactions are under constraints that are held by short levers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, quoted, warn

if TYPE_CHECKING:
    from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics

_FITTED = 1e-12  # relative error of accelerations for which the regularization is chosen
_TRIALS = 3  # of random accelerations
_ACCURATE = 1e-9  # the same that needs no warning
_ROUNDING = 1e-20  # error by rounding, times the regularization that was chosen by these
_LEAST = 1e-12  # regularization below which rounding decides how redundant equations share forces


def fit_regularization(tree: TreeDynamics, context: Any) -> None:
    """Make the regularization of a context so small that accelerations are accurate, any of them.

    It stays as it is where that is so, as for most mechanisms.
    """
    if not tree.constraints:
        return
    try:
        equations = tree.upheld_equations(context)
    except EvaluationError:  # nothing accelerates, such as bodies without mass
        return
    rng = np.random.default_rng(0)
    given = found = float(tree.regularization(context))
    for _ in range(_TRIALS):
        own = {n: rng.normal(size=len(e)) for n, e in equations.articulation.own_rates.items()}
        wanted = [np.array([push.along(own) for push in rows]) for rows in equations.rows]
        while found > _LEAST and equations.inaccuracy(wanted, found)[0] > _FITTED:
            found = max(0.1 * found, _LEAST)
    if found < given:
        tree.find_parameter("regularization").set(context, found)


def warn_if_inaccurate(tree: TreeDynamics, context: Any) -> None:
    """Warn of accelerations and reactions in a context that are not accurate, and say what helps.

    It warns where they may err by more than 1e-9, relative to what constraints contribute.
    """
    solved = tree.multipliers(context)
    found = float(tree.regularization(context))
    left, shares = solved.equations.inaccuracy(solved.wanted, found)
    rounding = _ROUNDING / found
    if not left + rounding > _ACCURATE:
        return
    pairs = zip(tree.constraints, shares, strict=True)
    names = [each.name for each, share in pairs if share > 0.1 * max(shares)]
    remedy = (
        "Rounding allows no better in this position"
        if found < 2.0 * _LEAST
        else "Call assemble(context), which makes 'tree.regularization' as small as it has to be"
    )
    warn(
        f"Accelerations and reactions of '{tree.parent_plant.label}' may err by "
        f"{left + rounding:.1g} of the contribution of constraints: short levers, uneven masses "
        f"or a nearly singular position weaken {quoted(names)}. {remedy}"
    )
