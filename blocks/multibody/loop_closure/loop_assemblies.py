"""Mechanisms that are put together: before each motion, and in all configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics
from flexure.blocks.multibody.constraints.stabilization import longest_link
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.loop_closure.closing import (
    Freedom,
    calc_equations,
    close,
    close_anyhow,
    fit_velocities,
    move,
    rank,
)
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import Array, FloatArray

_SAME = 1e-4  # difference of the poses of bodies that are one, beside the size
_STEP = 1e-2  # rad or m, to where others are looked for
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


def find_assemblies(
    tree: TreeDynamics,
    context: Context,
    freedom: Freedom,
    tolerance: float,
    starts: int,
    rng: np.random.Generator,
) -> tuple[Context, ...]:
    """Close a mechanism from the present positions and random ones; return the nearest one first.

    Configurations are one where all bodies have the same poses. Angles are those next to the
    present ones, if that leaves all constraints met. The context is not changed. ``starts`` is the
    number of random positions, ``tolerance`` the largest error that is left. Where something is
    left to choose, so that there is no end of configurations, EvaluationError is raised.
    """
    x = tree.state.get(context)
    for constraint in tree.constraints:
        constraint.check(context)
    size = longest_link(tree.topology)
    reach = _reach(tree, size)
    here, found = _poses(tree, context, size), list[tuple[float, FloatArray, Context]]()
    for k in range(starts + 1):
        trial = context.clone()
        away = reach * rng.uniform(-1.0, 1.0, size=len(reach)) if k else np.zeros(len(reach))
        move(tree, trial, x, np.where(freedom.held, 0.0, away), freedom)
        if close(tree, trial, freedom, tolerance) is None:
            continue
        _refuse_choice(tree, trial, freedom, tolerance, size)
        poses = _poses(tree, trial, size)
        if any(np.max(np.abs(poses - other)) < _SAME for _, other, _ in found):
            continue
        _unwind(tree, trial, x, freedom, tolerance)
        fit_velocities(tree, trial, freedom.held, tolerance)
        found.append((float(np.linalg.norm(poses - here)), poses, trial))
    return tuple(each for _, _, each in sorted(found, key=lambda entry: entry[0]))


def _reach(tree: TreeDynamics, size: float) -> FloatArray:
    """Return how far random positions are from the present ones along each velocity."""
    reach: FloatArray = np.zeros(tree.topology.num_velocities)
    for each in tree.topology.mobilizers:
        turns = [name.startswith("w") for name in each.joint.VELOCITY_SUFFIXES]
        reach[each.v] = np.where(turns, np.pi, 2.0 * size)
    return reach


def _poses(tree: TreeDynamics, context: Context, size: float) -> FloatArray:
    """Return the orientations and, over the size, the positions of all bodies."""
    placements = tree.placements.eval(context)
    return np.concatenate([np.append(np.ravel(p.R_WB), p.p_WB / size) for p in placements])


def _refuse_choice(
    tree: TreeDynamics, trial: Context, freedom: Freedom, tolerance: float, size: float
) -> None:
    """Refuse configurations next to which there are others."""
    equations = calc_equations(tree, trial)
    J = equations.J[np.ix_(equations.of_positions, ~freedom.held)]
    free = J.shape[1] - rank(J)
    if not free:
        return
    step = np.zeros(len(freedom.held))
    step[~freedom.held] = _STEP * np.linalg.svd(J)[2][-1]
    beside = trial.clone()
    move(tree, beside, tree.state.get(trial), step)
    unlimited = Freedom(tree, freedom.held, limited=False)
    if close(tree, beside, unlimited, tolerance) is None:
        return
    if np.max(np.abs(_poses(tree, beside, size) - _poses(tree, trial, size))) > 0.1 * _STEP:
        raise EvaluationError(
            f"Cannot find all configurations of '{tree.parent_plant.label}'",
            expected="enough held joints to determine all positions",
            found=f"free motions left: {free}",
            remedy="Name more joints in fixed=, or lock them",
        )


def _unwind(
    tree: TreeDynamics, trial: Context, x: FloatArray, freedom: Freedom, tolerance: float
) -> None:
    """Turn angles by whole turns to those next to some states, where that changes nothing."""
    there = tree.state.get(trial)
    turned = there.copy()
    for each in tree.topology.mobilizers:
        if each.joint.velocities_are_rates:
            turns = [name.startswith("q") for name in each.joint.POSITION_SUFFIXES]
            whole = 2.0 * np.pi * np.rint((x[each.q] - there[each.q]) / (2.0 * np.pi))
            turned[each.q] += np.where(turns, whole, 0.0)
    nq = tree.topology.num_positions
    tree.state.set(trial, turned)
    errors = calc_equations(tree, trial).errors
    is_within = np.array_equal(freedom.within(turned[:nq]), turned[:nq])
    if not is_within or np.max(np.abs(errors), initial=0.0) > 10.0 * tolerance:
        tree.state.set(trial, there)
