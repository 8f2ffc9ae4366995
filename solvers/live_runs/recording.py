"""Recordings of live runs: the latest samples, in memory of limited size, and in a file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.records.exports import writing
from flexure.solvers.results.records.history import free_memory

_MOST = 2**31  # samples


class Recording:
    """The latest samples of a live run, oldest first.

    Columns are names of signals with their numbers of components. When the memory of ``limit``
    bytes is full, the oldest samples are discarded.
    """

    def __init__(self, columns: Sequence[tuple[str, int]], limit: float) -> None:
        self.spans: dict[str, slice] = {"time": slice(0, 1)}
        width = 1
        for name, size in columns:
            self.spans[name] = slice(width, width + size)
            width += size
        # Memory is taken as samples come, since systems give it page by page.
        count = int(min(limit, 0.5 * free_memory()) // (8 * width))
        self._rows = np.empty((min(max(count, 2), _MOST), width))
        self._kept = 0
        self.total = 0  # samples so far, the discarded ones included

    def __len__(self) -> int:
        return self._kept

    @property
    def is_whole(self) -> bool:
        """Whether no sample was discarded."""
        return self._kept == self.total

    def append(self, time: float, values: FloatArray) -> None:
        """Append a sample."""
        row = self._rows[self.total % len(self._rows)]
        row[0], row[1:] = time, values
        self.total += 1
        self._kept = min(self._kept + 1, len(self._rows))

    def rows(self, start: int = 0, stop: int | None = None, stride: int = 1) -> FloatArray:
        """Return samples, shape (k, n), by their numbers among those that are kept."""
        numbers = np.arange(*slice(start, stop, stride).indices(self._kept))
        first = self.total - self._kept
        return np.array(self._rows[(first + numbers) % len(self._rows)])

    def number_at(self, time: float) -> int:
        """Return the number, among those that are kept, of the last sample not after a time."""
        return bisect_right(range(self._kept), time, key=self.time_at) - 1

    def time_at(self, number: int) -> float:
        """Return the time of a sample that is kept."""
        return float(self._rows[(self.total - self._kept + number) % len(self._rows), 0])

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
