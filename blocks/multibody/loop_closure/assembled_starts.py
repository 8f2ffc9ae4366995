"""Mechanisms that are put together before each motion, also where there is no Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.loop_closure.closing import (
    Freedom,
    calc_equations,
    close_anyhow,
    fit_velocities,
)
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array, FloatArray

_TOLERANCE = 1e-10


@dataclass(frozen=True)
class AssembledStarts:
    """The assembly of a tree before a motion begins."""

    joints: tuple[Joint, ...]  # the joints that keep their positions and velocities

    def held(self, tree: TreeDynamics, context: Any) -> npt.NDArray[np.bool_]:
        """Return which velocities are held, those of locked joints among them."""
        held: npt.NDArray[np.bool_] = tree.constants.mobile_velocities(context) == 0.0
        for joint in self.joints:
            held[tree.velocities_of(joint)] = True
        return held

    def __call__(self, tree: TreeDynamics, context: Any) -> None:
        """Change positions and velocities of a context until they fit, or leave it as it is.

        Raises EvaluationError with the name of a constraint that stays open.
        """
        for constraint in tree.constraints:
            constraint.check(context)
        before, held = tree.state.get(context), self.held(tree, context)
        found = calc_equations(tree, context)
        errors = np.concatenate([found.errors, found.rates])
        if np.max(np.abs(errors), initial=0.0) <= _TOLERANCE:
            return
        try:
            close_anyhow(tree, context, context, Freedom(tree, held), _TOLERANCE)
            fit_velocities(tree, context, held, _TOLERANCE)
        except BaseException:
            tree.state.set(context, before)
            raise


class ClosingEquations(NamedTuple):
    """All that `assemble` asks of a tree, for n positions and m velocities."""

    # errors, rates: errors of the equations between positions, and rates of all equations.
    errors: Array
    rates: Array
    J: Array  # derivatives of the rates by the velocities, shape (len(rates), m)
    of_positions: list[bool]  # which rows of these belong to equations between positions
    moves: Array  # rates of the positions for each velocity, shape (n, m)
    free: Array  # zero for velocities that are held, shape (m,)
    # Of positions, where the velocities that belong to them are free, shape (2, n).
    limits: FloatArray
    places: npt.NDArray[np.intp]  # which position belongs to a velocity, shape (m,)
    normal: list[list[int]]  # positions that are divided by their norm
    is_told: bool  # whether starts are put together in Python, too


def closing_equations(tree: TreeDynamics, context: Any) -> ClosingEquations:
    """Return the equations of a tree with constraints, in a context that may hold symbols."""
    topology, told = tree.topology, tree.start_assembly
    equations = calc_equations(tree, context)
    mobile = tree.constants.mobile_velocities(context)
    held = np.zeros(topology.num_velocities, dtype=bool)
    for joint in told.joints if isinstance(told, AssembledStarts) else ():
        held[tree.velocities_of(joint)] = True
    q = tree.q(context)
    moves: list[list[Any]] = [[0.0] * len(held) for _ in range(topology.num_positions)]
    normal = []
    for mobilizer in topology.mobilizers:
        joint, part = mobilizer.joint, mobilizer.q
        for k, v in enumerate(range(mobilizer.v.start, mobilizer.v.stop)):
            along = np.zeros(joint.num_velocities)
            along[k] = 1.0
            rates = joint.calc_position_rates(q[part], along)
            for i in range(joint.num_positions):
                moves[part.start + i][v] = rates[i]
        doubled = np.full(joint.num_positions, 2.0)
        divided = np.flatnonzero(joint.normalized_positions(doubled) != doubled)
        normal += [(part.start + divided).tolist()] if len(divided) else []
    freedom = Freedom(tree, held)
    return ClosingEquations(
        equations.errors,
        equations.rates,
        equations.J,
        [bool(each) for each in equations.of_positions],
        scalars.array(moves),
        scalars.array([0.0 if fixed else mobile[k] for k, fixed in enumerate(held)]),
        freedom.limits,
        freedom.places,
        normal,
        told is not None,
    )
