"""The sizes of chunks: large enough to be worth their while, small enough to be done soon."""

from __future__ import annotations

import sys

from flexure.solvers.sweeps.running.chunks import Chunk, Job

_FEWEST = 256  # runs of a chunk that memory allows in any case
_MEMORY = 16_000_000  # bytes that the signals of a chunk take, unless that is too few runs
_LEAST = 64  # runs in lanes, fewer of which leave many lanes idle
_GROWTH = 16  # times as many runs in the next chunk, at most


class Pace:
    """How many runs of a job go into the next chunk, on which the numbers do not depend.

    A chunk may take about ``seconds``; None for as long as it takes.
    """

    def __init__(self, job: Job, seconds: float | None) -> None:
        self._seconds = seconds
        self.known = False  # whether the size of the next chunk rests on a measurement
        self._most = sys.maxsize
        self._measured = bool(job.measuring.followed)
        if seconds is not None:
            readers = [*job.measuring.readers.values()][: job.kept]
            size = 8 * len(job.measuring.times) * sum(reader.size for reader in readers)
            self._most = max(_FEWEST, _MEMORY // max(1, size))
        self._by_itself = job.method is None
        self._least = 1 if job.method is None else min(_LEAST, self._most)
        at_once = seconds is None and job.method is not None and not self._measured
        self._next = self._most if at_once else self._least

    def size(self, left: int, workers: int = 1) -> int:
        """Return the number of runs of the next chunk; towards the end all workers get some."""
        share = -(-left // (2 * workers)) if workers > 1 else left
        return min(left, self._next, max(share, self._next // 4, self._least))

    def learn(self, chunk: Chunk) -> None:
        """Note what a chunk took."""
        self.known = True
        if self._measured:  # what signals do takes memory by the step
            self._most = min(self._most, max(_LEAST, int(_MEMORY / max(1.0, chunk.size))))
        if self._seconds is None:
            # A first run by itself may still be interpreted, and compiles for the others.
            self._next = self._least if self._by_itself else self._most
            self._by_itself = False
            return
        count = len(chunk.runs)
        fitting = int(count * self._seconds / max(chunk.cost, 1e-9))
        self._next = max(1, min(fitting, self._most, max(self._next, _GROWTH * count)))
