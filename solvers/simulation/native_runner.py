"""The native way through a simulation: the phases of the simulator, run by a compiled loop.

`NativeRunner` carries the context of a simulator as far as the loop can, and leaves it where Python
is needed: with the same values, pending events and statistics that the simulator's own phases would
have left. Whatever is unusual (a value that is not finite, a step that fails) is not dealt with
here: the loop stops before it, and the simulator meets it again and says what is wrong.
"""

from __future__ import annotations

import ctypes
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.deferred_interrupt import DeferredInterrupt
from flexure.diagrams.errors import FlexureError, TraceError
from flexure.diagrams.events import Periodic
from flexure.diagrams.values import FloatArray
from flexure.solvers.integration.carried_step import carried_step
from flexure.solvers.integration.chattering import find_jump
from flexure.solvers.integration.methods import method_name
from flexure.solvers.native.binding import BoundProgram
from flexure.solvers.native.call_length import CallLength
from flexure.solvers.native.kernels import run as words
from flexure.solvers.native.kernels.search import SEARCH_SIZE
from flexure.solvers.native.llvm.library import available
from flexure.solvers.native.methods import METHODS, loops
from flexure.solvers.native.past_steps import StepRepeater
from flexure.solvers.native.program import EventKey, Program
from flexure.solvers.native.programs import program_of
from flexure.solvers.native.run_memory import RunMemory
from flexure.solvers.simulation.agenda import Entry
from flexure.solvers.simulation.run_output import RunOutput

if TYPE_CHECKING:
    from flexure.solvers.simulation.simulator import Simulator

_MOST = 60  # clocks and witness functions that a mask has room for
_TABLE = 2**18  # numbers in the table of rows
_STRIDE = 4000  # steps of one call of the loop, at most; the pace is judged then
_COUNTED = (
    *("steps", "restarts", "evaluations", "jacobians", "factorizations"),
    *("discrete_updates", "unrestricted_updates"),
)


@dataclass
class _Loop:
    """The loop of one method, and what belongs to it.

    Attributes
    ----------
    record : RunMemory
        What it reads and writes.
    call : callable
        Runs it on a pointer to the record.
    stride : CallLength
        How many steps it takes in one call.
    maker : StepRepeater or None
        Repeats its steps with the present environment, when a history is kept.
    """

    record: RunMemory
    call: Any
    stride: CallLength
    maker: StepRepeater | None = None


