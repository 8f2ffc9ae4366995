"""Sides of a comparison, and how they are timed: in turns, so that a busy machine harms all alike.

Every side uses the loosest tolerance of one common grid with which it meets the accuracy of the
workload, so that times are compared at equal accuracy.

Seconds are those that the calling thread spends at work. On a busy machine the time on the clock
would be unfair: a run of a millisecond often finishes before another process gets the processor, a
longer one does not. A side that uses several threads measures by the clock instead.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_DECADES = range(2, 14)  # tolerances from 1e-2 to 1e-13
_QUARTERS = (0.75, 0.5, 0.25)
_ENOUGH = 0.05  # seconds: a turn of a fast side repeats its run for about as long


class MissingPeerError(Exception):
    """A side that cannot run here; the text says what is missing, and what then is left out."""


@dataclass(frozen=True)
class Contender:
    """One side of a comparison, prepared, at the accuracy of the workload.

    Attributes
    ----------
    name : str
        Who runs, such as "Drake" or "native loop".
    run : callable
        Runs the workload once from the beginning, and returns the seconds that count: those from
        a prepared simulator to the end.
    error : float
        Of such a run, as `reference.error` defines it.
    setting : str
        Method and tolerance.
    note : str
        What a reader should know beyond that.
    evaluations : int
        Of the derivatives in one run, where somebody counts them.
    right_hand_side : float
        Seconds of one evaluation by itself, where that can be measured.
    """

    name: str
    run: Callable[[], float]
    error: float
    setting: str
    note: str = ""
    evaluations: int = 0
    right_hand_side: float = 0.0

    @property
    def remark(self) -> str:
        """All of it in one line."""
        parts = [self.setting, f"error {self.error:.1e}", self.note]
        if self.evaluations:
            parts.append(f"{self.evaluations} evaluations")
        if self.right_hand_side:
            parts.append(f"one right-hand side {1e9 * self.right_hand_side:.4g} ns")
        return "; ".join(filter(None, parts))


def seconds(run: Callable[[], object]) -> float:
    """Return the time that this thread spends in one call."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def loosest(error: Callable[[float], float], target: float) -> tuple[float, float] | None:
    """Return the loosest tolerance whose error meets a target, and that error.

    Decades are tried from loose to tight, and the one before the first good one in quarters.

    >>> loosest(lambda tolerance: 3.0 * tolerance, 1e-4)
    (3.1622776601683795e-05, 9.486832980505139e-05)
    """
    for decade in _DECADES:
        if (found := error(10.0**-decade)) <= target:
            for quarter in _QUARTERS:
                tolerance = 10.0 ** (quarter - decade)
                if (better := error(tolerance)) <= target:
                    return tolerance, better
            return 10.0**-decade, found
    return None


def in_rounds(runs: Sequence[Callable[[], float]], rounds: int) -> list[list[float]]:
    """Return the times of each run, one per round, in which all take their turn."""
    for run in runs:
        run()
    times = [[_turn(run) for run in runs] for _ in range(rounds)]
    return [list(column) for column in zip(*times, strict=True)]


def fastest(candidates: Sequence[Contender]) -> Contender:
    """Return the fastest of some sides, timed in turns."""
    if len(candidates) == 1:
        return candidates[0]
    times = [statistics.median(each) for each in in_rounds([c.run for c in candidates], 3)]
    return candidates[times.index(min(times))]


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median over the rounds of the time of one side by that of another."""
    pairs = zip(above, below, strict=True)
    return statistics.median(numerator / denominator for numerator, denominator in pairs)


def _turn(run: Callable[[], float]) -> float:
    """Return the median time of as many runs as fit into a moment, at least one."""
    start = time.perf_counter()
    found = [run()]
    while time.perf_counter() - start < _ENOUGH:
        found.append(run())
    return statistics.median(found)
