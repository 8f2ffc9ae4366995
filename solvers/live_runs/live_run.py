"""`Live`: a diagram that runs with the clock, among partners and for people who watch it."""

from __future__ import annotations

import math
import time as wall
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import count_of, is_one_of, require
from flexure.diagrams.checks.errors import (
    ContextError,
    UnknownNameError,
    ValueRefusedError,
    suggestion,
)
from flexure.diagrams.concurrency.warnings_and_garbage import Elders
from flexure.diagrams.contexts.value_places import Way
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.solvers.live_runs.charts_and_sliders import columns, sliders
from flexure.solvers.live_runs.commands import Commands, Interruption
from flexure.solvers.live_runs.connections.channels import Entry, InputChannel, OutputChannel
from flexure.solvers.live_runs.connections.wiring import SignalReading
from flexure.solvers.live_runs.live_report import Clock, Figures, LiveReport, Schedule
from flexure.solvers.live_runs.recording import Recording, Snapshot, Snapshots
from flexure.solvers.simulation.simulator import Simulator

if TYPE_CHECKING:
    from flexure.solvers.live_runs.connections.wiring import Software
    from flexure.solvers.live_runs.live_page import LivePage

_elders = Elders()  # collections pass over what is older than the runs that go on
_PAUSED = 0.01  # seconds between two looks at commands
_EVENTS = 1000
_SIGHT = 600  # samples that a page gets of what was recorded
_NEAR = 1e-6  # of a period, within which the tick of a clock is that of a step


@dataclass
class Plan:
    """The checked parts of a live run."""

    period: float  # of steps, in simulated seconds
    rate: float  # simulated seconds per second
    clock: Clock
    record: str | None  # the file of the recording
    max_record: float  # its memory in bytes
    settable: Callable[[Way], Entry]  # finds the entry of a value that can be set
    reading: SignalReading  # of the signals for outputs and recording
    parameters: Any = None  # those with sliders
    inputs: list[InputChannel] = field(default_factory=list)
    outputs: list[OutputChannel] = field(default_factory=list)
    software: list[Software] = field(default_factory=list)
    # For the report, with simulated times.
    events: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=_EVENTS))


