"""The kernel that looks into a step of the past: the interpolant is made when it is asked for."""

from __future__ import annotations

from flexure.solvers.native.arithmetic import smaller
from flexure.solvers.native.language import Floats, Static
from flexure.solvers.native.run import Run
from flexure.solvers.native.stepping import accept, state_inside


def resample(run: Run, method: Static, count: int, times: Floats, out: Floats) -> int:
    """Repeat the step from ``run.time`` of the length ``run.h`` and interpolate it.

    ``run.time_new`` is the end of the step. One state per time goes to ``out``.
    """
    end = run.time_new
    run.rhs(smaller(run.time, run.clip), run.x, run.env, run.k)
    run.known = 0
    error = run.attempt(run)
    accept(run, end)
    for c in range(count):
        state_inside(run, method, times[c], out[c * run.n :])
    return 0 if error < 1.0 else 1
