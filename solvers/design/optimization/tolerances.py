"""Tolerances: yield of a design, and which tolerance matters for which of its metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import (
    EvaluationError,
    FlexureError,
    UnknownNameError,
    ValueRefusedError,
    quoted,
    suggestion,
    warn,
)
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import COLORS, RED, check_file, tidy
from flexure.diagrams.interface.option_names import answers_other_words, refuse_unknown
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number, bounded
from flexure.diagrams.values.tables import Table
from flexure.solvers.design.optimization.candidates import Study, constraints_of, require_rest
from flexure.solvers.design.optimization.motion_slopes import slopes_of
from flexure.solvers.design.optimization.search_space import SearchSpace
from flexure.solvers.design.optimization.trials import Trials
from flexure.solvers.results.measures.metrics import Constraint
from flexure.solvers.simulation.run_control.options import IntegrationOptions
from flexure.solvers.simulation.run_control.progress_bar import ProgressBar
from flexure.solvers.sweeps.plans.plans import Plan, by_component
from flexure.solvers.sweeps.plans.sampling_designs import (
    Correlations,
    Sampled,
    Seed,
    latin_hypercube,
)
from flexure.solvers.sweeps.running.executors import checked_executor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 12  # tolerances in a panel
_EXPLAINED = 0.8  # of the variance: less of it, and shares of first order mislead


@dataclass(frozen=True, eq=False, repr=False)
class Tolerances(Answer):
    """The result of `tolerances`: the yield, and what each tolerance contributes.

    Attributes
    ----------
    plan : Plan
        The samples.
    passed : ndarray of bool, shape (N,)
        Which samples meet all constraints. Those without numbers do not.
    yield_rate : float
        Share of the samples that do.
    interval : tuple of float
        Confidence interval of the yield, of Clopper and Pearson.
    confidence : float
        Its confidence.
    paths : tuple of str
        The varied numbers: a path for each, with the component in brackets.
    deviations : ndarray, shape (d,)
        Their standard deviations.
    values : dict
        Values of each metric in all samples, arrays of shape (N,) by label; NaN where there is
        none.
    nominal : dict
        The metrics at the mean of all varied numbers.
    shares : dict
        By metric, what part of its variance is due to each number, of first order; shape (d,). The
        parts add up to 1.
    linear_deviations : dict
        By metric, the standard deviation of first order.
    explained : dict
        By metric, the part of the variance of the samples that the first order explains, at most 1.
    met : dict
        By constraint, the share of the samples that meet it.
    failures : dict
        Why samples have no numbers, by their index.
    how : str
        How samples and derivatives were computed.
    system : System
        The design.

    See Also
    --------
    tolerances : Compute them.
    SobolIndices : Shares of nonlinear dependences.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> context = lag.create_default_context()
    >>> context.set("u", 0.0)
    >>> bound = fx.metrics.final("y") <= 0.375
    >>> found = fx.tolerances(lag, {"x": (0.9, 1.1)}, bound, 1.0, context=context)
    >>> found
    <Tolerances of 'lag': yield 59.4% of 256 samples>
    """

    plan: Plan
    passed: npt.NDArray[np.bool_]
    interval: tuple[float, float]
    confidence: float
    paths: tuple[str, ...]
    deviations: FloatArray
    values: dict[str, FloatArray]
    nominal: dict[str, float]
    shares: dict[str, FloatArray]
    linear_deviations: dict[str, float]
    explained: dict[str, float]
    met: dict[str, float]
    failures: dict[int, str]
    how: str
    system: System
    _constraints: tuple[Constraint, ...] = field(repr=False)

    @property
    def yield_rate(self) -> float:
        """Share of the samples that meet all constraints."""
        return float(np.mean(self.passed))

    def table(self) -> Table:
        """Return a row for each number: its deviation, and its share of the variance of metrics.

        The number with the largest share comes first.
        """
        order = np.argsort(-np.max([*self.shares.values()], axis=0), kind="stable")
        rows = (
            (self.paths[k], self.deviations[k], *(share[k] for share in self.shares.values()))
            for k in order
        )
        return Table(("path", "deviation", *self.shares), rows)

    def metrics_table(self) -> Table:
        """Return a row for each metric: nominal value, mean, deviations and explained variance."""
        names = ("metric", "nominal", "mean", "deviation", "of first order", "explained")
        rows = (
            (
                name,
                self.nominal[name],
                np.nanmean(values),
                np.nanstd(values),
                self.linear_deviations[name],
                self.explained[name],
            )
            for name, values in self.values.items()
        )
        return Table(names, rows)

    def plot(self, *names: str, path: str | Path | None = None) -> Figure:
        """Plot histograms of metrics with their bounds, and the shares of all tolerances below.

        Parameters
        ----------
        *names : str
            Metrics, by their labels; all when omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        UnknownNameError
            When there is no such metric.
        """
        check_file(path, "Cannot plot tolerances")
        shown = [self._metric(name) for name in names or self.values]
        figure = new_figure(figsize=(1.5 + 3.6 * len(shown), 5.6), layout="constrained")
        panels = figure.subplots(2, len(shown), squeeze=False)
        for name, (above, below) in zip(shown, panels.T, strict=True):
            values = self.values[name]
            above.hist(values[np.isfinite(values)], bins="auto", color=COLORS[0])
            bounds = [
                bound
                for each in self._constraints
                for bound in (each.lower, each.upper)
                if each.metric.label == name and np.isfinite(bound)
            ]
            for bound in bounds:
                above.axvline(bound, color=RED, linewidth=1.4)
            above.set_title(name, fontsize=9, wrap=True)
            shares = self.shares[name]
            order = np.argsort(shares, kind="stable")[-_MOST:]
            below.barh([self.paths[k] for k in order], shares[order], color=COLORS[1])
            below.set_xlabel("share of the variance")
            below.set_xlim(left=min(0.0, float(shares.min())), right=1.0)
            for ax in (above, below):
                tidy(ax)
        low, high = self.interval
        text = f"yield {self.yield_rate:.1%} ({low:.1%} to {high:.1%})"
        figure.suptitle(f"{self.system.label}: {text}", fontsize=11)
        return saved(figure, path)

    def _metric(self, name: str | None) -> str:
        """Return the name of a metric; that of the only one when omitted."""
        if name in self.values or (name is None and len(self.values) == 1):
            return name or next(iter(self.values))
        raise UnknownNameError(
            f"Cannot find the metric {name!r:.100} of the tolerances of '{self.system.label}'",
            expected=f"one of {quoted(self.values)}",
            found=f"{name!r:.100}",
            remedy=suggestion(str(name), self.values),
        )

    def __str__(self) -> str:
        low, high = self.interval
        about = f"{self.confidence:.0%} interval {low:.1%} to {high:.1%}"
        text = [f"yield {self.yield_rate:.1%} ({about}), {len(self.passed)} samples"]
        width = max(map(len, self.met))
        text += [f"{label:{width}}  met by {share:.1%}" for label, share in self.met.items()]
        if self.failures:
            number, why = next(iter(self.failures.items()))
            text.append(f"{len(self.failures)} samples have no numbers; sample {number}: {why}")
        return "\n".join([*text, str(self.metrics_table()), str(self.table()), self.how])

    def __repr__(self) -> str:
        return (
            f"<Tolerances of '{self.system.label}': yield {self.yield_rate:.1%} of "
            f"{len(self.passed)} samples>"
        )


@answers_other_words
def tolerances(
    system: System,
    values: Sampled,
    constraints: Constraint | Iterable[Constraint],
    t_final: float | None = None,
    *,
    num_samples: int = 256,
    plus_minus: float | str | None = None,
    correlation: Correlations | None = None,
    confidence: float = 0.95,
    context: Context | None = None,
    seed: Seed = 0,
    executor: Any = None,
    threads: int | None = None,
    progress: bool = False,
    **options: Any,
) -> Tolerances:
    """Find the yield of a design with tolerances, and which tolerance matters.

    A Latin hypercube of the values is measured, by runs or at rest. The share of each value xᵢ in
    the variance of a metric m is that of first order, from derivatives gᵢ = ∂m/∂xᵢ at the means and
    the covariance Σ of the values::

        shareᵢ = gᵢ (Σ g)ᵢ / σ²,    σ² = gᵀ Σ g

    Parameters
    ----------
    system : System
        The design, a block or diagram.
    values : mapping, or paths
        What scatters, as for `flexure.plans.latin_hypercube`: by path, an interval
        ``(low, high)``, a distribution of ``scipy.stats``, or a tolerance such as ``"5 %"`` or
        ``"± 2e-5"``.
    constraints : Constraint or iterable of them
        Metrics with bounds, such as ``fx.metrics.frequency() >= 20.0``.
    t_final : float, optional
        End of the runs in seconds. When omitted, metrics are those at rest, as for `optimize`.
    num_samples : int
        Number of samples, at least 2.
    plus_minus, correlation
        As for `flexure.plans.latin_hypercube`.
    confidence : float
        Confidence of the interval of the yield, in (0, 1).
    context : Context, optional
        The nominal values, such as ``found.context`` of an optimization; a default context when
        omitted.
    seed : int or numpy.random.Generator
        The same seed gives the same samples.
    executor, threads, progress
        As for `sweep`.
    **options
        Options of runs, as for `Simulator`.

    Returns
    -------
    Tolerances

    Warns
    -----
    UserWarning
        When derivatives explain less than 80 % of the variance of a metric, so that the shares
        mislead.

    Raises
    ------
    UnknownNameError, ContextError, ValueRefusedError
        When something cannot be varied or measured; nothing has run then.
    EvaluationError
        When no sample has numbers.

    See Also
    --------
    optimize : Find the nominal values.
    sobol_indices : Shares of the variance of nonlinear metrics of runs.
    sweep : Simulate any plan.

    Notes
    -----
    Derivatives are exact, those of the equilibrium or of the motion. If there are none, as with
    events, the shares are those of a plane through the samples. The interval of the yield is exact
    for independent samples, and too wide for a Latin hypercube, whose yield scatters less.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> context = lag.create_default_context()
    >>> context.set("u", 1.0)
    >>> end = fx.metrics.final("y")
    >>> found = fx.tolerances(
    ...     lag, {"u": "5 %", "time_constant": "5 %"}, [end >= 0.6], 1.0, context=context
    ... )
    >>> round(found.yield_rate, 2), found.shares["final(y)"].round(2)
    (0.95, array([0.75, 0.25]))
    """
    require_system(system, "Cannot find the tolerances")
    attempt = f"Cannot find the tolerances of '{system.label}'"
    refuse_unknown("tolerances", options, IntegrationOptions.__optional_keys__)
    level = bounded(
        confidence, f"{attempt} with this confidence", lower=0.0, upper=1.0, exclusive=True
    )
    kept = constraints_of(constraints, attempt)
    require(len(kept) > 0, constraints, attempt, "at least one constraint")
    base = start_context(system, context, attempt)
    drawn: dict[str, Any] = {"plus_minus": plus_minus, "correlation": correlation, "seed": seed}
    plan = latin_hypercube(values, num_samples, context=base, **drawn)
    require(len(plan) > 1, num_samples, attempt, "num_samples to be at least 2")
    columns = plan.columns()
    limits = {path: (rows.min(axis=0), rows.max(axis=0)) for path, rows in columns.items()}
    space = SearchSpace(base, limits, (), attempt, starts=t_final is not None)
    numbers = np.column_stack([rows.reshape(len(plan), -1) for rows in columns.values()])
    points = (numbers - space.lower) / (space.upper - space.lower)
    end = None if t_final is None else float(as_number(t_final, (), f"{attempt} with this t_final"))
    study = Study(
        system=system,
        base=base,
        t_final=end,
        goal=kept[0].metric,
        constraints=kept,
        options=dict(options),
        executor=checked_executor(executor),
        threads=threads,
        attempt=attempt,
    )
    if study.at_rest:
        require_rest(study)
    with ProgressBar(0.0, float(len(plan)), progress, unit="samples", doing="sampling") as bar:
        trials = Trials(study, space, bar)
        measured = trials(points, "samples")[:, 1:]
    names = [each.metric.label for each in kept]
    places = {name: names.index(name) for name in names}
    for name, column in zip(names, measured.T, strict=True):  # results are by labels
        if not np.array_equal(column, measured[:, places[name]], equal_nan=True):
            raise ValueRefusedError(
                attempt,
                expected="metrics with different labels",
                found=f"two of the label {name!r:.100}",
                remedy="Give each its own, as in metric.named('swing')",
            )
    known = np.asarray(np.isfinite(measured).all(axis=1))
    if known.sum() < 2:
        raise EvaluationError(
            attempt,
            expected=f"samples of which all of {quoted(c.metric.label for c in kept)} are numbers",
            found=f"{known.sum()} among {len(plan)}; the first: {trials.reasons[0]}",
            remedy="Reduce the tolerances, use metrics that are always defined, or run longer",
        )
    slopes, nominal, ways = _slopes(trials, points, measured, known)
    covariance = np.cov(points.T).reshape(len(space), len(space))
    keys = values if isinstance(values, dict) else ()
    if correlation is None and not any(isinstance(key, tuple) for key in keys):
        covariance = np.diag(np.diag(covariance))
    parts = slopes * (slopes @ covariance)
    variances = parts.sum(axis=1)
    sizes = np.sqrt(np.maximum(variances, 0.0))
    left = measured[known] - nominal - (points[known] - points.mean(axis=0)) @ slopes.T
    with np.errstate(all="ignore"):
        shares = np.where(variances > 0.0, parts.T / variances, 0.0).T
        explained = 1.0 - left.var(axis=0) / measured[known].var(axis=0)
    for name, k in places.items():
        if not explained[k] >= _EXPLAINED and variances[k] > 0.0:
            warn(
                f"Derivatives explain {max(explained[k], 0.0):.0%} of the variance of '{name}' in "
                f"the tolerances of '{system.label}', so that the shares of first order mislead. "
                "Use fx.sobol_indices for metrics of runs, or smaller tolerances"
            )
    met = {each.label: each.holds(column) for each, column in zip(kept, measured.T, strict=True)}
    passed = np.all([*met.values()], axis=0) & known
    return Tolerances(
        plan=plan,
        passed=passed,
        interval=_interval(int(passed.sum()), len(plan), level),
        confidence=level,
        paths=tuple(by_component(columns)),
        deviations=numbers.std(axis=0, ddof=1),
        values={name: measured[:, k] for name, k in places.items()},
        nominal={name: float(nominal[k]) for name, k in places.items()},
        shares={name: shares[k] for name, k in places.items()},
        linear_deviations={name: float(sizes[k]) for name, k in places.items()},
        explained={name: float(explained[k]) for name, k in places.items()},
        met={label: float(np.mean(each)) for label, each in met.items()},
        failures={k: text for k, text in enumerate(trials.reasons) if text},
        how=f"samples {trials.how}; {ways}",
        system=system,
        _constraints=kept,
    )


def _slopes(
    trials: Trials, points: FloatArray, measured: FloatArray, known: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, str]:
    """Return derivatives of the metrics by coordinates, their values at the mean, and how."""
    middle = points.mean(axis=0)
    try:
        found = (trials.rest or slopes_of(trials.study, trials.space))(middle)
        if np.isfinite(np.column_stack(found)).all():
            return found[1][1:], found[0][1:], "exact derivatives"
    except FlexureError:
        pass
    plane = np.column_stack([np.ones(known.sum()), points[known] - middle])
    fit = np.linalg.lstsq(plane, measured[known], rcond=None)[0]
    return fit[1:].T, fit[0], "a plane through the samples, as there are no derivatives"


def _interval(count: int, size: int, level: float) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson of a share."""
    from scipy.stats import beta

    tail = 0.5 - 0.5 * level
    low = beta.ppf(tail, count, size - count + 1) if count else 0.0
    high = beta.ppf(1.0 - tail, count + 1, size - count) if count < size else 1.0
    return float(low), float(high)
