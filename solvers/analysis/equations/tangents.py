"""Notes for linear models: directions in which states can move, blocks that pass no small changes.

States move in three directions for a quaternion, and in none for a locked joint.
Constraints leave those that change neither their errors nor the rates of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from flexure.blocks.math import quaternion_rate_from_w_A
from flexure.blocks.multibody import MultibodyTree
from flexure.blocks.multibody.constraints import UnilateralConstraint
from flexure.blocks.multibody.joints.orientation import QuaternionJoint
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.values.arrays import FloatArray

#: Least singular value of slopes of constraints that are independent, as a part of the largest.
_INDEPENDENT = 1e-7


def quaternions_and_locked(context: Context) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where quaternions begin among the states, and which states are of locked joints.

    Coordinates that stick count as locked.
    """
    quaternions: list[int] = []
    locked: list[int] = []
    for leaf in context.leaves():
        tree = leaf.system
        if not isinstance(tree, MultibodyTree):
            continue
        start = leaf.x_slice.start
        behind = start + tree.topology.num_positions
        moves = tree.constants.mobile(leaf)
        for mobilizer, is_free in zip(tree.topology.mobilizers, moves, strict=True):
            q, v, joint = mobilizer.q, mobilizer.v, mobilizer.joint
            if not is_free:
                locked += range(start + q.start, start + q.stop)
                locked += range(behind + v.start, behind + v.stop)
            elif isinstance(joint, QuaternionJoint):
                quaternions.append(start + q.start + joint.ORIENTATION.start)
        for each in tree.frictions:
            q, v = tree.positions_of(each.joint), tree.velocities_of(each.joint)
            for (k, _), held in zip(each.rows, each.held(leaf), strict=True):
                if held and each.joint.velocities_are_rates:
                    locked += [start + q.start + k, behind + v.start + k]
    return tuple(quaternions), tuple(sorted(set(locked)))


def require_holding(context: Context, attempt: str) -> None:
    """Refuse contacts that pull or let through, and friction that sticks with too great a force.

    Small motions from there are not those of the equations, whose modes change at once.
    """
    for leaf in context.leaves():
        for each in leaf.system.constraints if isinstance(leaf.system, MultibodyTree) else ():
            problem = each.hold_problem(leaf)
            if problem is not None:
                raise EvaluationError(
                    attempt,
                    expected="contacts that push, and sticking friction within its limit",
                    found=problem,
                    remedy="Use a context with modes of contact that fit, such as that of a "
                    "Simulator after initialize()",
                )


def open_stops(context: Context) -> list[str]:
    """Return the names of rigid stops on which nothing rests."""
    return [
        each.name
        for leaf in context.leaves()
        if isinstance(leaf.system, MultibodyTree)
        for each in leaf.system.constraints
        if isinstance(each, UnilateralConstraint) and not np.any(each.held(leaf))
    ]


def constraint_ports(context: Context) -> list[OutputPort]:
    """Return the outputs that stay zero in any motion: errors of constraints and their rates.

    Constraints that hold time or inputs are not among them: what they leave follows these.
    """
    return [
        leaf.system.output_port(f"{each.name}_{what}")
        for leaf in context.leaves()
        if isinstance(leaf.system, MultibodyTree)
        for each in leaf.system.constraints
        if not each.is_driven
        for what in ("error", "error_rate")
    ]


def tangent(
    x0: FloatArray,
    quaternions: Sequence[int],
    locked: Sequence[int],
    normals: FloatArray | None = None,
) -> FloatArray:
    """Return orthonormal columns T: states move by ``x = T z``.

    The three columns of a quaternion q are ``(0, e) ⊗ q / |q|`` for the axes e of the frame that it
    turns in. So with the length 1, its part of z is half of the angles about these axes. Where
    there are constraints, with their slopes in the rows of ``normals``, the columns are a basis of
    what these leave, in which no state has a column of its own.
    """
    columns = np.eye(len(x0))
    for k in quaternions:
        q = x0[k : k + 4]
        turns = [2.0 * quaternion_rate_from_w_A(q, axis) for axis in np.eye(3)]
        columns[k : k + 4, k + 1 : k + 4] = np.transpose(turns) / np.linalg.norm(q)
    free: FloatArray = np.delete(columns, [*quaternions, *locked], axis=1)
    if normals is None or not len(normals):
        return free
    _, sizes, directions = np.linalg.svd(normals @ free)
    rank = int(np.sum(sizes > _INDEPENDENT * np.max(sizes, initial=0.0)))
    return np.asarray(free @ directions[rank:].T)


#: How a note says that a block has the slope zero.
BLOCKS = "passes no small changes"


def gains(context: Context) -> Iterator[LeafContext]:
    """Return the blocks that pass as gains in linear models."""
    return (leaf for leaf in context.leaves() if leaf.system.linearize_as == "gain")


def linear_notes(leaves: Iterable[LeafContext], *, as_gain: bool = True) -> tuple[str, ...]:
    """Say which blocks pass no small changes, and which of them are linearized as gains."""
    remarks = ((leaf.system, leaf.system.linear_remark(leaf)) for leaf in leaves)
    return tuple(
        f"'{block.label}' is linearized as a gain, although {remark}"
        if as_gain and block.linearize_as == "gain"
        else f"'{block.label}' {BLOCKS}: {remark}"
        for block, remark in remarks
        if remark is not None
    )
