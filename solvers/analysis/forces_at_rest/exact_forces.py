"""What statics asks of blocks: generalized forces of trees at rest, and rates of other states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flexure.blocks.multibody import MultibodyTree
from flexure.diagrams.scalars.branches import explore
from flexure.solvers.tracing.trace import SymbolicStore


@dataclass(frozen=True)
class AtRest:
    """Reads the forces on a tree at zero velocities, and of other blocks their derivatives."""

    def begin(self, store: SymbolicStore) -> None:
        """Let a tree rest."""
        (block,) = store.layout.leaves
        if isinstance(block, MultibodyTree):
            first = block.topology.num_positions
            x = store.x.copy()
            x[first : first + block.topology.num_velocities] = 0.0
            store.x = x

    def __call__(self, store: SymbolicStore) -> Sequence[Any]:
        """Return the forces, one for each velocity, or the derivatives of all states."""
        (block,) = store.layout.leaves
        if isinstance(block, MultibodyTree):
            return list(explore(store.graph, partial(block.forces_at_rest, store.leaves[0])))
        return list(store.time_derivatives())


__all__ = ["AtRest"]
