"""Metrics of responses to steps and disturbances, from functions of users, and of other metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial, reduce
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import is_one_of, require
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, suggestion
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures.disturbances import (
    BAND,
    FIGURES,
    disturbance_figures,
    positive,
)
from flexure.solvers.results.measures.metrics import Metric, Records, Response, joined, spelled
from flexure.solvers.results.measures.signal_metrics import metric_of, number
from flexure.solvers.results.measures.step_characteristics import (
    CONTROLS,
    ERRORS,
    StepFigures,
    StepInfo,
    effort_figures,
)
from flexure.solvers.results.measures.step_responses import checked_band
from flexure.solvers.tracing.signals import Signal

#: Step metrics that are known while the signal still moves.
KNOWN_IN_MOTION = ("target", "steady_state_error", *CONTROLS)
_STEP_METRICS = tuple(field.name for field in fields(StepInfo))
_TIMES = ("_time", "_start", "_end")
#: Units that differ from the unit of the signal, ``{}``; those of control are not known.
_UNITS = dict.fromkeys(("overshoot", "undershoot"), "%") | dict.fromkeys(("band", *CONTROLS), "")
_UNITS |= {"at": "s", "iae": "{} s", "ise": "{}² s", "itae": "{} s²"}


def step(
    name: str,
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
    name : str
        An attribute of `StepInfo`, such as "overshoot".
    signal : Handle or str
        A signal with one component.
    at, initial, final, target, band
        As for `SimulationResult.step_info`, also where they are omitted: instant and target of the
        step are found along the wires, for each run.
    control : Handle or str, optional
        The manipulated input, for ``"control_variation"`` and ``"control_peak"``.

    See Also
    --------
    disturbance, iae, flexure.step_info

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
    if not is_one_of(name, _STEP_METRICS):
        raise UnknownNameError(
            f"Cannot measure {name!r} of step responses", remedy=suggestion(name, _STEP_METRICS)
        )
    given = {"at": at, "initial": initial, "final": final, "target": target}
    options = {key: number(key, value) for key, value in given.items() if value is not None}
    width = checked_band("band", band, f"Cannot measure '{path_of(signal)}'")
    named = options if width == 0.02 else {**options, "band": width}
    words = [name, path_of(signal), *(f"{key}={spelled(x)}" for key, x in named.items())]
    response = Response(path_of(signal), options.get("at"))
    signals = with_control(name, signal, control)
    words += [f"control={path_of(each)}" for each in signals[1:]]
    calc = partial(_step, name, signals, response, options, width)
    unit = unit_of(name)
    return Metric(f"step({', '.join(words)})", signals, (response,), (), calc, unit=unit)


def with_control(name: str, signal: Signal, control: Signal | None) -> tuple[Signal, ...]:
    """Return what a metric needs: a signal, and maybe its manipulated input."""
    if name not in CONTROLS:
        return (signal,)
    if control is None:
        raise ValueRefusedError(
            f"Cannot measure '{name}' of '{path_of(signal)}'",
            expected="the manipulated input",
            found="none",
            remedy="Name it, as in control='pid.u'",
        )
    return signal, control


def _step(
    name: str,
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
    if name in (*ERRORS, *CONTROLS):
        control = records.single(signals[1]) if signals[1:] else None
        figures = effort_figures(y, figures, control)
    if name not in KNOWN_IN_MOTION:
        records.note(path, name, figures[name], longer)
    return np.asarray(figures[name])


def disturbance(
    name: str,
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
    name : str
        An attribute of `DisturbanceInfo`, such as "peak_deviation" or "recovery_time".
    signal : Handle or str
        A signal with one component.
    at, target, band, tolerance
        As for `SimulationResult.disturbance_info`, also where they are omitted: instant and target
        are found along the wires, for each run.
    control : Handle or str, optional
        The manipulated input, for ``"control_variation"`` and ``"control_peak"``.

    See Also
    --------
    step, iae, flexure.disturbance_info

    Examples
    --------
    >>> import flexure as fx
    >>> metric = fx.metrics.disturbance("peak_deviation", "y", at=0.0, target=0.0)
    >>> metric.label
    'disturbance(peak_deviation, y, at=0, target=0)'
    """
    if not is_one_of(name, FIGURES):
        raise UnknownNameError(
            f"Cannot measure {name!r} of responses to disturbances",
            remedy=suggestion(name, FIGURES),
        )
    given = {"at": at, "target": target}
    options = {key: number(key, value) for key, value in given.items() if value is not None}
    widths = {"band": positive("band", band)}
    if tolerance is not None:
        widths["tolerance"] = positive("tolerance", tolerance)
    named = {**options, **{key: x for key, x in widths.items() if (key, x) != ("band", BAND)}}
    words = [name, path_of(signal), *(f"{key}={spelled(x)}" for key, x in named.items())]
    signals = with_control(name, signal, control)
    words += [f"control={path_of(each)}" for each in signals[1:]]
    response = Response(path_of(signal), options.get("at"), disturbs=True)
    calc = partial(_disturbance, name, signals, response, options, widths)
    unit = unit_of(name)
    return Metric(f"disturbance({', '.join(words)})", signals, (response,), (), calc, unit=unit)


def unit_of(name: str) -> str:
    """Return the unit of a metric of responses, as `Metric.unit` is written."""
    return _UNITS.get(name, "s" if name.endswith(_TIMES) else "{}")


def _disturbance(
    name: str,
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
    return np.asarray(records.measured[key][name])


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
