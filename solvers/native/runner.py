"""The native way through a simulation: the phases of the simulator, run by a compiled loop.

`NativeRunner` carries the context of a simulator as far as the loop can, and leaves it where Python
is needed: with the same values, pending events and statistics that the simulator's own phases would
have left. Whatever is unusual (a value that is not finite, a step that fails) is not dealt with
here: the loop stops before it, and the simulator meets it again and says what is wrong.
"""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.errors import FlexureError, TraceError
from flexure.diagrams.events import Periodic
from flexure.diagrams.feedthrough import DISCRETE
from flexure.diagrams.values import FloatArray, freeze
from flexure.solvers.agenda import Entry
from flexure.solvers.methods import method_name
from flexure.solvers.native import run as words
from flexure.solvers.native.advance import MOST_ROWS
from flexure.solvers.native.library import available
from flexure.solvers.native.methods import METHODS, loops
from flexure.solvers.native.patience import Patience
from flexure.solvers.native.program import EventKey, Program, program_of
from flexure.solvers.native.record import RunRecord
from flexure.solvers.native.rows import Rows
from flexure.solvers.native.steps import StepMaker

if TYPE_CHECKING:
    from flexure.solvers.simulator import Simulator

_MOST = 60  # clocks and witness functions that a mask has room for
_TABLE = 2**18  # numbers in the table of rows
_STRIDE, _STRIDES = 1000, 4000  # steps of the first and of later calls; the pace is judged then


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
        self._records: dict[str, tuple[RunRecord, Any]] = {}
        self._env = program.fill(self._store)
        self._revision = self._store.revision
        self._makers: dict[str, StepMaker] = {}
        self.unsuitable = "no step was taken"
        tolerances = np.concatenate([np.atleast_1d(simulator.rtol), np.atleast_1d(simulator.atol)])
        self._sensible = simulator.max_step > 0.0 and bool(np.all(tolerances >= 0.0))
        self._gather_events()
        if self.is_possible():  # part of the preparation, not of the run
            self._record(method_name(simulator.choice.method))

    def _gather_events(self) -> None:
        """List clocks, updates and witness functions in the order in which the loop has them."""
        agenda = self._simulator.agenda
        self._clocks = agenda.clocks
        entries = [e for _, each in self._clocks for e in each] + agenda.witnesses
        self._updates = sorted(
            (entry for entry in entries if entry.event.kind != "publish"), key=lambda e: e.order
        )
        self._rows = Rows(self._simulator, self._program, self._clocks)

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
        found = self._program.values_at(store.time, store.x, self._env)
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
    def how(self) -> str:
        """How the equations are evaluated, in words."""
        return f"native code of {self._program.operations} operations"

    def is_possible(self) -> bool:
        """Tell whether the loop can take what comes next."""
        simulator = self._simulator
        choice = simulator.choice
        self.unsuitable = ""
        if not isinstance(choice.method, str) or method_name(choice.method) not in METHODS:
            self.unsuitable = f"{method_name(choice.method)} has no native loop"
        elif choice.options:
            self.unsuitable = f"of the options {sorted(choice.options)}"
        elif not self._sensible:
            self.unsuitable = "of tolerances or steps that are refused"
        if self.unsuitable:
            return False
        return all(entry in self._updates for entry in simulator.pending)

    def advance(self, boundary: float) -> bool:
        """Advance as far as the loop leads; tell whether it got anywhere.

        When it did not, the simulator has to take the next step itself.
        """
        simulator, store = self._simulator, self._store
        time, x = store.time, store.x
        try:
            method = method_name(simulator.choice.settle(simulator.derivatives, time, x))
        finally:
            if store.x is not x:
                store.set_motion(time, x)  # looking for stiffness evaluates elsewhere
        if method not in METHODS:
            return False
        record, call = self._record(method)
        self._enter(record, boundary)
        failed = True
        try:
            status = self._run(record, call, self._maker(method))
            failed = False
        finally:
            self._leave(record, failed=failed)
        if status == words.STIFF:
            simulator.choice.turn_stiff(store.time)
            simulator.choice.first_step = None
        return status != words.DOUBTFUL

    def _run(self, record: RunRecord, call: Any, maker: StepMaker | None) -> int:
        """Call the loop until it is done, or a publish ends the run; return how it ended."""
        simulator, fields, patience = self._simulator, record.fields, Patience()
        waiting: AbstractContextManager[None] = nullcontext()  # what is soon over is not worth it
        counted = fields.steps
        while True:
            try:
                with waiting:
                    status = int(call(record.pointer))
                    self._rows.take(record, maker)
            except KeyboardInterrupt:
                self._read_to_the_end(record, call, maker)
                raise
            self._rows.publish()
            if simulator.termination is not None:
                return status
            if not fields.unpublished:
                patience.deliver()
                taken, counted = int(fields.steps - counted), fields.steps
                simulator.count_steps(float(fields.time), taken, self._sync(record))
            if status != words.PAUSED:
                return status
            fields.budget = 0 if patience.interrupted else _STRIDES
            waiting = patience

    def _read_to_the_end(self, record: RunRecord, call: Any, maker: StepMaker | None) -> None:
        """Read what the loop has written, and let it write what is still missing of a step."""
        self._rows.take(record, maker)
        while record.fields.unpublished:
            record.fields.budget = 0
            call(record.pointer)
            self._rows.take(record, maker)

    # Entering ------------------------------------------------------------------------------

    def _record(self, method: str) -> tuple[RunRecord, Any]:
        """Return the record for a method, made when it is first used, and its loop."""
        if method not in self._records:
            simulator, n = self._simulator, self._program.num_states
            record = RunRecord(
                self._program,
                method,
                np.broadcast_to(simulator.rtol, (n,)).astype(float),
                np.broadcast_to(simulator.atol, (n,)).astype(float),
                simulator.max_step,
            )
            self._describe_events(record)
            call = loops(method).function("advance", ctypes.c_int64, ctypes.c_void_p)
            self._records[method] = record, call
        return self._records[method]

    def _describe_events(self, record: RunRecord) -> None:
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
        record.indices("updates", addresses)
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
        fields.rows_room = many if written and self._rows.at_once else MOST_ROWS
        record.room("kinds", 2 * fields.rows_room, np.int64)
        record.room("table", fields.rows_room * fields.width)

    def _describe_witnesses(self, record: RunRecord) -> None:
        witnesses = self._simulator.agenda.witnesses
        fields, w = record.fields, len(witnesses)
        fields.witnesses = w
        signs = {"falling": -1, "rising": 1, "either": 0}
        record.indices("directions", [signs[e.event.trigger.direction] for e in witnesses])  # type: ignore[union-attr]
        updates = [e.event.kind != "publish" for e in witnesses]
        record.indices("handled", updates)
        record.indices("turning", updates)
        record.indices("on_surface", [0] * w)
        samples = 3 + 4 * w
        for name, size in (
            ("surface", w),
            ("first", w),
            ("samples", samples * w),
            ("instants", samples),
            ("slopes", 4 * w),
        ):
            record.room(name, size)
        record.room("order", samples, np.int64)

    @staticmethod
    def _clock_of(entry: Entry, clocks: list[Periodic]) -> int:
        trigger = entry.event.trigger
        return clocks.index(trigger) if isinstance(trigger, Periodic) else -1

    def _refresh(self) -> None:
        """Let the environment hold the present values of the context."""
        store = self._store
        if self._revision != store.revision or len(self._env) <= self._program.environment.size:
            self._env = self._program.fill(store)  # a Jacobian makes environments longer
            self._revision = store.revision
            self._makers = {}

    def _enter(self, record: RunRecord, boundary: float) -> None:
        """Put the present values of the context into the record."""
        simulator, store, fields = self._simulator, self._store, record.fields
        self._refresh()
        if record.arrays.get("env") is not self._env:
            record.set_environment(self._env)
        record.x[:] = store.x
        fields.time = fields.time_old = fields.time_new = store.time
        fields.boundary = fields.horizon = boundary
        fields.jump = simulator.next_break(store.time)
        fields.moving = fields.unpublished = fields.changed = 0
        fields.budget = _STRIDE
        fields.rows_used = 0
        self._native_steps = simulator.statistics.native_steps
        fields.h_next = simulator.choice.first_step or 0.0
        fields.watching = simulator.choice.undecided
        fields.keeping = bool(fields.watching or fields.witnesses or fields.publishes)
        for entry in simulator.pending:
            record.arrays["pending"][self._updates.index(entry)] = 1
        record.arrays["on_surface"][:] = 0
        for k, value in simulator.surface.items():
            record.arrays["on_surface"][k] = 1
            record.arrays["surface"][k] = value
        self._rows.begin(record)

    def _maker(self, method: str) -> StepMaker | None:
        """Return what repeats steps, when a history is kept."""
        if self._simulator.history is None:
            return None
        if method not in self._makers:
            record = self._records[method][0]
            rtol, atol = record.arrays["rtol"], record.arrays["atol"]
            self._makers[method] = StepMaker(self._program, method, rtol, atol, self._env)
        return self._makers[method]

    # Leaving -------------------------------------------------------------------------------

    def _sync(self, record: RunRecord) -> Any:
        """Return a function that puts the state of the run into the context."""

        def sync() -> None:
            self._put(float(record.fields.time), record.x, self._env)

        return sync

    def _put(self, time: float, x: FloatArray, discrete: FloatArray) -> None:
        """Put values into the context."""
        store, program = self._store, self._program
        store.set_motion(time, freeze(np.array(x)))
        if program.num_discrete:
            values = freeze(discrete[: program.num_discrete].copy())
            for leaf, groups in zip(store.leaves, program.discrete_groups(values), strict=True):
                if groups:
                    leaf.discrete = list(groups)
            store.changed(DISCRETE)
            self._revision = store.revision

    def _leave(self, record: RunRecord, *, failed: bool) -> None:
        """Leave everything as the simulator's own phases would have left it."""
        fields, simulator, store = record.fields, self._simulator, self._store
        statistics = simulator.statistics
        statistics.native_steps = self._native_steps + int(fields.steps)
        for name in (
            *("steps", "restarts", "evaluations", "jacobians", "factorizations"),
            *("discrete_updates", "unrestricted_updates"),
        ):
            setattr(statistics, name, getattr(statistics, name) + int(getattr(fields, name)))
            setattr(fields, name, 0)
        if not self._rows.ended:
            self._put(float(fields.time), record.x, self._env)
        at_end = store.time == fields.time  # and not at a publish inside of the last step
        pending = record.arrays["pending"]
        simulator.pending = [e for k, e in enumerate(self._updates) if pending[k] and at_end]
        pending[:] = 0
        on_surface, surface = record.arrays["on_surface"], record.arrays["surface"]
        touching = np.flatnonzero(on_surface) if at_end else ()
        simulator.surface = {int(k): float(surface[k]) for k in touching}
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
        program = program_of(simulator.context.store.layout)
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
    if fields.moving and failed:
        return float(fields.h_first) or None
    wanted = fields.h_wanted
    if fields.motion_steps == 1 and fields.h_first > 0.0:
        wanted = fields.h_first
    cut = fields.moving and fields.time_new == fields.stop
    if cut and fields.time_old + wanted > fields.stop:
        return float(max(fields.h_next, wanted))
    return float(fields.h_next) or None


def _key(entry: Entry) -> EventKey:
    """Return position of the block and of the event in it."""
    return entry.leaf.position, entry.order[2]


__all__ = ["NativeRunner", "native_runner"]
