"""Chunks: some runs of a sweep, done as one piece of work, here or in another process."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import FlexureError, NativeCodeError
from flexure.diagrams.concurrency.threads import Lock, cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.solvers.native.programs.programs import UnsuitableError
from flexure.solvers.native.runs.step_moments import moments_at
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.metrics import Measure
from flexure.solvers.results.records.time_batch import dense_signals
from flexure.solvers.simulation.simulation import result_of
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.sweeps.running.lane_runs import LaneRuns
from flexure.solvers.sweeps.running.metric_columns import Measuring, MetricColumns
from flexure.solvers.sweeps.running.sweep_record import (
    COMPLETED,
    FAILED,
    INTERRUPTED,
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
        self._paths, self._followed = [*measuring.followed], [*measuring.followed.values()]
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

        found = dense_signals(history.grid(), read, self._paths)
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


_FEWEST = 256  # runs of a chunk that memory allows in any case
_MEMORY = 16_000_000  # bytes that the signals of a chunk take, unless that is too few runs
_LEAST = 64  # runs in lanes, fewer of which leave many lanes idle
_GROWTH = 16  # times as many runs in the next chunk, at most


@dataclass
class Chunk:
    """Runs that have been done, or interrupted."""

    runs: NDArray[np.int64]  # their ascending numbers in the sweep, shape (n,)
    # What they did, by their numbers in the chunk; only the samples that are kept.
    record: SweepRecord
    metrics: MetricColumns  # what was measured
    cost: float  # seconds that it took
    native: bool = True  # whether native code did the work
    size: float = 0.0  # bytes that what was measured took, for each run

    @property
    def tally(self) -> tuple[int, int]:
        """How many of them are done, and how many of these failed."""
        outcomes = self.record.outcomes
        return len(outcomes) - outcomes.count(INTERRUPTED), len(self.record.failures)


@dataclass
class Job:
    """Common data of all chunks of a sweep, with all decisions for all runs at once.

    Each part of a job has the same results bit for bit, in whatever chunk, thread or process.
    """

    settings: Settings  # how the runs are integrated
    base: Context  # the context that represents all runs
    measuring: Measuring  # what is sampled, and what is measured
    kept: int  # of how many of the first signals the samples are kept
    method: tuple[str, str] | None = None  # the method of runs in lanes, and why it is that one
    reason: str = ""  # why runs are single simulations, without a method in lanes

    def run(
        self, part: Part, stopping: threading.Event | None = None, watch: Watch | None = None
    ) -> Chunk:
        """Run and measure some of the runs, unless another thread sets an event; may be watched."""
        runner, count = self.runner, len(part.runs)
        began = time.perf_counter()
        numbers = {function: np.full(count, np.nan) for function in self.measuring.functions}
        stopping = stopping or threading.Event()
        if isinstance(runner, LaneRuns):
            record = runner.run(part, stopping, watch)
        else:
            record = runner.run(part, stopping, numbers, watch)
        metrics = self._measure(part, record, numbers)
        size = 0.0 if record.dense is None else record.dense.values.nbytes / max(1, count)
        record.dense = None
        cost = time.perf_counter() - began
        native = isinstance(runner, LaneRuns) or bool(runner.native)
        return Chunk(part.runs, record, metrics, cost, native, size)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "runner"}

    @cached_property
    def runner(self) -> LaneRuns | SingleRuns:
        """Who runs; compiled when it is asked for first."""
        measuring, kept = self.measuring, self.kept
        if self.method is None:
            return SingleRuns(measuring, kept, self.settings, self.reason)
        try:
            simulation = self.settings.simulation(self.base.clone())
            return LaneRuns(simulation, measuring, kept, self.settings, self.method)
        except UnsuitableError as error:
            raise NativeCodeError(
                f"Cannot run a chunk of the sweep of '{self.settings.system.label}'",
                expected="native code, as where the sweep was started",
                found=f"none, because {error}",
                remedy="Install the same packages wherever the runs are run",
            ) from None

    def _measure(
        self, part: Part, record: SweepRecord, numbers: Mapping[Measure, FloatArray]
    ) -> MetricColumns:
        """Measure runs; those of which a metric cannot be computed have failed."""
        count, failures = len(part.runs), dict[int, str]()
        try:
            assert record.dense is not None
            found = self.measuring.measure(record.dense, part.steps, numbers, failures)
        except KeyboardInterrupt as interruption:
            record.interrupt(interruption)
            found = MetricColumns(self.measuring.metrics, count)
        for row, message in failures.items():
            record.fail(row, message)
        for row, outcome in enumerate(record.outcomes):
            if outcome in (FAILED, INTERRUPTED):
                found.blank(row)
        return found


class Pace:
    """How many runs of a job go into the next chunk, which may take about some ``seconds``."""

    def __init__(self, job: Job, seconds: float | None) -> None:
        self._seconds = seconds
        self.known = False  # whether the size of the next chunk rests on a measurement
        self._most = sys.maxsize
        self._measured = bool(job.measuring.followed)
        if seconds is not None:
            readers = [*job.measuring.readers.values()][: job.kept]
            size = 8 * len(job.measuring.times) * sum(reader.size for reader in readers)
            self._most = max(_FEWEST, _MEMORY // max(1, size))
        self._by_itself = job.method is None
        self._least = 1 if job.method is None else min(_LEAST, self._most)
        at_once = seconds is None and job.method is not None and not self._measured
        self._next = self._most if at_once else self._least

    def size(self, left: int, workers: int = 1) -> int:
        """Return the number of runs of the next chunk; towards the end all workers get some."""
        share = -(-left // (2 * workers)) if workers > 1 else left
        return min(left, self._next, max(share, self._next // 4, self._least))

    def learn(self, chunk: Chunk) -> None:
        """Note what a chunk took."""
        self.known = True
        if self._measured:  # what signals do takes memory by the step
            self._most = min(self._most, max(_LEAST, int(_MEMORY / max(1.0, chunk.size))))
        if self._seconds is None:
            # A first run by itself may still be interpreted, and compiles for the others.
            self._next = self._least if self._by_itself else self._most
            self._by_itself = False
            return
        count = len(chunk.runs)
        fitting = int(count * self._seconds / max(chunk.cost, 1e-9))
        self._next = max(1, min(fitting, self._most, max(self._next, _GROWTH * count)))
