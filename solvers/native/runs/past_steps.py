"""Steps of the past: interpolants that are made when they are asked for.

The loops keep the ends of their steps only. Where a state inside of a step is wanted, the step is
repeated from its beginning, which gives the same numbers.
"""

from __future__ import annotations

import ctypes
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.native.kernels.parts.output_rows import BEGIN, CLIP, END, TIME, RowLayout
from flexure.solvers.native.kernels.steps.resampling import GIVEN, SAME, STEPPED
from flexure.solvers.native.llvm.library import address_of
from flexure.solvers.native.programs.method_programs import resampling
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.programs.programs import program_with
from flexure.solvers.native.programs.system_trace import Line
from flexure.solvers.native.runs.run_memory import RunMemory, set_tolerances
from flexure.solvers.results.records.history import Snapshot

_RETRACED = 2  # blocks of rows whose states are kept after their steps were repeated


@dataclass(eq=False)
class StepRepeater:
    """Repeats steps of one method, with the parameters of one run.

    ``rtol`` and ``atol`` say when the iterations of a step end.
    """

    program: Program
    method: str
    rtol: FloatArray
    atol: FloatArray
    env: FloatArray
    projects: bool = False  # whether the ends of steps were moved to where they belong
    projecting: FloatArray | None = None  # the environment of that, if there was code of it
    # The latest rows whose steps were repeated, and all their states.
    retraced: deque[tuple[StepRows, FloatArray]] = field(
        default_factory=lambda: deque(maxlen=_RETRACED), init=False
    )

    def __post_init__(self) -> None:
        self._layout = self.program.layout  # which programs do not keep

    def __reduce__(self) -> tuple[Any, ...]:
        settings = self.method, self.rtol, self.atol, self.env, self.projects, self.projecting
        return _remake, (self._layout, self.program.trace.zeros, *settings)

    def states(
        self, steps: Sequence[NativeStep], counts: NDArray[np.intp], times: FloatArray
    ) -> FloatArray:
        """Return the states at times inside of steps, shape (k, n), so many times in each step."""
        spans = np.array([(step.t_old, step.t, step.clip) for step in steps])
        states = np.array([step.x_old for step in steps])
        discrete = np.array([step.discrete for step in steps])
        return self.repeat(spans, states, discrete, counts, times)

    def repeat(
        self,
        spans: FloatArray,
        states: FloatArray,
        discrete: FloatArray,
        counts: NDArray[np.intp],
        times: FloatArray,
    ) -> FloatArray:
        """Do as `states`, with a row for each step: begin, end and clip; what it began with."""
        each, times = np.asarray(counts, dtype=np.int64), np.ascontiguousarray(times)
        out = np.empty((len(times), self.program.num_states))
        self._run(self._resample, spans, states, discrete, each, times, out)
        return out

    def retrace(
        self,
        spans: FloatArray,
        discrete: FloatArray,
        ways: NDArray[np.int64],
        times: FloatArray,
        states: FloatArray,
    ) -> None:
        """Compute states of rows, as `retrace_all`, of which the first and the given are known."""
        self._run(self._retrace, spans, discrete, ways, times, states)

    def _run(self, call: Callable[..., None], spans: FloatArray, *arrays: NDArray[Any]) -> None:
        """Call a function for some steps."""
        memory = self._borrowed()
        set_tolerances(memory, self.rtol, self.atol, math.inf)
        memory.set_environment(self.env)
        memory.fields.manifold.count = 0
        if self.projects:
            memory.watch_manifold()
            memory.fields.manifold.coded = 0
            if self.projecting is not None:
                memory.link_projection(self.projecting)
        call(memory.pointer, len(spans), *map(address_of, (spans, *arrays)))
        self._idle.append(memory)

    @cached_property
    def _resample(self) -> Callable[..., None]:
        """The function that looks into steps, compiled when the first step is repeated."""
        return _function(self.method, "resample_all", 6)

    @cached_property
    def _retrace(self) -> Callable[..., None]:
        """The function that repeats steps in a row, compiled when that is first done."""
        return _function(self.method, "retrace_all", 5)

    @property
    def _idle(self) -> list[RunMemory]:
        """Memory that no thread uses, whatever run it was used for last."""
        idle: list[RunMemory] = self.program.idle_memory.setdefault(self.method, [])
        return idle

    def _borrowed(self) -> RunMemory:
        """Return exclusive memory, to be given back."""
        try:
            return self._idle.pop()
        except IndexError:
            return RunMemory(self.program, self.method, self.rtol, self.atol)


def _function(method: str, kernel: str, arrays: int) -> Callable[..., None]:
    """Return a function of a run, a number of steps, and arrays."""
    pointer = ctypes.c_void_p
    called: Callable[..., None] = resampling(method, kernel).function(
        kernel, None, pointer, ctypes.c_int64, *[pointer] * arrays
    )
    return called


