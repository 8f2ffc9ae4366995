"""Linear equations of coordinates that follow from others, or contradict them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.constraints.coordinate_constraints import CoordinateConstraint
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.errors import DeclarationError, quoted, warn
from flexure.diagrams.values.arrays import FloatArray

_DEPENDENT = 1e-9  # what is left of an equation that follows from others, as a part of it
_EQUAL = 1e-9


def check_dependent(constraints: Sequence[Constraint]) -> None:
    """Refuse couplings and prescribed motions that contradict others; warn of redundant couplings.

    Couplings that together leave no motion at all, and coordinates that follow two motions, are
    refused, too. Redundant constraints share their multipliers, as those between bodies do.
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
    redundant = {}
    if np.linalg.matrix_rank(A, rtol=_DEPENDENT) < len(A):
        redundant = _redundant(equations, A)
    coupled = [k for k, (_, row, _) in enumerate(equations) if len(row) > 1 and k not in redundant]
    _refuse_locked([equations[k][0] for k in coupled], A[coupled], list(coordinates))
    if redundant:
        warn(
            f"Couplings are redundant: {'; '.join(redundant.values())}. The motion is that of the"
            " others alone, and all of them share the load as evenly as the equations determine."
            " For shares that follow from stiffness, make one compliant with a CompliantCoupling"
        )


def _redundant(
    equations: Sequence[tuple[Constraint, Mapping[Any, float], float | None]], A: FloatArray
) -> dict[int, str]:
    """Return the equations that follow from those before, and refuse contradictions."""
    redundant = {}
    sizes = [max(map(abs, row.values())) for _, row, _ in equations]
    for number in range(1, len(A)):
        weights, *_ = np.linalg.lstsq(A[:number].T, A[number], rcond=None)
        if np.max(np.abs(weights @ A[:number] - A[number])) > _DEPENDENT:
            continue
        others = [k for k in range(number) if abs(weights[k]) > _DEPENDENT]
        names = quoted(dict.fromkeys(equations[k][0].name for k in others))
        constraint, _, value = equations[number]
        given = [equations[k][2] for k in others]
        if value is None or None in given:
            found = f"'{constraint.name}' and {names}, which prescribe one coordinate twice"
        else:
            sums = [weights[k] * equations[k][2] / sizes[k] for k in others]
            wanted = float(sum(sums)) * sizes[number]
            if abs(wanted - value) <= _EQUAL * max(1.0, abs(value)):
                redundant[number] = f"'{constraint.name}' follows from {names}"
                continue
            found = (
                f"'{constraint.name}' with an offset of {value:g}, which contradicts {names}: "
                f"with these it is {wanted:g}"
            )
        raise DeclarationError(
            f"Cannot add constraint '{constraint.name}'",
            expected="couplings and prescribed motions that agree",
            found=found,
            remedy="Remove one of them, or make one compliant with a CompliantCoupling",
        )
    return redundant


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
