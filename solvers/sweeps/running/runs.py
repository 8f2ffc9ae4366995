"""The runs of a sweep: which are to be done, who does them, and what becomes of each chunk."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor
from contextlib import closing
from functools import partial

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import EvaluationError, ExecutorError, warn
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.native.programs.programs import UnsuitableError
from flexure.solvers.simulation.run_control.options import wants_native
from flexure.solvers.simulation.run_control.simulation_state import SimulationState
from flexure.solvers.sweeps.running.chunks import Chunk, Job, Pace
from flexure.solvers.sweeps.running.executors import Workers, done_elsewhere
from flexure.solvers.sweeps.running.lane_runs import (
    LaneRuns,
    breaks_of,
    method_in_lanes,
    require_starts,
)
from flexure.solvers.sweeps.running.metric_columns import Measuring, MetricColumns, Steps
from flexure.solvers.sweeps.running.sweep_record import (
    Part,
    RunCounter,
    Settings,
    SweepRecord,
    Watch,
)
from flexure.solvers.sweeps.running.variants import SweptContexts, Variants

_LONG = 10.0  # s, beyond which interpreted runs are announced


def run_all(
    variants: Variants,
    settings: Settings,
    measuring: Measuring,
    steps: Steps,
    kept: int,
    *,
    earlier: Iterable[Chunk] = (),
    executor: Executor | None = None,
    seconds: float | None = None,
    on_chunk: Callable[[Chunk], object] | None = None,
    counter: RunCounter | None = None,
) -> tuple[SweepRecord, MetricColumns]:
    """Run all variants but for those in ``earlier`` chunks, and measure them.

    Samples are kept of the first ``kept`` signals. With metrics, the runs are done in chunks, each
    of about ``seconds`` in this thread: each is measured, and its dense output discarded. The
    numbers do not depend on the size of chunks. ``on_chunk`` is called with each chunk as soon as
    it is there, in any order. Runs in it whose outcome is "interrupted" have not been done.
    """
    simulation = settings.simulation(variants.base())
    attempt = f"Cannot sweep '{simulation.system.label}'"
    require(simulation.max_step > 0.0, simulation.max_step, attempt, "a positive max_step")
    simulation.require_intervals(settings.t_final)
    done = _Done(variants, measuring, kept)
    try:
        for chunk in earlier:
            done.enter(chunk)
            if counter is not None:
                counter.skip(*chunk.tally)
        if len(done.missing):
            job, breaks = _settled(simulation, variants, settings, measuring, kept)
            part = Part(np.arange(len(variants)), variants, steps, breaks).of(done.missing)
            if executor is None:
                chunks = _done_here(job, part, seconds, None if counter is None else counter.watch)
            else:
                chunks = done_elsewhere(executor, job, part)
            workers = 1 if executor is None else len(Workers(executor))
            with closing(chunks):
                _take(chunks, job, done, on_chunk, workers, counter)
    except (KeyboardInterrupt, ExecutorError) as error:
        done.record.interruption = error
    return done.record, done.metrics


def run_again(
    variants: Variants, settings: Settings, measuring: Measuring, kept: int, run: int
) -> tuple[Variants, Chunk]:
    """Run one of the variants by itself, with what was decided for all of them."""
    simulation = settings.simulation(variants.base())
    job, breaks = _settled(simulation, variants, settings, measuring, kept)
    chosen = np.array([run])
    alone = variants.loaded(variants.cargo(chosen))
    if isinstance(variants, SweptContexts) and isinstance(alone, SweptContexts):
        alone.plan = variants.plan[[run]]
        alone.values = {path: rows[chosen] for path, rows in variants.values.items()}
    mine = breaks[chosen] if breaks.ndim == 2 else breaks
    return alone, job.run(Part(chosen, alone, measuring.find_steps(alone), mine))


class _Done:
    """What is known of the runs of a sweep."""

    def __init__(self, variants: Variants, measuring: Measuring, kept: int) -> None:
        self._count = len(variants)
        readers = list(measuring.readers.values())[:kept]
        states = variants.store.layout.num_states
        self._empty = partial(SweepRecord.of, self._count, states, readers, measuring.times)
        self._missing = np.ones(self._count, dtype=bool)
        self.metrics = MetricColumns(measuring.metrics, self._count)

    @property
    def missing(self) -> NDArray[np.int64]:
        """The runs that have not been done."""
        return np.flatnonzero(self._missing)

    @cached_property
    def record(self) -> SweepRecord:
        """Their results; made when they are needed first."""
        return self._empty()

    def enter(self, chunk: Chunk) -> None:
        """Enter what some of them did."""
        if len(chunk.runs) == self._count:
            self.record = chunk.record
        else:
            self.record.put(chunk.runs, chunk.record)
        self.metrics.put(chunk.runs, chunk.metrics)
        self._missing[chunk.runs] = False


def _settled(
    simulation: SimulationState,
    variants: Variants,
    settings: Settings,
    measuring: Measuring,
    kept: int,
) -> tuple[Job, FloatArray]:
    """Decide what holds for all runs, at least one; return it, and the break times of lanes."""
    job = Job(settings, variants.base(), measuring, kept)
    breaks = np.array([np.inf])
    try:
        if measuring.functions:
            raise UnsuitableError("a metric is a function of whole results")
        method = method_in_lanes(simulation, settings)
        lanes = LaneRuns(simulation, measuring, kept, settings, method)
        lanes.distrust(variants.context(0))
        require_starts(variants, settings.t_final)
        breaks = breaks_of(variants, settings)
        job.method, job.runner = method, lanes
    except UnsuitableError as reason:
        _require_inputs(simulation.context)
        job.reason = str(reason)
    return job, breaks


def _require_inputs(context: Context) -> None:
    """Raise when the equations read an input that is not fixed, which fails in every run."""
    try:
        with np.errstate(all="ignore"):
            context.store.time_derivatives()
    except EvaluationError:
        for leaf in context.leaves():
            for index in range(len(leaf.system.input_ports)):
                if leaf.input_is_free(index):
                    leaf.read_input(index)


def _done_here(
    job: Job, part: Part, seconds: float | None, watch: Watch | None
) -> Generator[Chunk]:
    """Run chunk after chunk in this thread."""
    pace, first, count = Pace(job, seconds), 0, len(part.runs)
    while first < count:
        last = first + pace.size(count - first)
        chunk = job.run(part.of(np.arange(first, last)), watch=watch)
        pace.learn(chunk)
        first = last
        yield chunk


def _take(
    chunks: Iterable[Chunk],
    job: Job,
    done: _Done,
    on_chunk: Callable[[Chunk], object] | None,
    workers: int,
    counter: RunCounter | None,
) -> None:
    """Enter chunks as they come, until one was interrupted."""
    for number, chunk in enumerate(chunks):
        done.enter(chunk)
        if counter is not None:
            counter.add(*chunk.tally)
        if on_chunk is not None:
            on_chunk(chunk)
        if chunk.record.interruption is not None:
            return
        # The first chunk may be interpreted until there is code for the others.
        if number == 1 and not chunk.native and wants_native(job.settings.compiled):
            _announce(job, chunk, len(done.missing), workers)


def _announce(job: Job, chunk: Chunk, left: int, workers: int) -> None:
    """Warn of runs that are interpreted, if those that are left take long."""
    each = chunk.cost / len(chunk.runs)
    seconds = left * each / workers
    if seconds > _LONG:
        warn(
            f"{left} runs of '{job.settings.system.label}' will take about "
            f"{seconds:.3g} s, as the second took {each:.2g} s: they are interpreted, "
            f"{chunk.record.how}"
        )
