"""Step responses and the metrics that describe them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import ValueRefusedError, warn
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.drawing.formats.new_figures import Plotted
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray, as_number, as_numbers
from flexure.solvers.results.measures.curves import Curve, DenseOutput
from flexure.solvers.results.measures.step_characteristics import (
    StepFigures,
    StepInfo,
    effort_figures,
)

if TYPE_CHECKING:
    from flexure.solvers.results.pictures import response_plots
    from flexure.solvers.results.records.result import SimulationResult
    from flexure.solvers.tracing.signals import Signal
else:
    response_plots = Deferred("flexure.solvers.results.pictures.response_plots")

_ATTEMPT = "Cannot measure a step response"
_CONTROL = "Cannot measure the control of a response"


def step_info(
    time: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    at: float | None = None,
    initial: float | None = None,
    final: float | None = None,
    target: float | None = None,
    band: float = 0.02,
    control: npt.ArrayLike | None = None,
) -> StepInfo:
    """Measure rise time, overshoot, settling time etc. of a step response.

    The response has come to rest when the motion that is still to come is less than a tenth of the
    band, taken that it goes on as it did in the second half of the record: when it moves over a
    range R0 in the third quarter after the step and over R1 in the fourth, and r = R1/R0, then
    either R1 itself or R1 r / (1 - r) is small. Otherwise the record *still moves*. Without
    ``final`` and ``target``, its last value is no final value then, and all metrics that need one
    are NaN. With them, the settling time alone is NaN, unless the response is inside of the band
    and expected to stay there: a deviation from the final value of up to E0 in the third quarter
    and E1 in the fourth goes on as E1²/E0, and a steady drift away from it, by which the ranges of
    both quarters do not overlap, goes on by R1 r / (1 - r). A creep of less than a tenth of the
    band in a quarter of the record is not noticed.

    Parameters
    ----------
    time : array_like, shape (k,)
        Ascending times in seconds; a repeated time marks a jump.
    values : array_like, shape (k,)
        The response; between the points it is taken to be linear.
    at : float, optional
        Instant of the step; the first time when omitted.
    initial : float, optional
        Value before the response; the value at the step when omitted, before a jump there.
    final : float, optional
        Value that the response settles to; when omitted, the target or, without a target, the last
        value of a record that has come to rest.
    target : float, optional
        The desired final value, for the steady-state error.
    band : float
        Half the width of the settling band, as a fraction of the whole change.
    control : array_like, shape (k,), optional
        The manipulated input, for its total variation and peak.

    Returns
    -------
    StepInfo

    Warns
    -----
    UserWarning
        When metrics are NaN because the record still moves at its end. The text estimates how much
        longer it has to be.

    Raises
    ------
    ValueRefusedError
        When shapes differ, values are not finite, the step is not within the record, or there is
        no change to measure.

    See Also
    --------
    step_response : Simulate and measure in one call.
    disturbance_info : Measure the response to a disturbance.

    Examples
    --------
    >>> t = np.linspace(0.0, 10.0, 5001)
    >>> info = step_info(t, 1.0 - np.exp(-t))
    >>> round(info.rise_time, 3), round(info.settling_time, 3), info.overshoot
    (2.197, 3.91, 0.0)
    """
    return measure(
        "the response",
        straight(time, values, _ATTEMPT),
        at=at,
        initial=initial,
        final=final,
        target=target,
        band=band,
        control=None if control is None else straight(time, control, _CONTROL),
    )


def measure(
    name: str,
    response: Curve,
    *,
    at: float | None,
    initial: float | None,
    final: float | None,
    target: float | None,
    band: float,
    control: Curve | None = None,
) -> StepInfo:
    """Measure a step response as `step_info` does; a warning calls it by a name."""
    y = response
    start, stop = float(y.start[0]), float(y.stop[0])
    step = start if at is None else _number("at", at)
    initial, final, target = (
        None if value is None else _number(argument, value)
        for argument, value in (("initial", initial), ("final", final), ("target", target))
    )
    band = checked_band("band", band, _ATTEMPT)
    if not (step <= stop and (step >= start or initial is not None)):
        raise ValueRefusedError(
            _ATTEMPT,
            expected=f"a step within the record, from {start:g} to {stop:g} s",
            found=f"a step at {step:g} s",
        )
    y0, yf, aim = (np.nan if item is None else item for item in (initial, final, target))
    measured = StepFigures(y, step, y0, yf, aim, band)
    figures, longer = measured.all(), measured.longer
    figures |= effort_figures(y, figures, control)
    info = StepInfo(**first_row(figures))
    lacking = np.isnan(info.final)
    given = [item for item in (initial, final, target) if item is not None]
    if (lacking and not longer[0]) or not np.isfinite(given).all():
        first = info.initial if initial is None else initial
        last = next((item for item in (final, target) if item is not None), y.final[0])
        raise ValueRefusedError(
            _ATTEMPT,
            expected="a finite final value that differs from the initial one",
            found=f"{first:g} at first and {last:g} at last",
            remedy="Simulate longer, or pass final=",
        )
    if longer[0]:
        what = "what needs its final value is" if lacking else "its settling time is"
        warn(f"{name} still moves at t = {stop:g} s, so that {what} NaN: {way_to_rest(longer)}")
    return info


def first_row(figures: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return the metrics of a single record; those that are lacking are equal to each other."""
    numbers = {key: float(column[0]) for key, column in figures.items()}
    return {key: math.nan if math.isnan(number) else number for key, number in numbers.items()}


