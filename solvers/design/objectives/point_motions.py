"""Motions of points of frames along directions, as expressions of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.blocks.multibody import Frame, Plant
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.systems.layout import Layout
from flexure.solvers.analysis.forces_at_rest.static_coordinates import Indices
from flexure.solvers.analysis.statics.stiffness import plant_of


@dataclass(frozen=True)
class PointMotion:
    """The motion of a point P fixed in a frame F, along or about an axis of F."""

    frame: Frame  # the frame F
    p_FP: tuple[float, ...]  # position of P from Fo, expressed in F, in m
    # Shape (6,), along the axes of F: about which axis it turns, then along which it moves.
    direction: tuple[float, ...]

    @property
    def plant(self) -> Plant:
        """The plant of the frame."""
        return plant_of(self.frame)

    def velocities(self, layout: Layout) -> Indices:
        """Return where the velocities of the plant are among the states."""
        tree = self.plant.tree
        position = next(k for k, leaf in enumerate(layout.leaves) if leaf is tree)
        first = layout.x_slices[position].start + tree.topology.num_positions
        return np.arange(first, first + tree.topology.num_velocities)

    def velocity(self, store: Store) -> Any:
        """Return its velocity, a number or an expression."""
        J = self.plant.calc_jacobian(store.leaves[0].root, self.frame, self.p_FP, None, self.frame)
        v = store.x[self.velocities(store.layout)]
        return np.sum((np.array(self.direction) @ J) * v)
