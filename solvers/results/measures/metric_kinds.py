"""The kinds of metrics: functions that each return one, for a signal of one component."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial, reduce
from typing import Any, Literal, get_args

import numpy as np

from flexure.diagrams.checks.arguments import is_one_of, one_of, require
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, suggestion
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.solvers.results.measures import reductions
from flexure.solvers.results.measures.curves import Curve
from flexure.solvers.results.measures.disturbances import (
    BAND,
    FIGURES,
    disturbance_figures,
    positive,
)
from flexure.solvers.results.measures.metrics import Metric, Records, Response, joined, spelled
from flexure.solvers.results.measures.step_characteristics import (
    CONTROLS,
    ERRORS,
    StepFigures,
    StepInfo,
    effort_figures,
)
from flexure.solvers.results.measures.step_responses import checked_band
from flexure.solvers.tracing.signals import Signal

Direction = Literal["rising", "falling", "either"]
#: Figures of step responses that are known of what still moves.
KNOWN_IN_MOTION = ("target", "steady_state_error", *CONTROLS)
_STEP_FIGURES = tuple(field.name for field in fields(StepInfo))
_TIMES = ("_time", "_start", "_end")
#: Units of metrics, where they are not that of the signal; those of control are not known.
_UNITS = dict.fromkeys(("overshoot", "undershoot"), "%") | dict.fromkeys(("band", *CONTROLS), "")
_UNITS |= {"at": "s", "integral": "{} s", "iae": "{} s", "ise": "{}² s", "itae": "{} s²"}


def final(signal: Signal) -> Metric:
    """Return the metric "last value of a signal".

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.final("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([-1.])
    """
    return _reduction(reductions.final, signal)


def at(signal: Signal, time: float) -> Metric:
    """Return the metric "value of a signal at a time", which is in s.

    If the signal jumps at that time, the value after the jump counts.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.at("y", time=1.5)
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([0.5])
    """
    when = _number("time", time)
    label = f"at({path_of(signal)}, {spelled(when)})"
    return _metric(label, (signal,), partial(calc_at, signal, when), "{}")


def calc_at(signal: Signal, when: float, records: Records) -> FloatArray:
    """Compute `at`."""
    _within(records, when)
    return reductions.value_at(records.single(signal), when)


def maximum(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "largest value of a signal", from a start to an end.

    ``start`` and ``end`` are times in s; by default, the whole run counts.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.maximum("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([2.])
    """
    return _reduction(reductions.maximum, signal, start=start, end=end)


def minimum(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "smallest value of a signal", from a start to an end.

    ``start`` and ``end`` are times in s; by default, the whole run counts.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.minimum("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([-1.])
    """
    return _reduction(reductions.minimum, signal, start=start, end=end)


def peak(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "largest magnitude of a signal", from a start to an end.

    ``start`` and ``end`` are times in s; by default, the whole run counts.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.peak("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([2.])
    """
    return _reduction(reductions.peak, signal, start=start, end=end)


def mean(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "mean of a signal over time", from a start to an end.

    ``start`` and ``end`` are times in s; by default, the whole run counts.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.mean("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([0.75])
    """
    return _reduction(reductions.mean, signal, start=start, end=end)


def rms(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "root mean square of a signal", from a start to an end.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.rms("y", start=1.0)
    >>> metric.label
    'rms(y, start=1)'
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[9.0, 3.0, 3.0], [9.0, -2.0, -2.0]]})
    array([3., 2.])
    """
    return _reduction(reductions.rms, signal, start=start, end=end)


def integral(signal: Signal, *, start: float | None = None, end: float | None = None) -> Metric:
    """Return the metric "integral of a signal over time", from a start to an end.

    ``start`` and ``end`` are times in s; by default, the whole run counts.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.integral("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([1.5])
    """
    return _reduction(reductions.integral, signal, start=start, end=end)


def total_variation(
    signal: Signal, *, start: float | None = None, end: float | None = None
) -> Metric:
    """Return the metric "total variation of a signal", from a start to an end.

    ``start`` and ``end`` are times in s; by default, the whole run counts. The
    total variation is the sum of all rises and falls.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.total_variation("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
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
    """Return the metric "integral of the magnitude of target - signal", from a start to an end.

    The target is a number, or another signal.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.iae("y", target=1.0)
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
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
    """Return the metric "integral of (target - signal)²", from a start to an end.

    The target is a number, or another signal.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.ise("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
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

    Time counts from ``start``; ``start`` and ``end`` are in s. The target is a number or another
    signal.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.itae("y")
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([1.796296])
    """
    return _reduction(reductions.itae, signal, target=target, start=start, end=end)


def first_crossing(signal: Signal, level: float, direction: Direction = "either") -> Metric:
    """Return the metric "time at which a signal first crosses a level", or NaN.

    The result is NaN if the signal never crosses it. With ``direction="rising"`` only crossings
    from below count, with ``"falling"`` only those from above, with ``"either"`` both. The time is
    in s.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.first_crossing("y", level=1.0)
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([0.5])
    """
    limit, attempt = _number("level", level), f"Cannot measure '{path_of(signal)}'"
    one_of(direction, get_args(Direction), "direction", attempt)
    label = f"first_crossing({path_of(signal)}, {spelled(limit)}, {direction})"
    return _metric(label, (signal,), partial(calc_first_crossing, signal, limit, direction), "s")


def calc_first_crossing(
    signal: Signal, level: float, direction: str, records: Records
) -> FloatArray:
    """Compute `first_crossing`."""
    return reductions.first_crossing(records.single(signal), level, direction)


def step(
    figure: str,
    signal: Signal,
    *,
    at: float | None = None,
    initial: float | None = None,
    final: float | None = None,
    target: float | None = None,
    band: float = 0.02,
    control: Signal | None = None,
) -> Metric:
    """Return the metric "measure of the step response of a signal".

    Parameters
    ----------
    figure : str
        An attribute of `StepInfo`, such as "overshoot".
    signal : Handle or str
        A signal with one component.
    at, initial, final, target, band
        As for `SimulationResult.step_info`, also where they are omitted: instant and target of the
        step are found along the wires, for each run.
    control : Handle or str, optional
        The manipulated input, for ``"control_variation"`` and ``"control_peak"``.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.step("rise_time", "lag.y")
    >>> builder = fx.DiagramBuilder("charge")
    >>> builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    >>> builder.connect_chain("source", "lag")
    >>> charge = builder.build()
    >>> round(float(metric(fx.simulate(charge, 8.0))), 3)
    2.192
    """
    if not is_one_of(figure, _STEP_FIGURES):
        raise UnknownNameError(
            f"Cannot measure {figure!r} of step responses",
            remedy=suggestion(figure, _STEP_FIGURES),
        )
    given = {"at": at, "initial": initial, "final": final, "target": target}
    options = {name: _number(name, value) for name, value in given.items() if value is not None}
    width = checked_band("band", band, f"Cannot measure '{path_of(signal)}'")
    named = options if width == 0.02 else {**options, "band": width}
    words = [figure, path_of(signal), *(f"{name}={spelled(x)}" for name, x in named.items())]
    response = Response(path_of(signal), options.get("at"))
    signals = with_control(figure, signal, control)
    words += [f"control={path_of(each)}" for each in signals[1:]]
    calc = partial(_step, figure, signals, response, options, width)
    unit = unit_of_figure(figure)
    return Metric(f"step({', '.join(words)})", signals, (response,), (), calc, unit=unit)


def with_control(figure: str, signal: Signal, control: Signal | None) -> tuple[Signal, ...]:
    """Return what a figure needs: a signal, and maybe its manipulated input."""
    if figure not in CONTROLS:
        return (signal,)
    if control is None:
        raise ValueRefusedError(
            f"Cannot measure '{figure}' of '{path_of(signal)}'",
            expected="the manipulated input",
            found="none",
            remedy="Name it, as in control='pid.u'",
        )
    return signal, control


def _step(
    figure: str,
    signals: tuple[Signal, ...],
    response: Response,
    options: dict[str, float],
    band: float,
    records: Records,
) -> FloatArray:
    path, y = response.path, records.single(signals[0])
    key = ("step", path, *options.items(), band)
    if key not in records.measured:
        known = dict.fromkeys(("initial", "final", "target"), np.nan) | {"at": y.start}
        found = {**known, **records.steps.get(response, {}), **options}
        records.measured[key] = StepFigures(y, **found, band=band)
    figures, longer = records.measured[key], records.measured[key].longer
    if figure in (*ERRORS, *CONTROLS):
        control = records.single(signals[1]) if signals[1:] else None
        figures = effort_figures(y, figures, control)
    if figure not in KNOWN_IN_MOTION:
        records.note(path, figure, figures[figure], longer)
    return np.asarray(figures[figure])


def disturbance(
    figure: str,
    signal: Signal,
    *,
    at: float | None = None,
    target: float | None = None,
    band: float = BAND,
    tolerance: float | None = None,
    control: Signal | None = None,
) -> Metric:
    """Return the metric "measure of the response of a signal to a disturbance".

    Parameters
    ----------
    figure : str
        An attribute of `DisturbanceInfo`, such as "peak_deviation" or "recovery_time".
    signal : Handle or str
        A signal with one component.
    at, target, band, tolerance
        As for `SimulationResult.disturbance_info`, also where they are omitted: instant and target
        are found along the wires, for each run.
    control : Handle or str, optional
        The manipulated input, for ``"control_variation"`` and ``"control_peak"``.

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.disturbance("peak_deviation", "y", at=0.0, target=0.0)
    >>> metric.label
    'disturbance(peak_deviation, y, at=0, target=0)'
    """
    if not is_one_of(figure, FIGURES):
        raise UnknownNameError(
            f"Cannot measure {figure!r} of responses to disturbances",
            remedy=suggestion(figure, FIGURES),
        )
    given = {"at": at, "target": target}
    options = {name: _number(name, value) for name, value in given.items() if value is not None}
    widths = {"band": positive("band", band)}
    if tolerance is not None:
        widths["tolerance"] = positive("tolerance", tolerance)
    named = {**options, **{name: x for name, x in widths.items() if (name, x) != ("band", BAND)}}
    words = [figure, path_of(signal), *(f"{name}={spelled(x)}" for name, x in named.items())]
    signals = with_control(figure, signal, control)
    words += [f"control={path_of(each)}" for each in signals[1:]]
    response = Response(path_of(signal), options.get("at"), disturbs=True)
    calc = partial(_disturbance, figure, signals, response, options, widths)
    unit = unit_of_figure(figure)
    return Metric(f"disturbance({', '.join(words)})", signals, (response,), (), calc, unit=unit)


def unit_of_figure(figure: str) -> str:
    """Return the unit of a figure of responses, as `Metric.unit` is written."""
    return _UNITS.get(figure, "s" if figure.endswith(_TIMES) else "{}")


def _disturbance(
    figure: str,
    signals: tuple[Signal, ...],
    response: Response,
    options: dict[str, float],
    widths: dict[str, float],
    records: Records,
) -> FloatArray:
    y, *control = (records.single(signal) for signal in signals)
    key = (response, *options.items(), *widths.items(), *map(path_of, signals))
    if key not in records.measured:
        found: dict[str, Any] = {"at": y.start, "target": np.nan, "tolerance": np.nan}
        found |= {**records.steps.get(response, {}), **options, **widths}
        effort = control[0] if control else None
        records.measured[key] = disturbance_figures(y, control=effort, **found)
    return np.asarray(records.measured[key][figure])


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
        made = _metric(f"of({', '.join(words)})", signals, partial(_of, function, signals))
    else:
        made = Metric(f"of({name})", (), (), (function,), partial(_of_result, function))
    return made if label is None else made.named(label)


def _of(function: Callable[..., Any], signals: tuple[Signal, ...], records: Records) -> FloatArray:
    columns = [records.columns[path_of(signal)] for signal in signals]
    found = np.full(len(records.dense), np.nan)
    for index in range(len(found)):
        times, values = records.dense.points(index)
        row = [values[:, column] for column in columns]
        if all(map(_finite, row)):
            try:
                found[index] = function(times, *row)
            except Exception as error:
                records.fail(index, getattr(function, "__name__", repr(function)), error)
    return found


def _finite(values: FloatArray) -> bool:
    return bool(np.isfinite(values).all())


def _of_result(function: Callable[..., Any], records: Records) -> FloatArray:
    return records.numbers[function]


def largest(*metrics: Metric | float) -> Metric:
    """Return the metric "largest of several metrics and numbers".

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.largest(fx.metrics.final("y"), 0.0)
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
    array([0.])
    """
    return _chosen(np.maximum, "largest", metrics)


def smallest(*metrics: Metric | float) -> Metric:
    """Return the metric "smallest of several metrics and numbers".

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.smallest(fx.metrics.maximum("y"), 1.5)
    >>> metric.evaluate([0.0, 1.0, 2.0], {"y": [[0.0, 2.0, -1.0]]}).round(6)
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
        target = _number("target", target)
        name += f", target={spelled(target)}" if target else ""
    else:
        signals = (signal, target)
        name += f", target={path_of(target)}"
    window = {"start": start, "end": end}
    given = {key: _number(key, value) for key, value in window.items() if value is not None}
    if len(given) == 2 and not given["start"] < given["end"]:
        raise ValueRefusedError(
            f"Cannot measure '{path_of(signal)}'",
            expected="a start before the end",
            found=f"{given['start']:g} s and {given['end']:g} s",
        )
    name += "".join(f", {key}={spelled(value)}" for key, value in given.items()) + ")"
    unit = _UNITS.get(function.__name__, "{}")
    return _metric(name, signals, partial(calc_reduction, function, signal, target, given), unit)


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


def _metric(
    label: str, signals: tuple[Signal, ...], calc: Callable[[Records], FloatArray], unit: str = ""
) -> Metric:
    return Metric(label, signals, (), (), calc, unit=unit)


def _number(argument: str, value: Any) -> float:
    return float(as_number(value, (), f"Cannot make a metric with this {argument}"))