def _number(argument: str, value: object) -> float:
    return float(as_number(value, (), f"{_ATTEMPT} with {argument}"))


def way_to_rest(longer: FloatArray) -> str:
    """Say how much longer runs have to be whose responses still move."""
    decaying = longer[np.isfinite(longer)]
    advice = []
    if decaying.size:
        advice.append(f"simulate about {np.max(decaying):.2g} s longer")
    if decaying.size < longer.size:
        count = f" in {longer.size - decaying.size} of them" if longer.size > 1 else ""
        advice.append(f"no decay is in sight{count}")
    return ", ".join(advice)


def checked_band(argument: str, value: object, attempt: str) -> float:
    """Return the width of a band, which has to be positive and finite."""
    width = float(as_number(value, (), f"{attempt} with {argument}"))
    if not 0.0 < width < math.inf:
        raise ValueRefusedError(
            f"{attempt} with {argument}",
            expected="a positive number that is finite",
            found=f"{width:g}",
        )
    return width


def straight(time: npt.ArrayLike, values: npt.ArrayLike, attempt: str) -> Curve:
    """Return one record as a curve that is straight between its points."""
    t, y = as_numbers(time, f"{attempt} with times"), as_numbers(values, f"{attempt} with values")
    fine = t.ndim == 1 and t.shape == y.shape and t.size >= 2
    if not fine or not np.isfinite(t).all() or not np.isfinite(y).all() or np.any(np.diff(t) < 0):
        raise ValueRefusedError(
            attempt,
            expected="at least two ascending times and as many finite values",
            found=f"times of shape {t.shape} and values of shape {y.shape}"
            if not fine
            else "values that are not finite or times that do not ascend",
        )
    dense = DenseOutput.of_samples(t, y[np.newaxis, :, np.newaxis])
    return Curve.of(dense, dense.values[:, :, 0])


@dataclass(frozen=True)
class StepResponse(Answer, Plotted):
    """A recorded step response with its measures.

    Its picture has rise time, peak, settling time and final value marked.

    Attributes
    ----------
    time : ndarray, shape (k,)
        Times in seconds.
    values : ndarray, shape (k,)
        The response.
    info : StepInfo
        Its metrics.
    at : float
        Instant of the step in seconds.
    name : str
        Path of the signal.
    unit : str
        Its unit.

    See Also
    --------
    step_response : Simulate one.
    step_info : Measure a record.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=0.5)
    >>> response = fx.step_response(lag, "u", "y", 5.0, final=1.0)
    >>> round(response.info.rise_time, 3)
    1.099
    """

    time: FloatArray
    values: FloatArray
    info: StepInfo
    at: float
    name: str
    unit: str

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.results.records.result_tables import response_pieces

        return response_pieces(self)

    _figsize = (8.0, 4.8)
    _draw = response_plots.draw_step_response


def record_response(
    result: SimulationResult,
    signal: Signal,
    *,
    at: float,
    initial: float | None,
    final: float | None,
    target: float | None,
    band: float,
    control: Signal | None = None,
) -> StepResponse:
    """Return a signal of a simulation as a step response; see `step_info`."""
    grid = result.fine_time()
    response, effort = read_curves(result, signal, control, "step response")
    name = path_of(signal)
    info = measure(
        f"'{name}'",
        response,
        at=at,
        initial=initial,
        final=final,
        target=target,
        band=band,
        control=effort,
    )
    values = result.sample(signal, grid)
    return StepResponse(grid, values, info, at, name, result.unit_of(signal))


def require_single(values: FloatArray, rank: int, attempt: str, remedy: str) -> None:
    """Refuse a signal with several components, whose samples have one axis more."""
    if values.ndim != rank:
        raise ValueRefusedError(
            attempt,
            expected="a signal with one component",
            found=f"{values.shape[rank]} components",
            remedy=remedy,
        )


def read_curves(
    result: SimulationResult, signal: Signal, control: Signal | None, what: str
) -> tuple[Curve, Curve | None]:
    """Return a signal of a run with one component, and the one that controls it."""
    ways = [signal] if control is None else [signal, control]
    dense = result._dense_output(ways)
    curves, begin = [], 0
    for way in ways:
        path, size = path_of(way), result.resolve(way).size
        values = dense.values[:, :, begin : begin + size]
        attempt = f"Cannot measure the {what} of '{path}'"
        if size == 1:
            values = values[:, :, 0]
        require_single(values, 2, attempt, f"Name one, as in '{path}[0]'")
        curves.append(Curve.of(dense, values))
        begin += size
    return curves[0], None if control is None else curves[1]
