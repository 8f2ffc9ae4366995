"""Metrics of one signal: values, extremes, means and integrals over a time window."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.solvers.results.measures import reductions
from flexure.solvers.results.measures.curves import Curve
from flexure.solvers.results.measures.metrics import Metric, Records, spelled
from flexure.solvers.tracing.signals import Signal

Direction = Literal["rising", "falling", "either"]
#: Units of integrals over time, where ``{}`` is the unit of the signal.
_UNITS = {"integral": "{} s", "iae": "{} s", "ise": "{}² s", "itae": "{} s²"}


def final(signal: Signal) -> Metric:
    """Return the metric "last value of a signal".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.

    See Also
    --------
    at, mean

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.final("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([-1.])
    """
    return _reduction(reductions.final, signal)


def at(signal: Signal, time: float) -> Metric:
    """Return the metric "value of a signal at a time".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    time : float
        Time in s. If the signal jumps at that time, the value after the jump counts.

    See Also
    --------
    final, first_crossing

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.at("y", time=1.5).evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([0.5])
    """
    when = number("time", time)
    label = f"at({path_of(signal)}, {spelled(when)})"
    return metric_of(label, (signal,), partial(calc_at, signal, when), "{}")


def calc_at(signal: Signal, when: float, records: Records) -> FloatArray:
    """Compute `at`."""
    _within(records, when)
    return reductions.value_at(records.single(signal), when)


def maximum(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "largest value of a signal".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    minimum, peak

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.maximum("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([2.])
    """
    return _reduction(reductions.maximum, signal, start=start, end=end)


def minimum(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "smallest value of a signal".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    maximum, peak

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.minimum("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([-1.])
    """
    return _reduction(reductions.minimum, signal, start=start, end=end)


def peak(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "largest magnitude of a signal".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    maximum, rms

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.peak("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([2.])
    """
    return _reduction(reductions.peak, signal, start=start, end=end)


def mean(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "mean of a signal over time".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    rms, integral

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.mean("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([0.75])
    """
    return _reduction(reductions.mean, signal, start=start, end=end)


def rms(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "root mean square of a signal".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    mean, peak

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.rms("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([1.080123])
    """
    return _reduction(reductions.rms, signal, start=start, end=end)


def integral(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "integral of a signal over time".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    mean, iae

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.integral("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([1.5])
    """
    return _reduction(reductions.integral, signal, start=start, end=end)


def total_variation(
    signal: Signal, *, start: float | None = None, end: float | None = None
) -> Metric:
    """Return the metric "sum of all rises and falls of a signal".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    peak, rms

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.total_variation("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([5.])
    """
    return _reduction(reductions.total_variation, signal, start=start, end=end)


def iae(
    signal: Signal,
    *,
    target: float | Signal = 0.0,
    start: float | None = None,
    end: float | None = None,
) -> Metric:
    """Return the metric "integral of the magnitude of target - signal".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    target : float or Handle or str, optional
        A number in the unit of the signal, or another signal.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    ise, itae, step

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.iae("y", target=1.0).evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([1.333333])
    """
    return _reduction(reductions.iae, signal, target=target, start=start, end=end)


def ise(
    signal: Signal,
    *,
    target: float | Signal = 0.0,
    start: float | None = None,
    end: float | None = None,
) -> Metric:
    """Return the metric "integral of (target - signal)²".

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    target : float or Handle or str, optional
        A number in the unit of the signal, or another signal.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    iae, itae

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.ise("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([2.333333])
    """
    return _reduction(reductions.ise, signal, target=target, start=start, end=end)


def itae(
    signal: Signal,
    *,
    target: float | Signal = 0.0,
    start: float | None = None,
    end: float | None = None,
) -> Metric:
    """Return the metric "integral of time times the magnitude of target - signal".

    Time counts from ``start``.

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    target : float or Handle or str, optional
        A number in the unit of the signal, or another signal.
    start, end : float, optional
        Times in s between which it is measured; the whole run when omitted.

    See Also
    --------
    iae, ise

    Examples
    --------
    >>> import flexure as fx
    >>> fx.metrics.itae("y").evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([1.796296])
    """
    return _reduction(reductions.itae, signal, target=target, start=start, end=end)


def first_crossing(signal: Signal, level: float, direction: Direction = "either") -> Metric:
    """Return the metric "time in s at which a signal first crosses a level", or NaN.

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    level : float
        The level, in the unit of the signal.
    direction : {"either", "rising", "falling"}, optional
        Which crossings count; "rising" ones come from below.

    See Also
    --------
    at, step

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.first_crossing("y", level=1.0)
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]})
    array([0.5])
    """
    limit, attempt = number("level", level), f"Cannot measure '{path_of(signal)}'"
    one_of(direction, get_args(Direction), "direction", attempt)
    label = f"first_crossing({path_of(signal)}, {spelled(limit)}, {direction})"
    return metric_of(label, (signal,), partial(calc_first_crossing, signal, limit, direction), "s")


def calc_first_crossing(
    signal: Signal, level: float, direction: str, records: Records
) -> FloatArray:
    """Compute `first_crossing`."""
    return reductions.first_crossing(records.single(signal), level, direction)


def _reduction(
    function: Callable[[Curve], FloatArray],
    signal: Signal,
    *,
    target: float | Signal = 0.0,
    start: float | None = None,
    end: float | None = None,
) -> Metric:
    """Return the metric of a reduction of a signal, or of its distance from a target."""
    name = f"{function.__name__}({path_of(signal)}"
    signals: tuple[Signal, ...] = (signal,)
    if isinstance(target, (int, float, np.number)):
        target = number("target", target)
        name += f", target={spelled(target)}" if target else ""
    else:
        signals = (signal, target)
        name += f", target={path_of(target)}"
    window = {"start": start, "end": end}
    given = {key: number(key, value) for key, value in window.items() if value is not None}
    if len(given) == 2 and not given["start"] < given["end"]:
        raise ValueRefusedError(
            f"Cannot measure '{path_of(signal)}'",
            expected="a start before the end",
            found=f"{given['start']:g} s and {given['end']:g} s",
        )
    name += "".join(f", {key}={spelled(value)}" for key, value in given.items()) + ")"
    unit = _UNITS.get(function.__name__, "{}")
    return metric_of(name, signals, partial(calc_reduction, function, signal, target, given), unit)


def calc_reduction(
    function: Callable[[Curve], FloatArray],
    signal: Signal,
    target: float | Signal,
    window: dict[str, float],
    records: Records,
) -> FloatArray:
    """Compute the metric of a reduction."""
    return function(reduced_curve(signal, target, window, records))


def reduced_curve(
    signal: Signal, target: float | Signal, window: dict[str, float], records: Records
) -> Curve:
    """Return the part of a signal, or of its distance from a target, that is reduced."""
    for when in window.values():
        _within(records, when)
    if isinstance(target, float):
        y = records.single(signal)
        y = y if target == 0.0 else y.moved(np.full(len(y), -target))
    else:
        y = records.difference(signal, target)
    return reductions.cut(y, window.get("start"), window.get("end"))


def _within(records: Records, when: float) -> None:
    """Refuse a time that is not within the runs."""
    dense = records.dense
    first, last = records.span or (np.min(dense.begin), np.max(dense.end))
    if not first <= when <= last:
        raise ValueRefusedError(
            f"Cannot measure signals at t = {when:g} s",
            expected=f"a time within the runs, from {first:g} to {last:g} s",
            found=f"{when:g} s",
        )


def metric_of(
    label: str, signals: tuple[Signal, ...], calc: Callable[[Records], FloatArray], unit: str = ""
) -> Metric:
    """Return a metric without links to step responses."""
    return Metric(label, signals, (), (), calc, unit=unit)


def number(argument: str, value: Any) -> float:
    """Return an argument of a metric as a number."""
    return float(as_number(value, (), f"Cannot make a metric with this {argument}"))
