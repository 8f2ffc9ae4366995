"""Moments: a simulation at many times at once, as the situations of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, Key
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.polynomials import (
    CHECK,
    CHECK_WEIGHTS,
    COARSE,
    NODES,
    ROUGH,
    SHORTEST,
    TOLERANCE,
)
from flexure.solvers.results.records.history import History, changes
from flexure.solvers.tracing.lanes import TIME_KEY

#: Indices, of pieces or of steps.
Indices = npt.NDArray[np.intp]


class Timeline:
    """The pieces of a history laid end to end, to look up many times together."""

    def __init__(self, history: History) -> None:
        self._ledger = ledger = history.ledger()
        self._times, self._first = ledger.times, ledger.first
        self._final = np.append(self._first[1:], len(self._times)) - 1

    def lanes(self, times: FloatArray, keys: Iterable[Key]) -> dict[Key, FloatArray]:
        """Return the values of the inputs of a trace at some ascending times.

        Times are as for `visit`, shape (k,): twice in a row for before and after. Keys are sorted;
        those of parameters and inputs, which do not move, are ignored. The arrays have the shape
        (k,): time, just before an end at which equations jump, and the states among the keys.
        """
        piece = self._pieces_at(times)
        lanes = {TIME_KEY: np.minimum(times, self._ledger.limits[piece])}
        changed = changes(piece)
        begins, visit = self._first[piece[changed]], np.cumsum(changed) - 1
        for (what, where, index), family in groupby(keys, itemgetter(0)):
            members = list(family)
            components = np.array([component for _, component in members])
            if what == STATE:
                rows = self._states_at(times, piece, components)
            elif what == DISCRETE:
                held = [
                    source.held(rows, where, index, components)
                    for source, rows, _ in self._ledger.by_source(begins)
                ]
                rows = np.concatenate(held).T[:, visit]
            else:
                continue
            lanes |= zip(members, rows, strict=True)
        return lanes

    def _pieces_at(self, times: FloatArray) -> Indices:
        """Return which piece answers for each time."""
        starts = self._times[self._first]
        piece = np.searchsorted(starts, times, side="right") - 1
        before = np.append(times[1:] == times[:-1], False)
        piece -= before & (piece > 0) & (starts[piece] == times)
        return np.asarray(np.maximum(piece, 0))

    def _rows_at(self, times: FloatArray, piece: Indices) -> tuple[Indices, npt.NDArray[np.bool_]]:
        """Return the rows at or else behind times, and which of them are at them."""
        first, final = self._first[piece], self._final[piece]
        row = np.clip(np.searchsorted(self._times, times, side="right") - 1, first, final)
        at = (self._times[row] == times) | (first == final)
        return np.where(at, row, np.minimum(row + 1, final)), at

    def _states_at(self, times: FloatArray, piece: Indices, components: Indices) -> FloatArray:
        """Return components of the continuous state, one row for each, a column for each time."""
        row, at = self._rows_at(times, piece)
        states = np.empty((len(components), len(times)))
        for source, rows, k in self._ledger.by_source(row):
            here, known = states[:, k], at[k]
            if known.any():
                here[:, known] = source.states(rows[known])[:, components].T
            if not known.all():
                inner, between = rows[~known], times[k][~known]
                first = np.flatnonzero(changes(inner))
                counts = np.diff(first, append=len(inner))
                here[:, ~known] = source.inside(inner[first], counts, between)[:, components].T
        return states

    def visit(self, context: Context, times: FloatArray) -> Iterator[None]:
        """Put a context of the same system into the situation at each of the times in turn.

        A time that occurs twice in a row means before and after; a single time at which something
        jumps means after.
        """
        pieces = self._pieces_at(times)
        rows, at = self._rows_at(times, pieces)
        current = -1
        for k, (time, piece) in enumerate(zip(times.tolist(), pieces.tolist(), strict=True)):
            if piece != current:
                self._ledger.snapshot(self._first[piece]).restore(context)
                current = piece
            ((source, row, _),) = self._ledger.by_source(rows[k : k + 1])
            if at[k]:
                x = source.state(int(row[0]))
            else:
                x = freeze(np.array(source.interpolant(int(row[0]))(time)))
            context.store.set_motion(min(time, float(self._ledger.limits[piece])), x)
            yield


class Moments:
    """A root context in the situations of a simulation at some times.

    The context has the parameters and inputs of the simulation, and is moved; times are ascending.
    """

    def __init__(self, timeline: Timeline, context: Context, times: FloatArray) -> None:
        self._timeline = timeline
        self._context = context
        self._times = times

    @property
    def store(self) -> Store:
        """Where parameters and inputs are."""
        return self._context.store

    def __len__(self) -> int:
        return len(self._times)

    def __iter__(self) -> Iterator[Context]:
        for _ in self._timeline.visit(self._context, self._times):
            yield self._context

    def last(self) -> Context:
        """Put the context into the last situation."""
        for _ in self._timeline.visit(self._context, self._times[-1:]):
            pass
        return self._context

    def lanes(self, keys: Iterable[Key]) -> dict[Key, FloatArray]:
        """Return time, and the continuous and discrete states among the inputs of a trace."""
        return self._timeline.lanes(self._times, keys)


_PLACES = 0.5 * (1.0 + np.array([*NODES[:-2], CHECK, *NODES[-2:]]))
_PARTS = 0.5 * (1.0 + np.array(NODES)[:, np.newaxis])
_STILL = 4.0  # spacings of time, over which nothing moves, as in simulations
_FEW = 1000  # pieces that may be halved at once, beside two in each step
_MANY = 20_000  # more of them, where a signal is missed by more than `COARSE`
_AT_ONCE = 5_000  # pieces, which bounds the memory for them


def dense_signals(
    grid: FloatArray, read: Callable[[FloatArray], Sequence[FloatArray]], paths: Sequence[str]
) -> DenseOutput:
    """Return signals in all steps of a run as polynomials, for metrics that rest on the run.

    A piece is halved where the polynomial through its nodes misses a signal at one point more, as
    where the signal bends or jumps inside of a step. The shortest pieces of a jump are straight, so
    that no value is beyond those before and after.

    Instants with jumps occur twice in the grid. ``read`` returns the signals, of ``paths``, at
    ascending times, each of shape (k,) or (k, size); a time that occurs twice in a row means before
    and after. A signal that is too fast for that is rough, and a warning names it.
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
            missed = np.abs(predicted - check)
            misses = np.any(missed > TOLERANCE * scale, axis=1)
        middle = 0.5 * (begin + end)
        divisible = (end - begin > shortest) & (begin < middle) & (middle < end)
        jumps = misses & ~divisible
        values[jumps] = (1.0 - _PARTS) * values[jumps, :1] + _PARTS * values[jumps, -1:]
        halved = misses & divisible
        if np.sum(halved) > most:  # smooth nowhere, or much faster than the steps
            again = _look(read, begin + (end - begin) * (0.5 * (1.0 - CHECK)))
            with np.errstate(invalid="ignore", divide="ignore"):
                predicted = sum(w * values[:, -1 - k] for k, w in enumerate(CHECK_WEIGHTS))
                part = np.fmax(missed, np.abs(predicted - again)) / scale
            halved &= np.any(part > COARSE, axis=1)
            if np.sum(halved) > most + _MANY:
                rough = np.sum(part > ROUGH, axis=0)
                if rough.any():
                    columns = np.repeat(paths, [each.size for each in read(begin[:1])])
                    warn_of_rough(columns[np.argmax(rough)])
                halved[:] = False
        found.append((begin[~halved], end[~halved], values[~halved]))
        middle = middle[halved]
        begin = np.column_stack([begin[halved], middle]).ravel()
        end = np.column_stack([middle, end[halved]]).ravel()
        shortest = np.repeat(shortest[halved], 2)
    begin, end, values = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(begin, kind="stable")
    first = np.array([0, len(order)])
    return DenseOutput(begin[order], end[order], first, values[order])


def warn_of_rough(path: str) -> None:
    """Warn of a signal that does more in a step than pieces of it can show."""
    warn(
        f"'{path}' changes so often within the steps of a run that metrics of it, such as extremes "
        "and integrals, are rough. Pass a shorter max_step="
    )


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
