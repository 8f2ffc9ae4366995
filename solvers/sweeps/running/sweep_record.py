"""The record of a sweep: common data of the runs, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.options import Compiled, IntegrationOptions
from flexure.solvers.simulation.run_control.progress_bar import ProgressBar
from flexure.solvers.simulation.run_control.simulation_state import SimulationState
from flexure.solvers.simulation.simulation import simulate
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.sweeps.running.metric_columns import Steps, Wanted, part_of
from flexure.solvers.sweeps.running.variants import Variants
from flexure.solvers.tracing.signals import Reader, Signal

COMPLETED, TERMINATED, FAILED = "completed", "terminated", "failed"
INTERRUPTED = "interrupted"


class SweepOptions(IntegrationOptions, total=False):
    """Options of `flexure.sweep`, which says what they mean, and of `flexure.simulate_many`."""

    signals: Signal | Iterable[Signal]
    times: npt.ArrayLike | None
    metrics: Wanted | Iterable[Wanted] | Mapping[str, Wanted]
    executor: Executor | None
    threads: int | None
    progress: bool


@dataclass(frozen=True)
class Settings:
    """Common data of all runs of a sweep."""

    system: System
    t_final: float
    integration: IntegrationOptions
    threads: int

    @property
    def compiled(self) -> Compiled | None:
        """Whether the equations may be compiled, and to what; None when the option is omitted."""
        return self.integration.get("compiled")

    def simulator(self, context: Context, *, record: bool = False) -> Simulator:
        """Make the simulator of one run."""
        return Simulator(self.system, context, record=record, **self.integration)

    def simulate(self, context: Context) -> SimulationResult:
        """Simulate one run by itself, with all of its history."""
        return simulate(self.system, self.t_final, context=context, **self.integration)

    def simulation(self, context: Context) -> SimulationState:
        """Return what a simulator knows before it begins, for those who do its work in lanes."""
        return self.simulator(context)._state


@dataclass(frozen=True)
class Part:
    """Some of the runs of a sweep, before they run."""

    runs: NDArray[np.int64]  # their ascending numbers in the sweep, shape (n,)
    variants: Variants  # their beginnings
    steps: Steps  # the steps to which they respond
    # In lanes, the ascending break times of all runs or of each; infinity at the end, shape (B,) or
    # (n, B).
    breaks: FloatArray

    def of(self, rows: NDArray[np.int64]) -> Part:
        """Return some of these runs."""
        if len(rows) == len(self.runs):
            return self
        return Part(
            self.runs[rows],
            self.variants.loaded(self.variants.cargo(rows)),
            part_of(self.steps, rows),
            self.breaks[rows] if self.breaks.ndim == 2 else self.breaks,
        )


@dataclass
class SweepRecord:
    """Results of the runs."""

    finals: FloatArray  # continuous states at the end; NaN where a run failed, shape (N, n)
    # Signals at the times of samples; NaN where a run failed, and after it was terminated,
    # shape (N, K, size).
    samples: list[FloatArray]
    steps: NDArray[np.int64]  # accepted integrator steps, shape (N,)
    outcomes: list[str]  # how each run ended
    # What went wrong, by the index of the run.
    failures: dict[int, str] = field(default_factory=dict)
    how: str = ""  # how the runs were run
    # The interruption that ended the sweep early: by the user, or by a lost worker.
    interruption: BaseException | None = None
    # What the signals that metrics read did, until that is measured.
    dense: DenseOutput | None = None

    @classmethod
    def of(
        cls, runs: int, states: int, readers: Sequence[Reader], times: FloatArray
    ) -> SweepRecord:
        """Make a record in which no run has ended yet."""
        return cls(
            finals=np.full((runs, states), np.nan),
            samples=[np.full((runs, len(times), reader.size), np.nan) for reader in readers],
            steps=np.zeros(runs, dtype=np.int64),
            outcomes=[INTERRUPTED] * runs,
        )

    def put(self, runs: NDArray[np.int64], part: SweepRecord) -> None:
        """Enter what some of the runs did, by their numbers."""
        self.finals[runs] = part.finals
        for sample, its in zip(self.samples, part.samples, strict=True):
            sample[runs] = its
        self.steps[runs] = part.steps
        for index, outcome in zip(runs.tolist(), part.outcomes, strict=True):
            self.outcomes[index] = outcome
        numbers = runs.tolist()
        self.failures |= {numbers[row]: text for row, text in part.failures.items()}
        self.how = self.how or part.how
        self.interruption = self.interruption or part.interruption

    def interrupt(self, interruption: KeyboardInterrupt) -> None:
        """Note that the runs came to nothing."""
        self.interruption = interruption
        self.outcomes = [INTERRUPTED] * len(self.outcomes)
        self.failures.clear()
        self.steps[:] = 0
        self.blank_interrupted()

    def fail(self, index: int, message: str) -> None:
        """Note that a run failed."""
        self.outcomes[index] = FAILED
        self.failures[index] = message
        self._blank(index)

    def blank_interrupted(self) -> None:
        """Remove the numbers of runs that have not ended."""
        for index, outcome in enumerate(self.outcomes):
            if outcome == INTERRUPTED:
                self._blank(index)

    def _blank(self, index: int) -> None:
        """Remove the numbers of a run."""
        self.finals[index] = np.nan
        for sample in self.samples:
            sample[index] = np.nan


#: Called now and then in the midst of a chunk; what it is passed tells how many of its runs are
#: done, and how many of these have failed.
Watch = Callable[[Callable[[], tuple[int, int]]], None]


class RunCounter:
    """Counts the runs that are done, and those of them that failed."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._done = self._failed = 0

    def skip(self, done: int, failed: int) -> None:
        """Add runs that were done before."""
        self._done, self._failed = self._done + done, self._failed + failed
        self._bar.begin_at(self._done)

    def add(self, done: int, failed: int) -> None:
        """Add the runs of a chunk."""
        self._done, self._failed = self._done + done, self._failed + failed
        self._bar.update(self._done, self._failed)

    def watch(self, count: Callable[[], tuple[int, int]]) -> None:
        """Show runs of a chunk that is being done, if something is to be shown now."""
        if self._bar.due:
            done, failed = count()
            self._bar.update(self._done + done, self._failed + failed)
