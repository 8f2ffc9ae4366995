"""Inputs that follow measured values along a motion."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.native.runs.sensitivity_run import Line

_STRAIGHT = 1e-12  # of the values: less of a bend is rounding


@dataclass(frozen=True, eq=False)
class Drive:
    """Free input ports that follow straight lines between given points."""

    slot: int  # the slot of the port
    times: FloatArray  # instants of the points, shape (k,)
    values: FloatArray  # the points, shape (k, size)
    _bends: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ways = np.diff(self.values, axis=0)
        lengths = np.diff(self.times)[:, np.newaxis]
        turn = np.abs(ways[1:] - ways[:-1] * lengths[1:] / lengths[:-1])
        bends = np.any(turn > _STRAIGHT * np.max(np.abs(self.values)), axis=1)
        object.__setattr__(self, "_bends", self.times[1:-1][bends])

    def line(self, time: float) -> Line:
        """Return the value at a time, and how it goes on from there."""
        last = len(self.times) - 2
        k = min(max(int(np.searchsorted(self.times, time, side="right")) - 1, 0), last)
        span, way = self.times[k + 1] - self.times[k], self.values[k + 1] - self.values[k]
        return Line(self.slot, self.values[k] + (time - self.times[k]) / span * way, way / span)

    def apply(self, store: Store, time: float) -> None:
        """Fix the port at the value of a time."""
        value = self.line(time).base
        if not (store.holds(self.slot) and np.array_equal(store.cache[self.slot], value)):
            store.fix(self.slot, freeze(value))

    def next_bend(self, time: float) -> float:
        """Return the next instant at which the line bends."""
        k = int(np.searchsorted(self._bends, time, side="right"))
        return float(self._bends[k]) if k < len(self._bends) else math.inf
