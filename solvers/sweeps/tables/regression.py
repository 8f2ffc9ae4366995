"""Planes through the metrics of a sweep: what each value does, as far as it does so linearly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import require_known
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.interface.html import Shown, heading
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.tables import Table
from flexure.solvers.sweeps.plans.plans import by_component

_ROWS = 30  # values in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Shown):
    """Linear regression of a metric, ``y = mean + Σ slope (x - mean of x)``.

    Attributes
    ----------
    metric : str
        Name of y.
    paths : tuple of str
        What x are: the components of all values that differ between runs.
    slopes : ndarray, shape (d,)
        ∂y/∂x of the plane, in the units of y and x.
    standardized : ndarray, shape (d,)
        slope σ(x) / σ(y). Where the x are independent and y is linear in them, the squares add up
        to 1: they are the shares of the variance, and the Sobol indices.
    effects : ndarray, shape (d,)
        slope times the way from the 5 % to the 95 % quantile of x, in the unit of y.
    r_squared : float
        Share of the variance of y that the plane explains: 1 where y is linear.
    runs : int
        How many runs had a number.

    See Also
    --------
    sweep : Run the simulations.
    SobolIndices : Shares of nonlinear dependences.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", 1.0)
    >>> found = fx.sweep(
    ...     lag, {"time_constant": [0.5, 1.0], "u": [1.0, 1.0]}, 1.0, metrics=fx.metrics.final("y")
    ... )
    >>> fit = found.regression("final(y)")
    >>> fit.paths, fit.runs
    (('time_constant',), 2)
    """

    metric: str
    paths: tuple[str, ...]
    slopes: FloatArray
    standardized: FloatArray
    effects: FloatArray
    r_squared: float
    runs: int

    def table(self) -> Table:
        """Return a table with a row for each path, that with the largest effect first."""
        order = np.argsort(-np.abs(self.standardized), kind="stable")
        rows = zip(
            [self.paths[k] for k in order],
            *(column[order] for column in (self.slopes, self.effects, self.standardized)),
            strict=True,
        )
        return Table(("path", "slope", "effect", "standardized"), rows)

    def _pieces(self) -> Iterator[str]:
        about = f"{self.runs} runs, R² = {self.r_squared:.3g}"
        yield heading("Regression", self.metric, about)
        yield self.table().to_html(_ROWS)

    def __repr__(self) -> str:
        return (
            f"<Regression of {self.metric} over {len(self.paths)} values in {self.runs} runs, "
            f"R² = {self.r_squared:.3g}>"
        )


def regress(
    values: Mapping[str, Any], metrics: Mapping[str, FloatArray], metric: str, label: str
) -> Regression:
    """Return the plane through a metric of the runs of a system; see `Sweep.regression`."""
    attempt = f"Cannot fit a plane to the runs of '{label}'"
    y = metric_of(metrics, metric, attempt)
    known = np.isfinite(y)
    varied = {
        name: column[known]
        for name, column in by_component(values).items()
        if known.any() and np.ptp(column[known]) > 0.0
    }
    if not varied or np.count_nonzero(known) <= len(varied):
        raise ValueRefusedError(
            attempt,
            expected="values that differ between runs, and more runs with numbers than values",
            found=f"{np.count_nonzero(known)} runs in which {len(varied)} values differ",
        )
    x, y = np.column_stack(list(varied.values())), y[known]
    centers, deviations = x.mean(axis=0), x.std(axis=0)
    matrix, spread = (x - centers) / deviations, y.std()
    weights, *_ = np.linalg.lstsq(matrix, y - y.mean(), rcond=None)
    rest = float(np.mean((y - y.mean() - matrix @ weights) ** 2))
    low, high = np.quantile(x, [0.05, 0.95], axis=0)
    return Regression(
        metric=metric,
        paths=tuple(varied),
        slopes=weights / deviations,
        standardized=weights / spread if spread else np.zeros_like(weights),
        effects=weights / deviations * (high - low),
        r_squared=1.0 - rest / spread**2 if spread else 1.0,
        runs=len(y),
    )


def metric_of(metrics: Mapping[str, FloatArray], name: str, attempt: str) -> FloatArray:
    """Return a metric of a sweep by its name, or refuse it."""
    require_known(name, metrics, f"{attempt}: there is no metric {name!r:.100}")
    return metrics[name]


def only_metric(metrics: Mapping[str, FloatArray], attempt: str) -> str:
    """Return the name of the only metric of a sweep."""
    if len(metrics) == 1:
        return next(iter(metrics))
    raise ValueRefusedError(
        attempt,
        expected="the name of a metric",
        found=f"{len(metrics)} metrics in the sweep",
        remedy="Name one of them, or add one to metrics= of the sweep",
    )