def repeater_of(memory: RunMemory) -> StepRepeater:
    """Return what repeats the steps of a run with its present environment."""
    tolerances = memory.parts["tolerances"].arrays
    env = memory.parts["system"].arrays["env"]
    name = memory.method.name
    manifold = memory.parts["manifold"]
    projects = manifold.fields.count > 0
    rtol, atol = tolerances["rtol"], tolerances["atol"]
    projecting = manifold.arrays["env"].copy() if manifold.fields.coded else None
    return StepRepeater(memory.program, name, rtol, atol, env.copy(), projects, projecting)


def _remake(layout: Layout, zeros: frozenset[Key], *settings: Any) -> StepRepeater:
    """Make a pickled object again; the equations are compiled anew, or come from the cache."""
    program = program_with(layout, zeros)
    made = StepRepeater(program, *settings)
    if made.projecting is not None:
        program.make_projection()
    return made


@dataclass(slots=True, eq=False)
class NativeStep:
    """The interpolant of one step; called like SciPy's."""

    maker: StepRepeater
    # t_old, t: begin and end of the step in seconds, also when an event cut it.
    t_old: float
    t: float
    x_old: FloatArray
    discrete: FloatArray
    clip: float = math.inf

    def __call__(self, t: Any) -> FloatArray:
        """Return the state at a time, shape (n,), or at k times, shape (n, k)."""
        times = np.asarray(t, dtype=float)
        states = self.maker.states([self], np.array([times.size]), times.reshape(-1))
        return states[0] if times.ndim == 0 else states.T


