"""What a simulation went through: continuous pieces with the discrete values that held in them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.context import Context
from flexure.diagrams.values import FloatArray, freeze
from flexure.solvers.results.free_memory import free_memory

#: Interpolates the state inside of one integrator step.
Interpolant = Callable[[Any], FloatArray]


# Bytes, as measured; what is small is not compared with the free memory.
_STEP, _DENSE_STEP, _PIECE, _LEAF = 330.0, 300.0, 900.0, 150.0
_SMALL = 2.0**26
_SELDOM = 1024  # steps between two looks at their size


@dataclass(frozen=True)
class Unmoved:
    """The interpolant of a state that does not move."""

    x: FloatArray

    def __call__(self, time: Any) -> FloatArray:
        """Return the state at a time, shape (n,), or at k times, shape (n, k)."""
        times = np.asarray(time)
        return self.x if times.ndim == 0 else np.repeat(self.x[:, None], times.size, axis=1)


def interpolate(
    interpolants: Sequence[Interpolant], counts: NDArray[np.intp], times: FloatArray
) -> FloatArray:
    """Return the states at k times, shape (k, n), the first so many of which are in the first step.

    Native steps with a maker in common are repeated by one call.
    """
    ends = np.cumsum(counts).tolist()
    starts = [0, *ends]
    parts = []
    for maker, group in groupby(
        range(len(interpolants)), lambda k: getattr(interpolants[k], "maker", None)
    ):
        if maker is None:
            parts += [np.asarray(interpolants[k](times[starts[k] : ends[k]])).T for k in group]
            continue
        first, *others = group
        steps = slice(first, (others or [first])[-1] + 1)
        span = slice(starts[first], ends[steps.stop - 1])
        parts.append(maker.states(interpolants[steps], counts[steps], times[span]))
    return np.concatenate(parts)


@dataclass
class Snapshot:
    """Discrete and abstract state of all blocks at one instant."""

    discrete: list[list[Any]]
    abstract: list[list[Any]]

    @classmethod
    def of(cls, context: Context) -> Snapshot:
        """Take a snapshot; values are immutable, so only the lists are copied."""
        leaves = context.store.leaves
        return cls([list(k.discrete) for k in leaves], [list(k.abstract) for k in leaves])

    def restore(self, context: Context) -> None:
        """Put the values into a context of the same system."""
        for leaf, discrete, abstract in zip(
            context.store.leaves, self.discrete, self.abstract, strict=True
        ):
            leaf.discrete = list(discrete)
            leaf.abstract = list(abstract)
        context.store.changed(~0)


@dataclass
class Piece:
    """A stretch of time without updates.

    Attributes
    ----------
    times : list of float
        Accepted step times, first and last included.
    states : list of ndarray
        Continuous state at these times.
    interpolants : list of callable
        One per step.
    snapshot : Snapshot
        Discrete and abstract state during the stretch.
    last : float
        Time to evaluate at instead of the end; just before it when equations jump there.
    """

    times: list[float]
    states: list[FloatArray]
    snapshot: Snapshot
    interpolants: list[Interpolant] = field(default_factory=list)
    last: float = np.inf

    def state(self, time: float) -> FloatArray:
        """Return the continuous state at a time of this stretch."""
        k = bisect_right(self.times, time) - 1
        if k >= 0 and self.times[k] == time:
            return self.states[k]
        if not self.interpolants:
            return self.states[0]
        k = min(max(k, 0), len(self.interpolants) - 1)
        x: FloatArray = freeze(np.array(self.interpolants[k](time)))
        return x


class History:
    """The pieces of a run in order; neighbors share the time at which an update took place.

    Parameters
    ----------
    context : Context
        The root context at the start.
    limit : float, optional
        Memory that it may take, in bytes; half of what is free when it is first large if omitted.

    Attributes
    ----------
    size : float
        Memory that it takes, in bytes, as an estimate.
    """

    def __init__(self, context: Context, limit: float | None = None) -> None:
        self.pieces: list[Piece] = []
        self.size = 0.0
        self._limit = limit
        self._room = min(_SMALL, math.inf if limit is None else limit)  # until the next look
        self._steps = 0
        self._step_size = 0.0
        values = [value.nbytes for leaf in context.store.leaves for value in leaf.discrete]
        self._piece_size = _PIECE + _LEAF * len(context.store.leaves) + sum(values)
        self.begin(context)

    def begin(self, context: Context) -> None:
        """Begin a new piece with the present values."""
        self.begin_with(context.store.time, context.store.x, Snapshot.of(context))

    def begin_with(self, time: float, x: FloatArray, snapshot: Snapshot) -> None:
        """Begin a new piece with given values."""
        last = self.pieces[-1] if self.pieces else None
        if last is not None and len(last.times) == 1 and last.times[0] == time:
            self.pieces.pop()
        else:
            self.size += self._piece_size
        self.pieces.append(Piece([time], [x], snapshot))

    def extend(self, time: float, x: FloatArray, interpolant: Interpolant) -> None:
        """Append one step to the current piece."""
        piece = self.pieces[-1]
        piece.times.append(time)
        piece.states.append(x)
        piece.interpolants.append(interpolant)
        if self._steps % _SELDOM == 0:
            self._step_size = _size_of_step(x, interpolant)
        self._steps += 1
        self.size += self._step_size

    @property
    def is_full(self) -> bool:
        """Whether it takes more memory than it may."""
        if self.size <= self._room:
            return False
        if self._limit is None:
            self._limit = 0.5 * (free_memory() + self.size)
        self._room = self._limit
        return self.size > self._limit

    @property
    def limit(self) -> float:
        """Memory that it may take, in bytes, as far as that is known."""
        return math.inf if self._limit is None else self._limit

    def end_before(self, time: float) -> None:
        """Say that equations jump at the end of the current piece."""
        self.pieces[-1].last = time

    @property
    def start(self) -> float:
        """First time."""
        return self.pieces[0].times[0]

    @property
    def end(self) -> float:
        """Last time."""
        return self.pieces[-1].times[-1]

    def grid(self, refine: int = 1) -> FloatArray:
        """Return the step times, with ``refine - 1`` points inside of each step.

        Times at which something jumps occur twice: before and after.
        """
        parts = []
        for piece in self.pieces:
            times = np.array(piece.times)
            if refine > 1 and len(times) > 1:
                fractions = np.arange(refine) / refine
                inner = (times[:-1, None] + np.diff(times)[:, None] * fractions).ravel()
                times = np.append(inner, times[-1])
            parts.append(times)
        return np.concatenate(parts)

    def visit(self, context: Context, times: FloatArray) -> Iterator[int]:
        """Put a context of the same system into the situation at each of the times in turn.

        A time that occurs twice in a row stands for before and after; a single time at which
        something jumps stands for after.

        Yields
        ------
        int
            Index into ``times``.
        """
        current: Piece | None = None
        for index, piece in self._assign(times):
            if piece is not current:
                piece.snapshot.restore(context)
                current = piece
            time = float(times[index])
            context.store.set_motion(min(time, piece.last), piece.state(time))
            yield index

    def _assign(self, times: FloatArray) -> Iterator[tuple[int, Piece]]:
        """Pair each time with the piece that answers for it."""
        starts = [piece.times[0] for piece in self.pieces]
        for index, time in enumerate(times):
            k = bisect_right(starts, time) - 1
            repeated = index + 1 < len(times) and times[index + 1] == time
            if repeated and k > 0 and self.pieces[k].times[0] == time:
                k -= 1
            yield index, self.pieces[max(k, 0)]


def _size_of_step(x: FloatArray, interpolant: Interpolant) -> float:
    """Estimate the memory that a step takes, in bytes."""
    held = getattr(interpolant, "__dict__", None)
    if held is None or isinstance(interpolant, Unmoved):  # which share their states
        return _STEP + x.nbytes
    arrays = [value.nbytes for value in held.values() if isinstance(value, np.ndarray)]
    return _STEP + x.nbytes + _DENSE_STEP + sum(arrays)
