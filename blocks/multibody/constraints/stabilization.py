"""Constraints of a whole mechanism: dependent ones, the decay of errors, how large these may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.multibody.constraints.constraint import ConstrainedTree, Constraint
from flexure.blocks.multibody.constraints.coordinate_constraints import CoordinateConstraint
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.checks.errors import DeclarationError, quoted, warn
from flexure.diagrams.values.arrays import Array, FloatArray
from flexure.diagrams.values.parameters import NumericParameter

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


GRAVITY = 9.81  # m/s², by which a length gives a time
#: What is added to the diagonal of the equations of constraints, relative to it, by default.
REGULARIZATION = 1e-6
_PACES = 5.0  # time constants of the decay in the time in which a pendulum turns by one radian
_ALLOWED = 1e-3  # error at the start, as a part of the length of the mechanism
_TOLERATED = 1e-6  # error of a motion, as a part of the same


class Stabilization(NamedTuple):
    """Values of a tree with constraints in contexts."""

    pace: NumericParameter  # the pace at which errors decay
    start_tolerance: NumericParameter  # largest error with which a motion may begin
    tolerance: NumericParameter  # largest error that a simulation leaves after a step
    # What is added to the diagonal of the equations, relative to it.
    regularization: NumericParameter

    def rate(self, context: Any, error: Any, v: Array) -> Array:
        """Return the rate that goes with an error, at the velocities of all joints.

        It is that of an error that decays at the present pace, or that comes within a radian or a
        meter of the fastest joint.
        """
        return error * np.maximum(1.0, self.pace(context) + np.max(np.abs(v), initial=0.0))


def declare_constraints(
    tree: ConstrainedTree, constraints: Sequence[Constraint]
) -> Stabilization | None:
    """Declare what constraints need in contexts, how errors decay, and how large they may begin.

    With the pace α an error follows φ̈ + 2 α φ̇ + α² φ = 0. By default it is five over the time
    √(L/g) of a pendulum with the length L of the mechanism, which is that of its longest link:
    errors decay faster than such a mechanism moves, and not so fast that equations become stiff. A
    motion may begin with errors of a thousandth of L, and simulations leave a millionth of it.
    Couplings and prescribed motions that contradict others are refused. None is returned without
    constraints.
    """
    if not constraints:
        return None
    for constraint in constraints:
        constraint.declare(tree)
    check_dependent(constraints)
    length = longest_link(tree.topology)
    declare = partial(tree.declare_numeric_parameter, lower=0.0)
    doc = "pace at which errors of constraints decay"
    pace = declare("stabilization", _PACES * np.sqrt(GRAVITY / length), unit="1/s", doc=doc)
    declare = partial(declare, exclusive=True)
    doc = "largest error of constraints with which a motion may begin"
    tolerance = declare("start_tolerance", _ALLOWED * length, doc=doc)
    doc = "largest error of constraints that simulations leave after a step; inf leaves all"
    largest = _TOLERATED * length
    tolerated = declare("constraint_tolerance", largest, allow_infinite=True, doc=doc)
    regularization = declare(
        "regularization",
        REGULARIZATION,
        doc="part that is added to the equations of constraints, so that redundant ones share "
        "forces; assemble(context) makes it smaller for loops that are held by short levers",
    )
    return Stabilization(pace, tolerance, tolerated, regularization)


def longest_link(topology: Topology) -> float:
    """Return the longest distance of joints and centers of mass from origins of bodies in m."""
    levers = [p for each in topology.mobilizers for p in (each.X_PF.p, each.X_MB.p)]
    inertias = [body.inertia for body in topology.bodies[1:]]
    levers += [each.com for each in inertias if each is not None]
    length = max((float(np.linalg.norm(p)) for p in levers), default=0.0)
    return length or 1.0