class StepRows:
    """Rows of a loop, of changes and ends of steps, as the record of a motion.

    ``begins`` marks the rows of changes in the ``table``, whose wanted columns are copied; steps
    have no discrete values. ``x`` are the states before the first row, ``held`` the discrete values
    before and after each change. The ``abstract`` states do not change in a loop.
    """

    def __init__(
        self,
        maker: StepRepeater,
        row: RowLayout,
        begins: NDArray[np.bool_],
        table: FloatArray,
        x: FloatArray,
        held: HeldValues,
        abstract: list[list[Any]],
    ) -> None:
        self._maker = maker
        self.begins = begins
        self.times = table[:, TIME].copy()
        self._spans = np.ascontiguousarray(table[:, [BEGIN, END, CLIP]])
        self.limits = np.where(self._spans[:, 2] < self.times, self._spans[:, 2], np.inf)
        self.limits[begins] = np.inf
        # The values before a row are in its own line, those of it in the next one.
        self._known: FloatArray = freeze(np.vstack([x, table[:, row.x]]))
        self._lines: NDArray[np.intp] | None = None  # of these states; None if of all
        self._held = held
        self._holds: NDArray[np.intp] = np.cumsum(begins)  # how many changes there were
        self._abstract = abstract
        arrays = (begins, self.times, self._spans, self._known, self._holds)
        self.size = float(held.size + sum(array.nbytes for array in arrays))

    def thin(self) -> float:
        """Keep the states only from which steps lead to the others; return the bytes less.

        Those others are computed when they are asked for, and are the same to the last bit. So a
        state stays where an update has changed it, and where a step began with a slope at a time
        that rounding had moved: behind a step from t, of the length h, whose end is not t + h.
        """
        begin, end, _ = self._spans.T
        lines = np.zeros(len(self.times) + 1, dtype=bool)
        lines[:2] = True  # what was before the first row is not known
        lines[1:] |= self.begins & np.any(self._known[1:] != self._known[:-1], axis=1)
        lines[2:] |= (~self.begins & (begin + (end - begin) != end))[:-1]
        before, self._lines = self._known.nbytes, np.flatnonzero(lines)
        self._known = freeze(self._known[lines])
        less = float(before - self._known.nbytes - self._lines.nbytes)
        self.size -= less
        return less

    @property
    def _states(self) -> FloatArray:
        """All states, of which those of the latest rows that were asked for are kept."""
        if self._lines is None:
            return self._known
        for rows, states in tuple(self._maker.retraced):
            if rows is self:
                return states
        states = np.empty((len(self.times) + 1, self._known.shape[1]))
        states[self._lines] = self._known
        ways = np.where(self.begins, SAME, STEPPED)
        ways[self._lines[1:] - 1] = GIVEN
        held = self._held.at(self._holds)
        self._maker.retrace(self._spans, held, ways, self.times, states)
        self._maker.retraced.append((self, freeze(states)))
        return states

    def state(self, row: int) -> FloatArray:
        """Return the continuous state of a row."""
        x: FloatArray = self._states[row + 1]
        return x

    def states(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the continuous states of rows."""
        return self._states[rows + 1]

    def interpolant(self, row: int) -> NativeStep:
        """Return what interpolates the step that ends with a row."""
        begin, end, clip = self._spans[row].tolist()
        held = self._held.after(int(self._holds[row]))
        return NativeStep(self._maker, begin, end, self._states[row], held, clip)

    def inside(
        self, rows: NDArray[np.intp], counts: NDArray[np.intp], times: FloatArray
    ) -> FloatArray:
        """Return the states at times inside of steps."""
        held = self._held.at(self._holds[rows])
        return self._maker.repeat(self._spans[rows], self._states[rows], held, counts, times)

    def clips(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the latest times to evaluate at in the steps that end with k rows, shape (k,)."""
        found: FloatArray = self._spans[rows, 2]
        return found

    def snapshot(self, row: int) -> Snapshot:
        """Return what holds in the piece that a row begins."""
        values = self._held.after(int(self._holds[row]))
        return Snapshot(self._maker.program.discrete.groups(values), self._abstract)

    def held(
        self, rows: NDArray[np.intp], leaf: int, group: int, components: NDArray[np.intp]
    ) -> FloatArray:
        """Return components of a discrete group in the pieces that rows begin."""
        return self._held.at(self._holds[rows], self.place(leaf, group) + components)

    def place(self, leaf: int, group: int) -> int:
        """Return where a discrete group begins among all discrete values."""
        return self._maker.program.discrete.starts[leaf][group]

    def look_up(self, start: float, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the states and all discrete values at ascending times.

        What is before the first row holds from a start. Where something jumps, the values after
        it are those of the time.
        """
        behind = np.searchsorted(self.times, times, side="right")
        states = self._states[behind]
        between = np.append(start, self.times)[behind] != times
        if between.any():
            rows = behind[between]
            first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
            counts = np.diff(first, append=len(rows))
            states[between] = self.inside(rows[first], counts, times[between])
        return states, self._held.at(np.append(0, self._holds)[behind])


class HeldValues:
    """All discrete values of a system before and after some updates.

    A line is not repeated after every update: what was put in front of it is somewhere behind now.

    The ``first`` values, of shape (m,), are those before all updates. The ``table``, of shape (k,
    c), holds after each update the c values that are not passed on in lines, and ``moved``, of
    shape (k,), the masks of the lines that each update has moved.
    """

    def __init__(
        self, lines: Sequence[Line], first: FloatArray, table: FloatArray, moved: NDArray[np.int64]
    ) -> None:
        self._first = first
        self._columns = np.zeros(len(first), dtype=np.intp)  # of the table, where it has a value
        kept = kept_places(lines, len(first))
        self._columns[kept] = np.arange(len(kept))
        self._table: FloatArray = np.empty((1 + len(table), len(kept)))
        self._table[0], self._table[1:] = first[kept], table
        freeze(self._table)
        moves = [np.append(0, moved >> k & 1) for k in range(len(lines))]
        self._lines = [
            (line, np.cumsum(each), np.append(0, np.flatnonzero(each)))
            for line, each in zip(lines, moves, strict=True)
        ]
        arrays = [each for _, *pair in self._lines for each in pair]
        self.size = sum(array.nbytes for array in [first, self._table, self._columns, *arrays])

    def at(self, updates: NDArray[np.intp], places: NDArray[np.intp] | None = None) -> FloatArray:
        """Return values at places, or all, after updates, of which 0 is the time before the first.

        The shape is (number of updates, number of places).
        """
        places = np.arange(len(self._first)) if places is None else places
        # Indexed in both directions at once, it is contiguous, as loops need it.
        found: FloatArray = self._table[updates[:, np.newaxis], self._columns[places]]
        for line, count, rows in self._lines:
            mine = np.flatnonzero((places >= line.start) & (places < line.end))
            behind, front = np.divmod(places[mine] - line.start, line.apart)
            moves = count[updates][:, np.newaxis]
            new = self._table[
                rows[np.maximum(moves - behind, 0)], self._columns[line.start + front]
            ]
            old = self._first[np.maximum(places[mine] - moves * line.apart, 0)]
            found[:, mine] = np.where(moves >= behind, new, old)
        return found

    def after(self, update: int) -> FloatArray:
        """Return all values after one update."""
        values: FloatArray = freeze(self.at(np.array([update]))[0])
        return values


def kept_places(lines: Sequence[Line], count: int) -> NDArray[np.intp]:
    """Return the places of the discrete values that are not passed on in lines."""
    kept = np.ones(count, dtype=bool)
    for line in lines:
        kept[line.start + line.apart : line.end] = False
    return np.flatnonzero(kept)
