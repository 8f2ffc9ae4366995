"""Snapshots of a live run: from which values it can be repeated to any time that is recorded."""

from __future__ import annotations

from typing import Any, NamedTuple

from flexure.diagrams.contexts.context import Context

_MOST = 64
_MOST_CHANGES = 10_000


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
        if len(self._kept) > _MOST:
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
