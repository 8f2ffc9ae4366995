"""How fast errors of constraints decay, and how large they may be: by the size of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.multibody.constraints.constraint import ConstrainedTree, Constraint
from flexure.blocks.multibody.constraints.constraint_equations import check_dependent
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter

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
    pace = tree.declare_numeric_parameter(
        "stabilization",
        _PACES * np.sqrt(GRAVITY / length),
        unit="1/s",
        lower=0.0,
        doc="pace at which errors of constraints decay",
    )
    tolerance = tree.declare_numeric_parameter(
        "start_tolerance",
        _ALLOWED * length,
        lower=0.0,
        exclusive=True,
        doc="largest error of constraints with which a motion may begin",
    )
    tolerated = tree.declare_numeric_parameter(
        "constraint_tolerance",
        _TOLERATED * length,
        lower=0.0,
        exclusive=True,
        allow_infinite=True,
        doc="largest error of constraints that simulations leave after a step; inf leaves all",
    )
    regularization = tree.declare_numeric_parameter(
        "regularization",
        REGULARIZATION,
        lower=0.0,
        exclusive=True,
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
