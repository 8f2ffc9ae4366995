"""The runs of a sweep: which are to be done, who does them, and what becomes of each chunk."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.context import Context
from flexure.diagrams.errors import EvaluationError, ValueRefusedError, warn
from flexure.diagrams.values import FloatArray
from flexure.solvers.native.preconditions import UnsuitableError
from flexure.solvers.simulation.options import wants_native
from flexure.solvers.simulation.simulation_state import SimulationState
from flexure.solvers.simulation.tolerances import are_sensible
from flexure.solvers.sweeps.chunks import Chunk, Job
from flexure.solvers.sweeps.lane_runs import LaneRuns, breaks_of, method_in_lanes
from flexure.solvers.sweeps.metric_columns import Measuring, MetricColumns, Steps
from flexure.solvers.sweeps.sweep_record import Part, Settings, SweepRecord
from flexure.solvers.sweeps.variants import Variants

_FEWEST = 256  # runs of a chunk
_MEMORY = 64_000_000  # bytes that the samples of a chunk take, unless that is too few runs
_GROWTH = 4  # times as many runs in the next chunk, at most
_LONG = 10.0  # s, beyond which interpreted runs are announced


def run_all(
    variants: Variants,
    settings: Settings,
    measuring: Measuring,
    steps: Steps,
    kept: int,
    *,
    earlier: Iterable[Chunk] = (),
    seconds: float | None = None,
    on_chunk: Callable[[Chunk], object] | None = None,
) -> tuple[SweepRecord, MetricColumns]:
    """Run all variants, and measure them.

    Parameters
    ----------
    variants : Variants
        The beginnings of the runs.
    settings : Settings
        How the runs are integrated.
    measuring : Measuring
        What is sampled and measured.
    steps : mapping
        The steps to which the runs respond.
    kept : int
        Of how many of the first signals the samples are kept. With others, the runs are done in
        chunks whose samples are measured and let go, which has no influence on the numbers.
    earlier : iterable of Chunk
        What has been done before; these runs are not run again.
    seconds : float, optional
        About how long a chunk may take; as long as it takes when omitted.
    on_chunk : callable, optional
        Called with each chunk as soon as it is there, in any order. Runs in it whose outcome is
        "interrupted" have not been done.
    """
    simulation = settings.simulation(variants.base())
    _check(simulation, settings.t_final)
    done = _Done(variants, measuring, kept)
    try:
        for chunk in earlier:
            done.enter(chunk)
        if len(done.missing):
            job, breaks = _settled(simulation, variants, settings, measuring, kept)
            whole = Part(np.arange(len(variants)), variants, steps, breaks)
            for chunk in _done_here(job, whole.of(done.missing), seconds):
                done.enter(chunk)
                if on_chunk is not None:
                    on_chunk(chunk)
                if chunk.record.interruption is not None:
                    break
    except KeyboardInterrupt as error:
        done.record.interruption = error
    return done.record, done.metrics


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
        """What they did; made when it is needed first."""
        return self._empty()

    def enter(self, chunk: Chunk) -> None:
        """Enter what some of them did."""
        if len(chunk.runs) == self._count:
            self.record = chunk.record
        else:
            self.record.put(chunk.runs, chunk.record)
        self.metrics.put(chunk.runs, chunk.metrics)
        self._missing[chunk.runs] = False


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


def _settled(
    simulation: SimulationState,
    variants: Variants,
    settings: Settings,
    measuring: Measuring,
    kept: int,
) -> tuple[Job, FloatArray]:
    """Decide what holds for all runs, at least one; return it, and the break times of lanes."""
    job = Job(settings, variants.base(), measuring, kept)
    readers, breaks = list(measuring.readers.values()), np.array([np.inf])
    try:
        if measuring.functions:
            raise UnsuitableError("a metric is a function of whole results")
        method = method_in_lanes(simulation, settings)
        lanes = LaneRuns(simulation, readers, measuring.times, settings, method)
        lanes.distrust(variants.context(0))
        breaks = breaks_of(variants, settings)
        job.method, job.runner = method, lanes
    except UnsuitableError as reason:
        _require_inputs(simulation.context)
        job.reason = str(reason)
    return job, breaks


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


class _Sizes:
    """How many runs go into the next chunk; the numbers do not depend on it."""

    def __init__(self, job: Job, seconds: float | None) -> None:
        self._seconds = seconds
        self._most = sys.maxsize
        readers = job.measuring.readers.values()
        if job.kept < len(readers) or seconds is not None:
            size = 8 * len(job.measuring.times) * sum(reader.size for reader in readers)
            self._most = max(_FEWEST, _MEMORY // max(1, size))
        self.next = self._most
        if job.method is None:
            self.next = 1
        elif seconds is not None:
            self.next = min(_FEWEST, self._most)

    def learn(self, chunk: Chunk) -> None:
        """Note what a chunk took."""
        self.next = self._most
        if self._seconds is not None:
            fitting = len(chunk.runs) * self._seconds / max(chunk.cost, 1e-9)
            self.next = max(1, int(min(fitting, _GROWTH * len(chunk.runs), self._most)))


def _done_here(job: Job, part: Part, seconds: float | None) -> Iterator[Chunk]:
    """Run chunk after chunk in this process."""
    sizes, first, count = _Sizes(job, seconds), 0, len(part.runs)
    while first < count:
        last = min(first + sizes.next, count)
        chunk = job.run(part.of(np.arange(first, last)))
        if not first:
            _announce(job, chunk, count - last)
        sizes.learn(chunk)
        first = last
        yield chunk


def _announce(job: Job, chunk: Chunk, left: int) -> None:
    """Warn of runs that are interpreted, if those that are left take long."""
    each = chunk.cost / len(chunk.runs)
    if chunk.native or not wants_native(job.settings.compiled) or left * each <= _LONG:
        return
    warn(
        f"{left} runs of '{job.settings.system.label}' will take about "
        f"{left * each:.3g} s, as the first took {each:.2g} s: they are interpreted, "
        f"{chunk.record.how}"
    )


__all__ = ["run_all"]
