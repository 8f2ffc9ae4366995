"""Recordings of live runs: the latest samples, in memory of limited size, and in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.records.exports import writing

_FIRST = 4096  # rows for which there is room at first


class Recording:
    """The latest samples of a live run, oldest first.

    Parameters
    ----------
    columns : sequence of (str, int)
        Names of the signals and their numbers of components.
    limit : float
        Memory in bytes; the oldest samples give way.
    """

    def __init__(self, columns: Sequence[tuple[str, int]], limit: float) -> None:
        self.spans: dict[str, slice] = {"time": slice(0, 1)}
        width = 1
        for name, size in columns:
            self.spans[name] = slice(width, width + size)
            width += size
        self._most = max(int(limit // (8 * width)), 2)
        self._rows = np.empty((min(_FIRST, self._most), width))
        self._kept = 0
        self.total = 0  # samples so far, those that gave way included
        self._shift = 0  # number of the sample in the first row

    def __len__(self) -> int:
        return self._kept

    @property
    def is_whole(self) -> bool:
        """Whether no sample had to give way."""
        return self._kept == self.total

    def append(self, time: float, values: FloatArray) -> None:
        """Append a sample."""
        room = len(self._rows)
        if self._kept == room and room < self._most:
            larger = np.empty((min(2 * room, self._most), self._rows.shape[1]))
            larger[:room] = self.rows()
            self._rows, self._shift = larger, self.total - room
            room = len(larger)
        row = self._rows[(self.total - self._shift) % room]
        row[0], row[1:] = time, values
        self.total += 1
        self._kept = min(self._kept + 1, room)

    def rows(self, start: int = 0, stop: int | None = None, stride: int = 1) -> FloatArray:
        """Return samples, shape (k, n), by their numbers among those that are kept."""
        numbers = np.arange(*slice(start, stop, stride).indices(self._kept))
        first = self.total - self._kept - self._shift
        return np.array(self._rows[(first + numbers) % len(self._rows)])

    def number_at(self, time: float) -> int:
        """Return the number, among those that are kept, of the last sample not after a time."""
        return int(np.searchsorted(self.rows()[:, 0], time, side="right")) - 1

    def cut(self, count: int) -> None:
        """Forget all but the first ones that are kept."""
        self.total -= self._kept - count
        self._kept = count

    def arrays(self) -> dict[str, FloatArray]:
        """Return times and signals: shape (k,) for one component, else (k, n)."""
        rows = self.rows()
        return {name: _column(rows, span) for name, span in self.spans.items()}

    def save(self, path: str | Path) -> None:
        """Write a NumPy archive with one array per signal, as a whole or not at all."""
        name = file_path(path, "Cannot write a file")
        arrays: dict[str, Any] = self.arrays()
        with writing(name if name.endswith(".npz") else f"{name}.npz", binary=True) as file:
            np.savez_compressed(file, **arrays)


def _column(rows: FloatArray, span: slice) -> FloatArray:
    part = rows[:, span]
    return part[:, 0] if part.shape[1] == 1 else part
