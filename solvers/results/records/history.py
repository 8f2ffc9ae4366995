"""The history of a simulation: continuous pieces with their discrete values."""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray, freeze

#: Interpolates the state inside of one integrator step.
Interpolant = Callable[[Any], FloatArray]


# Bytes, as measured; what is small is not compared with the free memory.
_STEP, _DENSE_STEP, _PIECE, _LEAF = 330.0, 300.0, 900.0, 150.0
_SMALL = 2.0**26
_SELDOM = 1024  # steps between two looks at their size
_FEW = 16  # rows that are as quickly made objects


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
    """A stretch of time without updates."""

    times: list[float]  # accepted step times, first and last included
    states: list[FloatArray]  # continuous state at these times
    snapshot: Snapshot  # discrete and abstract state during the stretch
    interpolants: list[Interpolant] = field(default_factory=list)  # one per step
    # Time to evaluate at instead of the end; just before it when equations jump there.
    last: float = np.inf

    def append(self, time: float, x: FloatArray, interpolant: Interpolant) -> None:
        """Append one step."""
        self.times.append(time)
        self.states.append(x)
        self.interpolants.append(interpolant)

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


class Rows(Protocol):
    """Pieces as rows: each of them begins a piece or ends a step.

    The first ones may end steps of a piece that began before. Rows are named by their numbers here,
    which ascend where there are several.
    """

    times: FloatArray
    begins: NDArray[np.bool_]
    limits: FloatArray  # the last time to evaluate at where equations jump at the row, or infinity
    size: float  # in bytes

    def state(self, row: int) -> FloatArray:
        """Return the continuous state of a row."""

    def states(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the continuous states of k rows, shape (k, n)."""

    def interpolant(self, row: int) -> Interpolant:
        """Return what interpolates the step that ends with a row."""

    def inside(
        self, rows: NDArray[np.intp], counts: NDArray[np.intp], times: FloatArray
    ) -> FloatArray:
        """Return the states at k times, shape (k, n), so many of which are in each step."""

    def clips(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the latest times to evaluate at in the steps that end with k rows, shape (k,)."""

    def snapshot(self, row: int) -> Snapshot:
        """Return what holds in the piece that a row begins."""

    def held(
        self, rows: NDArray[np.intp], leaf: int, group: int, components: NDArray[np.intp]
    ) -> FloatArray:
        """Return components of a discrete group in the pieces that k rows begin, shape (k, c)."""

    def thin(self) -> float:
        """Keep few states, and compute the others when they are asked for; return bytes less."""


class _PieceRows:
    """Pieces that are objects, as rows."""

    size = 0.0

    def __init__(self, pieces: list[Piece]) -> None:
        counts = np.array([len(piece.times) for piece in pieces])
        self.times = np.array([time for piece in pieces for time in piece.times])
        self.begins = np.zeros(len(self.times), dtype=bool)
        self.begins[np.cumsum(counts) - counts] = True
        self.limits = np.full(len(self.times), np.inf)
        self.limits[np.cumsum(counts) - 1] = [piece.last for piece in pieces]
        self._piece: NDArray[np.intp] = np.cumsum(self.begins) - 1
        self._pieces = pieces
        self._states = [x for piece in pieces for x in piece.states]
        self._interpolants = [f for piece in pieces for f in piece.interpolants]

    def state(self, row: int) -> FloatArray:
        return self._states[row]

    def states(self, rows: NDArray[np.intp]) -> FloatArray:
        return np.array([self._states[row] for row in rows.tolist()])

    def interpolant(self, row: int) -> Interpolant:
        # A piece has one interpolant less than it has times.
        return self._interpolants[row - int(self._piece[row]) - 1]

    def inside(
        self, rows: NDArray[np.intp], counts: NDArray[np.intp], times: FloatArray
    ) -> FloatArray:
        return interpolate([self.interpolant(row) for row in rows.tolist()], counts, times)

    def clips(self, rows: NDArray[np.intp]) -> FloatArray:
        steps = (None if self.begins[row] else self.interpolant(row) for row in rows.tolist())
        return np.array([getattr(step, "clip", np.inf) for step in steps])

    def snapshot(self, row: int) -> Snapshot:
        return self._pieces[int(self._piece[row])].snapshot

    def held(
        self, rows: NDArray[np.intp], leaf: int, group: int, components: NDArray[np.intp]
    ) -> FloatArray:
        found = [self.snapshot(row).discrete[leaf][group] for row in rows.tolist()]
        return np.array(found)[:, components]

    def thin(self) -> float:
        return 0.0


class Ledger(NamedTuple):
    """All rows of a history, those of one source after those of the other."""

    sources: list[Rows]
    # The rows that count, numbered through all sources: not those of pieces that others replace at
    # the same instant.
    kept: NDArray[np.intp]
    times: FloatArray  # of the rows that count
    first: NDArray[np.intp]  # which of these begin pieces
    limits: FloatArray  # times to evaluate at instead of the ends of the pieces, as `Piece.last`
    ends: NDArray[np.intp]  # how many rows there are up to the end of each source

    def by_source(self, rows: NDArray[np.intp]) -> Iterator[tuple[Rows, NDArray[np.intp], slice]]:
        """Cut ascending rows that count into those of each source, numbered as there.

        The slice has their places among the rows that were given.
        """
        rows = self.kept[rows]
        if len(self.sources) == 1:
            yield self.sources[0], rows, slice(0, len(rows))
            return
        sources = np.searchsorted(self.ends, rows, side="right")
        starts = np.flatnonzero(changes(sources))
        present = sources[starts].tolist()
        for k, start, end in zip(present, starts, [*starts[1:], len(rows)], strict=True):
            source = self.sources[k]
            yield source, rows[start:end] - (self.ends[k] - len(source.times)), slice(start, end)

    def states(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the continuous states of k ascending rows that count, shape (k, n)."""
        return np.concatenate([source.states(own) for source, own, _ in self.by_source(rows)])

    def clips(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the latest times to evaluate at in the steps that end with these, shape (k,)."""
        return np.concatenate([source.clips(own) for source, own, _ in self.by_source(rows)])

    def snapshot(self, row: int) -> Snapshot:
        """Return what holds in the piece that a row that counts begins."""
        ((source, own, _),) = self.by_source(np.array([row]))
        return source.snapshot(int(own[0]))


def changes(ascending: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which of some ascending indices differ from the one before."""
    return np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]


class History:
    """The pieces of a run in order; neighbors share the time at which an update took place.

    The root context is at the start. The history may take ``limit`` bytes, by default half of the
    memory that is free when it is first large. Beyond ``most_states`` bytes it keeps few states of
    native steps; the others follow from these, and are computed when they are asked for, about a
    thousand steps at once.
    """

    def __init__(
        self, context: Context, limit: float | None = None, most_states: float = math.inf
    ) -> None:
        self._parts: list[list[Piece] | Rows] = []
        self.size = 0.0  # memory that it takes, in bytes, as an estimate
        self._limit = limit
        self._most_states = most_states
        self._unthinned: list[Rows] = []
        self._room = min(_SMALL, math.inf if limit is None else limit)  # until the next look
        self._steps = 0
        self._step_size = 0.0
        values = [value.nbytes for leaf in context.store.leaves for value in leaf.discrete]
        self._piece_size = _PIECE + _LEAF * len(context.store.leaves) + sum(values)
        self.begin(context)

    @property
    def pieces(self) -> list[Piece]:
        """All pieces as objects."""
        if len(self._parts) > 1 or not isinstance(self._parts[0], list):
            pieces: list[Piece] = []
            for part in self._parts:
                if isinstance(part, list):
                    pieces = _continued(pieces, part)
                    continue
                for row, time in enumerate(part.times.tolist()):
                    if part.begins[row]:
                        piece = Piece([time], [part.state(row)], part.snapshot(row))
                        pieces = _continued(pieces, [piece])
                    else:
                        pieces[-1].append(time, part.state(row), part.interpolant(row))
                        pieces[-1].last = float(part.limits[row])
            self._parts = [pieces]
        (whole,) = self._parts
        assert isinstance(whole, list)
        return whole

    def rows(self) -> list[Rows] | None:
        """Return the rows that hold all of its steps; None where some of these are objects."""
        rows: list[Rows] = []
        for part in self._parts:
            if not isinstance(part, list):
                rows.append(part)
            elif any(piece.interpolants for piece in part):
                return None
        return rows

    def ledger(self) -> Ledger:
        """Return all rows, without making objects of those that are none."""
        sources = [_PieceRows(part) if isinstance(part, list) else part for part in self._parts]
        ends = np.cumsum([len(source.times) for source in sources])
        times = np.concatenate([source.times for source in sources])
        begins = np.concatenate([source.begins for source in sources])
        replaced = begins[:-1] & begins[1:] & (times[:-1] == times[1:])
        kept = np.flatnonzero(np.append(~replaced, True))
        first = np.flatnonzero(begins[kept])
        limits, piece = np.full(np.sum(begins), np.inf), np.cumsum(begins)
        np.minimum.at(limits, piece - 1, np.concatenate([source.limits for source in sources]))
        return Ledger(sources, kept, times[kept], first, limits[piece[kept][first] - 1], ends)

    def begin(self, context: Context) -> None:
        """Begin a new piece with the present values."""
        self.begin_with(context.store.time, context.store.x, Snapshot.of(context))

    def begin_with(self, time: float, x: FloatArray, snapshot: Snapshot) -> None:
        """Begin a new piece with given values."""
        part = self._parts[-1] if self._parts else None
        if not isinstance(part, list):
            part = []
            self._parts.append(part)
        before = len(part)
        _continued(part, [Piece([time], [x], snapshot)])
        if len(part) > before:
            self.size += self._piece_size

    def extend(self, time: float, x: FloatArray, interpolant: Interpolant) -> None:
        """Append one step to the current piece."""
        part = self._parts[-1]
        piece = part[-1] if isinstance(part, list) else self.pieces[-1]
        piece.append(time, x, interpolant)
        if self._steps % _SELDOM == 0:
            self._step_size = _size_of_step(x, interpolant)
        self._steps += 1
        self.size += self._step_size

    def takes(self, count: int) -> bool:
        """Return whether so many rows are better appended as they are than made objects."""
        many = count > _FEW or self.size > self._most_states
        return many or not isinstance(self._parts[-1], list)

    def append(self, rows: Rows) -> None:
        """Append rows, the first of which may go on with the current piece."""
        self._parts.append(rows)
        self.size += rows.size
        if self._most_states < math.inf:
            self._unthinned.append(rows)
            if self.size > self._most_states:
                self.size -= sum(each.thin() for each in self._unthinned)
                self._unthinned.clear()

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
        """State that equations jump at the end of the current piece; rows say so themselves."""
        part = self._parts[-1]
        if isinstance(part, list):
            part[-1].last = time

    @property
    def start(self) -> float:
        """First time."""
        return _times_of(self._parts[0], 0)

    @property
    def end(self) -> float:
        """Last time."""
        return _times_of(self._parts[-1], -1)

    def grid(self) -> FloatArray:
        """Return the step times.

        Times at which something jumps occur twice: before and after.
        """
        return self.ledger().times


def _continued(pieces: list[Piece], others: list[Piece]) -> list[Piece]:
    """Append pieces; one that has only begun gives way to another one at the same time."""
    if pieces and others and pieces[-1].times == others[0].times[:1]:
        pieces.pop()
    pieces += others
    return pieces


def _times_of(part: list[Piece] | Rows, end: int) -> float:
    """Return the first or last time of a part."""
    return float((part[end] if isinstance(part, list) else part).times[end])


def _size_of_step(x: FloatArray, interpolant: Interpolant) -> float:
    """Estimate the memory that a step takes, in bytes."""
    held = getattr(interpolant, "__dict__", None)
    if held is None or isinstance(interpolant, Unmoved):  # which share their states
        return _STEP + x.nbytes
    arrays = [value.nbytes for value in held.values() if isinstance(value, np.ndarray)]
    return _STEP + x.nbytes + _DENSE_STEP + sum(arrays)


def free_memory() -> float:
    """Return the memory that this process could still take, in bytes; infinity where unknown."""
    found = [math.inf]
    with suppress(AttributeError, OSError, ValueError):  # Windows has no such names
        found.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    with suppress(OSError):
        available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
        found += [1024.0 * float(available[1])] if available else []
    with suppress(OSError, ValueError):  # the limit of a container
        group = Path("/sys/fs/cgroup")
        most, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        found.append(float(most) - float(used))
    return max(0.0, min(found))
