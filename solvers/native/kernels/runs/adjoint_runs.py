"""Kernels that go backward through the steps of a run: the exact adjoint of the steps.

A step of an explicit Runge-Kutta method computes ``k_j = f(t_j, x + h Σ_l A_jl k_l, p)`` and
``x_new = x + h Σ_j B_j k_j``. For weights λ of x_new in a number, those of x and p follow from the
stages in reverse order, where κ_j are the weights of k_j ::

    κ_j = h B_j λ_new + h Σ_{l>j} A_lj ∂fᵀ/∂x κ_l
    λ = λ_new + Σ_j ∂fᵀ/∂x κ_j,    μ = μ_new + Σ_j ∂fᵀ/∂p κ_j

A state inside of a step is ``x + h Σ_j w_j k_j`` with weights w of the interpolant, and so are
those at the ends of steps that events cut.
"""

from __future__ import annotations

from flexure.solvers.native.kernels.parts.arithmetic import copy, smaller
from flexure.solvers.native.kernels.steps.explicit import extra_stage, stage
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
    k: Floats  # slopes of a step
    bars: Floats  # their weights
    out: Floats  # products by states, and by numbers behind them
    adjoint: Floats  # weights of the state
    slopes: Floats  # derivatives by numbers


def go_back(
    data: AdjointData,
    tableau: Static,
    rows: Static,
    ends: Static,
    steps: int,
    spans: Floats,
    states: Floats,
    cuts: Ints,
    counts: Ints,
    times: Floats,
    seeds: Floats,
    weights: Floats,
) -> None:
    """Go through steps, the last one first.

    A step has begin, end and the latest time to evaluate at in the spans, and its state at the
    begin. As many samples belong to it as its count says: each has a time, weights of the outputs
    in the seeds, and those of the interpolant. A step that was cut has further weights of the
    interpolant, in the row that ``cuts`` says; -1 stands for none.
    """
    n, rows = data.n, len(tableau.E) + len(tableau.C_extra)
    done = 0
    for s in range(steps):
        done += counts[s]
    for s in range(steps - 1, -1, -1):
        t, clip = spans[3 * s], spans[3 * s + 2]
        h = spans[3 * s + 1] - t
        x = states[s * n :]
        done -= counts[s]
        find_slopes(data, tableau, t, h, clip, x, counts[s] > 0 or cuts[s] >= 0)
        for j in unrolled(rows):
            share = weights[cuts[s] * rows + j] if cuts[s] >= 0 else ends[j]
            for i in range(n):
                data.bars[j * n + i] = h * share * data.adjoint[i]
        for c in range(done, done + counts[s]):
            look(data, rows, times[c], h, x, seeds[c * data.p :], weights[c * rows :])
        for j in unrolled(rows - 1, -1, -1):
            pull_back(data, tableau, j, t, h, clip, x)


def find_slopes(
    data: AdjointData, tableau: Static, t: float, h: float, clip: float, x: Floats, inside: bool
) -> None:
    """Compute the slopes of a step, with those that only the interpolant needs if asked for."""
    n, y, k = data.n, data.point, data.k
    data.rhs(smaller(t, clip), x, data.env, k)
    for j in unrolled(1, len(tableau.B)):
        stage(tableau, j, n, h, x, k, y)
        data.rhs(smaller(t + tableau.C[j] * h, clip), y, data.env, k[j * n :])
    if inside:
        for j in unrolled(len(tableau.B), len(tableau.E) + len(tableau.C_extra)):
            stage_point(data, tableau, j, h, x)
            time = smaller(t + (*tableau.C, 1.0, *tableau.C_extra)[j] * h, clip)
            data.rhs(time, y, data.env, k[j * n :])


def stage_point(data: AdjointData, tableau: Static, j: Static, h: float, x: Floats) -> None:
    """Compute the point of a stage."""
    if j < len(tableau.E):
        stage(tableau, j, data.n, h, x, data.k, data.point)
    else:
        extra_stage(tableau, j - len(tableau.E), data.n, h, x, data.k, data.point)


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
    data: AdjointData, tableau: Static, j: Static, t: float, h: float, clip: float, x: Floats
) -> None:
    """Add what the slope of a stage is worth to the weights of what it was computed from."""
    n, m = data.n, data.m
    bar = data.bars[j * n :]
    total = 0.0
    for i in range(n):
        total += abs(bar[i])
    if total == 0.0:
        return
    stage_point(data, tableau, j, h, x)
    copy(n, bar, data.point[n:])
    time = smaller(t + (*tableau.C, 1.0, *tableau.C_extra)[j] * h, clip)
    data.pulled(time, data.point, data.own, data.out)
    for i in range(n):
        data.adjoint[i] += data.out[i]
    for g in unrolled(j):
        share = (*tableau.A, tableau.B, *tableau.A_extra)[j][g]
        if share != 0.0:
            for i in range(n):
                data.bars[g * n + i] += h * share * data.out[i]
    for i in range(m):
        data.slopes[i] += data.out[n + i]
