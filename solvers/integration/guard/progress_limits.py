"""Limits that end a run although every step succeeds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.integration.guard.failures import LOOKS
from flexure.solvers.integration.guard.progress_kernel import (
    MARKS,
    STRIDE,
    is_conspicuous,
    makes_slow_progress,
)

MOST_STEPS = 5e7


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run is given up."""

    # Evaluations of the right-hand side within one step; 200 more are allowed per state, for
    # Jacobians by differences.
    evaluations_per_step: int = 4000
    window: int = MARKS * STRIDE  # number of good steps over which the pace is judged, at most
    # The run is given up when, at the pace of the last ``window`` steps, more than this many are
    # still needed. A pace that is m times worse is noticed in m times fewer steps, down to ``window
    # / 20``. Infinity switches the rule off.
    steps_ahead: float = MOST_STEPS


_USUAL = Limits()


class Pace:
    """Judges whether good steps bring a run to its end in a sensible time.

    One object may watch a run over many segments, between which events happen. The loops of native
    code judge by the same kernel, and write to the same marks.

    ``t_start`` and ``t_end`` in seconds are where the run begins and ends. ``deliberate`` is the
    length of a step that is the user's wish, in seconds: a fixed step, a longest step, the period
    of a controller. Steps that are on average longer than half of it are never refused, however
    many there are.

    A judgement follows every ``stride`` steps, the next one after ``left`` steps; ``strides`` have
    been judged, and ``marks`` are when the latest ended, in the places that
    `flexure.solvers.integration.guard.progress_kernel` says. ``most`` is the largest number of
    steps that may still be needed. ``looks`` is the number of steps to check now for chattering:
    those after 1, 2, 4, 8, ... strides, where a thousandth of ``most`` is exceeded.

    Examples
    --------
    >>> pace = Pace(0.0, 10.0)
    >>> reports = [pace.count(k * 1e-12) for k in range(1, 1001)]
    >>> reports[-1]
    '1000 steps that advanced by 1e-09 s, and at that pace 1e+13 more to go'
    """

    def __init__(
        self,
        t_start: float,
        t_end: float,
        limits: Limits | None = None,
        *,
        deliberate: float = math.inf,
    ) -> None:
        limits = limits or _USUAL
        self.most = limits.steps_ahead
        self.deliberate = deliberate
        self.stride = max(1, limits.window // MARKS)
        self.marks: FloatArray = np.empty(MARKS)
        self.begin(t_start, t_end)

    def begin(self, t_start: float, t_end: float) -> None:
        """Judge another run, by the same limits."""
        self._t_end = t_end
        self.left, self.strides, self.looks = self.stride, 0, 0
        self.marks.fill(t_start)

    @property
    def steps(self) -> int:
        """Number of steps counted so far."""
        return self.strides * self.stride + self.stride - self.left

    def count(self, t: float) -> str | None:
        """Count a step that ended at ``t``, and return what is wrong with the pace, if anything."""
        self.left -= 1
        if self.left > 0:
            return None
        self.left = self.stride
        self.strides += 1
        slow = makes_slow_progress(
            self.marks, self.strides, self.stride, t, self._t_end, self.most, self.deliberate
        )
        if slow:
            return self.report(slow, t)
        self.marks[self.strides % MARKS] = t
        self.watch(t)
        return None

    def watch(self, t: float) -> None:
        """Have the next steps looked at, where a stride has just ended that makes it worth it."""
        judged = self.left == self.stride and self.strides > 0
        if judged and is_conspicuous(
            self.marks, self.strides, self.stride, t, self._t_end, self.most, self.deliberate
        ):
            self.looks = LOOKS

    def needed(self, t: float) -> float:
        """Return how long steps have to be to reach the end from ``t``, in seconds."""
        return float(self._t_end - t) / self.most

    def note_look(self) -> None:
        """Note that a step was checked."""
        self.looks = max(0, self.looks - 1)

    def take_over(self, left: int, strides: int) -> None:
        """Go on counting where compiled loops have left off."""
        self.left, self.strides = left, strides

    def report(self, slow: int, t: float) -> str:
        """Say how slow the latest strides are, of which the last one ended at ``t``."""
        steps = slow * self.stride
        advance = float(t - self.marks[(self.strides - slow) % MARKS])
        ahead = steps * (self._t_end - t) / advance if advance > 0.0 else math.inf
        return (
            f"{steps} steps that advanced by {advance:.3g} s, "
            f"and at that pace {ahead:.3g} more to go"
        )
