"""In which directions states can move: quaternions turn in three, and locked joints in none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexure.blocks.math import quaternion_rate_from_w_A
from flexure.blocks.multibody import MultibodyTree
from flexure.blocks.multibody.joints.orientation import QuaternionJoint
from flexure.diagrams.context import Context
from flexure.diagrams.values import FloatArray


def quaternions_and_locked(context: Context) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where quaternions begin among the states, and which states are of locked joints."""
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
    return tuple(quaternions), tuple(sorted(locked))


def tangent(x0: FloatArray, quaternions: Sequence[int], locked: Sequence[int]) -> FloatArray:
    """Return orthonormal columns T: states move by ``x = T z``.

    The three columns of a quaternion q are ``(0, e) ⊗ q / |q|`` for the axes e of the frame that it
    turns in. So with the length 1, its part of z is half of the angles about these axes.
    """
    columns = np.eye(len(x0))
    for k in quaternions:
        q = x0[k : k + 4]
        turns = [2.0 * quaternion_rate_from_w_A(q, axis) for axis in np.eye(3)]
        columns[k : k + 4, k + 1 : k + 4] = np.transpose(turns) / np.linalg.norm(q)
    return np.delete(columns, [*quaternions, *locked], axis=1)


__all__ = ["quaternions_and_locked", "tangent"]
