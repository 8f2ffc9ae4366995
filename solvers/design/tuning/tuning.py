"""Tuning: gains of any blocks for goals in frequency and time, over several operating points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.arguments import generator, is_whole, items_of, require
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError, quoted, warn
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Way, find_place, path_of, several
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, bounded
from flexure.diagrams.values.tables import Table
from flexure.solvers.design.objectives.measures import Measure
from flexure.solvers.design.objectives.rest_metrics import measure_of
from flexure.solvers.design.optimization.search_space import SearchResult, SearchSpace
from flexure.solvers.design.tuning.problem import BEYOND, Goal, Level, Problem
from flexure.solvers.results.measures.metrics import Constraint, Metric

if TYPE_CHECKING:
    from flexure.solvers.design.tuning import tuning_figures
else:
    tuning_figures = Deferred("flexure.solvers.design.tuning.tuning_figures")

_AROUND = 100.0  # times the present value, and as a part of it: bounds that are not given
_MOST = 1000  # starts
_SAMPLE = 8  # points for each random start, of which the best one is taken
_MET = 1e-6  # excess of a goal that is rounding


@dataclass(frozen=True, eq=False, repr=False)
class Tune(SearchResult):
    """The result of `tune`: gains, and how far they meet each goal.

    ``tuned["pid.kp"]`` is the value of a gain.

    Its figure has each gain over frequency in all contexts, and how far all goals are met.

    Attributes
    ----------
    values : dict
        The values by path: numbers, or arrays of the shapes that they have in a context.
    achieved : dict of str to float
        By label of each goal, the value of its metric in the context where it is worst.
    excess : dict of str to float
        By label of each goal with a bound, by which part of the bound the value is beyond it; at
        most 0 if it is met.
    worst_context : dict of str to int
        By label of each goal, the number of that context.
    is_met : bool
        Whether all goals with a bound are met, and all loops are stable.
    is_stable : bool
        Whether the linear models are stable in all contexts.
    evaluations : int
        At how many points goals were computed.
    how : str
        How the values were found.
    system : System
        What was tuned.
    contexts : tuple of Context
        The operating points with the values set.

    See Also
    --------
    tune : Find them.
    """

    _result = "a tuning"

    values: dict[str, Any]
    achieved: dict[str, float]
    excess: dict[str, float]
    worst_context: dict[str, int]
    is_met: bool
    is_stable: bool
    evaluations: int
    how: str
    system: System
    contexts: tuple[Context, ...]
    _goals: tuple[Goal, ...] = field(repr=False)
    _values: FloatArray = field(repr=False)
    _before: FloatArray = field(repr=False)
    _period: float | None = field(repr=False)

    def table(self) -> Table:
        """Return a row for each goal and context: the values before and after, and the verdict."""
        rows = [
            (
                goal.label,
                number,
                float(self._before[k, number]),
                float(self._values[k, number]),
                None if goal.is_free else bool(goal.excess(self._values[k, number], 1.0) <= 0.0),
            )
            for k, goal in enumerate(self._goals)
            for number in range(len(self.contexts))
        ]
        return Table(("goal", "context", "before", "after", "met"), rows)

    _figure = tuning_figures.plot_tuning

    def __str__(self) -> str:
        width = max(map(len, [*self.values, *self.achieved]))
        found = [] if self.is_stable else ["NOT STABLE in all contexts"]
        for label, value in self.achieved.items():
            where = f" in context {self.worst_context[label]}" * (len(self.contexts) > 1)
            excess = self.excess.get(label, 0.0)
            missed = f", missed{_beside(excess)}" * bool(excess > _MET)
            found.append(f"{label:{width}}  {value:.6g}{where}{missed}")
        for name, value in self.values.items():
            text = f"{value:.6g}" if np.ndim(value) == 0 else np.array2string(np.asarray(value))
            found.append(f"{name:{width}}  {text}")
        return "\n".join([*found, f"{self.evaluations} evaluations: {self.how}"])

    def __repr__(self) -> str:
        missed = sum(excess > _MET for excess in self.excess.values())
        verdict = "all goals met" if self.is_met else f"{missed} of {len(self.excess)} goals missed"
        verdict = verdict if self.is_stable else "not stable"
        return f"<Tune of '{self.system.label}': {verdict}, {self.evaluations} evaluations>"


@in_one_thread
def tune(
    system: System,
    parameters: Mapping[Any, Any] | Way | Iterable[Way],
    goals: Constraint | Metric | Iterable[Constraint | Metric],
    *,
    contexts: Context | Iterable[Context] | None = None,
    period: float | None = None,
    logarithmic: Way | Iterable[Way] | None = None,
    starts: int = 3,
    seed: int | np.random.Generator = 0,
) -> Tune:
    """Tune gains of any blocks until goals are met in all operating points.

    Parameters
    ----------
    system : System
        A diagram, with any number of loops.
    parameters : mapping, Handle, str or iterable of them
        What is tuned: numeric parameters by path or handle, with bounds as for `optimize`; a tuple
        of paths takes one value. Without bounds, a value may change by a factor of 100.
    goals : Constraint, Metric or iterable of them
        Metrics of a system at rest with a bound, such as
        ``fx.metrics.stability_margin("pid.u") >= 0.7``, `gain`, `tracking`, `least_damping`,
        `decay_rate`, `overshoot` and `h2`; and metrics without a bound, which are minimized once
        all bounds are met.
    contexts : Context or iterable of them, optional
        Operating points, root contexts; the worst one counts for each goal. They may differ in
        parameters of the plant. Their states stay what they are. A default context when omitted.
    period : float, optional
        Sampling period in s, as for `linearize`: goals are those of sampled models.
    logarithmic : Handle, str or iterable of them, optional
        What is searched on a logarithmic scale, as for `optimize`.
    starts : int
        From how many points local searches start: the values of the first context, then the best of
        a random sample.
    seed : int or numpy.random.Generator
        Seed of the random numbers.

    Returns
    -------
    Tune

    Raises
    ------
    UnknownNameError, ValueRefusedError, ContextError
        When something cannot be tuned, or a goal cannot be used.
    TraceError
        When a block cannot be traced.
    EvaluationError
        When there is no linear model at any point.

    Warns
    -----
    UserWarning
        When goals are missed, with those and by how much; or when loops stay unstable.

    See Also
    --------
    tune_pid : Tune one PID controller.
    optimize : Minimize metrics of simulations.
    lqg : Optimal feedback of full order.

    Notes
    -----
    Goals are scaled by their bounds, and the largest excess over all goals and contexts is
    minimized: ``min t`` with ``(value - bound) / |bound| ≤ t``, by linear programs within a trust
    region, then sequential quadratic programming (SciPy's HiGHS and SLSQP). Each peak of a gain
    over frequency is a constraint of its own, so that peaks of one height are leveled. Derivatives
    are exact: ``dG = C (jω - A)⁻¹ dA (jω - A)⁻¹ B + ...`` with the derivatives of the matrices from
    the trace, with ``period`` also of exponentials and updates. Where a sampled model changes with
    time or along the run of a period, its derivatives are central differences.

    Stability comes first: from unstable values, the decay of the slowest poles is raised. Poles at
    zero that nothing feeds back are left out there. Reached goals keep as much reserve as
    possible, so that the values do not lie on the bounds of goals.

    Local searches find local minima; more ``starts`` look at more places.

    Examples
    --------
    A PI controller of an integrator with a lag, for a disk margin of 0.9 and the fastest decay:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Constant("target", 1.0),
    ...     fx.PIDController("pid", kp=1.0, ki=0.1),
    ...     fx.FirstOrderLag("lag", time_constant=0.1),
    ...     fx.Integrator("plant"),
    ... )
    >>> builder.connect_chain("target", "pid.setpoint")
    >>> builder.connect_chain("pid", "lag", "plant", "pid.measurement")
    >>> goals = [fx.metrics.stability_margin("pid.u") >= 0.9, fx.metrics.decay_rate() >= 1.0]
    >>> tuned = fx.tune(builder.build(), ["pid.kp", "pid.ki"], goals)
    >>> tuned.is_met
    True
    """
    require_system(system, "Cannot tune")
    attempt = f"Cannot tune '{system.label}'"
    points = _contexts(system, contexts, attempt)
    wanted = _goals(goals, attempt)
    space = SearchSpace(points[0], _bounds(points[0], parameters, attempt), logarithmic, attempt)
    fits = is_whole(starts) and 1 <= starts <= _MOST
    require(fits, starts, attempt, f"starts to be an integer from 1 to {_MOST}")
    rng = generator(seed, attempt)
    if period is not None:
        period = float(bounded(period, f"{attempt} with this period", lower=0.0, exclusive=True))
    problem = Problem(points, space, wanted, period, attempt)
    first = space.position(points[0])
    begun = [] if first is None else [first]
    begun += list(rng.random((_SAMPLE * max(starts - len(begun), 0), len(space))))
    before = problem(begun[0])
    _scale_free(problem, begun)
    is_done = first is not None and problem.descend(first)
    if not is_done:
        ranked = sorted(begun[first is not None :], key=lambda point: problem.rank(problem(point)))
        for point in ranked[: starts - (first is not None)]:
            if problem.descend(point):
                break
    if all(np.isnan(level.values).all() for _, level in problem.levels.values()):
        raise problem.failure or EvaluationError(
            attempt,
            expected=f"points where some of {quoted(goal.label for goal in wanted)} are numbers",
            found=f"none among {len(problem.levels)}",
            remedy="Check inputs and outputs of the goals, and the bounds",
        )
    found = _answer(problem, system, before, period, starts)
    _warn(found, attempt)
    return found


def _contexts(system: System, contexts: Any, attempt: str) -> list[Context]:
    """Return the operating points."""
    if contexts is None or isinstance(contexts, Context):
        return [start_context(system, contexts, attempt)]
    given = items_of(contexts, "root contexts of the system", attempt, kind=Context)
    require(len(given) > 0, contexts, attempt, "at least one context")
    return [start_context(system, each, attempt) for each in given]


def _goals(goals: Any, attempt: str) -> list[Goal]:
    """Return what is wanted."""
    one = isinstance(goals, (Constraint, Metric))
    expected = "goals such as [fx.metrics.stability_margin('pid.u') >= 0.7]"
    given = (goals,) if one else items_of(goals, expected, attempt)
    require(len(given) > 0, goals, attempt, expected)
    found: list[Goal] = []
    for goal in given:
        fits = isinstance(goal, (Constraint, Metric))
        require(fits, goal, attempt, expected)
        metric = goal.metric if isinstance(goal, Constraint) else goal
        measure = measure_of(metric)
        if not isinstance(measure, Measure):
            raise ValueRefusedError(
                f"{attempt} with the goal '{goal.label}'",
                expected="a metric of a linear model, without arithmetic, and a number as bound",
                found=f"'{metric.label}'",
                remedy="Use fx.optimize for metrics of runs and for arithmetic",
            )
        bound, sign = np.nan, 1.0 if measure.is_largest else -1.0
        if isinstance(goal, Constraint):
            sign = 1.0 if np.isfinite(goal.upper) else -1.0
            bound = goal.upper if sign > 0.0 else goal.lower
            fits = bool(np.isfinite(bound))
            require(fits, bound, f"{attempt} with the goal '{goal.label}'", "a finite bound")
        label = goal.label
        while any(label == each.label for each in found):
            label += "'"
        found.append(Goal(label, measure, float(bound), sign))
    return found


def _bounds(context: Context, parameters: Any, attempt: str) -> Any:
    """Return what is tuned, with bounds."""
    if isinstance(parameters, Mapping):
        return parameters
    found: dict[Any, Any] = {}
    for way in several(parameters):
        place = find_place(context.system, way)
        value = np.asarray(place.read(context), dtype=float)
        if not (np.isfinite(value).all() and np.all(value != 0.0)):
            raise ValueRefusedError(
                f"{attempt} with '{path_of(way)}' without bounds",
                expected="a value that is not zero, around which it may change",
                found=f"{value.tolist()}",
                remedy=f"Write {{{path_of(way)!r}: (low, high)}}",
            )
        ends = value / _AROUND, value * _AROUND
        found[way] = np.minimum(*ends), np.maximum(*ends)
    return found


def _scale_free(problem: Problem, points: list[FloatArray]) -> None:
    """Scale metrics without a bound by what they are at the first point that has a number."""
    for k, goal in enumerate(problem.goals):
        if goal.is_free:
            seen = (float(np.abs(problem(point).excesses[k]).max()) for point in points)
            problem.scales[k] = next((each for each in seen if 0.0 < each < BEYOND), 1.0)
    if any(goal.is_free for goal in problem.goals):
        problem.levels.clear()


def _answer(
    problem: Problem, system: System, before: Level, period: float | None, starts: int
) -> Tune:
    """Return what the best point is."""
    point, level = problem.best()
    goals, space = problem.goals, problem.space
    worst = [
        int(np.argmax(np.nan_to_num(goal.sign * level.values[k], nan=np.inf)))
        for k, goal in enumerate(goals)
    ]
    achieved = {g.label: float(level.values[k, worst[k]]) for k, g in enumerate(goals)}
    excess = {
        g.label: g.excess(achieved[g.label], problem.scales[k])
        for k, g in enumerate(goals)
        if not g.is_free
    }
    contexts = []
    for context in problem.contexts:
        changed = context.clone()
        space.write(changed, point)
        contexts.append(changed)
    rows = {path: each[0] for path, each in space.values(point[np.newaxis]).items()}
    values = {path: each.item() if each.size == 1 else each for path, each in rows.items()}
    stable = bool(level.stable.all())
    slopes = "exact derivatives" if problem.is_exact else "some derivatives by differences"
    return Tune(
        values=ByPath(system, values, "what was tuned"),
        achieved=achieved,
        excess=excess,
        worst_context={g.label: worst[k] for k, g in enumerate(goals)},
        is_met=stable and all(value <= _MET for value in excess.values()),
        is_stable=stable,
        evaluations=len(problem.levels),
        how=f"minimax from up to {starts} starts (HiGHS, SLSQP), {slopes}",
        system=system,
        contexts=tuple(contexts),
        _goals=tuple(goals),
        _values=level.values,
        _before=before.values,
        _period=period,
    )


def _beside(excess: float, what: str = "") -> str:
    """Return by how much a goal is missed, if that is a number."""
    return f" by {100.0 * excess:.3g} %{what}" * math.isfinite(excess)


def _warn(found: Tune, attempt: str) -> None:
    """Say which goals are missed."""
    if not found.is_stable:
        warn(
            f"{attempt} so that it is stable in all contexts: no values between the bounds were "
            "found. Widen the bounds, or add starts"
        )
    missed = {label: excess for label, excess in found.excess.items() if excess > _MET}
    if missed:
        texts = (
            f"'{n}'{_beside(e, ' of its bound') or f', which is {found.achieved[n]:g}'}"
            for n, e in missed.items()
        )
        warn(
            f"{attempt} to all goals: missed are {', '.join(texts)}. Relax a goal, widen the "
            "bounds, or add starts"
        )
