"""Metrics from functions of users, and the largest or smallest of several metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.metrics import Metric, Records, joined
from flexure.solvers.results.measures.signal_metrics import metric_of
from flexure.solvers.tracing.signals import Signal


def of(function: Callable[..., Any], *signals: Signal, label: str | None = None) -> Metric:
    """Return the metric "value returned by a function of a run".

    Parameters
    ----------
    function : callable
        With signals, ``function(times, *values) -> float``, called for each run: times of shape
        (K,), those of the steps with points between them, and at jumps twice; and values of each
        signal of shape (K,), or (K, size) with several components.
        Without signals, ``function(result) -> float`` of a whole `SimulationResult`; sweeps then
        run single simulations.
    *signals : Handle or str
        What the function reads.
    label : str, optional
        What the metric is called; the name of the function when omitted.

    See Also
    --------
    largest, smallest

    Examples
    --------
    >>> import flexure as fx
    >>> def longest_pause(times, y):
    ...     return np.diff(times[y > 0.0]).max()
    >>> fx.metrics.of(longest_pause, "y").label
    'of(longest_pause, y)'
    """
    require(callable(function), function, "Cannot make a metric", "a function")
    name = getattr(function, "__name__", type(function).__name__)
    words = [name, *map(path_of, signals)]
    if signals:
        made = metric_of(f"of({', '.join(words)})", signals, partial(_of, function, signals))
    else:
        made = Metric(f"of({name})", (), (), (function,), partial(_of_result, function))
    return made if label is None else made.named(label)


def _of(function: Callable[..., Any], signals: tuple[Signal, ...], records: Records) -> FloatArray:
    columns = [records.columns[path_of(signal)] for signal in signals]
    found = np.full(len(records.dense), np.nan)
    for index in range(len(found)):
        times, values = records.dense.points(index)
        row = [values[:, column] for column in columns]
        if all(np.isfinite(each).all() for each in row):
            try:
                found[index] = function(times, *row)
            except Exception as error:
                records.fail(index, getattr(function, "__name__", repr(function)), error)
    return found


def _of_result(function: Callable[..., Any], records: Records) -> FloatArray:
    return records.numbers[function]


def largest(*metrics: Metric | float) -> Metric:
    """Return the metric "largest of several metrics and numbers".

    Parameters
    ----------
    *metrics : Metric or float
        At least one of them a metric.

    See Also
    --------
    smallest, of

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.largest(fx.metrics.final("y"), 0.0)
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([0.])
    """
    return _chosen(np.maximum, "largest", metrics)


def smallest(*metrics: Metric | float) -> Metric:
    """Return the metric "smallest of several metrics and numbers".

    Parameters
    ----------
    *metrics : Metric or float
        At least one of them a metric.

    See Also
    --------
    largest, of

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.smallest(fx.metrics.maximum("y"), 1.5)
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([1.5])
    """
    return _chosen(np.minimum, "smallest", metrics)


def _chosen(function: np.ufunc, name: str, operands: tuple[Any, ...]) -> Metric:
    fits = any(isinstance(each, Metric) for each in operands)
    require(fits, operands, f"Cannot make a metric of the {name}", "metrics, and numbers")
    places = ", ".join(["{}"] * len(operands))
    return joined(partial(_reduced, function), f"{name}({places})", operands)


def _reduced(function: np.ufunc, *values: Any) -> Any:
    return reduce(function, values)
