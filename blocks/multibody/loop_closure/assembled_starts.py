"""Mechanisms that are put together before each motion, whatever values it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
