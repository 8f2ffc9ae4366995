"""Running the variants of a sweep: in lanes where that is possible, else one by one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from flexure.diagrams.context import Context
from flexure.diagrams.errors import (
    EvaluationError,
    FlexureError,
    NativeCodeError,
    ValueRefusedError,
)
from flexure.diagrams.values import FloatArray
from flexure.solvers.native.preconditions import UnsuitableError
from flexure.solvers.results.time_batch import Moments, Timeline
from flexure.solvers.simulation.simulation_state import SimulationState
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.simulation.tolerances import are_sensible
from flexure.solvers.sweeps.lane_runs import LaneRuns
from flexure.solvers.sweeps.sweep_record import COMPLETED, TERMINATED, Settings, SweepRecord
from flexure.solvers.sweeps.variants import Variants
from flexure.solvers.tracing.lanes import BatchReader
from flexure.solvers.tracing.signals import Reader


def run_all(
    variants: Variants, readers: Sequence[Reader], times: FloatArray, settings: Settings
) -> SweepRecord:
    """Run all variants.

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
    """
    simulation = settings.simulation(variants.base())
    _check(simulation, settings.t_final)
    if not len(variants):
        return SweepRecord.of(variants, readers, times)
    try:
        return LaneRuns(simulation, variants, readers, settings).run(times)
    except UnsuitableError as reason:
        _require_inputs(simulation.context)
        return _SingleRuns(variants, readers, times, settings).run(str(reason))


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
    ) -> None:
        self._variants = variants
        self._readers = readers
        self._times = times
        self._settings = settings
        self._record = SweepRecord.of(variants, readers, times)
        self._signals = BatchReader(variants.store.layout.root)
        self._stopping = threading.Event()

    def run(self, reason: str) -> SweepRecord:
        """Run all variants, or as many as there are time for before an interruption."""
        try:
            self._run_all(reason)
        except KeyboardInterrupt as error:
            self._record.interruption = error
            self._record.blank_interrupted()
        return self._record

    def _run_all(self, reason: str) -> None:
        """Run one variant after the other; several at once where native code does the work."""
        threads = self._settings.threads if self._run(0) else 1
        others = range(1, len(self._variants))
        if threads == 1:
            self._record.how = f"one after the other, because {reason}"
            for index in others:
                self._run(index)
            return
        self._record.how = f"one by one on {threads} threads, because {reason}"
        pool = ThreadPoolExecutor(threads)
        try:
            list(pool.map(self._run, others))
        except BaseException:
            self._stopping.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _run(self, index: int) -> bool:
        """Run one variant; tell whether native code took all of its steps."""
        context, settings = self._variants.context(index), self._settings
        simulator = settings.simulator(context, record=bool(self._readers), stopping=self._stopping)
        try:
            simulator.advance_to(settings.t_final)
            self._store(index, simulator)
        except NativeCodeError:
            raise
        except Exception as error:
            message = str(error) if isinstance(error, FlexureError) else repr(error)
            self._record.fail(index, message)
        return 0 < simulator.statistics.native_steps == simulator.statistics.steps

    def _store(self, index: int, simulator: Simulator) -> None:
        """Store what a run did."""
        context, record = simulator.context, self._record
        finals, reached = context.continuous_state, self._times[self._times <= context.time]
        if len(reached):
            assert simulator.history is not None
            moments = Moments(Timeline(simulator.history), context, reached)
            found = self._signals.read(self._readers, moments)
            for sample, values in zip(record.samples, found, strict=True):
                sample[index, : len(reached)] = values.reshape(len(reached), -1)
        record.finals[index] = finals
        record.steps[index] = simulator.statistics.steps
        record.outcomes[index] = COMPLETED if simulator.termination is None else TERMINATED


__all__ = ["run_all"]
