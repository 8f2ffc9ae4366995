"""Running the variants of a sweep: in lanes where that is possible, else one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.context import Context
from flexure.diagrams.errors import FlexureError, NativeCodeError, TraceError, ValueRefusedError
from flexure.diagrams.events import Forced, Initialization
from flexure.diagrams.layout import Layout
from flexure.diagrams.system import System
from flexure.diagrams.values import FloatArray
from flexure.solvers.choice import Method
from flexure.solvers.lanes import TIME_KEY, BatchReader, Lanes, agree
from flexure.solvers.methods import method_name
from flexure.solvers.moments import Moments, Timeline
from flexure.solvers.signals import Reader
from flexure.solvers.simulator import Compiled, Simulator
from flexure.solvers.tolerances import Tolerance
from flexure.solvers.trace import STATE, Key, number_behind
from flexure.solvers.variants import Variants

if TYPE_CHECKING:
    from flexure.solvers.native.lane_equations import LaneEquations

COMPLETED, TERMINATED, FAILED = "completed", "terminated", "failed"


@dataclass(frozen=True)
class Settings:
    """What all runs of a sweep have in common; see `flexure.sweep`."""

    system: System
    t_final: float
    method: Method
    rtol: Tolerance | None
    atol: Tolerance | None
    max_step: float
    step: float | None
    compiled: Compiled
    threads: int

    def simulator(self, context: Context, **options: Any) -> Simulator:
        """Make the simulator of one run."""
        return Simulator(
            self.system,
            context,
            method=self.method,
            rtol=self.rtol,
            atol=self.atol,
            max_step=self.max_step,
            step=self.step,
            compiled=self.compiled,
            **options,
        )


@dataclass
class Record:
    """What the runs did.

    Attributes
    ----------
    finals : ndarray, shape (N, n)
        Continuous states at the end; NaN where a run failed.
    samples : list of ndarray, each of shape (N, K, size)
        Signals at the times of samples; NaN where a run failed, and after it was terminated.
    outcomes : list of str
        How each run ended.
    failures : dict
        What went wrong, by the index of the run.
    how : str
        How the runs were run.
    """

    finals: FloatArray
    samples: list[FloatArray]
    outcomes: list[str]
    failures: dict[int, str]
    how: str = ""

    @classmethod
    def of(cls, variants: Variants, readers: Sequence[Reader], times: FloatArray) -> Record:
        """Make a record without any run."""
        count = len(variants)
        return cls(
            finals=np.full((count, variants.store.layout.num_states), np.nan),
            samples=[np.full((count, len(times), reader.size), np.nan) for reader in readers],
            outcomes=[COMPLETED] * count,
            failures={},
        )

    def fail(self, index: int, message: str) -> None:
        """Note that a run failed."""
        self.outcomes[index] = FAILED
        self.failures[index] = message
        self.finals[index] = np.nan
        for sample in self.samples:
            sample[index] = np.nan


def run_all(
    variants: Variants, readers: Sequence[Reader], times: FloatArray, settings: Settings
) -> Record:
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
    simulator = settings.simulator(variants.base())
    _check(simulator)
    if not len(variants):
        return Record.of(variants, readers, times)
    try:
        return _LaneRuns(simulator, variants, readers, settings).run(times)
    except _UnsuitableError as reason:
        return _one_by_one(variants, readers, times, settings, str(reason))


def _check(simulator: Simulator) -> None:
    """Refuse tolerances that would fail every run."""
    tolerances = np.concatenate([simulator.rtol, simulator.atol, [simulator.max_step]])
    if not (np.all(tolerances >= 0.0) and simulator.max_step > 0.0):
        raise ValueRefusedError(
            f"Cannot sweep '{simulator.system.label}'",
            expected="rtol and atol that are not negative, and a positive max_step",
            found=f"rtol {simulator.rtol}, atol {simulator.atol}, max_step {simulator.max_step}",
        )


# In lanes ----------------------------------------------------------------------------------


class _UnsuitableError(Exception):
    """Why runs cannot be run in lanes, as the end of a sentence."""


class _LaneRuns:
    """Runs in lanes.

    Raises
    ------
    _UnsuitableError
        When there cannot be any.
    """

    def __init__(
        self,
        simulator: Simulator,
        variants: Variants,
        readers: Sequence[Reader],
        settings: Settings,
    ) -> None:
        self._simulator = simulator
        self._variants = variants
        self._readers = readers
        self._settings = settings
        self._layout: Layout = simulator.context.store.layout
        self._equations = self._compile()

    def _compile(self) -> LaneEquations:
        """Compile the equations for lanes."""
        if self._settings.compiled in (False, "python"):
            raise _UnsuitableError("native code was not wanted")
        from flexure.solvers.native.library import available
        from flexure.solvers.native.methods import METHODS
        from flexure.solvers.native.program import program_of

        if not available():
            raise _UnsuitableError("the extra flexure[fast] is not installed")
        self._refuse_events()
        if self._layout.num_states == 0:
            raise _UnsuitableError("there is no continuous state")
        choice, store = self._simulator.choice, self._simulator.context.store
        choice.aim(self._settings.t_final)
        self._method = method_name(choice.settle(self._simulator.derivatives, store.time, store.x))
        self._why = choice.changes[-1][2]
        if self._method not in METHODS or METHODS[self._method].linear:
            raise _UnsuitableError(f"{self._method} does not run in lanes ({self._why})")
        try:
            self._program = program_of(self._layout)
            equations = self._program.lane_equations(self._readers)
        except TraceError as error:
            raise _UnsuitableError(error.attempt[0].lower() + error.attempt[1:]) from None
        self._distrust(equations)
        return equations

    def _refuse_events(self) -> None:
        """Refuse events that lanes do not run; logs have no place in a sweep and are left out."""
        for leaf in self._layout.leaves:
            for event in leaf.events:
                logs = event.record is not None or isinstance(event.trigger, Forced)
                if not (
                    logs or (isinstance(event.trigger, Initialization) and event.kind != "publish")
                ):
                    raise _UnsuitableError(f"'{event.label}' is an event")
            if leaf.has_break_times and leaf.discrete_states:
                raise _UnsuitableError(f"the break times of '{leaf.label}' may change")

    def _distrust(self, equations: LaneEquations) -> None:
        """Refuse equations of which a trace gives other numbers, because of a hidden state."""
        context = self._variants.context(0)
        store = context.store
        lanes = {((STATE, 0, 0), k): np.array([x]) for k, x in enumerate(store.x)}
        lanes[TIME_KEY] = np.array([store.time])
        with np.errstate(all="ignore"):
            expected = np.hstack(
                [store.time_derivatives(), *(read(context) for read in self._readers)]
            )
            traced = Lanes([*equations.derivatives, *equations.signals])
            found = traced.evaluate(store, lanes)[:, 0]
        if not agree(found, expected):
            raise _UnsuitableError("tracing the equations gave other numbers")

    def run(self, times: FloatArray) -> Record:
        """Run all variants."""
        from flexure.solvers.native.batch import Runs, integrate_runs

        settings, simulator = self._settings, self._simulator
        lanes = self._lanes()
        states = [((STATE, 0, 0), k) for k in range(self._layout.num_states)]
        placed = {
            self._equations.place(key): numbers
            for key, numbers in lanes.items()
            if key != TIME_KEY and key[0][0] != STATE
        }
        count = len(self._variants)
        runs = Runs(
            starts=lanes[TIME_KEY],
            initial=np.column_stack([lanes[key] for key in states]),
            env=self._environment(lanes),
            places=np.array(list(placed), dtype=np.int64),
            table=np.column_stack([np.empty((count, 0)), *placed.values()]),
            breaks=self._breaks(lanes[TIME_KEY]),
        )
        outcome = integrate_runs(
            self._equations,
            runs,
            settings.t_final,
            times,
            method=self._method,
            rtol=np.broadcast_to(simulator.rtol, len(states)),
            atol=np.broadcast_to(simulator.atol, len(states)),
            max_step=simulator.max_step,
            threads=settings.threads,
        )
        record = Record.of(self._variants, self._readers, times)
        record.finals = outcome.finals
        ends = np.cumsum([reader.size for reader in self._readers])
        record.samples = np.split(outcome.samples, ends[:-1], axis=2) if len(ends) else []
        for index in np.flatnonzero(outcome.outcomes).tolist():
            record.fail(index, _explained(outcome.outcomes[index], outcome.ends[index], index))
        record.how = (
            f"native code in {self._equations.lanes} lanes on {outcome.threads} threads: "
            f"{self._method}, {self._why}"
        )
        return record

    def _lanes(self) -> dict[Key, FloatArray]:
        """Return the numbers in which runs differ, and all states, after the initialization."""
        keys, store = self._equations.keys, self._variants.store
        lanes = self._variants.lanes(keys)
        for k, x in enumerate(store.x):
            lanes.setdefault(((STATE, 0, 0), k), np.full(len(self._variants), x))
        with np.errstate(all="ignore"):
            self._equations.initialize(store, lanes)
        return lanes

    def _environment(self, lanes: dict[Key, FloatArray]) -> FloatArray:
        """Return the numbers that the runs share."""
        environment, store = self._equations.environment, self._variants.store
        env = np.zeros(environment.size)
        self._program.read_discrete(store, env)
        for key, place in environment.keys.items():
            if key not in lanes:
                env[place] = number_behind(store, key)
        return env

    def _breaks(self, starts: FloatArray) -> FloatArray:
        """Return the break times of all runs, or of each where they may differ."""
        positions = [k for k, leaf in enumerate(self._layout.leaves) if leaf.has_break_times]
        first = float(np.min(starts))
        if not any(self._variants.differ_in(position) for position in positions):
            return np.array([*self._break_times(self._simulator.context, positions, first), np.inf])
        contexts = map(self._variants.context, range(len(starts)))
        each = [self._break_times(context, positions, first) for context in contexts]
        table = np.full((len(each), 1 + max(map(len, each))), np.inf)
        for row, breaks in zip(table, each, strict=True):
            row[: len(breaks)] = breaks
        return table

    def _break_times(self, context: Context, positions: list[int], time: float) -> list[float]:
        """Return the break times after a time, up to the end of the runs."""
        store, found = context.store, []
        while positions:
            store.set_motion(time, store.x)
            leaves = [store.leaves[position] for position in positions]
            following = [float(leaf.system.calc_next_break_time(leaf)) for leaf in leaves]
            time = min((each for each in following if each > time), default=np.inf)
            if time > self._settings.t_final:
                break
            found.append(time)
        return found


def _explained(outcome: int, time: float, index: int) -> str:
    """Say why a run in a lane failed."""
    from flexure.solvers.native.ensemble import NOT_FINITE, TOO_SMALL

    what = {
        NOT_FINITE: "the equations are not finite there",
        TOO_SMALL: "no step that advances time meets the tolerances",
    }.get(outcome, "the steps hardly advance time")
    return (
        f"Cannot integrate past t = {time:.9g} s: {what}. The whole error comes with "
        f"fx.simulate(sweep.system, sweep.t_final, sweep.context({index}))."
    )


# One by one --------------------------------------------------------------------------------


def _one_by_one(
    variants: Variants,
    readers: Sequence[Reader],
    times: FloatArray,
    settings: Settings,
    reason: str,
) -> Record:
    """Run one variant after the other; several at once where native code does the work."""
    record = Record.of(variants, readers, times)
    signals = BatchReader(variants.store.layout.root)

    def run(index: int) -> bool:
        """Run one variant; tell whether native code took all of its steps."""
        simulator = settings.simulator(variants.context(index), record=bool(readers))
        try:
            simulator.advance_to(settings.t_final)
            _store(record, index, simulator, signals, readers, times)
        except NativeCodeError:
            raise
        except Exception as error:
            record.fail(index, f"{error}" if isinstance(error, FlexureError) else repr(error))
        return simulator.statistics.native_steps == simulator.statistics.steps > 0

    threads = settings.threads if run(0) else 1
    record.how = f"one after the other, because {reason}"
    if threads == 1:
        for index in range(1, len(variants)):
            run(index)
    else:
        record.how = f"one by one on {threads} threads, because {reason}"
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, range(1, len(variants))))
    return record


def _store(
    record: Record,
    index: int,
    simulator: Simulator,
    signals: BatchReader,
    readers: Sequence[Reader],
    times: FloatArray,
) -> None:
    """Store what a run did."""
    context = simulator.context
    record.finals[index] = context.continuous_state
    if simulator.termination is not None:
        record.outcomes[index] = TERMINATED
    if readers:
        assert simulator.history is not None
        reached = times[times <= context.time]
        moments = Moments(Timeline(simulator.history), context, reached)
        if len(reached):
            found = signals.read(readers, moments)
            for sample, values in zip(record.samples, found, strict=True):
                sample[index, : len(reached)] = values.reshape(len(reached), -1)


__all__ = ["Record", "Settings", "run_all"]
