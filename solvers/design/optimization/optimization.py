"""Optimization: finds parameters, inputs and initial states that minimize a metric of runs.

A population of candidates covers the box of bounds, and differential evolution moves it: each
generation is one sweep. From the best candidate, a local method goes downhill, with the exact
derivatives of the motion where there are some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from flexure.diagrams.checks.arguments import flag, generator, is_whole, require
from flexure.diagrams.checks.errors import EvaluationError, ExecutorError, ValueRefusedError, quoted
from flexure.diagrams.concurrency.warnings_and_garbage import Silence
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Way, path_of, several
from flexure.diagrams.interface.html import fold
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.option_names import answers_other_words, refuse_unknown
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.diagrams.values.tables import Table
from flexure.solvers.design.optimization.candidates import Study, constraints_of, require_rest
from flexure.solvers.design.optimization.polishing import Polish, polish as go_downhill
from flexure.solvers.design.optimization.search_space import SearchResult, SearchSpace
from flexure.solvers.design.optimization.trials import NEVER, Trials
from flexure.solvers.results.measures import response_metrics
from flexure.solvers.results.measures.metrics import Constraint, Metric
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.options import IntegrationOptions
from flexure.solvers.simulation.run_control.progress_bar import ProgressBar
from flexure.solvers.simulation.simulation import simulate
from flexure.solvers.sweeps.running.executors import checked_executor
from flexure.solvers.sweeps.sweeps import checked_times, only_output
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from flexure.solvers.design.optimization import optimization_figures
else:
    optimization_figures = Deferred("flexure.solvers.design.optimization.optimization_figures")

#: The objective: a metric, the name of a step metric, or a function of a result.
Objective = Metric | str | Callable[[SimulationResult], float]

_EACH = 15  # candidates for each number that is looked for, in one population
_LEAST = 32  # candidates in a population
_LANES = 16  # of which populations are multiples, so that none run empty
_FEWEST = 5  # with which candidates can be combined
_EVALUATIONS = 1000  # for each number that is looked for
_MOST = 10_000_000  # candidates, of which each is kept
_AT_REST = 6  # candidates for each number and one more, at rest, where all have derivatives
_STARTS = 2  # of them, from which local searches start
_NEAR = 1e-4  # of the box: nearer to it, something is at its bound
_SHOWN = 20  # candidates in a notebook
_candidates_at_rest = Silence("The equilibrium of ")  # of which only the best one warns


@dataclass(frozen=True, eq=False, repr=False)
class Optimization(SearchResult):
    """The result of `optimize`: the best values, and the runs of the search.

    ``found["pid.kp"]`` is the best value of something.

    Its figure has the objective of all candidates, and below it the signals of the best one.

    Attributes
    ----------
    values : dict
        The best values by path: numbers, or arrays of the shapes that they have in a context.
    precision : dict
        By path, how far the best values moved when the polish was repeated at tighter tolerances,
        in their units and shapes. Digits beyond it mean nothing. Infinite for values that the
        objective does not determine: five percent of the box away, it is the same. NaN without a
        polish.
    objective : float
        The objective there.
    constraints : dict of str to float
        By label of each constraint, the value of its metric there; like labels are counted.
    active : tuple of str
        Those of them that stop the objective from being smaller: within a thousandth of the bound.
    at_bound : tuple of str
        What is at a bound of the search.
    feasible : bool
        Whether all constraints are kept. Only the result that an error carries can be otherwise.
    evaluations : int
        How many candidates were run, polish included.
    how : str
        How they were chosen and run.
    system : System
        What was optimized.
    context : Context
        A root context with the best values, where the runs begin.
    t_final : float or None
        End of the runs in seconds; None if there are none.
    goal : str
        Label of the objective.

    See Also
    --------
    optimize : Search for the best values.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> goal = fx.metrics.ise("y", target=0.5)
    >>> found = fx.optimize(lag, {"u": (0.0, 2.0)}, goal, t_final=1.0)
    >>> round(float(found["u"]), 3), found.feasible
    (1.094, True)
    """

    _function, _result = "optimize", "an optimization"

    values: dict[str, Any]
    precision: dict[str, Any]
    objective: float
    constraints: dict[str, float]
    active: tuple[str, ...]
    at_bound: tuple[str, ...]
    feasible: bool
    evaluations: int
    how: str
    system: System
    context: Context
    t_final: float | None
    goal: str
    _table: Table = field(repr=False)
    _signals: tuple[str, ...] = field(repr=False)
    _options: dict[str, Any] = field(repr=False)

    def table(self) -> Table:
        """Return a row for each candidate in the order in which they ran.

        Columns are what was looked for, the objective, the metrics of the constraints, whether all
        of these were kept, which part of the search asked ("population" or "polish"), and
        why a candidate has no numbers.
        """
        return self._table

    def simulate(self) -> SimulationResult:
        """Return the run with the best values, with all signals.

        Raises
        ------
        ValueRefusedError
            When the optimization was one without runs.
        """
        if self.t_final is None:
            raise ValueRefusedError(
                f"Cannot simulate the optimization of '{self.system.label}'",
                expected="an optimization of runs, with t_final",
                found="one of a system at rest",
                remedy="Write fx.simulate(system, t_final, context=found.context)",
            )
        return simulate(self.system, self.t_final, context=self.context, **self._options)

    _figure = optimization_figures.plot_optimization

    def __str__(self) -> str:
        width = max(map(len, [*self.values, self.goal, *self.constraints]))
        lines = [f"{self.goal:{width}}  {self.objective:.6g}"]
        if not self.feasible:
            lines.insert(
                0, "NOT FEASIBLE: the candidate that is nearest to keeping all constraints"
            )
        for label, value in self.constraints.items():
            note = ", active" if label in self.active else ""
            lines.append(f"{label:{width}}  {value:.6g}{note}")
        for name, value in self.values.items():
            at_bound = any(each == name or each.startswith(f"{name}[") for each in self.at_bound)
            text = f"{value:.6g}" if np.ndim(value) == 0 else np.array2string(np.asarray(value))
            if np.isinf(self.precision[name]).any():
                text += ", not determined by the objective"
            elif np.isfinite(self.precision[name]).all():
                text += f" ± {np.max(self.precision[name]):.1g}"
            lines.append(f"{name:{width}}  {text}{', at its bound' * at_bound}")
        lines.append(f"{self.evaluations} evaluations: {self.how}")
        return "\n".join(lines)

    def _pieces(self) -> Iterator[str]:
        yield from super()._pieces()
        yield fold("Candidates", self._table.to_html(_SHOWN), len(self._table))

    def __repr__(self) -> str:
        doubt = "" if self.feasible else ", not feasible"
        return (
            f"<Optimization of '{self.system.label}': {self.goal} = {self.objective:.6g}{doubt}, "
            f"{self.evaluations} evaluations>"
        )


@answers_other_words
def optimize(
    system: System,
    bounds: Mapping[Any, Any],
    objective: Objective,
    constraints: Constraint | Iterable[Constraint] = (),
    *,
    t_final: float | None = None,
    context: Context | None = None,
    signals: Signal | Iterable[Signal] = (),
    logarithmic: Way | Iterable[Way] | None = None,
    population: int | None = None,
    max_evaluations: int | None = None,
    polish: bool = True,
    seed: int | np.random.Generator = 0,
    executor: Executor | None = None,
    threads: int | None = None,
    progress: bool = False,
    **options: Unpack[IntegrationOptions],
) -> Optimization:
    """Find the values between bounds that minimize a metric of runs.

    Parameters
    ----------
    system : System
        A block or diagram.
    bounds : mapping
        The variables: lowest and highest values ``(low, high)`` by path or handle of a numeric
        parameter, a free input, a continuous or discrete state, or of a component of one of them
        (``"plant.x[rate]"``, ``"mass.A[1,0]"``). Bounds of an array may be arrays of its shape.
        A tuple of paths is one variable: all of them take the same value.
    objective : Metric, str or callable
        The number to minimize: a metric of `flexure.metrics`, the name of a step
        metric, an attribute of `StepInfo`, or a function of the `SimulationResult` of a run that
        returns a number.
    constraints : Constraint or iterable of them, optional
        Conditions to satisfy: comparisons of metrics, such as ``fx.metrics.peak("pid.u") <= 12.0``.
        Metrics may read parameters as well, as signals that do not change:
        ``fx.metrics.final("pid.ki") <= 2.0 * fx.metrics.final("pid.kp")``.
    t_final : float, optional
        End of the runs in seconds. Without it, no run takes place: all metrics are those of a
        system at rest, such as `flexure.metrics.frequency` and `stiffness_at`, and parameters.
    context : Context, optional
        Common values of all runs, a root context; it is not changed. A default context when
        omitted. If its values lie between the bounds, they are the first candidate.
    signals : Handle, str or sequence, optional
        The signal that the objective refers to if it is a name (the only output of the system when
        omitted), and signals that `Optimization.plot` shows besides those of metrics.
    logarithmic : Handle, str or iterable of them, optional
        Variables to search on a logarithmic scale; when omitted, the positive ones whose bounds
        differ by a factor of 100 or more.
    population : int, optional
        Number of candidates per generation; when omitted 15 for each variable, rounded up to a
        multiple of 16, and 32 at least.
    max_evaluations : int, optional
        Most runs of populations; 1000 for each number when omitted. The search also ends when the
        objectives of a population differ by less than one percent of their mean. The polish adds
        some runs.
    polish : bool
        Whether to refine the best candidate with a local (gradient) method.
    seed : int or numpy.random.Generator
        Seed of the random numbers. The same seed gives the same answer bit for bit.
    executor, threads
        As for `sweep`.
    progress : bool
        Whether to show the number of runs on a terminal or in a notebook.
    method, rtol, atol, max_step, max_steps, max_check_interval, step, compiled
        As for `Simulator`.

    Returns
    -------
    Optimization

    Raises
    ------
    DeclarationError
        When it is no system, such as a builder whose ``build()`` is still to be called.
    UnknownNameError, ContextError, ValueRefusedError
        When something cannot be changed or measured, or bounds are not between those of the
        declaration; nothing has run then.
    EvaluationError
        When no candidate of the first population has an objective, or no candidate satisfies all
        constraints. Its attribute ``result`` is then the `Optimization` of the candidate closest to
        feasibility, which is not feasible.
    ExecutorError
        When the executor loses its workers. Its attribute ``result`` is as of an interruption.
    KeyboardInterrupt
        When it is interrupted. Its attribute ``result`` is the `Optimization` so far, or None.

    Warns
    -----
    UserWarning
        When the objective jumps beside the answer, since sampled blocks see jumps of the equations
        at instants only: the search may have ended at a local minimum. When the objective is
        random, see the notes.

    See Also
    --------
    sweep : Simulate a given set of values.
    tune_pid : Tune a PID controller on the linear model.
    fit : Fit a model to measurements.

    Notes
    -----
    Differential evolution (SciPy's) looks everywhere between the bounds, and all candidates of a
    generation are the runs of one `sweep`. A candidate that breaks constraints loses against one
    that keeps them; one whose run fails, or without a number, loses against all that have one.

    The polish is sequential quadratic programming (SLSQP). Values come from runs like all others,
    derivatives from a motion with exact sensitivities: a metric is differentiated in the direction
    in which its samples move. With more than five coordinates for each metric, they come from
    adjoints instead, as in `gradient`. If there are no derivatives, as with events, discrete states
    or functions of results, linear interpolation of values is used instead (COBYLA).
    ``Optimization.how`` states which method was used.

    Without ``t_final``, each candidate is the equilibrium near the context, with loops assembled.
    Its numbers have exact derivatives, those of the equilibrium included (implicit function
    theorem). So the population is a sample of the box (Latin hypercube), and local searches start
    from the best two of it. ``context`` of the result is where the equilibrium is searched from.

    Near a minimum the objective hardly changes, so the local search ends while the variables still
    change. It is therefore repeated from a point near its end (twice if derivatives exist), with
    motions of the relative tolerances 1e-7 and 1e-9. The distance between the last ends is the
    ``precision`` of the answer. Two more runs for each variable, five percent of the box to both
    sides, show whether the objective depends on it at all. Without derivatives, the best candidate
    runs a second time: if its objective differs, a warning says so, and no precision is reported.

    The reported optimum always comes from a simulated run, and every constraint reported as
    satisfied was satisfied in that run. The objective of another candidate may be smaller, but by
    less than runs at ``rtol`` resolve.

    Examples
    --------
    The damping that makes the integral of the squared error of a second-order system smallest is
    0.5:

    >>> import flexure as fx
    >>> plant = fx.StateSpace("plant", [[0.0, 1.0], [-1.0, -2.0]], [0.0, 1.0], [1.0, 0.0])
    >>> context = plant.create_default_context()
    >>> plant.u.fix(context, 1.0)
    >>> error = fx.metrics.ise("y", target=1.0)
    >>> found = fx.optimize(plant, {"A[1,1]": (-4.0, -0.1)}, error, t_final=30.0, context=context)
    >>> round(-found["A[1,1]"] / 2.0, 2), round(found.objective, 2)
    (0.5, 1.0)
    """
    require_system(system, "Cannot optimize")
    attempt = f"Cannot optimize '{system.label}'"
    refuse_unknown("optimize", options, IntegrationOptions.__optional_keys__)
    base = start_context(system, context, attempt)
    space = SearchSpace(base, bounds, logarithmic, attempt, starts=t_final is not None)
    wanted = several(signals)
    study = Study(
        system=system,
        base=base,
        t_final=None
        if t_final is None
        else float(as_number(t_final, (), f"{attempt} with this t_final")),
        goal=_metric(system, objective, wanted, attempt),
        constraints=constraints_of(constraints, attempt),
        options=dict(options),
        executor=checked_executor(executor),
        threads=threads,
        attempt=attempt,
    )
    if study.t_final is None:
        require_rest(study)
        usual = _AT_REST * (1 + len(space))
    else:
        checked_times(system, None, base.time, study.t_final)  # refuses an end that cannot be
        usual = max(_LEAST, -(-_EACH * len(space) // _LANES) * _LANES)
    size = _count(population, "population", _FEWEST, attempt) or usual
    most = _count(max_evaluations, "max_evaluations", size, attempt)
    most = max(size, _EVALUATIONS * len(space)) if most is None else most
    downhill = flag(polish, "polish", attempt)
    rng = generator(seed, attempt)
    shown_signals = tuple(dict.fromkeys([*map(path_of, wanted), *study.signals]))

    with (
        ProgressBar(0.0, float(most), progress, unit="runs", doing="optimizing") as bar,
        _candidates_at_rest if study.at_rest else nullcontext(),
    ):
        trials = Trials(study, space, bar)
        try:
            how = _evolve(trials, size, most, rng)
            best = trials.best()
            assert best is not None
            end = Polish(how, best, np.full(len(space), np.nan))
            if downhill:
                starts = trials.leading(_STARTS if study.at_rest else 1)
                end = go_downhill(trials, starts)
                end = replace(end, how=f"{how}; {end.how}")
        except (KeyboardInterrupt, ExecutorError) as error:
            last, unknown = trials.best(), np.full(len(space), np.nan)
            error.result = (  # type: ignore[union-attr]
                None
                if last is None
                else _answer(trials, Polish("interrupted", last, unknown), shown_signals)
            )
            raise
    if trials.rest is not None:
        trials.rest.warn_of(trials.points[end.best])
    found = _answer(trials, end, shown_signals)
    if not found.feasible:
        refusal = EvaluationError(
            attempt,
            expected=f"a candidate that keeps {quoted(c.label for c in study.constraints)}",
            found=f"none of {found.evaluations}; the nearest one has "
            + ", ".join(f"{label}: {value:.6g}" for label, value in found.constraints.items()),
            remedy="Relax a constraint or a bound, or raise max_evaluations; the attribute result "
            "of this error has all candidates",
        )
        refusal.result = found  # type: ignore[attr-defined]
        raise refusal
    return found


def _metric(system: System, objective: Any, signals: list[Way], attempt: str) -> Metric:
    """Return the objective as a metric."""
    if isinstance(objective, Metric):
        return objective
    if isinstance(objective, str):
        if len(signals) > 1:
            raise ValueRefusedError(
                f"{attempt} by {objective!r}",
                expected="one signal that it measures",
                found=quoted(map(path_of, signals)),
            )
        made = response_metrics.step(objective, signals[0] if signals else only_output(system))
        return made.named(objective)
    fits = callable(objective) and not isinstance(objective, type)
    wanted = "the objective as a metric, the name of a step metric, or a function of a result"
    require(fits, objective, attempt, wanted)
    return response_metrics.of(objective)


def _count(number: Any, name: str, least: int, attempt: str) -> int | None:
    """Return a number of runs; None for the usual one."""
    if number is None:
        return None
    fits = is_whole(number) and least <= number <= _MOST
    require(fits, number, attempt, f"{name} to be an integer from {least} to {_MOST}")
    return int(number)


def _evolve(trials: Trials, size: int, most: int, rng: np.random.Generator) -> str:
    """Move a population, one generation in one sweep; say how."""
    from scipy import optimize as scipy_optimize

    evolve: Any = scipy_optimize.differential_evolution
    study, space = trials.study, trials.space
    within = rng.random((size, len(space)))
    population = (within + np.column_stack([rng.permutation(size) for _ in space.names])) / size
    start = space.position(study.base)
    if start is not None:
        population[0] = start
    population = (population - 0.5) + 0.5  # which SciPy gives back to the last bit
    numbers = trials(population, "population")
    if not np.isfinite(numbers).all(axis=1).any():
        raise EvaluationError(
            study.attempt,
            expected="candidates of which all of "
            f"{quoted(m.label for m in study.metrics)} are numbers",
            found=f"none among {size}; the first: {trials.reasons[0]}",
            remedy="Change the bounds, use a metric that is always defined"
            + ", or run longer" * (not study.at_rest),
        )

    if study.at_rest:
        return f"{len(trials)} candidates {trials.how}"

    def goal(points: FloatArray) -> FloatArray:
        found = trials(points.T, "population")[:, 0]
        return np.where(np.isfinite(found), found, np.inf)

    def excess(points: FloatArray) -> FloatArray:
        rows = np.atleast_2d(points.T)
        beyond = np.minimum(trials.excesses(trials(rows, "population")), NEVER).T
        return beyond if points.ndim == 2 else beyond[:, 0]

    kept = scipy_optimize.NonlinearConstraint(excess, -np.inf, 0.0)
    try:
        evolve(
            goal,
            [(0.0, 1.0)] * len(space),
            init=population,
            maxiter=max(0, most // size - 1),
            constraints=[kept] if study.constraints else [],
            vectorized=True,
            updating="deferred",
            polish=False,
            seed=rng,
        )
    except RuntimeError as error:  # as SciPy calls what a metric raises
        if isinstance(error.__cause__, (TypeError, ValueError)):
            raise error.__cause__ from None
        raise
    runs = f"{len(trials)} runs in populations of {size} (differential evolution)"
    return f"{runs}, {trials.how}"


def _answer(trials: Trials, end: Polish, signals: tuple[str, ...]) -> Optimization:
    """Say what the best candidate is."""
    study, space = trials.study, trials.space
    point, numbers = trials.points[end.best], trials.numbers[end.best]
    context = study.base.clone()
    space.write(context, point)
    near = (point < _NEAR) | (point > 1.0 - _NEAR)
    return Optimization(
        values=_by_path(space, study.system, space.numbers(point)),
        precision=_by_path(space, study.system, np.abs(space.slopes(point)) * end.precision),
        objective=float(numbers[0]),
        constraints=dict(zip(trials.kept, numbers[1:].tolist(), strict=True)),
        active=trials.active(numbers),
        at_bound=tuple(name for name, is_near in zip(space.names, near, strict=True) if is_near),
        feasible=bool(trials.feasible(numbers[np.newaxis])[0]),
        evaluations=len(trials),
        how=end.how,
        system=study.system,
        context=context,
        t_final=study.t_final,
        goal=study.goal.label,
        _table=trials.table(),
        _signals=signals,
        _options=study.options,
    )


def _by_path(space: SearchSpace, system: System, numbers: FloatArray) -> ByPath[Any]:
    """Return numbers of the coordinates by what is looked for, in its shapes."""
    rows = {path: each[0] for path, each in space.labelled(numbers[np.newaxis]).items()}
    found = {path: each.item() if each.size == 1 else each for path, each in rows.items()}
    return ByPath(system, found, "what was optimized")
