"""Chunks: some runs of a sweep, done as one piece of work, here or in another process."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import NativeCodeError
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.native.programs.programs import UnsuitableError
from flexure.solvers.results.measures.metrics import Measure
from flexure.solvers.sweeps.running.lane_runs import LaneRuns
from flexure.solvers.sweeps.running.metric_columns import Measuring, MetricColumns
from flexure.solvers.sweeps.running.single_runs import SingleRuns
from flexure.solvers.sweeps.running.sweep_record import (
    FAILED,
    INTERRUPTED,
    Part,
    Settings,
    SweepRecord,
    Watch,
)

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
