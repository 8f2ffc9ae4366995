"""Sobol indices: which share of the variance of a metric each value is responsible for.

With independent values x and the metric y = f(x), the index of first order is the share that is
lost on average when x_i is known, ``S_i = Var(E(y | x_i)) / Var(y)``, and that of total order the
share that is left when all others are known, ``T_i = E(Var(y | x_~i)) / Var(y)``. Both are
estimated from n rows x of two independent tables A and B, and from tables A_i, which are A with the
column i of B:

    S_i = mean(f(B) (f(A_i) - f(A))) / Var,   T_i = mean((f(A) - f(A_i))²) / (2 Var)

with f less its mean, and Var and mean of f(A) and f(B) together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np

from flexure.diagrams.checks.arguments import require_known, require_that
from flexure.diagrams.checks.errors import ValueRefusedError, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import COLORS, DARK, check_target, tidy
from flexure.diagrams.interface.html import fold, heading
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.diagrams.values.tables import Table
from flexure.solvers.sweeps.pictures.plot_columns import title_of
from flexure.solvers.sweeps.plans.plans import Plan, by_component
from flexure.solvers.sweeps.plans.sampling_designs import (
    Copula,
    Options,
    Sampled,
    Seed,
    sampled,
    sobol_points,
    uncorrelated,
)
from flexure.solvers.sweeps.running.metric_columns import listed
from flexure.solvers.sweeps.running.sweep_record import SweepOptions
from flexure.solvers.sweeps.sweep import Sweep
from flexure.solvers.sweeps.sweeps import sweep
from flexure.solvers.sweeps.tables.regression import Regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RESAMPLES = 1000
_CHUNK = 100  # of them at once, which bounds the memory
_SHOWN = 30  # paths in a notebook
_MOST = 20  # paths in a picture
_WIDTH = 0.36  # of a bar
_FEW = 16  # rows: of fewer, the true indices are often outside of their intervals
_RESOLVED = 1e-6  # of a metric: less of a spread may be errors of the runs


@dataclass(frozen=True, eq=False)
class MetricIndices:
    """The Sobol indices of one metric."""

    # first, total: indices of first and of total order by the number of the path, shape (d,).
    first: FloatArray
    total: FloatArray
    # first_interval, total_interval: their confidence intervals, from a bootstrap over the rows,
    # shape (d, 2).
    first_interval: FloatArray
    total_interval: FloatArray
    variance: float  # variance of the metric
    rows: int  # of how many of the n rows all runs had a number
    # The plane through all runs. The squares of its standardized slopes are what the indices would
    # be if the metric were linear.
    regression: Regression | None


class SobolIndices(Answer):
    """Sobol indices of metrics.

    ``indices["overshoot"]`` has the numbers of a metric: ``first`` and ``total``, arrays in the
    order of ``paths``, with ``first_interval`` and ``total_interval``, arrays of shape (d, 2),
    ``variance``, ``rows``, how many of the n rows had numbers, and ``regression``.

    Attributes
    ----------
    paths : tuple of str
        What was varied: a path for each number.
    metrics : tuple of str
        What was measured.
    num_samples : int
        How many rows of samples were asked for.
    confidence : float
        The confidence of the intervals.
    sweep : Sweep
        All runs. Each d + 2 of them belong together: a row of A, one of B, and those of all A_i.

    See Also
    --------
    sobol_indices : Compute them.

    Examples
    --------
    >>> import flexure as fx
    >>> values = {"u": (0.0, 2.0), "x": (0.0, 0.5)}
    >>> lag, last = fx.FirstOrderLag("lag", 1.0), fx.metrics.final("y")
    >>> found = fx.sobol_indices(lag, values, 1.0, 64, metrics=last)
    >>> found.paths, found.metrics
    (('u[0]', 'x[0]'), ('final(y)',))
    """

    def __init__(self, sweep: Sweep, num_samples: int, confidence: float) -> None:
        self.sweep = sweep
        self.num_samples = num_samples
        self.confidence = confidence
        self.paths = tuple(by_component(sweep.values))
        self.metrics = tuple(sweep.metrics)
        self._found = {
            name: _indices_of(sweep, name, len(self.paths), confidence) for name in self.metrics
        }

    def __getitem__(self, metric: str) -> MetricIndices:
        """Return the indices of a metric."""
        require_known(metric, self._found, f"Cannot find Sobol indices of {metric!r:.100}")
        return self._found[metric]

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.metrics]

    def table(self, metric: str | None = None) -> Table:
        """Return a table with a row for each path, that with the largest total index first.

        Parameters
        ----------
        metric : str, optional
            Which metric; the only one when omitted.

        Returns
        -------
        Table
            With the indices, their intervals, and in the column "linear" the squares of the
            standardized slopes of a plane through all runs. Where these are close to the indices
            of first order, the metric is all but linear in this value.
        """
        found = self[self._only(metric)]
        linear = np.full(len(self.paths), np.nan)
        if found.regression is not None:
            squares = found.regression.standardized**2
            known = dict(zip(found.regression.paths, squares.tolist(), strict=True))
            linear = np.array([known.get(path, 0.0) for path in self.paths])
        rows = [
            (
                self.paths[k],
                found.first[k],
                found.first_interval[k],
                found.total[k],
                found.total_interval[k],
                linear[k],
            )
            for k in np.argsort(-found.total, kind="stable")
        ]
        names = ("path", "first", "first interval", "total", "total interval", "linear")
        return Table(names, rows)

    def plot(
        self, metric: str | None = None, *, ax: Axes | None = None, path: str | Path | None = None
    ) -> Axes:
        """Plot the indices of a metric as bars, with their intervals and the linear shares.

        Parameters
        ----------
        metric : str, optional
            Which metric; the only one when omitted.
        ax : matplotlib.axes.Axes, optional
            Where to plot; a new figure when omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        attempt = f"Cannot plot Sobol indices of '{self.sweep.system.label}'"
        check_target(ax, path, attempt)
        metric = self._only(metric)
        found, table = self[metric], self.table(metric)[:_MOST]
        wide = max(6.0, 2.0 + 1.0 * len(table))
        ax = axes_or_new(ax, figsize=(min(wide, 16.0), 4.8))
        places = np.arange(len(table))
        for k, order in enumerate(("first", "total")):
            heights = np.array(table[order])
            intervals = np.array(table[f"{order} interval"])
            ways = np.abs(intervals - heights[:, np.newaxis]).T
            ax.bar(
                places + (k - 0.5) * _WIDTH,
                heights,
                _WIDTH,
                yerr=ways,
                capsize=3,
                color=COLORS[k],
                error_kw={"elinewidth": 1.0, "ecolor": DARK},
                label=f"{order} order",
            )
        if found.regression is not None:
            label = f"linear (R² = {found.regression.r_squared:.3g})"
            ax.plot(places - 0.5 * _WIDTH, table["linear"], "D", color="black", ms=4, label=label)
        turned = len(table) > 6 or max(map(len, table["path"])) > 12
        ax.set_xticks(places, table["path"], rotation=20 if turned else 0)
        ax.set_ylabel(f"share of the variance of {metric}")
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        tidy(ax)
        ax.xaxis.grid(False)
        ax.legend(frameon=False, fontsize=9)
        ax.set_title(f"{title_of(self.sweep)}, {self.confidence:.0%} intervals", fontsize=11)
        return saved(ax, path)

    def _only(self, metric: str | None) -> str:
        if metric is not None or len(self.metrics) == 1:
            return self.metrics[0] if metric is None else metric
        raise ValueRefusedError(
            f"Cannot show Sobol indices of '{self.sweep.system.label}'",
            expected="the name of a metric",
            found=f"{len(self.metrics)} metrics",
        )

    def _pieces(self) -> Iterator[str]:
        about = f"{len(self.sweep)} runs, {self.confidence:.0%} intervals"
        yield heading("SobolIndices", self.sweep.system.label, about)
        for metric in self.metrics:
            yield fold(metric, self.table(metric).to_html(_SHOWN), opened=True)

    def __repr__(self) -> str:
        what = f"{len(self.paths)} values of '{self.sweep.system.label}'"
        return (
            f"<SobolIndices of {what} for {', '.join(self.metrics)}; {len(self.sweep)} runs, "
            f"{self.confidence:.0%} intervals>"
        )


