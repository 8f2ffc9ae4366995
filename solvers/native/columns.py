"""The numbers of a diagram in columns, with a row for each of the blocks that are alike.

Whatever an equation reads or computes has a *code*, ``column << SHIFT | row``. The times, the
states, the discrete values and the inputs from outside are in four columns that belong to the whole
diagram. All others belong to a family of blocks: each component of a parameter and each result has
a column there.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from flexure.solvers.native.emission import Environment

IntArray: TypeAlias = NDArray[np.int64]

SHIFT = 32
TIME_COLUMN, STATE_COLUMN, DISCRETE_COLUMN, INPUT_COLUMN = range(4)

# The sort of a column: in which array it is, and whether it changes during a run.
CLOCK, MOTION, MOVING, FIXED = range(4)
_ARRAYS = {CLOCK: "t", MOTION: "x", MOVING: "env", FIXED: "env"}


class Columns:
    """All columns of a diagram.

    Parameters
    ----------
    environment : Environment
        Gives room to columns. It begins with the discrete values of the diagram.
    num_inputs : int
        Number of components of all inputs from outside.

    Attributes
    ----------
    sorts : list of int
        The sort of each column.
    places : list of int or None
        Where each column begins in its array; None when nobody has asked.
    used_inputs : ndarray of bool
        The inputs from outside for which somebody has asked.
    """

    def __init__(self, environment: Environment, num_inputs: int) -> None:
        self._environment = environment
        self.sorts = [CLOCK, MOTION, MOVING, FIXED]
        self.places: list[int | None] = [0, 0, 0, None]
        self._sizes = [0, 0, 0, num_inputs]
        self.used_inputs = np.zeros(num_inputs, dtype=bool)

    def add(self, sort: int, size: int) -> int:
        """Add a column and return its number."""
        self.sorts.append(sort)
        self.places.append(None)
        self._sizes.append(size)
        return len(self.sorts) - 1

    def locate(self, codes: IntArray) -> tuple[str, IntArray]:
        """Return the array in which some numbers are, and where they are there.

        Columns get their room here, so that none is taken for what is never used.
        """
        starts = np.zeros(len(self.places), dtype=np.int64)
        found = columns_of(codes)
        for column in found:
            place = self.places[column]
            if place is None:
                place = self.places[column] = self._environment.reserve(self._sizes[column])
            starts[column] = place
            if column == INPUT_COLUMN:
                self.used_inputs[rows_of(codes[codes >> SHIFT == column])] = True
        return _ARRAYS[self.sorts[found[0]]], starts[codes >> SHIFT] + rows_of(codes)


def columns_of(codes: IntArray) -> list[int]:
    """Return the different columns of codes."""
    found: list[int] = np.flatnonzero(np.bincount(codes >> SHIFT)).tolist()
    return found


def rows_of(codes: IntArray) -> IntArray:
    """Return the rows of codes."""
    return codes & ((1 << SHIFT) - 1)


__all__ = [
    "CLOCK",
    "DISCRETE_COLUMN",
    "FIXED",
    "INPUT_COLUMN",
    "MOTION",
    "MOVING",
    "SHIFT",
    "STATE_COLUMN",
    "TIME_COLUMN",
    "Columns",
    "IntArray",
    "columns_of",
    "rows_of",
]
