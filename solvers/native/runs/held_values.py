"""Discrete values of the past: those that updates compute, and lines that they pass on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.native.programs.delay_lines import Line


class HeldValues:
    """All discrete values of a system before and after some updates.

    A line is not repeated after every update: what was put in front of it is somewhere behind now.

    The ``first`` values, of shape (m,), are those before all updates. The ``table``, of shape (k,
    c), holds after each update the c values that are not passed on in lines, and ``moved``, of
    shape (k,), the masks of the lines that each update has moved.
    """

    def __init__(
        self, lines: Sequence[Line], first: FloatArray, table: FloatArray, moved: NDArray[np.int64]
    ) -> None:
        self._first = first
        self._columns = np.zeros(len(first), dtype=np.intp)  # of the table, where it has a value
        kept = kept_places(lines, len(first))
        self._columns[kept] = np.arange(len(kept))
        self._table: FloatArray = np.empty((1 + len(table), len(kept)))
        self._table[0], self._table[1:] = first[kept], table
        freeze(self._table)
        moves = [np.append(0, moved >> k & 1) for k in range(len(lines))]
        self._lines = [
            (line, np.cumsum(each), np.append(0, np.flatnonzero(each)))
            for line, each in zip(lines, moves, strict=True)
        ]
        arrays = [each for _, *pair in self._lines for each in pair]
        self.size = sum(array.nbytes for array in [first, self._table, self._columns, *arrays])

    def at(self, updates: NDArray[np.intp], places: NDArray[np.intp] | None = None) -> FloatArray:
        """Return values at places, or all, after updates, of which 0 is the time before the first.

        The shape is (number of updates, number of places).
        """
        places = np.arange(len(self._first)) if places is None else places
        # Indexed in both directions at once, it is contiguous, as loops need it.
        found: FloatArray = self._table[updates[:, np.newaxis], self._columns[places]]
        for line, count, rows in self._lines:
            mine = np.flatnonzero((places >= line.start) & (places < line.end))
            behind, front = np.divmod(places[mine] - line.start, line.apart)
            moves = count[updates][:, np.newaxis]
            new = self._table[
                rows[np.maximum(moves - behind, 0)], self._columns[line.start + front]
            ]
            old = self._first[np.maximum(places[mine] - moves * line.apart, 0)]
            found[:, mine] = np.where(moves >= behind, new, old)
        return found

    def after(self, update: int) -> FloatArray:
        """Return all values after one update."""
        values: FloatArray = freeze(self.at(np.array([update]))[0])
        return values


def kept_places(lines: Sequence[Line], count: int) -> NDArray[np.intp]:
    """Return the places of the discrete values that are not passed on in lines."""
    kept = np.ones(count, dtype=bool)
    for line in lines:
        kept[line.start + line.apart : line.end] = False
    return np.flatnonzero(kept)
