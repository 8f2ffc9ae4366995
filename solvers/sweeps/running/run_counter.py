"""How many runs of a sweep are done, for the bar that shows it."""

from __future__ import annotations

from collections.abc import Callable

from flexure.solvers.simulation.run_control.progress_bar import ProgressBar

#: Called now and then in the midst of a chunk; what it is passed tells how many of its runs are
#: done, and how many of these have failed.
Watch = Callable[[Callable[[], tuple[int, int]]], None]


class RunCounter:
    """Counts the runs that are done, and those of them that failed."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._done = self._failed = 0

    def skip(self, done: int, failed: int) -> None:
        """Add runs that were done before."""
        self._done, self._failed = self._done + done, self._failed + failed
        self._bar.begin_at(self._done)

    def add(self, done: int, failed: int) -> None:
        """Add the runs of a chunk."""
        self._done, self._failed = self._done + done, self._failed + failed
        self._bar.update(self._done, self._failed)

    def watch(self, count: Callable[[], tuple[int, int]]) -> None:
        """Show runs of a chunk that is being done, if something is to be shown now."""
        if self._bar.due:
            done, failed = count()
            self._bar.update(self._done + done, self._failed + failed)
