"""Moments: a simulation at many times at once, as the situations of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from flexure.diagrams.context import Context
from flexure.diagrams.store import Store
from flexure.diagrams.values import FloatArray
from flexure.solvers.results.history import History, interpolate
from flexure.solvers.tracing.lanes import TIME_KEY
from flexure.solvers.tracing.trace import DISCRETE, STATE, Key

#: Indices, of pieces or of steps.
Indices = npt.NDArray[np.intp]


class Timeline:
    """The pieces of a history laid end to end, to look up many times together.

    Parameters
    ----------
    history : History
        What a simulation went through, to its end.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        pieces = history.pieces
        counts = np.array([len(piece.times) for piece in pieces])
        self._final = np.cumsum(counts) - 1
        self._first = self._final - counts + 1
        self._times = np.array([time for piece in pieces for time in piece.times])
        self._states = [x for piece in pieces for x in piece.states]
        self._interpolants = [f for piece in pieces for f in piece.interpolants]
        self._limits = np.array([piece.last for piece in pieces])

    def lanes(self, times: FloatArray, keys: Iterable[Key]) -> dict[Key, FloatArray]:
        """Return what inputs of a trace stand for at some ascending times.

        Parameters
        ----------
        times : ndarray, shape (k,)
            As for `History.visit`, twice in a row for before and after.
        keys : iterable of Key
            Sorted; those of parameters and inputs, which do not move, are ignored.

        Returns
        -------
        dict
            Arrays of shape (k,): time, just before an end at which equations jump, and the
            continuous and discrete states among the keys.
        """
        piece = self._pieces_at(times)
        lanes = {TIME_KEY: np.minimum(times, self._limits[piece])}
        visited, visit = np.unique(piece, return_inverse=True)
        snapshots = [self.history.pieces[k].snapshot for k in visited.tolist()]
        for (what, where, index), family in groupby(keys, itemgetter(0)):
            members = list(family)
            components = np.array([component for _, component in members])
            if what == STATE:
                rows = self._states_at(times, piece, components)
            elif what == DISCRETE:
                held = np.array([snapshot.discrete[where][index] for snapshot in snapshots])
                rows = held[:, components].T[:, visit]
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

    def _states_at(self, times: FloatArray, piece: Indices, components: Indices) -> FloatArray:
        """Return components of the continuous state, one row for each, a column for each time."""
        step = np.searchsorted(self._times, times, side="right") - 1
        step = np.clip(step, self._first[piece], self._final[piece])
        is_step = self._times[step] == times
        rows = np.empty((len(components), len(times)))
        if is_step.any():
            known = np.array([self._states[k] for k in step[is_step].tolist()])
            rows[:, is_step] = known[:, components].T
        if not is_step.all():
            # A piece has one interpolant less than it has times.
            inside = (np.minimum(step, self._final[piece] - 1) - piece)[~is_step]
            which, counts = np.unique(inside, return_counts=True)
            steps = [self._interpolants[k] for k in which.tolist()]
            rows[:, ~is_step] = interpolate(steps, counts, times[~is_step])[:, components].T
        return rows


class Moments:
    """A root context in the situations of a simulation at some times.

    Parameters
    ----------
    timeline : Timeline
        What the simulation went through.
    context : Context
        A root context with the parameters and inputs of the simulation, to be moved.
    times : ndarray
        Ascending, within the simulation.
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
        for _ in self._timeline.history.visit(self._context, self._times):
            yield self._context

    def last(self) -> Context:
        """Put the context into the last situation."""
        for _ in self._timeline.history.visit(self._context, self._times[-1:]):
            pass
        return self._context

    def lanes(self, keys: Iterable[Key]) -> dict[Key, FloatArray]:
        """Return time, and the continuous and discrete states among the inputs of a trace."""
        return self._timeline.lanes(self._times, keys)


__all__ = ["Moments", "Timeline"]