@answers_other_words
def sobol_indices(
    system: System,
    values: Sampled,
    t_final: float,
    num_samples: int = 1024,
    *,
    confidence: float = 0.95,
    plus_minus: float | str | None = None,
    context: Context | None = None,
    seed: Seed = 0,
    **options: Unpack[SweepOptions],
) -> SobolIndices:
    """Simulate samples, and compute the share of variance due to each parameter.

    Parameters
    ----------
    system : System
        A block or diagram.
    values : mapping, or paths
        The values to draw, as for `latin_hypercube`; they must be independent.
    t_final : float
        End of the runs in seconds.
    num_samples : int
        Number n of rows of samples, preferably a power of two. For d numbers, n (d + 2) runs are
        simulated, in one sweep, and intervals shrink as 1/√n.
    confidence : float
        Confidence level of the intervals, which come from a bootstrap over the rows.
    plus_minus : float or str, optional
        Tolerance of the paths in a list, relative to their nominal values.
    context : Context, optional
        Common values of all runs, with the nominal values; a default context when omitted.
    seed : int or numpy.random.Generator
        The same seed gives the same samples.
    **options
        As for `sweep`, with at least one of ``metrics``.

    Returns
    -------
    SobolIndices

    Warns
    -----
    UserWarning
        When n is no power of two, when rows are left out because a run in them has no number, and
        when fewer than 16 rows are left: true indices are then often outside of the intervals.
        When a metric varies by no more than the errors of runs, or as noise does: with S = 0 and
        T = 1 for every value.

    Raises
    ------
    ValueRefusedError
        When there are no metrics, or values are correlated: the shares are then not defined.
    KeyboardInterrupt
        When it is interrupted. Its attribute ``result`` has the indices from the rows so far.

    See Also
    --------
    sweep : Simulate the runs of any plan.
    parameter_sensitivity : Derivatives around one motion.

    Notes
    -----
    With independent values x and y = f(x), the index of first order is
    ``S_i = Var(E(y | x_i)) / Var(y)``, and that of total order
    ``T_i = E(Var(y | x_~i)) / Var(y)``, where ``x_~i`` are all other values. T_i - S_i is what x_i
    does together with others. All S_i add up to at most 1, all T_i to at least 1, and to 1 where
    effects are added. The estimators are those of ``scipy.stats.sobol_indices``, which is
    ``saltelli_2010``, and do with any number of rows.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 1.0)
    >>> values = {"u": (0.0, 2.0), "x": (0.0, 0.5)}
    >>> found = fx.sobol_indices(lag, values, 1.0, 256, metrics=fx.metrics.final("y"))
    >>> found["final(y)"].first.round(2)
    array([0.98, 0.02])
    """
    require_system(system, "Cannot find Sobol indices")
    attempt = f"Cannot find Sobol indices of '{system.label}'"
    level = float(as_number(confidence, (), attempt))
    require_that(0.0 < level < 1.0, attempt, "a confidence between 0 and 1", f"{level:g}")
    wanted = listed(options.get("metrics", ()), attempt)
    require_that(wanted, attempt, "at least one of metrics=", "none, so that nothing varies")
    if not isinstance(options["metrics"], Mapping):  # which may be what can be read once
        options["metrics"] = [each for _, each in wanted]
    nominal = system if context is None else context
    drawn = _plan(values, num_samples, Options(plus_minus, None, nominal, seed), attempt)
    try:
        found = sweep(system, drawn, t_final, context=context, **options)
    except KeyboardInterrupt as interruption:
        if isinstance(getattr(interruption, "result", None), Sweep):
            interruption.result = SobolIndices(  # type: ignore[attr-defined]
                interruption.result,  # type: ignore[attr-defined]
                num_samples,
                level,
            )
        raise
    indices = SobolIndices(found, num_samples, level)
    for name in indices.metrics:
        if indices[name].rows < num_samples:
            warn(
                f"{num_samples - indices[name].rows} of {num_samples} rows of samples are left out "
                f"of the Sobol indices of '{name}', since some of their runs have no number"
            )
        if indices[name].rows < _FEW:
            warn(
                f"The Sobol indices of '{name}' come from too few rows of samples, "
                f"{indices[name].rows}: with fewer than {_FEW}, true indices are often outside of "
                f"the {level:.0%} intervals. Raise num_samples"
            )
        else:
            _warn_of_noise(found.metrics[name], name, indices[name])
    return indices


