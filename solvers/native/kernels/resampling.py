"""The kernels that look into steps of the past: interpolants are made when they are asked for."""

from __future__ import annotations

from flexure.solvers.native.kernels.arithmetic import copy, smaller
from flexure.solvers.native.kernels.run import Run
from flexure.solvers.native.kernels.stepping import accept, state_inside
from flexure.solvers.native.language.language import Floats, Ints, Static


def resample_all(
    run: Run, method: Static, steps: int, table: Floats, counts: Ints, times: Floats, out: Floats
) -> None:
    """Look into one step after the other, each time into ``run.time`` and so on as `resample` does.

    A row of the table holds begin and end of a step, its ``run.clip``, and then the states and
    discrete values at its begin. As many times belong to a step as its count says.
    """
    n, m = run.n, run.m
    done = 0
    for s in range(steps):
        row = s * (3 + n + m)
        run.time = table[row]
        run.time_new = table[row + 1]
        run.h = run.time_new - run.time
        run.clip = table[row + 2]
        copy(n, table[row + 3 :], run.x)
        copy(m, table[row + 3 + n :], run.env)
        resample(run, method, counts[s], times[done:], out[done * n :])
        done += counts[s]


def resample(run: Run, method: Static, count: int, times: Floats, out: Floats) -> None:
    """Repeat the step from ``run.time`` of the length ``run.h`` and interpolate it.

    ``run.time_new`` is the end of the step. One state per time goes to ``out``.
    """
    end = run.time_new
    run.rhs(smaller(run.time, run.clip), run.x, run.env, run.k)
    run.known = 0
    run.attempt(run)
    accept(run, end)
    for c in range(count):
        state_inside(run, method, times[c], out[c * run.n :])
