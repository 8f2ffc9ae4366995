"""When a run is given up although every step succeeds."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

__all__ = ["Limits", "Pace"]

_MARKS = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run is given up.

    Parameters
    ----------
    evaluations_per_step : int
        Evaluations of the right-hand side within one step; 200 more are allowed per state, for
        Jacobians by differences.
    window : int
        Number of good steps over which the pace is judged, at most.
    steps_ahead : float
        The run is given up when, at the pace of the last ``window`` steps, more than this many
        are still needed. A pace that is m times worse is noticed in m times fewer steps, down to
        ``window / 20``. Infinity switches the rule off.
    """

    evaluations_per_step: int = 4000
    window: int = 20_000
    steps_ahead: float = 5e7


_USUAL = Limits()


class Pace:
    """Judges whether good steps bring a run to its end in a sensible time.

    One object may watch a run over many segments, between which events happen.

    Parameters
    ----------
    t_start, t_end : float
        Where the run begins and ends, in seconds.
    limits : Limits, optional
        When it is given up.
    deliberate : float, optional
        Length of a step, in seconds, that is the user's wish: a fixed step, a longest step, the
        period of a controller. Steps that are on average longer than half of it are never
        refused, however many there are. Default: none is deliberate.

    Attributes
    ----------
    steps : int
        Number of steps counted so far.

    Examples
    --------
    >>> pace = Pace(0.0, 10.0)
    >>> reports = [pace.count(k * 1e-12) for k in range(1, 1001)]
    >>> reports[-1]
    '1000 steps that advanced by 1e-09 s, and at that pace 1e+13 more to go'
    """

    __slots__ = ("_deliberate", "_marks", "_severity", "_stride", "_t_end", "steps")

    def __init__(
        self,
        t_start: float,
        t_end: float,
        limits: Limits | None = None,
        *,
        deliberate: float = math.inf,
    ) -> None:
        limits = limits or _USUAL
        self.steps = 0
        self._t_end = t_end
        self._deliberate = deliberate
        self._severity = limits.steps_ahead * limits.window
        self._stride = max(1, limits.window // _MARKS)
        self._marks = deque([(0, t_start)], maxlen=_MARKS)

    def count(self, t: float, steps: int = 1) -> str | None:
        """Count steps that ended at ``t``, and return what is wrong with the pace, if anything."""
        strides = self.steps // self._stride
        self.steps += steps
        if self.steps // self._stride == strides:
            return None
        for count, mark in reversed(self._marks):
            steps, advance = self.steps - count, t - mark
            if advance >= 0.5 * steps * self._deliberate:
                continue
            ahead = steps * (self._t_end - t) / advance if advance > 0.0 else math.inf
            if ahead * steps > self._severity:
                return (
                    f"{steps} steps that advanced by {advance:.3g} s, "
                    f"and at that pace {ahead:.3g} more to go"
                )
        self._marks.append((self.steps, t))
        return None
