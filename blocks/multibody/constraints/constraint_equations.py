"""Linear equations of coordinates that follow from others, or contradict them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.constraints.coordinate_constraints import CoordinateConstraint
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.values.arrays import FloatArray

_DEPENDENT = 1e-9  # what is left of an equation that follows from others, as a part of it
_EQUAL = 1e-9


def refuse_dependent(constraints: Sequence[Constraint]) -> None:
    """Refuse couplings and prescribed motions that follow from others, or contradict them.

    Couplings that together leave no motion at all are refused, too. Constraints between bodies may
    be redundant without harm, since reactions are shared. If two couplings are equal, one is a
    mistake, and a coordinate cannot follow two motions.

    Parameters
    ----------
    constraints : sequence of Constraint
        All constraints of a tree.

    Raises
    ------
    DeclarationError
        When there is one, with the names and numbers of both.
    """
    equations = [
        (constraint, row, value)
        for constraint in constraints
        if isinstance(constraint, CoordinateConstraint)
        for row, value in constraint.linear_rows
    ]
    coordinates = {
        key: k for k, key in enumerate(dict.fromkeys(key for _, row, _ in equations for key in row))
    }
    if len(equations) < 2:
        return
    A = np.zeros((len(equations), len(coordinates)))
    for number, (_, row, _) in enumerate(equations):
        for key, factor in row.items():
            A[number, coordinates[key]] = factor
    A /= np.max(np.abs(A), axis=1, keepdims=True, initial=0.0)
    if np.linalg.matrix_rank(A, rtol=_DEPENDENT) == len(A):
        coupled = [k for k, (_, row, _) in enumerate(equations) if len(row) > 1]
        _refuse_locked([equations[k][0] for k in coupled], A[coupled], list(coordinates))
        return
    sizes = [max(map(abs, row.values())) for _, row, _ in equations]
    for number in range(1, len(A)):
        weights, *_ = np.linalg.lstsq(A[:number].T, A[number], rcond=None)
        if np.max(np.abs(weights @ A[:number] - A[number])) > _DEPENDENT:
            continue
        others = [k for k in range(number) if abs(weights[k]) > _DEPENDENT]
        names = quoted(dict.fromkeys(equations[k][0].name for k in others))
        constraint, _, value = equations[number]
        found = f"'{constraint.name}', which follows from {names}"
        given = [equations[k][2] for k in others]
        if value is None or None in given:
            found = f"'{constraint.name}' and {names}, which prescribe one coordinate twice"
        else:
            sums = [weights[k] * equations[k][2] / sizes[k] for k in others]
            wanted = float(sum(sums)) * sizes[number]
            if abs(wanted - value) > _EQUAL * max(1.0, abs(value)):
                found = (
                    f"'{constraint.name}' with an offset of {value:g}, which contradicts {names}: "
                    f"with these it is {wanted:g}"
                )
        raise DeclarationError(
            f"Cannot add constraint '{constraint.name}'",
            expected="independent couplings and prescribed motions",
            found=found,
            remedy="Remove one of them, or make one compliant with a CompliantCoupling",
        )


def _refuse_locked(
    couplings: Sequence[Constraint], A: FloatArray, coordinates: Sequence[tuple[Joint, int]]
) -> None:
    """Refuse couplings that together leave no motion to a coordinate."""
    if len(A) < 2:
        return
    _, _, directions = np.linalg.svd(A)
    free = np.max(np.abs(directions[len(A) :]), axis=0, initial=0.0) > _DEPENDENT
    touched = np.any(A != 0.0, axis=0)
    stuck = np.flatnonzero(touched & ~free)
    if stuck.size:
        meant = [each.name for each, row in zip(couplings, A, strict=True) if np.any(row[stuck])]
        raise DeclarationError(
            f"Cannot add constraint '{meant[-1]}'",
            expected="couplings that together leave their joints free to move",
            found=f"ratios of {quoted(meant)} that allow no motion of "
            f"{quoted(dict.fromkeys(coordinates[k][0].name for k in map(int, stuck)))}",
            remedy="Check the ratios around this loop of gears, and their signs",
        )
