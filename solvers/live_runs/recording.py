"""Recordings of live runs: the latest samples, and snapshots from which runs are repeated."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.records.exports import writing
from flexure.solvers.results.records.history import free_memory

_MOST = 2**31  # samples
_MOST_SNAPSHOTS, _MOST_CHANGES = 64, 10_000


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


class Snapshot(NamedTuple):
    """All values at the beginning of a step."""

    step: int  # its number
    context: Context  # a copy of the context
    software: list[tuple[bytes, int]]  # the memory of the compiled controllers


class Snapshots:
    """Some snapshots, at ever larger distances, and all values that were set in between."""

    def __init__(self) -> None:
        self._kept: list[Snapshot] = []
        self._changes: list[tuple[int, Any, Any]] = []
        self._stride = 1
        self._first = 0  # step from which on all changes are known

    def wants(self, step: int) -> bool:
        """Return whether the values at the beginning of a step are to be kept."""
        return step % self._stride == 0

    def add(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and every other one when there are too many."""
        self._kept.append(snapshot)
        if len(self._kept) > _MOST_SNAPSHOTS:
            self._stride *= 2
            self._kept = [each for each in self._kept if each.step % self._stride == 0]

    def changed(self, step: int, entry: Any, value: Any) -> None:
        """Remember that a value was set before a step."""
        self._changes.append((step, entry, value))
        if len(self._changes) > _MOST_CHANGES:
            self._first = self._changes.pop(0)[0] + 1

    def before(self, step: int, oldest: int) -> Snapshot | None:
        """Return the last snapshot from which the inputs up to a step are known."""
        found = [each for each in self._kept if max(oldest, self._first) <= each.step <= step]
        return found[-1] if found else None

    def changes(self, start: int, stop: int) -> list[tuple[int, Any, Any]]:
        """Return what was set before the steps of a range, its end included."""
        return [each for each in self._changes if start <= each[0] <= stop]

    def forget_after(self, step: int) -> None:
        """Forget what comes after the beginning of a step."""
        self._kept = [each for each in self._kept if each.step <= step]
        self._changes = [each for each in self._changes if each[0] <= step]
