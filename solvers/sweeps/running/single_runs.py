"""Runs of a sweep as single simulations, for all that lanes do not run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial

from flexure.diagrams.checks.errors import FlexureError, NativeCodeError
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.solvers.native.runs.step_moments import moments_at
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metrics import Measure
from flexure.solvers.results.records.dense_signals import dense_signals
from flexure.solvers.simulation.simulation import result_of
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.sweeps.running.metric_columns import Measuring
from flexure.solvers.sweeps.running.sweep_record import (
    COMPLETED,
    FAILED,
    TERMINATED,
    Part,
    Settings,
    SweepRecord,
    Watch,
)
from flexure.solvers.tracing.lanes import TIME_KEY, BatchReader


class SingleRuns:
    """Runs of a sweep, one after the other in each of several simulators.

    To make a simulator takes longer than many a run. So one whose run was all native, and came to
    no harm, takes over the values of another run, with which it restarts. Samples are kept of the
    first ``kept`` signals; ``reason`` says why there are no lanes.
    """

    def __init__(self, measuring: Measuring, kept: int, settings: Settings, reason: str) -> None:
        self._readers = [*measuring.readers.values()][:kept]
        self._followed = [*measuring.followed.values()]
        self._width = sum(reader.size for reader in self._followed)
        self._times = measuring.times[: len(measuring.times) * (kept > 0)]
        self._settings = settings
        self._reason = reason
        self._signals = BatchReader(settings.system)
        self._measuring = Lock()
        self._idle: list[Simulator] = []  # that have run natively, and no thread has
        # Whether native code does the work; None before the first run.
        self.native: bool | None = None

    @property
    def how(self) -> str:
        """How runs are run."""
        threads = self._settings.threads
        if self.native and threads > 1:
            return f"one by one on {threads} threads, because {self._reason}"
        return f"one after the other, because {self._reason}"

    def run(
        self,
        part: Part,
        stopping: threading.Event,
        numbers: Mapping[Measure, FloatArray],
        watch: Watch | None = None,
    ) -> SweepRecord:
        """Run some variants until an event is set; ``numbers`` gets what functions return."""
        states = part.variants.store.layout.num_states
        record = SweepRecord.of(len(part.runs), states, self._readers, self._times)
        nothing = partial(DenseOutput.unknown, self._settings.t_final, self._width)
        dense = [nothing(start) for start in part.variants.lanes(())[TIME_KEY].tolist()]
        run = partial(self._run, record, dense, part, numbers, stopping)
        try:
            with closing(self._each(run, range(len(part.runs)), stopping)) as ended:
                for done, _ in enumerate(ended, 1):
                    if watch is not None:
                        watch(partial(_counted, done, record))
        except KeyboardInterrupt as error:
            record.interruption = error
        record.dense = DenseOutput.joined(dense, self._width)
        record.blank_interrupted()
        record.how = self.how
        return record

    def _each(
        self, run: Callable[[int], bool], rows: Sequence[int], stopping: threading.Event
    ) -> Generator[bool]:
        """Run one variant after the other; several at once where native code does the work."""
        if self.native is None:
            self.native, rows = run(rows[0]), rows[1:]
            yield self.native
        if not self.native or self._settings.threads == 1:
            yield from map(run, rows)
            return
        pool = ThreadPoolExecutor(self._settings.threads)
        try:
            yield from pool.map(run, rows)
        except BaseException:
            stopping.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _run(
        self,
        record: SweepRecord,
        dense: list[DenseOutput],
        part: Part,
        numbers: Mapping[Measure, FloatArray],
        stopping: threading.Event,
        row: int,
    ) -> bool:
        """Run one variant; tell whether native code took all of its steps."""
        recorded = bool(self._readers or self._followed or numbers)
        simulator = self._simulator(part.variants.context(row), recorded=recorded)
        simulator._state.interrupt_on(stopping)
        try:
            simulator.advance_to(self._settings.t_final)
            self._measure(simulator, numbers, row)
            dense[row] = self._follow(simulator)
            self._store(record, row, simulator)
        except NativeCodeError:
            raise
        except Exception as error:
            message = str(error) if isinstance(error, FlexureError) else repr(error)
            record.fail(row, message)
        native = 0 < simulator.statistics.native_steps == simulator.statistics.steps
        if native and not numbers and record.outcomes[row] != FAILED:
            self._idle.append(simulator)
        return native

    def _simulator(self, context: Context, *, recorded: bool) -> Simulator:
        """Return what simulates from a context: one that has run before, or a new one."""
        with suppress(IndexError):
            simulator = self._idle.pop()
            if simulator.context.accuracy == context.accuracy:  # which decides on tolerances
                simulator._begin_anew(context)
                return simulator
        return self._settings.simulator(context, record=recorded)

    def _measure(
        self, simulator: Simulator, numbers: Mapping[Measure, FloatArray], row: int
    ) -> None:
        """Call functions of the whole result of a run, one at a time."""
        if not numbers:
            return
        with self._measuring:
            result = result_of(simulator)
            for function, column in numbers.items():
                column[row] = as_number(function(result), (), "Cannot measure a result")

    def _follow(self, simulator: Simulator) -> DenseOutput:
        """Return what signals did that metrics read; NaN after a run was terminated."""
        end, t_final = simulator.context.time, self._settings.t_final
        rest = [DenseOutput.unknown(t_final, self._width, end)] if end < t_final else []
        if not self._followed:
            return DenseOutput.unknown(t_final, self._width, end)
        history, context = simulator.history, simulator.context.clone()
        assert history is not None

        def read(times: FloatArray) -> list[FloatArray]:
            return self._signals.read(self._followed, moments_at(history, context, times))

        found = dense_signals(history.grid(), read)
        return DenseOutput.joined([found, *rest], self._width).as_one()

    def _store(self, record: SweepRecord, row: int, simulator: Simulator) -> None:
        """Store what a run did."""
        context, reached = simulator.context, self._times[self._times <= simulator.context.time]
        finals = context.continuous_state
        if self._readers and len(reached):
            assert simulator.history is not None
            moments = moments_at(simulator.history, context, reached)
            found = self._signals.read(self._readers, moments)
            for sample, values in zip(record.samples, found, strict=True):
                sample[row, : len(reached)] = values.reshape(len(reached), -1)
        record.finals[row] = finals
        record.steps[row] = simulator.statistics.steps
        record.outcomes[row] = COMPLETED if simulator.termination is None else TERMINATED


def _counted(done: int, record: SweepRecord) -> tuple[int, int]:
    """Return how many runs are done, and how many of them failed."""
    return done, len(record.failures)
