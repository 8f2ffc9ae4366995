"""All configurations in which a mechanism can be put together, such as elbow up and elbow down."""

from __future__ import annotations

import numpy as np

from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics
from flexure.blocks.multibody.constraints.stabilization import longest_link
from flexure.blocks.multibody.loop_closure.closing import (
    Freedom,
    calc_equations,
    close,
    fit_velocities,
    move,
)
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray

_SAME = 1e-4  # difference of the poses of bodies that are one, beside the size
_STEP = 1e-2  # rad or m, to where others are looked for
_INDEPENDENT = 1e-7  # least singular value of independent equations, as a part of the largest


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
    rank = int(np.linalg.matrix_rank(J, rtol=_INDEPENDENT)) if J.size else 0
    if rank == J.shape[1]:
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
            found=f"free motions left: {J.shape[1] - rank}",
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
