"""Moments of a run whose steps are all rows of loops, in which many times are looked up at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, Key
from flexure.solvers.native.runs.past_steps import StepRows
from flexure.solvers.results.records.history import History
from flexure.solvers.results.records.time_batch import Moments, Timeline
from flexure.solvers.tracing.lanes import TIME_KEY


def moments_at(history: History, context: Context, times: FloatArray) -> Moments:
    """Return a simulation at some times, moving the context that it has moved.

    ``times`` are ascending. The rows ignore times that occur twice, as for `Timeline.visit`.
    """
    rows = [part for part in history.rows() or () if isinstance(part, StepRows)]
    if not rows or times[0] < history.start or not np.all(times[:-1] < times[1:]):
        return Moments(Timeline(history), context, times)
    return _RowMoments(history, rows, context, times)


class _RowMoments(Moments):
    """Moments that are in rows of loops, between which no time passes."""

    def __init__(
        self, history: History, rows: list[StepRows], context: Context, times: FloatArray
    ) -> None:
        self._history = history
        self._rows = rows
        self._context = context
        self._times = times

    @cached_property
    def _timeline(self) -> Timeline:
        return Timeline(self._history)

    def last(self) -> Context:
        """Put the context into the last situation, in which the simulation has left it."""
        is_there = self._times[-1] == self._context.time
        return self._context if is_there else super().last()

    def lanes(self, keys: Iterable[Key]) -> dict[Key, FloatArray]:
        """Return time, and the continuous and discrete states among the inputs of a trace."""
        # At the end of a part, what the next one begins with holds.
        ends = [float(part.times[-1]) for part in self._rows]
        cuts = [0, *np.searchsorted(self._times, ends[:-1]).tolist(), len(self._times)]
        found = [
            part.look_up(start, self._times[cuts[k] : cuts[k + 1]])
            for k, (part, start) in enumerate(
                zip(self._rows, [self._history.start, *ends], strict=False)
            )
        ]
        states, discrete = (np.concatenate(each) for each in zip(*found, strict=True))
        lanes = {TIME_KEY: self._times}
        for key in keys:
            (what, where, index), component = key
            if what == STATE:
                lanes[key] = states[:, component]
            elif what == DISCRETE:
                lanes[key] = discrete[:, self._rows[0].place(where, index) + component]
        return lanes
