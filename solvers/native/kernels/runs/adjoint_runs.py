"""Kernels that go backward through the steps of a run: the exact adjoint of the steps.

A step of an explicit Runge-Kutta method computes ``k_j = f(t_j, x + h Σ_l A_jl k_l, p)`` and
``x_new = x + h Σ_j B_j k_j``. For weights λ of x_new in a number, those of x and p follow from the
stages in reverse order, where κ_j are the weights of k_j ::

    κ_j = h B_j λ_new + h Σ_{l>j} A_lj ∂fᵀ/∂x κ_l
    λ = λ_new + Σ_j ∂fᵀ/∂x κ_j,    μ = μ_new + Σ_j ∂fᵀ/∂p κ_j

A state inside of a step is ``x + h Σ_j w_j k_j`` with weights w of the interpolant. A step that an
event cut counts as one that ends there, so that no stage is beyond the event.

The stages of the diagonally implicit method, in increments z = h f, are repeated by its own kernel.
Their weights ζ follow from linear equations with the transposed Jacobian J at the stage ::

    (1 - h γ Jᵀ) ζ_j = B_j λ_new + Σ_{l>j} A_lj μ_l,    μ_j = h Jᵀ ζ_j,    λ = λ_new + Σ_j μ_j
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import NAN, copy, smaller
from flexure.solvers.native.kernels.parts.linear_solves import (
    LinearData,
    factorize,
    solve_transposed,
)
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.kernels.steps.explicit import extra_stage, stage
from flexure.solvers.native.kernels.steps.resampling import resample
from flexure.solvers.native.kernels.steps.rosenbrock import add, point
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Ints,
    Reals,
    Static,
    Structure,
    unrolled,
)

REORDERED = True


class AdjointData(Structure):
    """The equations and the memory of steps that are gone through backward."""

    n: int  # states
    m: int  # numbers by which there are derivatives
    p: int  # outputs
    rhs: Function  # f
    env: Reals
    pulled: Function  # products of weights with its derivatives
    shown: Function  # the same of the outputs, as far as they are not always zero
    reads: Ints  # the states that it reads, and
    read: int  # how many these are
    places: Ints  # what its results belong to, states or numbers behind them, and
    placed: int  # how many these are
    own: Reals  # the environment of both
    point: Floats  # a state, and weights behind it
    points: Floats  # those of the stages of a step
    k: Floats  # slopes there
    bars: Floats  # their weights
    out: Floats  # products by states, and by numbers behind them
    adjoint: Floats  # weights of the state
    slopes: Floats  # derivatives by numbers
    linear: LinearData  # the equations of stages


def go_back(
    data: AdjointData,
    run: Run,
    method: Static,
    ends: Static,
    steps: int,
    spans: Floats,
    states: Floats,
    counts: Ints,
    times: Floats,
    seeds: Floats,
    weights: Floats,
) -> None:
    """Go through steps, the last one first.

    A step has begin, end and the latest time to evaluate at in the spans, its state at the begin,
    and ends with the weights ``ends`` of its slopes. As many samples belong to it as its count
    says: each has a time, weights of the outputs in the seeds, and those of the interpolant.
    """
    n = data.n
    done = 0
    for s in range(steps):
        done += counts[s]
    for s in range(steps - 1, -1, -1):
        t, clip = spans[3 * s], spans[3 * s + 2]
        h = spans[3 * s + 1] - t
        unit = h  # of the weights
        x = states[s * n :]
        done -= counts[s]
        if method.linear:
            unit = 1.0
            repeat_step(data, run, method, t, spans[3 * s + 1], clip, x)
        else:
            find_slopes(data, method.tableau, t, h, clip, x, counts[s] > 0)
        for j in unrolled(len(ends)):
            for i in range(n):
                data.bars[j * n + i] = unit * ends[j] * data.adjoint[i]
        for c in range(done, done + counts[s]):
            seed = seeds[c * data.p :]
            look(data, len(ends), times[c], unit, x, seed, weights[c * len(ends) :])
        for j in unrolled(len(ends) - 1, -1, -1):
            if method.linear:
                pull_back_implicit(data, method.tableau, j, t, h, clip, x)
            else:
                pull_back(data, method.tableau, j, t, h, clip)


def find_slopes(
    data: AdjointData, tableau: Static, t: float, h: float, clip: float, x: Floats, inside: bool
) -> None:
    """Compute points and slopes of a step, with those that only the interpolant needs if asked."""
    for j in unrolled(len(tableau.B)):
        find_slope(data, tableau, j, t, h, clip, x)
    if inside:
        for j in unrolled(len(tableau.B), len(tableau.E) + len(tableau.C_extra)):
            find_slope(data, tableau, j, t, h, clip, x)


def find_slope(
    data: AdjointData, tableau: Static, j: Static, t: float, h: float, clip: float, x: Floats
) -> None:
    """Compute the point of a stage, and the slope there."""
    n, k = data.n, data.k
    y = data.points[j * n :]
    if j < len(tableau.E):
        stage(tableau, j, n, h, x, k, y)
    else:
        extra_stage(tableau, j - len(tableau.E), n, h, x, k, y)
    time = smaller(t + (*tableau.C, 1.0, *tableau.C_extra)[j] * h, clip)
    data.rhs(time, y, data.env, k[j * n :])


def look(
    data: AdjointData, rows: Static, time: float, h: float, x: Floats, seed: Floats, weight: Floats
) -> None:
    """Add what outputs at a time inside of a step are worth to the weights."""
    n = data.n
    for e in range(data.read):
        i = data.reads[e]
        change = 0.0
        for j in unrolled(rows):
            change += weight[j] * data.k[j * n + i]
        data.point[i] = x[i] + h * change
    copy(data.p, seed, data.point[n:])
    data.shown(time, data.point, data.own, data.out)
    for e in range(data.placed):
        i = data.places[e]
        if i < n:
            data.adjoint[i] += data.out[e]
            for j in unrolled(rows):
                data.bars[j * n + i] += h * weight[j] * data.out[e]
        else:
            data.slopes[i - n] += data.out[e]


def pull_back(
    data: AdjointData, tableau: Static, j: Static, t: float, h: float, clip: float
) -> None:
    """Add what the slope of a stage is worth to the weights of what it was computed from."""
    n = data.n
    bar = data.bars[j * n :]
    total = 0.0
    for i in range(n):
        total += abs(bar[i])
    if total == 0.0:
        return
    copy(n, data.points[j * n :], data.point)
    copy(n, bar, data.point[n:])
    time = smaller(t + (*tableau.C, 1.0, *tableau.C_extra)[j] * h, clip)
    pull(data, (*tableau.A, tableau.B, *tableau.A_extra)[j], j, time, h)


def pull(data: AdjointData, row: Static, count: Static, time: float, unit: float) -> None:
    """Add what a slope is worth, whose weights are behind the point of a stage."""
    n = data.n
    data.pulled(time, data.point, data.own, data.out)
    add(n, 1.0, data.out, data.adjoint)
    for g in unrolled(count):
        if row[g] != 0.0:
            add(n, unit * row[g], data.out, data.bars[g * n :])
    add(data.m, 1.0, data.out[n:], data.slopes)


def repeat_step(
    data: AdjointData, run: Run, method: Static, t: float, end: float, clip: float, x: Floats
) -> None:
    """Compute the increments of a step of an implicit method, in place of its slopes."""
    step, n = run.step, data.n
    step.time, step.time_new, step.h, step.clip = t, end, end - t, clip
    copy(n, x, step.x)
    resample(run, method, 0, step.work, step.work)
    copy(method.tableau.stages * n, step.k[n:], data.k)


def pull_back_implicit(
    data: AdjointData, tableau: Static, j: Static, t: float, h: float, clip: float, x: Floats
) -> None:
    """Add what the increment of a stage is worth to the weights of what it was computed from."""
    n, linear = data.n, data.linear
    bar = data.bars[j * n :]
    point(tableau.A, j, n, x, data.k, data.point)
    time = smaller(t + tableau.alpha[j] * h, clip)
    if j > 0:
        d = 1.0 / (tableau.gamma * h)
        add(n, tableau.gamma, data.k[j * n :], data.point)
        linear.jacobian(time, data.point, data.env, linear.entries)
        if not factorize(linear, linear.factors, n, 0, d):
            d = NAN
        for i in range(n):
            bar[i] *= d
        solve_transposed(linear, bar)
    for i in range(n):
        data.point[n + i] = h * bar[i]
    pull(data, tableau.A[j], j, time, 1.0)
