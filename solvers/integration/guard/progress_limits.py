"""Limits that end a run although every step succeeds, and kernels that all integration loops share.

The kernels judge whether a run will reach its end, and say with which step it goes on after a stop.
They look back over strides of equally many steps. The times at which the latest strides ended are
the *marks*, an array in which the stride of number k has the place ``k % MARKS``; stride 0 is the
start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.values.arrays import FloatArray as Floats
from flexure.solvers.integration.guard.failures import LOOKS

APART = True

STRIDE = 1000  # steps
MARKS = 20
CHATTERING = 1000.0  # by which fewer steps may be needed at a jump of the equations


def makes_slow_progress(
    marks: Floats, strides: int, stride: int, time: float, end: float, most: float, wanted: float
) -> int:
    """Return how many of the latest strides are too slow together; 0 if none are.

    Strides that advance as slowly as ever since the start, and by that pace need more than ``most``
    steps up to the end, are too slow when there are `MARKS` of them; of strides that are m times
    slower, an m-th of that number will do. Steps of half of the wanted length never are.
    """
    back = 0
    while back < strides and back < MARKS:
        back += 1
        steps = 1.0 * back * stride
        advance = time - marks[(strides - back) % MARKS]
        needed = steps * steps * (end - time)
        if advance < 0.5 * steps * wanted and needed > most * MARKS * stride * advance:
            return back
    return 0


def is_conspicuous(
    marks: Floats, strides: int, stride: int, time: float, end: float, most: float, wanted: float
) -> bool:
    """Return whether a jump of the equations may be what makes the latest stride slow.

    That is asked after 1, 2, 4, 8, ... strides, of one by whose pace a thousandth of ``most`` steps
    does not lead to the end.
    """
    power = 1
    while power < strides:
        power *= 2
    if power != strides:
        return False
    advance: float = time - marks[(strides - 1) % MARKS]
    steps = 1.0 * stride
    return advance < 0.5 * steps * wanted and CHATTERING * steps * (end - time) > most * advance


def carried_step(
    following: float, wanted: float, given: float, steps: int, begin: float, end: float, stop: float
) -> float:
    """Return the step with which the next motion may start, in seconds.

    A motion that ends at a stop, such as the tick of a clock, usually ends with a step that is
    shorter than the method meant to take. The step that the method would try after such a stub is
    unrelated to the one that the equations allow.

    ``following`` is what the method would try after the last of the good ``steps``, from ``begin``
    to ``end``; ``wanted`` what it meant to try in that, before anything made it shorter. ``given``
    is with what the motion was told to start, which its first step may not show, or zero. The
    motion had to end at ``stop`` at the latest.

    Examples
    --------
    A step of 0.3 s was cut to 0.1 s, after which the method dares no more than 0.2 s:

    >>> carried_step(0.2, 0.3, 0.0, 5, begin=0.9, end=1.0, stop=1.0)
    0.3
    >>> carried_step(0.2, 0.3, 0.0, 5, begin=0.6, end=0.9, stop=1.0)
    0.2
    """
    whole = given if steps == 1 and given > 0.0 else wanted
    if end == stop and begin + whole > stop and whole > following:
        return whole
    return following


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
    been judged, and ``marks`` are when the latest ended. ``most`` is the largest number of
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
        self.marks: Floats = np.empty(MARKS)
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
