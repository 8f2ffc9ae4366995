"""The numbers of a diagram in columns, with a row for each of the blocks that are alike.

Each value that an equation reads or computes has a *code*, ``column << SHIFT | row``. The times,
the states, the discrete values, the inputs from outside and the derivatives are in five columns
that belong to the whole diagram. All others belong to a family of blocks: each component of a
parameter and each result has a column there. The walk computes with codes; where a column lies in
its array is decided when all jobs are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from flexure.solvers.native.emission.emission import Environment

IntArray: TypeAlias = NDArray[np.int64]

SHIFT = 32
TIME_COLUMN, STATE_COLUMN, DISCRETE_COLUMN, INPUT_COLUMN, RATE_COLUMN = range(5)

# The sort of a column: in which array it is, and whether it changes during a run.
CLOCK, MOTION, MOVING, FIXED, RATE = range(5)
_ARRAYS = {CLOCK: "t", MOTION: "x", MOVING: "env", FIXED: "env", RATE: "out"}


class Columns:
    """All columns of a diagram.

    The environment begins with the discrete values of the diagram, and gives room to columns.
    ``num_inputs`` counts the components of all inputs from outside.
    """

    def __init__(self, environment: Environment, num_inputs: int) -> None:
        self._environment = environment
        self.sorts = [CLOCK, MOTION, MOVING, FIXED, RATE]  # the sort of each column
        # The start of each column in its array; None until it is requested.
        self.places: list[int | None] = [0, 0, 0, None, 0]
        self._sizes = [0, 0, 0, num_inputs, 0]
        # The inputs from outside that were requested.
        self.used_inputs = np.zeros(num_inputs, dtype=bool)

    def add(self, sort: int, size: int) -> int:
        """Add a column and return its number."""
        self.sorts.append(sort)
        self.places.append(None)
        self._sizes.append(size)
        return len(self.sorts) - 1

    def sort_of(self, codes: IntArray) -> int:
        """Return the sort of some numbers, which are all of one."""
        return self.sorts[int(codes[0]) >> SHIFT]

    def locate(self, codes: IntArray) -> tuple[str, IntArray]:
        """Return the array in which some numbers are, and where they are there.

        Columns get their room here, so that none is taken for what is never used.
        """
        found, which = np.unique(codes >> SHIFT, return_inverse=True)
        starts = np.array([self._place_of(column) for column in found.tolist()])
        self.used_inputs[rows_of(codes[codes >> SHIFT == INPUT_COLUMN])] = True
        return _ARRAYS[self.sorts[found[0]]], starts[which.reshape(-1)] + rows_of(codes)

    def arrange(self, readings: Iterable[IntArray]) -> None:
        """Give room to columns, if possible such that numbers lie in the order of their codes.

        Where wishes contradict each other, those that take more columns count more.
        """
        wishes = [[each for each, _ in groupby((codes >> SHIFT).tolist())] for codes in readings]
        after: dict[int, int] = {}
        behind: set[int] = set()
        for wish in sorted(wishes, key=len, reverse=True):
            for column, following in pairwise(wish):
                if column not in after and following not in behind:
                    after[column] = following
                    behind.add(following)
        for first in dict.fromkeys(chain.from_iterable(wishes)):
            present: int | None = None if first in behind else first
            while present is not None:
                self._place_of(present)
                present = after.get(present)

    def _place_of(self, column: int) -> int:
        """Return where a column begins."""
        place = self.places[column]
        if place is None:
            place = self.places[column] = self._environment.reserve(self._sizes[column])
        return place


def columns_of(codes: IntArray) -> list[int]:
    """Return the different columns of codes."""
    found: list[int] = np.unique(codes >> SHIFT).tolist()
    return found


def rows_of(codes: IntArray) -> IntArray:
    """Return the rows of codes."""
    return codes & ((1 << SHIFT) - 1)
