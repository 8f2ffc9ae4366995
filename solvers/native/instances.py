"""Instances: the derivatives of large diagrams, with the code of alike blocks shared.

Code that writes out every block takes longer to compile the more blocks there are. Here one block
of each kind is traced (`flexure.solvers.native.walk`), what it computes is cut into stages
(`flexure.solvers.native.stages`), and loops go over all blocks that are alike
(`flexure.solvers.native.repetition`). The numbers are the same as when everything is written out.
"""

from __future__ import annotations

import numpy as np

from flexure.diagrams.layout import Layout
from flexure.diagrams.store import Store
from flexure.diagrams.values import FloatArray
from flexure.solvers.native.columns import INPUT_COLUMN, TIME_COLUMN
from flexure.solvers.native.emission import Environment
from flexure.solvers.native.library import Library
from flexure.solvers.native.repetition import RepetitionWriter
from flexure.solvers.native.stages import Stages, live_columns
from flexure.solvers.native.walk import UnlikeError, Walk

_LARGE = 200_000  # characters, about 3000 operations, beyond which LLVM is to try less hard


class Instances:
    """The derivatives of a root system as one native function, and what prepares it.

    Parameters
    ----------
    layout : Layout
        Of the system.
    environment : Environment
        Gives the room that is needed.

    Attributes
    ----------
    rhs : int
        Address of the derivatives.
    prepare : int
        Address of the function that computes what depends on parameters alone. It puts that into
        its environment, not into its output.
    operations : int
        Of the derivatives.
    timed : bool
        Whether the derivatives depend on time.

    Raises
    ------
    UnlikeError
        When sharing code is impossible, or saves little.
    """

    def __init__(self, layout: Layout, environment: Environment) -> None:
        walk = Walk(layout, environment)
        live = live_columns(walk.variants)
        stages = Stages(walk.columns, live)
        for family in walk.families:
            stages.add(family)
        self.operations = stages.operations
        self.timed = TIME_COLUMN in live
        self._parameters = [
            (family.positions, index, components)
            for family in walk.families
            for index, components in family.parameters_in_use().items()
        ]
        self._inputs = self._used_inputs(walk)
        self._compile(stages)

    @staticmethod
    def _used_inputs(walk: Walk) -> list[tuple[int, int, int]]:
        """List the slots of used inputs from outside, and the places of their components."""
        first = walk.columns.places[INPUT_COLUMN]
        if first is None:
            return []
        used = walk.columns.used_inputs
        return [
            (slot, first + rows.start, first + rows.stop)
            for slot, rows in walk.inputs
            if used[rows.start : rows.stop].any()
        ]

    def _compile(self, stages: Stages) -> None:
        writer = RepetitionWriter()
        writer.write("prepare", stages.fixed)
        writer.write("rhs", stages.moving)
        text = "\n".join([*sorted(writer.declarations), *writer.texts, *writer.data])
        level = 2 if sum(map(len, writer.texts)) < _LARGE else 1
        self._library = Library(text, lambda: text, level=level)
        self.rhs = self._library.address("rhs")
        self.prepare = self._library.address("prepare")

    def fill(self, store: Store, env: FloatArray) -> None:
        """Put the parameters and the inputs from outside of a context into an environment."""
        for positions, index, components in self._parameters:
            count = len(positions)
            values = [store.leaves[k].parameters[index] for k in positions]
            table = np.array(values, dtype=float).reshape(count, -1)
            for component, start in components:
                env[start : start + count] = table[:, component]
        for slot, start, stop in self._inputs:
            env[start:stop] = store.value(slot)


__all__ = ["Instances", "UnlikeError"]
