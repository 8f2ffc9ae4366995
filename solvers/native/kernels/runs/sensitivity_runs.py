"""Kernels that carry on a motion together with its derivatives by numbers.

Explicit methods take states and columns as one system, ESDIRK4 the steps of
`flexure.solvers.native.kernels.steps.esdirk.attempt_with_columns`.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import all_finite
from flexure.solvers.native.kernels.parts.run import (
    COMPLETE,
    DOUBTFUL,
    PAUSED,
    SENSIBLE,
    SLOW,
    STIFF,
    TOO_SLOW,
    Run,
    judge,
)
from flexure.solvers.native.kernels.runs.advance import is_stiff, step_back
from flexure.solvers.native.kernels.steps.stepping import begin, state_inside, take_step
from flexure.solvers.native.language.language import Static

REORDERED = True


def follow(run: Run, method: Static) -> int:
    """Advance states and columns to ``motion.stop``, as far as one call leads; return how it ended.

    Their values at the requested times are written during the run.
    """
    step, motion, data = run.step, run.motion, run.columns
    n = run.system.n
    if motion.moving == 0:
        begin(run, method)
        if not all_finite(n, step.k):
            return DOUBTFUL
        motion.moving = 1
        motion.steps = 0
    while step.time < motion.stop:
        if run.budget <= 0:
            return PAUSED
        run.budget -= 1
        if not take_step(run, method):
            return DOUBTFUL
        motion.steps += 1
        pace = SENSIBLE
        if run.counts.steps == run.pace.judged_at:
            pace = judge(run.pace, run.counts.steps, step.time)
        if pace == TOO_SLOW:
            step_back(run)
            return SLOW
        while data.given < data.wanted and data.times[data.given] <= step.time:
            state_inside(run, method, data.times[data.given], data.samples[data.given * n :])
            data.given += 1
        if run.stiffness.watching == 1 and is_stiff(run, method):
            return STIFF
    motion.moving = 0
    return COMPLETE
