"""Compiled loops that carry a simulation on: the phases of the simulator, in native code.

`NativeRunner` carries a simulation as far as a loop can, and leaves it where Python is needed: with
the same values, pending events and statistics that `flexure.solvers.simulation.step_phases` would
have left. Whatever is unusual (a value that is not finite, a step that fails) is not dealt with
here: the loop stops before it, and the phases meet it again and say what is wrong.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from flexure.diagrams.checks.errors import SimulationError, TraceError
from flexure.diagrams.concurrency.deferred_interrupt import DeferredInterrupt
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.integration.guard.failures import find_jump
from flexure.solvers.integration.guard.progress_limits import carried_step
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.integration.methods.projecting import TIMES
from flexure.solvers.integration.methods.rounding import shortened_by_rounding
from flexure.solvers.native.kernels.parts import run as words
from flexure.solvers.native.kernels.parts.manifold import CODED, KEPT, PLACED, REFUSED
from flexure.solvers.native.programs.method_programs import METHODS, loops
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.programs.programs import BoundProgram, has_loop
from flexure.solvers.native.programs.system_trace import EventKey
from flexure.solvers.native.runs.past_steps import StepRepeater, repeater_of
from flexure.solvers.native.runs.run_memory import CallLength, RunMemory
from flexure.solvers.simulation.native_runs.native_events import NativeEvents
from flexure.solvers.simulation.native_runs.run_output import RunOutput
from flexure.solvers.simulation.run_control.diagnosis import (
    give_up_chattering,
    give_up_slow,
    judge_record,
)
from flexure.solvers.tracing.trace_check import agrees_at, interpreted_numbers

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState

_Rates = Callable[[float, FloatArray], FloatArray]

_STRIDE = 4000  # steps of one call of the loop, at most; the pace is judged then
_COUNTED = (
    *("steps", "restarts", "evaluations", "jacobians", "factorizations"),
    *("discrete_updates", "unrestricted_updates"),
)


@dataclass
class _Loop:
    """The loop of one method, and what belongs to it."""

    memory: RunMemory  # what it reads and writes
    call: Any  # runs it on a pointer to the record
    call_length: CallLength  # how many steps it takes in one call
    # Repeats its steps with the present environment, when a history is kept.
    maker: StepRepeater | None = None


class NativeRunner:
    """Carries on one simulation."""

    def __init__(self, simulation: SimulationState, program: Program) -> None:
        self._simulation = simulation
        self._store = simulation.store
        self.program = program
        self._bound = BoundProgram(program, self._store)
        self._events = NativeEvents(simulation, program)
        self._rows = RunOutput(simulation, program)
        self._loops: dict[str, _Loop] = {}
        self.unsuitable = "no step was taken"  # why the loop could not take what came next, if so

    def begin(self) -> None:
        """Prepare the loops for a run, whatever the last one has left in them."""
        for loop in self._loops.values():
            loop.memory.reset()
        choice = self._simulation.choice
        if self.is_possible() and not choice.undecided:  # that method may never take a step
            self.loop(method_name(choice.method))

    def agrees(self) -> bool:
        """Return whether the code gives the numbers of the equations here."""
        store = self._store
        expected = interpreted_numbers(store, map(self._signal, self.program.trace.signals))
        if expected is None:
            return True  # the simulator is about to meet the error
        env = self._bound.env
        return agrees_at(lambda x: self.program.values_at(store.time, x, env), store.x, expected)

    def _signal(self, key: EventKey) -> Any:
        """Return the present value of a logged signal."""
        leaf = self._store.leaves[key[0]]
        signal = leaf.system.events[key[1]].signal
        assert signal is not None
        return signal(leaf)

    @property
    def fits(self) -> bool:
        """Whether the code is for the present values of the context."""
        return self._bound.fits

    @property
    def how(self) -> str:
        """How the equations are evaluated, in words."""
        return f"native code of {self.program.trace.operations} operations"

    def is_possible(self) -> bool:
        """Return whether the loop can take what comes next."""
        simulation = self._simulation
        choice = simulation.choice
        name = method_name(choice.method)
        self.unsuitable = ""
        if not has_loop(choice.method):
            self.unsuitable = f"{name} has no native loop"
        elif choice.options:
            self.unsuitable = f"of the options {sorted(choice.options)}"
        elif not simulation.max_step > 0.0:
            self.unsuitable = "of a max_step that is refused"
        elif name not in self._loops:
            self.unsuitable = self.program.obstacle(name)
        if self.unsuitable:
            return False
        return self._events.include(simulation.events.pending)

    def advance(self, boundary: float) -> bool:
        """Advance as far as the loop leads; tell whether it got anywhere.

        When it did not, the simulator has to take the next step itself.
        """
        simulation, store = self._simulation, self._store
        method = method_name(simulation.choice.settle(self._bound, store.time, store.x))
        if method not in METHODS or (method not in self._loops and not self.is_possible()):
            return False
        loop = self.loop(method)
        self.enter(loop, boundary)
        failed = True
        try:
            status = self._run(loop)
            failed = False
        finally:
            self._leave(loop.memory, failed=failed)
        if status == words.STIFF:
            simulation.choice.turn_stiff(store.time)
        return status != words.DOUBTFUL

    def _run(self, loop: _Loop) -> int:
        """Call the loop until it is done, or a publish ends the run; return how it ended."""
        simulation, fields, patience = self._simulation, loop.memory.fields, DeferredInterrupt()
        step, motion, counts = fields.step, fields.motion, fields.counts
        # A history takes long to write; what else is over after one call is not worth the wait.
        waiting: AbstractContextManager[None] = nullcontext()
        if simulation.history is not None:
            waiting = patience
        counted = counts.steps
        while True:
            try:
                with waiting:
                    status = self._call(loop)
                    self._rows.take(loop.memory, loop.maker)
            except KeyboardInterrupt:
                self._read_to_the_end(loop)
                raise
            self._rows.publish()
            if status == words.DEPARTED and simulation.events.termination is None:
                self._place(loop)
                continue
            if simulation.events.termination is not None:
                patience.deliver()
                return status
            if not motion.unpublished:
                patience.deliver()
                taken, counted = counts.steps - counted, counts.steps
                simulation.statistics.native_steps += taken
                simulation.progress_bar.update(step.time)
                judge_record(simulation, partial(self._put, loop.memory))
            if fields.manifold.pulls >= TIMES:
                landed = loop.memory.parts["manifold"].arrays["landed"]
                simulation.manifold.tell_pulls(fields.manifold.time, freeze(landed.copy()))
            if status == words.SLOW:
                self._put(loop.memory)
                self._give_up_slow(loop.memory, step.time_new - step.time)
            if status != words.COMPLETE and not motion.unpublished and self._is_odd(fields):
                self._look_for_chattering(loop.memory, step.time - step.time_old)
            disturbed = self._rows.disturbed  # what the last step still has to publish comes first
            if status != words.PAUSED or (disturbed and not motion.unpublished):
                return status
            fields.budget = 0 if patience.interrupted or disturbed else self._budget(loop)
            waiting = patience

    def _place(self, loop: _Loop) -> None:
        """Move the state of a loop to where it belongs, or provide the code that does."""
        simulation, manifold = self._simulation, loop.memory.fields.manifold
        self._put(loop.memory)
        if not manifold.coded and self._provide_projection(loop):
            manifold.answer = CODED
            return
        x = self._store.x
        try:
            fields = loop.memory.fields
            unmoved = not (fields.motion.moving or fields.witnesses.jumped)
            found = simulation.manifold.place(manifold.time, x, unmoved=unmoved)
        except SimulationError:
            manifold.answer = REFUSED  # the phases come to the same, and say so
            return
        manifold.answer = KEPT if found is x else PLACED
        manifold.allowed = simulation.manifold.allowed
        loop.memory.x[:] = found

    def _provide_projection(self, loop: _Loop) -> bool:
        """Compile the projection; tell whether there is code of it."""
        try:
            self.program.make_projection()
        except TraceError:
            return False
        self._begin_manifold(loop)
        if self._simulation.history is not None:
            loop.maker = repeater_of(loop.memory)
        return True

    def _begin_manifold(self, loop: _Loop) -> None:
        """Let a loop look at where the state belongs, if it belongs anywhere."""
        fields = loop.memory.fields.manifold
        if fields.count:
            if not fields.coded and self.program.projection is not None:
                loop.memory.link_projection(self.program.projection_environment(self._store))
                loop.maker = None
            fields.allowed = self._simulation.manifold.allowed

    @staticmethod
    def _call(loop: _Loop) -> int:
        """Call the loop once, and measure how long that takes where it goes on."""
        counts = loop.memory.fields.counts
        began, before = time.perf_counter(), counts.steps
        status = int(loop.call(loop.memory.pointer))
        if status == words.PAUSED:
            loop.call_length.measured(counts.steps - before, time.perf_counter() - began)
        return status

    def _budget(self, loop: _Loop) -> int:
        """Return how many steps the next call of a loop may take."""
        return 1 if self._simulation.pace.looks else loop.call_length.length

    def _is_odd(self, fields: Any) -> bool:
        """Return whether the last step is one of those after which chattering is looked for."""
        pace = self._simulation.pace
        pace.take_over(fields.pace.judged_at - fields.counts.steps, fields.pace.strides)
        pace.watch(fields.step.time)
        pace.note_look()
        return pace.looks > 0

    def _look_for_chattering(self, memory: RunMemory, lapse: float) -> None:
        """Raise where the motion goes to and fro at a jump of the equations."""
        jump = find_jump(*self._latest_step(memory, lapse))
        if jump is not None:
            self._put(memory)
            give_up_chattering(self._simulation, jump)

    def _give_up_slow(self, memory: RunMemory, lapse: float) -> NoReturn:
        """Raise, since steps lead nowhere: for chattering, for rounding or for their pace."""
        self._look_for_chattering(memory, lapse)
        fields, simulation = memory.fields, self._simulation
        end = fields.step.time_new
        lack = simulation.pace.report(fields.pace.slow, end)
        lapse = max(lapse, simulation.pace.needed(end))
        rounding = shortened_by_rounding(*self._latest_step(memory, lapse))
        give_up_slow(simulation, end, lack, rounding)

    def _latest_step(
        self, memory: RunMemory, lapse: float
    ) -> tuple[_Rates, float, FloatArray, float, FloatArray]:
        """Return the equations, time, state, length and tolerated errors of the latest step."""
        step, x = memory.fields.step, memory.x.copy()

        def rhs(time: float, x: FloatArray) -> FloatArray:
            return self._bound(min(time, step.clip), x)

        return rhs, step.time, x, lapse, memory.tolerated(x)

    def _read_to_the_end(self, loop: _Loop) -> None:
        """Read what the loop has written, and let it write what is still missing of a step."""
        self._rows.take(loop.memory, loop.maker)
        while loop.memory.fields.motion.unpublished:
            loop.memory.fields.budget = 0
            loop.call(loop.memory.pointer)
            self._rows.take(loop.memory, loop.maker)

    # Entering ------------------------------------------------------------------------------

    def loop(self, method: str) -> _Loop:
        """Return the loop of a method, made when it is first used."""
        if method not in self._loops:
            simulation, n = self._simulation, self.program.num_states
            memory = RunMemory(
                self.program,
                method,
                np.broadcast_to(simulation.rtol, (n,)).astype(float),
                np.broadcast_to(simulation.atol, (n,)).astype(float),
                simulation.max_step,
            )
            self._events.describe(memory)
            self._rows.make_room(memory)
            if simulation.manifold.exists:
                memory.watch_manifold()
            memory.parts["pace"].attach("marks", simulation.pace.marks)
            loop = loops(method, memory.is_eventful)
            call = loop.function("advance", ctypes.c_int64, ctypes.c_void_p)
            memory.note_beginning()
            self._loops[method] = _Loop(memory, call, CallLength(_STRIDE, memory.work))
        return self._loops[method]

    def enter(self, loop: _Loop, boundary: float) -> None:
        """Put the present values of the context into the record of a loop."""
        simulation, store, memory = self._simulation, self._store, loop.memory
        fields = memory.fields
        if memory.set_environment(self._bound.env):
            loop.maker = None
            fields.manifold.coded = 0
        self._begin_manifold(loop)
        if simulation.history is not None and loop.maker is None:
            loop.maker = repeater_of(memory)
        memory.x[:] = store.x
        step, motion, pace = fields.step, fields.motion, fields.pace
        step.time = step.time_old = step.time_new = store.time
        fields.boundary = pace.end = boundary
        fields.jump = simulation.agenda.next_break(store.time)
        motion.moving = motion.unpublished = motion.changed = 0
        fields.rows.used = 0
        self._native_steps = simulation.statistics.native_steps
        step.h_next = simulation.choice.first_step or 0.0
        watching = fields.stiffness.watching = simulation.choice.undecided
        judge = simulation.pace
        pace.judged_at, pace.strides = judge.left, judge.strides
        pace.most_steps, pace.deliberate = judge.most, judge.deliberate
        fields.budget = self._budget(loop)
        step.keeping = bool(watching or fields.witnesses.count or fields.clocks.publishes)
        self._events.hand_over(memory)
        self._rows.begin(memory)

    # Leaving -------------------------------------------------------------------------------

    def _put(self, memory: RunMemory) -> None:
        """Put the state of a run into the context."""
        self._store.set_motion(memory.fields.step.time, memory.x.copy())
        self._bound.hand_back()

    def _leave(self, memory: RunMemory, *, failed: bool) -> None:
        """Leave everything as the simulator's own phases would have left it."""
        fields, simulation, store = memory.fields, self._simulation, self._store
        statistics, counts = simulation.statistics, fields.counts
        statistics.native_steps = self._native_steps + counts.steps
        simulation.pace.take_over(fields.pace.judged_at - counts.steps, fields.pace.strides)
        for name in _COUNTED:
            if count := getattr(counts, name):
                setattr(statistics, name, getattr(statistics, name) + count)
                setattr(counts, name, 0)
        if fields.manifold.count:
            simulation.manifold.allowed = fields.manifold.allowed
        if not self._rows.ended:
            self._put(memory)
        at_end = store.time == fields.step.time  # and not at a publish inside of the last step
        self._events.take_back(memory, at_end=at_end)
        choice = simulation.choice
        choice.remember(choice.method, _next_step(fields, failed=failed))
        if store.time == fields.jump:
            simulation.pass_break(store.time)


def _next_step(fields: Any, *, failed: bool) -> float | None:
    """Return with which step the next motion may start."""
    step, motion = fields.step, fields.motion
    if not motion.moving:
        return float(step.h_next) or None
    if failed:
        return float(step.h_first) or None
    carried = carried_step(
        step.h_next,
        step.h_wanted,
        step.h_first,
        motion.steps,
        begin=step.time_old,
        end=step.time_new,
        stop=motion.stop,
    )
    return float(carried) or None
