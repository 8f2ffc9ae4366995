"""Kernel that judges the progress of a native run.

The interpreted counterpart is `flexure.solvers.integration.guard.progress_limits`.
"""

from __future__ import annotations

from flexure.solvers.integration.guard.progress_kernel import (
    MARKS,
    STRIDE,
    is_conspicuous,
    makes_slow_progress,
)
from flexure.solvers.native.language.language import Floats, Structure

# Verdicts
SENSIBLE = 0
CONSPICUOUS = 1  # a jump of the equations may be what makes the steps short
TOO_SLOW = 2


class PaceData(Structure):
    """How fast the steps of a run bring it to its end."""

    judged_at: int  # the number of steps after which it is judged
    strides: int  # judged so far
    marks: Floats  # when the latest of them ended
    end: float  # of the run
    most_steps: float  # that may still be needed
    deliberate: float  # the length of a step that was asked for
    slow: int  # how many of the latest strides are too slow


def judge(pace: PaceData, steps: int, time: float) -> int:
    """Judge the pace at the end of a stride; return a verdict."""
    pace.judged_at = steps + STRIDE
    pace.strides += 1
    pace.slow = makes_slow_progress(
        pace.marks, pace.strides, STRIDE, time, pace.end, pace.most_steps, pace.deliberate
    )
    if pace.slow > 0:
        return TOO_SLOW
    conspicuous = is_conspicuous(
        pace.marks, pace.strides, STRIDE, time, pace.end, pace.most_steps, pace.deliberate
    )
    pace.marks[pace.strides % MARKS] = time
    return CONSPICUOUS if conspicuous else SENSIBLE
