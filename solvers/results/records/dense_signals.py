"""Signals of a run as polynomials over pieces of its steps, for metrics that rest on the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.polynomials import (
    CHECK,
    CHECK_WEIGHTS,
    NODES,
    SHORTEST,
    TOLERANCE,
)

_PLACES = 0.5 * (1.0 + np.array([*NODES[:-2], CHECK, *NODES[-2:]]))
_STILL = 4.0  # spacings of time, over which nothing moves, as in simulations
_FEW = 1000  # pieces that may be halved at once, beside two in each step
_AT_ONCE = 5_000  # pieces, which bounds the memory for them


def dense_signals(
    grid: FloatArray, read: Callable[[FloatArray], Sequence[FloatArray]]
) -> DenseOutput:
    """Return signals in all steps of a run.

    A piece is halved where the polynomial through its nodes misses a signal at one point more, as
    where the signal bends or jumps inside of a step.

    Instants with jumps occur twice in the grid. ``read`` returns the signals at ascending times,
    each of shape (k,) or (k, size); a time that occurs twice in a row means before and after.
    """
    steps = np.flatnonzero(np.diff(grid) > _STILL * np.spacing(np.abs(grid[:-1])))
    if not len(steps):
        values = np.repeat(_look(read, grid[-1:])[:, np.newaxis], len(NODES), axis=1)
        return DenseOutput(grid[-1:], grid[-1:], np.array([0, 1]), values)
    begin, end = grid[steps], grid[steps + 1]
    shortest = SHORTEST * (end - begin)
    scale, found, most = 0.0, [], _FEW + 2 * len(steps)
    while len(begin):
        values, check = _values(begin, end, read)
        with np.errstate(invalid="ignore"):
            scale = np.fmax(scale, np.fmax.reduce(np.abs(values), axis=(0, 1)))
            predicted = sum(w * values[:, k] for k, w in enumerate(CHECK_WEIGHTS))
            misses = np.any(np.abs(predicted - check) > TOLERANCE * scale, axis=1)
        middle = 0.5 * (begin + end)
        halved = misses & (end - begin > shortest) & (begin < middle) & (middle < end)
        halved &= np.sum(halved) <= most  # or it is smooth nowhere
        found.append((begin[~halved], end[~halved], values[~halved]))
        middle = middle[halved]
        begin = np.column_stack([begin[halved], middle]).ravel()
        end = np.column_stack([middle, end[halved]]).ravel()
        shortest = np.repeat(shortest[halved], 2)
    begin, end, values = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(begin, kind="stable")
    first = np.array([0, len(order)])
    return DenseOutput(begin[order], end[order], first, values[order])


def _values(
    begin: FloatArray, end: FloatArray, read: Callable[[FloatArray], Sequence[FloatArray]]
) -> tuple[FloatArray, FloatArray]:
    """Return signals at the nodes of pieces, before what jumps at their ends, and at the checks."""
    parts = []
    for k in range(0, len(begin), _AT_ONCE):
        low, high = (each[k : k + _AT_ONCE, np.newaxis] for each in (begin, end))
        times = np.minimum(low + (high - low) * _PLACES, high)
        times = np.hstack([times, high])  # once more, for after
        parts.append(_look(read, times.ravel()).reshape(*times.shape, -1))
    values = np.concatenate(parts)
    place = len(NODES) - 2
    return np.delete(values[:, :-1], place, axis=1), values[:, place]


def _look(read: Callable[[FloatArray], Sequence[FloatArray]], times: FloatArray) -> FloatArray:
    """Return all components of signals at some times, shape (k, W)."""
    columns = [each.reshape(len(times), -1) for each in read(times)]
    return np.concatenate([np.empty((len(times), 0)), *columns], axis=1)
