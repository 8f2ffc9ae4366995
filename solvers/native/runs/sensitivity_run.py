"""A motion with derivatives in native loops: the memory, and the calls.

States and columns of derivatives, each column times the size of its number, lie end to end. See
`flexure.solvers.native.kernels.runs.sensitivity_runs`.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import INPUT
from flexure.solvers.integration.guard.progress_limits import Pace, carried_step
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.kernels.parts.run import PAUSED
from flexure.solvers.native.programs.method_programs import METHODS, column_loops, generic_attempt
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.programs.programs import BoundProgram
from flexure.solvers.native.programs.sensitivity_program import Indices, SensitivityProgram
from flexure.solvers.native.runs.run_memory import CallLength, RunMemory

_STRIDE = 4000  # steps of one call of the loop, at most


class Line(NamedTuple):
    """A piece of an input: a straight line in time."""

    slot: int  # of the input
    # base, tilt: its value where the line begins, and by how much it changes in a second.
    base: FloatArray
    tilt: FloatArray


class ColumnMemory(RunMemory):
    """A structure `Run` for states and ``columns`` of derivatives."""

    def __init__(
        self, program: Program, method: str, rtol: float, atol: float, columns: int
    ) -> None:
        size = program.num_states * (1 + columns)
        program.jacobian()  # before an environment is filled
        self._loops = column_loops(method, program.tile if METHODS[method].linear else 0)
        super().__init__(program, method, np.full(size, rtol), np.full(size, atol), columns=columns)
        self.follow: Any = self._loops.function("follow", ctypes.c_int64, ctypes.c_void_p)

    def _prepare_system(self) -> None:
        program, system, columns = self.program, self.parts["system"], self.parts["columns"]
        system.fields.n, system.fields.timed = self.size, True
        system.link("rhs", self._loops.address("rates_of_all"))
        system.fields.env = columns.pointer
        columns.fields.n = program.num_states
        columns.fields.count = self.size // program.num_states - 1
        columns.link("rhs", program.rhs)
        columns.link("jacobian", program.jacobian())
        assert program.jacobian_entries is not None
        rows, others = program.jacobian_entries
        columns.fields.nonzeros = len(rows)
        columns.attach("rows", rows)
        columns.attach("columns", others)
        columns.room("entries", len(rows))

    def _prepare_linear(self) -> None:
        super()._prepare_linear()
        self.parts["linear"].link("jacobian", self._loops.address("jacobian_of_states"))

    def _prepare_attempt(self) -> None:
        name = self.method.name
        own = self.method.iterative
        attempt = self._loops.address("attempt") if own else generic_attempt(name)
        self.parts["system"].link("attempt", attempt)

    def steer(self, own: SensitivityProgram, weights: FloatArray) -> None:
        """Provide the derivatives by numbers, and how much these change in each column."""
        columns, slopes = self.parts["columns"], own.slopes
        sources, behind = np.nonzero(weights[slopes.columns])
        columns.link("slopes", slopes.address)
        columns.fields.steered, columns.fields.pushed = len(slopes.rows), len(sources)
        columns.indices("sources", sources)
        columns.indices("places", behind * self.program.num_states + slopes.rows[sources])
        columns.attach("scales", weights[slopes.columns[sources], behind])
        columns.room("pulls", len(slopes.rows))
        columns.room("push", self.size)

    @property
    def work(self) -> float:
        """Roughly the number of operations of a step."""
        columns = self.parts["columns"].fields
        products = columns.count * (columns.nonzeros + 2.0 * columns.n)
        more: float = self.method.rows * (2.0 * self.program.trace.operations + 4.0 * products)
        return super().work + more


class SensitivityRun:
    """States and columns of one motion, carried on from stop to stop."""

    def __init__(
        self, bound: BoundProgram, store: Store, own: SensitivityProgram, count: int
    ) -> None:
        self._bound = bound
        self._store = store
        self._own = own
        self._count = count
        self._memories: dict[tuple[Program, str, float, float], ColumnMemory] = {}

    def begin(
        self,
        method: str,
        tolerances: tuple[float, float],
        time: float,
        x: FloatArray,
        weights: FloatArray,
        pace: Pace,
    ) -> None:
        """Begin with the present values of the context, by a method of `DIFFERENTIABLE`.

        ``x`` are states and columns at ``time``, in seconds; ``weights``, of shape (p, m), are how
        much each number changes in each column. ``pace`` judges the whole motion.
        """
        env = self._bound.env  # which may bring another program
        program = self._bound.program
        key = program, method, *tolerances
        if key not in self._memories:
            self._memories = {key: ColumnMemory(program, method, *tolerances, self._count)}
            env = self._bound.env
        self.memory = memory = self._memories[key]
        columns, fields = memory.parts["columns"], memory.fields
        columns.attach("env", env.copy())
        columns.attach("own", self._own.fill(self._store))
        memory.steer(self._own, weights)
        self._length = CallLength(_STRIDE, memory.work)
        memory.x[:] = x
        fields.step.time = fields.step.time_old = fields.step.time_new = time
        fields.step.h_next = 0.0
        fields.step.keeping = 1
        fields.motion.moving = 0
        fields.counts.steps = 0
        fields.stiffness.watching = 0
        fields.stiffness.looked = fields.stiffness.suspicious = 0
        memory.parts["pace"].attach("marks", pace.marks)
        fields.pace.judged_at, fields.pace.strides = pace.left, pace.strides
        fields.pace.most_steps, fields.pace.deliberate = pace.most, pace.deliberate

    def hold(self, x: FloatArray, weights: FloatArray) -> None:
        """Take over the discrete values of the context, with states, columns and weights."""
        arrays = self.memory.parts["columns"].arrays
        self._bound.program.discrete.read(self._store, arrays["env"])
        self._own.discrete.read(self._store, arrays["own"])
        self.memory.steer(self._own, weights)
        self.memory.x[:] = x

    def watch(self, end: float, *, stiffness: bool) -> None:
        """Say where the motion ends, and whether to stop where stability limits the steps."""
        self.memory.fields.pace.end = end
        self.memory.fields.stiffness.watching = stiffness

    @property
    def time(self) -> float:
        """The time that is reached."""
        return float(self.memory.fields.step.time)

    @property
    def x(self) -> FloatArray:
        """States and columns there."""
        return self.memory.x.copy()

    def advance(
        self,
        stop: float,
        clip: float,
        times: FloatArray,
        lines: Sequence[Line] = (),
        *,
        anew: bool = False,
    ) -> tuple[FloatArray, int]:
        """Go on to a stop, where the equations jump or bend, or the motion ends, in seconds.

        The equations are evaluated no later than at ``clip``, and inputs follow ``lines``. With
        ``anew``, the first step has nothing to do with the last one. Returns states and columns, a
        row for each of the ``times`` that were reached, and how the loop ended, one of the words of
        `flexure.solvers.native.kernels.parts.run`.
        """
        memory, columns, fields = self.memory, self.memory.parts["columns"], self.memory.fields
        step, motion, data = fields.step, fields.motion, columns.fields
        motion.stop, motion.moving, step.clip = stop, 0, clip
        if anew:
            step.h_next = 0.0
        data.wanted, data.given = len(times), 0
        columns.attach("times", np.array([*times, math.inf]))
        samples = np.zeros((len(times) + 1, memory.size))
        columns.attach("samples", samples)
        self._follow(lines)
        while True:
            fields.budget = self._length.length
            began, before = time.perf_counter(), fields.counts.steps
            status = int(memory.follow(memory.pointer))
            if status != PAUSED:
                break
            self._length.measured(fields.counts.steps - before, time.perf_counter() - began)
        step.h_next = carried_step(
            step.h_next,
            step.h_wanted,
            step.h_first,
            motion.steps,
            begin=step.time_old,
            end=step.time_new,
            stop=stop,
        )
        return samples[: data.given], status

    def _follow(self, lines: Sequence[Line]) -> None:
        """Let inputs follow lines from the present time on."""
        columns, program = self.memory.parts["columns"], self._bound.program
        data = columns.fields
        data.drives, data.begin = sum(len(line.base) for line in lines), self.time
        if not lines:
            return
        columns.attach("bases", np.concatenate([line.base for line in lines]))
        columns.attach("tilts", np.concatenate([line.tilt for line in lines]))
        for name, array, environment in (
            ("targets", "env", program.environment),
            ("own_targets", "own", self._own.environment),
        ):
            last = len(columns.arrays[array]) - 1  # where nobody reads
            places = [
                places_of_input(environment, line.slot, len(line.base), last) for line in lines
            ]
            columns.attach(name, np.concatenate(places))


def put_line(environment: Environment, env: FloatArray, line: Line) -> None:
    """Put the value of an input where a line begins into an environment."""
    env[places_of_input(environment, line.slot, len(line.base), len(env) - 1)] = line.base


def places_of_input(environment: Environment, slot: int, size: int, other: int) -> Indices:
    """Return where the components of an input are; another place for those that nothing reads."""
    keys = [((INPUT, slot, 0), component) for component in range(size)]
    return np.array([environment.keys.get(key, other) for key in keys], dtype=np.int64)
