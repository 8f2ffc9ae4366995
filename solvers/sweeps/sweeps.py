"""Sweeps: many runs of one system with other parameters, inputs or initial states.

Where the equations can be compiled, as many runs as there are lanes are integrated at once on every
core, and no Python runs in between. Every run has its own steps, by the rules of a single
simulation, so that the numbers are the same up to rounding. Elsewhere (with events, stiff methods,
equations that cannot be traced, or without the extra ``fast``) one simulation follows the other.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import flag, is_whole, items_of, require
from flexure.diagrams.checks.errors import ValueRefusedError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Place, find_place, path_of, several
from flexure.diagrams.interface.option_names import answers_other_words, refuse_unknown
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number, as_numbers
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.simulation.run_control.options import IntegrationOptions
from flexure.solvers.simulation.run_control.progress_bar import ProgressBar
from flexure.solvers.sweeps.plans.plans import Plan
from flexure.solvers.sweeps.running.executors import checked_executor
from flexure.solvers.sweeps.running.metric_columns import Measuring, MetricColumns, chosen, listed
from flexure.solvers.sweeps.running.runs import run_all
from flexure.solvers.sweeps.running.sweep_record import (
    COMPLETED,
    INTERRUPTED,
    RunCounter,
    Settings,
    SweepOptions,
)
from flexure.solvers.sweeps.running.variants import GivenContexts, SweptContexts, Variants
from flexure.solvers.sweeps.store.storing import Keeper, keeper, not_kept
from flexure.solvers.sweeps.sweep import Sweep
from flexure.solvers.tracing.lanes import TIME_KEY
from flexure.solvers.tracing.signals import Signal, can_be_read, resolve

_POINTS = 1001  # times at which signals are sampled, unless they are given
_SMALL = 1e-4  # states at the ends of motions, of which one is looked at


@answers_other_words
def sweep(
    system: System,
    values: Plan | Mapping[Any, npt.ArrayLike],
    t_final: float,
    *,
    context: Context | None = None,
    store: str | Path | None = None,
    force: bool = False,
    **options: Unpack[SweepOptions],
) -> Sweep:
    """Simulate a system once for each set of parameters, inputs or initial states.

    Parameters
    ----------
    system : System
        A block or diagram.
    values : Plan or mapping
        The values of each run: a plan, such as `grid` and `latin_hypercube` make, or arrays of
        equal length N by path or handle, one entry for each run, as for `zipped`. A path leads to a
        numeric parameter, a free input, a continuous or discrete state (``"plant.x"``), to a
        component of one of them (``"plant.x[rate]"``, ``"mass.A[1,0]"``), or to the positions or
        velocities of a joint (``"door.axis.angle"``). Values with a shape need arrays of shape
        ``(N, *shape)``.
    t_final : float
        End of the runs in seconds.
    context : Context, optional
        Values that all runs have in common, a root context; it is not changed. A default context
        when omitted.
    signals : Handle, str or sequence, optional
        Signals to sample and store: output ports, states, or components of them. Signals that only
        metrics read are not stored; their memory does not grow with the number of runs.
    times : array_like, shape (K,), optional
        Ascending times at which signals are sampled, in seconds; 1001 equally spaced ones from the
        beginning to the end when omitted.
    metrics : str, Metric, callable, sequence or mapping, optional
        What to measure, alone, in a list, or by names of your own in a mapping. Metrics of
        `flexure.metrics` are computed from the steps of the runs, with events and with what is
        between the steps, whatever ``times`` says. Attributes of `StepInfo`,
        such as "overshoot", are those of the step responses of all signals with one component,
        without signals of the only output of the system, measured as `Sweep.metric` does without
        options. A function of the `SimulationResult` of a run needs single simulations.
    method, rtol, atol, max_step, max_steps, max_check_interval, step, compiled
        As for `Simulator`. "auto" looks for stiffness once, in the context that the runs have in
        common. When it finds none, all runs take RK45.
    executor : Executor, optional
        The executor of the runs: one of ``concurrent.futures``, that of Dask
        (``client.get_executor()``, or the client), or another one with this interface; this process
        when omitted. The numbers do not depend on it. What is sent must be picklable.
    threads : int, optional
        How many threads this process uses, or each part that an executor has to do. When omitted,
        as many as there are processors, and one in a part. The numbers do not depend on it.
    progress : bool
        Whether to show how many runs are done, how fast that goes, how many have failed, and the
        time that is left: on a terminal, in a notebook, or every ten seconds in a file or pipe.
    store : str or Path, optional
        A file, such as ``"door.study"``, to which finished runs are written, chunk by chunk. If it
        contains runs of the same study, only the missing ones are simulated. `load_study` reads it.
    force : bool
        If True, delete the runs already in the file, which belong to a different study, and start
        again.

    Returns
    -------
    Sweep
        Runs that fail do not end the sweep: they give NaN and a message.

    Warns
    -----
    UserWarning
        When runs have to be interpreted, and will take more than ten seconds by an estimate after
        the first one; where a metric is NaN in runs that still move at the end; and where motions
        are so small that the default of ``atol`` leaves their error without control.

    Raises
    ------
    UnknownNameError, ContextError, ValueRefusedError
        When something cannot be swept or sampled, or a value is refused; nothing has run then.
    DeclarationError
        When it is no system, such as a builder whose ``build()`` is still to be called. Or when the
        executor needs what cannot be pickled.
    ExecutorError
        When the executor loses its workers. Its attribute ``result`` is the sweep so far.
    RecordFileError
        When the file cannot be used, another process writes to it, or its runs were made with
        another model, other options or versions, or are not in the plan. They stay as they are.
    KeyboardInterrupt
        When it is interrupted. Its attribute ``result`` is the sweep so far, in which the outcome
        of the runs that are missing is "interrupted".

    See Also
    --------
    simulate_many : Simulate from any contexts.
    optimize : Search for the best values.
    sobol_indices : Find the values that matter.

    Notes
    -----
    Diagrams without events, apart from logs, initialization and periodic updates, are integrated in
    lanes by methods with a native loop: one processor core integrates several runs at once. There,
    sine, exponential and their like err by up to 4 units in the last place. The results are those
    of single simulations up to rounding: a part in 10¹² in smooth motion, more where equations
    bend, since there rounding shows in how a step meets the bend. Runs that cannot be integrated in
    lanes are simulated one by one, with the same results. ``Sweep.how`` states which way was used,
    and why.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 1.0)
    >>> found = fx.sweep(lag, {"time_constant": [0.5, 1.0, 2.0], "u": [1.0] * 3}, 1.0)
    >>> found.final_states.round(3)
    array([[0.865],
           [0.632],
           [0.393]])
    """
    require_system(system, "Cannot sweep")
    attempt = f"Cannot sweep '{system.label}'"
    settings, variants = _swept(system, values, t_final, context, options)
    found, measured = _run(settings, variants, options, keeper(store, force, variants, attempt))
    measured.warn_of_motion()
    _warn_of_small_states(found, options)
    return found


def sweep_candidates(
    system: System,
    values: Plan | Mapping[Any, npt.ArrayLike],
    t_final: float,
    *,
    context: Context,
    **options: Unpack[SweepOptions],
) -> Sweep:
    """Sweep for a search, which says itself which candidates have no metrics."""
    return _run(*_swept(system, values, t_final, context, options), options)[0]


def _swept(
    system: System,
    values: Plan | Mapping[Any, npt.ArrayLike],
    t_final: float,
    context: Context | None,
    options: SweepOptions,
) -> tuple[Settings, SweptContexts]:
    """Return what all runs have in common, and what they differ in."""
    base = start_context(system, context, f"Cannot sweep '{system.label}'")
    settings = _settings("sweep", system, t_final, options)
    settings.simulator(base)  # refuses unknown methods
    return settings, SweptContexts(base, values)


@answers_other_words
def simulate_many(
    system: System, contexts: Iterable[Context], t_final: float, **options: Unpack[SweepOptions]
) -> Sweep:
    """Simulate a system once from each of many contexts.

    Parameters
    ----------
    system : System
        A block or diagram.
    contexts : iterable of Context
        Initial values of the runs: root contexts, which are not changed. They may differ in
        anything.
    t_final : float
        End of the runs in seconds.
    **options
        As for `sweep`, from ``signals`` to ``progress``. "auto" looks for stiffness in the first
        context, and the tolerances of all runs are those of its accuracy. There is no ``store``:
        a record knows runs by the values in a plan, and contexts may differ in what no plan has,
        such as time, discrete and abstract states. Use `sweep` for values that a plan can contain.

    Returns
    -------
    Sweep

    See Also
    --------
    sweep : Simulate a plan of parameters, inputs and initial states.
    simulate : Simulate once.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 1.0)
    >>> rng = np.random.default_rng(7)
    >>> contexts = [lag.create_random_context(rng) for _ in range(100)]
    >>> for context in contexts:
    ...     context.set("u", 1.0)
    >>> fx.simulate_many(lag, contexts, 1.0)
    <Sweep of 'lag', 100 runs to 1 s>
    """
    attempt = "Cannot call simulate_many(system, contexts, t_final)"
    require_system(system, attempt)
    wanted = "several root contexts of it, such as a list of them"
    variants = GivenContexts(system, list(items_of(contexts, wanted, attempt)))
    if options.get("rtol") is None:
        options["rtol"] = variants.base().accuracy
    settings = _settings("simulate_many", system, t_final, options)
    found, measured = _run(settings, variants, options)
    measured.warn_of_motion()
    _warn_of_small_states(found, options)
    return found


def _warn_of_small_states(found: Sweep, options: SweepOptions) -> None:
    """Simulate one run that ended where all begin and end near zero, since that warns of errors."""
    ended = np.flatnonzero(found.outcomes == COMPLETED)
    if options.get("atol") is None and options.get("step") is None and len(ended):
        begin = found.context(ended[0]).continuous_state
        ends = np.nan_to_num(found.final_states, posinf=np.inf).ravel()
        if 0.0 < np.max(np.abs(np.append(begin, ends)), initial=0.0) < _SMALL:
            found.simulate(ended[0])


def _settings(function: str, system: System, t_final: float, options: SweepOptions) -> Settings:
    """Check the options that do not depend on the runs."""
    refuse_unknown(function, options, SweepOptions.__optional_keys__)
    what = "values" if function == "sweep" else "contexts"
    end = float(as_number(t_final, (), f"Cannot call {function}(system, {what}, t_final)"))
    known = IntegrationOptions.__optional_keys__
    integration = {name: option for name, option in options.items() if name in known}
    threads = _checked_threads(options.get("threads"), options.get("executor"))
    return Settings(system, end, cast("IntegrationOptions", integration), threads)


def _checked_threads(threads: Any, executor: Executor | None) -> int:
    every = 1 if executor is not None else os.cpu_count() or 1
    count = every if threads is None else threads
    fits = is_whole(count) and count >= 1
    require(fits, threads, "Cannot use this number of threads", "a positive integer")
    return int(count)


def _run(
    settings: Settings, variants: Variants, options: SweepOptions, keep: Keeper = not_kept
) -> tuple[Sweep, MetricColumns]:
    """Check what is to be sampled, run the variants, and measure."""
    system = settings.system
    attempt = f"Cannot measure the runs of '{system.label}'"
    pairs = listed(options.get("metrics", ()), attempt)
    kept = {path_of(each): resolve(system, each) for each in several(options.get("signals", ()))}
    responses = [path for path, reader in kept.items() if reader.size == 1]
    if not kept and any(isinstance(each, str) for _, each in pairs):
        responses = [only_output(system)]
    metrics = chosen(pairs, responses, attempt)
    read = [each for metric in metrics.values() for each in metric.signals]
    others = {path_of(each): each for each in read if path_of(each) not in kept}
    constants = {path: place for path, each in others.items() if (place := constant(system, each))}
    readers = kept | {
        path: resolve(system, each) for path, each in others.items() if path not in constants
    }
    start = float(np.max(variants.lanes(())[TIME_KEY], initial=variants.store.time))
    grid = checked_times(system, options.get("times"), start, settings.t_final)
    if not readers:
        grid = grid[:0]
    measuring = Measuring(metrics, readers, grid, (start, settings.t_final), constants)
    steps = measuring.find_steps(variants)
    executor = checked_executor(options.get("executor"))
    show = flag(options.get("progress", False), "progress", attempt)
    count = len(kept)
    with (
        keep(settings, measuring, count) as how,
        ProgressBar(0.0, float(len(variants)), show, doing="sweeping", unit="runs") as bar,
    ):
        ways: Any = {"executor": executor, "counter": RunCounter(bar), **how}
        record, measured = run_all(variants, settings, measuring, steps, count, **ways)
    found = Sweep(settings, variants, measuring, len(kept), record, measured.columns)
    if record.interruption is not None:
        record.interruption.result = found  # type: ignore[attr-defined]
        ended = len(record.outcomes) - record.outcomes.count(INTERRUPTED)
        kept_in = "; the study file keeps them, and the same call resumes the study" if how else ""
        record.interruption.add_note(f"{ended} of {len(variants)} runs have ended{kept_in}")
        raise record.interruption
    return found, measured


def constant(system: System, way: Signal) -> Place | None:
    """Return the place of a parameter, which metrics read as a signal that does not change."""
    place = find_place(system, way, can_be_read)
    return place if isinstance(place.handle, NumericParameter) else None


def checked_times(
    system: System, times: npt.ArrayLike | None, start: float, end: float
) -> FloatArray:
    """Return the times of samples."""
    if not (math.isfinite(end) and end >= start):
        raise ValueRefusedError(
            f"Cannot sweep '{system.label}' to t = {end!r}",
            expected=f"a finite time that is not before t = {start!r}, where runs start",
            found=repr(end),
        )
    if times is None:
        return np.linspace(start, end, _POINTS)
    attempt = f"Cannot sample the sweep of '{system.label}'"
    grid = np.atleast_1d(as_numbers(times, attempt))
    within = np.all((grid >= start) & (grid <= end)) and np.all(np.diff(grid) > 0.0)
    if grid.ndim != 1 or not within:
        raise ValueRefusedError(
            attempt,
            expected=f"ascending times in [{start!r}, {end!r}] s",
            found=np.array2string(grid, threshold=6),
        )
    return grid


def only_output(system: System) -> str:
    """Return the only output with one component."""
    single = [port.path for port in system.output_ports if port.size == 1]
    if len(single) != 1:
        raise ValueRefusedError(
            f"Cannot measure step responses of '{system.label}'",
            expected="a system with one output of one component",
            found=quoted(single),
            remedy="Name what to measure in signals=",
        )
    return single[0]
