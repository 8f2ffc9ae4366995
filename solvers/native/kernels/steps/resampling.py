"""The kernels that look into steps of the past: interpolants are made when they are asked for."""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import copy, smaller
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.kernels.steps.stepping import accept, place_end, state_inside
from flexure.solvers.native.language.language import Floats, Ints, Static


def resample_all(
    run: Run,
    method: Static,
    steps: int,
    spans: Floats,
    states: Floats,
    discrete: Floats,
    counts: Ints,
    times: Floats,
    out: Floats,
) -> None:
    """Look into one step after the other, each time as `resample` does.

    A step has begin, end and ``step.clip`` in the spans, and its states and discrete values at the
    begin. As many times belong to it as its count says.
    """
    step, n, m = run.step, run.system.n, run.system.m
    done = 0
    for s in range(steps):
        step.time = spans[3 * s]
        step.time_new = spans[3 * s + 1]
        step.h = step.time_new - step.time
        step.clip = spans[3 * s + 2]
        copy(n, states[s * n :], step.x)
        copy(m, discrete[s * m :], run.system.env)
        resample(run, method, counts[s], times[done:], out[done * n :])
        done += counts[s]


def resample(run: Run, method: Static, count: int, times: Floats, out: Floats) -> None:
    """Repeat the step from ``step.time`` of the length ``step.h`` and interpolate it.

    ``step.time_new`` is the end of the step. One state per time goes to ``out``.
    """
    step = run.step
    end = step.time_new
    run.system.rhs(smaller(step.time, step.clip), step.x, run.system.env, step.k)
    run.linear.known = 0
    run.system.attempt(run)
    accept(step, end)
    if run.manifold.count > 0:
        place_end(run)
    for c in range(count):
        state_inside(run, method, times[c], out[c * run.system.n :])
