"""The kernels that look into steps of the past: interpolants are made when they are asked for."""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import copy, smaller
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.kernels.steps.stepping import accept, place_end, state_inside
from flexure.solvers.native.language.language import Floats, Ints, Static

# What rows do that are retraced
GIVEN = 0  # nothing: their state is known
SAME = 1  # keep the state before them
STEPPED = 2  # end a step


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
    n, m = run.system.n, run.system.m
    done = 0
    for s in range(steps):
        set_back(run, spans[3 * s :], states[s * n :], discrete[s * m :])
        resample(run, method, counts[s], times[done:], out[done * n :])
        done += counts[s]


def retrace_all(
    run: Run,
    method: Static,
    rows: int,
    spans: Floats,
    discrete: Floats,
    ways: Ints,
    times: Floats,
    states: Floats,
) -> None:
    """Compute the states at the times of rows, each from the one before; the first one is known.

    A row that ends a step, at some time inside of it or at its end, has the entries of
    `resample_all`.
    """
    n, m = run.system.n, run.system.m
    for r in range(rows):
        if ways[r] == SAME:
            copy(n, states[r * n :], states[(r + 1) * n :])
        if ways[r] == STEPPED:
            set_back(run, spans[3 * r :], states[r * n :], discrete[r * m :])
            resample(run, method, 1, times[r:], states[(r + 1) * n :])


def set_back(run: Run, span: Floats, x: Floats, discrete: Floats) -> None:
    """Go back to the beginning of a step."""
    step = run.step
    step.time, step.time_new, step.clip = span[0], span[1], span[2]
    step.h = step.time_new - step.time
    copy(run.system.n, x, step.x)
    copy(run.system.m, discrete, run.system.env)


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