class NativeRunner:
    """Carries the context of one simulator.

    Parameters
    ----------
    simulator : Simulator
        Whose context moves.
    program : Program
        The equations of its system.

    Attributes
    ----------
    unsuitable : str
        Why the loop could not take what came next, if so.
    """

    def __init__(self, simulator: Simulator, program: Program) -> None:
        self._simulator = simulator
        self._store = simulator.context.store
        self._program = program
        self._bound = BoundProgram(program, self._store)
        self._loops: dict[str, _Loop] = {}
        self.unsuitable = "no step was taken"
        tolerances = np.concatenate([np.atleast_1d(simulator.rtol), np.atleast_1d(simulator.atol)])
        self._sensible = simulator.max_step > 0.0 and bool(np.all(tolerances >= 0.0))
        self._gather_events()
        if self.is_possible():  # part of the preparation, not of the run
            self._loop(method_name(simulator.choice.method))

    def _gather_events(self) -> None:
        """List clocks, updates and witness functions in the order in which the loop has them."""
        agenda = self._simulator.agenda
        self._clocks = agenda.clocks
        entries = [e for _, each in self._clocks for e in each] + agenda.witnesses
        self._updates = sorted(
            (entry for entry in entries if entry.event.kind != "publish"), key=lambda e: e.order
        )
        self._positions = {entry: k for k, entry in enumerate(self._updates)}
        self._rows = RunOutput(self._simulator, self._program, self._clocks)

    @staticmethod
    def obstacle(simulator: Simulator, program: Program) -> str | None:
        """Return why the events of a simulator cannot be run by the loop, or None."""
        agenda = simulator.agenda
        if simulator.monitored:
            return "a monitor wants to see every step"
        if not simulator.isolate:
            return "witness events are not isolated"
        for entry in agenda.per_step:
            if entry.event.kind != "publish":
                return f"'{entry.event.label}' updates at every step"
        timed = [entry for _, entries in agenda.clocks for entry in entries]
        for entry in [*timed, *agenda.witnesses]:
            refusal = program.refusals.get(_key(entry))
            if refusal is not None and (entry in agenda.witnesses or entry.event.kind != "publish"):
                return f"'{entry.event.label}' cannot be traced ({refusal})"
        for leaf in simulator.context.leaves():
            system = leaf.system
            if system.has_break_times and system.discrete_states:
                return f"the break times of '{system.label}' may change"
        if max(len(agenda.clocks), len(agenda.witnesses)) > _MOST:
            return f"there are more than {_MOST} clocks or witness functions"
        return None

    def agrees(self) -> bool:
        """Tell whether the code gives the numbers of the equations here.

        Equations with a hidden state, such as a counter of calls, do not pass.
        """
        store = self._store
        try:
            with np.errstate(all="ignore"):
                logged = [self._signal(key) for key in self._program.signals]
                expected = np.hstack([store.time_derivatives(), *logged])
        except Exception:
            return True  # the simulator is about to meet it
        found = self._program.values_at(store.time, store.x, self._bound.env)
        # Large terms that cancel, as near an equilibrium, leave rounding errors of their own size.
        scale = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
        return np.allclose(found, expected, rtol=1e-9, atol=1e-9 * scale, equal_nan=True)

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
        return f"native code of {self._program.operations} operations"

    def is_possible(self) -> bool:
        """Tell whether the loop can take what comes next."""
        simulator = self._simulator
        choice = simulator.choice
        name = method_name(choice.method)
        self.unsuitable = ""
        if not isinstance(choice.method, str) or name not in METHODS:
            self.unsuitable = f"{name} has no native loop"
        elif choice.options:
            self.unsuitable = f"of the options {sorted(choice.options)}"
        elif not self._sensible:
            self.unsuitable = "of tolerances or steps that are refused"
        elif name not in self._loops:
            self.unsuitable = self._program.obstacle(name)
        if self.unsuitable:
            return False
        return all(entry in self._positions for entry in simulator.pending)

    def advance(self, boundary: float) -> bool:
        """Advance as far as the loop leads; tell whether it got anywhere.

        When it did not, the simulator has to take the next step itself.
        """
        simulator, store = self._simulator, self._store
        method = method_name(simulator.choice.settle(self._bound, store.time, store.x))
        if method not in METHODS or (method not in self._loops and not self.is_possible()):
            return False
        loop = self._loop(method)
        self._enter(loop, boundary)
        failed = True
        try:
            status = self._run(loop)
            failed = False
        finally:
            self._leave(loop.record, failed=failed)
        if status == words.STIFF:
            simulator.choice.turn_stiff(store.time)
            simulator.choice.first_step = None
        return status != words.DOUBTFUL

    def _run(self, loop: _Loop) -> int:
        """Call the loop until it is done, or a publish ends the run; return how it ended."""
        simulator, fields, patience = self._simulator, loop.record.fields, DeferredInterrupt()
        # A history takes long to write; what else is over after one call is not worth the wait.
        waiting: AbstractContextManager[None] = nullcontext()
        if simulator.history is not None:
            waiting = patience
        counted = fields.steps
        while True:
            try:
                with waiting:
                    status = self._call(loop)
                    self._rows.take(loop.record, loop.maker)
            except KeyboardInterrupt:
                self._read_to_the_end(loop)
                raise
            self._rows.publish()
            if simulator.termination is not None:
                patience.deliver()
                return status
            if not fields.unpublished:
                patience.deliver()
                taken, counted = fields.steps - counted, fields.steps
                simulator.count_steps(fields.time, taken, partial(self._put, loop.record))
            if status == words.SLOW:
                self._put(loop.record)
                self._look_for_chattering(loop.record, fields.time_new - fields.time)
                simulator.give_up(
                    fields.time_new, simulator.pace.report(fields.slow, fields.time_new)
                )
            if status != words.COMPLETE and not fields.unpublished and self._is_odd(fields):
                self._look_for_chattering(loop.record, fields.time - fields.time_old)
            disturbed = self._rows.disturbed  # what the last step still has to publish comes first
            if status != words.PAUSED or (disturbed and not fields.unpublished):
                return status
            fields.budget = 0 if patience.interrupted or disturbed else self._budget(loop)
            waiting = patience

    @staticmethod
    def _call(loop: _Loop) -> int:
        """Call the loop once, and measure how long that takes where it goes on."""
        began, before = time.perf_counter(), loop.record.fields.steps
        status = int(loop.call(loop.record.pointer))
        if status == words.PAUSED:
            loop.stride.measured(loop.record.fields.steps - before, time.perf_counter() - began)
        return status

    def _budget(self, loop: _Loop) -> int:
        """Return how many steps the next call of a loop may take."""
        return 1 if self._simulator.pace.looks else loop.stride.length

    def _is_odd(self, fields: Any) -> bool:
        """Tell whether the last step is one of those after which chattering is looked for."""
        pace = self._simulator.pace
        pace.left, pace.strides = fields.judged_at - fields.steps, fields.strides
        pace.watch(fields.time)
        pace.looks -= pace.looks > 0
        return pace.looks > 0

    def _look_for_chattering(self, record: RunMemory, lapse: float) -> None:
        """Raise where the motion goes to and fro at a jump of the equations."""
        fields, x = record.fields, record.x.copy()
        tolerated = record.arrays["atol"] + record.arrays["rtol"] * np.abs(x)

        def rhs(time: float, x: FloatArray) -> FloatArray:
            return self._bound(min(time, fields.clip), x)

        jump = find_jump(rhs, fields.time, x, lapse, tolerated)
        if jump is not None:
            self._put(record)
            self._simulator.give_up_at(jump)

    def _read_to_the_end(self, loop: _Loop) -> None:
        """Read what the loop has written, and let it write what is still missing of a step."""
        self._rows.take(loop.record, loop.maker)
        while loop.record.fields.unpublished:
            loop.record.fields.budget = 0
            loop.call(loop.record.pointer)
            self._rows.take(loop.record, loop.maker)

    # Entering ------------------------------------------------------------------------------

    def _loop(self, method: str) -> _Loop:
        """Return the loop of a method, made when it is first used."""
        if method not in self._loops:
            simulator, n = self._simulator, self._program.num_states
            record = RunMemory(
                self._program,
                method,
                np.broadcast_to(simulator.rtol, (n,)).astype(float),
                np.broadcast_to(simulator.atol, (n,)).astype(float),
                simulator.max_step,
            )
            self._describe_events(record)
            record.attach("marks", simulator.pace.marks)
            call = loops(method).function("advance", ctypes.c_int64, ctypes.c_void_p)
            self._loops[method] = _Loop(record, call, CallLength(_STRIDE, record.work))
        return self._loops[method]

    def _describe_events(self, record: RunMemory) -> None:
        """Put clocks, updates and witness functions into a record."""
        fields, program, agenda = record.fields, self._program, self._simulator.agenda
        clocks = [clock for clock, _ in self._clocks]
        kinds = [{e.event.kind for e in entries} for _, entries in self._clocks]
        fields.clocks = len(clocks)
        record.attach("periods", np.array([c.period for c in clocks] or [1.0]))
        record.attach("offsets", np.array([c.offset for c in clocks] or [0.0]))
        record.room("ticks", len(clocks))
        record.room("publish_ticks", len(clocks))
        record.indices("updating", [bool(each - {"publish"}) for each in kinds])
        record.indices("publishing", ["publish" in each for each in kinds])
        fields.publishes = any("publish" in each for each in kinds)
        fields.stepwise = bool(agenda.per_step)
        fields.logging = bool(program.signal)
        fields.recording = self._simulator.history is not None
        traced = [program.updates[_key(entry)] for entry in self._updates]
        targets = [update.targets for update in traced]
        addresses = [program.update_address(_key(entry)) for entry in self._updates]
        fields.events = len(traced)
        record.link_all("updates", addresses)
        record.indices("unrestricted", [e.event.kind == "unrestricted" for e in self._updates])
        record.indices("clock", [self._clock_of(entry, clocks) for entry in self._updates])
        record.indices(
            "trigger",
            [agenda.witnesses.index(e) if e in agenda.witnesses else -1 for e in self._updates],
        )
        record.indices("pending", [0] * len(traced))
        record.indices("first_target", np.cumsum([0, *map(len, targets)]))
        record.indices("targets", [target for each in targets for target in each])
        record.room("staged", fields.n + fields.m)
        record.room("results", max(map(len, targets), default=0))
        self._describe_witnesses(record)
        signals = sum(where.stop - where.start for where in program.signals.values())
        fields.width = 3 + fields.n + fields.m + signals
        many = max(16, min(4096, _TABLE // fields.width))
        written = fields.recording or fields.publishes or fields.stepwise or fields.witnesses
        fields.rows_room = many if written and self._rows.at_once else words.MOST_ROWS
        record.room("kinds", 2 * fields.rows_room, np.int64)
        record.room("table", fields.rows_room * fields.width)

    def _describe_witnesses(self, record: RunMemory) -> None:
        witnesses = self._simulator.agenda.witnesses
        fields, w = record.fields, len(witnesses)
        fields.witnesses = w
        signs = {"falling": -1, "rising": 1, "either": 0}
        record.indices("directions", [signs[e.event.trigger.direction] for e in witnesses])  # type: ignore[union-attr]
        updates = [e.event.kind != "publish" for e in witnesses]
        record.indices("handled", updates)
        record.indices("turning", updates)
        record.indices("on_surface", [0] * w)
        record.indices("fast", [0] * w)
        samples = 5 + 4 * w
        for name, size in (
            ("surface", w),
            ("first", w),
            ("samples", samples * w),
            ("instants", samples),
            ("slopes", 4 * w),
            ("peaks", w),
            ("search", SEARCH_SIZE),
        ):
            record.room(name, size)
        fields.longest = self._simulator.max_check_interval
        record.room("order", samples, np.int64)

    @staticmethod
    def _clock_of(entry: Entry, clocks: list[Periodic]) -> int:
        trigger = entry.event.trigger
        return clocks.index(trigger) if isinstance(trigger, Periodic) else -1

    def _enter(self, loop: _Loop, boundary: float) -> None:
        """Put the present values of the context into the record of a loop."""
        simulator, store, record = self._simulator, self._store, loop.record
        fields = record.fields
        if record.set_environment(self._bound.env):
            loop.maker = None
        if simulator.history is not None and loop.maker is None:
            loop.maker = self._new_maker(record)
        record.x[:] = store.x
        fields.time = fields.time_old = fields.time_new = store.time
        fields.boundary = fields.horizon = boundary
        fields.jump = simulator.agenda.next_break(store.time)
        fields.moving = fields.unpublished = fields.changed = 0
        fields.rows_used = 0
        self._native_steps = simulator.statistics.native_steps
        fields.h_next = simulator.choice.first_step or 0.0
        fields.watching = simulator.choice.undecided
        pace = simulator.pace
        fields.judged_at, fields.strides = pace.left, pace.strides
        fields.most_steps, fields.deliberate = pace.most, pace.deliberate
        fields.budget = self._budget(loop)
        fields.keeping = bool(fields.watching or fields.witnesses or fields.publishes)
        for entry in simulator.pending:
            record.arrays["pending"][self._positions[entry]] = 1
        fields.jumped = simulator.departures.jumped
        for k, value in simulator.surface.items():
            record.arrays["on_surface"][k] = 1
            record.arrays["surface"][k] = value
        self._rows.begin(record)

    def _new_maker(self, record: RunMemory) -> StepRepeater:
        """Return what repeats steps with the present environment."""
        arrays = record.arrays
        name = record.method.name
        return StepRepeater(self._program, name, arrays["rtol"], arrays["atol"], arrays["env"])

    # Leaving -------------------------------------------------------------------------------

    def _put(self, record: RunMemory) -> None:
        """Put the state of a run into the context."""
        self._store.set_motion(record.fields.time, record.x.copy())
        self._bound.hand_back()

    def _leave(self, record: RunMemory, *, failed: bool) -> None:
        """Leave everything as the simulator's own phases would have left it."""
        fields, simulator, store = record.fields, self._simulator, self._store
        statistics = simulator.statistics
        statistics.native_steps = self._native_steps + fields.steps
        pace = simulator.pace
        pace.left, pace.strides = fields.judged_at - fields.steps, fields.strides
        for name in _COUNTED:
            if count := getattr(fields, name):
                setattr(statistics, name, getattr(statistics, name) + count)
                setattr(fields, name, 0)
        if not self._rows.ended:
            self._put(record)
        at_end = store.time == fields.time  # and not at a publish inside of the last step
        if self._updates:
            pending = record.arrays["pending"]
            waiting = zip(self._updates, pending.tolist(), strict=True)
            simulator.pending = [entry for entry, waits in waiting if waits and at_end]
            pending[:] = 0
        if fields.witnesses:
            on_surface, surface = record.arrays["on_surface"], record.arrays["surface"].tolist()
            touching = enumerate(on_surface.tolist())
            simulator.surface = {
                k: surface[k] for k, touches in touching if touches == 1 and at_end
            }
            on_surface[:] = 0
            simulator.departures.jumped = bool(fields.jumped)
        simulator.note_updated(bool(fields.changed))
        simulator.choice.first_step = _next_step(fields, failed=failed)
        if store.time == fields.jump:
            simulator.pass_break(store.time)


def native_runner(simulator: Simulator) -> tuple[NativeRunner | None, str]:
    """Return the native way through a simulation, or why there is none."""
    if not available():
        return None, "the extra flexure[fast] is not installed"
    if simulator.context.store.layout.num_states == 0:
        return None, "there is no continuous state"
    try:
        program = program_of(simulator.context.store)
    except TraceError as error:
        return None, error.attempt[0].lower() + error.attempt[1:]
    try:
        obstacle = NativeRunner.obstacle(simulator, program)
        if obstacle is not None:
            return None, obstacle
        runner = NativeRunner(simulator, program)
        if not runner.agrees():
            return None, "tracing the equations gave other numbers"
        return runner, ""
    except FlexureError as error:
        return None, str(error)


def _next_step(fields: Any, *, failed: bool) -> float | None:
    """Return with which step the next motion may start."""
    if not fields.moving:
        return float(fields.h_next) or None
    if failed:
        return float(fields.h_first) or None
    step = carried_step(
        fields.h_next,
        fields.h_wanted,
        fields.h_first,
        steps=fields.motion_steps,
        begin=fields.time_old,
        end=fields.time_new,
        stop=fields.stop,
    )
    return float(step) or None


def _key(entry: Entry) -> EventKey:
    """Return position of the block and of the event in it."""
    return entry.leaf.position, entry.order[2]


__all__ = ["NativeRunner", "native_runner"]
