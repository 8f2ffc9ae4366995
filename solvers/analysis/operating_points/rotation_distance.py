"""Rotation angles of bodies between a start and an equilibrium."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.static_coordinates import path_in_plant, trees_of

FAR = 0.5 * np.pi  # rad, from which on an equilibrium is not near the start


class Turn(NamedTuple):
    """The turn of the body that turns farthest."""

    angle: float  # by how much, in rad, up to π
    body: str  # its path; empty where there is no body

    @property
    def is_far(self) -> bool:
        """Whether the angle is larger than `FAR`."""
        return self.angle > FAR


def farthest_turn(context: Context, first: FloatArray, last: FloatArray) -> Turn:
    """Return the farthest turn of a body between two states, with the other values of a context."""
    start, end, most = context.clone(), context.clone(), Turn(0.0, "")
    start.continuous_state, end.continuous_state = first, last
    for (before, tree), (after, _) in zip(trees_of(start), trees_of(end), strict=True):
        pairs = zip(tree.placements(before), tree.placements(after), strict=True)
        for body, (here, there) in zip(tree.topology.bodies, pairs, strict=True):
            cosine = 0.5 * (np.sum(here.R_WB * there.R_WB) - 1.0)
            angle = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
            if angle > most.angle:
                most = Turn(angle, path_in_plant(tree, body.name))
    return most


def warn_of_far(turn: Turn, label: str) -> None:
    """Warn of an equilibrium of a system to which a body turned far."""
    if turn.is_far:
        warn(
            f"The equilibrium of '{label}' is not near the start: '{turn.body}' turned by "
            f"{np.rad2deg(turn.angle):.0f}°. Start near the intended one, or raise the loads in "
            "steps, each from the equilibrium of the last one"
        )