def _warn_of_noise(measured: FloatArray, name: str, found: MetricIndices) -> None:
    """Warn when a metric varies, but not with the values."""
    # Noise that is drawn anew in each run has S = 0 and T = 1 for every value, which only a
    # function of products of all values has as well.
    size = float(np.nanmax(np.abs(measured)))
    spread = math.sqrt(found.variance)
    if spread <= _RESOLVED * size:
        warn(
            f"The Sobol indices of '{name}' say nothing: it does not depend on the values. It "
            f"varies by {spread:.3g} around values up to {size:.3g}, no more than the errors of "
            "runs. Vary other paths, or measure something else"
        )
        return
    nothing = (found.first_interval[:, 0] <= 0.0) & (found.first_interval[:, 1] >= 0.0)
    everything = (found.total_interval[:, 0] <= 1.0) & (found.total_interval[:, 1] >= 1.0)
    if (nothing & everything).all():
        warn(
            f"'{name}' varies as noise does: each value alone explains nothing of it (S = 0), and "
            "without any of them nothing is explained (T = 1). Run the same values twice; if the "
            "metric differs, fix the seeds of what is random, or average over more of it"
        )


def _plan(values: Sampled, n: int, options: Options, attempt: str) -> Plan:
    """Return the runs of rows of A, B and all A_i, those of a row together."""

    def draw(rng: np.random.Generator, correlated: Copula, size: int) -> FloatArray:
        if correlated is not uncorrelated:
            raise ValueRefusedError(
                attempt,
                expected="independent values",
                found="correlated ones, whose shares of the variance cannot be separated",
            )
        both = sobol_points(rng, 2 * size, n)
        rows = np.repeat(both[:, np.newaxis, :size], size + 2, axis=1)
        rows[:, 1] = both[:, size:]
        each = np.arange(size)
        rows[:, 2 + each, each] = both[:, size + each]
        return rows.reshape(-1, size)

    return sampled(attempt, values, n, draw, options)


