"""The runs of a sweep in lanes: which can be, what they consist of, what becomes of them."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import EvaluationError, TraceError, ValueRefusedError, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.updates import initialize
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Event, Forced, Initialization, Periodic
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.symbolic_values import PARAMETER, STATE, Key
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.native.kernels.ensembles.ensemble import (
    ASTRAY,
    NOT_FINITE,
    TOO_SMALL,
    UNFINISHED,
)
from flexure.solvers.native.programs.lane_equations import LaneEquations
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.native.programs.programs import (
    BoundProgram,
    UnsuitableError,
    has_loop,
    native_program,
    require_native,
)
from flexure.solvers.native.programs.system_trace import moving_breaks
from flexure.solvers.native.runs.batch import EnsembleRuns, integrate_runs
from flexure.solvers.results.records.time_batch import warn_of_rough
from flexure.solvers.simulation.run_control.options import wants_native
from flexure.solvers.simulation.run_control.simulation_state import SimulationState
from flexure.solvers.sweeps.running.metric_columns import Measuring
from flexure.solvers.sweeps.running.sweep_record import (
    COMPLETED,
    INTERRUPTED,
    Part,
    Settings,
    SweepRecord,
    Watch,
)
from flexure.solvers.sweeps.running.variants import Variants
from flexure.solvers.tracing.lanes import TIME_KEY
from flexure.solvers.tracing.trace import number_behind
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agrees_at, interpreted_numbers

_MOST_STATES = 200  # of implicit methods, whose linear equations may need a matrix for each lane
_MOST_BREAKS = 100_000  # of one run


def method_in_lanes(simulation: SimulationState, settings: Settings) -> tuple[str, str]:
    """Return the method that all runs take in lanes, and why."""
    if not wants_native(settings.compiled):
        raise UnsuitableError("native code is switched off")
    store, choice = simulation.store, simulation.choice
    for event in (event for leaf in store.layout.leaves for event in leaf.events):
        if not _is_harmless(event):
            raise UnsuitableError(f"'{event.label}' is an event")
    require_native(store.layout)
    if not has_loop(choice.method):
        raise UnsuitableError(f"{method_name(choice.method)} does not run in lanes (as asked)")
    program = native_program(store)
    choice.aim(settings.t_final)
    try:
        method = choice.settle(BoundProgram(program, store), store.time, store.x)
    except (EvaluationError, ValueRefusedError):
        raise UnsuitableError("the equations reject the values of the context") from None
    name, why = method_name(method), choice.changes[-1][2]
    if METHODS[name].iterative:
        raise UnsuitableError(f"{name} does not run in lanes (as asked)")
    if METHODS[name].linear and store.layout.num_states > _MOST_STATES:
        raise UnsuitableError(f"{name} runs in lanes with at most {_MOST_STATES} states")
    return name, why


class LaneRuns:
    """Runs of a sweep in lanes, of which ``simulation`` represents all.

    Samples are kept of the first ``kept`` signals. ``method`` is the method, and why that one.
    """

    def __init__(
        self,
        simulation: SimulationState,
        measuring: Measuring,
        kept: int,
        settings: Settings,
        method: tuple[str, str],
    ) -> None:
        self._simulation = simulation
        self._readers = [*measuring.readers.values()]
        self._kept, self._followed = self._readers[:kept], measuring.components
        self._paths = [path for path, each in measuring.followed.items() for _ in range(each.size)]
        self._times = measuring.times[: len(measuring.times) * (kept > 0)]
        self._settings = settings
        self._layout: Layout = simulation.store.layout
        self._method, self._why = method
        self._program = native_program(simulation.store)
        try:
            self._equations: LaneEquations = self._program.lane_equations(
                self._readers, implicit=METHODS[self._method].linear
            )
        except TraceError as error:
            raise UnsuitableError.because(error) from None

    def distrust(self, context: Context) -> None:
        """Refuse equations of which a trace gives other numbers, because of a hidden state."""
        store, equations = context.store, self._equations

        def values(x: FloatArray) -> FloatArray:
            lanes = {((STATE, 0, 0), k): np.array([number]) for k, number in enumerate(x)}
            lanes[TIME_KEY] = np.array([store.time])
            return np.asarray(equations.traced.evaluate(store, lanes)[:, 0])

        expected = interpreted_numbers(store, (read(context) for read in self._readers))
        if expected is None:
            raise UnsuitableError("the equations reject the values of the first run")
        with np.errstate(all="ignore"):
            agrees = agrees_at(values, store.x, expected)
        if not agrees:
            raise UnsuitableError(OTHER_NUMBERS)

    def run(self, part: Part, stopping: threading.Event, watch: Watch | None = None) -> SweepRecord:
        """Run some variants, until an event is set; progress may be watched."""
        settings, simulation = self._settings, self._simulation
        runs = self._prepare(part)
        n = runs.initial.shape[1]
        outcome = integrate_runs(
            self._equations,
            runs,
            settings.t_final,
            self._times,
            method=self._method,
            rtol=np.broadcast_to(simulation.rtol, n),
            atol=np.broadcast_to(simulation.atol, n),
            max_step=simulation.max_step,
            most_steps=simulation.max_steps,
            threads=settings.threads,
            stopping=stopping,
            sampled=sum(reader.size for reader in self._kept),
            followed=self._followed,
            watch=None if watch is None else lambda ends: watch(partial(_counted, ends)),
        )
        ends = np.cumsum([reader.size for reader in self._kept], dtype=int)
        record = SweepRecord(
            finals=outcome.finals,
            samples=np.split(outcome.samples, ends, axis=2)[:-1],
            steps=outcome.steps,
            outcomes=[
                INTERRUPTED if how == UNFINISHED else COMPLETED for how in outcome.outcomes.tolist()
            ],
            interruption=outcome.interruption,
            dense=outcome.dense,
        )
        record.blank_interrupted()
        for component in outcome.rough[:1]:
            warn_of_rough(self._paths[component])
        if np.any(outcome.left[outcome.outcomes == 0]):
            row = int(np.argmax(np.where(outcome.outcomes == 0, outcome.left, 0.0)))
            warn(
                f"The state of run {part.runs[row]}, and perhaps of others, deviates by "
                f"{outcome.left[row]:.3g} times its tolerance. fx.simulate(sweep.system, "
                f"sweep.t_final, context=sweep.context({part.runs[row]})) shows where"
            )
        for row in np.flatnonzero(outcome.outcomes > 0).tolist():
            how, end = outcome.outcomes[row], outcome.ends[row]
            record.fail(row, _explained(how, end, int(part.runs[row])))
        threads = f"{outcome.threads} thread{'s' * (outcome.threads > 1)}"
        record.how = (
            f"native code in {self._equations.lanes} lanes on {threads}: "
            f"{self._method}, {self._why}"
        )
        return record

    def _prepare(self, part: Part) -> EnsembleRuns:
        """Return runs as tables."""
        lanes = self._lanes(part.variants)
        states = [((STATE, 0, 0), k) for k in range(self._layout.num_states)]
        placed = {
            self._equations.place(key): numbers
            for key, numbers in lanes.items()
            if key != TIME_KEY and key[0][0] != STATE
        }
        count = len(part.runs)
        return EnsembleRuns(
            starts=lanes[TIME_KEY],
            initial=self._prepared(part.variants, np.column_stack([lanes[key] for key in states])),
            env=self._environment(part.variants, lanes),
            places=np.array(list(placed), dtype=np.int64),
            table=np.column_stack([np.empty((count, 0)), *placed.values()]),
            breaks=part.breaks,
        )

    def _prepared(self, variants: Variants, states: FloatArray) -> FloatArray:
        """Return initial states that fit, where blocks prepare theirs one run after the other."""
        if not any(leaf.prepares_starts for leaf in self._layout.leaves):
            return states
        contexts = map(variants.context, range(len(variants)))
        return np.array([_initialized(context).store.x for context in contexts])

    def _lanes(self, variants: Variants) -> dict[Key, FloatArray]:
        """Return the numbers in which runs differ, and all states, after the initialization."""
        keys, store = self._equations.keys, variants.store
        lanes = variants.lanes(keys)
        for k, x in enumerate(store.x):
            lanes.setdefault(((STATE, 0, 0), k), np.full(len(variants), x))
        with np.errstate(all="ignore"):
            self._equations.initialize(store, lanes)
        return lanes

    def _environment(self, variants: Variants, lanes: dict[Key, FloatArray]) -> FloatArray:
        """Return the numbers that the runs share."""
        environment, store = self._equations.environment, variants.store
        env = np.zeros(environment.size)
        self._program.discrete.read(store, env)
        for key, place in environment.keys.items():
            if key not in lanes:
                env[place] = number_behind(store, key)
        return env


def _initialized(context: Context) -> Context:
    """Return a context where a motion begins."""
    initialize(context)
    return context


def require_starts(variants: Variants, t_final: float) -> None:
    """Refuse runs of which some cannot begin, so that each run by itself tells why."""
    if np.max(variants.lanes(())[TIME_KEY]) >= t_final:
        raise UnsuitableError("a run ends where it begins")
    require_relations(variants)
    if not any(_may_refuse(variants, k) for k in range(len(variants.store.layout.leaves))):
        return
    for k in range(len(variants)):
        try:
            initialize(variants.context(k))
        except EvaluationError as error:
            raise UnsuitableError(f"not all runs can begin ({error.attempt})") from None


def require_relations(variants: Variants) -> None:
    """Refuse runs of which some have parameters that contradict each other."""
    for position, leaf in enumerate(variants.store.layout.leaves):
        for relation in leaf.relations:
            sides = [_read(variants, position, each) for each in (relation.left, relation.right)]
            if not relation.holds(*sides):
                raise UnsuitableError(f"not all runs have {relation} in '{leaf.label}'")


def _may_refuse(variants: Variants, position: int) -> bool:
    """Return whether a block may refuse the values of a run."""
    leaf = variants.store.layout.leaves[position]
    known = leaf.start_parameters
    return leaf.restricts_starts and (
        known is None
        or any(
            np.any(np.ravel(each.default) != _read(variants, position, each).T) for each in known
        )
    )


def _read(variants: Variants, position: int, parameter: NumericParameter) -> FloatArray:
    """Return the components of a parameter of a block in all runs, a row for each component."""
    name = PARAMETER, position, parameter.index
    keys: list[Key] = [(name, k) for k in range(parameter.default.size)]
    lanes = variants.lanes(keys)
    numbers = [lanes.get(key, number_behind(variants.store, key)) for key in keys]
    return np.array(np.broadcast_arrays(*numbers, np.zeros(len(variants)))[:-1])


def breaks_of(variants: Variants, settings: Settings) -> FloatArray:
    """Return the break times of all runs, shape (B,), or of each where they may differ, (N, B)."""
    layout = variants.store.layout
    if moving_breaks(layout):  # lanes find them
        return np.array([np.inf])
    positions = [k for k, leaf in enumerate(layout.leaves) if leaf.has_break_times]
    first = float(np.min(variants.lanes(())[TIME_KEY]))
    if not any(variants.differ_in(position) for position in positions):
        base = variants.base()
        return np.array([*_break_times(base, positions, first, settings.t_final), np.inf])
    contexts = map(variants.context, range(len(variants)))
    each = [_break_times(context, positions, first, settings.t_final) for context in contexts]
    table = np.full((len(each), 1 + max(map(len, each))), np.inf)
    for row, breaks in zip(table, each, strict=True):
        row[: len(breaks)] = breaks
    return table


def _break_times(context: Context, positions: list[int], time: float, end: float) -> list[float]:
    """Return the break times after a time, up to the end of the runs."""
    store, found = context.store, []
    while positions:
        store.set_motion(time, store.x)
        leaves = [store.leaves[position] for position in positions]
        try:
            following = [float(leaf.system.calc_next_break_time(leaf)) for leaf in leaves]
        except ValueRefusedError as error:
            raise UnsuitableError(f"break times are refused ({error.attempt})") from None
        time = min((each for each in following if each > time), default=np.inf)
        if time > end:
            break
        found.append(time)
        if len(found) > _MOST_BREAKS:  # or for ever, where they are closer than time resolves
            raise UnsuitableError(f"there are more than {_MOST_BREAKS} break times")
    return found


def _counted(outcomes: NDArray[np.int64]) -> tuple[int, int]:
    """Return how many runs have ended, and how many of them failed."""
    return int(np.sum(outcomes != UNFINISHED)), int(np.sum(outcomes > 0))


def _is_harmless(event: Event) -> bool:
    """Return whether lanes run an event, or omit it as a log, which a sweep does not keep."""
    if isinstance(event.trigger, (Initialization, Periodic)) and event.kind != "publish":
        return True
    return event.record is not None or isinstance(event.trigger, Forced)


def _explained(outcome: int, time: float, index: int) -> str:
    """Say why a run in a lane failed."""
    what = {
        NOT_FINITE: "the equations are not finite there",
        TOO_SMALL: "no step that advances time meets the tolerances",
        ASTRAY: "projections do not bring the state within its tolerance",
    }.get(outcome, "the steps hardly advance time")
    return (
        f"Cannot integrate past t = {time:.9g} s: {what}. The whole error comes with "
        f"fx.simulate(sweep.system, sweep.t_final, context=sweep.context({index}))."
    )