class Live(Answer):
    """A diagram that runs with the clock.

    Made by `live`. In each step at time t it takes the latest values of its inputs, runs the
    updates that are due, computes and sends its outputs, records, and goes on to t + period. This
    is the order of the C that `to_c` writes. Methods may be called from any thread.

    ``live["pid.u"]`` is a recorded signal at the times ``live["time"]``.

    Attributes
    ----------
    system : System
        The block or diagram.
    context : Context
        The values, which move while it runs.

    See Also
    --------
    live : Make one.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> live = fx.live(lag, rate="max", inputs={"u": lambda time: 1.0}, outputs={"y": print})
    >>> live
    <Live 'lag', t = 0 s, 0 samples, idle>
    """

    def __init__(self, system: System, simulator: Simulator, plan: Plan) -> None:
        self.system, self.context = system, simulator.context
        self._simulator, self._plan = simulator, plan
        self._commands = Commands(f"Cannot run '{system.label}'")
        self._paused, self._stopping, self._single = False, False, 0
        self._timed = False  # whether the next step has a deadline
        self._is_inside = False  # of a step
        self._origin, self._step = self.context.time, 0
        inputs = [(entry.path, entry.size) for channel in plan.inputs for entry in channel.entries]
        self._columns = [*inputs, *plan.reading.names]
        self.recording = Recording(self._columns, plan.max_record)
        self._figures: Figures | None = None
        self._sliders: dict[str, Any] = {}
        self._snapshots = Snapshots()
        self._page: LivePage | None = None
        simulator.initialize()
        for channel in plan.inputs:
            channel.take(self.context)

    # What people see ---------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulated time in seconds."""
        return self._time_of(self._step)

    @property
    def state(self) -> str:
        """What it does: "idle", "running" or "paused"."""
        if self._commands.runner is None:
            return "idle"
        return "paused" if self._paused else "running"

    def __getitem__(self, signal: str) -> FloatArray:
        """Return a recorded signal, shape (k,), or (k, n) for several components."""
        arrays = self.to_dict()
        if not is_one_of(signal, arrays):
            raise UnknownNameError(
                f"Cannot find {signal!r:.80} in the recording of '{self.system.label}'",
                remedy=f"{suggestion(signal, arrays)}. Record others with signals=",
            )
        return arrays[signal]

    def to_dict(self) -> dict[str, FloatArray]:
        """Return ``{"time": ..., path: values, ...}`` of all that is recorded."""
        with self._commands.lock:
            return self.recording.arrays()

    def save(self, path: str | Path) -> None:
        """Write the recording as a NumPy archive, as a whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        with self._commands.lock:
            self.recording.save(path)

    def __repr__(self) -> str:
        return (
            f"<Live '{self.system.label}', t = {self.time:g} s, {len(self.recording)} samples, "
            f"{self.state}>"
        )

    # What people do ----------------------------------------------------------------------------

    def set(self, path: Way, value: Any) -> None:
        """Set a parameter, a state or a free input, before the next step.

        Parameters
        ----------
        path : str or Handle
            What to set. An input with a partner takes over the next value of the partner.
        value : array_like
            The value.
        """
        entry = self._plan.settable(path)
        self._commands.do(lambda: self._set(entry, value))

    def pause(self) -> None:
        """Pause a run, or let the next one begin with a pause."""
        self._commands.do(lambda: self._pause(True))

    def resume(self) -> None:
        """Go on after a pause."""
        self._commands.do(lambda: self._pause(False))

    def step(self, num_steps: int = 1) -> None:
        """Take some steps of a run that is paused; of one that goes on, pause it.

        Parameters
        ----------
        num_steps : int
            How many.
        """
        count = count_of(num_steps, "num_steps", f"Cannot step '{self.system.label}'", minimum=1)
        self._commands.do(lambda: self._take(count))

    def stop(self) -> None:
        """Let a run end after its present step."""
        self._commands.do(self._stop)

    def rewind(self, time: float) -> None:
        """Go back to a time that is recorded; what was recorded after it is lost.

        The run is repeated from the snapshot before that time, with the values that its partners
        sent and that were set until then. Handlers of publish events are called again.

        Parameters
        ----------
        time : float
            Simulated time in seconds; the last step not after it counts.
        """
        attempt = f"Cannot rewind '{self.system.label}'"
        wanted = float(as_number(time, (), attempt))
        self._commands.do(lambda: self._rewind(wanted, attempt))

    def page(self, port: int = 8000) -> LivePage:
        """Serve a page with scope, sliders, pause, single steps and the way back.

        It is reached from this machine only, by its link, which contains a secret. A page that is
        slow or gone does not slow the run. It can be opened before, during and after `run`.

        Parameters
        ----------
        port : int
            The port; 0 takes a free one.

        Returns
        -------
        LivePage
            ``url`` is the link; ``close()`` ends the server. A page that is open already is
            returned again, at its own port.

        Raises
        ------
        MissingExtraError
            Without the package websockets: ``pip install 'flexure[live]'``.
        ValueRefusedError
            When the port is in use.
        """
        from flexure.solvers.live_runs.live_page import LivePage

        if self._page is None or self._page.is_closed:
            self._page = LivePage(self, port)
        return self._page

    def close(self) -> None:
        """Stop a run, and close the page."""
        self.stop()
        if self._page is not None:
            self._page.close()

    def run(self, duration: float | None = None) -> LiveReport:
        """Run with the clock, from where the last run ended.

        The first step is not timed, since it compiles. Ctrl-C and SIGTERM end the run in order: the
        partners get their safe values and are closed, and the recording is written.

        Parameters
        ----------
        duration : float, optional
            In simulated seconds; until it is stopped when omitted.

        Returns
        -------
        LiveReport
            Deadlines, jitter and partners.

        Raises
        ------
        ContextError
            When it runs already.
        ValueRefusedError
            When a partner cannot be opened, or the clock returns no time.
        SimulationError
            When the simulation cannot go on; the attribute ``result`` is the report.
        """
        attempt = f"Cannot run '{self.system.label}'"
        count: float = math.inf
        if duration is not None:
            number = float(as_number(duration, (), attempt))
            require(0.0 < number < math.inf, duration, attempt, "a duration above 0 s, or None")
            ratio = number / self._plan.period
            count = math.ceil(ratio - _NEAR) if ratio < 2**53 else math.inf
        self._commands.begin()
        try:
            with Interruption() as interruption:
                report, error = self._run(count, interruption)
        finally:
            self._commands.end()
        if error is not None:
            error.result = report  # type: ignore[attr-defined]
            raise error
        interruption.deliver()
        return report

    # The run -----------------------------------------------------------------------------------

    def _run(
        self, count: float, interruption: Interruption
    ) -> tuple[LiveReport, BaseException | None]:
        plan = self._plan
        self._figures = run = Figures(self.time)
        interval = plan.period / plan.rate if math.isfinite(plan.rate) else 0.0
        schedule = Schedule(plan.clock, interval, self._tell)
        self._stopping = False
        error: BaseException | None = None

        def stopped() -> bool:
            return self._stopping or bool(interruption.name)

        def save() -> None:
            nonlocal error
            try:
                if plan.record is not None:
                    self.save(plan.record)
            except Exception as caught:
                self._tell(str(caught))
                error = caught if error is None else error

        with ExitStack() as opened:
            opened.callback(save)  # what was recorded is kept, whatever comes
            opened.enter_context(_elders)
            try:
                now = schedule.now()
                for channel in plan.inputs:
                    opened.callback(channel.partner._close)
                    channel.begin(self.context, now)
                for output in plan.outputs:
                    opened.callback(output.partner._close)
                    output.open(output.places.size)
                    opened.callback(self._end, output)
                self._go(count, schedule, run, stopped)
            except BaseException as caught:
                error = caught
        if error is not None:
            run.outcome, run.message = "failed", str(error) or type(error).__name__
            if isinstance(error, KeyboardInterrupt):
                run.outcome, run.message = "interrupted", "by Ctrl-C"
        elif interruption.name:
            run.outcome, run.message = "interrupted", f"by {interruption.name}"
        return self._report(run, schedule), error

    def _go(
        self, count: float, schedule: Schedule, run: Figures, stopped: Callable[[], bool]
    ) -> None:
        """Take steps until the run is over."""
        schedule.begin()
        self._timed = False
        while run.steps < count and not stopped():
            self._commands.obey()
            if self._paused and not self._single:
                wall.sleep(_PAUSED)
                self._timed = False
                continue
            late = schedule.wait(stopped)
            if stopped():
                break
            with self._commands.lock:
                self._is_inside, time = True, self.time
                try:
                    answered = self._advance(schedule)
                finally:
                    self._is_inside = False
            run.steps += 1
            self._single = max(self._single - 1, 0)
            if not self._timed or self._paused:  # the first step compiles
                self._timed = True
                schedule.begin()
                for channel in self._plan.inputs:
                    channel.wait_again(schedule.due)
            else:
                began = schedule.due - (late if late > schedule.most else 0.0)
                run.count(began, late, answered, schedule.now(), schedule.interval, time)
            schedule.turn()
            if self._simulator.termination is not None:
                run.outcome, run.message = "terminated", self._simulator.termination.reason
                return
        if stopped():
            run.outcome, run.message = "stopped", f"at t = {self.time:.6g} s"

    def _advance(self, schedule: Schedule) -> float:
        """Take one step; return when its outputs were sent."""
        plan, simulator, context = self._plan, self._simulator, self.context
        if self._snapshots.wants(self._step):
            memory = [each.memory for each in plan.software]
            self._snapshots.add(Snapshot(self._step, context.clone(), memory))
        now, time = schedule.now(), self.time
        for channel in plan.inputs:
            channel.poll(context, time, now)
        values = self._compute()
        if simulator.termination is not None:
            return now
        for output in plan.outputs:
            output.send(time, values[output.places])
        answered = schedule.now()
        row = np.concatenate([*(channel.values for channel in plan.inputs), values])
        self.recording.append(time, row)
        if self._page is not None:
            self._page.offer(time, row)
        self._move_on()
        return answered

    def _compute(self) -> FloatArray:
        """Run the updates that are due, and return the signals."""
        simulator, store = self._simulator, self.context.store
        if simulator._has_pending_updates:
            simulator.advance_pending_events()
        for each in self._plan.software:
            each.step(self.context)
        return self._plan.reading(store.time, store.x)

    def _move_on(self) -> None:
        """Let the diagram move to the next step."""
        self._step += 1
        self._simulator.advance_to(self.time)

    def _time_of(self, step: int) -> float:
        """Return the time of a step: that of a tick where there is one, but for rounding."""
        time, near = self._origin + step * self._plan.period, _NEAR * self._plan.period
        ticks = [
            clock.offset + round((time - clock.offset) / clock.period) * clock.period
            for clock in self._simulator._clocks
        ]
        return max((tick for tick in ticks if abs(tick - time) <= near), default=time)

    def _end(self, output: OutputChannel) -> None:
        output.end(self.time)

    def _tell(self, text: str) -> None:
        self._plan.events.append((self.time, text))

    def _report(self, run: Figures, schedule: Schedule) -> LiveReport:
        plan = self._plan
        events = [*plan.events]
        plan.events.clear()
        if not self.recording.is_whole:
            gone = self.recording.total - len(self.recording)
            events.append(
                (self.time, f"the recording was full: the oldest {gone} samples were discarded")
            )
        end, channels = self.context.time, [*plan.inputs, *plan.outputs]
        return run.report(end, plan.period, plan.rate, schedule, channels, events)

    # Commands ----------------------------------------------------------------------------------

    def order(self, kind: str, message: Mapping[str, Any]) -> Future[Any]:
        """Do what a page asks for, without waiting for it."""
        orders: dict[str, Callable[[], Any]] = {
            "set": lambda: self._set(self._slider(message["path"]), float(message["value"])),
            "pause": lambda: self._pause(True),
            "resume": lambda: self._pause(False),
            "step": lambda: self._take(1),
            "stop": self._stop,
            "seek": lambda: self._sight(float(message["share"]), float(message["span"])),
            "continue": lambda: self._rewind(
                float(message["time"]), f"Cannot rewind '{self.system.label}'"
            ),
        }
        return self._commands.order(orders[kind])

    def contents(self) -> dict[str, Any]:
        """Return what a page shows."""
        attempt = f"Cannot serve a page of '{self.system.label}'"
        inputs = [entry.unit for channel in self._plan.inputs for entry in channel.entries]
        self._sliders = {
            each["path"]: each
            for each in sliders(self.system, self.context, self._plan.parameters, attempt)
        }
        return {
            "title": self.system.label,
            "live": True,
            "signals": columns(self._columns, [*inputs, *self._plan.reading.units]),
            "controls": [*self._sliders.values()],
        }

    def summary(self) -> str:
        """Return in a line what it does."""
        run = self._figures
        missed = f", {run.missed} of {run.steps} deadlines missed" if run is not None else ""
        return f"t = {self.time:.2f} s, {self.state}{missed}"

    def _slider(self, path: str) -> Entry:
        """Return the entry of a value that a page may set."""
        return self._plan.settable(self._sliders[path]["path"])

    def _sight(self, share: float, span: float) -> FloatArray:
        """Return samples of a span of time that ends at a share of what is recorded."""
        count = len(self.recording)
        if not count:
            return self.recording.rows()
        first, last = self.recording.time_at(0), self.recording.time_at(count - 1)
        end = first + min(max(share, 0.0), 1.0) * (last - first)
        stop = self.recording.number_at(end) + 1
        start = max(self.recording.number_at(end - span), 0)
        return self.recording.rows(start, stop, max((stop - start) // _SIGHT, 1))

    def _set(self, entry: Entry, value: Any) -> None:
        entry.write(self.context, value)
        self._snapshots.changed(self._step, entry, value)
        for channel in self._plan.inputs:
            channel.take(self.context)

    def _pause(self, paused: bool) -> None:
        self._paused, self._single = paused, 0

    def _take(self, count: int) -> None:
        self._paused, self._single = True, count

    def _stop(self) -> None:
        self._stopping = True

    def _rewind(self, time: float, attempt: str) -> None:
        if self._is_inside:
            raise ContextError(attempt, expected="a call between steps", found="one by a partner")
        number = self.recording.number_at(time) if len(self.recording) else -1
        oldest = self._step - len(self.recording)
        step = oldest + number
        snapshot = self._snapshots.before(step, oldest) if number >= 0 else None
        if snapshot is None:
            span = "nothing is recorded"
            if count := len(self.recording):
                first, last = self.recording.time_at(0), self.recording.time_at(count - 1)
                span = f"a time in {first:g} to {last:g} s"
            raise ValueRefusedError(attempt, expected=span, found=f"{time:g} s")
        simulator, context = self._simulator, self.context
        simulator._go_on_from(snapshot.context)
        for each, memory in zip(self._plan.software, snapshot.software, strict=True):
            each.memory = memory
        changes = self._snapshots.changes(snapshot.step, step)
        rows = self.recording.rows(snapshot.step - oldest, number)[:, 1:]
        self._step = snapshot.step
        for row in (*rows, None):
            for _, entry, value in (each for each in changes if each[0] == self._step):
                entry.write(context, value)
            if row is not None:
                self._repeat(row)
        for channel in self._plan.inputs:
            channel.take(context)
        self._snapshots.forget_after(step)
        self.recording.cut(number)
        self._timed = False
        self._tell("the run was rewound to here")

    def _repeat(self, row: FloatArray) -> None:
        """Take a step again, with the values that partners sent."""
        start = 0
        for channel in self._plan.inputs:
            channel.take(self.context)
            channel.restore(self.context, row[start : start + channel.size])
            start += channel.size
        self._compute()
        self._move_on()
