"""Second derivatives of traced equations along directions: how their derivatives change."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.diagrams.concurrency.quiet import quietly
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.jacobians import directional
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.kept_equations import TracedNumbers
from flexure.solvers.tracing.trace import STATE, Key


class SecondSlopes:
    """Derivatives of rows along two directions, which are further states of the code.

    Rows are differentiated by ``columns``; ``keys`` move: the columns, and parameters behind them.
    """

    def __init__(self, rows: list[Any], columns: list[Key], keys: list[Key], size: int) -> None:
        self._given = rows, columns, keys, size

    @cached_property
    def _code(self) -> TracedNumbers:
        """The derivatives along a direction of the columns, and one of all keys behind it."""
        rows, columns, keys, n = self._given
        ends = n + len(columns), n + len(columns) + len(keys)
        first, second = (
            [((STATE, 0, 0), k) for k in range(*span)] for span in ((n, ends[0]), ends)
        )
        with quietly():
            slopes = simplify(directional(rows, columns, first))
            return TracedNumbers(simplify(directional(slopes, keys, second)), ends[1])

    def changes(
        self, store: Store, ways: FloatArray, directions: FloatArray | None = None
    ) -> FloatArray:
        """Return how the derivatives along directions of the columns change along ways of all keys.

        With k ways, shape (keys, k), and m directions, shape (columns, m), by default one column
        after the other, the result has the shape (k, rows, m).
        """
        rows, columns, _, _ = self._given
        directions = np.eye(len(columns)) if directions is None else directions
        found = np.zeros((ways.shape[1], len(rows), directions.shape[1]))
        run = self._code.bound(store)
        for number, way in enumerate(ways.T):
            for k, direction in enumerate(directions.T):
                found[number, :, k] = run(store.time, np.concatenate([store.x, direction, way]))
        return found