def _indices_of(sweep: Sweep, metric: str, size: int, confidence: float) -> MetricIndices:
    """Return the indices of a metric, from the rows in which all runs have a number."""
    rows = sweep.metrics[metric].reshape(-1, size + 2)
    rows = rows[np.isfinite(rows).all(axis=1)]
    both = rows[:, :2]
    a, b = (both - (both.mean() if len(rows) else 0.0)).T
    moved = rows[:, 2:] - rows[:, :1]
    # Sums over rows of these give everything: two for the variance, then S, then T.
    parts = np.column_stack([a + b, a**2 + b**2, b[:, np.newaxis] * moved, moved**2])
    count = len(rows)
    if count < 2:
        nothing, ends = np.full(size, np.nan), np.full((size, 2), np.nan)
        return MetricIndices(nothing, nothing, ends, ends, np.nan, count, None)
    rng = np.random.default_rng(0)
    drawn = [
        rng.multinomial(count, np.full(count, 1.0 / count), size=_CHUNK) @ parts
        for _ in range(_RESAMPLES // _CHUNK)
    ]
    estimates = _estimates(np.concatenate(drawn) / count, size)
    first, total = _estimates(parts.mean(axis=0), size)
    tails = (0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence)
    of_first, of_total = (np.quantile(each, tails, axis=0).T for each in estimates)
    plane = sweep.regression(metric)
    return MetricIndices(first, total, of_first, of_total, float(both.var()), count, plane)


def _estimates(means: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Return the indices of first and total order from means over rows."""
    variance = 0.5 * means[..., 1:2] - (0.5 * means[..., :1]) ** 2
    known = variance > 0.0  # a metric that does not vary has no shares
    scale = np.where(known, 1.0 / np.where(known, variance, 1.0), 0.0)
    return means[..., 2 : 2 + size] * scale, 0.5 * means[..., 2 + size :] * scale
