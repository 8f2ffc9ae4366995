"""Running the variants of a sweep: in lanes where that is possible, else one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from flexure.diagrams.context import Context
from flexure.diagrams.errors import (
    EvaluationError,
    FlexureError,
    NativeCodeError,
    ValueRefusedError,
    warn,
)
from flexure.diagrams.threads import Lock
from flexure.diagrams.values import FloatArray, as_number
from flexure.solvers.native.preconditions import UnsuitableError
from flexure.solvers.results.metrics import Measure
from flexure.solvers.results.time_batch import Moments, Timeline
from flexure.solvers.simulation.options import wants_native
from flexure.solvers.simulation.simulation import result_of
from flexure.solvers.simulation.simulation_state import SimulationState
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.simulation.tolerances import are_sensible
from flexure.solvers.sweeps.lane_runs import LaneRuns
from flexure.solvers.sweeps.metric_columns import MetricColumns
from flexure.solvers.sweeps.sweep_record import (
    COMPLETED,
    FAILED,
    INTERRUPTED,
    TERMINATED,
    Settings,
    SweepRecord,
)
from flexure.solvers.sweeps.variants import Variants
from flexure.solvers.tracing.lanes import BatchReader
from flexure.solvers.tracing.signals import Reader

_FEWEST = 256  # runs of a chunk
_MEMORY = 64_000_000  # bytes that the samples of a chunk take, unless that is too few runs
_LONG = 10.0  # s, beyond which interpreted runs are announced


def run_all(
    variants: Variants,
    readers: Sequence[Reader],
    times: FloatArray,
    settings: Settings,
    *,
    kept: int,
    columns: MetricColumns,
) -> SweepRecord:
    """Run all variants, and measure them.

    Parameters
    ----------
    variants : Variants
        The beginnings of the runs.
    readers : sequence of Reader
        What is sampled.
    times : ndarray, shape (K,)
        When.
    settings : Settings
        How the runs are integrated.
    kept : int
        Of how many of the first readers the samples are kept. With others, the runs are done in
        chunks whose samples are measured and let go, which has no influence on the numbers.
    columns : MetricColumns
        Where the metrics go.
    """
    simulation = settings.simulation(variants.base())
    _check(simulation, settings.t_final)
    count, states = len(variants), variants.store.layout.num_states
    if not count:
        return SweepRecord.of(0, states, readers[:kept], times)
    runs: LaneRuns | _SingleRuns
    try:
        if columns.numbers:
            raise UnsuitableError("a metric is a function of whole results")
        runs = LaneRuns(simulation, variants, readers, times, settings)
    except UnsuitableError as reason:
        _require_inputs(simulation.context)
        runs = _SingleRuns(variants, readers, times, settings, columns.numbers, str(reason))
    size = 8 * len(times) * sum(reader.size for reader in readers)
    chunk = count if kept == len(readers) else max(_FEWEST, _MEMORY // max(1, size))
    parts: list[SweepRecord] = []
    for first in range(0, count, chunk):
        part = runs.run(first, min(first + chunk, count))
        parts.append(part)
        _measure(columns, first, part)
        if kept < len(readers):
            part.keep(kept)
        if part.interruption is not None:
            missing = count - first - len(part.outcomes)
            parts.append(SweepRecord.of(missing, states, readers[:kept], times))
            break
    return SweepRecord.joined(parts)


def _measure(columns: MetricColumns, first: int, part: SweepRecord) -> None:
    """Measure runs; those of which a metric cannot be computed have failed."""
    failures: dict[int, str] = {}
    try:
        columns.measure(first, part.samples, failures)
    except KeyboardInterrupt as interruption:
        part.interrupt(interruption)
    for index, message in failures.items():
        part.fail(index, message)
    for index, outcome in enumerate(part.outcomes):
        if outcome in (FAILED, INTERRUPTED):
            columns.blank(first + index)


def _check(simulation: SimulationState, t_final: float) -> None:
    """Refuse tolerances and steps that would fail every run."""
    rtol, atol, max_step = simulation.rtol, simulation.atol, simulation.max_step
    if not are_sensible(rtol, atol, max_step):
        raise ValueRefusedError(
            f"Cannot sweep '{simulation.system.label}'",
            expected="rtol and atol that are not negative, and a positive max_step",
            found=f"rtol {rtol}, atol {atol}, max_step {max_step}",
        )
    simulation.require_intervals(t_final)


def _require_inputs(context: Context) -> None:
    """Raise when the equations read an input that nobody fixed, which no run could mend."""
    try:
        with np.errstate(all="ignore"):
            context.store.time_derivatives()
    except EvaluationError:
        for leaf in context.leaves():
            for index in range(len(leaf.system.input_ports)):
                if leaf.input_is_free(index):
                    leaf.read_input(index)


class _SingleRuns:
    """Variants, at least one, each with a simulator of its own."""

    def __init__(
        self,
        variants: Variants,
        readers: Sequence[Reader],
        times: FloatArray,
        settings: Settings,
        numbers: Mapping[Measure, FloatArray],
        reason: str,
    ) -> None:
        self._variants = variants
        self._readers = readers
        self._times = times
        self._settings = settings
        self._numbers = numbers
        self._reason = reason
        self._signals = BatchReader(variants.store.layout.root)
        self._stopping = threading.Event()
        self._measuring = Lock()
        self._threads = 0

    def run(self, first: int, last: int) -> SweepRecord:
        """Run variants from one on, or as many as there is time for before an interruption."""
        states = self._variants.store.layout.num_states
        record = SweepRecord.of(last - first, states, self._readers, self._times)
        try:
            self._run_all(record, first, range(last - first))
        except KeyboardInterrupt as error:
            record.interruption = error
            record.blank_interrupted()
        return record

    def _run_all(self, record: SweepRecord, first: int, rows: range) -> None:
        """Run one variant after the other; several at once where native code does the work."""
        if not self._threads:
            row, rows = rows[0], rows[1:]
            self._begin(record, first, row)
        run = partial(self._run, record, first)
        if self._threads == 1:
            record.how = self._one_by_one
            for row in rows:
                run(row)
            return
        record.how = f"one by one on {self._threads} threads, because {self._reason}"
        pool = ThreadPoolExecutor(self._threads)
        try:
            list(pool.map(run, rows))
        except BaseException:
            self._stopping.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _begin(self, record: SweepRecord, first: int, row: int) -> None:
        """Run the first variant, and settle by it how others run."""
        began = time.perf_counter()
        native = self._run(record, first, row)
        lasted = time.perf_counter() - began
        self._threads = self._settings.threads if native else 1
        left = len(self._variants) - 1
        wanted = wants_native(self._settings.compiled)
        if wanted and not native and left * lasted > _LONG:
            warn(
                f"{left} runs of '{self._settings.system.label}' will take about "
                f"{left * lasted:.3g} s, as the first took {lasted:.2g} s: they are interpreted, "
                f"{self._one_by_one}"
            )

    @property
    def _one_by_one(self) -> str:
        """How runs are run that do not run at once."""
        return f"one after the other, because {self._reason}"

    def _run(self, record: SweepRecord, first: int, row: int) -> bool:
        """Run one variant; tell whether native code took all of its steps."""
        context, settings = self._variants.context(first + row), self._settings
        recorded = bool(self._readers or self._numbers)
        simulator = settings.simulator(context, record=recorded, stopping=self._stopping)
        try:
            simulator.advance_to(settings.t_final)
            self._measure(first + row, simulator)
            self._store(record, row, simulator)
        except NativeCodeError:
            raise
        except Exception as error:
            message = str(error) if isinstance(error, FlexureError) else repr(error)
            record.fail(row, message)
        return 0 < simulator.statistics.native_steps == simulator.statistics.steps

    def _measure(self, index: int, simulator: Simulator) -> None:
        """Call functions of the whole result of a run, one at a time."""
        if not self._numbers:
            return
        with self._measuring:
            result = result_of(simulator)
            for function, column in self._numbers.items():
                column[index] = as_number(function(result), (), "Cannot measure a result")

    def _store(self, record: SweepRecord, row: int, simulator: Simulator) -> None:
        """Store what a run did."""
        context, reached = simulator.context, self._times[self._times <= simulator.context.time]
        finals = context.continuous_state
        if self._readers and len(reached):
            assert simulator.history is not None
            moments = Moments(Timeline(simulator.history), context, reached)
            found = self._signals.read(self._readers, moments)
            for sample, values in zip(record.samples, found, strict=True):
                sample[row, : len(reached)] = values.reshape(len(reached), -1)
        record.finals[row] = finals
        record.steps[row] = simulator.statistics.steps
        record.outcomes[row] = COMPLETED if simulator.termination is None else TERMINATED


__all__ = ["run_all"]
